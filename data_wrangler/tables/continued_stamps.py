"""The stamps that follow the last row of a series, by the calendar or by a steady step."""

from typing import Any, cast

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.stamps import (
    DAY_NANOSECONDS,
    NANOSECONDS,
    exact_time,
    infer_offset,
    median_step,
)

# A frequency that pandas infers is compared with this many stamps at the end of the series.
_ROWS_TO_VERIFY = 1000
# Counted from 0, as no month has more than 31 days.
_LAST_DAY_OF_LONG_MONTH = np.timedelta64(30, "D")


def continue_stamps(series: Series, num_rows: int) -> pd.Index:
    """Returns the stamps that follow a series.

    The first of these rules that fits:

    - periods: the lower median of the steps between them, such as three months; for a single
      period its frequency;
    - dates: the frequency that pandas infers from all of them;
    - dates at one time of day, which the new ones keep: a number of whole months, on the same day
      of the month (the last day of a month that is too short for it) or always on the last day;
      else weekdays, if a weekend lies among the dates; else a number of whole days. A month or a
      holiday may be missing: the step is the median one;
    - everything else: the median step of elapsed time; for dates and integers the lower median,
      which is a step of the series, without rounding.

    With a time zone the rules for dates follow local time.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"t": ["2024-01-31", "2024-02-29", "2024-04-30"], "y": 0.0})
        >>> list(continue_stamps(Series.from_frame(frame, "t", "y"), 2).astype(str))
        ['2024-05-31', '2024-06-30']

    Args:
        series: T rows.
        num_rows: how many stamps, at least 1.

    Returns:
        `[num_rows]`, strictly increasing, after the last row, of the dtype and name of
        `series.stamps`.

    Raises:
        TypeError: `num_rows` is no integer.
        ValueError: the series has one row and so no step, or the stamps leave the range of their
            dtype.
    """
    num_rows = check_integer("num_rows", num_rows, 1)
    try:
        stamps = _continue_calendar(series.stamps, num_rows)
        if stamps is None:
            stamps = _continue_steps(series, num_rows)
        time, unit = exact_time(stamps)
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        raise _beyond(series, num_rows) from error
    if unit != series.time_unit or not_after(series, time).any():
        raise _beyond(series, num_rows)
    return stamps.rename(series.stamps.name)


def _beyond(series: Series, num_rows: int) -> ValueError:
    return ValueError(
        f"`num_rows` must be so few that {series.stamps.dtype} can tell the stamps after "
        f"{series.stamps[-1]} apart. Received: num_rows={num_rows}"
    )


def not_after(series: Series, time: np.ndarray) -> np.ndarray:
    """Returns which times are not later than the one before; the first follows the last row."""
    return ~(time > np.append(series.time[-1:], time[:-1]))


def _continue_calendar(stamps: pd.Index, num_rows: int) -> pd.Index | None:
    """Continues by the calendar; returns None where no rule of it fits."""
    if isinstance(stamps, pd.PeriodIndex):
        every, dtype = stamps.asi8, cast(pd.PeriodDtype, stamps.dtype)
        step = median_step(np.diff(every)) if len(every) > 1 else dtype.freq.n
        ahead = every[-1] + step * np.arange(1, num_rows + 1)
        return pd.PeriodIndex(pd.arrays.PeriodArray(ahead, dtype=dtype))
    if not isinstance(stamps, pd.DatetimeIndex) or len(stamps) < 2:
        return None
    # Local time, as a clock on the wall shows it.
    wall = stamps if stamps.tz is None else stamps.tz_localize(None)
    offset = infer_offset(stamps)
    if isinstance(offset, pd.tseries.offsets.Tick) and not isinstance(offset, pd.offsets.Day):
        return None
    ahead = _by_offset(wall, offset, num_rows) if offset is not None else None
    if ahead is None:
        ahead = _by_rule(wall, num_rows)
    if ahead is None or stamps.tz is None:
        return ahead
    # A time that the clock skips becomes the next one; of a time that occurs twice, take the first.
    first = np.ones(num_rows, np.bool_)
    ahead = ahead.tz_localize(stamps.tz, ambiguous=first, nonexistent="shift_forward")
    steps = np.diff(ahead.asi8, prepend=stamps[-1:].asi8)
    return ahead if (steps > 0).all() else None


def _by_offset(
    wall: pd.DatetimeIndex, offset: pd.tseries.offsets.BaseOffset, num_rows: int
) -> pd.DatetimeIndex | None:
    if isinstance(offset, pd.offsets.BusinessHour):
        # Business hours that pandas infers may begin at any time of day.
        clock = wall - wall.normalize()
        begin, end = pd.Timestamp(0) + clock.min(), pd.Timestamp(0) + clock.max()
        end += pd.Timedelta("1h")
        offset = pd.offsets.BusinessHour(start=f"{begin:%H:%M}", end=f"{end:%H:%M}")
    latest = wall[-_ROWS_TO_VERIFY:]
    every = pd.date_range(latest[0], periods=len(latest) + num_rows, freq=offset, unit=wall.unit)
    return every[len(latest) :] if every[: len(latest)].equals(latest) else None


def _by_rule(wall: pd.DatetimeIndex, num_rows: int) -> pd.DatetimeIndex | None:
    per_day = DAY_NANOSECONDS // NANOSECONDS[wall.unit]
    days, clock = np.divmod(wall.asi8, per_day)
    if (clock != clock[-1]).any():
        return None
    ahead = np.arange(1, num_rows + 1)
    dates = days.astype("datetime64[D]")
    next_dates = _by_months(dates, ahead)
    if next_dates is None and _are_weekdays(dates):
        next_dates = np.busday_offset(dates[-1], ahead)
    if next_dates is None:
        next_dates = dates[-1] + median_step(np.diff(dates)) * ahead
    # By way of whole seconds: pandas raises an error where a finer unit cannot hold them.
    midnights = pd.DatetimeIndex(next_dates.astype("datetime64[s]")).as_unit(wall.unit)
    return (midnights + pd.Timedelta(int(clock[-1]), wall.unit)).as_unit(wall.unit)


def _are_weekdays(dates: np.ndarray) -> bool:
    """Returns whether dates are mostly consecutive weekdays, with a weekend among them."""
    if not np.is_busday(dates).all() or median_step(np.diff(dates)) != np.timedelta64(1, "D"):
        return False
    return bool(np.busday_count(dates[0], dates[-1]) < (dates[-1] - dates[0]).astype(np.int64))


def _by_months(dates: np.ndarray, ahead: np.ndarray) -> np.ndarray | None:
    """Continues dates that are whole months apart, on one day of the month or on its last."""
    months = dates.astype("datetime64[M]")
    steps = np.diff(months).astype(np.int64)
    step = median_step(steps)
    day, last_day = dates - months.astype("datetime64[D]"), _last_day(months)
    # Days of the month, counted from 0. A day that a short month does not have is its last one.
    kept = _LAST_DAY_OF_LONG_MONTH if (day == last_day).all() else day.max()
    if step < 1 or (steps % step).any() or (day != np.minimum(kept, last_day)).any():
        return None
    next_months = months[-1] + step * ahead
    return next_months.astype("datetime64[D]") + np.minimum(kept, _last_day(next_months))


def _last_day(months: np.ndarray) -> np.ndarray:
    """Returns the number of the last day of each month, counted from 0."""
    return (months + 1).astype("datetime64[D]") - months.astype("datetime64[D]") - 1


def _continue_steps(series: Series, num_rows: int) -> pd.Index:
    """Continues by the median step, as elapsed time."""
    if series.num_rows < 2:
        raise ValueError(
            "`future` must give the stamps to predict where the series has one row, and so no "
            f"step. Received: {series.stamps[0]} only"
        )
    time, stamps = series.time, series.stamps
    step = median_step(np.diff(time))
    ahead = np.arange(1, num_rows + 1)
    if time.dtype.kind == "f":
        with np.errstate(over="ignore"):
            time = (time[-1] + step * ahead).astype(stamps.dtype)
        if not np.isfinite(time[-1]):
            raise OverflowError
        return pd.Index(time)
    dtype: Any = time.dtype if isinstance(stamps, pd.DatetimeIndex) else stamps.dtype
    if int(time[-1]) + int(step) * num_rows > np.iinfo(dtype).max:
        raise OverflowError
    time = time[-1] + step * ahead
    if not isinstance(stamps, pd.DatetimeIndex):
        return pd.Index(time.astype(dtype))
    utc = pd.DatetimeIndex(time.astype(f"datetime64[{series.time_unit}]"))
    return utc if stamps.tz is None else utc.tz_localize("UTC").tz_convert(stamps.tz)
