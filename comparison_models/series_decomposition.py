"""A series as the sum of a slow trend and the rest."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer


@keras.saving.register_keras_serializable("taylorformer")
class SeriesDecomposition(keras.layers.Layer):
    """Splits a series into a trend and the rest, which repeats itself more or less: the seasonal.

    The trend is the centred moving average over time, for which the first and the last row are
    repeated beyond the ends; `seasonal = rows - trend` (Wu et al., "Autoformer", 2021, equation 1).
    It has no weights, and is float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.constant([[[0.0], [3.0], [0.0], [3.0]]])
        >>> seasonal, trend = SeriesDecomposition(kernel_size=3)(rows)
        >>> [float(row[0]) for row in trend[0]], [float(row[0]) for row in seasonal[0]]
        ([1.0, 1.0, 2.0, 2.0], [-1.0, 2.0, -2.0, 1.0])

    Args:
        kernel_size: how many rows are averaged, an odd number: a window of an even number of rows
            has no row in its middle.

    Raises:
        TypeError, ValueError: `kernel_size` is no odd positive integer.
    """

    def __init__(self, kernel_size: int = 25, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.kernel_size = check_integer("kernel_size", kernel_size, 1)
        if self.kernel_size % 2 == 0:
            raise ValueError(f"`kernel_size` must be odd. Received: kernel_size={self.kernel_size}")

    def call(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Splits `[B, N, F]` by a moving average over N, N at least 1.

        Returns:
            seasonal and trend, `[B, N, F]` each, float32.
        """
        rows = tf.cast(rows, tf.float32)
        beyond = self.kernel_size // 2
        length = tf.shape(rows)[1] if rows.shape[1] is None else rows.shape[1]
        before, after = (
            tf.tile(tf.slice(rows, [0, row, 0], [-1, 1, -1]), [1, beyond, 1])
            for row in (0, length - 1)
        )
        padded = tf.concat([before, rows, after], axis=1)
        trend = tf.nn.avg_pool1d(padded, self.kernel_size, strides=1, padding="VALID")
        trend = tf.ensure_shape(trend, rows.shape)
        return rows - trend, trend

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "kernel_size": self.kernel_size}
