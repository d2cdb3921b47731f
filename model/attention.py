"""Multi-head attention with exact zeros for rows that see nothing."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer
from taylorformer.data_wrangler.seeds import child_seed

_HIDDEN = tf.float32.min / 2
_LARGEST_FLOAT16 = 65504.0


def within_range(values: tf.Tensor, dtype: str, bound: float | None = None) -> tf.Tensor:
    """Bounds numbers of float16, so that no sum of products overflows.

    float16 ends at 65504, and 0 times inf is NaN: a huge y would shine through the mask, by way of
    a row that may see it. In other dtypes nothing is done.

    Args:
        values: `[.., F]`.
        dtype: the compute dtype.
        bound: the largest size. None: what a Dense layer may read, with weights up to 2.
    """
    if dtype != "float16":
        return values
    if bound is None:
        bound = _LARGEST_FLOAT16 / (2 * values.shape[-1])
    return tf.cast(tf.clip_by_value(values, -bound, bound), tf.float16)


def seeded_dense(
    width: int, seed: int | None, place: int, dtype: Any, name: str
) -> keras.layers.Dense:
    """Makes a Dense layer whose first weights follow from the seed of the whole it is part of."""
    initializer = keras.initializers.GlorotUniform(seed=child_seed(seed, place))
    return keras.layers.Dense(width, kernel_initializer=initializer, dtype=dtype, name=name)


@keras.saving.register_keras_serializable("taylorformer")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention (paper, section "MHA-X block").

    Queries are scaled by one over the square root of the *head* width. A row that sees nothing
    gives exactly 0 before the output projection, in every mode; what stands at hidden places
    never changes a number. The softmax is float32 whatever the compute dtype.

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of the output.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self, num_heads: int, head_dim: int, width: int, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        check_integer("num_heads", num_heads, 1)
        check_integer("head_dim", head_dim, 1)
        check_integer("width", width, 1)
        check_optional_integer("seed", seed, 0)
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.width = width
        self.seed = seed
        projection, policy = num_heads * head_dim, self.dtype_policy
        self.query_dense = seeded_dense(projection, seed, 0, policy, "query")
        self.key_dense = seeded_dense(projection, seed, 1, policy, "key")
        self.value_dense = seeded_dense(projection, seed, 2, policy, "value")
        self.output_dense = seeded_dense(width, seed, 3, policy, "output")

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

        Args:
            query: `[B, R, F_q]`.
            key: `[B, N, F_k]`.
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
        dtype = self.compute_dtype
        bound = (_LARGEST_FLOAT16 / self.head_dim) ** 0.5
        queries = self._project(self.query_dense, query) * self.head_dim**-0.5
        queries = within_range(queries, dtype, bound)
        keys = within_range(self._project(self.key_dense, key), dtype, bound)
        values = self._project(self.value_dense, value)
        if context_visible is None:
            attended = self._attend(queries, keys, values, visible)
        else:
            num_context = tf.shape(context_visible)[-1]
            context = self._attend(
                queries[:, :, :num_context],
                keys[:, :, :num_context],
                values[:, :, :num_context],
                context_visible,
            )
            target = self._attend(queries[:, :, num_context:], keys, values, visible)
            attended = tf.concat([context, target], axis=2)
        return self.output_dense(within_range(self._join_heads(attended), dtype))

    def _project(self, dense: keras.layers.Dense, values: tf.Tensor) -> tf.Tensor:
        """Projects `[B, N, F]` and lays the heads out as `[B, H, N, d]`."""
        projected = dense(within_range(values, self.compute_dtype))
        shape = tf.shape(projected)
        heads = tf.reshape(projected, [shape[0], shape[1], self.num_heads, self.head_dim])
        return tf.transpose(heads, [0, 2, 1, 3])

    def _join_heads(self, attended: tf.Tensor) -> tf.Tensor:
        """Lays `[B, H, N, d]` out as `[B, N, H d]`."""
        shape = tf.shape(attended)
        rows = tf.transpose(attended, [0, 2, 1, 3])
        return tf.reshape(rows, [shape[0], shape[2], self.num_heads * self.head_dim])

    @staticmethod
    def _attend(
        queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, visible: tf.Tensor | None
    ) -> tf.Tensor:
        scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
        if visible is None:
            return tf.matmul(tf.cast(tf.nn.softmax(scores), values.dtype), values)
        visible = visible[:, tf.newaxis]
        # Chosen, not added: a huge score at a hidden place must not shine through.
        scores = tf.where(visible, scores, _HIDDEN)
        weights = tf.cast(tf.nn.softmax(scores), values.dtype)
        sees_something = tf.reduce_any(visible, axis=-1, keepdims=True)
        attended = tf.matmul(weights, values)
        return tf.where(sees_something, attended, tf.zeros_like(attended))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "seed": self.seed,
        }
