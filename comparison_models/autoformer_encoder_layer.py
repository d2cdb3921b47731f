"""One layer of the encoder of Autoformer."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.auto_correlation import AutoCorrelation
from taylorformer.comparison_models.feed_forward import FeedForward
from taylorformer.comparison_models.row_widths import check_width, head_width
from taylorformer.comparison_models.series_decomposition import SeriesDecomposition
from taylorformer.data_wrangler.checks import plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dropout import Dropout


@keras.saving.register_keras_serializable("taylorformer")
class AutoformerEncoderLayer(keras.layers.Layer):
    """Auto-correlation and feed-forward part, each with a skip, after which the trend is taken out.

    `s = seasonal(rows + Dropout(AutoCorrelation(rows)))`, then `seasonal(s + FeedForward(s))` (Wu
    et al., "Autoformer", 2021, equation 3). The auto-correlation has no biases here: they would be
    the same at all times, and so part of the trend. Sums are float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> layer = AutoformerEncoderLayer(num_heads=2, width=4, feed_forward=8, seed=0)
        >>> layer(tf.ones([2, 5, 4])).shape
        TensorShape([2, 5, 4])

    Args:
        num_heads: H, of which `width` is a multiple.
        width: width of input and output.
        feed_forward: width of the feed-forward part.
        moving_average: how many rows the trend averages, an odd number.
        factor: c of the `c log N` delays of the auto-correlation.
        dropout: rate of the dropout, in [0, 1).
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_heads: int,
        width: int,
        feed_forward: int,
        moving_average: int = 25,
        factor: float = 1.0,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads = plain_number(num_heads)
        self.width = width = plain_number(width)
        self.feed_forward = feed_forward = plain_number(feed_forward)
        self.moving_average = moving_average = plain_number(moving_average)
        self.factor = factor = plain_number(factor)
        self.dropout = dropout = plain_number(dropout)
        self.seed = seed = plain_number(seed)
        policy = self.dtype_policy
        self.auto_correlation = AutoCorrelation(
            num_heads,
            head_width(width, num_heads),
            width,
            factor,
            use_bias=False,
            seed=child_seed(seed, 0),
            dtype=policy,
            name="auto_correlation",
        )
        self.feed_forward_part = FeedForward(
            feed_forward,
            width,
            dropout,
            seed=child_seed(seed, 1),
            dtype=policy,
            name="feed_forward",
        )
        self.correlation_dropout = Dropout(
            dropout, child_seed(seed, 2), dtype=policy, name="dropout"
        )
        self.decomposition = SeriesDecomposition(
            moving_average, dtype="float32", name="decomposition"
        )

    def build(self, input_shape: Any) -> None:
        """Builds every child.

        Raises:
            ValueError: the rows must be `width` wide.
        """
        check_width("rows", input_shape, self.width)
        self.auto_correlation.build(input_shape, input_shape, input_shape)
        for layer in (self.feed_forward_part, self.correlation_dropout, self.decomposition):
            layer.build(input_shape)
        self.built = True

    def call(self, rows: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs the layer.

        Args:
            rows: `[B, N, width]`.
            training: use dropout, and choose the delays for the batch.

        Returns:
            `[B, N, width]`, float32.
        """
        attended = self.auto_correlation(rows, rows, rows, training=training)
        attended = self.correlation_dropout(attended, training=training)
        rows, _ = self.decomposition(tf.cast(rows, tf.float32) + tf.cast(attended, tf.float32))
        inner = self.feed_forward_part(rows, training=training)
        rows, _ = self.decomposition(rows + tf.cast(inner, tf.float32))
        return rows

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "width": self.width,
            "feed_forward": self.feed_forward,
            "moving_average": self.moving_average,
            "factor": self.factor,
            "dropout": self.dropout,
            "seed": self.seed,
        }
