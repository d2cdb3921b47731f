"""Noise by key, the plain sampler, and `predict`."""

import conformance
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.sampling.counter_noise import normal_noise, philox
from taylorformer.model.sampling.plain import PlainSampler, sampling_order
from taylorformer.model.taylorformer import Taylorformer


def _model(**settings):
    return conformance.MODELS[0].make(**settings)


@pytest.mark.parametrize(
    "counter, key, expected",
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF,) * 4,
            (0xFFFFFFFF,) * 2,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
    ],
)
def test_philox_gives_the_published_numbers(counter, key, expected):
    words = philox(
        tuple(tf.constant(word, tf.int64) for word in counter),
        tuple(tf.constant(word, tf.int64) for word in key),
    )
    assert [int(word) for word in words] == list(expected)


def test_noise_is_standard_normal_and_differs_by_all_its_arguments():
    seed, key = tf.constant(5, tf.int64), tf.constant([[[0]], [[1]]], tf.int64)
    samples, targets = tf.range(200)[:, None], tf.range(50)[None]
    noise = normal_noise(seed, key, samples, targets, 5).numpy()
    assert noise.shape == (2, 200, 50, 5)
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 1) < 0.01
    assert abs(np.mean(noise**3)) < 0.03
    assert abs(np.mean(noise**4) - 3) < 0.1
    assert len(np.unique(noise)) > 0.99 * noise.size
    columns = noise.reshape(-1, 5)
    np.testing.assert_allclose(np.corrcoef(columns.T), np.eye(5), atol=0.03)
    part = normal_noise(seed, key[1:], samples[7:9], targets[:, 3:4], 2)
    np.testing.assert_allclose(part[0], noise[1, 7:9, 3:4, :2], atol=1e-6)
    assert np.all(normal_noise(seed + 1, key, samples, targets, 5) != noise)


def test_noise_of_every_dimension_and_seed_is_its_own():
    zero = tf.zeros([1], tf.int64)
    seeds = [tf.constant(seed, tf.int64) for seed in (0, 1, 2**32, -1)]
    noise = np.stack([normal_noise(seed, zero, zero, zero, 1020)[0] for seed in seeds])
    assert len(np.unique(noise)) > 0.999 * noise.size
    with pytest.raises(ValueError, match="D_y must be from 1 to 1020 to draw"):
        normal_noise(seeds[0], zero, zero, zero, 1021)


def test_noise_is_the_same_with_xla():
    arguments = (
        tf.constant(-3, tf.int64),
        tf.constant([[2**40 + 1], [-9]], tf.int64),
        tf.constant([[4]], tf.int64),
        tf.range(20, dtype=tf.int64)[None],
    )
    plain = normal_noise(*arguments, 3)
    compiled = tf.function(lambda *a: normal_noise(*a, 3), jit_compile=True)(*arguments)
    np.testing.assert_allclose(compiled, plain, atol=1e-5)


_ORDERS = ("given", "random", "nearest")
_PAIRS = [
    *((conformance.MODELS[0], order) for order in _ORDERS[1:]),
    *(
        (case, _ORDERS[number % 3])
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
    places = sampling_order(
        order, batch, tf.constant(3, tf.int64), tf.constant(keys), model.distance_dims
    ).numpy()
    for s, b in ((0, 0), (1, 1)):
        y = np.zeros((1, 4, case.y_dims), "float32")
        noise = normal_noise(
            tf.constant(3), tf.constant(keys[b]), tf.constant(s), tf.range(4), case.y_dims
        ).numpy()
        own = {key: value[b : b + 1] for key, value in inputs.items()}
        for step, place in enumerate(places[b]):
            seen = places[b][: step + 1]
            outputs = model(
                {
                    **own,
                    "x_target": own["x_target"][:, seen],
                    "target_mask": own["target_mask"][:, seen],
                    "y_target": y[:, seen],
                }
            )
            if own["target_mask"][0, place]:
                y[0, place] = outputs["mean"][0, -1] + outputs["scale"][0, -1] * noise[place]
        size = max(1.0, np.abs(y).max())
        np.testing.assert_allclose(samples[s, b], y[0], atol=2e-5 * size)


def test_orders():
    x_context = np.array([[[0.0], [1.0]]], "float32")
    x_target = np.array([[[5.0], [0.9], [0.2], [-1.0]]], "float32")
    inputs = {"x_context": x_context, "y_context": x_context, "x_target": x_target}
    zero = tf.constant(0, tf.int64), tf.zeros([1], tf.int64)
    batch = prepare_batch({**inputs, "target_mask": [[True, False, True, True]]})
    assert sampling_order("given", batch, *zero).numpy().tolist() == [[0, 2, 3, 1]]
    assert sampling_order("nearest", batch, *zero).numpy().tolist() == [[2, 3, 0, 1]]
    batch = prepare_batch({**inputs, "context_mask": [[False, False]]})
    assert sampling_order("nearest", batch, *zero).numpy().tolist() == [[0, 1, 2, 3]]
    wide = {**batch, "x_target": tf.zeros([4, 30, 1]), "target_mask": tf.ones([4, 30], tf.bool)}
    orders = sampling_order("random", wide, zero[0], tf.constant([1, 2, 3, 3], tf.int64)).numpy()
    assert np.all(np.sort(orders, axis=1) == np.arange(30))
    assert not np.array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[2], orders[3])


def test_no_true_target_value_is_read():
    model = _model()
    inputs, y_target = conformance.points()
    plain = model.sample(inputs, 2, seed=0)
    for garbage in (y_target, np.full_like(y_target, np.nan)):
        np.testing.assert_array_equal(
            model.sample({**inputs, "y_target": garbage}, 2, seed=0), plain
        )


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
    rows = PlainSampler.rows_at_once(prepare_batch(inputs))
    assert rows * 4 * 9 <= 2**24 < (rows + 1) * 4 * 9
    long = {key: tf.zeros([1, 3000, 1]) for key in ("x_context", "y_context", "x_target")}
    assert PlainSampler.rows_at_once(prepare_batch(long)) == 1


@pytest.mark.slow
def test_predict_in_chunks_and_with_xla_gives_the_same(monkeypatch):
    inputs, _ = conformance.points(batch_size=2)
    plain = _model(predict_samples=5, num_layers=1)
    expected = plain.predict(inputs, verbose=0)
    compiled = _model(predict_samples=5, num_layers=1)
    compiled.compile(jit_compile=True)
    outputs = compiled.predict(inputs, verbose=0)
    np.testing.assert_allclose(outputs["mean"], expected["mean"], atol=1e-3)
    monkeypatch.setattr("taylorformer.model.sampling.plain._MOST_SCORES", 4 * 4 * 9)
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
