"""The arguments of a Forecaster: checked, as plain Python numbers, as training read them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_optional_integer,
)
from taylorformer.data_wrangler.tables.seasons import plain_seasons
from taylorformer.data_wrangler.tables.split import WindowSpec, check_fractions
from taylorformer.data_wrangler.tables.value_support import (
    ValueSupport,
    check_bounds,
    check_integers,
    check_support,
)
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset, find_preset
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import (
    PRETRAINED,
    is_model_file,
)
from taylorformer.training_and_evaluation.training.plan import LARGEST_TRAINING_SEED

_OF_PRESET = ("scaling", "max_steps", "batch_size", "learning_rate")

SEASONS_OF_MODEL = "model"
"""The value of `seasons` that leaves them to the model."""

START_OF_ARGUMENTS = "auto"
"""The value of `start` that leaves it to the other arguments."""

_DEFAULT_START = "prior"
# A day of quarter hours, as in the paper's ETT tables.
_DEFAULT_ROWS = 96
# Arguments of a model that is trained from nothing.
_OF_NEW_MODEL = ("model", "preset", "scaling", "interpolate")


@dataclasses.dataclass(frozen=True)
class ForecasterSettings:
    """The arguments of a Forecaster after their checks; made by `of`.

    Example:
        >>> import numpy as np
        >>> given = {"horizon": np.int64(4), "context_length": 6, "preset": "compact", "seed": 0}
        >>> given |= {"fractions": np.array([0.6, 0.2, 0.2]), "max_steps": np.int64(60)}
        >>> settings = ForecasterSettings.of(given)
        >>> settings.spec.horizon, settings.fractions, settings.preset.max_steps
        (4, (0.6, 0.2, 0.2), 60)

    Attributes:
        spec: N_C and N_T of a training from nothing.
        preset: the preset of one, with the arguments put in that take the part of its values.
        fractions: shares of the training, validation and test part.
        seed: of the training.
        run_eagerly: train without graphs.
        seasons: "auto" for those of the training part, None for none, or those that are named.
        interpolate: whether the model interpolates uneven and missing rows.
        start: the name or the file of the pretrained weights that are trained further. None: a
            model is trained from nothing.
        arguments: all arguments of the constructor, with NumPy's numbers as plain ones.
    """

    spec: WindowSpec
    preset: ForecastPreset
    fractions: tuple[float, ...]
    seed: int
    run_eagerly: bool
    seasons: Any
    interpolate: bool
    start: str | None
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "ForecasterSettings":
        """Checks the arguments of the constructor of a Forecaster.

        Raises:
            TypeError, ValueError: an argument outside its range.
        """
        rows = {
            name: check_optional_integer(name, arguments[name], 1)
            for name in ("context_length", "horizon")
        }
        spec = WindowSpec(*(number or _DEFAULT_ROWS for number in rows.values()))
        named_start = _named_start(arguments)
        start = _chosen_start(named_start, arguments)
        seed = check_integer("seed", arguments["seed"], 0, LARGEST_TRAINING_SEED)
        fractions = check_fractions(arguments["fractions"])
        given = {name: arguments[name] for name in _OF_PRESET if arguments.get(name) is not None}
        preset = find_preset(arguments["preset"], arguments.get("model"))
        preset = dataclasses.replace(preset, **given)
        interpolate = check_boolean("interpolate", arguments.get("interpolate", False))
        if interpolate and not preset.kind.reads_even_grid:
            raise ValueError(
                f"`interpolate` must be False for {preset.kind.class_name}, which reads rows at "
                "any times. Received: interpolate=True"
            )
        seasons = plain_seasons(arguments.get("seasons", SEASONS_OF_MODEL))
        if isinstance(seasons, list):
            seasons = tuple(seasons)
        lower, upper = (check_bounds(name, arguments.get(name)) for name in ("lower", "upper"))
        integers = check_integers(arguments.get("integers", False))
        check_support(lower, upper, integers)
        run_eagerly = bool(arguments.get("run_eagerly", False))
        checked = {
            # A pretrained model chooses them by the table.
            **(rows if start is not None else dataclasses.asdict(spec)),
            "start": named_start,
            **{name: getattr(preset, name) for name in given},
            "fractions": fractions,
            "seed": seed,
            "run_eagerly": run_eagerly,
            "lower": lower,
            "upper": upper,
            "integers": integers,
            "seasons": seasons,
            "interpolate": interpolate,
        }
        if seasons == SEASONS_OF_MODEL:
            # Without time features Autoformer and Informer know no times.
            seasons = "auto" if preset.kind.reads_even_grid or start is not None else None
        return cls(
            spec,
            preset,
            fractions,
            seed,
            run_eagerly,
            seasons,
            interpolate,
            start,
            {**arguments, **checked},
        )

    def support(self, num_columns: int) -> ValueSupport:
        """Returns which values the D_y columns can have.

        Raises:
            ValueError: bounds for another number of columns.
        """
        lower, upper, integers = (self.arguments[name] for name in ("lower", "upper", "integers"))
        return ValueSupport.of(lower, upper, integers, num_columns)

    @property
    def saved(self) -> dict[str, Any]:
        """The arguments for a file, with the whole preset, which names the model."""
        return {**self.arguments, "preset": self.preset}

    def changes(self, arguments: Mapping[str, Any]) -> list[str]:
        """Names the arguments whose values are other ones now."""
        try:
            now = self.of(arguments).arguments
        except (TypeError, ValueError):
            # What cannot be used differs in at least one value, which is compared as it is.
            now = arguments
        return [name for name, value in self.arguments.items() if not _equal(now[name], value)]


def _named_start(arguments: Mapping[str, Any]) -> str | None:
    """Returns what `start` is, checked."""
    start = arguments.get("start")
    if start is None:
        return None
    if is_model_file(start):
        return str(start)
    try:
        return str(check_choice("start", start, (START_OF_ARGUMENTS, *PRETRAINED)))
    except ValueError as error:
        raise ValueError(
            f"{error}; it may also be None (`--start none`), or the path of a .keras file"
        ) from None


def _chosen_start(start: str | None, arguments: Mapping[str, Any]) -> str | None:
    """Returns the weights to begin with, given what `start` is; None: new ones."""
    others = [name for name in _OF_NEW_MODEL if arguments.get(name)]
    if start == START_OF_ARGUMENTS:
        return None if others else _DEFAULT_START
    if start is not None and others:
        named = ", ".join(f"{name}={arguments[name]!r}" for name in others)
        raise ValueError(
            "`start` must be None or 'auto' where arguments describe a model that is trained "
            f"from nothing. Received: start={start!r}, {named}"
        )
    return start


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except (TypeError, ValueError):
        return False
