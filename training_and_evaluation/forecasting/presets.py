"""Networks and training plans for forecasting, as data."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.tables.scaler import SCALINGS

SCHEDULES = ("constant", "cosine")


@dataclasses.dataclass(frozen=True)
class ForecastPreset:
    """A network and how it is trained. `dataclasses.replace` changes single values.

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
        max_steps: training steps at most. A number that does not divide into epochs is rounded up.
        steps_per_epoch: training steps between two looks at the validation windows.
        patience: training stops after so many epochs without a better validation score. None: it
            never stops early. The weights that are kept are the best ones in either case.
        max_validation_windows: at most this many, evenly spaced.

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
        check_choice("schedule", self.schedule, SCHEDULES)
        check_number("learning_rate", self.learning_rate, above=0)
        for name in ("batch_size", "max_steps", "steps_per_epoch", "max_validation_windows"):
            check_integer(name, getattr(self, name), 1)
        if self.patience is not None:
            check_integer("patience", self.patience, 1)

    @property
    def network(self) -> dict[str, Any]:
        """The arguments of `Taylorformer`."""
        names = (
            "num_heads head_dim width num_layers dropout encoding_dim shortest longest "
            "taylor_order feature_order num_neighbours"
        )
        return {name: getattr(self, name) for name in names.split()}

    @property
    def num_epochs(self) -> int:
        """Looks at the validation windows, if training does not stop early."""
        return -(-self.max_steps // self.epoch_steps)

    @property
    def epoch_steps(self) -> int:
        """Training steps between two looks: never more than there are."""
        return min(self.steps_per_epoch, self.max_steps)

    def get_config(self) -> dict[str, Any]:
        """Returns all values, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ForecastPreset":
        """Makes a preset from what `get_config` gave."""
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
"""For own data "compact", which two processor cores train in minutes; "ett", "exchange" and
"electricity" are those of the paper's experiments."""


def find_preset(preset: str | ForecastPreset) -> ForecastPreset:
    """Looks a preset up by its name; a preset is given back as it is.

    Raises:
        ValueError: an unknown name.
    """
    if isinstance(preset, ForecastPreset):
        return preset
    check_choice("preset", preset, tuple(PRESETS))
    return PRESETS[preset]
