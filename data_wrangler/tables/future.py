"""Rows to predict: putting them after a series, from a table of the future or without one."""

import dataclasses
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_choice, check_integer, listed
from taylorformer.data_wrangler.tables.column_error import ColumnError
from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import continue_stamps, not_after
from taylorformer.data_wrangler.tables.frames import check_columns, check_frame, flatten_index
from taylorformer.data_wrangler.tables.long_table import read_ids
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.stamp_form import StampForm, form_of
from taylorformer.data_wrangler.tables.stamps import exact_time
from taylorformer.data_wrangler.tables.table_rows import UNSORTED
from taylorformer.data_wrangler.tables.time_text import read_time
from taylorformer.data_wrangler.tables.values import read_covariates


@dataclasses.dataclass(frozen=True, eq=False)
class FutureRows:
    """The T rows of one series in a table of the future; made by `split_future`.

    Attributes:
        frame: the rows.
        numbers: `[T]` int64, the numbers of the rows in the whole table, counted from 1, for
            messages.
        label: text to add to an error, to name the id; "" without a column of ids.
    """

    frame: pd.DataFrame
    numbers: np.ndarray
    label: str = ""

    @classmethod
    def whole(cls, future: pd.DataFrame) -> "FutureRows":
        """Takes all rows of a table.

        Raises:
            TypeError: `future` is no DataFrame.
        """
        check_frame(future, "future")
        return cls(flatten_index(future), np.arange(1, len(future) + 1))

    def take(self, rows: Any, label: str) -> "FutureRows":
        """Selects rows by their indices or by a slice."""
        return FutureRows(self.frame.iloc[rows], self.numbers[rows], label)


def split_future(
    future: pd.DataFrame,
    columns: Columns,
    names: Sequence[str],
    optional: Collection[str] = (),
) -> Mapping[str, FutureRows]:
    """Splits a table of the future into the rows of each series.

    Args:
        future: one row for each stamp and id, the ids in any order; see `extend_series` for its
            columns. Rows of ids that are not in `names` are left out.
        columns: which columns play which part; only `id_column` is read here.
        names: the names of the series, see `split_table`.
        optional: those of them that may have no rows, and are not returned then.

    Returns:
        For each of `names` the `future` of `extend_series`. Without a column of ids it is the whole
        table for each series.

    Raises:
        TypeError: `future` is no DataFrame.
        ValueError: no column of ids, no rows, empty ids, two that are the same as text, or a
            series without rows.
    """
    whole = FutureRows.whole(future)
    column = columns.id_column
    if column is None:
        return dict.fromkeys(names, whole)
    if column not in whole.frame.columns:
        raise ValueError(
            f"`future` must have the column {column!r}, which tells the series apart. "
            f"Received: {', '.join(map(repr, whole.frame.columns)) or 'no columns'}"
        )
    check_columns(whole.frame, "future", id_column=column)
    try:
        ids = read_ids(whole.frame[column], column)
    except ColumnError as error:
        raise ValueError(error.describe("future")) from error
    names_in_future = set(ids.names)
    missing = [name for name in names if name not in {*names_in_future, *optional}]
    if missing:
        raise ValueError(
            f"`future` must have rows for every series. Received: none for {listed(missing)}"
        )
    order, parts = ids.group()
    whole = whole.take(order, "")
    groups = {
        name: (part, label) for name, part, label in zip(ids.names, parts, ids.labels, strict=True)
    }
    return {name: whole.take(*groups[name]) for name in names if name in groups}


def extend_series(
    series: Series,
    *,
    num_rows: int | None = None,
    future: pd.DataFrame | FutureRows | None = None,
    columns: Columns | None = None,
    unsorted: str = "error",
) -> Series:
    """Adds rows to predict after the last row of a series.

    Example:
        >>> table = pd.DataFrame({"day": ["2024-01-01", "2024-01-02"], "load": [3.5, 4.5]})
        >>> series = extend_series(Series.from_frame(table, "day", "load"), num_rows=1)
        >>> str(series.stamps[2].date()), series.values[:, 0].tolist()
        ('2024-01-03', [3.5, 4.5, nan])

    Args:
        series: T rows.
        num_rows: how many rows to add: without `future` at the stamps of `continue_stamps`, else
            the first `num_rows` rows of `future`. None: all rows of `future`.
        future: a table of the rows to add, with the column of time and those of the covariates, or
            rows of one returned by `split_future`. Other columns are not read, not even those of
            the targets. Dates may have another resolution or time zone than the series, if they
            can be converted exactly. Required where the series has covariates.
        columns: which columns of `future` play which part, the form of its stamps, and `freq` for
            `continue_stamps`. None: as in the series.
        unsorted: what to do with rows of `future` that are not in the order of time: raise an
            `"error"`, or `"sort"` them, before the first `num_rows` are taken.

    Returns:
        The series with the added rows, in which every y is missing.

    Raises:
        TypeError: `future` is no DataFrame.
        ValueError: neither `num_rows` nor `future`; covariates and no `future`; a `future` with
            fewer rows than `num_rows`, with stamps of another kind than those of the series, or
            not strictly increasing, or not after its last row; or as in `continue_stamps`. The
            message names the row, as counted in the whole table, and the id.

    Warns:
        UserWarning: as `continue_stamps`.
    """
    check_choice("unsorted", unsorted, UNSORTED)
    if future is None:
        if num_rows is None:
            raise ValueError("`num_rows` or `future` must be given. Received: neither")
        if series.covariate_columns:
            names = ", ".join(map(repr, series.covariate_columns))
            raise ValueError(
                f"`future` must give the covariates {names} of the rows to predict. "
                "Received: future=None"
            )
        freq = None if columns is None else columns.freq
        return with_rows(series, continue_stamps(series, num_rows, freq))
    stamps, covariates = _read_future(series, future, num_rows, columns, unsorted)
    return with_rows(series, stamps, covariates)


def with_rows(series: Series, stamps: pd.Index, covariates: np.ndarray | None = None) -> Series:
    """Adds N rows in which every y is missing.

    Args:
        series: T rows.
        stamps: `[N]`, after its last one and of their dtype.
        covariates: `[N, D_c]`. None: there are none.

    Returns:
        The series of T + N rows.
    """
    if covariates is None:
        covariates = np.empty((len(stamps), 0))
    time, _ = exact_time(stamps)
    missing = np.full((len(stamps), series.num_columns), np.nan)
    return dataclasses.replace(
        series,
        time=np.concatenate([series.time, time]),
        values=np.concatenate([series.values, missing]),
        stamps=series.stamps.append(stamps),
        covariates=np.concatenate([series.covariate_values, covariates]),
    )


def _read_future(
    series: Series,
    future: pd.DataFrame | FutureRows,
    num_rows: int | None,
    columns: Columns | None,
    unsorted: str,
) -> tuple[pd.Index, np.ndarray]:
    rows = future if isinstance(future, FutureRows) else FutureRows.whole(future)
    name, covariate_names, form = series.time_column, series.covariate_columns, StampForm()
    if columns is not None:
        name, covariate_names = columns.time_column, columns.covariate_columns
        form = columns.stamp_form
        rows = dataclasses.replace(rows, frame=columns.with_time(rows.frame, "future"))
    # What a file has lost of their type.
    form = form_of(series.stamps, form)
    if len(covariate_names) != len(series.covariate_columns):
        raise ValueError(
            f"`columns` must name D_c = {len(series.covariate_columns)} covariates, as the series. "
            f"Received: {len(covariate_names)}"
        )
    check_columns(rows.frame, "future", time_column=name, covariate_columns=covariate_names)
    if num_rows is not None:
        num_rows = check_integer("num_rows", num_rows, 1)
        if len(rows.frame) < num_rows:
            raise ValueError(
                f"`future` must have at least num_rows = {num_rows} rows. "
                f"Received: {len(rows.frame)}{rows.label}"
            )
        if unsorted == "error":
            rows = rows.take(slice(num_rows), rows.label)
    try:
        stamps = read_time(rows.frame[name], name, form)
        stamps = _as_stamps_of(series, stamps, name)
        if unsorted == "sort":
            order = np.argsort(exact_time(stamps)[0], kind="stable")[:num_rows]
            rows, stamps = rows.take(order, rows.label), stamps[order]
        _check_after(series, stamps, name, rows.numbers)
        covariates = read_covariates(rows.frame, covariate_names)
        return stamps.rename(series.stamps.name), covariates
    except ColumnError as error:
        # Not raised from that error, whose text counts the rows of this series only.
        raise ValueError(error.describe("future", rows.numbers, rows.label)) from None


def _check_after(series: Series, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    time, _ = exact_time(stamps)
    wrong = not_after(series, time)
    if wrong.any():
        row = int(wrong.argmax())
        before = f"the last row of the series, {series.stamps[-1]}"
        if row:
            before = f"the stamp of row {numbers[row - 1]}, {stamps[row - 1]}"
            if time[row] == time[row - 1]:
                before += " (each time may come once)"
            else:
                before += ' (unsorted="sort", --sort, sorts the rows)'
        raise ColumnError(name, f"be after {before}", str(stamps[row]), row)


def _as_stamps_of(series: Series, stamps: pd.Index, name: Hashable) -> pd.Index:
    """Converts the stamps of a future to the dtype of those of the series, exactly."""
    wanted = series.stamps
    if stamps.dtype == wanted.dtype:
        return stamps
    kind, other = _kind(wanted), _kind(stamps)
    if kind != other:
        wish = f"hold {kind}, as the series does"
        raise ColumnError(name, wish, f"{other}, such as {stamps[0]}")
    try:
        if isinstance(stamps, pd.PeriodIndex):
            stamps = stamps.to_timestamp()
        converted, back = _convert(stamps, wanted)
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        wish = f"hold times in the range of {wanted.dtype}, as the series has them"
        raise ColumnError(name, wish, f"{stamps.min()} to {stamps.max()}") from error
    wrong = np.asarray(back != stamps)
    if wrong.any():
        row = int(wrong.argmax())
        wish = f"hold times that {wanted.dtype} can hold exactly, as the series has them"
        raise ColumnError(name, wish, str(stamps[row]), row)
    return converted


def _kind(stamps: pd.Index) -> str:
    if not isinstance(stamps, pd.DatetimeIndex | pd.PeriodIndex):
        return "numbers"
    aware = isinstance(stamps, pd.DatetimeIndex) and stamps.tz is not None
    return "dates with a time zone" if aware else "dates without a time zone"


def _convert(stamps: Any, wanted: Any) -> tuple[pd.Index, pd.Index]:
    """Returns stamps in the dtype of others, and these converted back again."""
    if not isinstance(wanted, pd.DatetimeIndex | pd.PeriodIndex):
        # NumPy makes another number of a float too large for an integer; the way back shows it.
        with np.errstate(invalid="ignore"):
            converted = stamps.to_numpy().astype(wanted.dtype)
            return pd.Index(converted), pd.Index(converted.astype(stamps.dtype))
    if isinstance(wanted, pd.PeriodIndex):
        periods = stamps.to_period(wanted.freq)
        return periods, periods.to_timestamp()
    dates = stamps if wanted.tz is None else stamps.tz_convert(wanted.tz)
    dates = dates.as_unit(wanted.unit)
    return dates, dates
