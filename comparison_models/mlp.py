"""A stack of Dense layers, from which the neural processes are built."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer
from taylorformer.model.layers.dense import apply_dense, seeded_dense, within_range


@keras.saving.register_keras_serializable("taylorformer")
class MLP(keras.layers.Layer):
    """Dense layers with ReLU between them, and none after the last one.

    Example:
        >>> import tensorflow as tf
        >>> MLP(8, num_layers=3, output_width=2, seed=0)(tf.ones([1, 5, 4])).shape
        TensorShape([1, 5, 2])

    Args:
        width: width of every layer but the last.
        num_layers: how many Dense layers.
        output_width: width of the last layer. None: `width`.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        width: int,
        num_layers: int,
        output_width: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.width = width = check_integer("width", width, 1)
        self.num_layers = num_layers = check_integer("num_layers", num_layers, 1)
        self.output_width = check_optional_integer("output_width", output_width, 1)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        last = width if self.output_width is None else self.output_width
        self.denses = [
            seeded_dense(
                last if number == num_layers - 1 else width,
                seed,
                number,
                self.dtype_policy,
                f"dense_{number}",
            )
            for number in range(num_layers)
        ]

    def build(self, input_shape: Any) -> None:
        """Builds every Dense layer from the last size of the input."""
        for number, dense in enumerate(self.denses):
            dense.build((None, None, input_shape[-1] if number == 0 else self.width))
        self.built = True

    def call(self, values: tf.Tensor) -> tf.Tensor:
        """Runs the stack on the rows of `[B, N, F]`.

        Returns:
            `[B, N, output_width]` in the compute dtype.
        """
        for number, dense in enumerate(self.denses):
            if number > 0:
                values = tf.nn.relu(values)
            values = apply_dense(dense, within_range(values, self.compute_dtype))
        return values

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "width": self.width,
            "num_layers": self.num_layers,
            "output_width": self.output_width,
            "seed": self.seed,
        }
