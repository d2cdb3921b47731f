"""Dropout by a counter: rate, independence, and the same mask in every kind of graph."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.layers.dropout import Dropout, keep_mask

SIGMAS = 4.0
FIRST = "000111010000010110110010"


def _masks(seeds, size):
    """Draws one mask of `size` numbers for each `[2]` seed."""
    draw = tf.function(lambda seed: keep_mask(seed, tf.constant([size]), 2**15), autograph=False)
    return np.stack([draw(tf.constant(seed, tf.int64)).numpy() for seed in seeds])


def _correlation(first, second):
    """Returns the correlation of masks of rate 1/2 in units of its standard deviation."""
    signs = (2.0 * first - 1) * (2.0 * second - 1)
    return signs.sum() / np.sqrt(signs.size)


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.1, 0.25, 0.5, 0.9])
def test_the_share_that_is_dropped_is_the_rounded_rate(rate):
    size, steps = 2**20, round(rate * 2**16)
    mask = keep_mask(tf.constant([3, 7], tf.int64), tf.constant([size]), steps).numpy()
    share = steps / 2**16
    assert abs(mask.mean() - (1 - share)) < SIGMAS * np.sqrt(share * (1 - share) / size)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.7])
def test_means_are_kept_exactly(rate):
    outputs = Dropout(rate, seed=1)(tf.ones([64, 64]), training=True).numpy()
    kept = (2**16 - round(rate * 2**16)) / 2**16
    np.testing.assert_allclose(np.unique(outputs), [0, 1 / kept], rtol=1e-6)


def test_all_16_bits_are_uniform():
    size, bins = 2**18, 64
    seed = tf.constant([5, 2], tf.int64)
    at_least = [
        keep_mask(seed, tf.constant([size]), 2**16 // bins * step).numpy().sum()
        for step in range(bins)
    ]
    counts = -np.diff([*at_least, 0])
    chi_square = ((counts - size / bins) ** 2 / (size / bins)).sum()
    degrees = bins - 1
    assert abs(chi_square - degrees) < SIGMAS * np.sqrt(2 * degrees)


def test_runs_of_numbers_are_uniform():
    mask = _masks([[0, 0]], 2**19)[0].reshape(-1, 8)
    counts = np.bincount(mask @ (1 << np.arange(8)), minlength=256)
    chi_square = ((counts - len(mask) / 256) ** 2 / (len(mask) / 256)).sum()
    assert abs(chi_square - 255) < SIGMAS * np.sqrt(2 * 255)


def test_no_correlation_at_any_lag_or_between_rows_and_columns():
    mask = _masks([[11, 4]], 2**18)[0]
    lags = [*range(1, 70), 96, 128, 192, 256, 1024, 4096, 2**16, 2**17]
    values = np.array([_correlation(mask[:-lag], mask[lag:]) for lag in lags])
    assert np.abs(values).max() < SIGMAS
    assert abs((values**2).mean() - 1) < SIGMAS * np.sqrt(2 / len(lags))
    for table in (mask.reshape(-1, 256), mask.reshape(-1, 256).T):
        signs = 2.0 * table - 1
        sums = signs.sum(axis=0) / np.sqrt(len(signs))
        assert abs((sums**2).mean() - 1) < SIGMAS * np.sqrt(2 / len(sums))


@pytest.mark.parametrize(
    "seeds",
    [
        [[0, step] for step in range(40)],
        [[seed, 0] for seed in range(40)],
        [[2**bit, 0] for bit in range(62)],
        [[0, 2**bit] for bit in range(62)],
        [[7 * step, step] for step in range(40)],
    ],
    ids=["steps", "seeds", "bits of a seed", "bits of a step", "both"],
)
def test_masks_of_different_steps_and_seeds_are_independent(seeds):
    signs = 2.0 * _masks(seeds, 4096) - 1
    correlations = signs @ signs.T / np.sqrt(signs.shape[1])
    pairs = correlations[np.triu_indices(len(seeds), 1)]
    assert np.abs(pairs).max() < SIGMAS + 1  # of up to 1891 pairs
    assert abs((pairs**2).mean() - 1) < SIGMAS * np.sqrt(2 / len(pairs))
    # Nor is one the other, moved by some numbers.
    spectra = np.fft.rfft(signs[:8])
    crossed = np.fft.irfft(spectra[1:] * spectra[:1].conj()) / np.sqrt(signs.shape[1])
    assert np.abs(crossed).max() < SIGMAS + 2  # of 7 x 4096 shifts


def test_the_mask_is_the_same_in_eager_plain_and_xla_graphs():
    layers = [Dropout(0.3, seed=5) for _ in range(3)]
    x = tf.ones([3, 7, 5])
    spec = [tf.TensorSpec([None, None, 5])]
    functions = [lambda v, layer=layer: layer(v, training=True) for layer in layers]
    calls = [
        functions[0],
        tf.function(functions[1], input_signature=spec, autograph=False),
        tf.function(functions[2], input_signature=spec, autograph=False, jit_compile=True),
    ]
    for _ in range(3):
        eager, plain, xla = (call(x).numpy() for call in calls)
        np.testing.assert_array_equal(eager, plain)
        np.testing.assert_array_equal(eager, xla)
    assert len({tuple(layer.seed_generator.state.numpy()) for layer in layers}) == 1


def test_the_first_numbers_stay_what_they_are():
    mask = keep_mask(tf.constant([1, 2], tf.int64), tf.constant([24]), 2**15)
    assert "".join(str(int(kept)) for kept in mask) == FIRST


def test_the_gradient_is_that_of_the_mask_and_can_be_taken_twice():
    layer = Dropout(0.5, seed=0)
    x = tf.Variable(np.linspace(1, 2, 64, dtype="float32"))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            dropped = layer(x, training=True)
            loss = tf.reduce_sum(dropped**2)
        gradient = tape.gradient(loss, x)
        total = tf.reduce_sum(gradient)
    multiplier = dropped.numpy() / x.numpy()
    np.testing.assert_allclose(gradient, 2 * dropped * multiplier, rtol=1e-6)
    np.testing.assert_allclose(outer.gradient(total, x), 2 * multiplier**2, rtol=1e-6)


def test_its_state_is_that_of_the_dropout_of_keras():
    ours, theirs = Dropout(0.1, seed=3, name="a"), keras.layers.Dropout(0.1, seed=3, name="a")
    for training in (True, False, True):
        ours(tf.ones([2, 3]), training=training)
        theirs(tf.ones([2, 3]), training=training)
        (state,), (expected,) = ours.variables, theirs.variables
        np.testing.assert_array_equal(state, expected)
        assert state.name == expected.name == "seed_generator_state"
        assert state.dtype == expected.dtype
    assert not Dropout(0.0, seed=3).variables


@pytest.mark.parametrize("arguments", [{}, {"training": False}])
def test_outside_of_training_nothing_happens(arguments):
    layer = Dropout(0.5, seed=0)
    x = tf.random.stateless_normal([4, 5], seed=(1, 2))
    np.testing.assert_array_equal(layer(x, **arguments), x)
    np.testing.assert_array_equal(layer.seed_generator.state, [0, 0])
    np.testing.assert_array_equal(Dropout(0)(x, training=True), x)


@pytest.mark.parametrize("rate", [1e-7, 1 - 1e-9])
def test_the_smallest_and_the_largest_rate(rate):
    outputs = Dropout(rate, seed=0)(tf.ones([100]), training=True)
    assert np.isfinite(outputs).all()
    assert (outputs.numpy() == 1).all() == (rate < 0.5)


@pytest.mark.parametrize("shape", [[], [1], [3], [0, 4], [2, 3, 5, 7]])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_shapes_and_dtypes_are_kept(shape, dtype):
    outputs = Dropout(0.5, seed=0, dtype=dtype)(tf.ones(shape, dtype), training=True)
    assert outputs.shape == shape and outputs.dtype == dtype


def test_config_and_seeds():
    layer = Dropout(np.float32(0.25), seed=np.int64(3))
    config = layer.get_config()
    assert "noise_shape" not in config
    again = Dropout.from_config(config)
    x = tf.ones([50, 4])
    np.testing.assert_array_equal(again(x, training=True), layer(x, training=True))
    first, second = (Dropout(0.5, seed=None)(x, training=True).numpy() for _ in range(2))
    assert (first != second).any()


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_outside_its_range(rate):
    with pytest.raises(ValueError, match="`rate` must be"):
        Dropout(rate)
