"""Autoformer (Wu et al., 2021): decomposition into seasonal and trend, attention over delays."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.autoformer_decoder_layer import AutoformerDecoderLayer
from taylorformer.comparison_models.autoformer_encoder_layer import AutoformerEncoderLayer
from taylorformer.comparison_models.direct_forecaster import DirectForecaster
from taylorformer.comparison_models.seasonal_layer_norm import SeasonalLayerNorm
from taylorformer.comparison_models.series_decomposition import SeriesDecomposition
from taylorformer.comparison_models.value_embedding import ValueEmbedding
from taylorformer.data_wrangler.checks import check_number, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range
from taylorformer.model.layers.rows import split_rows


@keras.saving.register_keras_serializable("taylorformer")
class Autoformer(DirectForecaster):
    """Autoformer, which forecasts all targets at once as a seasonal part plus a trend.

    The encoder reads the context. The decoder reads the last `start_length` context rows and one
    row for each target: seasonal values, with zeros at the targets, and beside them a trend, with
    the mean of the context at the targets, to which every layer adds what it takes out of its rows.
    Layers look for delays at which the series repeats itself instead of for rows (Wu et al.,
    "Autoformer: decomposition transformers with auto-correlation for long-term series forecasting",
    2021, section 3). The likelihood and the training are those of `DirectForecaster`.

    The defaults are the sizes of the authors: 10.5 million parameters with D_y = 7. (Tables that
    say "42m" count megabytes: four bytes for each parameter.) Biases and shifts that change no
    output are left out, see `AutoCorrelation`, `AutoformerEncoderLayer` and `SeasonalLayerNorm`.

    Example:
        >>> import tensorflow as tf
        >>> times = tf.reshape(tf.range(12.0), [1, 12, 1])
        >>> inputs = {"x_context": times[:, :8], "y_context": tf.sin(times[:, :8]),
        ...           "x_target": times[:, 8:]}
        >>> model = Autoformer(width=8, num_heads=2, feed_forward=16, moving_average=5, seed=0)
        >>> model(inputs)["mean"].shape
        TensorShape([1, 4, 1])

    Args:
        width: width of every row in the model.
        num_heads: H.
        feed_forward: width of the feed-forward parts.
        encoder_layers: layers of the encoder.
        decoder_layers: layers of the decoder.
        moving_average: how many rows a trend averages, an odd number.
        factor: c of the `c log N` delays that are averaged, above 0; the paper has 1 to 3.
        dropout: rate of the dropout, in [0, 1).
        **kwargs: `start_length`, `interpolate`, `min_scale`, `predict_samples` and `seed`, as in
            `DirectForecaster`, and what every Keras model takes.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        *,
        width: int = 512,
        num_heads: int = 8,
        feed_forward: int = 2048,
        encoder_layers: int = 2,
        decoder_layers: int = 1,
        moving_average: int = 25,
        factor: float = 1.0,
        dropout: float = 0.05,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            width=width,
            num_heads=num_heads,
            feed_forward=feed_forward,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            dropout=dropout,
            **kwargs,
        )
        self.moving_average = plain_number(moving_average)
        self.factor = check_number("factor", factor, above=0)
        policy = self.dtype_policy
        self.decomposition = SeriesDecomposition(
            self.moving_average, dtype="float32", name="decomposition"
        )
        self.context_embedding, self.target_embedding = (
            ValueEmbedding(
                self.width,
                self.dropout,
                seed=child_seed(self.seed, child),
                dtype=policy,
                name=f"{side}_embedding",
            )
            for child, side in enumerate(("context", "target"))
        )
        self.encoder = [
            AutoformerEncoderLayer(
                **self._layer_settings(2, number), dtype=policy, name=f"encoder_{number}"
            )
            for number in range(self.encoder_layers)
        ]
        self.encoder_norm, self.decoder_norm = (
            SeasonalLayerNorm(dtype="float32", name=f"{part}_norm")
            for part in ("encoder", "decoder")
        )

    def _layer_settings(self, child: int, number: int) -> dict[str, Any]:
        """Returns what the layers of encoder and decoder share, and the seed of one of them."""
        return {
            "num_heads": self.num_heads,
            "width": self.width,
            "feed_forward": self.feed_forward,
            "moving_average": self.moving_average,
            "factor": self.factor,
            "dropout": self.dropout,
            "seed": child_seed(child_seed(self.seed, child), number),
        }

    def build_layers(self, num_features: int) -> None:
        """Makes the layers whose widths follow from D_y, and builds all layers."""
        policy, y_dims = self.dtype_policy, self.y_dims
        self.decoder = [
            AutoformerDecoderLayer(
                **self._layer_settings(3, number),
                y_dims=y_dims,
                dtype=policy,
                name=f"decoder_{number}",
            )
            for number in range(self.decoder_layers)
        ]
        self.output_dense = seeded_dense(
            y_dims, self.seed, 4, policy, "output", variance=FAN_IN_VARIANCE
        )
        inner = (None, None, self.width)
        self.decomposition.build((None, None, y_dims))
        for embedding in (self.context_embedding, self.target_embedding):
            embedding.build((None, None, y_dims), (None, None, num_features))
        for layer in self.decoder:
            layer.trainable = self.trainable
            layer.build(inner, inner)
        self.output_dense.trainable = self.trainable
        for layer in (*self.encoder, self.encoder_norm, self.decoder_norm, self.output_dense):
            layer.build(inner)

    def forecast_rows(
        self,
        values: tf.Tensor,
        context_features: tf.Tensor,
        target_features: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Forecasts on an even grid; see `DirectForecaster.forecast_rows`."""
        encoded = self.context_embedding(values, context_features, training=training)
        for layer in self.encoder:
            encoded = layer(encoded, training=training)
        encoded = self.encoder_norm(encoded)

        seasonal, trend = (self._last_rows(part) for part in self.decomposition(values))
        mean = tf.reduce_mean(values, axis=1, keepdims=True)
        trend = tf.concat([trend, tf.tile(mean, [1, self.num_target, 1])], axis=1)
        seasonal = tf.pad(seasonal, [[0, 0], [0, self.num_target], [0, 0]])
        features = tf.concat([self._last_rows(context_features), target_features], axis=1)
        rows = self.target_embedding(seasonal, features, training=training)
        for layer in self.decoder:
            rows, more = layer(rows, encoded, training=training)
            trend += more
        rows = within_range(self.decoder_norm(rows), self.compute_dtype)
        seasonal = tf.cast(apply_dense(self.output_dense, rows), tf.float32)
        return split_rows(seasonal + trend, self.num_start, axis=1)[1]

    def _last_rows(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns the last `num_start` rows of `[B, N_C, F]`."""
        return rows[:, self.num_context - self.num_start :]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "moving_average": self.moving_average,
            "factor": self.factor,
        }
