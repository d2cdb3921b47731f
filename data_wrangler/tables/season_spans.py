"""Lengths of seasons as people state them: numbers of steps, spans of time, names."""

import datetime
import math
import numbers
import re
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.stamps import (
    DAY_NANOSECONDS,
    NANOSECONDS,
    READABLE_UNITS,
    median_step,
)

YEAR_DAYS = 365.2425
"""Days in a year of the calendar, on average."""

SHORTEST_SEASON = 2.0
"""A season has at least this many steps."""

# Days in what pandas has no unit for, or none of this length.
_DAYS = {"year": YEAR_DAYS, "quarter": YEAR_DAYS / 4, "month": YEAR_DAYS / 12, "week": 7.0}
_CALENDAR_DAYS = (YEAR_DAYS, 7.0, 1.0)
# So many steps are a calendar season if they are this close to it: 52 weeks are a year.
_CALENDAR_TOLERANCE = 0.01
# Rows that are so many apart are a fixed time apart, if most of them are: 5 business days a week.
_SAME_SPAN, _MOST_SPANS = 0.02, 0.6
_SPAN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)?\s*(year|quarter|month|week|day|hour|minute)s?\s*")


def calendar_periods(series: Series) -> tuple[float, ...]:
    """Returns a year, a week and a day in the unit of time; none for times that are numbers."""
    if series.time_unit is None:
        return ()
    return tuple(days * _units_a_day(series) for days in _CALENDAR_DAYS)


def usual_step(series: Series) -> float:
    """Returns the median step, in the unit of time; 1 for a series of one row."""
    if series.num_rows < 2:
        return 1.0
    return float(median_step(np.diff(series.time)))


def season_length(season: Any, series: Series) -> float:
    """Returns the length of a season in the unit of time.

    Args:
        season: for times that are numbers, a number in their unit. For dates a number of steps, a
            Timedelta, or text such as `"7 days"` or `"year"`; as many steps as a year, a week or a
            day has, within 1 %, are that.
        series: says how long steps are.

    Raises:
        TypeError: it is none of these.
        ValueError: it is not positive and finite, or shorter than two steps; a span for times that
            are numbers; text that is no span.
    """
    if isinstance(season, str) and _is_number(season):
        season = float(season)
    is_number = isinstance(season, numbers.Real) and not isinstance(season, bool)
    if not is_number and not isinstance(
        season, str | datetime.timedelta | np.timedelta64 | pd.tseries.offsets.BaseOffset
    ):
        raise TypeError(f"`seasons` must be {_wish(series)}. Received: seasons={season!r}")
    if is_number:
        length = float(season)
        if series.time_unit is not None and math.isfinite(length) and length > 0:
            length = _steps_length(length, series)
    else:
        length = _span_length(season, series)
    if not (math.isfinite(length) and length > 0):
        raise ValueError(f"`seasons` must be positive and finite. Received: seasons={season!r}")
    step = usual_step(series)
    # Steps of a calendar, and of floats, are not quite equal.
    if series.num_rows > 1 and length < SHORTEST_SEASON * step * (1 - _CALENDAR_TOLERANCE):
        raise ValueError(
            "`seasons` must be at least two steps long; the usual step is "
            f"{span_text_of(step, series.time_unit)}. Received: seasons={season!r}"
        )
    return length


def _wish(series: Series) -> str:
    if series.time_unit is None:
        return "'auto', None, a number in the unit of the time, or up to three numbers"
    return "'auto', None, a number of steps, a span such as '7 days', or up to three of these"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _units_a_day(series: Series) -> float:
    return DAY_NANOSECONDS / NANOSECONDS[str(series.time_unit)]


def _span_length(span: Any, series: Series) -> float:
    match = _SPAN.fullmatch(span.lower()) if isinstance(span, str) else None
    if series.time_unit is not None and match is not None and match[2] in _DAYS:
        return float(match[1] or 1) * _DAYS[match[2]] * _units_a_day(series)
    if series.time_unit is not None and match is not None and match[1] is None:
        span = f"1 {match[2]}"
    try:
        if series.time_unit is None:
            raise ValueError("times that are numbers have no unit")
        return series.duration(span)
    except ValueError as error:
        raise ValueError(
            f"`seasons` must be {_wish(series)}. Received: seasons={span!r}"
        ) from error


def _steps_length(count: float, series: Series) -> float:
    """Returns the time of so many steps, or the season of the calendar that it is."""
    if series.num_rows < 2:
        raise ValueError(
            "`seasons` must be a span such as '7 days' for a series of one row. "
            f"Received: seasons={count!r}"
        )
    length = count * usual_step(series)
    whole = int(count)
    if 1 <= whole < series.num_rows:
        spans = (series.time[whole:] - series.time[:-whole]).astype(np.float64)
        same = np.abs(spans / np.median(spans) - 1) <= _SAME_SPAN
        # Months have 28 to 31 days, and business days skip those of weekends.
        if same.mean() >= _MOST_SPANS:
            length = float(spans[same].mean()) * count / whole
    for period in calendar_periods(series):
        if abs(length / period - 1) <= _CALENDAR_TOLERANCE:
            return period
    return length


def span_text_of(length: float, time_unit: str | None) -> str:
    """Writes a length of time in the longest unit of which it has one.

    Example:
        >>> span_text_of(365.2425 * 86_400, "s"), span_text_of(5400.0, "s"), span_text_of(2.5, None)
        ('365.2425 days', '1.5 h', '2.5')
    """
    if time_unit is None:
        return f"{length:.7g}"
    nanoseconds = length * NANOSECONDS[time_unit]
    name, size = next(
        (item for item in READABLE_UNITS.items() if nanoseconds >= item[1] * (1 - 1e-9)), ("ns", 1)
    )
    count = f"{nanoseconds / size:.7g}"
    return f"{count} {name}" if name != "day" or count == "1" else f"{count} days"
