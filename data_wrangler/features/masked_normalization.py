"""Batch normalisation whose statistics come from chosen points only."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_number


@keras.saving.register_keras_serializable("taylorformer")
class MaskedBatchNormalization(keras.layers.Layer):
    """Normalises `[B, N, C]` by statistics of the points that a mask names.

    Derivative features are normalised with it: their batch statistics come from observed
    context points alone, because statistics over targets would leak them in training.
    `keras.layers.BatchNormalization` moves its statistics towards 0 when its mask is False
    everywhere; here the moving statistics are then used, and stay what they are.

    Example:
        In training the first two points, which the mask names, get mean 0:

        >>> import tensorflow as tf
        >>> layer = MaskedBatchNormalization()
        >>> points = tf.constant([[[1.0], [3.0], [100.0]]])
        >>> mask = tf.constant([[True, True, False]])
        >>> layer(points, mask, training=True).numpy().ravel().round().tolist()
        [-1.0, 1.0, 98.0]

    Args:
        momentum: the share that a moving statistic keeps in one training step, in [0, 1).
        epsilon: added to the variance.

    Raises:
        ValueError: `momentum` or `epsilon` outside their ranges.
    """

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-3, **kwargs: Any) -> None:
        kwargs["dtype"] = "float32"
        super().__init__(autocast=False, **kwargs)
        self.momentum = check_number("momentum", momentum, minimum=0, below=1)
        self.epsilon = check_number("epsilon", epsilon, above=0)

    def build(self, input_shape: Any) -> None:
        """Makes gamma, beta and the moving statistics, one number a channel."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(shape=shape, initializer="ones", name="gamma")
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta")
        self.moving_mean = self.add_weight(
            shape=shape,
            initializer="zeros",
            name="moving_mean",
            trainable=False,
            aggregation="mean",
        )
        self.moving_variance = self.add_weight(
            shape=shape,
            initializer="ones",
            name="moving_variance",
            trainable=False,
            aggregation="mean",
        )
        self.built = True

    def call(
        self, inputs: tf.Tensor, statistics_mask: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Normalises the inputs.

        Args:
            inputs: `[B, N, C]`; every entry must be finite.
            statistics_mask: `[B, N]` bool, the points that make the batch statistics.
            training: use and move batch statistics; otherwise use the moving ones.

        Returns:
            `[B, N, C]`, float32.
        """
        mean, variance = self.moving_mean.value, self.moving_variance.value
        if training:
            batch_mean, batch_variance, has_points = self._batch_statistics(inputs, statistics_mask)
            for moving, batch in (
                (self.moving_mean, batch_mean),
                (self.moving_variance, batch_variance),
            ):
                moved = self.momentum * moving.value + (1 - self.momentum) * batch
                moving.assign(tf.where(has_points, moved, moving.value))
            mean = tf.where(has_points, batch_mean, mean)
            variance = tf.where(has_points, batch_variance, variance)
        scale = tf.math.rsqrt(variance + self.epsilon) * self.gamma.value
        return (inputs - mean) * scale + self.beta.value

    @staticmethod
    def _batch_statistics(
        inputs: tf.Tensor, statistics_mask: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        weights = tf.cast(statistics_mask, tf.float32)[..., tf.newaxis]
        count = tf.reduce_sum(weights)
        mean = tf.math.divide_no_nan(tf.reduce_sum(weights * inputs, axis=[0, 1]), count)
        deviations = weights * tf.square(inputs - mean)
        variance = tf.math.divide_no_nan(tf.reduce_sum(deviations, axis=[0, 1]), count)
        return mean, variance, count > 0

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        return {**config, "momentum": self.momentum, "epsilon": self.epsilon}
