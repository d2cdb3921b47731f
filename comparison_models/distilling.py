"""Distilling between the layers of the Informer's encoder: half as many rows."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.circular_convolution import CircularConvolution
from taylorformer.comparison_models.row_widths import check_width
from taylorformer.data_wrangler.checks import check_integer, check_optional_integer
from taylorformer.data_wrangler.features.masked_normalization import MaskedBatchNormalization
from taylorformer.data_wrangler.seeds import child_seed

_MOMENTUM = 0.9
_EPSILON = 1e-5
_POOLED = 3
"""How many rows of the convolution one row of the output is the largest of."""


@keras.saving.register_keras_serializable("taylorformer")
class Distilling(keras.layers.Layer):
    """Halves the length: convolution, batch normalisation, ELU and max-pooling.

    The convolution of three rows is circular: the first row and the last one are neighbours. Row i
    of the output is the largest of rows 2 i - 1, 2 i and 2 i + 1, as far as they exist (Zhou et
    al., "Informer", 2021, section "Self-attention distilling"; batch normalisation and padding as
    in the authors' code). Normalisation and what follows are float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 7, 4], seed=(1, 2))
        >>> Distilling(width=4, seed=0)(rows).shape
        TensorShape([2, 4, 4])

    Args:
        width: width of input and output.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(self, width: int, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.width = width = check_integer("width", width, 1)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        self.convolution = CircularConvolution(
            width,
            use_bias=True,
            seed=child_seed(seed, 0),
            dtype=self.dtype_policy,
            name="convolution",
        )
        self.norm = MaskedBatchNormalization(momentum=_MOMENTUM, epsilon=_EPSILON, name="norm")

    def build(self, input_shape: Any) -> None:
        """Builds convolution and normalisation.

        Raises:
            ValueError: the input must be `width` wide.
        """
        check_width("rows", input_shape, self.width)
        self.convolution.build((None, None, self.width))
        self.norm.build((None, None, self.width))
        self.built = True

    def call(self, rows: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs the layer.

        Args:
            rows: `[B, N, width]`.
            training: normalise by the statistics of the batch, and move those that are kept.

        Returns:
            `[B, ceil(N / 2), width]`, float32.
        """
        hidden = tf.cast(self.convolution(rows), tf.float32)
        every = tf.ones(tf.shape(hidden)[:2], tf.bool)
        hidden = tf.nn.elu(self.norm(hidden, every, training=training))
        hidden = tf.pad(hidden, [[0, 0], [1, 1], [0, 0]], constant_values=tf.float32.min)
        return tf.nn.max_pool1d(hidden, ksize=_POOLED, strides=2, padding="VALID")

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "width": self.width, "seed": self.seed}
