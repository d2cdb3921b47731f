"""Positional encoding of a continuous x (paper, appendix "Embedding")."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_number


@keras.saving.register_keras_serializable("taylorformer")
class PositionalEncoding(keras.layers.Layer):
    """Sines and cosines of a continuous x, of each input dimension separately.

    For an input dimension the encoding holds the sine and the cosine of
    `(x / shortest) / (longest / shortest)^(2 i / E)`, i = 0 .. E/2 - 1: all sines first, then all
    cosines. x is used as it is, without rounding, and always in float32.

    Example:
        >>> import tensorflow as tf
        >>> encoded = PositionalEncoding(width=4)(tf.constant([[[0.0], [0.1]]]))
        >>> [[f"{number:.2f}" for number in point] for point in encoded[0]]
        [['0.00', '0.00', '1.00', '1.00'], ['0.84', '0.31', '0.54', '0.95']]

    Args:
        width: E, the even number of features of one input dimension.
        shortest: delta_t of the paper, the length of the quickest wave over 2 pi, in units of x.
        longest: t_max of the paper, in units of x.

    Raises:
        ValueError: `width` is odd or below 2, or `shortest` and `longest` are not positive.
    """

    def __init__(
        self, width: int = 32, shortest: float = 0.1, longest: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.width = check_integer("width", width, 2)
        if self.width % 2:
            raise ValueError(f"`width` must be even. Received: width={width}")
        self.shortest = check_number("shortest", shortest, above=0)
        self.longest = check_number("longest", longest, above=0)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Encodes x `[..., D_x]` as `[..., D_x E]`."""
        x = tf.cast(x, tf.float32)
        exponents = tf.range(self.width // 2, dtype=tf.float32) * (2.0 / self.width)
        periods = tf.pow(tf.constant(self.longest / self.shortest, tf.float32), exponents)
        angles = (x / self.shortest)[..., tf.newaxis] / periods
        waves = tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
        shape = tf.concat([tf.shape(x)[:-1], [x.shape[-1] * self.width]], axis=0)
        encoded = tf.reshape(waves, shape)
        encoded.set_shape([*x.shape[:-1], x.shape[-1] * self.width])
        return encoded

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "width": self.width,
            "shortest": self.shortest,
            "longest": self.longest,
        }
