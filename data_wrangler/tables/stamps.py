"""Stamps of rows: exact 64-bit time, and errors where they are out of order or come twice."""

import datetime
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.column_error import ColumnError, bad_row
from taylorformer.data_wrangler.tables.stamp_form import TIME_UNITS, StampForm, zone_name
from taylorformer.data_wrangler.tables.text_stamps import read_text_stamps

NANOSECONDS = {unit: 10**9 // per_second for unit, per_second in TIME_UNITS.items()}
"""How many nanoseconds the units of time have."""

DAY_NANOSECONDS = 86_400 * 10**9
_HOUR_NANOSECONDS = 3600 * 10**9
_MINUTE_NANOSECONDS = 60 * 10**9

READABLE_UNITS = {
    "day": DAY_NANOSECONDS,
    "h": _HOUR_NANOSECONDS,
    "min": _MINUTE_NANOSECONDS,
    **NANOSECONDS,
}
"""The units in which people read a length of time, the longest first, in nanoseconds."""

# Years 1 to 9999, the range of Python's dates, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
# The unit that holds the fractions of numbers in another one.
_FINER = {"s": "us", "ms": "us", "us": "ns", "ns": "ns"}
# Beyond this float64 does not hold every whole number.
_LARGEST_EXACT = 2**53


def read_stamps(column: pd.Series, name: Hashable, form: StampForm) -> pd.Index:
    """Reads a column of time: dates, periods, int64 or float64; see `Series.from_frame`."""
    if form.date_format is not None and pd.api.types.is_numeric_dtype(column.dtype):
        column = column.astype("object").map(str)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if isinstance(column.dtype, pd.ArrowDtype):
        column = _without_arrow(column)
    empty = column.isna().to_numpy()
    if empty.any():
        row = int(empty.argmax())
        raise bad_row(name, "hold a time in every row", row, column.iloc[row])
    dtype = column.dtype
    if isinstance(dtype, pd.PeriodDtype):
        return pd.Index(column)
    if isinstance(dtype, pd.DatetimeTZDtype) or dtype.kind == "M":
        return _in_zone(pd.DatetimeIndex(column), form)
    if pd.api.types.is_bool_dtype(dtype) or dtype.kind in "cm":
        raise bad_row(name, "hold dates or numbers", 0, column.iloc[0])
    if form.time_unit is not None and not pd.api.types.is_numeric_dtype(dtype):
        as_numbers = pd.to_numeric(column, errors="coerce")
        column = as_numbers if as_numbers.notna().all() else column
    if pd.api.types.is_numeric_dtype(column.dtype):
        numbers = _read_number_stamps(column, name)
        if form.time_unit is not None:
            return _since_1970(numbers, name, form.time_unit, form.time_zone)
        years = _years(numbers, form)
        return numbers if years is None else years
    return read_text_stamps(column, name, form)


def _without_arrow(column: pd.Series) -> pd.Series:
    """Gives a column of Arrow's types those of NumPy and pandas."""
    if column.dtype.kind == "M":
        # Days of Arrow come as objects of Python, its timestamps as dates.
        return pd.Series(pd.DatetimeIndex(pd.Index(column)), column.index, name=column.name)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    return column.astype("object")


def _in_zone(dates: pd.DatetimeIndex, form: StampForm) -> pd.DatetimeIndex:
    """Shows dates that have no time zone with a name in the one that is asked for."""
    if dates.tz is None:
        return dates if form.time_unit is None else _shown(dates.tz_localize("UTC"), form.time_zone)
    if form.time_zone is None:
        return dates
    name = zone_name(dates.tz)
    is_utc = name == "UTC" or dates.tz == datetime.timezone.utc
    return dates if name and not is_utc else dates.tz_convert(form.time_zone)


def _shown(dates: pd.DatetimeIndex, time_zone: str | None) -> pd.DatetimeIndex:
    return dates if time_zone is None else dates.tz_convert(time_zone)


def _since_1970(
    numbers: pd.Index, name: Hashable, time_unit: str, time_zone: str | None
) -> pd.DatetimeIndex:
    """Reads numbers that count time since 1970; fractions become those of a finer unit."""
    per_second = TIME_UNITS[time_unit]
    whole = numbers.to_numpy()
    seconds = whole / per_second
    outside = ~((seconds >= _FIRST_SECOND) & (seconds <= _LAST_SECOND))
    if outside.any():
        row = int(outside.argmax())
        wish = f"hold times of the years 1 to 9999, counted in {time_unit} since 1970 (`time_unit`)"
        raise bad_row(name, wish, row, whole[row].item())
    unit = time_unit
    if whole.dtype.kind == "f":
        if (whole != np.rint(whole)).any():
            unit = _FINER[time_unit]
        whole = np.rint(whole * (TIME_UNITS[unit] // per_second))
        if (np.abs(whole) >= _LARGEST_EXACT).any() and unit != time_unit:
            row = int((np.abs(whole) >= _LARGEST_EXACT).argmax())
            wish = "hold whole numbers where floats cannot hold their fractions"
            raise bad_row(name, wish, row, numbers[row])
    dates = pd.DatetimeIndex(
        whole.astype(np.int64).astype(f"datetime64[{unit}]"), name=numbers.name
    )
    return _shown(dates.tz_localize("UTC"), time_zone)


def _years(numbers: pd.Index, form: StampForm) -> pd.PeriodIndex | None:
    """Reads years, where a table of periods of years is written in a file."""
    freq = form.period_freq
    if not isinstance(freq, pd.offsets.YearEnd) or freq.n != 1 or numbers.dtype.kind != "i":
        return None
    ordinals = numbers.to_numpy(np.int64) - 1970
    dtype = pd.PeriodDtype(freq)
    return pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=dtype), name=numbers.name)


def _read_number_stamps(column: pd.Series, name: Hashable) -> pd.Index:
    if pd.api.types.is_integer_dtype(column.dtype):
        limits = np.iinfo(np.int64)
        first, last = int(column.min()), int(column.max())
        if last > limits.max or last - first > limits.max:
            wish = "hold times whose differences fit in 64 bits"
            raise ColumnError(name, wish, f"{first} to {last}")
        return pd.Index(column.to_numpy(np.int64), name=name)
    numbers = column.to_numpy(np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(wrong.argmax())
        raise bad_row(name, "hold finite times", row, float(numbers[row]))
    return pd.Index(numbers, name=name)


def exact_time(stamps: pd.Index) -> tuple[np.ndarray, str | None]:
    """Converts stamps to `Series.time`; also returns the unit, see `Series.time_unit`."""
    if isinstance(stamps, pd.PeriodIndex):
        stamps = stamps.to_timestamp()
    if isinstance(stamps, pd.DatetimeIndex):
        if stamps.tz is not None:
            stamps = stamps.tz_convert("UTC").tz_localize(None)
        dates = stamps.to_numpy()
        return dates.astype(np.int64), np.datetime_data(dates.dtype)[0]
    return stamps.to_numpy(copy=True), None


def check_increasing(time: np.ndarray, stamps: pd.Index, name: Hashable) -> None:
    """Checks that times increase from row to row; the error shows the stamps."""
    # Compared, not subtracted: a difference of two 64-bit integers may not fit in 64 bits.
    if not (time[1:] > time[:-1]).all():
        numbers = np.arange(1, len(time) + 1)
        check_unique(time, stamps, name, numbers)
        check_sorted(time, stamps, name, numbers)


def check_unique(time: np.ndarray, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    """Checks that no time comes twice; `numbers` are those of the rows in messages."""
    order = np.argsort(time, kind="stable")
    same = time[order][1:] == time[order][:-1]
    if same.any():
        first, second = (int(row) for row in order[same.argmax() :][:2])
        raise ValueError(
            f"Column `{name}` must hold each time once; {int(same.sum())} come again "
            '(duplicates="first", "last" or "mean", --duplicates, merges them). '
            f"Received: {stamps[first]} in rows {numbers[first]} and {numbers[second]}"
        )


def check_sorted(time: np.ndarray, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    """Checks that no row is earlier than the row before; see `check_unique`."""
    wrong = ~(time[1:] >= time[:-1])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Column `{name}` must be in the order of time; {int(wrong.sum())} rows are earlier "
            'than the row before (unsorted="sort", --sort, sorts them). '
            f"Received: {stamps[row]} in row {numbers[row]} and {stamps[row + 1]} "
            f"in row {numbers[row + 1]}"
        )


def median_step(steps: np.ndarray) -> Any:
    """Returns the median of steps; of integers the lower median, which is one of them."""
    if steps.dtype.kind == "f":
        return np.median(steps)
    middle = (len(steps) - 1) // 2
    return np.partition(steps, middle)[middle]


def duration(span: Any, time_unit: str | None) -> float:
    """Converts a length of time to units of time; see `Series.duration`."""
    try:
        if time_unit is None:
            length = float(span)
        else:
            length = _timedelta(span) / pd.Timedelta(f"1{time_unit}")
    except (OverflowError, TypeError, ValueError) as error:
        what = "a number"
        if time_unit is not None:
            what = "a Timedelta or text such as '7 days' for dates"
        raise ValueError(f"`span` must be {what}. Received: span={span!r}") from error
    if not (np.isfinite(length) and length > 0):
        raise ValueError(f"`span` must be positive and finite. Received: span={span!r}")
    return float(length)


def _timedelta(span: Any) -> pd.Timedelta:
    """Reads a length of time, but no number without a unit: pandas takes it for nanoseconds."""
    if isinstance(span, str):
        has_unit = any(letter.isalpha() or letter == ":" for letter in span)
    elif isinstance(span, np.timedelta64):
        has_unit = np.datetime_data(span)[0] != "generic"
    else:
        has_unit = isinstance(span, datetime.timedelta | pd.tseries.offsets.BaseOffset)
    if not has_unit:
        raise TypeError("a length of time must have a unit")
    return pd.Timedelta(span)


def span_text(span: Any, time_unit: str | None) -> str | float:
    """Writes a length of time in the longest unit without a fraction, such as "15 min"."""
    if time_unit is None:
        return span.item()
    nanoseconds = int(span) * NANOSECONDS[time_unit]
    name, size = next(item for item in READABLE_UNITS.items() if nanoseconds % item[1] == 0)
    count = nanoseconds // size
    return f"{count} {name}" if name != "day" or count == 1 else f"{count} days"
