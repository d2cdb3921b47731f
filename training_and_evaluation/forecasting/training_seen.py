"""What a training saw: borders of its parts, the range of x, and a digest of all of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split
from taylorformer.data_wrangler.tables.stamps import NANOSECONDS
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.forecasting.settings import ForecasterSettings

# The checkpoints of the first versions, which trained no other model, do not name it.
_FIRST_MODEL = "taylorformer"


class Borders(NamedTuple):
    """The last times of the training and the validation part of a series; None: it has no rows."""

    last_train: int | float | None
    last_validation: int | float | None

    @classmethod
    def of(cls, series: Series, split: Split) -> "Borders":
        """Returns those of a series that was split for training."""
        ends = (split.train_end, split.validation_end)
        return cls(*(series.time[end - 1].item() if end else None for end in ends))

    def split(self, series: Series, time_unit: str | None) -> Split:
        """Splits a series, the same or a longer one, at the same times."""
        rows = []
        for last in self:
            if last is not None and time_unit is not None and series.time_unit is not None:
                last = last * NANOSECONDS[time_unit] // NANOSECONDS[series.time_unit]
            rows.append(0 if last is None else int(np.searchsorted(series.time, last, "right")))
        return Split(rows[0], rows[1], series.num_rows)


def x_range(windows: Windows, starts: np.ndarray) -> tuple[float, float]:
    """Returns the smallest and the largest x of the windows."""
    time, scaler = windows.panel.time, windows.scaler
    origin = time[starts + windows.spec.context_length - 1]
    ends = [time[starts] - origin, time[starts + windows.spec.length - 1] - origin]
    low, high = (end.astype(np.float64) / scaler.half_span for end in ends)
    middle = scaler.x_of_last_context
    return float(low.min() + middle), float(high.max() + middle)


def fingerprint(
    settings: ForecasterSettings,
    model_config: Mapping[str, Any],
    windows: Windows,
    splits: Sequence[Split],
) -> str:
    """Digests all that the weights after each step depend on.

    Args:
        settings: of the training.
        model_config: the arguments of the model, those included that the preset leaves out.
        windows: of the training and the validation part.
        splits: one for each series.
    """
    preset = settings.preset
    plan, kind = preset.plan, preset.kind
    config = {name: model_config[name] for name in kind.arguments} | preset.training_config
    if preset.model != _FIRST_MODEL:
        config["model"] = preset.model
    if settings.interpolate:
        config["interpolate"] = True
    if not plan.length_matters:
        # More steps are the same training, continued.
        del config["max_steps"]
    elif plan.max_steps % plan.epoch_steps:
        # Earlier versions rounded the steps up, and their schedule ended later.
        config["whole_epochs"] = False
    content = [settings.seed, settings.run_eagerly, config, plan.epoch_steps]
    content.append(windows.scaler.get_config())
    digest = hashlib.sha256(json.dumps(content).encode())
    for one, split in zip(windows.panel.series, splits, strict=True):
        for array in (one.time, one.values, one.covariate_values):
            digest.update(np.ascontiguousarray(array[: split.validation_end]).tobytes())
        digest.update(f"{split.train_end} {split.validation_end}".encode())
    return digest.hexdigest()
