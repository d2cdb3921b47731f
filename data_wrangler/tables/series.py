"""A table of a time series, checked once, with time kept exact in 64 bits."""

import dataclasses
import datetime
import functools
import gzip
import importlib.resources
import lzma
import os
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_choice

UNSORTED = ("error", "sort")
DUPLICATES = ("error", "first", "last", "mean")

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ISO_8601 = "ISO8601"
_PARQUET = (".parquet", ".pq")
# What unpacking raises; that of bzip2 is an OSError like any other, but without a number.
_BAD_ARCHIVES = (
    gzip.BadGzipFile,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
)
# Stands before the cells of text while pandas reads them, so that none looks like a missing one.
_MARK = "="


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """T rows of one or several columns over time; make it with `from_frame` or `read_series`.

    Attributes:
        time: `[T]`, strictly increasing. int64 for dates, counted in `time_unit` since 1970 in UTC,
            and for integers; float64 for other numbers.
        values: `[T, D_y]` float64, in the units of the table. NaN means missing.
        stamps: the T stamps of the table, with time zone, period or resolution as they came.
        time_column: the name of the column of time.
        target_columns: the names of the D_y columns.
        time_unit: "s", "ms", "us" or "ns" for dates, None for numbers.
        name: tells series apart, and their random numbers; in a table of several, the id.
        covariates: `[T, D_c]` float64, finite: what is known ahead of time, such as a calendar.
            None, or no column: there are none.
        covariate_columns: the names of the D_c columns.

    Raises:
        ValueError: arrays that do not fit one another, no rows, stamps that are not strictly
            increasing, infinite values, or covariates that are not finite.
    """

    time: np.ndarray
    values: np.ndarray
    stamps: pd.Index
    time_column: Hashable = "time"
    target_columns: tuple[Hashable, ...] = ("y",)
    time_unit: str | None = None
    name: str = ""
    covariates: np.ndarray | None = None
    covariate_columns: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.stamps), len(self.target_columns))
        if self.time.shape != shape[:1] or self.values.shape != shape:
            raise ValueError(
                f"`time` must be [T] and `values` [T, D_y] with T, D_y = {shape}. "
                f"Received: {list(self.time.shape)} and {list(self.values.shape)}"
            )
        if self.time_unit is not None and self.time_unit not in NANOSECONDS:
            raise ValueError(
                f"`time_unit` must be one of {', '.join(NANOSECONDS)} or None. "
                f"Received: time_unit={self.time_unit!r}"
            )
        if not shape[0]:
            raise ValueError("a series must have at least one row. Received: 0 rows")
        _check_increasing(self.time, self.stamps, self.time_column)
        _check_finite(self.values, self.target_columns)
        known = self.known
        if known.shape != (shape[0], len(self.covariate_columns)):
            raise ValueError(
                f"`covariates` must be [T, D_c] with T, D_c = {shape[0]}, "
                f"{len(self.covariate_columns)}. Received: {list(known.shape)}"
            )
        _check_known(known, self.covariate_columns)
        for array in (self.time, self.values, known):
            array.setflags(write=False)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        time_column: Hashable,
        target_columns: Hashable | Sequence[Hashable],
        *,
        covariate_columns: Hashable | Sequence[Hashable] = (),
        date_format: str | None = None,
        unsorted: str = "error",
        duplicates: str = "error",
        name: str = "",
    ) -> "Series":
        """Takes a series from a table.

        Nothing is filled in, sorted or dropped unless it is asked for: a table that would need it
        is an error. Rows are counted from 1 in messages, in the order of the table and without
        the header.

        Args:
            frame: one row a stamp, in the order of time. It is not changed.
            time_column: a column (or the index) of dates, periods (their start counts), integers
                or floats. Text must be dates of ISO 8601, such as 1999-12-31, 1999-12 or
                1999-12-31T23:59:59.005+01:00, with one time zone or none. An index of dates
                without a name goes by the name `"index"`.
            target_columns: one name or several. Empty cells are missing values.
            covariate_columns: columns that are known ahead of time, of numbers or of True and
                False (1 and 0), with no empty cell.
            date_format: for text of another form, such as `"%d/%m/%Y"`, or for numbers that spell
                a date, such as `"%Y%m%d"`.
            unsorted: what rows that are not in the order of time are: an `"error"`, or something
                to `"sort"`.
            duplicates: what rows with the same time are: an `"error"`, or one row: the `"first"`
                or the `"last"` of them in the order of the table, or their `"mean"`. That is
                the mean of the values that are there, for each column; their covariates must
                be the same.
            name: see the class.

        Returns:
            The series, `[T, D_y]`.

        Raises:
            TypeError: `frame` is no DataFrame.
            ValueError: missing columns, no rows, stamps that are no times, that are not in order
                or come twice, text or infinite values in a target column, text or empty cells in
                a covariate. The message names the column, the row and the value.
        """
        rows = TableRows.read(frame, time_column, target_columns, covariate_columns, date_format)
        return rows.in_order(unsorted, duplicates).to_series(name)

    def to_frame(self) -> pd.DataFrame:
        """Gives a table that `from_frame` reads back: the stamps, the targets, the covariates."""
        table: dict[Hashable, Any] = {self.time_column: self.stamps}
        table |= dict(zip(self.target_columns, self.values.T, strict=True))
        if self.covariates is not None:
            table |= dict(zip(self.covariate_columns, self.covariates.T, strict=True))
        return pd.DataFrame(table)

    @property
    def num_rows(self) -> int:
        """T."""
        return len(self.time)

    @property
    def num_columns(self) -> int:
        """D_y."""
        return self.values.shape[1]

    @property
    def known(self) -> np.ndarray:
        """`[T, D_c]`: the covariates, with no column where there are none."""
        return np.empty((self.num_rows, 0)) if self.covariates is None else self.covariates

    @functools.cached_property
    def observed(self) -> np.ndarray:
        """`[T]` bool: True where no column is missing. The other rows are masked whole."""
        return ~np.isnan(self.values).any(axis=1)

    @functools.cached_property
    def last_observed_row(self) -> np.ndarray:
        """`[T, D_y]` int64: the last row up to each row with a value in the column; -1 for none."""
        rows = np.arange(self.num_rows, dtype=np.int64)[:, np.newaxis]
        return np.maximum.accumulate(np.where(np.isnan(self.values), -1, rows), axis=0)

    @property
    def missing(self) -> dict[Hashable, int]:
        """How many values each column lacks."""
        counts = np.isnan(self.values).sum(axis=0)
        return {name: int(n) for name, n in zip(self.target_columns, counts, strict=True)}

    @property
    def num_masked_rows(self) -> int:
        """How many rows lack at least one value; they are masked whole."""
        return int((~self.observed).sum())

    @property
    def num_partly_missing_rows(self) -> int:
        """How many rows lack some of their values but not all, and are masked for it."""
        return self.num_masked_rows - int(np.isnan(self.values).all(axis=1).sum())

    def missing_summary(self) -> dict[str, Any]:
        """Counts what is missing, ready for a report in JSON.

        Returns:
            `rows`, `missing` (a count for each column), `masked_rows` and `partly_missing_rows`.
        """
        return {
            "rows": self.num_rows,
            "missing": {str(name): count for name, count in self.missing.items()},
            "masked_rows": self.num_masked_rows,
            "partly_missing_rows": self.num_partly_missing_rows,
        }

    def duration(self, span: Any) -> float:
        """Gives a length of time in the units of `time`.

        Args:
            span: for dates a Timedelta, or text with a unit such as `"365.25 days"`; for other
                times a number.

        Returns:
            A positive number.

        Raises:
            ValueError: `span` is not positive, or no length of time. A plain number is none for
                dates, as it has no unit.
        """
        try:
            if self.time_unit is None:
                length = float(span)
            else:
                length = _timedelta(span) / pd.Timedelta(f"1{self.time_unit}")
        except (OverflowError, TypeError, ValueError) as error:
            what = "a number"
            if self.time_unit is not None:
                what = "a Timedelta or text such as '7 days' for dates"
            raise ValueError(f"`span` must be {what}. Received: span={span!r}") from error
        if not (np.isfinite(length) and length > 0):
            raise ValueError(f"`span` must be positive and finite. Received: span={span!r}")
        return float(length)

    def time_label(self, row: int) -> str:
        """Names the instant of one row, the same for every resolution of its table."""
        value = self.time[row]
        if self.time_unit is not None:
            return str(int(value) * NANOSECONDS[self.time_unit])
        number = float(value)
        return str(int(value)) if number.is_integer() else number.hex()


@dataclasses.dataclass(frozen=True, eq=False)
class TableRows:
    """T rows of a table as exact numbers, in any order: a `Series` before it is put in order.

    Attributes:
        stamps: see `Series`, as the next ones.
        time: `[T]`, in any order, and maybe with times that come again.
        values: `[T, D_y]`.
        covariates: `[T, D_c]`.
        time_unit: see `Series`.
        numbers: `[T]` int64, which rows of the table these are, counted from 1, for messages.
        time_column: see `Series`, as the next ones.
        target_columns: the names of the D_y columns.
        covariate_columns: the names of the D_c columns.
    """

    stamps: pd.Index
    time: np.ndarray
    values: np.ndarray
    covariates: np.ndarray
    time_unit: str | None
    numbers: np.ndarray
    time_column: Hashable
    target_columns: tuple[Hashable, ...]
    covariate_columns: tuple[Hashable, ...]

    @classmethod
    def read(
        cls,
        frame: pd.DataFrame,
        time_column: Hashable,
        target_columns: Hashable | Sequence[Hashable],
        covariate_columns: Hashable | Sequence[Hashable] = (),
        date_format: str | None = None,
    ) -> "TableRows":
        """Reads the rows of a table; see `Series.from_frame` for arguments and errors."""
        check_frame(frame)
        targets = as_names("target_columns", target_columns, 1)
        known = as_names("covariate_columns", covariate_columns)
        frame = flatten_index(frame)
        check_columns(
            frame, time_column=time_column, target_columns=targets, covariate_columns=known
        )
        stamps = read_stamps(frame[time_column], time_column, date_format)
        time, unit = exact_time(stamps)
        values = np.empty((len(frame), len(targets)), np.float64)
        for place, column in enumerate(targets):
            values[:, place] = _read_numbers(frame[column], column)
        _check_finite(values, targets)
        covariates = read_covariates(frame, known)
        numbers = np.arange(1, len(frame) + 1)
        return cls(stamps, time, values, covariates, unit, numbers, time_column, targets, known)

    def take(self, rows: Any) -> "TableRows":
        """Gives some of the rows, chosen by their places or by a slice."""
        return dataclasses.replace(
            self,
            stamps=self.stamps[rows],
            time=self.time[rows],
            values=self.values[rows],
            covariates=self.covariates[rows],
            numbers=self.numbers[rows],
        )

    def in_order(self, unsorted: str = "error", duplicates: str = "error") -> "TableRows":
        """Puts the rows in strictly increasing order, where that is asked for.

        Args:
            unsorted: see `Series.from_frame`.
            duplicates: see `Series.from_frame`.

        Raises:
            ValueError: another word, or rows that would need what was not asked for.
        """
        check_choice("unsorted", unsorted, UNSORTED)
        check_choice("duplicates", duplicates, DUPLICATES)
        if (self.time[1:] > self.time[:-1]).all():
            return self
        if duplicates == "error":
            _check_once(self.time, self.stamps, self.time_column, self.numbers)
        if unsorted == "error":
            _check_sorted(self.time, self.stamps, self.time_column, self.numbers)
        rows = self.take(np.argsort(self.time, kind="stable"))
        changes = np.flatnonzero(rows.time[1:] != rows.time[:-1]) + 1
        firsts = np.concatenate([[0], changes])
        if len(firsts) == len(rows.time):
            return rows
        if duplicates == "last":
            return rows.take(np.append(firsts[1:], len(rows.time)) - 1)
        kept = rows.take(firsts)
        if duplicates == "first":
            return kept
        return dataclasses.replace(kept, values=rows._mean(firsts))

    def _mean(self, firsts: np.ndarray) -> np.ndarray:
        """Averages what is observed in each run of equal times; `firsts` are their first rows."""
        run = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(self.time)))
        differ = self.covariates != self.covariates[firsts][run]
        if differ.any():
            row, place = (int(i) for i in np.argwhere(differ)[0])
            first = int(firsts[run[row]])
            raise ValueError(
                f"Column `{self.covariate_columns[place]}` must be the same in rows of one time "
                'for duplicates="mean". '
                f"Received: {float(self.covariates[first, place])!r} and "
                f"{float(self.covariates[row, place])!r} "
                f"in rows {self.numbers[first]} and {self.numbers[row]}"
            )
        observed = ~np.isnan(self.values)
        count = np.add.reduceat(observed.astype(np.int64), firsts, axis=0)
        # Divided first: the sum of large numbers may leave the range of floating point.
        share = np.where(observed, self.values, 0) / np.maximum(count, 1)[run]
        return np.where(count > 0, np.add.reduceat(share, firsts, axis=0), np.nan)

    def to_series(self, name: str = "") -> Series:
        """Makes the series; the rows must be in order."""
        return Series(
            self.time,
            self.values,
            self.stamps,
            self.time_column,
            self.target_columns,
            self.time_unit,
            name,
            self.covariates,
            self.covariate_columns,
        )


def _timedelta(span: Any) -> pd.Timedelta:
    """Reads a length of time, but not what pandas would take for nanoseconds."""
    if isinstance(span, str):
        has_unit = any(letter.isalpha() or letter == ":" for letter in span)
    elif isinstance(span, np.timedelta64):
        has_unit = np.datetime_data(span)[0] != "generic"
    else:
        has_unit = isinstance(span, datetime.timedelta | pd.tseries.offsets.BaseOffset)
    if not has_unit:
        raise TypeError("a length of time must have a unit")
    return pd.Timedelta(span)


class ColumnError(ValueError):
    """A column of a table that cannot be read.

    Attributes:
        column: its name.
        wish: what it must do.
        received: what it holds.
        row: where that stands, counted from 0, or None where it is not in one row.
    """

    def __init__(self, column: Hashable, wish: str, received: str, row: int | None = None) -> None:
        super().__init__(column, wish, received, row)
        self.column, self.wish, self.received, self.row = column, wish, received, row

    def __str__(self) -> str:
        return self.describe()

    def describe(
        self, argument: str | None = None, numbers: np.ndarray | None = None, label: str = ""
    ) -> str:
        """Words the error for a part of a larger table.

        Args:
            argument: the argument that is the table. None: it need not be told.
            numbers: `[T]` int64, which rows of the larger table the rows are, counted from 1.
                None: all of them.
            label: put at the end, to name the part.
        """
        table = "" if argument is None else f" of `{argument}`"
        place = ""
        if self.row is not None:
            place = f" in row {self.row + 1 if numbers is None else numbers[self.row]}"
        return (
            f"Column `{self.column}`{table} must {self.wish}. "
            f"Received: {self.received}{place}{label}"
        )


def read_table(
    path: str | PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    text_columns: Hashable | Sequence[Hashable] = (),
) -> pd.DataFrame:
    r"""Reads a table from a CSV file in UTF-8, or from a Parquet file.

    Args:
        path: the file. `.parquet` and `.pq` are Parquet, everything else is CSV with a header
            line; `.gz`, `.zip`, `.bz2`, `.xz`, `.tar` and `.zst` are unpacked. A byte-order mark,
            any line ends and blank lines in CSV are no matter: blank lines are left out, and
            count for no row in later messages.
        separator: what stands between the columns of CSV, such as `";"`: one character, or
            `"\t"` for a tab.
        decimal: the decimal mark of CSV, such as `","`: one other character.
        text_columns: columns of CSV that are text as it is spelled, such as ids: `001` keeps its
            zeros, and `NA` is a word. Only an empty cell is missing. Those that are not in the
            file are ignored. A Parquet file says itself what is text.

    Returns:
        The table as it is in the file, in the file's order.

    Raises:
        OSError: the file cannot be read.
        ImportError: a package is missing that reads Parquet, or unpacks `.zst`.
        TypeError: a mark that is no text.
        ValueError: the file is no table, is damaged, or has rows with more cells than the header;
            a mark that is more than one character, or the same as the other.
    """
    separator = _check_mark("separator", "\t" if separator == r"\t" else separator)
    if separator == _check_mark("decimal", decimal):
        raise ValueError(
            "`separator` and `decimal` must not be the same. "
            f"Received: separator={separator!r} and decimal={decimal!r}"
        )
    if str(os.fspath(path)).lower().endswith(_PARQUET):
        return _read_parquet(path)
    return _read_csv(path, separator, decimal, as_names("text_columns", text_columns))


def _check_mark(name: str, mark: Any) -> str:
    if not isinstance(mark, str):
        raise TypeError(f"`{name}` must be text. Received: {name}={mark!r}")
    shown = mark == "\t" or (mark.isascii() and mark.isprintable())
    if len(mark) != 1 or not shown or mark.isdigit() or mark == '"':
        raise ValueError(
            f"`{name}` must be one character of ASCII, and no digit, quote or line end. "
            f"Received: {name}={mark!r}"
        )
    return mark


def _read_csv(
    path: str | PathLike[str], separator: str, decimal: str, text_columns: tuple[Hashable, ...]
) -> pd.DataFrame:
    # A number would be the place of a column, and the names in a file are text.
    text = [name for name in text_columns if isinstance(name, str)]
    try:
        with warnings.catch_warnings():
            # pandas drops what stands beyond the last column of the header, and only warns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                sep=separator,
                decimal=decimal,
                encoding="utf-8-sig",
                low_memory=False,
                index_col=False,
                converters=dict.fromkeys(text, _MARK.__add__),
            )
    except pd.errors.ParserWarning as error:
        raise ValueError(
            "`path` must be a CSV file whose rows have no more cells than the header line "
            f"(`separator` and `decimal` are for other marks). Received: {path}"
        ) from error
    except (ValueError, OSError, *_BAD_ARCHIVES) as error:
        damaged = isinstance(error, _BAD_ARCHIVES) or (type(error) is OSError and not error.errno)
        if isinstance(error, OSError) and not damaged:
            raise
        raise ValueError(
            "`path` must be a CSV file in UTF-8 with a header line. "
            f"Received: {path} ({str(error).strip()})"
        ) from error
    for name in frame.columns.intersection(text):
        cells = frame[name].str.removeprefix(_MARK)
        frame[name] = cells.where(cells != "")
    return frame


def _read_parquet(path: str | PathLike[str]) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            "`path` must be a CSV file where neither `pyarrow` nor `fastparquet` is installed to "
            f"read Parquet. Received: {path}"
        ) from error
    except OSError:
        raise
    except Exception as error:
        # Each of the two packages has errors of its own for what is no Parquet file.
        raise ValueError(f"`path` must be a Parquet file. Received: {path} ({error})") from error


def read_series(
    path: str | PathLike[str],
    time_column: str,
    target_columns: str | Sequence[str],
    *,
    covariate_columns: str | Sequence[str] = (),
    separator: str = ",",
    decimal: str = ".",
    date_format: str | None = None,
    unsorted: str = "error",
    duplicates: str = "error",
    name: str = "",
) -> Series:
    """Reads a series from a CSV file in UTF-8, or from a Parquet file.

    Args:
        path: the file, see `read_table`.
        time_column: see `Series.from_frame`.
        target_columns: see `Series.from_frame`.
        covariate_columns: see `Series.from_frame`.
        separator: what stands between the columns of CSV, such as `";"`.
        decimal: the decimal mark of CSV, such as `","`.
        date_format: see `Series.from_frame`.
        unsorted: see `Series.from_frame`.
        duplicates: see `Series.from_frame`.
        name: see `Series`.

    Returns:
        The series, `[T, D_y]`.

    Raises:
        OSError: the file cannot be read.
        ImportError: a Parquet file, and no package that reads such.
        ValueError: the file is no table, or as `Series.from_frame` says. Rows are counted from 1,
            without the header and blank lines.
    """
    return Series.from_frame(
        read_table(path, separator=separator, decimal=decimal),
        time_column,
        target_columns,
        covariate_columns=covariate_columns,
        date_format=date_format,
        unsorted=unsorted,
        duplicates=duplicates,
        name=name,
    )


def load_mauna_loa_co2() -> Series:
    """Loads weekly carbon dioxide at Mauna Loa, in ppm, 1958 to 2001, with its gaps.

    Returns:
        2284 rows of the column `co2`, 59 of them missing. The data are in the public domain;
        `data/mauna_loa_co2.txt` names the source.
    """
    folder = importlib.resources.files("taylorformer.data_wrangler")
    with importlib.resources.as_file(folder / "data" / "mauna_loa_co2.csv") as path:
        return read_series(path, "date", "co2", name="mauna_loa_co2")


def as_names(
    argument: str, columns: Hashable | Sequence[Hashable], minimum: int = 0
) -> tuple[Hashable, ...]:
    """Turns one name or several into a tuple of different names, at least `minimum` (0 or 1)."""
    several = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    names = tuple(columns) if several else (columns,)  # type: ignore[arg-type]
    if len(names) < minimum or len(set(names)) != len(names):
        wish = "at least one column, and none twice" if minimum else "no column twice"
        raise ValueError(f"`{argument}` must name {wish}. Received: {argument}={columns!r}")
    return names


def check_frame(frame: Any, argument: str = "frame") -> None:
    """Checks that an argument is a table.

    Raises:
        TypeError: it is no DataFrame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`{argument}` must be a pandas DataFrame. Received: {type(frame).__name__}"
        )


def index_levels(frame: pd.DataFrame) -> list[Hashable]:
    """Names the levels of the index that count as columns, in order.

    They are those with a name that no column has, and an index of dates without a name, which goes
    by the name `"index"` unless a column is called so.
    """
    index = frame.index
    names = list(index.names)
    if names == [None] and isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        names = ["index"]
    return [name for name in names if name is not None and name not in frame.columns]


def flatten_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Puts what `index_levels` names before the columns; the rest of the index is dropped."""
    levels = index_levels(frame)
    if not levels:
        return frame
    if frame.index.names == [None]:
        frame = frame.set_axis(frame.index.rename(levels[0]))
    drop: list[Hashable] = [
        place for place, name in enumerate(frame.index.names) if name not in levels
    ]
    return frame.droplevel(drop).reset_index() if drop else frame.reset_index()


def check_roles(**roles: Hashable | tuple[Hashable, ...] | None) -> None:
    """Checks that no column plays two parts; see `check_columns`."""
    role_of: dict[Hashable, str] = {}
    for role, column in _named(roles):
        if column in role_of:
            raise ValueError(
                f"`{role_of[column]}` and `{role}` must not share a column. "
                f"Received: {column!r} in both"
            )
        role_of[column] = role


def check_columns(
    frame: pd.DataFrame,
    argument: str = "frame",
    /,
    **roles: Hashable | tuple[Hashable, ...] | None,
) -> None:
    """Checks that a table has rows and each column that plays a part, and that none plays two.

    Args:
        frame: the table.
        argument: the argument that it is, for messages.
        **roles: for each argument the column or the tuple of columns that it names, or None.

    Raises:
        ValueError: as above. The message names the columns that are there.
    """
    there = ", ".join(map(repr, frame.columns))
    for _, column in _named(roles):
        count = int((frame.columns == column).sum())
        if count != 1:
            how = "missing" if not count else f"there {count} times"
            raise ValueError(
                f"`{argument}` must have one column {column!r}; it is {how}. Received: {there}"
            )
    check_roles(**roles)
    if frame.empty:
        raise ValueError(f"`{argument}` must have at least one row. Received: 0 rows")


def _named(roles: Mapping[str, Any]) -> Iterator[tuple[str, Hashable]]:
    for role, names in roles.items():
        for column in names if isinstance(names, tuple) else () if names is None else (names,):
            yield role, column


def _bad_row(column: Hashable, wish: str, row: int, value: Any) -> ColumnError:
    return ColumnError(column, wish, "an empty cell" if pd.isna(value) else repr(value), row)


def read_stamps(column: pd.Series, name: Hashable, date_format: str | None) -> pd.Index:
    """Reads a column of time: dates, periods, int64 or float64; see `Series.from_frame`."""
    if date_format is not None and pd.api.types.is_numeric_dtype(column.dtype):
        column = column.astype("object").map(str)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    empty = column.isna().to_numpy()
    if empty.any():
        row = int(empty.argmax())
        raise _bad_row(name, "hold a time in every row", row, column.iloc[row])
    dtype = column.dtype
    if isinstance(dtype, pd.PeriodDtype | pd.DatetimeTZDtype) or dtype.kind == "M":
        return pd.Index(column)
    if pd.api.types.is_bool_dtype(dtype) or dtype.kind in "cm":
        raise _bad_row(name, "hold dates or numbers", 0, column.iloc[0])
    if pd.api.types.is_numeric_dtype(dtype):
        return _read_number_stamps(column, name)
    return _read_text_stamps(column, name, date_format or _ISO_8601)


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
        raise _bad_row(name, "hold finite times", row, float(numbers[row]))
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
            raise _bad_row(name, wish, row, value)
    parsed = _parse_dates(column, date_format)
    if parsed is not None:
        return pd.Index(parsed)
    row = _first_unparsable(column, date_format)
    if _parse_dates(column.iloc[[row]], date_format) is None:
        row = _first_text_among_numbers(values, row)
    raise _bad_row(name, wish, row, values[row])


def _parse_dates(column: pd.Series, date_format: str) -> pd.Series | None:
    """Reads text as dates, or gives None if a row is no date or has another time zone."""
    try:
        with warnings.catch_warnings():
            # With this one pandas 2 lets several time zones through, as objects.
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
    """In a column of numbers the row that is none is at fault, not the first number."""
    number = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").notna().to_numpy()
    if number.all() or number.mean() < 0.5:
        return row
    return int((~number).argmax())


def exact_time(stamps: pd.Index) -> tuple[np.ndarray, str | None]:
    """Turns stamps into `Series.time`, and gives the unit of dates."""
    if isinstance(stamps, pd.PeriodIndex):
        stamps = stamps.to_timestamp()
    if isinstance(stamps, pd.DatetimeIndex):
        if stamps.tz is not None:
            stamps = stamps.tz_convert("UTC").tz_localize(None)
        dates = stamps.to_numpy()
        return dates.astype(np.int64), np.datetime_data(dates.dtype)[0]
    return stamps.to_numpy(copy=True), None


def _read_numbers(column: pd.Series, name: Hashable) -> np.ndarray:
    if pd.api.types.is_bool_dtype(column.dtype) or getattr(column.dtype, "kind", "O") in "cmM":
        raise _bad_row(name, "hold numbers", 0, column.iloc[0])
    wish = "hold numbers, or empty cells where a value is missing"
    if column.dtype == object:
        # Where a cell is empty, True and False come as objects, and would become 1 and 0.
        wrong = column.map(type).isin([bool, np.bool_]).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise _bad_row(name, wish, row, column.iloc[row])
    return _to_numbers(column, name, wish)


def _to_numbers(column: pd.Series, name: Hashable, wish: str) -> np.ndarray:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        text = column.astype("object")
        column = pd.to_numeric(text, errors="coerce")
        wrong = (column.isna() & text.notna()).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise _bad_row(name, wish, row, text.iloc[row])
    return column.to_numpy(np.float64, na_value=np.nan)


def read_covariates(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> np.ndarray:
    """Reads covariates, `[T, D_c]` float64: finite numbers, or True and False."""
    covariates = np.empty((len(frame), len(columns)), np.float64)
    wish = "hold a number, or True or False, in every row"
    for place, name in enumerate(columns):
        column = frame[name]
        if getattr(column.dtype, "kind", "O") in "cmM":
            raise _bad_row(name, wish, 0, column.iloc[0])
        covariates[:, place] = _to_numbers(column, name, wish)
    _check_known(covariates, columns)
    return covariates


def _check_increasing(time: np.ndarray, stamps: pd.Index, name: Hashable) -> None:
    # Compared, not subtracted: a difference of two 64-bit integers may not fit in 64 bits.
    if not (time[1:] > time[:-1]).all():
        numbers = np.arange(1, len(time) + 1)
        _check_once(time, stamps, name, numbers)
        _check_sorted(time, stamps, name, numbers)


def _check_once(time: np.ndarray, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    order = np.argsort(time, kind="stable")
    same = time[order][1:] == time[order][:-1]
    if same.any():
        first, second = (int(row) for row in order[same.argmax() :][:2])
        raise ValueError(
            f"Column `{name}` must hold each time once; {int(same.sum())} come again "
            '(duplicates="first", "last" or "mean" merges them). '
            f"Received: {stamps[first]} in rows {numbers[first]} and {numbers[second]}"
        )


def _check_sorted(time: np.ndarray, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    wrong = ~(time[1:] >= time[:-1])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Column `{name}` must be in the order of time; {int(wrong.sum())} rows are earlier "
            'than the row before (unsorted="sort" sorts them). '
            f"Received: {stamps[row]} in row {numbers[row]} and {stamps[row + 1]} "
            f"in row {numbers[row + 1]}"
        )


def _check_finite(values: np.ndarray, columns: tuple[Hashable, ...]) -> None:
    wrong = np.isinf(values)
    if wrong.any():
        row, place = (int(i) for i in np.argwhere(wrong)[0])
        wish = "hold finite numbers, or empty cells where a value is missing"
        raise _bad_row(columns[place], wish, row, float(values[row, place]))


def _check_known(covariates: np.ndarray, columns: tuple[Hashable, ...]) -> None:
    wrong = ~np.isfinite(covariates)
    if wrong.any():
        row, place = (int(i) for i in np.argwhere(wrong)[0])
        wish = "hold a finite number in every row, as covariates are known ahead of time"
        raise _bad_row(columns[place], wish, row, float(covariates[row, place]))
