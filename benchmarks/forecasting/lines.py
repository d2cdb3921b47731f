"""The lines of the benchmark: what forecasts the windows of a set, and in how many seconds."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.forecasting import naive, peer_cache
from benchmarks.forecasting.sets import Single, Window, by_season_and_horizon, history

ZERO_SHOT = ("zero-shot", "zero-shot-bare")
MIRRORED = "zero-shot-mirrored"
FIT, FIT_PRIOR = "fit", "fit-prior"
NAIVE = tuple(naive.LINES)
LONG_SEASON = "seasonal-naive-long"
PEERS = peer_cache.MODELS
GROUPS = {"naive": NAIVE, "peers": PEERS}

ABOUT = {
    "zero-shot": "the pretrained model, told the stamps and the season",
    "zero-shot-bare": "the pretrained model, given the steps 0, 1, 2, ...; it detects seasons",
    MIRRORED: "as zero-shot, half of the samples from the mirror image of the model",
    FIT: "the compact preset, fitted to all rows before the first target",
    FIT_PRIOR: "the pretrained model, told the season and trained on all rows before the first "
    "target; of a competition set on all series of a frequency",
    "last-value": "normal, sigma sqrt(h)",
    "drift": "normal, sigma sqrt(h (1 + h / (T - 1)))",
    "seasonal-naive": "normal, sigma sqrt(k), k seasons ahead",
    LONG_SEASON: "as seasonal-naive, with the longer of two seasons",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What forecasts depend on, beside the windows.

    Attributes:
        num_samples: S of our lines.
        seed: of their samples, and of the training of `fit` and `fit-prior`.
        model: see `zero_shot.make_forecaster`.
    """

    num_samples: int = 100
    seed: int = 0
    model: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Made:
    """What a line forecast.

    Attributes:
        values: `[S, N_T]` by the names of windows: samples, or as many quantiles that are equally
            likely. Windows that the line left out are missing, or NaN.
        are_samples: or else quantiles.
        about: for the record: seconds and versions.
    """

    values: dict[str, np.ndarray]
    are_samples: bool
    about: dict[str, Any]


def with_stand_ins(
    values: dict[str, np.ndarray], windows: Sequence[Window]
) -> tuple[dict[str, np.ndarray], int]:
    """Lets the last value stand in where a line has no forecast; returns also how often."""
    whole, count = {}, 0
    for window in windows:
        one = values.get(window.name)
        if one is None or not np.isfinite(one).all():
            one = naive.normal_quantiles(*naive.last_value(window.context, window.horizon))
            count += 1
        whole[window.name] = one
    return whole, count


def naive_line(line: naive.Line, windows: Sequence[Window]) -> Made:
    """Forecasts windows by a naive line."""
    started = time.perf_counter()
    values = {
        one.name: naive.normal_quantiles(*line(one.context, one.horizon, one.season))
        for one in windows
    }
    seconds = (time.perf_counter() - started) / len(windows)
    return Made(values, False, {"seconds_per_forecast": seconds})


def zero_shot_line(
    windows: Sequence[Window],
    settings: Settings,
    *,
    bare: bool,
    one_by_one: bool,
    named_stamps: bool = False,
    mirrored: bool = False,
) -> Made:
    """Forecasts windows by the pretrained model.

    Args:
        windows: of any seasons and horizons.
        settings: see `Settings`.
        bare: tell it neither stamps nor seasons.
        one_by_one: a call for each window, as a user would, to time it. False: a call for all
            windows of a season and horizon.
        named_stamps: hand over the stamps of the targets.
        mirrored: see `PretrainedForecaster`.
    """
    from benchmarks.forecasting import zero_shot

    values: dict[str, np.ndarray] = {}
    seconds = []
    for (_, named, _), group in by_season_and_horizon(list(windows)).items():
        seasons = "auto" if bare else _as_argument(named)
        options = {"mirrored": True} if mirrored else {}
        forecaster = zero_shot.make_forecaster(seasons, settings.model, **options)
        if bare:
            group = [window.bare() for window in group]
        for call in [[window] for window in group] if one_by_one else [group]:
            started = time.perf_counter()
            values |= zero_shot.zero_shot(
                forecaster, call, settings.num_samples, settings.seed, named_stamps
            )
            seconds.append(time.perf_counter() - started)
    about = _seconds_of_each(seconds) if one_by_one else _seconds_of_all(seconds, len(windows))
    return Made(values, True, about)


def fit_line(
    single: Single, windows: Sequence[Window], settings: Settings, from_prior: bool
) -> Made:
    """Fits a model to all rows before the first target, and forecasts the windows.

    Args:
        single: the series.
        windows: of it.
        settings: see `Settings`.
        from_prior: train the pretrained model. False: a small one from nothing.

    Raises:
        ValueError: too few rows come before the first target.
    """
    from benchmarks.forecasting import zero_shot

    values, stamps = history(single)
    end = len(values) - single.num_windows * single.horizon
    started = time.perf_counter()
    if from_prior:
        forecaster = zero_shot.make_forecaster(_as_argument(windows[0].seasons), settings.model)
        forecaster.horizon = single.horizon
    else:
        forecaster = zero_shot.compact(single.context, single.horizon, settings.seed)
    table = pd.DataFrame({"unique_id": single.name, "ds": stamps[:end], "y": values[:end]})
    about = zero_shot.fit(forecaster, table, settings.seed)
    about["fit_seconds"] = time.perf_counter() - started
    made: dict[str, np.ndarray] = {}
    seconds = []
    for window in windows:
        started = time.perf_counter()
        # The series has the name that it had in the fit, or it would be a new one.
        call = [dataclasses.replace(window, name=single.name)]
        samples = zero_shot.zero_shot(forecaster, call, settings.num_samples, settings.seed)
        if single.name in samples:
            made[window.name] = samples[single.name]
        seconds.append(time.perf_counter() - started)
    return Made(made, True, {**about, **_seconds_of_each(seconds)})


def panel_line(windows: Sequence[Window], settings: Settings, say: Callable[[str], None]) -> Made:
    """Trains the pretrained model on the contexts of all windows of a season and horizon.

    Args:
        windows: one of each series.
        settings: see `Settings`.
        say: told which of them are too short to be trained on.

    Returns:
        The forecasts of all windows, without those of groups that are too short.
    """
    from benchmarks.forecasting import zero_shot

    values: dict[str, np.ndarray] = {}
    seconds, trainings = [], []
    for (frequency, seasons, horizon), group in by_season_and_horizon(list(windows)).items():
        forecaster = zero_shot.make_forecaster(_as_argument(seasons), settings.model)
        forecaster.horizon = horizon
        started = time.perf_counter()
        try:
            about = zero_shot.fit(forecaster, zero_shot.to_table(group), settings.seed)
        except ValueError as error:
            say(f"{frequency}: no fit: {error}")
            continue
        about["fit_seconds"] = time.perf_counter() - started
        trainings.append({"frequency": frequency, "series": len(group), **about})
        started = time.perf_counter()
        values |= zero_shot.zero_shot(forecaster, group, settings.num_samples, settings.seed)
        seconds.append(time.perf_counter() - started)
    return Made(values, True, {"trainings": trainings, **_seconds_of_all(seconds, len(windows))})


def peer_lines(name: str, windows: Sequence[Window], models: Sequence[str]) -> dict[str, Made]:
    """Returns what peers forecast, from the cache where it is there.

    Args:
        name: under which the forecasts stand in the cache.
        windows: of the same seasons and horizon; contexts may have different lengths.
        models: names in `PEERS`.

    Raises:
        FileNotFoundError: it is not, and the peers' environment is not there.
    """
    first, length = windows[0], max(len(window.context) for window in windows)
    contexts = np.full((len(windows), length), np.nan)
    for row, window in zip(contexts, windows, strict=True):
        row[length - len(window.context) :] = window.context
    made = {}
    for model, content in peer_cache.forecasts(
        name, contexts, first.horizon, first.seasons, models
    ).items():
        values = {one.name: content["quantiles"][:, index] for index, one in enumerate(windows)}
        about = {
            "seconds_per_forecast": statistics.median(content["seconds"].tolist()),
            "versions": content["about"],
        }
        made[model] = Made(values, False, about)
    return made


def single_lines(
    single: Single,
    windows: Sequence[Window],
    names: Sequence[str],
    settings: Settings,
    say: Callable[[str], None],
) -> dict[str, Made]:
    """Forecasts the windows of a single series by lines of some names."""
    made = {}
    for name in names:
        if name in (*ZERO_SHOT, MIRRORED):
            made[name] = zero_shot_line(
                windows,
                settings,
                bare=name == ZERO_SHOT[1],
                one_by_one=True,
                mirrored=name == MIRRORED,
            )
        elif name in naive.LINES:
            made[name] = naive_line(naive.LINES[name], windows)
            if name == "seasonal-naive" and single.long_season is not None:
                longer = [dataclasses.replace(one, season=one.long_season) for one in windows]
                made[LONG_SEASON] = naive_line(naive.LINES[name], longer)
        elif name in (FIT, FIT_PRIOR):
            try:
                made[name] = fit_line(single, windows, settings, name == FIT_PRIOR)
            except ValueError as error:
                say(f"{single.name}: no fit: {error}")
    peers = [name for name in names if name in PEERS]
    if peers:
        try:
            made |= peer_lines(single.name, windows, peers)
        except FileNotFoundError as error:
            say(f"{single.name}: no peers: {error}")
    return made


def competition_lines(
    windows: Sequence[Window],
    names: Sequence[str],
    settings: Settings,
    say: Callable[[str], None],
) -> dict[str, Made]:
    """Forecasts a competition set by our lines among some names.

    The naive lines and the peers are among the baselines that come with the set.
    """
    made = {
        name: zero_shot_line(
            windows,
            settings,
            bare=name == ZERO_SHOT[1],
            one_by_one=False,
            mirrored=name == MIRRORED,
        )
        for name in names
        if name in (*ZERO_SHOT, MIRRORED)
    }
    if FIT_PRIOR in names:
        made[FIT_PRIOR] = panel_line(windows, settings, say)
    return made


def _as_argument(seasons: tuple[int, ...]) -> int | list[int] | None:
    """Returns seasons as the argument of a forecaster."""
    if len(seasons) > 1:
        return list(seasons)
    return seasons[0] if seasons else None


def _seconds_of_each(seconds: Sequence[float]) -> dict[str, float]:
    """The first call compiles, so it is told apart."""
    return {
        "first_forecast_seconds": seconds[0],
        "seconds_per_forecast": statistics.median(seconds[1:] or seconds),
    }


def _seconds_of_all(seconds: Sequence[float], count: int) -> dict[str, float]:
    """With compiling."""
    return {"seconds_per_forecast": sum(seconds) / count, "seconds_of_all": sum(seconds)}
