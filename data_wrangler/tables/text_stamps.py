"""Stamps that are text: dates with UTC offsets or without, quarters, months and weeks."""

import re
import warnings
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.column_error import ColumnError, bad_row
from taylorformer.data_wrangler.tables.stamp_form import StampForm
from taylorformer.data_wrangler.tables.weeks import WEEK, weekday_of

_ISO_8601 = "ISO8601"
# From this share of numbers on, a column of text is a column of numbers with some words in it.
_MOSTLY_NUMBERS = 0.5
# A UTC offset at the end of a date with a time.
_OFFSET = re.compile(r"\d[T ]\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$", re.IGNORECASE)
_QUARTER = r"(?P<year>\d{4})[ -]?[Qq](?P<part>[1-4])"
_QUARTER_FIRST = r"[Qq](?P<part>[1-4])[ -]?(?P<year>\d{4})"
_MONTH = r"(?P<year>\d{4})(?:[ -]?[Mm]|-)(?P<part>0?[1-9]|1[0-2])"
_WEEK = r"(?P<year>\d{4})-?[Ww](?P<part>0[1-9]|[1-4]\d|5[0-3])"
# Periods of several days, as pandas writes them.
_SPAN = r"(?P<start>\d{4}-\d{2}-\d{2})/(?P<end>\d{4}-\d{2}-\d{2})"
_DAYS_OF_WEEK = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


def read_text_stamps(column: pd.Series, name: Hashable, form: StampForm) -> pd.Index:
    """Reads text, or objects such as `datetime.date`, as dates or periods.

    Raises:
        ColumnError: a row that is none; it names the first one.
    """
    if form.date_format is None:
        periods = _read_periods(column, name, form)
        if periods is not None:
            return periods
    dates = _read_dates(column, name, form.date_format or _ISO_8601)
    if dates.tz is None and form.time_unit is not None:
        # What counts since 1970 counts from midnight in UTC.
        dates = dates.tz_localize("UTC")
    if dates.tz is not None:
        return dates if form.time_zone is None else dates.tz_convert(form.time_zone)
    if form.period is not None:
        as_periods = dates.to_period(form.period_freq)
        if (as_periods.to_timestamp() == dates).all():
            return as_periods
    return dates


def _read_dates(column: pd.Series, name: Hashable, date_format: str) -> pd.DatetimeIndex:
    wish = (
        "hold dates of ISO 8601, all with a UTC offset or none (`date_format`, --date-format, is "
        "for other forms)"
        if date_format == _ISO_8601
        else f"hold dates of the form {date_format!r}, all with a UTC offset or none"
    )
    values = list(column)
    for row, value in enumerate(values):
        # pandas would also read words such as "now", and the number 5 as five nanoseconds.
        is_text = isinstance(value, str)
        if not (is_text or _is_date(value)) or (
            is_text and date_format == _ISO_8601 and not value[:1].isdigit()
        ):
            raise bad_row(name, wish, row, value)
    parsed = _parse_dates(column, date_format)
    if parsed is not None:
        return pd.DatetimeIndex(parsed)
    row = _first_unparsable(column, date_format)
    if _parse_dates(column.iloc[[row]], date_format) is None:
        row = _first_text_among_numbers(values, row)
    raise bad_row(name, wish, row, values[row])


def _is_date(value: Any) -> bool:
    return hasattr(value, "isoformat") or isinstance(value, np.datetime64)


def _parse_dates(column: pd.Series, date_format: str) -> pd.Series | None:
    """Reads text as dates, in UTC where their offsets differ; None if a row is no date.

    It also returns None where some rows have an offset and others none.
    """
    parsed = _parse(column, date_format, False)
    if parsed is None:
        parsed = _parse(column, date_format, True)
        if parsed is not None and not _all_have_offsets(column, date_format):
            return None
    return parsed


def _parse(column: pd.Series, date_format: str, utc: bool) -> pd.Series | None:
    try:
        with warnings.catch_warnings():
            # pandas 2 only warns of several offsets, and returns objects.
            warnings.simplefilter("error", FutureWarning)
            parsed = pd.to_datetime(column, format=date_format, utc=utc)
    except (FutureWarning, TypeError, ValueError):
        return None
    return parsed if parsed.dtype.kind == "M" and not parsed.isna().any() else None


def _all_have_offsets(column: pd.Series, date_format: str) -> bool:
    if "%z" in date_format or "%Z" in date_format:
        return True
    return all(
        _OFFSET.search(value) if isinstance(value, str) else getattr(value, "tzinfo", None)
        for value in column
    )


def _first_unparsable(column: pd.Series, date_format: str) -> int:
    """Finds the first row that is no date, or that unlike the first row has an offset or none."""
    good, bad = 0, len(column)
    # The rows before `good` can be read together, those before `bad` cannot.
    while bad - good > 1:
        middle = (good + bad) // 2
        # The first row is read again each time, because its offset binds the others.
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


def _read_periods(column: pd.Series, name: Hashable, form: StampForm) -> pd.PeriodIndex | None:
    """Reads quarters, months and weeks; None where the first row is none of them."""
    first = column.iloc[0]
    if isinstance(first, pd.Period):
        for row, value in enumerate(column):
            if not isinstance(value, pd.Period) or value.freq != first.freq:
                wish = f"hold periods of {first.freqstr!r} in every row, as in the first one"
                raise bad_row(name, wish, row, value)
        return pd.PeriodIndex(column.tolist(), name=column.name)
    if not isinstance(first, str):
        return None
    for pattern, example, read in (
        (_QUARTER, "quarters such as 1985Q1", _quarters),
        (_QUARTER_FIRST, "quarters such as Q1 1985", _quarters),
        (_MONTH, "months such as 2005M01", _months),
        (f"(?:{_WEEK}|{_SPAN})", "weeks such as 2024-W05, or 2024-01-29/2024-02-04", _weeks),
    ):
        # A month with a hyphen alone is a date of ISO 8601, its first day.
        if re.fullmatch(pattern, first) and not re.fullmatch(r"\d{4}-\d{2}", first):
            return _read_as(column, name, pattern, example, read, form.period_freq)
    return None


def _read_as(
    column: pd.Series,
    name: Hashable,
    pattern: str,
    example: str,
    read: Callable[[pd.DataFrame, Any], tuple[np.ndarray, Any]],
    freq: Any,
) -> pd.PeriodIndex:
    wish = f"hold {example} in every row, as in the first one"
    is_text = column.map(lambda value: isinstance(value, str)).to_numpy(bool)
    fields = column.astype("str").str.extract(f"^{pattern}$")
    wrong = ~is_text | fields.isna().all(axis=1).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise bad_row(name, wish, row, column.iloc[row])
    try:
        ordinals, dtype = read(fields, freq)
    except _BadRowError as error:
        raise ColumnError(name, wish, repr(column.iloc[error.row]), error.row) from None
    return pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=dtype), name=column.name)


class _BadRowError(ValueError):
    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def _ordinals(fields: pd.DataFrame, per_year: int) -> np.ndarray:
    """Counts parts of years since 1970."""
    year, part = (fields[key].astype(np.int64).to_numpy() for key in ("year", "part"))
    return np.asarray((year - 1970) * per_year + part - 1)


def _quarters(fields: pd.DataFrame, freq: Any) -> tuple[np.ndarray, Any]:
    is_quarters = isinstance(freq, pd.offsets.QuarterEnd) and freq.n == 1
    return _ordinals(fields, 4), pd.PeriodDtype(freq if is_quarters else "Q-DEC")


def _months(fields: pd.DataFrame, freq: Any) -> tuple[np.ndarray, Any]:
    return _ordinals(fields, 12), pd.PeriodDtype("M")


def _weeks(fields: pd.DataFrame, freq: Any) -> tuple[np.ndarray, Any]:
    """Reads weeks of ISO 8601, which begin on Monday, and spans of seven days."""
    numbered = fields["year"].notna().to_numpy()
    ends = np.empty(len(fields), "datetime64[D]")
    if numbered.any():
        some = fields[numbered]
        year, week = (some[key].astype(np.int64).to_numpy() for key in ("year", "part"))
        # The fourth of January is in week 1.
        fourth = (year - 1970).astype("datetime64[Y]").astype("datetime64[D]") + 3
        sunday = fourth + (WEEK - 1 - weekday_of(fourth.astype(np.int64)))
        ends[numbered] = sunday + WEEK * (week - 1)
        # A year of 52 weeks has no week 53: its Thursday would be in the next year.
        thursday = ends[numbered] - 3
        wrong = thursday.astype("datetime64[Y]").astype(np.int64) + 1970 != year
        if wrong.any():
            raise _BadRowError(int(np.flatnonzero(numbered)[wrong.argmax()]))
    spans = fields[~numbered]
    if len(spans):
        start, end = (
            pd.to_datetime(spans[key], format="%Y-%m-%d", errors="coerce")
            .to_numpy()
            .astype("datetime64[D]")
            for key in ("start", "end")
        )
        wrong = ~(end - start == np.timedelta64(6, "D"))
        if wrong.any():
            raise _BadRowError(int(np.flatnonzero(~numbered)[wrong.argmax()]))
        ends[~numbered] = end
    weekday = weekday_of(ends.astype(np.int64))
    if (weekday != weekday[0]).any():
        raise _BadRowError(int((weekday != weekday[0]).argmax()))
    freq = f"W-{_DAYS_OF_WEEK[int(weekday[0])]}"
    dates = pd.DatetimeIndex(ends.astype("datetime64[s]"))
    return dates.to_period(freq).asi8, pd.PeriodDtype(freq)
