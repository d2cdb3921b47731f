"""The size of the gradients on record: optimizers that measure it, a callback that reads it."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

NAME = "gradient_norm"
"""What the average norm of an epoch is called in logs and in the history."""


class MeasuresNorms(keras.optimizers.Optimizer):
    """Adds up the global norms of the gradients, before the optimizer clips them."""

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the state: that of the optimizer, and the sum of the norms and their number."""
        if not self.built:
            self.norm_total = self.add_variable((), name="norm_total", dtype="float32")
            self.norm_count = self.add_variable((), name="norm_count", dtype="float32")
        super().build(variables)

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        """Changes the weights once, see Keras; the norm of the gradients is added to the sum."""
        if not self.built and trainable_variables is not None:
            self.build(list(trainable_variables))
        norm = tf.linalg.global_norm([grad for grad in grads if grad is not None])
        self.norm_total.assign_add(tf.where(tf.math.is_finite(norm), norm, 0.0))
        self.norm_count.assign_add(1.0)
        super().apply(grads, trainable_variables)

    def average_norm(self) -> float:
        """Returns the average since the last call, and starts anew; NaN where there was no step."""
        total, count = float(self.norm_total.numpy()), float(self.norm_count.numpy())
        self.norm_total.assign(0.0)
        self.norm_count.assign(0.0)
        return total / count if count else float("nan")


@keras.saving.register_keras_serializable("taylorformer")
class NormAdamW(MeasuresNorms, keras.optimizers.AdamW):
    """AdamW that adds up the global norms of the gradients, before they are clipped.

    Example:
        >>> weight = keras.Variable([3.0])
        >>> optimizer = NormAdamW(0.1)
        >>> optimizer.apply([tf.constant([2.0])], [weight])
        >>> optimizer.average_norm()
        2.0
    """


class GradientNorms(keras.callbacks.Callback):
    """Puts the average norm of the gradients of each epoch into the logs."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds it as `gradient_norm`, where the optimizer measures it."""
        if logs is not None and isinstance(self.model.optimizer, MeasuresNorms):
            logs[NAME] = self.model.optimizer.average_norm()
