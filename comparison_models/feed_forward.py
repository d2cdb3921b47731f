"""Two layers that read each row by itself."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range
from taylorformer.model.layers.dropout import Dropout


@keras.saving.register_keras_serializable("taylorformer")
class FeedForward(keras.layers.Layer):
    """`Dropout(Dropout(gelu(rows W_1)) W_2)`: the feed-forward part of Autoformer and Informer.

    The authors write it as convolutions of width 1, without a bias in Autoformer (Wu et al., 2021)
    and with one in Informer (Zhou et al., 2021); that is the same. gelu is the exact one, with the
    error function.

    Example:
        >>> import tensorflow as tf
        >>> FeedForward(8, 3, seed=0)(tf.ones([2, 5, 3])).shape
        TensorShape([2, 5, 3])

    Args:
        hidden_width: width between the two layers.
        width: width of the output.
        dropout: rate of the dropout, in [0, 1).
        seed: for the first weights and the dropout. None: at random.
        use_bias: add a bias in both layers.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        hidden_width: int,
        width: int,
        dropout: float = 0.0,
        seed: int | None = None,
        use_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hidden_width = check_integer("hidden_width", hidden_width, 1)
        self.width = check_integer("width", width, 1)
        self.dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.use_bias = check_boolean("use_bias", use_bias)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        policy = self.dtype_policy
        self.hidden_dense, self.output_dense = (
            seeded_dense(units, seed, child, policy, name, self.use_bias, FAN_IN_VARIANCE)
            for child, (name, units) in enumerate(
                (("hidden", self.hidden_width), ("output", self.width))
            )
        )
        self.hidden_dropout, self.output_dropout = (
            Dropout(self.dropout, child_seed(seed, child), dtype=policy, name=f"{part}_dropout")
            for child, part in enumerate(("hidden", "output"), start=2)
        )

    def build(self, input_shape: Any) -> None:
        """Builds every child."""
        hidden, output = (None, None, self.hidden_width), (None, None, self.width)
        self.hidden_dense.build((None, None, input_shape[-1]))
        self.output_dense.build(hidden)
        self.hidden_dropout.build(hidden)
        self.output_dropout.build(output)
        self.built = True

    def call(self, rows: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Runs the layers.

        Args:
            rows: `[B, N, F]`.
            training: use dropout.

        Returns:
            `[B, N, width]` in the compute dtype.
        """
        dtype = self.compute_dtype
        hidden = tf.nn.gelu(apply_dense(self.hidden_dense, within_range(rows, dtype)))
        hidden = within_range(self.hidden_dropout(hidden, training=training), dtype)
        output = apply_dense(self.output_dense, hidden)
        return self.output_dropout(output, training=training)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_width": self.hidden_width,
            "width": self.width,
            "dropout": self.dropout,
            "seed": self.seed,
            "use_bias": self.use_bias,
        }
