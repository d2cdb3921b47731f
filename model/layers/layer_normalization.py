"""Layer normalisation with a gradient that is written by hand.

Keras composes it of a dozen operations that each read and write all rows, and TensorFlow
differentiates them one by one, in two dozen more: a training step took a tenth longer.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_number
from taylorformer.model.keras_private import sum_of_rows

_Gradients = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


@keras.saving.register_keras_serializable("taylorformer")
class LayerNormalization(keras.layers.LayerNormalization):
    """Normalises the last axis to mean 0 and variance 1, then multiplies by gamma and adds beta.

    (Ba et al., "Layer normalization", 2016.) It stands in for `keras.layers.LayerNormalization`,
    whose weights it keeps, and is quicker. First and second gradients work. Half precision is
    normalised in float32.

    Example:
        >>> import tensorflow as tf
        >>> layer = LayerNormalization(epsilon=1e-6)
        >>> [f"{number:.3f}" for number in layer(tf.constant([[1.0, 2.0, 3.0]])).numpy()[0]]
        ['-1.225', '0.000', '1.225']

    Args:
        epsilon: added to the variance, at least 0.

    Raises:
        TypeError, ValueError: `epsilon` is no number of at least 0.
    """

    def __init__(self, epsilon: float = 1e-3, **kwargs: Any) -> None:
        epsilon = check_number("epsilon", epsilon, minimum=0)
        super().__init__(axis=-1, epsilon=epsilon, center=True, scale=True, **kwargs)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the same shape in the compute dtype.

        Args:
            inputs: `[.., F]`, floating point, with one axis or more before the last.
        """
        dtype = tf.float64 if inputs.dtype == tf.float64 else tf.float32
        values, gamma, beta = (tf.cast(part, dtype) for part in (inputs, self.gamma, self.beta))
        return tf.cast(_normalize(values, gamma, beta, self.epsilon), self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in ("axis", "center", "scale", "rms_scaling"):
            config.pop(name, None)
        return config


def _normalize(values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    @tf.custom_gradient
    def normalization(
        values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Gradients]]:
        normal, factor = _standardized(values, epsilon)

        def gradient(upstream: tf.Tensor) -> _Gradients:
            # Another function, because `normal` and `factor` are constants to TensorFlow: the
            # formula is made anew to be differentiated.
            def fast(
                values: tf.Tensor, gamma: tf.Tensor, upstream: tf.Tensor
            ) -> tuple[_Gradients, Callable[..., list[tf.Tensor]]]:
                def second(*upstreams: tf.Tensor) -> list[tf.Tensor]:
                    inputs = [values, gamma, upstream]
                    with tf.GradientTape() as tape:
                        tape.watch(inputs)
                        outputs = _gradients(*_standardized(values, epsilon), gamma, upstream)
                    return tape.gradient(
                        outputs,
                        inputs,
                        output_gradients=list(upstreams),
                        unconnected_gradients=tf.UnconnectedGradients.ZERO,
                    )

                return _gradients(normal, factor, gamma, upstream), second

            return tf.custom_gradient(fast)(values, gamma, upstream)

        return normal * gamma + beta, gradient

    return normalization(values, gamma, beta)


def _standardized(values: tf.Tensor, epsilon: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the values with mean 0 and variance 1, and the factor `[.., 1]` that makes it 1."""
    centered = values - tf.reduce_mean(values, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    factor = tf.math.rsqrt(variance + epsilon)
    return centered * factor, factor


def _gradients(
    normal: tf.Tensor, factor: tf.Tensor, gamma: tf.Tensor, upstream: tf.Tensor
) -> _Gradients:
    """Returns the gradients of values, gamma and beta."""
    of_normal = upstream * gamma
    mean = tf.reduce_mean(of_normal, axis=-1, keepdims=True)
    slope = tf.reduce_mean(of_normal * normal, axis=-1, keepdims=True)
    of_values = factor * (of_normal - mean - normal * slope)
    return of_values, sum_of_rows(upstream * normal), sum_of_rows(upstream)
