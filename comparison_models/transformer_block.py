"""One layer of a Transformer encoder, normalised after each part."""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_number, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.dense import apply_dense, seeded_dense
from taylorformer.model.layers.dropout import Dropout
from taylorformer.model.layers.layer_normalization import LayerNormalization

_LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("taylorformer")
class TransformerBlock(keras.layers.Layer):
    """Attention and feed-forward part, each with a skip and a normalisation after it.

    `h = LayerNorm(query + Dropout(attention))`, then
    `LayerNorm(h + Dropout(Dense(Dropout(relu(Dense(h))))))` (Vaswani et al., "Attention is all you
    need", 2017). Sums and normalisations are float32 under every dtype policy; Dense layers and
    attention products use the compute dtype.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 5, 6], seed=(1, 2))
        >>> block = TransformerBlock(num_heads=2, head_dim=4, width=6, feed_forward=8, seed=0)
        >>> block(rows, rows).shape
        TensorShape([2, 5, 6])

    Args:
        num_heads: H.
        head_dim: width of one head; H heads may be wider or narrower than `width` together.
        width: width of input and output.
        feed_forward: width of the feed-forward layer.
        dropout: rate of the dropout, in [0, 1).
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "finish")

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        feed_forward: int,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads = plain_number(num_heads)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = plain_number(width)
        self.feed_forward = feed_forward = check_integer("feed_forward", feed_forward, 1)
        self.dropout = dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.seed = seed = plain_number(seed)
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            num_heads, head_dim, width, seed=child_seed(seed, 0), dtype=policy, name="attention"
        )
        self.hidden_dense = seeded_dense(feed_forward, seed, 1, policy, "hidden")
        self.output_dense = seeded_dense(width, seed, 2, policy, "output")
        self.attention_norm, self.output_norm = (
            LayerNormalization(epsilon=_LAYER_NORM_EPSILON, dtype="float32", name=f"{part}_norm")
            for part in ("attention", "output")
        )
        self.attention_dropout, self.hidden_dropout, self.output_dropout = (
            Dropout(dropout, seed=child_seed(seed, child), dtype=policy, name=f"{part}_dropout")
            for child, part in enumerate(("attention", "hidden", "output"), start=3)
        )

    def build(self, query_shape: Any, key_shape: Any) -> None:
        """Builds every child.

        Raises:
            ValueError: the query must be `width` wide.
        """
        if query_shape[-1] != self.width:
            raise ValueError(
                "`query` must have the shape [B, R, width]. "
                f"Received: {list(query_shape)}, width={self.width}"
            )
        inner = (None, None, self.width)
        self.attention.build(query_shape, key_shape, key_shape)
        self.hidden_dense.build(inner)
        self.output_dense.build((None, None, self.feed_forward))
        for layer in (self.attention_norm, self.output_norm):
            layer.build(inner)
        for layer in (self.attention_dropout, self.hidden_dropout, self.output_dropout):
            layer.build(inner)
        self.built = True

    def call(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        visible: tf.Tensor | None = None,
        context_visible: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Runs the layer; values are the keys.

        Args:
            query: `[B, R, width]`.
            key: `[B, N, width]`.
            visible: what each row sees, as in `MultiHeadAttention.call`.
            context_visible: what context rows see, as there.
            training: use dropout.

        Returns:
            `[B, R, width]`, float32.
        """
        attended = self.attention(query, key, key, visible=visible, context_visible=context_visible)
        return self.finish(attended, query, training=training)

    def finish(self, attended: tf.Tensor, query: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs everything after the attention, row by row; returns `[B, R, width]`, float32."""
        attended = self.attention_dropout(attended, training=training)
        hidden = self.attention_norm(query + tf.cast(attended, tf.float32))
        inner = tf.nn.relu(apply_dense(self.hidden_dense, hidden))
        inner = apply_dense(self.output_dense, self.hidden_dropout(inner, training=training))
        inner = self.output_dropout(inner, training=training)
        return self.output_norm(hidden + tf.cast(inner, tf.float32))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "feed_forward": self.feed_forward,
            "dropout": self.dropout,
            "seed": self.seed,
        }
