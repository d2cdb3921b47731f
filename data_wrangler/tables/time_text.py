"""Columns of time as they come from files: days before months, and errors that say what helps."""

import dataclasses
import re
from collections.abc import Hashable
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.column_error import ColumnError, bad_row
from taylorformer.data_wrangler.tables.stamp_form import StampForm
from taylorformer.data_wrangler.tables.stamps import read_stamps

# Day, month, year with the same mark between them, and what may follow.
_DAY_FIRST = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[/.\- ])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})"
    r"(?P<gap>,? |T)?(?P<clock>(?<=[ T])\d{1,2}:\d{2})?(?P<seconds>(?<=:\d\d):\d{2})?"
    r"(?P<fraction>(?<=:\d\d)\.\d{1,9})?(?P<zone>Z|[+-]\d{2}:?\d{2})?"
)
_ISO_DATE = re.compile(r"\d{4}-\d{1,2}(-|$)")
_MONTHS = 12


def read_time(column: pd.Series, name: Hashable, form: StampForm) -> pd.Index:
    """Reads a column of time; see `Series.from_frame`.

    Example:
        >>> column = pd.Series(["16/12/2006 17:24", "1/2/2007 0:00"])
        >>> read_time(column, "t", StampForm(day_first=True))[1]
        Timestamp('2007-02-01 00:00:00')

    Raises:
        ColumnError: a cell that is no time, with the option that would help, if one would.
    """
    is_iso = form.date_format is None and not form.day_first
    try:
        if form.day_first:
            date_format = day_first_format(column, name)
            form = dataclasses.replace(form, date_format=date_format, day_first=False)
        return read_stamps(column, name, form)
    except ColumnError as error:
        advice = _advice(column, error.row, is_iso)
        if not advice:
            raise
        wish = f"{error.wish} ({advice})"
        raise ColumnError(name, wish, error.received, error.row) from error


def day_first_format(column: pd.Series, name: Hashable) -> str | None:
    """Returns the `date_format` of text in which the day comes first, then month and year.

    The first row says what stands between them, and how far the time of day goes; all rows must
    be the same. Dates of ISO 8601, whose year comes first, and columns of dates need no format.

    Example:
        >>> day_first_format(pd.Series(["16.12.2006 17:24"]), "t")
        '%d.%m.%Y %H:%M'

    Raises:
        ColumnError: text of another form, a year of two digits, or numbers.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        wish = "hold text such as 16/12/2006 for `day_first` (`date_format` is for other forms)"
        raise bad_row(name, wish, 0, column.iloc[0])
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    texts = [one for one in column.iloc[:1] if isinstance(one, str)]
    if not texts or _ISO_DATE.match(texts[0]):
        return None
    match = _DAY_FIRST.fullmatch(texts[0])
    if match is None:
        wish = (
            "hold dates such as 16/12/2006 or 16/12/2006 17:24:00 for `day_first`; `date_format` "
            "(--date-format) is for other forms"
        )
        raise bad_row(name, wish, 0, texts[0])
    if len(match["year"]) != len("2006"):
        wish = (
            "have years of four digits for `day_first`; `date_format` (--date-format) with %y is "
            "for two, of which 69 to 99 are 1969 to 1999"
        )
        raise bad_row(name, wish, 0, texts[0])
    form = match["mark"].join(["%d", "%m", "%Y"]) + (match["gap"] or "")
    for group, directive in _DIRECTIVES.items():
        form += directive if match[group] else ""
    return form


_DIRECTIVES = {"clock": "%H:%M", "seconds": ":%S", "fraction": ".%f", "zone": "%z"}


def looks_like_iso_date(value: Any) -> bool:
    """Tells whether a cell is text that begins with a year, as dates of ISO 8601 do."""
    return isinstance(value, str) and _ISO_DATE.match(value) is not None


def _advice(column: pd.Series, row: int | None, is_iso: bool) -> str:
    """Says which option would help to read a column, by the cell that could not be read."""
    value = None if row is None else column.iloc[row]
    if not isinstance(value, str):
        return ""
    if value != value.strip():
        return "`strip` (--strip) leaves out the blanks around cells"
    if row == 0 and not any(letter.isdigit() for letter in value):
        return "`skip_rows` (--skip-rows) and `comment` (--comment) leave out lines of no table"
    match = _DAY_FIRST.match(value)
    if match is None:
        return ""
    texts = [one for one in column if isinstance(one, str)]
    pairs = [(int(one["first"]), int(one["second"])) for one in map(_DAY_FIRST.match, texts) if one]
    day = "`day_first` (--day-first) if the day comes first"
    month = match["mark"].join(["%m", "%d", "%Y" if len(match["year"]) > 2 else "%y"])
    month = f"`date_format` (--date-format), such as {month!r}, if the month does"
    if len(match["year"]) == 2:
        day = f"`date_format` (--date-format), such as {match['mark'].join(['%d', '%m', '%y'])!r}"
    first_is_day = any(first > _MONTHS for first, _ in pairs)
    second_is_day = any(second > _MONTHS for _, second in pairs)
    if first_is_day and second_is_day:
        return "the day comes first in some rows and the month in others"
    if first_is_day:
        return day.removesuffix(" if the day comes first") if is_iso else ""
    if second_is_day:
        return month.removesuffix(", if the month does")
    return f"{day}, {month}" if is_iso else ""
