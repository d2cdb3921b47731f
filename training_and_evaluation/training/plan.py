"""The training plan of forecasters and experiments: steps, learning-rate schedule, optimizer."""

import dataclasses
from typing import Any

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_number,
    check_optional_integer,
)

SCHEDULES = ("constant", "cosine")
LARGEST_TRAINING_SEED = 2**31 - 1
"""Of a training: every generator of NumPy, TensorFlow and Keras reads 32-bit integers with sign."""


@dataclasses.dataclass(frozen=True)
class TrainingPlan:
    """The length of a training, and what its optimizer is made of.

    An epoch is what lies between two evaluations on the validation data. Reading a plan needs no
    TensorFlow; making its optimizer does.

    Example:
        >>> plan = TrainingPlan(32, 1e-3, "cosine", max_steps=1000, steps_per_epoch=300)
        >>> plan.num_epochs, plan.total_steps
        (4, 1200)
        >>> rate = plan.make_schedule()
        >>> [round(float(rate(step)), 6) for step in (0, 600, 1200)]
        [0.001, 0.0005, 0.0]

    Attributes:
        batch_size: B in training.
        learning_rate: of Adam, at the start.
        schedule: "constant", or "cosine": the learning rate falls to 0 over all steps.
        max_steps: training steps at most. A number that does not divide into epochs is rounded up.
        steps_per_epoch: training steps of an epoch, if there are so many.
        patience: training stops after so many epochs without a better validation score. None: it
            never stops early.

    Raises:
        TypeError, ValueError: a value outside its range.
    """

    batch_size: int
    learning_rate: float
    schedule: str
    max_steps: int
    steps_per_epoch: int
    patience: int | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "learning_rate": check_number("learning_rate", self.learning_rate, above=0),
            "schedule": check_choice("schedule", self.schedule, SCHEDULES),
            "patience": check_optional_integer("patience", self.patience, 1),
        }
        for name in ("batch_size", "max_steps", "steps_per_epoch"):
            checked[name] = check_integer(name, getattr(self, name), 1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def epoch_steps(self) -> int:
        """Training steps of an epoch: never more than there are in all."""
        return min(self.steps_per_epoch, self.max_steps)

    @property
    def num_epochs(self) -> int:
        """Epochs, if training does not stop early."""
        return -(-self.max_steps // self.epoch_steps)

    @property
    def total_steps(self) -> int:
        """Training steps of all epochs, if training does not stop early."""
        return self.num_epochs * self.epoch_steps

    @property
    def length_matters(self) -> bool:
        """Whether a longer training takes other steps, rather than the same ones and then more."""
        return self.schedule != "constant"

    def make_schedule(self) -> Any:
        """Makes the learning rate: a number, or a Keras `LearningRateSchedule`."""
        import keras

        if self.schedule == "constant":
            return self.learning_rate
        return keras.optimizers.schedules.CosineDecay(self.learning_rate, self.total_steps)

    def make_optimizer(self) -> Any:
        """Makes a Keras Adam that follows the schedule and clips gradients by their global norm."""
        import keras

        from taylorformer.model.probabilistic_model import GLOBAL_CLIPNORM

        return keras.optimizers.Adam(self.make_schedule(), global_clipnorm=GLOBAL_CLIPNORM)
