"""Stamps of rows: exact 64-bit time, and errors where they are out of order or come twice."""

import datetime
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.column_error import ColumnError, bad_row

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""How many nanoseconds the units of time have."""

DAY_NANOSECONDS = 86_400 * 10**9
_HOUR_NANOSECONDS = 3600 * 10**9
_MINUTE_NANOSECONDS = 60 * 10**9

# The units in which people read a length of time, the longest first.
_READABLE_UNITS = {
    "day": DAY_NANOSECONDS,
    "h": _HOUR_NANOSECONDS,
    "min": _MINUTE_NANOSECONDS,
    **NANOSECONDS,
}
_ISO_8601 = "ISO8601"
# `pandas.infer_freq` needs at least three dates.
_DATES_TO_INFER = 3
# From this share of numbers on, a column of text is a column of numbers with some words in it.
_MOSTLY_NUMBERS = 0.5


def read_stamps(column: pd.Series, name: Hashable, date_format: str | None) -> pd.Index:
    """Reads a column of time: dates, periods, int64 or float64; see `Series.from_frame`."""
    if date_format is not None and pd.api.types.is_numeric_dtype(column.dtype):
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
    if isinstance(dtype, pd.PeriodDtype | pd.DatetimeTZDtype) or dtype.kind == "M":
        return pd.Index(column)
    if pd.api.types.is_bool_dtype(dtype) or dtype.kind in "cm":
        raise bad_row(name, "hold dates or numbers", 0, column.iloc[0])
    if pd.api.types.is_numeric_dtype(dtype):
        return _read_number_stamps(column, name)
    return _read_text_stamps(column, name, date_format or _ISO_8601)


def _without_arrow(column: pd.Series) -> pd.Series:
    """Gives a column of Arrow's types those of NumPy and pandas."""
    if column.dtype.kind == "M":
        return pd.Series(pd.DatetimeIndex(column), column.index, name=column.name)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    return column.astype("object")


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


def _read_text_stamps(column: pd.Series, name: Hashable, date_format: str) -> pd.Index:
    wish = (
        "hold dates of ISO 8601 with one time zone or none; `date_format` is for other forms"
        if date_format == _ISO_8601
        else f"hold dates of the form {date_format!r} with one time zone or none"
    )
    values = list(column)
    for row, value in enumerate(values):
        # pandas would also read words such as "now", and the number 5 as five nanoseconds.
        is_text = isinstance(value, str)
        if not (is_text or hasattr(value, "isoformat")) or (
            is_text and date_format == _ISO_8601 and not value[:1].isdigit()
        ):
            raise bad_row(name, wish, row, value)
    parsed = _parse_dates(column, date_format)
    if parsed is not None:
        return pd.Index(parsed)
    row = _first_unparsable(column, date_format)
    if _parse_dates(column.iloc[[row]], date_format) is None:
        row = _first_text_among_numbers(values, row)
    raise bad_row(name, wish, row, values[row])


def _parse_dates(column: pd.Series, date_format: str) -> pd.Series | None:
    """Reads text as dates; returns None if a row is no date or has another time zone."""
    try:
        with warnings.catch_warnings():
            # pandas 2 only warns of several time zones, and returns objects.
            warnings.simplefilter("error", FutureWarning)
            parsed = pd.to_datetime(column, format=date_format)
    except (FutureWarning, TypeError, ValueError):
        return None
    return parsed if parsed.dtype.kind == "M" and not parsed.isna().any() else None


def _first_unparsable(column: pd.Series, date_format: str) -> int:
    """Finds the first row that is no date, or that has another time zone than the first row."""
    good, bad = 0, len(column)
    # The rows before `good` can be read together, those before `bad` cannot.
    while bad - good > 1:
        middle = (good + bad) // 2
        # The first row is read again each time, because its time zone binds the others.
        part = pd.concat([column.iloc[:1], column.iloc[max(good, 1) : middle]])
        if _parse_dates(part, date_format) is None:
            bad = middle
        else:
            good = middle
    return good


def _first_text_among_numbers(values: list[Any], row: int) -> int:
    """Finds the row to blame: in a column that is mostly numbers, the first that is none."""
    number = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").notna().to_numpy()
    if number.all() or number.mean() < _MOSTLY_NUMBERS:
        return row
    return int((~number).argmax())


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
            '(duplicates="first", "last" or "mean" merges them). '
            f"Received: {stamps[first]} in rows {numbers[first]} and {numbers[second]}"
        )


def check_sorted(time: np.ndarray, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    """Checks that no row is earlier than the row before; see `check_unique`."""
    wrong = ~(time[1:] >= time[:-1])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Column `{name}` must be in the order of time; {int(wrong.sum())} rows are earlier "
            'than the row before (unsorted="sort" sorts them). '
            f"Received: {stamps[row]} in row {numbers[row]} and {stamps[row + 1]} "
            f"in row {numbers[row + 1]}"
        )


def median_step(steps: np.ndarray) -> Any:
    """Returns the median of steps; of integers the lower median, which is one of them."""
    if steps.dtype.kind == "f":
        return np.median(steps)
    middle = (len(steps) - 1) // 2
    return np.partition(steps, middle)[middle]


def infer_offset(stamps: pd.Index) -> pd.tseries.offsets.BaseOffset | None:
    """Returns the frequency that pandas infers from dates; None for fewer than three or none."""
    if not isinstance(stamps, pd.DatetimeIndex) or len(stamps) < _DATES_TO_INFER:
        return None
    with warnings.catch_warnings():
        # Versions of pandas return text, or an offset, or text with a warning.
        warnings.simplefilter("ignore", DeprecationWarning)
        frequency = pd.infer_freq(stamps)
    return None if frequency is None else pd.tseries.frequencies.to_offset(frequency)


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
    name, size = next(item for item in _READABLE_UNITS.items() if nanoseconds % item[1] == 0)
    count = nanoseconds // size
    return f"{count} {name}" if name != "day" or count == 1 else f"{count} days"
