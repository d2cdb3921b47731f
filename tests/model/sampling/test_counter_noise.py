"""Random numbers as a function of what they are for."""

import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.sampling.counter_noise import normal_noise, philox


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


@pytest.mark.slow
def test_noise_of_every_dimension_and_seed_is_its_own():
    zero = tf.zeros([1], tf.int64)
    seeds = [tf.constant(seed, tf.int64) for seed in (0, 1, 2**32, -1)]
    noise = np.stack([normal_noise(seed, zero, zero, zero, 1020)[0] for seed in seeds])
    assert len(np.unique(noise)) > 0.999 * noise.size
    with pytest.raises(ValueError, match="D_y must be from 1 to 1020 to draw"):
        normal_noise(seeds[0], zero, zero, zero, 1021)


@pytest.mark.slow
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
