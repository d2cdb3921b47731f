"""One layer of an attention tower: attention, skip, normalisation, feed-forward."""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_boolean, check_number, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.dense import apply_dense, seeded_dense, within_range
from taylorformer.model.layers.dropout import Dropout
from taylorformer.model.layers.layer_normalization import LayerNormalization

_LAYER_NORM_EPSILON = 1e-3


@keras.saving.register_keras_serializable("taylorformer")
class AttentionBlock(keras.layers.Layer):
    """`h = LayerNorm(attention + skip)`, `LayerNorm(h + Dense(Dropout(gelu(Dense(h)))))`.

    (Paper, algorithm 1.) Sums and normalisations are float32 under every dtype policy; Dense
    layers and attention products use the compute dtype.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 5, 3], seed=(1, 2))
        >>> block = AttentionBlock(2, head_dim=4, width=6, project_skip=True, seed=0)
        >>> hidden = block(rows, rows, rows)
        >>> hidden.shape
        TensorShape([2, 5, 6])

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of the output and of the feed-forward layer.
        dropout: rate of the dropout in the feed-forward part, in [0, 1).
        project_skip: the skip is a Dense layer of the query (first layers, whose query is wider
            or narrower than `width`) and not the query itself.
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "finish", "skip")

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        dropout: float = 0.0,
        project_skip: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads = plain_number(num_heads)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = plain_number(width)
        self.dropout = dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.project_skip = project_skip = check_boolean("project_skip", project_skip)
        self.seed = seed = plain_number(seed)
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            num_heads, head_dim, width, seed=child_seed(seed, 0), dtype=policy, name="attention"
        )
        self.skip_dense = seeded_dense(width, seed, 1, policy, "skip") if project_skip else None
        self.attention_norm = LayerNormalization(
            epsilon=_LAYER_NORM_EPSILON, dtype="float32", name="attention_norm"
        )
        self.hidden_dense = seeded_dense(width, seed, 2, policy, "hidden")
        self.dropout_layer = Dropout(
            dropout, seed=child_seed(seed, 4), dtype=policy, name="dropout"
        )
        self.output_dense = seeded_dense(width, seed, 3, policy, "output")
        self.output_norm = LayerNormalization(
            epsilon=_LAYER_NORM_EPSILON, dtype="float32", name="output_norm"
        )

    def build(self, query_shape: Any, key_shape: Any, value_shape: Any) -> None:
        """Builds every child.

        Raises:
            ValueError: without a projected skip the query must be `width` wide.
        """
        if self.skip_dense is None and query_shape[-1] != self.width:
            raise ValueError(
                "With `project_skip=False` the query must have the shape [B, R, width]. "
                f"Received: {list(query_shape)}, width={self.width}"
            )
        inner = (None, None, self.width)
        self.attention.build(query_shape, key_shape, value_shape)
        if self.skip_dense is not None:
            self.skip_dense.build((None, None, query_shape[-1]))
        self.attention_norm.build(inner)
        self.hidden_dense.build(inner)
        self.dropout_layer.build(inner)
        self.output_dense.build(inner)
        self.output_norm.build(inner)
        self.built = True

    def call(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        visible: tf.Tensor | None = None,
        context_visible: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Runs the layer; see `MultiHeadAttention.call` for the arguments.

        Returns:
            `[B, R, width]`, float32.
        """
        attended = self.attention(
            query, key, value, visible=visible, context_visible=context_visible
        )
        return self.finish(attended, self.skip(query), training=training)

    @property
    def row_denses(self) -> list[keras.layers.Dense]:
        """The Dense layers whose weights are read where rows are drawn one by one."""
        return [] if self.skip_dense is None else [self.skip_dense]

    def skip(self, query: tf.Tensor) -> tf.Tensor:
        """Returns what the attention is added to, `[B, R, width]`."""
        if self.skip_dense is None:
            return query
        return apply_dense(self.skip_dense, within_range(query, self.compute_dtype))

    def finish(self, attended: tf.Tensor, skip: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs everything after the attention, row by row; returns `[B, R, width]`, float32."""
        hidden = self.attention_norm(tf.cast(attended, tf.float32) + tf.cast(skip, tf.float32))
        inner = tf.nn.gelu(apply_dense(self.hidden_dense, hidden), approximate=False)
        inner = apply_dense(self.output_dense, self.dropout_layer(inner, training=training))
        return self.output_norm(hidden + tf.cast(inner, tf.float32))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "dropout": self.dropout,
            "project_skip": self.project_skip,
            "seed": self.seed,
        }
