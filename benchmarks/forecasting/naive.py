"""Naive lines with normal distributions, so that their CRPS compares with that of samples.

Each returns the mean and the standard deviation of every target. The deviations are those of
Hyndman and Athanasopoulos, "Forecasting: principles and practice", 3rd edition, section 5.5, which
hold where the line is the true model: sigma is the root mean square of what the line misses within
the context (one step ahead; one season ahead for the seasonal line), T the length of the context, h
the steps ahead and k the seasons ahead, the first one being 1:

- last value: sigma sqrt(h);
- drift, along the line from the first to the last value: sigma sqrt(h (1 + h / (T - 1)));
- seasonal naive: sigma sqrt(k). Without a season, or with a context of no more than one, it is the
  last value;
- seasonal naive with drift, by k times the mean change from one season to the next, whose number
  is n: sigma sqrt(k (1 + k / n)). Without a season it is the drift.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

LEVELS = (np.arange(100) + 0.5) / 100
"""Of the quantiles that stand for a distribution: all are equally likely, like samples."""

Line = Callable[[np.ndarray, int, int | None], tuple[np.ndarray, np.ndarray]]


def last_value(
    context: np.ndarray, horizon: int, season: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Repeats the last value of a context `[N_C]`; returns `[N_T]` twice."""
    ahead = np.arange(1, horizon + 1)
    return np.full(horizon, context[-1]), _size(np.diff(context)) * np.sqrt(ahead)


def drift(
    context: np.ndarray, horizon: int, season: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Continues the line from the first to the last value of a context."""
    return _seasonal(context, horizon, 1, with_drift=True)


def seasonal_naive(
    context: np.ndarray, horizon: int, season: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Repeats the last season of a context."""
    return _seasonal(context, horizon, season, with_drift=False)


def seasonal_naive_with_drift(
    context: np.ndarray, horizon: int, season: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Repeats the last season of a context, moved by the mean change from season to season."""
    return _seasonal(context, horizon, season, with_drift=True)


LINES: dict[str, Line] = {
    "last-value": last_value,
    "drift": drift,
    "seasonal-naive": seasonal_naive,
}


def normal_quantiles(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Returns the quantiles of `LEVELS`, `[Q, N_T]`."""
    return mean + deviation * ndtri(LEVELS)[:, np.newaxis]


def interpolated(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Fills the gaps between steps by straight lines; returns one value a step.

    Args:
        values: `[N]`.
        steps: `[N]` whole numbers, rising, the last of which may be later than the last value's:
            `values` is shorter then, and its last one is repeated.
    """
    return np.interp(np.arange(steps[0], steps[-1] + 1), steps[: len(values)], values)


def _seasonal(
    context: np.ndarray, horizon: int, season: int | None, with_drift: bool
) -> tuple[np.ndarray, np.ndarray]:
    season = season if season is not None and len(context) > season else 1
    ahead = np.arange(horizon)
    seasons = ahead // season + 1
    last = context[max(len(context) - season, 0) :]
    mean = last[ahead % len(last)]
    missed = context[season:] - context[:-season]
    if not with_drift or not len(missed):
        return mean, _size(missed) * np.sqrt(seasons)
    change = missed.mean()
    # One degree of freedom goes into the change.
    size = _size(missed - change) * np.sqrt(len(missed) / max(len(missed) - 1, 1))
    return mean + seasons * change, size * np.sqrt(seasons * (1 + seasons / len(missed)))


def _size(missed: np.ndarray) -> float:
    return float(np.sqrt(np.square(missed).mean())) if len(missed) else 0.0
