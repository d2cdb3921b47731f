"""The training plan of forecasters and experiments: steps, learning-rate schedule, optimizer."""

import dataclasses
from typing import Any, NamedTuple

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_number,
    check_optional_integer,
)

SCHEDULES = ("constant", "cosine")
OPTIMIZERS = ("adam", "muon")
# The learning rate at the start of a warm-up, as a share of its peak.
_FIRST_RATE = 0.01
LARGEST_TRAINING_SEED = 2**31 - 1
"""Of a training: every generator of NumPy, TensorFlow and Keras reads 32-bit integers with sign."""


class EpochRun(NamedTuple):
    """Epochs of one length that follow one another.

    Attributes:
        num_epochs: how many.
        epoch_steps: training steps of each.
    """

    num_epochs: int
    epoch_steps: int


@dataclasses.dataclass(frozen=True)
class TrainingPlan:
    """The length of a training, and what its optimizer is made of.

    An epoch is what lies between two evaluations on the validation data. Reading a plan needs no
    TensorFlow; making its optimizer does.

    Example:
        >>> plan = TrainingPlan(32, 1e-3, "cosine", max_steps=1000, steps_per_epoch=300)
        >>> plan.num_epochs, plan.total_steps
        (4, 1000)
        >>> rate = plan.make_schedule()
        >>> [round(float(rate(step)), 6) for step in (0, 500, 1000)]
        [0.001, 0.0005, 0.0]

    Attributes:
        batch_size: B in training.
        learning_rate: of Adam, at the start.
        schedule: "constant", or "cosine": the learning rate falls to 0 over all steps.
        max_steps: training steps, unless training stops early. The last epoch is shorter where they
            do not divide into epochs.
        steps_per_epoch: training steps of an epoch, if there are so many.
        patience: training stops after so many epochs without a better validation score. None: it
            never stops early.
        warm_up_steps: first steps, in which the learning rate rises from 1 % of its value.
        weight_decay: of AdamW, or of Muon; 0: Adam, or Muon without.
        beta_2: of Adam.
        clip_norm: the largest global norm of a gradient. None: that of `default_optimizer`.
        average: the decay per step of a running average of the weights, which is validated and
            kept instead of the weights themselves. None: no average.
        keep_last: whether the weights that are kept are the last ones, not those with the best
            validation score: where the learning rate falls to 0, and the score is noisy.
        record_norms: whether the optimizer keeps the average norm of the gradients, before they
            are clipped, see `GradientNorms`.
        optimizer: "adam", or "muon", see `make_muon`.

    Raises:
        TypeError, ValueError: a value outside its range.
    """

    batch_size: int
    learning_rate: float
    schedule: str
    max_steps: int
    steps_per_epoch: int
    patience: int | None = None
    warm_up_steps: int = 0
    weight_decay: float = 0.0
    beta_2: float = 0.999
    clip_norm: float | None = None
    average: float | None = None
    keep_last: bool = False
    record_norms: bool = False
    optimizer: str = "adam"

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "learning_rate": check_number("learning_rate", self.learning_rate, above=0),
            "schedule": check_choice("schedule", self.schedule, SCHEDULES),
            "optimizer": check_choice("optimizer", self.optimizer, OPTIMIZERS),
            "patience": check_optional_integer("patience", self.patience, 1),
        }
        for name in ("batch_size", "max_steps", "steps_per_epoch"):
            checked[name] = check_integer(name, getattr(self, name), 1)
        checked["warm_up_steps"] = check_integer(
            "warm_up_steps", self.warm_up_steps, 0, checked["max_steps"] - 1
        )
        checked["weight_decay"] = check_number("weight_decay", self.weight_decay, minimum=0)
        checked["beta_2"] = check_number("beta_2", self.beta_2, above=0, below=1)
        if self.clip_norm is not None:
            checked["clip_norm"] = check_number("clip_norm", self.clip_norm, above=0)
        if self.average is not None:
            checked["average"] = check_number("average", self.average, above=0, below=1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def epoch_steps(self) -> int:
        """Training steps of an epoch: never more than there are in all. The last may have fewer."""
        return min(self.steps_per_epoch, self.max_steps)

    @property
    def num_epochs(self) -> int:
        """Epochs, if training does not stop early."""
        return -(-self.max_steps // self.epoch_steps)

    @property
    def total_steps(self) -> int:
        """Training steps of all epochs, if training does not stop early."""
        return self.max_steps

    def epochs_after(self, step: int) -> list[EpochRun]:
        """Returns the epochs that are left after so many training steps.

        Epochs end at multiples of `epoch_steps`, and the last one at `total_steps`. So the epoch
        after a last one that was shorter, of a training that is made longer, is short too.

        Example:
            >>> plan = TrainingPlan(32, 1e-3, "constant", max_steps=1000, steps_per_epoch=300)
            >>> [tuple(run) for run in plan.epochs_after(250)]
            [(1, 50), (2, 300), (1, 100)]
        """
        size, end = self.epoch_steps, self.total_steps
        next_border = min(-(-step // size) * size, end)
        whole, rest = divmod(end - next_border, size)
        runs = [EpochRun(1, next_border - step), EpochRun(whole, size), EpochRun(1, rest)]
        return [run for run in runs if run.num_epochs > 0 and run.epoch_steps > 0]

    @property
    def length_matters(self) -> bool:
        """Whether a longer training takes other steps, rather than the same ones and then more."""
        return self.schedule != "constant"

    def make_schedule(self) -> Any:
        """Makes the learning rate: a number, or a Keras `LearningRateSchedule`."""
        import keras

        rate, warm_up = self.learning_rate, self.warm_up_steps
        if self.schedule == "constant" and not warm_up:
            return rate
        if not warm_up:
            return keras.optimizers.schedules.CosineDecay(rate, self.total_steps)
        if self.schedule == "constant":
            return keras.optimizers.schedules.PolynomialDecay(_FIRST_RATE * rate, warm_up, rate)
        return keras.optimizers.schedules.CosineDecay(
            _FIRST_RATE * rate,
            self.total_steps - warm_up,
            warmup_target=rate,
            warmup_steps=warm_up,
        )

    def make_optimizer(self) -> Any:
        """Makes a Keras optimizer that follows the schedule and clips gradients.

        Raises:
            RuntimeError: `optimizer` is "muon", and this version of Keras has none.
        """
        import keras

        from taylorformer.model.probabilistic_model import GLOBAL_CLIPNORM
        from taylorformer.training_and_evaluation.training.gradient_norms import NormAdamW

        clip = GLOBAL_CLIPNORM if self.clip_norm is None else self.clip_norm
        arguments: dict[str, Any] = {"beta_2": self.beta_2, "global_clipnorm": clip}
        if self.average is not None:
            arguments |= {"use_ema": True, "ema_momentum": self.average}
        if self.optimizer == "muon":
            from taylorformer.training_and_evaluation.training.muon import make_muon

            return make_muon(
                self.make_schedule(),
                self.weight_decay,
                measures_norms=self.record_norms,
                **arguments,
            )
        if not (self.weight_decay or self.record_norms):
            return keras.optimizers.Adam(self.make_schedule(), **arguments)
        kind = NormAdamW if self.record_norms else keras.optimizers.AdamW
        return kind(self.make_schedule(), weight_decay=self.weight_decay, **arguments)
