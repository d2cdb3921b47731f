"""Distilling: half the length, by the formulas of the paper."""

import informer_by_loops
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.comparison_models.distilling import Distilling


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_it_halves_the_length_by_the_formulas(length, training):
    layer = Distilling(4, seed=0)
    rows = tf.random.stateless_normal([3, length, 4], seed=(length, 2))
    layer.build(rows.shape)
    mean, variance = np.array([0.1, -0.2, 0.3, 0.0]), np.array([0.5, 2.0, 1.0, 0.3])
    layer.norm.moving_mean.assign(mean)
    layer.norm.moving_variance.assign(variance)
    layer.norm.gamma.assign([1.5, 0.5, -1.0, 1.0])
    layer.norm.beta.assign([0.1, 0.0, -0.5, 0.2])
    layer.convolution.dense.bias.assign([0.1, 0.2, 0.3, -0.4])
    statistics = None if training else (mean, variance)
    expected = informer_by_loops.distilling(layer, np.float64(rows), statistics)
    outputs = layer(rows, training=training)
    assert outputs.shape == (3, (length + 1) // 2, 4)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4 if training else 1e-5, atol=1e-5)
    # Moved in training only.
    assert np.any(layer.norm.moving_mean.numpy() != np.float32(mean)) == training


def test_a_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"`rows` must have the shape \[B, N, width\]"):
        Distilling(4)(tf.ones([1, 3, 5]))
