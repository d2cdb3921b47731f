"""The density of what was observed, and the observation that a drawn y stands for."""

import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.data_wrangler.tables.array_ops import tensorflow_ops
from taylorformer.data_wrangler.tables.scaled_support import ScaledSupport


def observed_log_prob(
    mean: tf.Tensor, scale: tf.Tensor, y: tf.Tensor, y_support: tf.Tensor | None
) -> tf.Tensor:
    """Returns the log density of y under normal distributions, or log probabilities of cells.

    Args:
        mean: `[..., B, N_T, D_y]`.
        scale: `[..., B, N_T, D_y]`, standard deviations.
        y: `[B, N_T, D_y]`.
        y_support: `[B, D_y, 6]` of the data contract, or None.

    Returns:
        `[..., B, N_T, D_y]` float32.
    """
    if y_support is None:
        return tfp.distributions.Normal(mean, scale).log_prob(y)
    support = ScaledSupport.from_parts(y_support[:, tf.newaxis], tensorflow_ops())
    return tf.cast(support.log_prob(mean, scale, y), tf.float32)


def observable(y: tf.Tensor, y_support: tf.Tensor | None) -> tf.Tensor:
    """Returns drawn y as they would be read if they had been observed.

    Args:
        y: `[.., D_y]`, float32.
        y_support: `[.., D_y, 6]` of the data contract, which broadcasts to `[*y.shape, 6]`. None: y
            is returned as it is.
    """
    if y_support is None:
        return y
    return ScaledSupport.from_parts(y_support, tensorflow_ops()).snap(y)
