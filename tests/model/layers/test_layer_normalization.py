"""Layer normalisation against that of Keras: outputs, first and second gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.layers.layer_normalization import LayerNormalization

FEATURES = 5


def _pair(rng, epsilon=1e-3, dtype="float32"):
    """Makes a layer and that of Keras with the same weights."""
    layers = (
        LayerNormalization(epsilon, dtype=dtype),
        keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype),
    )
    weights = [rng.normal(size=FEATURES) for _ in range(2)]
    for layer in layers:
        layer.build((None, None, FEATURES))
        layer.set_weights(weights)
    return layers


def _first(layer, values, given):
    """Returns the output and the gradients of values, gamma and beta."""
    inputs = [values, *(weight.value for weight in layer.trainable_weights)]
    with tf.GradientTape() as tape:
        tape.watch(values)
        output = layer(values)
    return [output, *tape.gradient(output, inputs, output_gradients=given)]


def _second(layer, values, given):
    """Returns the gradients of a sum over all first gradients."""
    inputs = [values, *(weight.value for weight in layer.trainable_weights), given]
    with tf.GradientTape() as tape:
        tape.watch([values, given])
        total = tf.add_n([tf.reduce_sum(part**3) for part in _first(layer, values, given)[1:]])
    gradients = tape.gradient(total, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return [total, *gradients]


def _assert_near(ours, theirs, tolerance=2e-5):
    for one, other in zip(ours, theirs, strict=True):
        scale = max(float(tf.reduce_max(tf.abs(other))), 1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


class _Plain(LayerNormalization):
    """The formula, differentiated by TensorFlow.

    Not that of Keras, whose second gradients lack a part: in its variance the mean is a constant.
    """

    def call(self, inputs):
        centered = inputs - tf.reduce_mean(inputs, axis=-1, keepdims=True)
        variance = tf.reduce_mean(centered**2, axis=-1, keepdims=True)
        return centered / tf.sqrt(variance + self.epsilon) * self.gamma + self.beta


SHAPES = [(2, 3), (4,), (1, 1), (2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_output_and_gradients_are_those_of_keras(shape, rng):
    values, given = (
        tf.constant(rng.normal(size=(*shape, FEATURES)).astype("float32")) for _ in range(2)
    )
    ours, theirs = _pair(rng)
    _assert_near(_first(ours, values, given), _first(theirs, values, given))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [_first, _second])
def test_gradients_are_those_of_the_formula(shape, order, rng):
    values, given = (tf.constant(rng.normal(size=(*shape, FEATURES))) for _ in range(2))
    ours = _pair(rng, dtype="float64")[0]
    plain = _Plain.from_config(ours.get_config())
    plain.build(values.shape)
    plain.set_weights(ours.get_weights())
    _assert_near(order(ours, values, given), order(plain, values, given), 1e-10)


@pytest.mark.parametrize("order", [_first, _second])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_returns_what_there_is_without(order, jit_compile, rng):
    values, given = (
        tf.constant(rng.normal(size=(2, 3, FEATURES)).astype("float32")) for _ in range(2)
    )
    layer = _pair(rng)[0]
    in_graph = tf.function(
        lambda values, given: order(layer, values, given),
        autograph=False,
        jit_compile=jit_compile,
        input_signature=[tf.TensorSpec([2, 3, FEATURES])] * 2
        if jit_compile
        else [tf.TensorSpec([None, None, FEATURES])] * 2,
    )
    _assert_near(in_graph(values, given), order(layer, values, given))


def test_rows_that_are_constant_have_finite_gradients(rng):
    values = tf.ones([2, 3, FEATURES]) * 7
    output, *gradients = _first(_pair(rng)[0], values, tf.ones_like(values))
    assert all(np.isfinite(part).all() for part in (output, *gradients))


def test_no_rows_have_gradients_of_zero(rng):
    values = tf.zeros([2, 0, FEATURES])
    output, _, *of_weights = _first(_pair(rng)[0], values, values)
    assert output.shape == (2, 0, FEATURES)
    assert all((part.numpy() == 0).all() for part in of_weights)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_normalised_in_float32(policy, rng):
    values = tf.constant(rng.normal(size=(2, 3, FEATURES)) * 300, tf.float16)
    ours, theirs = _pair(rng, dtype=policy)
    output = ours(values)
    assert output.dtype == theirs(values).dtype == ours.compute_dtype
    np.testing.assert_array_equal(tf.cast(output, tf.float32), tf.cast(theirs(values), tf.float32))


@pytest.mark.parametrize("epsilon", [-1e-3, "small"])
def test_epsilon_must_be_a_number_of_at_least_0(epsilon):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        LayerNormalization(epsilon)
