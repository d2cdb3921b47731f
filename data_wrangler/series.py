"""A table of a time series, checked once, with time kept exact in 64 bits."""

import dataclasses
import functools
import importlib.resources
import warnings
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ISO_8601 = "ISO8601"


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
        date_format: str | None = None,
        name: str = "",
    ) -> "Series":
        """Takes a series from a table.

        Nothing is filled in, sorted or dropped: a table that would need it is an error. Rows are
        counted from 1 in messages, without the header.

        Args:
            frame: one row a stamp, in the order of time. It is not changed.
            time_column: a column (or the index) of dates, periods (their start counts), integers
                or floats. Text must be dates of ISO 8601, such as 1999-12-31, 1999-12 or
                1999-12-31T23:59:59.005+01:00, with one time zone or none.
            target_columns: one name or several. Empty cells are missing values.
            date_format: for text of another form, such as `"%d/%m/%Y"`, or for numbers that spell
                a date, such as `"%Y%m%d"`.
            name: see the class.

        Returns:
            The series, `[T, D_y]`.

        Raises:
            TypeError: `frame` is no DataFrame.
            ValueError: missing columns, no rows, stamps that are no times, that are not in order
                or come twice, text or infinite values in a target column. The message names the
                column, the row and the value.
        """
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(f"`frame` must be a pandas DataFrame. Received: {type(frame).__name__}")
        names = _as_names(target_columns)
        if time_column not in frame.columns and time_column in frame.index.names:
            frame = frame.reset_index()
        _check_columns(frame, time_column, names)
        stamps = _read_stamps(frame[time_column], time_column, date_format)
        time, unit = _exact_time(stamps)
        values = np.empty((len(frame), len(names)), np.float64)
        for place, column in enumerate(names):
            values[:, place] = _read_numbers(frame[column], column)
        return cls(time, values, stamps, time_column, names, unit, name)

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
            span: for dates a Timedelta or what makes one, such as `"365.25 days"`; for other
                times a number.

        Returns:
            A positive number.

        Raises:
            ValueError: `span` is not positive, or no length of time.
        """
        try:
            if self.time_unit is None:
                length = float(span)
            else:
                length = pd.Timedelta(span) / pd.Timedelta(f"1{self.time_unit}")
        except (TypeError, ValueError) as error:
            what = "a number" if self.time_unit is None else "a Timedelta"
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


def read_series(
    path: str | PathLike[str],
    time_column: str,
    target_columns: str | Sequence[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    date_format: str | None = None,
    name: str = "",
) -> Series:
    """Reads a series from a CSV file, in UTF-8.

    Args:
        path: the file, with a header line.
        time_column: see `Series.from_frame`.
        target_columns: see `Series.from_frame`.
        separator: what stands between columns, such as `";"`.
        decimal: the decimal mark, such as `","`.
        date_format: see `Series.from_frame`.
        name: see `Series`.

    Returns:
        The series, `[T, D_y]`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no table, or as `Series.from_frame` says.
    """
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            encoding="utf-8-sig",
            low_memory=False,
            index_col=False,
        )
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(
            f"`path` must be a CSV file in UTF-8 with a header line. Received: {path} ({error})"
        ) from error
    return Series.from_frame(frame, time_column, target_columns, date_format=date_format, name=name)


def load_mauna_loa_co2() -> Series:
    """Loads weekly carbon dioxide at Mauna Loa, in ppm, 1958 to 2001, with its gaps.

    Returns:
        2284 rows of the column `co2`, 59 of them missing. The data are in the public domain;
        `data/mauna_loa_co2.txt` names the source.
    """
    folder = importlib.resources.files("taylorformer.data_wrangler")
    with importlib.resources.as_file(folder / "data" / "mauna_loa_co2.csv") as path:
        return read_series(path, "date", "co2", name="mauna_loa_co2")


def _as_names(target_columns: Hashable | Sequence[Hashable]) -> tuple[Hashable, ...]:
    several = isinstance(target_columns, Sequence) and not isinstance(target_columns, str | bytes)
    names = tuple(target_columns) if several else (target_columns,)  # type: ignore[arg-type]
    if not names or len(set(names)) != len(names):
        raise ValueError(
            "`target_columns` must name at least one column, and none twice. "
            f"Received: target_columns={target_columns!r}"
        )
    return names


def _check_columns(
    frame: pd.DataFrame, time_column: Hashable, target_columns: tuple[Hashable, ...]
) -> None:
    there = ", ".join(map(repr, frame.columns))
    for column in (time_column, *target_columns):
        count = int((frame.columns == column).sum())
        if count != 1:
            how = "missing" if not count else f"there {count} times"
            raise ValueError(
                f"`frame` must have one column {column!r}; it is {how}. Received: {there}"
            )
    if time_column in target_columns:
        raise ValueError(
            "`time_column` must not be one of `target_columns`. "
            f"Received: time_column={time_column!r}"
        )
    if frame.empty:
        raise ValueError("`frame` must have at least one row. Received: 0 rows")


def _bad_row(column: Hashable, wish: str, row: int, value: Any) -> ValueError:
    shown = "an empty cell" if pd.isna(value) else repr(value)
    return ValueError(f"Column `{column}` must {wish}. Received: {shown} in row {row + 1}")


def _read_stamps(column: pd.Series, name: Hashable, date_format: str | None) -> pd.Index:
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
        whole = [int(column.iloc[0]), int(column.iloc[-1])]
        if max(whole) > limits.max or whole[1] - whole[0] > limits.max:
            raise ValueError(
                f"Column `{name}` must hold times whose differences fit in 64 bits. "
                f"Received: {whole[0]} to {whole[1]}"
            )
        return pd.Index(column.to_numpy(np.int64))
    numbers = column.to_numpy(np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(wrong.argmax())
        raise _bad_row(name, "hold finite times", row, float(numbers[row]))
    return pd.Index(numbers)


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
    try:
        with warnings.catch_warnings():
            # With this one pandas 2 lets several time zones through, as objects.
            warnings.simplefilter("error", FutureWarning)
            parsed = pd.to_datetime(column, format=date_format)
        if parsed.dtype.kind == "M" and not parsed.isna().any():
            return pd.Index(parsed)
    except (FutureWarning, TypeError, ValueError):
        pass
    row = _first_unparsable(values, date_format)
    raise _bad_row(name, wish, row, values[row])


def _first_unparsable(values: list[Any], date_format: str) -> int:
    """Finds the first row that is no date, or that has another time zone than the first row."""
    zone: Any = None
    for row, value in enumerate(values):
        try:
            stamp = pd.to_datetime(pd.Series([value]), format=date_format).iloc[0]
        except (TypeError, ValueError):
            return _first_text_among_numbers(values, row)
        if pd.isna(stamp) or (row and str(stamp.tzinfo) != zone):
            return row
        zone = str(stamp.tzinfo)
    return 0


def _first_text_among_numbers(values: list[Any], row: int) -> int:
    """In a column of numbers the row that is none is at fault, not the first number."""
    number = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").notna().to_numpy()
    if number.all() or number.mean() < 0.5:
        return row
    return int((~number).argmax())


def _exact_time(stamps: pd.Index) -> tuple[np.ndarray, str | None]:
    """Turns stamps into 64-bit numbers, and gives the unit of dates."""
    if isinstance(stamps, pd.PeriodIndex):
        stamps = stamps.to_timestamp()
    if isinstance(stamps, pd.DatetimeIndex):
        if stamps.tz is not None:
            stamps = stamps.tz_convert("UTC").tz_localize(None)
        dates = stamps.to_numpy()
        return dates.astype(np.int64), np.datetime_data(dates.dtype)[0]
    return stamps.to_numpy(copy=True), None


def _read_numbers(column: pd.Series, name: Hashable) -> np.ndarray:
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype) or getattr(dtype, "kind", "O") in "cmM":
        raise _bad_row(name, "hold numbers", 0, column.iloc[0])
    if not pd.api.types.is_numeric_dtype(dtype):
        text = column.astype("object")
        column = pd.to_numeric(text, errors="coerce")
        wrong = (column.isna() & text.notna()).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            wish = "hold numbers, or empty cells where a value is missing"
            raise _bad_row(name, wish, row, text.iloc[row])
    return column.to_numpy(np.float64, na_value=np.nan)


def _check_increasing(time: np.ndarray, stamps: pd.Index, name: Hashable) -> None:
    # Compared, not subtracted: a difference of two 64-bit integers may not fit in 64 bits.
    wrong = ~(time[1:] > time[:-1])
    if not wrong.any():
        return
    row = int(wrong.argmax())
    there = f"{stamps[row]} in row {row + 1} and {stamps[row + 1]} in row {row + 2}"
    order = np.argsort(time, kind="stable")
    same = time[order][1:] == time[order][:-1]
    if same.any():
        first, second = (int(row) for row in order[same.argmax() :][:2])
        raise ValueError(
            f"Column `{name}` must hold each time once; {int(same.sum())} come again. "
            f"Received: {stamps[first]} in rows {first + 1} and {second + 1}"
        )
    raise ValueError(
        f"Column `{name}` must be in the order of time; {int(wrong.sum())} rows are earlier than "
        f"the row before (sort the table first). Received: {there}"
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
