"""The attention core against plain TensorFlow: outputs, first and second gradients, in pieces."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.layers import attention_core
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.attention_core import attend

SHAPES = [(2, 3, 4, 5, 3), (1, 1, 1, 1, 2), (3, 2, 6, 2, 4)]
SIZES_OF_ONE = [None, (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]


def _plain(queries, keys, values, visible):
    scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
    if visible is None:
        return tf.matmul(tf.cast(tf.nn.softmax(scores), values.dtype), values)
    visible = visible[:, tf.newaxis]
    weights = tf.nn.softmax(tf.where(visible, scores, tf.float32.min / 2))
    attended = tf.matmul(tf.cast(weights, values.dtype), values)
    sees = tf.reduce_any(visible, axis=-1, keepdims=True)
    return tf.where(sees, attended, tf.zeros_like(attended))


def _case(rng, shape, ones=(0, 0, 0), dtype="float32", weights_batch=None, value_heads=None):
    b, h, r, n, d = shape
    w = weights_batch or b
    sizes = [(w, h, r, d), (w, h, n, d), (b, value_heads or h, n, d), (b, h, r, d)]
    tensors = [tf.constant(rng.normal(size=size), dtype) for size in sizes]
    if ones is None:
        return tensors, None
    size = [1 if one else full for one, full in zip(ones, (w, r, n), strict=True)]
    visible = rng.random(size) < 0.6
    visible[:, 0] = ones != (0, 0, 0)  # A row that sees nothing.
    return tensors, tf.constant(visible)


def _gradients(function, tensors, visible):
    *inputs, upstream = tensors
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        attended = function(*inputs, visible)
    return [attended, *tape.gradient(attended, inputs, output_gradients=upstream)]


def _assert_near(outcome, expected, tolerance=1e-5):
    for one, other in zip(outcome, expected, strict=True):
        one, other = (np.asarray(tf.cast(value, tf.float32)) for value in (one, other))
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1, abs(other).max()))


@pytest.fixture(params=["whole", "pieces"])
def kept(request, monkeypatch):
    if request.param == "pieces":
        monkeypatch.setattr(attention_core, "_LARGEST_KEPT", 0)
        monkeypatch.setattr(attention_core, "_PIECE", 60)
    return request.param


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ones", SIZES_OF_ONE)
def test_outputs_and_gradients_equal_those_of_tensorflow(shape, ones, rng, kept):
    case = _case(rng, shape, ones)
    _assert_near(_gradients(attend, *case), _gradients(_plain, *case))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype, rng, kept):
    case = _case(rng, SHAPES[0], dtype=dtype)
    eps = {"float16": 2**-10, "bfloat16": 2**-7}[dtype]
    outcome = _gradients(attend, *case)
    assert all(tensor.dtype == dtype for tensor in outcome)
    _assert_near(outcome, _gradients(_plain, *case), 4 * eps)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weights_batch, value_heads", [(3, 2), (1, 2), (3, 1), (1, 1)])
def test_one_graph_serves_every_batch(weights_batch, value_heads, compiled, rng, kept):
    """Also weights of one sequence for all, values of one head for all, and XLA."""
    spec = [tf.TensorSpec([None, heads, None, 4]) for heads in (2, 2, value_heads, 2)]
    function = tf.function(
        functools.partial(_gradients, attend),
        input_signature=[spec, tf.TensorSpec([None, None, None], tf.bool)],
        jit_compile=compiled,
        autograph=False,
    )
    for batch, weights in ((3, weights_batch), (1, 1)):
        case = _case(rng, (batch, 2, 6, 5, 4), (0, 0, 0), "float32", weights, value_heads)
        _assert_near(function(*case), _gradients(_plain, *case))


def test_rows_that_see_nothing_and_huge_hidden_numbers(rng, kept):
    (queries, keys, values, upstream), visible = _case(rng, SHAPES[0])
    visible = visible.numpy()
    visible[..., 2] = False
    column = tf.one_hot(2, 5)[:, tf.newaxis]
    spoiled = [queries, keys * (1 - column) + 1e6 * column, values * (1 - column) + 1e6 * column]
    expected = _gradients(attend, [queries, keys, values, upstream], visible)
    outcome = _gradients(attend, [*spoiled, upstream], visible)
    for one, other in zip(outcome, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    attended, of_queries, of_keys, of_values = outcome
    for tensor in (attended[:, :, 0], of_queries[:, :, 0], of_keys[:, :, 2], of_values[:, :, 2]):
        np.testing.assert_array_equal(tensor, tf.zeros_like(tensor))
    nothing = tf.zeros([2, 4, 5], tf.bool)
    for tensor in _gradients(attend, [*spoiled, upstream], nothing):
        np.testing.assert_array_equal(tensor, tf.zeros_like(tensor))


@pytest.mark.parametrize("weights_batch, value_heads", [(2, 3), (1, 3), (2, 1)])
def test_second_gradients(weights_batch, value_heads, rng, kept):
    tensors, visible = _case(rng, SHAPES[0], (0, 0, 0), "float32", weights_batch, value_heads)

    def twice(function):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            first = _gradients(function, tensors, visible)
            total = tf.add_n([tf.reduce_sum(tensor**3) for tensor in first])
        return tape.gradient(total, tensors)

    _assert_near(twice(attend), twice(_plain))


@pytest.mark.parametrize("features", [1, 3, 5])
@pytest.mark.parametrize("with_context", [False, True])
def test_one_query_for_all_values_equals_the_tiled_call(features, with_context, rng):
    """Values narrower than a head, 3 wide, are weighted before they are projected."""
    block = AttentionBlock(2, head_dim=3, width=4, project_skip=True, seed=0)
    query = tf.constant(rng.normal(size=(1, 6, 5)).astype("float32"))
    value = tf.constant(rng.normal(size=(3, 6, features)).astype("float32"))
    visible = rng.random((1, 6, 6)) < 0.6
    visible[:, 3] = False
    named = {"visible": tf.constant(visible)}
    if with_context:
        named = {"visible": visible[:, 2:], "context_visible": visible[:, :1, :2]}
    block(query, query, value, **named)
    for weight in block.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))

    def run(query, value, named):
        with tf.GradientTape() as tape:
            tape.watch([query, value])
            output = block(query, query, value, **named)
            upstream = np.arange(output.shape[1] * 4.0).reshape(-1, 4) / 24
            loss = tf.reduce_sum(output * upstream)
        sources = [query, value, *block.trainable_variables]
        of_query, *others = tape.gradient(loss, sources)
        return [output, tf.reduce_sum(of_query, axis=0), *others]

    tiled = {name: tf.repeat(mask, 3, axis=0) for name, mask in named.items()}
    expected = run(tf.repeat(query, 3, axis=0), value, tiled)
    _assert_near(run(query, value, named), expected)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_narrow_values_are_projected_after_they_are_weighted(policy, rng, monkeypatch):
    """Only rounding changes; a layer that does more than a product is applied before."""
    layer = MultiHeadAttention(2, head_dim=3, width=5, seed=0, dtype=policy)
    rows = rng.normal(size=(2, 6, 4)).astype("float32")
    visible = rng.random((2, 6, 6)) < 0.5
    layer(rows, rows, rows[..., :1])
    layer.value_dense.bias.assign(rng.normal(size=6))
    narrow = layer(rows, rows, rows[..., :1], visible=visible)
    monkeypatch.setattr(layer.value_dense, "activation", keras.activations.get(lambda x: x))
    wide = layer(rows, rows, rows[..., :1], visible=visible)
    eps = {"float32": 1e-6, "float16": 2**-10, "bfloat16": 2**-7}[layer.compute_dtype]
    _assert_near([narrow], [wide], 4 * eps)


def test_it_is_exported(rng, tmp_path, kept):
    tensors, visible = _case(rng, SHAPES[0])
    spec = [tf.TensorSpec([None, 3, None, 3]) for _ in range(3)]
    module = tf.Module()
    module.attend = tf.function(
        attend, input_signature=[*spec, tf.TensorSpec([None, None, None], tf.bool)]
    )
    expected = _gradients(attend, tensors, visible)
    tf.saved_model.save(module, str(tmp_path))
    _assert_near(_gradients(tf.saved_model.load(str(tmp_path)).attend, tensors, visible), expected)


def test_under_a_distribution_strategy(rng, kept):
    case = _case(rng, SHAPES[0])
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    run = tf.function(lambda: strategy.run(lambda: _gradients(attend, *case)), autograph=False)
    _assert_near(run(), _gradients(_plain, *case))
