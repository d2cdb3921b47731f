"""The plain sampler, `sample` and `predict`."""

import conformance
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.sampling import base
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.orders import ORDERS, sampling_order
from taylorformer.model.sampling.plain import PlainSampler
from taylorformer.model.taylorformer import Taylorformer


def _model(**settings):
    return conformance.MODELS[0].make(**settings)


_PAIRS = [
    *((conformance.MODELS[0], order) for order in ORDERS[1:]),
    *(
        (case, ORDERS[number % 3])
        for number, case in enumerate(conformance.MODELS)
        if case.autoregressive
    ),
]


@pytest.mark.parametrize(
    "case, order", _PAIRS, ids=[f"{case.name}-{order}" for case, order in _PAIRS]
)
def test_samples_are_those_drawn_by_hand(eagerly, case, order):
    model = case.make()
    inputs, _ = case.data(num_context=3, num_target=4, batch_size=2)
    inputs["context_mask"] = np.array([[True, True, False], [False] * 3])
    inputs["target_mask"] = np.array([[True, False, True, True], [True] * 4])
    keys = np.array([5, 9])
    samples = model.sample(inputs, 2, seed=3, sequence_keys=keys, order=order).numpy()
    assert np.all(samples[:, 0, 1] == 0)
    batch = prepare_batch(inputs)
    orders = sampling_order(
        order, batch, tf.constant(3, tf.int64), tf.constant(keys), model.distance_dims
    ).numpy()
    for s, b in ((0, 0), (1, 1)):
        y = np.zeros((1, 4, case.y_dims), "float32")
        noise = normal_noise(
            tf.constant(3), tf.constant(keys[b]), tf.constant(s), tf.range(4), case.y_dims
        ).numpy()
        alone = {key: value[b : b + 1] for key, value in inputs.items()}
        for step, target in enumerate(orders[b]):
            seen = orders[b][: step + 1]
            outputs = model(
                {
                    **alone,
                    "x_target": alone["x_target"][:, seen],
                    "target_mask": alone["target_mask"][:, seen],
                    "y_target": y[:, seen],
                }
            )
            if alone["target_mask"][0, target]:
                y[0, target] = outputs["mean"][0, -1] + outputs["scale"][0, -1] * noise[target]
        size = max(1.0, np.abs(y).max())
        np.testing.assert_allclose(samples[s, b], y[0], atol=2e-5 * size)


def test_no_true_target_value_is_read():
    model = _model()
    inputs, y_target = conformance.points()
    plain = model.sample(inputs, 2, seed=0)
    for garbage in (y_target, np.full_like(y_target, np.nan)):
        np.testing.assert_array_equal(
            model.sample({**inputs, "y_target": garbage}, 2, seed=0), plain
        )


@pytest.mark.slow
def test_predict_gives_the_moments_of_free_running_samples():
    model = _model(predict_samples=50)
    inputs, _ = conformance.points(batch_size=5)
    inputs["target_mask"] = np.ones((5, 4), bool)
    inputs["target_mask"][1, 2] = False
    outputs = model.predict(inputs, verbose=0)
    samples = model.sample(inputs, 50, seed=model.seed).numpy()
    observed = inputs["target_mask"]
    np.testing.assert_allclose(outputs["mean"], samples.mean(0), atol=1e-4)
    np.testing.assert_allclose(outputs["stddev"][observed], samples.std(0)[observed], atol=1e-4)
    assert outputs["stddev"][1, 2] == 1
    one_by_one = model.predict(inputs, batch_size=1, verbose=0)
    np.testing.assert_allclose(one_by_one["mean"], outputs["mean"], atol=1e-4)


@pytest.mark.slow
def test_predict_over_many_lengths_traces_at_most_three_times():
    class Counted(Taylorformer):
        traces = 0

        def predict_step(self, data):
            self.traces += 1
            return super().predict_step(data)

    settings = {**conformance.TINY, "num_layers": 1, "encoding_dim": 2}
    model = Counted(**settings, predict_samples=2, seed=0)
    for length in range(1, 21):
        inputs, _ = conformance.points(num_context=length, num_target=21 - length)
        outputs = model.predict(inputs, verbose=0)
        assert outputs["mean"].shape == (3, 21 - length, 1)
    assert model.traces <= 3


def test_memory_is_bounded_by_drawing_some_at_once():
    inputs, _ = conformance.points(num_context=5, num_target=4)
    model = _model()
    model(inputs)
    sampler = PlainSampler(model)
    rows, _ = sampler.at_once(prepare_batch(inputs))
    assert rows * 4 * 9 <= 2**24 < (rows + 1) * 4 * 9
    long = {key: tf.zeros([1, 3000, 1]) for key in ("x_context", "y_context", "x_target")}
    assert sampler.at_once(prepare_batch(long))[0] == 1


@pytest.mark.slow
def test_predict_in_chunks_and_with_xla_gives_the_same(monkeypatch):
    inputs, _ = conformance.points(batch_size=2)
    plain = _model(predict_samples=5, num_layers=1)
    expected = plain.predict(inputs, verbose=0)
    compiled = _model(predict_samples=5, num_layers=1)
    compiled.compile(jit_compile=True)
    outputs = compiled.predict(inputs, verbose=0)
    np.testing.assert_allclose(outputs["mean"], expected["mean"], atol=1e-3)
    # Attention scores of four samples, four times in float32.
    monkeypatch.setattr(base, "MOST_BYTES", 4 * 4 * 4 * 4 * 9)
    chunked = _model(predict_samples=5, num_layers=1).predict(inputs, verbose=0)
    np.testing.assert_allclose(chunked["mean"], expected["mean"], atol=1e-3)
    np.testing.assert_allclose(chunked["stddev"], expected["stddev"], atol=1e-3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_samples": 0, "seed": 0}, "`num_samples` must be at least 1. Received"),
        ({"num_samples": 2, "seed": 0.5}, "`seed` must be an integer"),
        ({"num_samples": 2, "seed": 0, "order": "x"}, "`order` must be one of 'given'"),
        ({"num_samples": 2, "seed": 0, "chunk_size": 0}, "`chunk_size` must be at least 1"),
        ({"num_samples": 2, "seed": 0, "sequence_keys": [1]}, r"the shape \[B\] = \[3\]"),
        ({"num_samples": 2, "seed": 0, "sequence_keys": [0.5] * 3}, "must be integers"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    inputs, _ = conformance.points()
    with pytest.raises((ValueError, TypeError), match=message):
        _model().sample(inputs, **arguments)


@pytest.mark.parametrize("name", ["taylorformer", "tnp"])
def test_samples_are_drawn_in_a_graph_of_any_size(name):
    case = next(case for case in conformance.MODELS if case.name == name)
    model = case.make()
    inputs, _ = case.data()
    model(inputs)

    spec = {key: tf.TensorSpec([None, None, value.shape[-1]]) for key, value in inputs.items()}

    @tf.function(input_signature=[spec, tf.TensorSpec([None], tf.int64)], autograph=False)
    def draw(inputs, keys):
        return model.sample(inputs, 3, 5, keys, order="random", chunk_size=4)

    for count in (3, 2):
        some = {key: tf.constant(value[:count]) for key, value in inputs.items()}
        keys = tf.range(count, dtype=tf.int64)
        expected = model.sample(some, 3, 5, keys, order="random")
        np.testing.assert_allclose(draw(some, keys), expected, rtol=1e-4, atol=1e-4)


class OwnCall(Taylorformer):
    """A user's model, which no loop over rows draws as `call` defines it."""

    def call(self, inputs, training=False):
        return super().call(inputs, training=training)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own call", "np", "anp"])
def test_xla_where_there_is_no_loop_for_it_is_warned_of(name):
    case = next((case for case in conformance.MODELS if case.name == name), conformance.MODELS[0])
    small = {"num_layers": 1, "encoding_dim": 4, "predict_samples": 1}
    model = case.make() if name == case.name else OwnCall(**{**conformance.TINY, **small})
    inputs, _ = case.data(num_target=2)
    wanted = model.sample(inputs, 2, seed=0)
    message = f"{type(model).__name__} has no loop over targets that XLA compiles"
    with pytest.warns(UserWarning, match=message) as caught:
        drawn = model.sample(inputs, 2, seed=0, jit_compile=True)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(drawn, wanted)
    # Graphs say nothing: what draws there does so with operations that XLA compiles.
    tf.function(lambda: model.sample(inputs, 2, seed=0, jit_compile=True), autograph=False)()
    model.compile(run_eagerly=True)
    model.jit_compile = True
    model.predict(inputs, verbose=0)
    model.sample(inputs, 2, seed=0)
