"""One layer of the decoder of Autoformer."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.auto_correlation import AutoCorrelation
from taylorformer.comparison_models.circular_convolution import CircularConvolution
from taylorformer.comparison_models.feed_forward import FeedForward
from taylorformer.comparison_models.row_widths import check_width, head_width
from taylorformer.comparison_models.series_decomposition import SeriesDecomposition
from taylorformer.data_wrangler.checks import plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dropout import Dropout


@keras.saving.register_keras_serializable("taylorformer")
class AutoformerDecoderLayer(keras.layers.Layer):
    """Two auto-correlations and a feed-forward part; the trends that are taken out are kept.

    `s_1, t_1 = split(rows + Dropout(AutoCorrelation(rows)))`,
    `s_2, t_2 = split(s_1 + Dropout(AutoCorrelation(s_1, encoded)))`,
    `s_3, t_3 = split(s_2 + FeedForward(s_2))`: the rows are s_3, and a circular convolution turns
    t_1 + t_2 + t_3 into a trend of y (Wu et al., "Autoformer", 2021, equation 4; the paper has one
    matrix for each trend, the authors' code this convolution). Sums are float32 under every dtype
    policy.

    Example:
        >>> import tensorflow as tf
        >>> layer = AutoformerDecoderLayer(num_heads=2, width=4, feed_forward=8, y_dims=1, seed=0)
        >>> rows, trend = layer(tf.ones([2, 5, 4]), tf.ones([2, 6, 4]))
        >>> rows.shape, trend.shape
        (TensorShape([2, 5, 4]), TensorShape([2, 5, 1]))

    Args:
        num_heads: H, of which `width` is a multiple.
        width: width of input and output.
        feed_forward: width of the feed-forward part.
        y_dims: D_y, width of the trend.
        moving_average: how many rows a trend averages, an odd number.
        factor: c of the `c log N` delays of the auto-correlations.
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
        y_dims: int,
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
        self.y_dims = y_dims = plain_number(y_dims)
        self.moving_average = moving_average = plain_number(moving_average)
        self.factor = factor = plain_number(factor)
        self.dropout = dropout = plain_number(dropout)
        self.seed = seed = plain_number(seed)
        policy = self.dtype_policy
        self.self_correlation, self.cross_correlation = (
            AutoCorrelation(
                num_heads,
                head_width(width, num_heads),
                width,
                factor,
                key_bias=part == "cross",
                seed=child_seed(seed, child),
                dtype=policy,
                name=f"{part}_correlation",
            )
            for child, part in enumerate(("self", "cross"))
        )
        self.feed_forward_part = FeedForward(
            feed_forward,
            width,
            dropout,
            seed=child_seed(seed, 2),
            dtype=policy,
            name="feed_forward",
        )
        self.self_dropout, self.cross_dropout = (
            Dropout(dropout, child_seed(seed, child), dtype=policy, name=f"{part}_dropout")
            for child, part in enumerate(("self", "cross"), start=3)
        )
        self.trend_convolution = CircularConvolution(
            y_dims, seed=child_seed(seed, 5), dtype=policy, name="trend"
        )
        self.decomposition = SeriesDecomposition(
            moving_average, dtype="float32", name="decomposition"
        )

    def build(self, rows_shape: Any, encoded_shape: Any) -> None:
        """Builds every child.

        Raises:
            ValueError: the rows must be `width` wide.
        """
        check_width("rows", rows_shape, self.width)
        self.self_correlation.build(rows_shape, rows_shape, rows_shape)
        self.cross_correlation.build(rows_shape, encoded_shape, encoded_shape)
        for layer in (
            self.feed_forward_part,
            self.self_dropout,
            self.cross_dropout,
            self.trend_convolution,
            self.decomposition,
        ):
            layer.build(rows_shape)
        self.built = True

    def call(
        self, rows: tf.Tensor, encoded: tf.Tensor, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the layer.

        Args:
            rows: `[B, N, width]`.
            encoded: `[B, N_C, F]`, the output of the encoder.
            training: use dropout, and choose the delays for the batch.

        Returns:
            rows `[B, N, width]` and trend `[B, N, D_y]`, float32.
        """
        attended = self.self_correlation(rows, rows, rows, training=training)
        attended = self.self_dropout(attended, training=training)
        rows = tf.cast(rows, tf.float32) + tf.cast(attended, tf.float32)
        rows, first_trend = self.decomposition(rows)
        attended = self.cross_correlation(rows, encoded, encoded, training=training)
        attended = self.cross_dropout(attended, training=training)
        rows, second_trend = self.decomposition(rows + tf.cast(attended, tf.float32))
        inner = self.feed_forward_part(rows, training=training)
        rows, third_trend = self.decomposition(rows + tf.cast(inner, tf.float32))
        trend = self.trend_convolution(first_trend + second_trend + third_trend)
        return rows, tf.cast(trend, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "width": self.width,
            "feed_forward": self.feed_forward,
            "y_dims": self.y_dims,
            "moving_average": self.moving_average,
            "factor": self.factor,
            "dropout": self.dropout,
            "seed": self.seed,
        }
