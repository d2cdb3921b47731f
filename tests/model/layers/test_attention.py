"""Attention, mask and towers."""

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.local_taylor import LocalTaylor
from taylorformer.model.layers.mask import context_visibility, target_visibility
from taylorformer.model.layers.mha_x import MHAX
from taylorformer.model.layers.mha_x_net import MHAXNet


def _attention():
    return MultiHeadAttention(num_heads=2, head_dim=3, width=5, seed=0)


def test_attention_equals_keras(rng):
    query, value = (rng.normal(size=(2, n, 4)).astype("float32") for n in (6, 7))
    visible = rng.random((2, 6, 7)) < 0.7
    visible[..., 0] = True
    ours, theirs = _attention(), keras.layers.MultiHeadAttention(2, 3, output_shape=5)
    ours(query, value, value)
    theirs(query, value, key=value, attention_mask=visible)
    shapes = [weight.shape for weight in theirs.weights]
    theirs.set_weights(
        [w.reshape(shape) for w, shape in zip(ours.get_weights(), shapes, strict=True)]
    )
    np.testing.assert_allclose(
        ours(query, value, value, visible=visible),
        theirs(query, value, key=value, attention_mask=visible),
        atol=1e-5,
    )


@pytest.mark.parametrize("num_context", [0, 1, 4])
def test_two_products_equal_one_with_the_whole_mask(num_context, rng):
    n = num_context + 3
    rows = rng.normal(size=(2, n, 4)).astype("float32")
    context_mask = tf.constant(rng.random((2, num_context)) < 0.6)
    target_seen = tf.constant(rng.random((2, 3)) < 0.6)
    visible = target_visibility(context_mask, target_seen).numpy()
    whole = np.zeros((2, n, n), bool)
    whole[:, :num_context, :num_context] = context_mask[:, None]
    whole[:, num_context:] = visible
    for i in range(3):
        seen = [*range(num_context), *range(num_context, num_context + i)]
        hidden = [j for j in range(n) if j not in seen]
        assert not np.any(visible[:, i, hidden])
    layer = _attention()
    split = layer(
        rows, rows, rows, visible=visible, context_visible=context_visibility(context_mask)
    )
    np.testing.assert_allclose(split, layer(rows, rows, rows, visible=whole), atol=1e-6)


def test_a_row_that_sees_nothing_is_zero_before_the_output_projection(rng):
    rows = rng.normal(size=(2, 4, 4)).astype("float32")
    layer = _attention()
    visible = np.ones((2, 4, 4), bool)
    visible[:, 1] = False
    outputs = layer(rows, rows, rows, visible=visible)
    bias = layer.output_dense.bias
    bias.assign(np.arange(5.0))
    outputs = layer(rows, rows, rows, visible=visible).numpy()
    np.testing.assert_array_equal(outputs[:, 1], np.arange(5.0)[None].repeat(2, 0))
    assert np.all(outputs[:, 0] != np.arange(5.0))


@pytest.mark.parametrize("huge", [1e6, 1e30])
def test_hidden_rows_change_nothing(huge, rng):
    rows = rng.normal(size=(2, 4, 4)).astype("float32")
    spoiled = rows.copy()
    spoiled[:, 2] = huge
    visible = np.ones((2, 4, 4), bool)
    visible[..., 2] = False
    layer = _attention()
    expected = layer(rows, rows, rows, visible=visible)
    outcome = layer(rows, spoiled, spoiled, visible=visible)
    np.testing.assert_array_equal(outcome, expected)


def test_the_output_of_mha_x_is_linear_in_y(rng):
    """Its weights see only x: the attention of the last layer is a fixed weighting of Y."""
    tower = MHAX(**conformance.TINY, seed=0)
    x_fe = rng.normal(size=(2, 7, 6)).astype("float32")
    mask = tf.ones([2, 4], tf.bool), tf.ones([2, 3], tf.bool)
    visible = {"visible": target_visibility(*mask), "context_visible": context_visibility(mask[0])}
    attended = []
    block = tower.blocks[-1]
    inner = block.attention

    def spy(*arguments, **named):
        attended.append(inner(*arguments, **named))
        return attended[-1]

    tower(x_fe, np.zeros((2, 7, 1), "float32"), **visible)
    block._tracker.unlock()
    block.attention = spy
    ys = rng.normal(size=(3, 2, 7, 1)).astype("float32")
    ys[2] = 2 * ys[0] - 3 * ys[1]
    for y in (np.zeros_like(ys[0]), *ys):
        tower(x_fe, y, **visible)
    at_zero, *outputs = [value.numpy() for value in attended]
    first, second, mixed = (value - at_zero for value in outputs)
    np.testing.assert_allclose(mixed, 2 * first - 3 * second, atol=1e-5)
    assert np.abs(first).max() > 1e-3


def test_the_last_layer_makes_target_rows_only():
    network = MHAXNet(**conformance.TINY, seed=0)
    case = next(case for case in conformance.LAYERS if case.name == "mha_x_net")
    (features,), _ = case.arguments(6, 2)
    rows = []
    for tower in (network.mha_x, network.mha_xy):
        finish = tower.blocks[-1].finish
        tower.blocks[-1].finish = lambda attended, *a, finish=finish, **k: (
            rows.append(attended.shape[1]) or finish(attended, *a, **k)
        )
    network(features)
    assert rows == [2, 2]


def test_local_taylor_wraps_any_network():
    @keras.saving.register_keras_serializable("test_attention")
    class Constant(keras.layers.Layer):
        def build(self, input_shape):
            self.level = self.add_weight(shape=(input_shape["y"][-1],), initializer="ones")

        def call(self, features):
            return {"mean": tf.zeros_like(features["taylor_terms"]) + self.level, "extra": 7}

    class Ignoring(Constant):
        def call(self, features, training=False):
            return super().call(features)

    inputs, y_target = conformance.points()
    layer = LocalTaylor(Ignoring())
    outputs = layer({**inputs, "y_target": y_target})
    terms = layer.representation_extractor({**inputs, "y_target": y_target})["taylor_terms"]
    np.testing.assert_allclose(outputs["mean"], terms + 1)
    assert outputs["extra"] == 7


def test_a_mask_without_a_batch_axis_is_refused(rng):
    rows = rng.normal(size=(2, 4, 4)).astype("float32")
    with pytest.raises(ValueError, match=r"`visible` must have three axes, \[B, R, N\]"):
        _attention()(rows, rows, rows, visible=np.ones((4, 4), bool))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: MultiHeadAttention(0, 3, 4), "`num_heads` must be at least 1. Received"),
        (lambda: MultiHeadAttention(2, 3.0, 4), "`head_dim` must be an integer. Received"),
        (lambda: AttentionBlock(2, 3, 4, dropout=1.0), "`dropout` must be finite"),
        (lambda: MHAXNet(2, 3, 4, 1, towers=("y",)), "`towers` must name one or both"),
        (lambda: MHAXNet(2, 3, 4, 1, towers=()), "`towers` must name one or both"),
        (lambda: MHAXNet(2, 3, 4, 0), "`num_layers` must be at least 1"),
        (lambda: LocalTaylor(None, taylor_order=3), "`taylor_order` must be one of"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_one_head_weighs_the_narrow_values_of_several_sequences(rng):
    # TensorFlow's product writes outside of its memory for a batch of [B, 1] and one of [1].
    layer = MultiHeadAttention(num_heads=1, head_dim=4, width=4, seed=0)
    x, y = rng.normal(size=(4, 7, 3)), rng.normal(size=(4, 7, 1))
    x, y = (tf.constant(values, tf.float32) for values in (x, y))
    expected = [layer(x[b : b + 1], x[b : b + 1], y[b : b + 1])[0] for b in range(4)]
    for _ in range(200):
        np.testing.assert_allclose(layer(x, x, y), expected, rtol=1e-5, atol=1e-6)
