"""The Informer (Zhou et al., 2021)."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.direct_forecaster import DirectForecaster
from taylorformer.comparison_models.distilling import Distilling
from taylorformer.comparison_models.informer_decoder_layer import InformerDecoderLayer
from taylorformer.comparison_models.informer_encoder_layer import InformerEncoderLayer
from taylorformer.comparison_models.value_embedding import ValueEmbedding
from taylorformer.data_wrangler.checks import check_boolean, check_integer
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range
from taylorformer.model.layers.layer_normalization import LayerNormalization
from taylorformer.model.layers.rows import split_rows

_LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("taylorformer")
class Informer(DirectForecaster):
    """A Transformer with ProbSparse attention that forecasts all targets in one pass.

    The encoder embeds the context; its layers attend from few queries (`InformerEncoderLayer`), and
    between two of them `Distilling` halves the length. The decoder reads the last context rows and
    zeros for the targets, with the features of both; its layers (`InformerDecoderLayer`) attend
    causally to the rows before and to all that the encoder has made of the context. The last N_T
    rows, projected, are the forecast (Zhou et al., "Informer", 2021, arXiv 2012.07436).

    The defaults are the official sizes of the comparisons on ETT: 11.33 million parameters for
    D_y = 7 and D_x = 7 (time and 6 features), 11.31 million for D_y = 1, that is 45 MB of float32.
    The encoder is one stack, without the paper's replicas of half the length. Unlike in the
    authors' code, the heads of the decoder's attention are not mixed with its rows, which would
    not be causal, and dropout leaves the attention weights as they are.

    The first dimension of x is time; see `DirectForecaster` for the grid, the fixed lengths and the
    likelihood.

    Example:
        >>> import tensorflow as tf
        >>> times = tf.reshape(tf.range(12.0), [1, 12, 1])
        >>> inputs = {"x_context": times[:, :8], "y_context": tf.sin(times[:, :8]),
        ...           "x_target": times[:, 8:]}
        >>> model = Informer(width=8, num_heads=2, feed_forward=8, seed=0)
        >>> model(inputs)["mean"].shape
        TensorShape([1, 4, 1])

    Args:
        factor: how many queries are chosen and keys sampled, in units of the logarithm of their
            number; see `ProbSparseAttention`.
        distilling: halve the length between the layers of the encoder.
        **kwargs: of `DirectForecaster`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(self, *, factor: int = 5, distilling: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = check_integer("factor", factor, 1)
        self.distilling = check_boolean("distilling", distilling)
        seed, policy, width = self.seed, self.dtype_policy, self.width
        sizes = {
            "num_heads": self.num_heads,
            "head_dim": width // self.num_heads,
            "width": width,
            "feed_forward": self.feed_forward,
            "factor": self.factor,
            "dropout": self.dropout,
            "dtype": policy,
        }
        self.context_embedding, self.decoder_embedding = (
            ValueEmbedding(
                width,
                self.dropout,
                positional=True,
                seed=child_seed(seed, child),
                dtype=policy,
                name=f"{part}_embedding",
            )
            for child, part in enumerate(("context", "decoder"))
        )
        self.encoder = [
            InformerEncoderLayer(
                **sizes, seed=child_seed(child_seed(seed, 2), layer), name=f"encoder_{layer}"
            )
            for layer in range(self.encoder_layers)
        ]
        self.distillings = [
            Distilling(
                width,
                seed=child_seed(child_seed(seed, 3), layer),
                dtype=policy,
                name=f"distilling_{layer}",
            )
            for layer in range(self.encoder_layers - 1 if self.distilling else 0)
        ]
        self.decoder = [
            InformerDecoderLayer(
                **sizes, seed=child_seed(child_seed(seed, 4), layer), name=f"decoder_{layer}"
            )
            for layer in range(self.decoder_layers)
        ]
        self.encoder_norm, self.decoder_norm = (
            LayerNormalization(epsilon=_LAYER_NORM_EPSILON, dtype="float32", name=f"{part}_norm")
            for part in ("encoder", "decoder")
        )

    def build_layers(self, num_features: int) -> None:
        """Makes and builds all layers.

        Args:
            num_features: dimensions of x beside time; may be 0.
        """
        inner = (None, None, self.width)
        values, features = (None, None, self.y_dims), (None, None, num_features)
        for embedding in (self.context_embedding, self.decoder_embedding):
            embedding.build(values, features)
        layers: list[keras.layers.Layer] = [*self.encoder, *self.distillings]
        for layer in (*layers, self.encoder_norm, self.decoder_norm):
            layer.build(inner)
        for layer in self.decoder:
            layer.build(inner, inner)
        self.output_dense = seeded_dense(
            self.y_dims, self.seed, 5, self.dtype_policy, "output", variance=FAN_IN_VARIANCE
        )
        self.output_dense.trainable = self.trainable
        self.output_dense.build(inner)

    def forecast_rows(
        self,
        values: tf.Tensor,
        context_features: tf.Tensor,
        target_features: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Runs encoder and decoder; see `DirectForecaster.forecast_rows`."""
        encoded = self.context_embedding(values, context_features, training=training)
        for number, layer in enumerate(self.encoder):
            encoded = layer(encoded, training=training)
            if number < len(self.distillings):
                encoded = self.distillings[number](encoded, training=training)
        encoded = self.encoder_norm(encoded)
        start, start_features = (
            split_rows(rows, self.num_context - self.num_start, axis=1)[1]
            for rows in (values, context_features)
        )
        zeros = tf.zeros([tf.shape(values)[0], self.num_target, self.y_dims])
        rows = tf.concat([start, zeros], axis=1)
        features = tf.concat([start_features, target_features], axis=1)
        rows.set_shape([values.shape[0], self.num_start + self.num_target, self.y_dims])
        features.set_shape([*rows.shape[:2], target_features.shape[-1]])
        decoded = self.decoder_embedding(rows, features, training=training)
        for layer in self.decoder:
            decoded = layer(decoded, encoded, training=training)
        forecast = split_rows(decoded, self.num_start, axis=1)[1]
        forecast = within_range(self.decoder_norm(forecast), self.compute_dtype)
        return tf.cast(apply_dense(self.output_dense, forecast), tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "factor": self.factor, "distilling": self.distilling}
