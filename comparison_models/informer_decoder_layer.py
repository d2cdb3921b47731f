"""One layer of the Informer's decoder."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.feed_forward import FeedForward
from taylorformer.comparison_models.prob_sparse_attention import ProbSparseAttention
from taylorformer.comparison_models.row_widths import check_width
from taylorformer.data_wrangler.checks import check_number, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.dropout import Dropout
from taylorformer.model.layers.layer_normalization import LayerNormalization

_LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("taylorformer")
class InformerDecoderLayer(keras.layers.Layer):
    """Causal ProbSparse attention, full attention to the encoder's rows, feed-forward part.

    `h = LayerNorm(x + Dropout(ProbSparse(x)))`,
    `g = LayerNorm(h + Dropout(Attention(h, encoded)))`, then `LayerNorm(g + FeedForward(g))`
    (Zhou et al., "Informer", 2021). Sums and normalisations are float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 9, 6], seed=(1, 2))
        >>> layer = InformerDecoderLayer(num_heads=2, head_dim=3, width=6, feed_forward=8, seed=0)
        >>> layer(rows, rows[:, :4]).shape
        TensorShape([2, 9, 6])

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of both inputs and of the output.
        feed_forward: width of the hidden layer of the feed-forward part.
        factor: how many queries are chosen, see `ProbSparseAttention`.
        dropout: rate of the dropout, in [0, 1).
        seed: for the first weights, the dropout and the sampled keys. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        feed_forward: int,
        factor: int = 5,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads = plain_number(num_heads)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = plain_number(width)
        self.feed_forward = feed_forward = plain_number(feed_forward)
        self.factor = factor = plain_number(factor)
        self.dropout = dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.seed = seed = plain_number(seed)
        policy = self.dtype_policy
        self.self_attention = ProbSparseAttention(
            num_heads,
            head_dim,
            width,
            factor=factor,
            causal=True,
            seed=child_seed(seed, 0),
            dtype=policy,
            name="self_attention",
        )
        self.cross_attention = MultiHeadAttention(
            num_heads,
            head_dim,
            width,
            seed=child_seed(seed, 1),
            dtype=policy,
            name="cross_attention",
        )
        self.self_dropout, self.cross_dropout = (
            Dropout(dropout, seed=child_seed(seed, child), dtype=policy, name=f"{part}_dropout")
            for child, part in enumerate(("self", "cross"), start=2)
        )
        self.self_norm, self.cross_norm, self.output_norm = (
            LayerNormalization(epsilon=_LAYER_NORM_EPSILON, dtype="float32", name=f"{part}_norm")
            for part in ("self", "cross", "output")
        )
        self.feed_forward_part = FeedForward(
            feed_forward,
            width,
            dropout,
            use_bias=True,
            seed=child_seed(seed, 4),
            dtype=policy,
            name="feed_forward",
        )

    def build(self, rows_shape: Any, encoded_shape: Any) -> None:
        """Builds every child.

        Raises:
            ValueError: the rows must be `width` wide.
        """
        check_width("rows", rows_shape, self.width)
        inner = (None, None, self.width)
        self.self_attention.build(inner, inner, inner)
        self.cross_attention.build(inner, encoded_shape, encoded_shape)
        norms = self.self_norm, self.cross_norm, self.output_norm
        for layer in (self.self_dropout, self.cross_dropout, *norms, self.feed_forward_part):
            layer.build(inner)
        self.built = True

    def call(self, rows: tf.Tensor, encoded: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs the layer.

        Args:
            rows: `[B, N, width]`.
            encoded: `[B, M, width]`, the output of the encoder.
            training: use dropout, and draw the sampled keys.

        Returns:
            `[B, N, width]`, float32.
        """
        attended = self.self_attention(rows, rows, rows, training=training)
        attended = self.self_dropout(attended, training=training)
        hidden = self.self_norm(tf.cast(rows, tf.float32) + tf.cast(attended, tf.float32))
        attended = self.cross_attention(hidden, encoded, encoded)
        attended = self.cross_dropout(attended, training=training)
        hidden = self.cross_norm(hidden + tf.cast(attended, tf.float32))
        inner = self.feed_forward_part(hidden, training=training)
        return self.output_norm(hidden + tf.cast(inner, tf.float32))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "feed_forward": self.feed_forward,
            "factor": self.factor,
            "dropout": self.dropout,
            "seed": self.seed,
        }
