"""Presets for forecasting, the paper's among them: a model, its arguments, how it is trained."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import check_choice, check_integer, plain_number
from taylorformer.data_wrangler.tables.scaler import SCALINGS
from taylorformer.training_and_evaluation.model_kinds import (
    MODEL_KINDS,
    PAPER_BATCH_SIZE,
    PAPER_DIRECT_LEARNING_RATE,
    PAPER_DIRECT_STEPS,
    PAPER_LEARNING_RATE,
    PAPER_SIZES,
    PAPER_STEPS,
    SMALL_DIRECT_SIZES,
    ModelKind,
)
from taylorformer.training_and_evaluation.training.plan import TrainingPlan

_PLAN_FIELDS = (
    "batch_size",
    "learning_rate",
    "schedule",
    "max_steps",
    "steps_per_epoch",
    "patience",
)


@dataclasses.dataclass(frozen=True, init=False)
class ForecastPreset:
    """A model, its arguments, and how it is trained.

    Example:
        >>> mine = ForecastPreset("mine", width=16, max_steps=100, steps_per_epoch=25)
        >>> mine.model, mine.model_arguments, mine.plan.num_epochs
        ('taylorformer', {'width': 16}, 4)
        >>> small = ForecastPreset("small", "tnp", width=16, num_heads=2, feed_forward=32)
        >>> ForecastPreset.from_config(small.get_config()) == small
        True

    Args:
        name: what it is called.
        model: the kind of model, a name in `MODEL_KINDS`: "taylorformer", "tnp", "anp", "np",
            "autoformer" or "informer".
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
        model_arguments: arguments of the class of the model; more of them can be given by
            their names. Those that are left out are the defaults of the class, which for the
            Taylorformer are those of the paper for ETT.

    Attributes:
        model_arguments: the arguments of the class of the model that the preset sets. (The others
            are called as they are given.)

    Raises:
        TypeError, ValueError: a value outside its range, or an argument that the model lacks.
    """

    name: str
    model: str
    model_arguments: Mapping[str, Any] = dataclasses.field(hash=False)
    scaling: str
    batch_size: int
    learning_rate: float
    schedule: str
    max_steps: int
    steps_per_epoch: int
    patience: int | None
    max_validation_windows: int

    def __init__(
        self,
        name: str,
        model: str = "taylorformer",
        *,
        scaling: str = "window",
        batch_size: int = PAPER_BATCH_SIZE,
        learning_rate: float = PAPER_LEARNING_RATE,
        schedule: str = "constant",
        max_steps: int = PAPER_STEPS,
        steps_per_epoch: int = 200,
        patience: int | None = None,
        max_validation_windows: int = 256,
        model_arguments: Mapping[str, Any] | None = None,
        **more_model_arguments: Any,
    ) -> None:
        kind = MODEL_KINDS[check_choice("model", model, tuple(MODEL_KINDS))]
        given = {**(model_arguments or {}), **more_model_arguments}
        unknown = [argument for argument in given if argument not in kind.arguments]
        if unknown:
            raise TypeError(
                f"arguments of {kind.class_name} in a preset must be among "
                f"{', '.join(kind.arguments)}. Received: {', '.join(unknown)}"
            )
        plan = TrainingPlan(
            batch_size, learning_rate, schedule, max_steps, steps_per_epoch, patience
        )
        values = {
            "name": name,
            "model": model,
            "model_arguments": {
                argument: _plain(given[argument])
                for argument in kind.arguments
                if argument in given
            },
            "scaling": check_choice("scaling", scaling, SCALINGS),
            **{field: plain_number(getattr(plan, field)) for field in _PLAN_FIELDS},
            "max_validation_windows": check_integer(
                "max_validation_windows", max_validation_windows, 1
            ),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def kind(self) -> ModelKind:
        """The kind of the model."""
        return MODEL_KINDS[self.model]

    @property
    def plan(self) -> TrainingPlan:
        """How long the model is trained, and with what optimizer."""
        return TrainingPlan(**{name: getattr(self, name) for name in _PLAN_FIELDS})

    @property
    def training_config(self) -> dict[str, Any]:
        """All but the name, the model and its arguments, ready for JSON."""
        names = ("scaling", *_PLAN_FIELDS, "max_validation_windows")
        return {name: getattr(self, name) for name in names}

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor, ready for JSON."""
        about = {"name": self.name, "model": self.model}
        return {**about, **self.model_arguments, **self.training_config}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ForecastPreset":
        """Makes a preset from the values returned by `get_config`."""
        return cls(**config)


def _plain(value: Any) -> Any:
    """Returns an argument as it is remembered; a list, as JSON has it, as a tuple."""
    return tuple(value) if isinstance(value, list) else plain_number(value)


# How what two processor cores train in minutes is trained.
_SHORT: Mapping[str, Any] = {
    "learning_rate": 1e-3,
    "schedule": "cosine",
    "max_steps": 2000,
    "steps_per_epoch": 50,
    "patience": 15,
}
_PAPER_DIRECT: Mapping[str, Any] = {
    "learning_rate": PAPER_DIRECT_LEARNING_RATE,
    "max_steps": PAPER_DIRECT_STEPS,
}
# The scale of a latent model must not stop at the 0.1 of neural-process tasks: y of a forecast is
# in units of the usual error.
_SMALL_LATENT: Mapping[str, Any] = {"width": 64, "latent_dim": 32, "min_scale": 0.01}


def _paper(
    name: str, model: str, data: str, training: Mapping[str, Any] | None = None
) -> ForecastPreset:
    return ForecastPreset(
        name,
        model,
        scaling="standard",
        model_arguments=PAPER_SIZES[model][data],
        **(training or {}),
    )


def _direct(model: str) -> tuple[ForecastPreset, ...]:
    return (
        ForecastPreset(f"{model}-small", model, model_arguments=SMALL_DIRECT_SIZES, **_SHORT),
        _paper(model, model, "ett", _PAPER_DIRECT),
        _paper(f"{model}-electricity", model, "electricity", _PAPER_DIRECT),
    )


# The first of each model is the one that is used where only the model is named.
_ALL = (
    ForecastPreset("compact", num_heads=4, head_dim=8, num_layers=3, **_SHORT),
    _paper("ett", "taylorformer", "ett"),
    _paper("exchange", "taylorformer", "exchange"),
    _paper("electricity", "taylorformer", "electricity"),
    ForecastPreset(
        "tnp-compact",
        "tnp",
        num_heads=4,
        width=32,
        num_layers=3,
        feed_forward=64,
        embedding_layers=2,
        dropout=0.05,
        **_SHORT,
    ),
    _paper("tnp-ett", "tnp", "ett"),
    _paper("tnp-exchange", "tnp", "exchange"),
    _paper("tnp-electricity", "tnp", "electricity"),
    *_direct("autoformer"),
    *_direct("informer"),
    ForecastPreset("anp-small", "anp", num_heads=4, model_arguments=_SMALL_LATENT, **_SHORT),
    ForecastPreset("np-small", "np", model_arguments=_SMALL_LATENT, **_SHORT),
)

PRESETS: Mapping[str, ForecastPreset] = {preset.name: preset for preset in _ALL}
"""For your data "compact", "tnp-compact", "autoformer-small", "informer-small", "anp-small" and
"np-small", which two processor cores train in minutes. Those of the paper's experiments: "ett",
"exchange" and "electricity" (the Taylorformer), the same with "tnp-" in front, "autoformer" and
"informer" (ETT and exchange), "autoformer-electricity" and "informer-electricity"."""

_DEFAULTS: Mapping[str, str] = {preset.model: preset.name for preset in reversed(_ALL)}
_DEFAULT_MODEL = "taylorformer"


def find_preset(
    preset: str | ForecastPreset | None = None, model: str | None = None
) -> ForecastPreset:
    """Looks a preset up; returns a preset as it is.

    Example:
        >>> find_preset("ett").model, find_preset(model="tnp").name
        ('taylorformer', 'tnp-compact')

    Args:
        preset: its name, or the preset itself. None: the small one of the model.
        model: the kind of model that it must be of. None: any; without a preset either, the
            Taylorformer.

    Raises:
        ValueError: an unknown name, or a preset of another model.
    """
    if model is not None:
        check_choice("model", model, tuple(MODEL_KINDS))
    if preset is None:
        preset = _DEFAULTS[model or _DEFAULT_MODEL]
    if not isinstance(preset, ForecastPreset):
        preset = PRESETS[check_choice("preset", preset, tuple(PRESETS))]
    if model is not None and preset.model != model:
        names = [name for name, one in PRESETS.items() if one.model == model]
        raise ValueError(
            f"`preset` must be one of the model {model!r}, such as {', '.join(names)}. "
            f"Received: {preset.name!r}, of the model {preset.model!r}"
        )
    return preset
