"""Presets for forecasting, the paper's among them: arguments of a model and how it is trained."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import check_choice, check_integer, plain_number
from taylorformer.data_wrangler.tables.scaler import SCALINGS
from taylorformer.training_and_evaluation.training.plan import TrainingPlan

_MODEL_ARGUMENTS = (
    "num_heads",
    "head_dim",
    "width",
    "num_layers",
    "dropout",
    "encoding_dim",
    "shortest",
    "longest",
    "taylor_order",
    "feature_order",
    "num_neighbours",
)
_PLAN_FIELDS = (
    "batch_size",
    "learning_rate",
    "schedule",
    "max_steps",
    "steps_per_epoch",
    "patience",
)


@dataclasses.dataclass(frozen=True)
class ForecastPreset:
    """The arguments of a Taylorformer and how it is trained.

    Example:
        >>> mine = ForecastPreset("mine", width=16, max_steps=100, steps_per_epoch=25)
        >>> mine.model_arguments["width"], mine.plan.num_epochs
        (16, 4)
        >>> ForecastPreset.from_config(mine.get_config()) == mine
        True

    Attributes:
        name: what it is called.
        num_heads: see `Taylorformer`, as the following up to `num_neighbours`.
        head_dim: width of one head.
        width: width of the towers.
        num_layers: layers of each tower.
        dropout: rate of the dropout.
        encoding_dim: E.
        shortest: of the positional encoding.
        longest: of the positional encoding.
        taylor_order: p, or None.
        feature_order: q.
        num_neighbours: K, or None.
        scaling: "window" or "standard", see `WindowScaler`.
        batch_size: B in training.
        learning_rate: of Adam at the start.
        schedule: "constant", or "cosine": the learning rate falls to 0 over `max_steps`.
        max_steps: training steps, unless training stops early. The last epoch is shorter where they
            do not divide into epochs.
        steps_per_epoch: training steps from one evaluation on the validation windows to the next.
        patience: training stops after so many epochs without a better validation score. None: it
            never stops early. The weights that are kept are the best ones in either case.
        max_validation_windows: at most this many are evaluated, evenly spaced.

    Raises:
        TypeError, ValueError: a value outside its range.
    """

    name: str
    num_heads: int = 6
    head_dim: int = 11
    width: int = 32
    num_layers: int = 4
    dropout: float = 0.05
    encoding_dim: int = 32
    shortest: float = 0.1
    longest: float = 1.0
    taylor_order: int | None = 0
    feature_order: int = 1
    num_neighbours: int | None = None
    scaling: str = "window"
    batch_size: int = 32
    learning_rate: float = 3e-4
    schedule: str = "constant"
    max_steps: int = 40_000
    steps_per_epoch: int = 200
    patience: int | None = None
    max_validation_windows: int = 256

    def __post_init__(self) -> None:
        check_choice("scaling", self.scaling, SCALINGS)
        check_integer("max_validation_windows", self.max_validation_windows, 1)
        plan = self.plan  # which checks the rest
        for field in dataclasses.fields(self):
            value = getattr(plan if field.name in _PLAN_FIELDS else self, field.name)
            object.__setattr__(self, field.name, plain_number(value))

    @property
    def model_arguments(self) -> dict[str, Any]:
        """The arguments of `Taylorformer`."""
        return {name: getattr(self, name) for name in _MODEL_ARGUMENTS}

    @property
    def plan(self) -> TrainingPlan:
        """How long the model is trained, and with what optimizer."""
        return TrainingPlan(**{name: getattr(self, name) for name in _PLAN_FIELDS})

    def get_config(self) -> dict[str, Any]:
        """Returns all values, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ForecastPreset":
        """Makes a preset from the values returned by `get_config`."""
        return cls(**config)


_ALL = (
    ForecastPreset(
        "compact",
        num_heads=4,
        head_dim=8,
        num_layers=3,
        learning_rate=1e-3,
        schedule="cosine",
        max_steps=2000,
        steps_per_epoch=50,
        patience=15,
    ),
    # The next three are those of the paper.
    ForecastPreset("ett", scaling="standard"),
    ForecastPreset("exchange", num_heads=8, head_dim=12, num_layers=3, scaling="standard"),
    ForecastPreset("electricity", head_dim=17, width=48, dropout=0.25, scaling="standard"),
)

PRESETS: Mapping[str, ForecastPreset] = {preset.name: preset for preset in _ALL}
"""For your data "compact", which two processor cores train in minutes; "ett", "exchange" and
"electricity" are those of the paper's experiments."""


def find_preset(preset: str | ForecastPreset) -> ForecastPreset:
    """Looks a preset up by its name; returns a preset as it is.

    Raises:
        ValueError: an unknown name.
    """
    if isinstance(preset, ForecastPreset):
        return preset
    check_choice("preset", preset, tuple(PRESETS))
    return PRESETS[preset]
