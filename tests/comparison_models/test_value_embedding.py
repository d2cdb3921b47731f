"""The embedding that Autoformer and Informer share, against sums written by hand."""

import numpy as np
import pytest

from taylorformer.comparison_models.value_embedding import ValueEmbedding


def random_rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize("num_features", [0, 3])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_it_is_a_circular_convolution_with_features_and_positions(length, num_features, positional):
    layer = ValueEmbedding(8, positional=positional, seed=1)
    values = random_rows(2, length, 2)
    features = random_rows(2, length, num_features, seed=1)
    rows = layer(values, features).numpy()
    assert len(layer.weights) == 1 + (num_features > 0)
    kernel = layer.value_convolution.dense.kernel.numpy().astype("float64").reshape(3, 2, 8)
    for b in range(2):
        for t in range(length):
            expected = np.zeros(8)
            for step in range(3):
                expected += values[b, (t + step - 1) % length] @ kernel[step]
            if num_features:
                expected += features[b, t] @ layer.feature_dense.kernel.numpy()
            if positional:
                for i in range(4):
                    angle = t / 10_000 ** (2 * i / 8)
                    expected[[i, 4 + i]] += np.sin(angle), np.cos(angle)
            np.testing.assert_allclose(rows[b, t], expected, rtol=1e-5, atol=1e-5)


def test_first_weights_are_within_the_documented_limits():
    layer = ValueEmbedding(64, seed=1)
    layer(random_rows(1, 4, 7), random_rows(1, 4, 6))
    values, features = layer.value_convolution.dense.kernel, layer.feature_dense.kernel
    # A uniform distribution with variance v reaches the root of 3 v.
    assert 0.95 < np.max(np.abs(values)) / np.sqrt(3 * 2 / 21) <= 1
    assert 0.95 < np.max(np.abs(features)) / np.sqrt(1 / 6) <= 1


def test_positions_need_an_even_width():
    with pytest.raises(ValueError, match=r"`width` must be even\. Received: width=7"):
        ValueEmbedding(7, positional=True)
