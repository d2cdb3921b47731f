"""Layer normalisation without what stays the same over time."""

from typing import Any

import keras
import tensorflow as tf

_EPSILON = 1e-5


@keras.saving.register_keras_serializable("taylorformer")
class SeasonalLayerNorm(keras.layers.Layer):
    """Normalises each row, then subtracts the mean over time of each column.

    It is the last layer of the encoder and of the decoder of Autoformer, in the authors' code (Wu
    et al., 2021). There the layer normalisation has a shift, too, which the subtraction takes out
    again; here it has a factor alone. float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> rows = SeasonalLayerNorm()(tf.random.stateless_normal([2, 5, 4], seed=(1, 2)))
        >>> bool(tf.reduce_all(tf.abs(tf.reduce_mean(rows, axis=1)) < 1e-6))
        True
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.norm = keras.layers.LayerNormalization(
            epsilon=_EPSILON, center=False, dtype="float32", name="norm"
        )

    def build(self, input_shape: Any) -> None:
        """Makes one factor for each column."""
        self.norm.build((None, None, input_shape[-1]))
        self.built = True

    def call(self, rows: tf.Tensor) -> tf.Tensor:
        """Normalises `[B, N, F]`; returns the same shape, float32."""
        rows = self.norm(tf.cast(rows, tf.float32))
        return rows - tf.reduce_mean(rows, axis=1, keepdims=True)
