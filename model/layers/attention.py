"""Multi-head attention with exact zeros for rows that see nothing."""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer
from taylorformer.model.layers.attention_core import (
    HIDDEN,
    attend,
    masked_weights,
    with_batch_of,
)
from taylorformer.model.layers.dense import (
    LARGEST_FLOAT16,
    JoinedDense,
    apply_dense,
    apply_joined,
    is_plain_dense,
    seeded_dense,
    within_range,
)
from taylorformer.model.layers.rows import first_rows, split_rows


@keras.saving.register_keras_serializable("taylorformer")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention (paper, section "MHA-X block").

    Queries are scaled by one over the square root of the *head* width. A row that sees nothing is
    exactly 0 before the output projection, in every mode; hidden rows of keys and values never
    change a number. The softmax is float32 whatever the compute dtype.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 5, 3], seed=(1, 2))
        >>> attention = MultiHeadAttention(num_heads=2, head_dim=4, width=6, seed=0)
        >>> earlier = tf.linalg.band_part(tf.ones([1, 5, 5]), -1, 0) > 0
        >>> attention(rows, rows, rows, visible=earlier).shape
        TensorShape([2, 5, 6])

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of the output.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = (
        "call",
        "attend_row",
        "attention_weights",
        "bounded",
        "columns",
        "keys_and_values",
        "query_key_value",
        "weigh_values",
        "_finish",
        "_keys",
        "_project",
        "_project_weighted",
        "_queries",
    )

    def __init__(
        self, num_heads: int, head_dim: int, width: int, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.head_dim = check_integer("head_dim", head_dim, 1)
        self.width = check_integer("width", width, 1)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        projection, policy = self.num_heads * self.head_dim, self.dtype_policy
        self.query_dense = seeded_dense(projection, seed, 0, policy, "query")
        self.key_dense = seeded_dense(projection, seed, 1, policy, "key")
        self.value_dense = seeded_dense(projection, seed, 2, policy, "value")
        self.output_dense = seeded_dense(self.width, seed, 3, policy, "output")

    def build(self, query_shape: Any, key_shape: Any, value_shape: Any) -> None:
        """Builds the four projections from the last sizes of query, key and value."""
        self.query_dense.build((None, None, query_shape[-1]))
        self.key_dense.build((None, None, key_shape[-1]))
        self.value_dense.build((None, None, value_shape[-1]))
        self.output_dense.build((None, None, self.num_heads * self.head_dim))
        self.built = True

    def call(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        visible: tf.Tensor | None = None,
        context_visible: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Attends.

        Query, key and `visible` may be of one sequence where the values are of B: the weights are
        then made once.

        Args:
            query: `[B, R, F_q]` or `[1, R, F_q]`.
            key: `[B, N, F_k]` or `[1, N, F_k]`, as the query.
            value: `[B, N, F_v]`.
            visible: `[B, R, N]` bool, what each row sees; a size of 1 stands for all. None:
                everything.
            context_visible: `[B, 1, N_C]` or `[B, N_C, N_C]` bool. If given, the first N_C rows
                of `query` are context points: they look at the first N_C columns only, and
                `visible` is about the rows after them.

        Returns:
            `[B, R, width]` in the compute dtype.
        """
        for name, mask in (("visible", visible), ("context_visible", context_visible)):
            if mask is not None and len(mask.shape) != 3:
                raise ValueError(
                    f"`{name}` must have three axes, [B, R, N]. Received: {list(mask.shape)}"
                )
        queries = self._queries(query)
        # The order of two products does not matter: narrow values are weighted before they are
        # projected, which is less work.
        narrow = value.shape[-1] < self.head_dim and is_plain_dense(self.value_dense)
        if narrow:
            keys = self._keys(key)
            dtype = self.compute_dtype
            values = tf.cast(within_range(value, dtype), dtype)[:, tf.newaxis]
        else:
            keys, values = self.keys_and_values(key, value)

        def attend_part(
            queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
        ) -> tf.Tensor:
            attended = attend(queries, keys, values, visible)
            if not narrow:
                return attended
            sees = None if visible is None else tf.reduce_any(visible, axis=-1)
            return self._project_weighted(attended, sees)

        if context_visible is None:
            return self._finish(attend_part(queries, keys, values, visible))
        num_context = tf.shape(context_visible)[-1]
        of_context, of_targets = split_rows(queries, num_context, axis=2)
        some_keys, some_values = (first_rows(rows, num_context, axis=2) for rows in (keys, values))
        context = attend_part(of_context, some_keys, some_values, context_visible)
        target = attend_part(of_targets, keys, values, visible)
        return self._finish(tf.concat([context, target], axis=2))

    @property
    def row_denses(self) -> list[keras.layers.Dense]:
        """The Dense layers whose weights are read where rows are drawn one by one."""
        return [self.query_dense, self.key_dense, self.value_dense]

    # One row at a time, for samplers: B sequences with S samples each. What samples share has
    # no axis of samples; what they do not share is laid out `[N_T, d, B, H, S]`, so that one more
    # row is one contiguous piece, and sums over d or over rows run along what is contiguous.

    def keys_and_values(self, key: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Projects keys and values `[B, N, F]` to what `attend_row` reads, `[B, H, N, d]` each."""
        return self._keys(key), self._project(self.value_dense, value)

    def attention_weights(self, query: tf.Tensor, key: tf.Tensor, visible: tf.Tensor) -> tf.Tensor:
        """Returns the weights `[B, H, R, N]`, float32, all 0 in rows that see nothing."""
        visible = visible[:, tf.newaxis]
        weights = masked_weights(self._queries(query), self._keys(key), visible)
        return tf.where(tf.reduce_any(visible, axis=-1, keepdims=True), weights, 0.0)

    def columns(self, projected: tf.Tensor) -> list[tf.Tensor]:
        """Lays projections of one row of every sample out for `attend_row`.

        Args:
            projected: `[B, S, n H d]`, n projections side by side.

        Returns:
            n times `[d, B, H, S]`.
        """
        shape = tf.shape(projected)
        count = projected.shape[-1] // (self.num_heads * self.head_dim)
        parts = [shape[0], shape[1], count, self.num_heads, self.head_dim]
        return tf.unstack(tf.transpose(tf.reshape(projected, parts), [2, 4, 0, 3, 1]), num=count)

    def query_key_value(self, row: tf.Tensor, joined: JoinedDense) -> list[tf.Tensor]:
        """Projects one row of every sample to its query, key and value, in one product.

        Args:
            row: `[B, S, F]`.
            joined: the Dense layers of query, key and value, see `joined_dense`.

        Returns:
            Three times `[d, B, H, S]`: the query for `attend_row`, the key and the value to keep.
        """
        row = within_range(row, self.compute_dtype)
        query, key, value = self.columns(apply_joined(joined, row))
        return [query, self.bounded(key), value]

    def attend_row(
        self,
        query: tf.Tensor,
        context: tuple[tf.Tensor, tf.Tensor],
        earlier: tuple[tf.Tensor, tf.Tensor],
        context_mask: tf.Tensor,
        earlier_mask: tf.Tensor,
    ) -> tf.Tensor:
        """Attends from one target row of every sample.

        Args:
            query: `[d, B, H, S]`, the projected row, see `columns`.
            context: keys and values of the context, `[B, H, N_C, d]` each.
            earlier: keys and values of earlier targets, `[R, d, B, H, S]` each.
            context_mask: `[B, N_C]` bool.
            earlier_mask: `[R, B]` bool, those of the R rows that may be seen.

        Returns:
            `[B, S, width]` in the compute dtype, as `call` returns for that row.
        """
        query = self.bounded(query * self.head_dim**-0.5)
        queries = tf.transpose(query, [1, 2, 3, 0])
        shared = tf.matmul(queries, context[0], transpose_b=True)
        shared = tf.cast(shared, tf.float32)
        shared = tf.where(context_mask[:, tf.newaxis, tf.newaxis], shared, HIDDEN)
        drawn = tf.reduce_sum(tf.cast(earlier[0] * query, tf.float32), axis=1)
        drawn = tf.where(earlier_mask[..., tf.newaxis, tf.newaxis], drawn, HIDDEN)
        largest = tf.maximum(tf.reduce_max(shared, axis=-1), tf.reduce_max(drawn, axis=0))
        largest = tf.maximum(largest, HIDDEN)
        shared, drawn = tf.exp(shared - largest[..., tf.newaxis]), tf.exp(drawn - largest)
        total = tf.reduce_sum(shared, axis=-1) + tf.reduce_sum(drawn, axis=0)
        dtype = context[1].dtype
        attended = tf.cast(tf.matmul(tf.cast(shared, dtype), context[1]), tf.float32)
        of_earlier = tf.cast(drawn, dtype)[:, tf.newaxis] * earlier[1]
        of_earlier = tf.reduce_sum(tf.cast(of_earlier, tf.float32), axis=0)
        attended += tf.transpose(of_earlier, [1, 2, 3, 0])
        sees = tf.reduce_any(context_mask, axis=-1) | tf.reduce_any(earlier_mask, axis=0)
        sees = sees[:, tf.newaxis, tf.newaxis, tf.newaxis]
        attended = tf.where(sees, attended / tf.where(sees, total[..., tf.newaxis], 1.0), 0.0)
        return self._finish(tf.cast(attended, dtype))

    def weigh_values(self, weighted: tf.Tensor, sees: tf.Tensor) -> tf.Tensor:
        """Projects values that are weighted already: the order of the two products does not matter.

        Args:
            weighted: `[B, H, S, F_v]`, sums of values by the attention weights of one row.
            sees: `[B]` bool, False where the row sees nothing.

        Returns:
            `[B, S, width]` in the compute dtype.
        """
        return self._finish(self._project_weighted(weighted, sees[:, tf.newaxis]))

    def _project_weighted(self, weighted: tf.Tensor, sees: tf.Tensor | None) -> tf.Tensor:
        """Projects weighted values `[B, H, R, F_v]` to `[B, H, R, d]`, by what rows see `[B, R]`.

        A row that sees nothing is 0, and has no bias.
        """
        dtype = self.compute_dtype
        dense = self.value_dense
        size = weighted.shape[-1]
        kernel = tf.reshape(tf.cast(dense.kernel, dtype), [size, self.num_heads, self.head_dim])
        bias = tf.reshape(tf.cast(dense.bias, dtype), [self.num_heads, 1, self.head_dim])
        kernel = with_batch_of(weighted, tf.transpose(kernel, [1, 0, 2])[tf.newaxis])
        values = tf.matmul(tf.cast(weighted, dtype), kernel) + bias
        if sees is None:
            return values
        return tf.where(sees[:, tf.newaxis, :, tf.newaxis], values, tf.zeros([], dtype))

    def _queries(self, query: tf.Tensor) -> tf.Tensor:
        return self.bounded(self._project(self.query_dense, query) * self.head_dim**-0.5)

    def _keys(self, key: tf.Tensor) -> tf.Tensor:
        return self.bounded(self._project(self.key_dense, key))

    def bounded(self, factors: tf.Tensor) -> tf.Tensor:
        """Bounds queries and keys so that their products fit in float16."""
        bound = (LARGEST_FLOAT16 / self.head_dim) ** 0.5
        return within_range(factors, self.compute_dtype, bound)

    def _finish(self, attended: tf.Tensor) -> tf.Tensor:
        rows = within_range(self._join_heads(attended), self.compute_dtype)
        return apply_dense(self.output_dense, rows)

    def _project(self, dense: keras.layers.Dense, values: tf.Tensor) -> tf.Tensor:
        """Projects `[B, N, F]` and lays the heads out as `[B, H, N, d]`."""
        values = within_range(values, self.compute_dtype)
        heads = apply_dense(dense, values, (self.num_heads, self.head_dim))
        return tf.transpose(heads, [0, 2, 1, 3])

    def _join_heads(self, attended: tf.Tensor) -> tf.Tensor:
        """Lays `[B, H, N, d]` out as `[B, N, H d]`."""
        shape = tf.shape(attended)
        rows = tf.transpose(attended, [0, 2, 1, 3])
        return tf.reshape(rows, [shape[0], shape[2], self.num_heads * self.head_dim])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "seed": self.seed,
        }
