"""Where to predict: the stamps after the last row of a series."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_integer, listed
from taylorformer.data_wrangler.tables.series import (
    NANOSECONDS,
    ColumnError,
    Series,
    check_columns,
    check_frame,
    exact_time,
    flatten_index,
    read_covariates,
    read_stamps,
)
from taylorformer.data_wrangler.tables.table import Columns, infer_offset, median_step, read_ids

_DAY_NANOSECONDS = 86_400 * 10**9
# A frequency that pandas infers is held against this many stamps at the end.
_ROWS_TO_VERIFY = 1000


def continue_stamps(series: Series, num_rows: int) -> pd.Index:
    """Gives the stamps that follow a series.

    Periods go on by the lower median of the steps between them, such as three months; a single one
    by its frequency. Dates go on by the frequency that pandas infers from all of them; else by the
    first of these rules of the calendar that all of them keep: the same number of whole months, on
    the same day of the month (its last day where it is too short) or always on the last; weekdays,
    with a weekend among them; whole days. All of them keep the time of day, and go by the clock on
    the wall where there is a time zone. Rows may be missing, such as a month or a holiday: the step
    is the median one. Everything else goes on by the median step, too, of elapsed time: for dates
    and integers the lower median, which is a step of the series, without rounding.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"t": ["2024-01-31", "2024-02-29", "2024-04-30"], "y": 0.0})
        >>> list(continue_stamps(Series.from_frame(frame, "t", "y"), 2).astype(str))
        ['2024-05-31', '2024-06-30']

    Args:
        series: T rows.
        num_rows: how many stamps to give, at least 1.

    Returns:
        `[num_rows]`, strictly increasing, after the last row, of the dtype and name of
        `series.stamps`.

    Raises:
        TypeError: `num_rows` is no integer.
        ValueError: the series has one row and so no step, or the stamps leave what their dtype
            can hold.
    """
    num_rows = check_integer("num_rows", num_rows, 1)
    try:
        stamps = _continue_calendar(series.stamps, num_rows)
        if stamps is None:
            stamps = _continue_steps(series, num_rows)
        time, unit = exact_time(stamps)
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        raise _beyond(series, num_rows) from error
    if unit != series.time_unit or _not_after(series, time).any():
        raise _beyond(series, num_rows)
    return stamps.rename(series.stamps.name)


def _beyond(series: Series, num_rows: int) -> ValueError:
    return ValueError(
        f"`num_rows` must be so few that {series.stamps.dtype} can tell the stamps after "
        f"{series.stamps[-1]} apart. Received: num_rows={num_rows}"
    )


def _not_after(series: Series, time: np.ndarray) -> np.ndarray:
    """Tells which times are not after the one before, the first after that of the last row."""
    return ~(time > np.append(series.time[-1:], time[:-1]))


def _continue_calendar(stamps: pd.Index, num_rows: int) -> pd.Index | None:
    """Continues by the calendar, or gives None where no rule of it is kept."""
    if isinstance(stamps, pd.PeriodIndex):
        every, dtype = stamps.asi8, cast(pd.PeriodDtype, stamps.dtype)
        step = median_step(np.diff(every)) if len(every) > 1 else dtype.freq.n
        ahead = every[-1] + step * np.arange(1, num_rows + 1)
        return pd.PeriodIndex(pd.arrays.PeriodArray(ahead, dtype=dtype))
    if not isinstance(stamps, pd.DatetimeIndex) or len(stamps) < 2:
        return None
    # The clock on the wall.
    wall = stamps if stamps.tz is None else stamps.tz_localize(None)
    offset = infer_offset(stamps)
    if isinstance(offset, pd.tseries.offsets.Tick) and not isinstance(offset, pd.offsets.Day):
        return None
    ahead = _by_offset(wall, offset, num_rows) if offset is not None else None
    if ahead is None:
        ahead = _by_rule(wall, num_rows)
    if ahead is None or stamps.tz is None:
        return ahead
    # An hour that the clock skips becomes the next one, of an hour that comes twice the first.
    first = np.ones(num_rows, np.bool_)
    ahead = ahead.tz_localize(stamps.tz, ambiguous=first, nonexistent="shift_forward")
    steps = np.diff(ahead.asi8, prepend=stamps[-1:].asi8)
    return ahead if (steps > 0).all() else None


def _by_offset(
    wall: pd.DatetimeIndex, offset: pd.tseries.offsets.BaseOffset, num_rows: int
) -> pd.DatetimeIndex | None:
    if isinstance(offset, pd.offsets.BusinessHour):
        # What pandas calls business hours may begin at any time.
        clock = wall - wall.normalize()
        begin, end = pd.Timestamp(0) + clock.min(), pd.Timestamp(0) + clock.max()
        end += pd.Timedelta("1h")
        offset = pd.offsets.BusinessHour(start=f"{begin:%H:%M}", end=f"{end:%H:%M}")
    seen = wall[-_ROWS_TO_VERIFY:]
    every = pd.date_range(seen[0], periods=len(seen) + num_rows, freq=offset, unit=wall.unit)
    return every[len(seen) :] if every[: len(seen)].equals(seen) else None


def _by_rule(wall: pd.DatetimeIndex, num_rows: int) -> pd.DatetimeIndex | None:
    per_day = _DAY_NANOSECONDS // NANOSECONDS[wall.unit]
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
    # Through whole seconds: from there pandas says where the range of a finer unit is left.
    midnights = pd.DatetimeIndex(next_dates.astype("datetime64[s]")).as_unit(wall.unit)
    return (midnights + pd.Timedelta(int(clock[-1]), wall.unit)).as_unit(wall.unit)


def _are_weekdays(dates: np.ndarray) -> bool:
    """Tells whether dates leave out weekends, of which there is one, and mostly nothing else."""
    if not np.is_busday(dates).all() or median_step(np.diff(dates)) != np.timedelta64(1, "D"):
        return False
    return bool(np.busday_count(dates[0], dates[-1]) < (dates[-1] - dates[0]).astype(np.int64))


def _by_months(dates: np.ndarray, ahead: np.ndarray) -> np.ndarray | None:
    """Continues dates that lie whole months apart on one day of the month, or on its last."""
    months = dates.astype("datetime64[M]")
    steps = np.diff(months).astype(np.int64)
    step = median_step(steps)
    day, last_day = dates - months.astype("datetime64[D]"), _last_day(months)
    # No month has more than 31 days; a day that a short month does not have is its last one.
    kept = np.timedelta64(30, "D") if (day == last_day).all() else day.max()
    if step < 1 or (steps % step).any() or (day != np.minimum(kept, last_day)).any():
        return None
    next_months = months[-1] + step * ahead
    return next_months.astype("datetime64[D]") + np.minimum(kept, _last_day(next_months))


def _last_day(months: np.ndarray) -> np.ndarray:
    """Counts from the first day of each month to its last."""
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


@dataclasses.dataclass(frozen=True, eq=False)
class FutureRows:
    """The T rows of one series in a table of the future; made by `split_future`.

    Attributes:
        frame: the rows.
        numbers: `[T]` int64, which rows of the whole table these are, counted from 1, for messages.
        label: what an error adds to name the id, "" without a column of ids.
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
        """Gives some of the rows, chosen by their places or by a slice."""
        return FutureRows(self.frame.iloc[rows], self.numbers[rows], label)


def split_future(
    future: pd.DataFrame, columns: Columns, names: Sequence[str]
) -> Mapping[str, FutureRows]:
    """Gives each series its own rows of a table of the future.

    Args:
        future: one row a stamp and an id, the ids in any order; see `extend_series` for its
            columns. Rows of other ids than those of `names` are left out.
        columns: which columns play which part; only `id_column` is read here.
        names: of the series, as `split_table` gives them.

    Returns:
        For each of `names` what `extend_series` takes as `future`. Without a column of ids that is
        the whole table for each.

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
    there = set(ids.names)
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(
            f"`future` must have rows for every series. Received: none for {listed(missing)}"
        )
    order, parts = ids.group()
    whole = whole.take(order, "")
    groups = {
        name: (part, label) for name, part, label in zip(ids.names, parts, ids.labels, strict=True)
    }
    return {name: whole.take(*groups[name]) for name in names}


def extend_series(
    series: Series,
    *,
    num_rows: int | None = None,
    future: pd.DataFrame | FutureRows | None = None,
    columns: Columns | None = None,
) -> Series:
    """Puts rows to predict after a series.

    Args:
        series: T rows.
        num_rows: how many rows to add, at the stamps of `continue_stamps`, or the first so many
            of `future`.
        future: a table of the rows to add, with the column of time and those of the covariates.
            Other columns are not read, not even those of the targets. Dates may have another
            resolution or another time zone than the series, if they can be told exactly in its own.
            Compulsory where the series has covariates. Or what `split_future` gives.
        columns: which columns of `future` play which part, and how its dates are spelled.
            None: as in the series.

    Returns:
        T + `num_rows` rows. In the new ones every y is missing.

    Raises:
        TypeError: `future` is no DataFrame.
        ValueError: neither `num_rows` nor `future`; covariates and no `future`; a `future` with
            fewer rows than `num_rows`, with stamps of another kind than those of the series, or
            not strictly increasing, or not after its last row; or as `continue_stamps` says. The
            message names the row of `future`, as the user gave it, and the id of what
            `split_future` gives.
    """
    if future is None:
        if num_rows is None:
            raise ValueError("`num_rows` or `future` must be given. Received: neither")
        if series.covariate_columns:
            names = ", ".join(map(repr, series.covariate_columns))
            raise ValueError(
                f"`future` must give the covariates {names} of the rows to predict. "
                "Received: future=None"
            )
        stamps = continue_stamps(series, num_rows)
        known = np.empty((len(stamps), 0))
    else:
        stamps, known = _read_future(series, future, num_rows, columns)
    time, _ = exact_time(stamps)
    missing = np.full((len(stamps), series.num_columns), np.nan)
    return dataclasses.replace(
        series,
        time=np.concatenate([series.time, time]),
        values=np.concatenate([series.values, missing]),
        stamps=series.stamps.append(stamps),
        covariates=np.concatenate([series.known, known]),
    )


def _read_future(
    series: Series,
    future: pd.DataFrame | FutureRows,
    num_rows: int | None,
    columns: Columns | None,
) -> tuple[pd.Index, np.ndarray]:
    rows = future if isinstance(future, FutureRows) else FutureRows.whole(future)
    name, known, date_format = series.time_column, series.covariate_columns, None
    if columns is not None:
        name, known = columns.time_column, columns.covariate_columns
        date_format = columns.date_format
    if len(known) != len(series.covariate_columns):
        raise ValueError(
            f"`columns` must name D_c = {len(series.covariate_columns)} covariates, as the series. "
            f"Received: {len(known)}"
        )
    check_columns(rows.frame, "future", time_column=name, covariate_columns=known)
    if num_rows is not None:
        num_rows = check_integer("num_rows", num_rows, 1)
        if len(rows.frame) < num_rows:
            raise ValueError(
                f"`future` must have at least num_rows = {num_rows} rows. "
                f"Received: {len(rows.frame)}{rows.label}"
            )
        rows = rows.take(slice(num_rows), rows.label)
    try:
        stamps = read_stamps(rows.frame[name], name, date_format)
        stamps = _as_stamps_of(series, stamps, name)
        _check_after(series, stamps, name, rows.numbers)
        return stamps.rename(series.stamps.name), read_covariates(rows.frame, known)
    except ColumnError as error:
        # Not from the error: that one counts the rows of the part.
        raise ValueError(error.describe("future", rows.numbers, rows.label)) from None


def _check_after(series: Series, stamps: pd.Index, name: Hashable, numbers: np.ndarray) -> None:
    time, _ = exact_time(stamps)
    wrong = _not_after(series, time)
    if wrong.any():
        row = int(wrong.argmax())
        before = f"the last row of the series, {series.stamps[-1]}"
        if row:
            before = f"the stamp of row {numbers[row - 1]}, {stamps[row - 1]}"
        raise ColumnError(name, f"be after {before}", str(stamps[row]), row)


def _as_stamps_of(series: Series, stamps: pd.Index, name: Hashable) -> pd.Index:
    """Turns the stamps of a future into the dtype of those of the series, exactly."""
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
        wish = f"hold times that {wanted.dtype} can tell exactly, as the series has them"
        raise ColumnError(name, wish, str(stamps[row]), row)
    return converted


def _kind(stamps: pd.Index) -> str:
    if not isinstance(stamps, pd.DatetimeIndex | pd.PeriodIndex):
        return "numbers"
    aware = isinstance(stamps, pd.DatetimeIndex) and stamps.tz is not None
    return "dates with a time zone" if aware else "dates without a time zone"


def _convert(stamps: Any, wanted: Any) -> tuple[pd.Index, pd.Index]:
    """Gives stamps in the dtype of others, and turned back again."""
    if not isinstance(wanted, pd.DatetimeIndex | pd.PeriodIndex):
        # Of a float too large for an integer NumPy makes another number, which is then seen.
        with np.errstate(invalid="ignore"):
            converted = stamps.to_numpy().astype(wanted.dtype)
            return pd.Index(converted), pd.Index(converted.astype(stamps.dtype))
    if isinstance(wanted, pd.PeriodIndex):
        periods = stamps.to_period(wanted.freq)
        return periods, periods.to_timestamp()
    dates = stamps if wanted.tz is None else stamps.tz_convert(wanted.tz)
    dates = dates.as_unit(wanted.unit)
    return dates, dates
