"""A convolution over time whose ends meet."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range


@keras.saving.register_keras_serializable("taylorformer")
class CircularConvolution(keras.layers.Layer):
    """Reads each row with the one before and the one after it; the first follows the last.

    `output_t = [rows_{t-1}, rows_t, rows_{t+1}] W (+ b)`, t modulo N: the kernel of width 3 with
    circular padding of Informer (Zhou et al., 2021, appendix "The uniform input representation")
    and Autoformer (Wu et al., 2021).

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 5, 3], seed=(1, 2))
        >>> layer = CircularConvolution(4, seed=0)
        >>> layer(rows).shape
        TensorShape([2, 5, 4])
        >>> turned = layer(tf.roll(rows, 2, axis=1))
        >>> bool(tf.reduce_all(tf.abs(turned - tf.roll(layer(rows), 2, axis=1)) < 1e-5))
        True

    Args:
        width: width of the output.
        use_bias: add b.
        variance: first weights are uniform with this variance over the number of inputs, 3 F: 2
            is He's, 1/3 that of weights within one over the root of the number of inputs.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        width: int,
        use_bias: bool = False,
        variance: float = FAN_IN_VARIANCE,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.width = width = check_integer("width", width, 1)
        self.use_bias = use_bias = check_boolean("use_bias", use_bias)
        self.variance = variance = check_number("variance", variance, above=0)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        self.dense = seeded_dense(width, seed, 0, self.dtype_policy, "dense", use_bias, variance)

    def build(self, input_shape: Any) -> None:
        """Makes the weights, `[3 F, width]`, from the last size of the input."""
        self.dense.build((None, None, 3 * input_shape[-1]))
        self.built = True

    def call(self, rows: tf.Tensor) -> tf.Tensor:
        """Convolves `[B, N, F]` over N.

        Returns:
            `[B, N, width]` in the compute dtype.
        """
        rows = tf.convert_to_tensor(rows)
        neighbours = [tf.roll(rows, 1, axis=1), rows, tf.roll(rows, -1, axis=1)]
        joined = tf.concat(neighbours, axis=-1)
        return apply_dense(self.dense, within_range(joined, self.compute_dtype))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "width": self.width,
            "use_bias": self.use_bias,
            "variance": self.variance,
            "seed": self.seed,
        }
