"""Rows of an even series as vectors: values with their neighbours, and features of the time."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.circular_convolution import CircularConvolution
from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.data_wrangler.features.positional_encoding import PositionalEncoding
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range
from taylorformer.model.layers.dropout import Dropout

_LONGEST_PERIOD = 10_000.0
"""In rows over 2 pi, as in "Attention is all you need" (Vaswani et al., 2017)."""


@keras.saving.register_keras_serializable("taylorformer")
class ValueEmbedding(keras.layers.Layer):
    """Embeds the rows of a series on an even grid.

    `Dropout(CircularConvolution(values) + features W (+ positions))`: a convolution over three rows
    without a bias, a Dense layer without a bias for features of the time, and, for Informer (Zhou
    et al., 2021, appendix "The uniform input representation"), sines and cosines of the row
    number, which Autoformer (Wu et al., 2021) leaves out. First weights of the convolution have
    He's variance; those of the features are within one over the root of F, as in the authors'
    framework. Sums are float32 under every dtype policy.

    Example:
        >>> import tensorflow as tf
        >>> embedding = ValueEmbedding(width=8, seed=0)
        >>> embedding(tf.ones([2, 5, 1]), tf.ones([2, 5, 3])).shape
        TensorShape([2, 5, 8])
        >>> ValueEmbedding(width=8, seed=0)(tf.ones([2, 5, 1]), tf.ones([2, 5, 0])).shape
        TensorShape([2, 5, 8])

    Args:
        width: width of the output.
        dropout: rate of the dropout, in [0, 1).
        positional: add sines and cosines of the row number; `width` must then be even.
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        width: int,
        dropout: float = 0.0,
        positional: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.width = width = check_integer("width", width, 1)
        self.dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.positional = check_boolean("positional", positional)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        policy = self.dtype_policy
        self.value_convolution = CircularConvolution(
            width, variance=2.0, seed=child_seed(seed, 0), dtype=policy, name="values"
        )
        self.feature_dense = seeded_dense(
            width, seed, 1, policy, "features", use_bias=False, variance=FAN_IN_VARIANCE
        )
        self.position_encoding = (
            PositionalEncoding(width, 1.0, _LONGEST_PERIOD, dtype="float32", name="positions")
            if self.positional
            else None
        )
        self.sum_dropout = Dropout(
            self.dropout, seed=child_seed(seed, 2), dtype="float32", name="dropout"
        )

    def build(self, values_shape: Any, features_shape: Any) -> None:
        """Builds every child; there is no weight for features where there are none (F = 0)."""
        self.value_convolution.build(values_shape)
        if features_shape[-1]:
            self.feature_dense.build((None, None, features_shape[-1]))
        if self.position_encoding is not None:
            self.position_encoding.build((None, None, 1))
        self.sum_dropout.build((None, None, self.width))
        self.built = True

    def call(self, values: tf.Tensor, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Embeds rows.

        Args:
            values: `[B, N, D_y]`.
            features: `[B, N, F]`; F may be 0.
            training: use dropout.

        Returns:
            `[B, N, width]`, float32.
        """
        rows = tf.cast(self.value_convolution(values), tf.float32)
        if features.shape[-1]:
            features = within_range(features, self.compute_dtype)
            rows += tf.cast(apply_dense(self.feature_dense, features), tf.float32)
        if self.position_encoding is not None:
            numbers = tf.range(tf.shape(rows)[1], dtype=tf.float32)
            rows += self.position_encoding(numbers[tf.newaxis, :, tf.newaxis])
        return self.sum_dropout(rows, training=training)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "width": self.width,
            "dropout": self.dropout,
            "positional": self.positional,
            "seed": self.seed,
        }
