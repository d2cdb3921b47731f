"""Our lines: the pretrained model that needs no fit, and the compact preset fitted to a series."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.forecasting.sets import Window
from taylorformer import Forecaster

PRESET = "prior"


def make_forecaster(
    seasons: int | str | list[int] | None, model: str | None = None, mirrored: bool | None = None
) -> Any:
    """Returns the forecaster that needs no fit.

    Args:
        seasons: steps of one or several; None: there is none; "auto": they are detected.
        model: other weights than those that are shipped: a folder or a file. None: the shipped
            ones.
        mirrored: see `PretrainedForecaster`; None: as is usual for the weights.
    """
    return Forecaster.from_preset(model or PRESET, horizon=None, seasons=seasons, mirrored=mirrored)


def to_table(windows: Sequence[Window]) -> pd.DataFrame:
    """Returns the contexts as one long table."""
    return pd.concat(
        [
            pd.DataFrame({"unique_id": one.name, "ds": one.stamps, "y": one.context})
            for one in windows
        ],
        ignore_index=True,
    )


def to_future(windows: Sequence[Window]) -> pd.DataFrame:
    """Returns the stamps of all targets as one long table."""
    return pd.concat(
        [pd.DataFrame({"unique_id": one.name, "ds": one.future}) for one in windows],
        ignore_index=True,
    )


def zero_shot(
    forecaster: Any,
    windows: Sequence[Window],
    num_samples: int,
    seed: int,
    named_stamps: bool = False,
) -> dict[str, np.ndarray]:
    """Forecasts windows of one horizon in one call.

    Args:
        forecaster: see `make_forecaster`.
        windows: whose horizon is the same.
        num_samples: S.
        seed: of the samples.
        named_stamps: hand over the stamps of the targets. False: they follow the last row.

    Returns:
        Samples `[S, N_T]` by the names of windows. Those that were left out are missing.
    """
    horizon = {"future": to_future(windows)} if named_stamps else {"horizon": windows[0].horizon}
    with warnings.catch_warnings():
        # They name odd series, whose number is in the record.
        warnings.simplefilter("ignore", UserWarning)
        forecast = forecaster.forecast(
            to_table(windows), num_samples=num_samples, seed=seed, **horizon
        )
    samples = np.asarray(forecast.samples)[..., 0]
    return {name: samples[:, index] for index, name in enumerate(forecast.names)}


def compact(context_length: int, horizon: int, seed: int) -> Forecaster:
    """Returns a forecaster that trains the compact preset from nothing."""
    return Forecaster(horizon, context_length, preset="compact", fractions=_FRACTIONS, seed=seed)


def fit(forecaster: Any, table: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Fits a forecaster to a table; all of it trains or validates.

    Args:
        forecaster: one of `compact` or of `make_forecaster`.
        table: of one series or several, in the long format.
        seed: of the training of a pretrained model.

    Returns:
        What the record says of the training.

    Raises:
        ValueError: the series are too short.
    """
    pretrained = not isinstance(forecaster, Forecaster)
    more = {"fractions": _FRACTIONS, "seed": seed} if pretrained else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        forecaster.fit(table, **more)
    report = forecaster.report_
    names = (
        "num_training_windows",
        "num_validation_windows",
        "training_steps",
        "best_step",
        "share",
        "start",
        "best",
        "kept",
    )
    return {key: report[key] for key in names if key in report}


# What is scored comes after the series, so no rows are kept for a test.
_FRACTIONS = (0.8, 0.2, 0.0)
