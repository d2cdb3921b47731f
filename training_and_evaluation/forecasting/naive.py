"""Forecasts that need no model: the lines that a model has to beat.

Each is made in two ways. Free-running forecasts read their series up to the forecast origin, the
last row of a window's context, and no further. One-step forecasts (`teacher_forced=True`) read for
each target their series up to the row before it. Missing values are skipped, and rows of other
series never count.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.panel_windows import PanelWindows


def last_value(windows: PanelWindows, starts: Any, *, teacher_forced: bool = False) -> np.ndarray:
    """Repeats the last value observed.

    Example:
        >>> import pandas as pd
        >>> from taylorformer.data_wrangler import Series, WindowScaler, Windows, WindowSpec
        >>> table = pd.DataFrame({"time": range(5), "y": [1.0, 2.0, 4.0, 8.0, 9.0]})
        >>> series = Series.from_frame(table, "time", "y")
        >>> spec = WindowSpec(context_length=3, horizon=2)
        >>> windows = Windows(series, WindowScaler.fit(series, spec, 5), spec)
        >>> last_value(windows, [0]).ravel().tolist()
        [4.0, 4.0]
        >>> last_value(windows, [0], teacher_forced=True).ravel().tolist()
        [4.0, 8.0]

    Args:
        windows: the windows of one or several series.
        starts: `[B]`, first rows of windows.
        teacher_forced: whether a target is forecast from the row before it, instead of from the
            forecast origin.

    Returns:
        `[B, N_T, D_y]` in user units. NaN where a column has no value so far, not even before the
        context.
    """
    panel = windows.panel
    _, last_read = _rows_and_last_read(windows, starts, teacher_forced)
    return _values_at(panel, panel.last_observed_row[last_read])


def last_difference(
    windows: PanelWindows, starts: Any, *, teacher_forced: bool = False
) -> np.ndarray:
    """Continues from the last value observed, with the slope of the last two.

    The slope is one over time, so stamps may be uneven and have gaps; on an even grid the forecast
    of the next row is `v[-1] + (v[-1] - v[-2])`. Where only one value was seen the slope is 0.
    With the windows of the example of `last_value` the forecast is 6, 8.

    Args:
        windows: the windows of one or several series.
        starts: `[B]`, first rows of windows.
        teacher_forced: see `last_value`.

    Returns:
        `[B, N_T, D_y]` in user units. NaN where a column has no value so far.
    """
    panel = windows.panel
    rows, last_read = _rows_and_last_read(windows, starts, teacher_forced)
    last = panel.last_observed_row[last_read]
    first = panel.offsets[panel.series_of(rows)][..., np.newaxis]
    column = np.arange(panel.num_columns)
    previous = np.where(last > first, panel.last_observed_row[last - 1, column], -1)
    value = _values_at(panel, last)
    # Differences of times are exact before they become floating point.
    elapsed = (panel.time[rows][..., np.newaxis] - panel.time[last]).astype(np.float64)
    step = (panel.time[last] - panel.time[previous]).astype(np.float64)
    two = previous >= 0
    steps = np.divide(elapsed, step, out=np.zeros(value.shape), where=two)
    difference = np.where(two, value - panel.values[previous, column], 0.0)
    return value + difference * steps


def seasonal(
    windows: PanelWindows, starts: Any, season: Any, *, teacher_forced: bool = False
) -> np.ndarray:
    """Repeats the last season: the value observed nearest to one season earlier.

    The forecast of a target at t is the value at the observed stamp nearest to t - season; the
    earlier of two that are equally near. Where t - season is later than the last row that may be
    read, more seasons are subtracted. Values before the context count too. With the windows of the
    example of `last_value` and a season of 2 the forecast is 2, 4.

    Args:
        windows: the windows of one or several series.
        starts: `[B]`, first rows of windows.
        season: the length of a season; for dates a Timedelta or a text that pandas reads as one,
            such as `"365.25 days"`; for other times a number. Or for the name of each series a
            number in the unit of its time; None: it has no season, and its last value is repeated.
        teacher_forced: see `last_value`.

    Returns:
        `[B, N_T, D_y]` in user units. NaN where a column has no value so far.

    Raises:
        ValueError: `season` is not positive, or no length of time.
    """
    panel = windows.panel
    if isinstance(season, Mapping):
        lengths = [season[name] for name in panel.names]
    else:
        lengths = [panel.series[0].duration(season)] * panel.num_series
    rows, last_read = _rows_and_last_read(windows, starts, teacher_forced)
    # Counted from the last row that is read, so that the difference is exact before it becomes
    # floating point.
    origin = panel.time[last_read]
    ahead = (panel.time[rows] - origin).astype(np.float64)
    forecast = np.full((*rows.shape, panel.num_columns), np.nan)
    number = panel.series_of(rows[:, 0])
    for series in np.unique(number):
        mine = number == series
        start, end = panel.offsets[series : series + 2]
        length = lengths[series]
        wanted = np.zeros_like(ahead[mine])
        if length is not None:
            wanted = ahead[mine] - length * np.ceil(ahead[mine] / length)
        for column in range(panel.num_columns):
            observed = start + np.flatnonzero(~np.isnan(panel.values[start:end, column]))
            count = np.searchsorted(observed, last_read[mine], side="right")
            if len(observed):
                nearest = _nearest(panel.time[observed], origin[mine], wanted, count)
                value = panel.values[observed[nearest], column]
                forecast[mine, :, column] = np.where(count > 0, value, np.nan)
    return forecast


def _rows_and_last_read(
    windows: PanelWindows, starts: Any, teacher_forced: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows of the targets and the last row read for each, `[B, N_T]`."""
    rows = windows.target_rows(starts)
    return rows, rows - 1 if teacher_forced else np.broadcast_to(rows[:, :1] - 1, rows.shape)


def _values_at(panel: Panel, rows: np.ndarray) -> np.ndarray:
    """Returns the values at rows `[..., D_y]`, NaN at row -1."""
    return np.where(rows < 0, np.nan, panel.values[rows, np.arange(panel.num_columns)])


def _nearest(
    times: np.ndarray, origin: np.ndarray, wanted: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Returns the indices of the times nearest to origin + wanted among the first `count`.

    Of two that are equally near it is the earlier.
    """
    # Further back than the first time is as good as that time, and always fits in 64 bits.
    wanted = np.maximum(wanted, (times[0] - origin).astype(np.float64))
    offset = np.ceil(wanted).astype(times.dtype) if times.dtype.kind == "i" else wanted
    after = np.minimum(np.searchsorted(times, origin + offset), np.maximum(count - 1, 0))
    before = np.maximum(after - 1, 0)

    def distance(index: np.ndarray) -> np.ndarray:
        return np.abs((times[index] - origin).astype(np.float64) - wanted)

    return np.where(distance(before) <= distance(after), before, after)
