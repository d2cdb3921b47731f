"""The quick sampler gives what the plain loop gives."""

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf
from two_samplers import KEYS, SEED, assert_close, both, masked

from taylorformer.model.released_weights import ReleasedRepresentationExtractor
from taylorformer.model.sampling.base import Sampler
from taylorformer.model.sampling.cached import CachedSampler
from taylorformer.model.sampling.orders import ORDERS
from taylorformer.model.sampling.taylorformer_loop import TaylorformerLoop
from taylorformer.model.taylorformer import Taylorformer

ONE_LAYER = {**conformance.TINY, "num_layers": 1, "encoding_dim": 4, "seed": 3}
QUICK = ("taylorformer", "taylorformer_covariates", "tnp")
SIZES = [(5, 4), (0, 3), (1, 3), (6, 1)]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] * (case.name not in QUICK))
        for case in conformance.MODELS
        if case.autoregressive
    ],
)
def test_every_model_with_and_without_masks(eagerly, case):
    model = case.make()
    for num_context, num_target in SIZES:
        inputs, _ = case.data(num_context=num_context, num_target=num_target)
        assert_close(*both(model, masked(inputs), "random", num_samples=2))
    assert_close(*both(model, inputs, num_samples=2))


@pytest.mark.parametrize(
    "order",
    [pytest.param(order, marks=[pytest.mark.slow] * (order != "random")) for order in ORDERS],
)
def test_orders_as_one_graph_and_with_xla(order):
    model = conformance.MODELS[0].make(num_layers=1)
    inputs = masked(conformance.points(num_context=5, num_target=4)[0])
    drawn, wanted = both(model, inputs, order)
    assert_close(drawn, wanted)
    sample = {"num_samples": 3, "seed": -3, "sequence_keys": KEYS, "order": order}
    np.testing.assert_array_equal(model.sample(inputs, **sample), drawn)
    if order == "given":
        assert_close(model.sample(inputs, **sample, jit_compile=True).numpy(), wanted)


@pytest.mark.slow
def test_mixed_precision_as_one_graph(tmp_path):
    model = Taylorformer(**ONE_LAYER, dtype="mixed_float16", predict_samples=3)
    inputs = masked(conformance.points(num_context=5, num_target=3)[0])
    assert_close(*both(model, inputs), 0.02)
    model.export(tmp_path)


@pytest.mark.parametrize("policy, tolerance", [("mixed_bfloat16", 0.1), ("mixed_float16", 0.02)])
def test_mixed_precision(eagerly, policy, tolerance):
    model = Taylorformer(**ONE_LAYER, dtype=policy)
    inputs = masked(conformance.points(num_context=5, num_target=3)[0])
    assert_close(*both(model, inputs), tolerance)
    huge = {**inputs, "y_context": np.where(inputs["context_mask"][..., None], 1e9, 0.0)}
    assert np.isfinite(both(model, huge)[0]).all()


def test_released_features_more_neighbours_and_a_huge_context(eagerly):
    inputs, _ = conformance.points(num_context=5, num_target=4)
    released = Taylorformer(
        **{**ONE_LAYER, "encoding_dim": 32},
        representation_extractor=ReleasedRepresentationExtractor(encoding_dim=4),
    )
    assert_close(*both(released, masked(inputs)))
    more = Taylorformer(**ONE_LAYER, num_neighbours=7, taylor_order=1)
    assert_close(*both(more, masked(inputs)))
    equal = {**inputs, "x_context": 0 * inputs["x_context"], "x_target": 0 * inputs["x_target"]}
    assert_close(*both(more, equal))
    assert_close(*both(more, {**inputs, "y_context": 1e6 * inputs["y_context"]}))


def test_samples_do_not_depend_on_batches_and_chunks():
    model = conformance.MODELS[0].make(num_layers=1)
    inputs, _ = conformance.points(num_context=5, num_target=4, batch_size=7)
    keys = np.arange(7)
    whole = model.sample(inputs, 5, seed=2, sequence_keys=keys).numpy()
    size = np.abs(whole).max()
    for chunk in (1, 2, 5, 11, 35, 100):
        drawn = model.sample(inputs, 5, seed=2, sequence_keys=keys, chunk_size=chunk)
        np.testing.assert_allclose(drawn, whole, atol=1e-5 * size)
    for b in range(7):
        one = {name: value[b : b + 1] for name, value in inputs.items()}
        alone = model.sample(one, 5, seed=2, sequence_keys=keys[b : b + 1])
        np.testing.assert_allclose(alone[:, 0], whole[:, b], atol=1e-5 * size)
    few = model.sample(inputs, 2, seed=2, sequence_keys=keys)
    np.testing.assert_allclose(few, whole[:2], atol=1e-5 * size)
    empty = {name: value[:0] for name, value in inputs.items()}
    assert model.sample(empty, 5, seed=2).shape == (5, 0, 4, 1)


def test_memory_has_a_bound():
    model = Taylorformer(**{**ONE_LAYER, "num_layers": 4, "num_heads": 6, "head_dim": 11})
    model.build({"x_context": (None, None, 1), "y_context": (None, None, 1), "x_target": (1, 1, 1)})
    sampler = CachedSampler(model, TaylorformerLoop)
    long = {f"x_{part}": tf.zeros([2, 720, 1]) for part in ("context", "target")}
    rows = int(sampler.at_once(long)[0])
    # Keys and values of four layers, 66 numbers each, for 720 targets.
    assert 50 <= rows and rows * 4 * 2 * 4 * 66 * 720 <= 2**28
    assert int(sampler.at_once({name: tf.zeros([1, 10**6, 1]) for name in long})[0]) == 1


def test_mean_and_spread_are_those_of_known_conditionals():
    """All weights of the head are 0: each target is its nearest seen point, plus known noise."""
    model = Taylorformer(**ONE_LAYER, min_scale=0.25)
    inputs, _ = conformance.points(num_context=3, num_target=4, batch_size=1)
    inputs["x_context"] = np.array([[[-1.0], [-0.9], [-0.8]]])
    inputs["x_target"] = np.array([[[0.0], [0.1], [0.3], [0.6]]])
    model(model.prepare(inputs))
    network = model.local_taylor.network
    for dense, bias in ((network.mean_dense, 0.0), (network.scale_dense, -20.0)):
        dense.kernel.assign(keras.ops.zeros_like(dense.kernel))
        dense.bias.assign(keras.ops.full_like(dense.bias, bias))
    drawn = model.sample(inputs, 4000, seed=1).numpy()[:, 0, :, 0]
    # A random walk from the last context point: the variance of target i is (i + 1) 0.25^2.
    error = 0.25 * np.sqrt(np.arange(1, 5) / 4000)
    assert np.all(np.abs(drawn.mean(0) - inputs["y_context"][0, 2, 0]) < 4 * error)
    np.testing.assert_allclose(drawn.std(0), 0.25 * np.sqrt(np.arange(1, 5)), rtol=0.05)
    steps = np.diff(drawn, axis=1)
    np.testing.assert_allclose(np.corrcoef(steps.T), np.eye(3), atol=0.06)


def test_two_calls_do_not_share_memory():
    """The caches are written in place: what one call writes, another must not see."""
    model = conformance.MODELS[0].make(num_layers=1)
    inputs, _ = conformance.points(num_context=5, num_target=4)
    batch = model.prepare(inputs)
    model(batch)
    draw = tf.function(TaylorformerLoop(model).draw, autograph=False)
    order = tf.tile(tf.range(4)[tf.newaxis], [3, 1])
    numbers = tf.range(2, dtype=tf.int64)
    first = draw(batch, order, numbers, KEYS, SEED)
    kept = first.numpy().copy()
    draw(batch, order, numbers, KEYS, SEED + 1)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(draw(batch, order, numbers, KEYS, SEED), kept)


def test_under_a_tape_samples_are_drawn_without_gradient():
    model = conformance.MODELS[0].make(num_layers=1)
    inputs, _ = conformance.points(num_context=3, num_target=2)
    with tf.GradientTape() as tape:
        drawn = model.sample(inputs, 2, seed=0)
    assert tape.gradient(drawn, model.trainable_variables[0]) is None
    np.testing.assert_array_equal(drawn, model.sample(inputs, 2, seed=0))


@pytest.mark.slow
def test_compiling_anew_forgets_old_graphs():
    model = conformance.MODELS[0].make(num_layers=1)
    inputs, _ = conformance.points(num_context=3, num_target=2)
    before = model.sample(inputs, 2, seed=0).numpy()
    dense = model.local_taylor.network.mean_dense
    dense.enable_lora(1)
    dense.lora_kernel_b.assign(np.ones(dense.lora_kernel_b.shape))
    model.compile()
    after = model.sample(inputs, 2, seed=0).numpy()
    assert np.abs(after - before).max() > 1e-3
    assert_close(*both(model, inputs))


@pytest.mark.slow
def test_one_graph_draws_many_sequences_some_at_once(monkeypatch):
    model = conformance.MODELS[0].make(num_layers=1, predict_samples=5)
    inputs, _ = conformance.points(num_context=5, num_target=4, batch_size=7)
    wanted = model.predict(inputs, verbose=0)
    for sequences, rows in ((2, 4), (3, 100), (100, 1)):
        at_once = tuple(tf.constant(number, tf.int64) for number in (rows, sequences))
        monkeypatch.setattr(Sampler, "at_once", lambda *_, at_once=at_once: at_once)
        chunked = conformance.MODELS[0].make(num_layers=1, predict_samples=5)
        for name, values in chunked.predict(inputs, verbose=0).items():
            np.testing.assert_allclose(values, wanted[name], atol=1e-4 * np.abs(wanted[name]).max())
