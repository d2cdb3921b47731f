"""`softmax(q k^T) v` with masks, and its gradient in few passes over the scores.

The scores are by far the largest tensors of a step, and reading and writing them is most of its
cost. The gradient here needs the weights P only: with O the output and dO its gradient,
`dV = P^T dO`, `dS = P (dO V^T - rowsum(dO O))`, `dQ = dS K`, `dK = dS^T Q`. TensorFlow's own
gradient makes three more passes, one of them for the choice of what is hidden.

Where the scores are large, they are made in pieces and made again for the gradient, so that they
are never in memory as a whole (Dao et al., "FlashAttention", 2022).
"""

from collections.abc import Callable

import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_sequences

HIDDEN = tf.float32.min / 2
"""The score of what is hidden: exp of it is 0, and a difference of two such scores is finite."""

# 64 MB of float32. Up to here the weights are kept for the gradient, which is faster than to make
# them again; a model keeps them for every layer.
_LARGEST_KEPT = 2**24
# 2 MB of float32, which fits in the caches of a core.
_PIECE = 2**19
_PARALLEL_PIECES = 4

# Traced and optimised once for all layers, and not once for each.
_once = tf.function(autograph=False, experimental_attributes={"_noinline": True})

_Gradients = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


def attend(
    queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
) -> tf.Tensor:
    """Attends with scaled queries; first and second gradients work, also in pieces.

    The softmax is float32. A row that sees nothing is exactly 0, as are its gradients.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.ones([1, 2, 5, 3])
        >>> attend(rows, rows, rows, tf.ones([1, 5, 5], tf.bool)).shape
        TensorShape([1, 2, 5, 3])

    Args:
        queries: `[W, H, R, d]`. W is 1 or B: with 1, the weights are made once for all B values.
        keys: `[W, H, N, d]`.
        values: `[B, H, N, F]`, or `[B, 1, N, F]` where all heads weigh the same values.
        visible: `[B, R, N]` bool; a size of 1 stands for all. None: everything.

    Returns:
        `[B, H, R, F]` in the dtype of the values.
    """
    if visible is not None:
        visible = visible[:, tf.newaxis]
    num_heads, value_heads, features = queries.shape[1], values.shape[1], values.shape[-1]
    batch, rows = tf.shape(values)[0], tf.shape(queries)[2]
    static_shape = [values.shape[0], num_heads, None, features]
    weights_batch = _size(queries, 0)
    if visible is not None:
        weights_batch = _larger(weights_batch, _size(visible, 0))
    if _same(weights_batch, _size(values, 0)):
        attended = _attend_one_to_one(queries, keys, values, visible)
        return tf.ensure_shape(attended, static_shape)
    # Values that share their weights are put side by side: all of them are one product. Where
    # none do, `shared` is 1 and nothing changes.
    shared = batch // tf.maximum(weights_batch, 1)
    columns = tf.shape(values)[2]
    values = tf.reshape(values, [shared, weights_batch, value_heads, columns, features])
    values = tf.transpose(values, [1, 2, 3, 0, 4])
    values = tf.reshape(values, [weights_batch, value_heads, columns, shared * features])
    attended = _attend_one_to_one(queries, keys, values, visible)
    attended = tf.reshape(attended, [weights_batch, num_heads, rows, shared, features])
    attended = tf.transpose(attended, [3, 0, 1, 2, 4])
    attended = tf.reshape(attended, [batch, num_heads, rows, features])
    return tf.ensure_shape(attended, static_shape)


def masked_weights(queries: tf.Tensor, keys: tf.Tensor, visible: tf.Tensor | None) -> tf.Tensor:
    """Returns the weights `[B, H, R, N]`, float32; uniform in rows that see nothing.

    Args:
        queries: `[B, H, R, d]`, scaled.
        keys: `[B, H, N, d]`.
        visible: `[B, 1, R, N]` bool, or None.
    """
    return tf.nn.softmax(_scores(queries, keys, visible))


def _attend_one_to_one(
    queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
) -> tf.Tensor:
    """Attends where the batch of the weights, of queries or `visible`, is that of the values."""
    sees = None if visible is None else tf.reduce_any(visible, axis=-1, keepdims=True)
    # Divided, as the product of all may be more than an int32 holds.
    rows = _size(values, 0) * queries.shape[1] * _size(queries, 2)
    in_pieces = rows > _LARGEST_KEPT // _larger(_size(keys, 2), 1)

    @tf.custom_gradient
    def attention(
        queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
        attended, kept = _choose(
            in_pieces,
            lambda: _forward_in_pieces(*map(tf.stop_gradient, (queries, keys, values)), visible),
            lambda: _forward(queries, keys, values, visible),
        )
        attended = _zero_unless(sees, attended)

        def gradient(upstream: tf.Tensor) -> _Gradients:
            # Another function, so that second gradients do not depend on what is kept.
            def fast(
                queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, upstream: tf.Tensor
            ) -> tuple[_Gradients, Callable[..., list[tf.Tensor]]]:
                # A row that sees nothing has uniform weights here; its part in every sum is 0.
                given = _zero_unless(sees, upstream)
                parts = queries, keys, values
                gradients = _choose(
                    in_pieces,
                    lambda: _backward_in_pieces(*parts, visible, attended, given),
                    lambda: _backward(*parts, attended, kept, given),
                )

                def second(*upstreams: tf.Tensor) -> list[tf.Tensor]:
                    # `kept` is a constant to TensorFlow, so the formula is differentiated anew.
                    inputs = [queries, keys, values, upstream]
                    with tf.GradientTape() as tape:
                        tape.watch(inputs)
                        weights = masked_weights(queries, keys, visible)
                        given = _zero_unless(sees, upstream)
                        output = _weigh(weights, values)
                        outputs = _backward(queries, keys, values, output, weights, given)
                    return tape.gradient(
                        outputs,
                        inputs,
                        output_gradients=list(upstreams),
                        unconnected_gradients=tf.UnconnectedGradients.ZERO,
                    )

                return gradients, second

            return tf.custom_gradient(fast)(queries, keys, values, upstream)

        return attended, gradient

    return attention(queries, keys, values)


def _forward(
    queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the output and the weights."""
    weights = masked_weights(queries, keys, visible)
    return _weigh(weights, values), weights


def _backward(
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    attended: tf.Tensor,
    weights: tf.Tensor,
    upstream: tf.Tensor,
) -> _Gradients:
    """Returns the gradients of queries, keys and values, from the weights."""
    dtype = values.dtype
    sums = tf.cast(upstream, tf.float32) * tf.cast(attended, tf.float32)
    sums = tf.reduce_sum(sums, axis=-1, keepdims=True)
    merged = _merge_heads(upstream, values)
    if dtype == tf.float32:
        # The subtraction is one more column of the product, and no pass over the scores.
        ones = tf.ones_like(values[..., :1])
        of_scores = _product(
            tf.concat([merged, -_merge_heads(sums, values)], axis=-1),
            tf.concat([values, ones], axis=-1),
            weights,
        )
    else:
        of_scores = tf.cast(_product(merged, values, weights), tf.float32) - sums
    of_scores = tf.cast(weights * of_scores, dtype)
    of_values = _merge_heads(tf.cast(weights, dtype), values)
    # Products whose result is wide and low are faster than their transposes.
    of_values = _transposed(tf.matmul(merged, of_values, transpose_a=True))
    of_keys = _transposed(tf.matmul(with_batch_of(of_scores, queries), of_scores, transpose_a=True))
    of_queries = tf.matmul(of_scores, with_batch_of(of_scores, keys))
    return _sum_to(of_queries, queries), _sum_to(of_keys, keys), of_values


@_once
def _forward_in_pieces(
    queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the output, and an empty tensor instead of weights."""

    def piece(numbers: tf.Tensor) -> tuple[tf.Tensor]:
        query, key, value, seen = _take(numbers, queries.shape[1], queries, keys, values, visible)
        return (_weigh(masked_weights(query, key, seen), value),)

    (attended,) = _run_pieces(piece, (values.dtype,), queries, keys, values)
    return attended, tf.zeros([tf.shape(values)[0], queries.shape[1], 0, 0])


@_once
def _backward_in_pieces(
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    visible: tf.Tensor | None,
    attended: tf.Tensor,
    upstream: tf.Tensor,
) -> _Gradients:
    """Returns the gradients of queries, keys and values, and makes the weights again."""

    def piece(numbers: tf.Tensor) -> _Gradients:
        count = queries.shape[1]
        query, key, value, seen = _take(numbers, count, queries, keys, values, visible)
        output, given = (_take_heads(tensor, numbers, count) for tensor in (attended, upstream))
        weights = masked_weights(query, key, seen)
        return _backward(query, key, value, output, weights, given)

    dtypes = queries.dtype, keys.dtype, values.dtype
    of_queries, of_keys, of_values = _run_pieces(piece, dtypes, queries, keys, values)
    if values.shape[1] == 1:
        of_values = tf.reduce_sum(of_values, axis=1, keepdims=True)
    return _sum_to(of_queries, queries), _sum_to(of_keys, keys), of_values


def _run_pieces(
    piece: Callable[[tf.Tensor], tuple[tf.Tensor, ...]],
    dtypes: tuple[tf.DType, ...],
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
) -> list[tf.Tensor]:
    """Runs `piece` on the numbers of some heads of sequences at a time, `[K]` integers.

    The last piece repeats the last head; what comes of that is cut off.
    """
    batch, heads = tf.shape(values)[0], queries.shape[1]
    size = tf.shape(queries)[2] * tf.shape(keys)[2]
    total = batch * heads
    count = tf.clip_by_value(_PIECE // tf.maximum(size, 1), 1, tf.maximum(total, 1))
    num_pieces = (total + count - 1) // count
    numbers = tf.range(num_pieces)[:, tf.newaxis] * count + tf.range(count)
    results = tf.map_fn(
        piece,
        tf.minimum(numbers, total - 1),
        fn_output_signature=dtypes,
        parallel_iterations=_PARALLEL_PIECES,
    )
    joined = []
    for result in results:
        # [pieces, K, 1, rows, F] to [B, H, rows, F]
        shape = tf.shape(result)
        flat = tf.reshape(result, [num_pieces * count, shape[3], shape[4]])[:total]
        joined.append(tf.reshape(flat, [batch, heads, shape[3], shape[4]]))
    return joined


def _take(
    numbers: tf.Tensor,
    num_heads: int,
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    visible: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Returns what single heads of sequences read, by their numbers, `[K, 1, rows, F]` each."""
    query, key, value = (
        _take_heads(tensor, numbers, num_heads) for tensor in (queries, keys, values)
    )
    if visible is None:
        return query, key, value, None
    return query, key, value, _take_heads(visible, numbers, num_heads)


def _take_heads(tensor: tf.Tensor, numbers: tf.Tensor, num_heads: int) -> tf.Tensor:
    """Returns `[K, 1, rows, F]` from `[B, H, rows, F]`; a batch or heads of 1 stand for all."""
    shape = tf.shape(tensor)
    sequences = tf.minimum(numbers // num_heads, shape[0] - 1)
    if tensor.shape[1] == 1:
        return tf.gather(tensor, sequences)
    flat = tf.reshape(tensor, [shape[0] * num_heads, 1, shape[2], shape[3]])
    return tf.gather(flat, sequences * num_heads + numbers % num_heads)


def _scores(queries: tf.Tensor, keys: tf.Tensor, visible: tf.Tensor | None) -> tf.Tensor:
    scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
    # Chosen, not added: a huge score of a hidden row must not come through.
    return scores if visible is None else tf.where(visible, scores, HIDDEN)


def _weigh(weights: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns `weights @ values`, `[B, H, R, F]`."""
    shape = tf.shape(weights)
    merged = _merge_heads(tf.cast(weights, values.dtype), values)
    return tf.reshape(
        tf.matmul(merged, values), [shape[0], weights.shape[1], shape[2], tf.shape(values)[-1]]
    )


def _product(left: tf.Tensor, right: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns `left @ right^T` in the shape of the weights."""
    return tf.reshape(tf.matmul(left, right, transpose_b=True), tf.shape(like))


def _merge_heads(tensor: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Makes rows of heads, `[B, 1, H R, F]`, where all heads weigh the same values."""
    if values.shape[1] == tensor.shape[1]:
        return tensor
    shape = tf.shape(tensor)
    return tf.reshape(tensor, [shape[0], 1, tensor.shape[1] * shape[2], shape[3]])


def _transposed(tensor: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tensor, [0, 1, 3, 2])


def _zero_unless(sees: tf.Tensor | None, tensor: tf.Tensor) -> tf.Tensor:
    return tensor if sees is None else tf.where(sees, tensor, tf.zeros([], tensor.dtype))


def with_batch_of(like: tf.Tensor, tensor: tf.Tensor) -> tf.Tensor:
    """Gives each sequence of `like` `[B, ..]` its copy of a tensor `[B, ..]` or `[1, ..]`.

    `tf.matmul` would do so too, but with oneDNN it writes outside of its memory where a batch of
    [B, 1] meets one of [1, 1].
    """
    if tensor.shape[0] is not None and tensor.shape[0] == like.shape[0]:
        return tensor
    return tile_sequences(tensor, tf.shape(like)[0])


def _sum_to(gradient: tf.Tensor, tensor: tf.Tensor) -> tf.Tensor:
    """Sums over sequences where `tensor` has one for all of them; free where it has not."""
    if gradient.shape[0] is not None and gradient.shape[0] == tensor.shape[0]:
        return gradient
    shape = tf.shape(tensor)
    times = tf.shape(gradient)[0] // tf.maximum(shape[0], 1)
    return tf.reduce_sum(tf.reshape(gradient, tf.concat([[times], shape], axis=0)), axis=0)


def _choose(
    condition: bool | tf.Tensor,
    in_pieces: Callable[[], tuple[tf.Tensor, ...]],
    whole: Callable[[], tuple[tf.Tensor, ...]],
) -> tuple[tf.Tensor, ...]:
    """Runs one of the two; only that one is in the graph where the shapes are known."""
    if isinstance(condition, bool):
        return in_pieces() if condition else whole()
    return tf.cond(condition, in_pieces, whole)


def _size(tensor: tf.Tensor, axis: int) -> int | tf.Tensor:
    return tf.shape(tensor)[axis] if tensor.shape[axis] is None else tensor.shape[axis]


def _larger(left: int | tf.Tensor, right: int | tf.Tensor) -> int | tf.Tensor:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    return tf.maximum(left, right)


def _same(left: int | tf.Tensor, right: int | tf.Tensor) -> bool:
    return isinstance(left, int) and isinstance(right, int) and left == right
