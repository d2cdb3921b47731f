"""Forecasts that need no model: the lines that a model has to beat.

Both read the series up to the forecast origin alone, the last row of a window's context.
"""

from typing import Any

import numpy as np

from taylorformer.data_wrangler.windows import Windows


def last_value(windows: Windows, starts: Any) -> np.ndarray:
    """Repeats the last value observed up to the forecast origin.

    Args:
        windows: the windows of a series.
        starts: `[B]`, first rows of windows.

    Returns:
        `[B, N_T, D_y]` in user units. NaN where a column has no value up to the origin, not even
        before the context.
    """
    series = windows.series
    origin = windows.context_rows(starts)[:, -1]
    rows = series.last_observed_row[origin]
    values = series.values[rows, np.arange(series.num_columns)]
    values = np.where(rows < 0, np.nan, values)
    return np.repeat(values[:, np.newaxis], windows.spec.horizon, axis=1)


def seasonal(windows: Windows, starts: Any, season: Any) -> np.ndarray:
    """Repeats the last season: the value observed nearest to one season earlier.

    For a target at t it looks at t - season, or as many seasons earlier as are needed not to be
    later than the forecast origin, and takes the value at the nearest observed stamp up to the
    origin, before the context too. Of two that are equally near it takes the earlier.

    Args:
        windows: the windows of a series.
        starts: `[B]`, first rows of windows.
        season: for dates a Timedelta or what makes one, such as `"365.25 days"`; for other times
            a number.

    Returns:
        `[B, N_T, D_y]` in user units. NaN where a column has no value up to the origin.

    Raises:
        ValueError: `season` is not positive, or no length of time.
    """
    series = windows.series
    length = series.duration(season)
    rows = windows.target_rows(starts)
    origin = rows[:, :1] - 1
    # Counted from the origin, so that the difference is exact before it becomes floating point.
    ahead = (series.time[rows] - series.time[origin]).astype(np.float64)
    wanted = ahead - length * np.ceil(ahead / length)
    forecast = np.full((*rows.shape, series.num_columns), np.nan)
    for place in range(series.num_columns):
        observed = np.flatnonzero(~np.isnan(series.values[:, place]))
        for window, last in enumerate(origin[:, 0]):
            known = observed[: np.searchsorted(observed, last, side="right")]
            if len(known):
                away = (series.time[known] - series.time[last]).astype(np.float64)
                nearest = known[_nearest(away, wanted[window])]
                forecast[window, :, place] = series.values[nearest, place]
    return forecast


def _nearest(places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Finds the nearest of increasing places, the earlier one where two are equally near."""
    after = np.clip(np.searchsorted(places, wanted), 0, len(places) - 1)
    before = np.maximum(after - 1, 0)
    earlier = np.abs(places[before] - wanted) <= np.abs(places[after] - wanted)
    return np.where(earlier, before, after)
