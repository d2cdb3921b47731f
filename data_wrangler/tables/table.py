"""Tables of one or many series: which columns play which part, and what is in them."""

import dataclasses
import itertools
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.series import (
    NANOSECONDS,
    ColumnError,
    Series,
    TableRows,
    as_names,
    check_columns,
    check_frame,
    check_roles,
    flatten_index,
    index_levels,
)
from taylorformer.data_wrangler.tables.series import read_table as read_table

# What a column of time is called, in any case. "ds", "unique_id" and "y" are the names of the
# long format of many forecasting libraries, and stand before the others.
_TIME_NAMES = ("ds", "date", "time", "timestamp", "datetime")
_ID_NAME = "unique_id"
_TARGET_NAME = "y"

# A step this many times the median is a gap.
_GAP = 1.5
_SPANS = {"day": 86_400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9, **NANOSECONDS}


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of a table play which part.

    Attributes:
        time_column: the column of time; see `Series.from_frame`, as for the next ones.
        target_columns: the D_y columns to forecast.
        id_column: the column that tells series apart, or None where the table is one series.
        covariate_columns: the D_c columns that are known ahead of time.
        date_format: for text that is not ISO 8601.

    Raises:
        TypeError: a name that is neither text nor a number, nor a tuple of them: such a one cannot
            be kept in a file.
        ValueError: no target column, a column named twice, or one that plays two parts.
    """

    time_column: Hashable
    target_columns: tuple[Hashable, ...]
    id_column: Hashable | None = None
    covariate_columns: tuple[Hashable, ...] = ()
    date_format: str | None = None

    def __post_init__(self) -> None:
        targets = as_names("target_columns", self.target_columns, 1)
        known = as_names("covariate_columns", self.covariate_columns)
        object.__setattr__(self, "target_columns", targets)
        object.__setattr__(self, "covariate_columns", known)
        _check_names("time_column", self.time_column)
        _check_names("target_columns", *targets)
        _check_names("id_column", *() if self.id_column is None else (self.id_column,))
        _check_names("covariate_columns", *known)
        check_roles(**self._roles)

    @property
    def _roles(self) -> dict[str, Any]:
        return {
            "time_column": self.time_column,
            "id_column": self.id_column,
            "target_columns": self.target_columns,
            "covariate_columns": self.covariate_columns,
        }

    def check(self, frame: pd.DataFrame) -> None:
        """Checks that a table has these columns, and at least one row.

        Raises:
            ValueError: it has not. The message names the columns that are there.
        """
        check_columns(frame, **self._roles)

    @classmethod
    def resolve(
        cls,
        frame: pd.DataFrame,
        time_column: Hashable | None = None,
        target_columns: Hashable | Sequence[Hashable] | None = None,
        id_column: Hashable | None = None,
        covariate_columns: Hashable | Sequence[Hashable] = (),
        date_format: str | None = None,
    ) -> "Columns":
        """Finds the columns of a table that are not given.

        Example:
            >>> import pandas as pd
            >>> columns = Columns.resolve(pd.DataFrame({"Date": ["2024-01-31"], "load": [0.5]}))
            >>> columns.time_column, columns.target_columns
            ('Date', ('load',))

        Args:
            frame: the table.
            time_column: None: `ds`; else the one of `date`, `time`, `timestamp`, `datetime` (in
                any case) that is there; else an index of dates or periods; else the first column.
            target_columns: None: `y`; else the only column that is left.
            id_column: None: `unique_id` where it is there, else the table is one series.
            covariate_columns: never guessed.
            date_format: see the class.

        Returns:
            The columns, all of them in the table.

        Raises:
            TypeError: `frame` is no DataFrame, or as the class says.
            ValueError: a column that is missing or plays two parts, a table without rows, or more
                than one choice for time or target.
        """
        check_frame(frame)
        levels = index_levels(frame)
        own: list[Hashable] = list(frame.columns)
        known = as_names("covariate_columns", covariate_columns)
        targets = None if target_columns is None else as_names("target_columns", target_columns, 1)
        taken = {*known, *(targets or ()), time_column, id_column}
        if id_column is None and _ID_NAME in {*levels, *own} - taken:
            id_column = _ID_NAME
            taken.add(id_column)
        if time_column is None:
            time_column = _find_time(frame, levels, own, taken)
            taken.add(time_column)
        if targets is None:
            targets = _find_targets([name for name in own if name not in taken])
        columns = cls(time_column, targets, id_column, known, date_format)
        columns.check(flatten_index(frame))
        return columns

    def get_config(self) -> dict[str, Any]:
        """Returns all that makes these columns, ready for JSON."""
        return {
            "time_column": _plain(self.time_column),
            "target_columns": [_plain(name) for name in self.target_columns],
            "id_column": _plain(self.id_column),
            "covariate_columns": [_plain(name) for name in self.covariate_columns],
            "date_format": self.date_format,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Columns":
        """Makes columns from what `get_config` gave."""
        return cls(
            _hashable(config["time_column"]),
            tuple(_hashable(name) for name in config["target_columns"]),
            _hashable(config["id_column"]),
            tuple(_hashable(name) for name in config["covariate_columns"]),
            config["date_format"],
        )


def _find_time(
    frame: pd.DataFrame, levels: list[Hashable], own: list[Hashable], taken: set[Any]
) -> Hashable:
    free = [name for name in [*levels, *own] if name not in taken]
    likely = [name for name in free if str(name).lower() in _TIME_NAMES]
    if _TIME_NAMES[0] in likely:
        return _TIME_NAMES[0]
    if len(likely) > 1:
        raise ValueError(
            "`time_column` must be given where several columns may be it. "
            f"Received: {', '.join(map(repr, likely))}"
        )
    if likely:
        return likely[0]
    for place, name in enumerate(frame.index.names):
        dates = isinstance(frame.index.get_level_values(place), pd.DatetimeIndex | pd.PeriodIndex)
        level = levels[0] if name is None and levels else name
        if dates and level in free:
            return level
    columns = [name for name in own if name not in taken]
    if not columns:
        raise ValueError(
            "`frame` must have a column of time. "
            f"Received: {', '.join(map(repr, own)) or 'no columns'}"
        )
    return columns[0]


def _find_targets(left: list[Hashable]) -> tuple[Hashable, ...]:
    if _TARGET_NAME in left:
        return (_TARGET_NAME,)
    if len(left) != 1:
        raise ValueError(
            "`target_columns` must be given where not exactly one column is left. "
            f"Received: {', '.join(map(repr, left)) or 'no columns left'}"
        )
    return (left[0],)


def _check_names(role: str, *names: Hashable) -> None:
    for name in names:
        if not _is_name(name):
            raise TypeError(
                f"`{role}` must be text or a number, or a tuple of them. Received: {name!r}"
            )


def _is_name(name: Any) -> bool:
    if isinstance(name, tuple):
        return all(map(_is_name, name))
    # NumPy counts timedelta64 among its integers.
    legal = isinstance(name, str | int | float | np.integer | np.floating | np.bool_)
    return legal and not isinstance(name, np.timedelta64)


def _plain(name: Any) -> Any:
    if isinstance(name, tuple):
        return tuple(map(_plain, name))
    return name.item() if isinstance(name, np.generic) else name


def _hashable(name: Any) -> Hashable:
    """Undoes what JSON makes of a name that is a tuple."""
    return tuple(map(_hashable, name)) if isinstance(name, list) else name


def id_text(value: Any) -> str:
    """Writes an id as the name of its series.

    A number is one name however it came: where another column of ids is empty somewhere, or in
    another file, pandas makes floats of integers.

    Example:
        >>> id_text(1), id_text(1.0), id_text(1.5), id_text("1.0")
        ('1', '1', '1.5', '1.0')
    """
    whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value)) if whole else str(value)


class Ids(NamedTuple):
    """The N ids in a column of T rows; made by `read_ids`.

    Attributes:
        codes: `[T]` int64, which of the ids each row has.
        values: the ids as they stand in the table, in order of first appearance.
        names: the same as text, see `id_text`.
        labels: what an error adds to name each id.
    """

    codes: np.ndarray
    values: list[Any]
    names: list[str]
    labels: list[str]

    def group(self) -> tuple[np.ndarray, list[slice]]:
        """Gives the order in which the rows of each id lie together, `[T]`, and N slices of it."""
        order = np.argsort(self.codes, kind="stable")
        borders = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return order, [slice(*ends) for ends in itertools.pairwise(borders)]


def read_ids(ids: pd.Series, column: Hashable) -> Ids:
    """Reads a column of ids.

    Raises:
        ColumnError: an empty cell, or two ids that are the same as text.
    """
    codes, uniques = pd.factorize(ids)
    empty = codes < 0
    if empty.any():
        wish = "hold an id in every row"
        raise ColumnError(column, wish, "an empty cell", int(empty.argmax()))
    values = pd.Index(uniques).tolist()
    names = [id_text(value) for value in values]
    first: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        if name in first:
            wish = "hold ids that differ as text, too"
            raise ColumnError(column, wish, f"{first[name]!r} and {value!r}")
        first[name] = value
    return Ids(codes, values, names, [f" ({column} {value!r})" for value in values])


def ids_of(frame: pd.DataFrame, columns: Columns) -> dict[str, Any]:
    """Gives the ids of a table by the names of its series.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"shop": [7, 3, 7], "ds": [1, 1, 2], "y": 0.0})
        >>> ids_of(frame, Columns("ds", ("y",), "shop"))
        {'7': 7, '3': 3}

    Args:
        frame: the table.
        columns: which columns play which part; only `id_column` is read.

    Returns:
        For each name, see `split_table`, the id as it stands in the table, in order of first
        appearance. Without a column of ids `{"": None}`.

    Raises:
        TypeError: `frame` is no DataFrame.
        ValueError: no such column, no rows, empty ids, or two that are the same as text.
    """
    check_frame(frame)
    if columns.id_column is None:
        return {"": None}
    frame = flatten_index(frame)
    check_columns(frame, id_column=columns.id_column)
    ids = read_ids(frame[columns.id_column], columns.id_column)
    return dict(zip(ids.names, ids.values, strict=True))


class _Group(NamedTuple):
    """The rows of one series: its name, what an error adds to name it, and the rows."""

    name: str
    label: str
    rows: TableRows


def _read_groups(frame: pd.DataFrame, columns: Columns) -> Iterator[_Group]:
    """Reads a table once, and gives the rows of each id, in order of first appearance."""
    check_frame(frame)
    frame = flatten_index(frame)
    columns.check(frame)
    read = (columns.time_column, columns.target_columns, columns.covariate_columns)
    if columns.id_column is None:
        yield _Group("", "", TableRows.read(frame, *read, columns.date_format))
        return
    ids = read_ids(frame[columns.id_column], columns.id_column)
    try:
        rows = TableRows.read(frame, *read, columns.date_format)
    except ColumnError as error:
        if error.row is None:
            raise
        raise ValueError(error.describe(label=ids.labels[ids.codes[error.row]])) from error
    order, parts = ids.group()
    # One copy in the order of the ids: each series is then a slice of it.
    rows = rows.take(order)
    for name, label, part in zip(ids.names, ids.labels, parts, strict=True):
        yield _Group(name, label, rows.take(part))


def split_table(
    frame: pd.DataFrame, columns: Columns, *, unsorted: str = "error", duplicates: str = "error"
) -> tuple[Series, ...]:
    """Makes one series of each id of a table.

    Args:
        frame: one row a stamp and an id; the ids may come in any order, also interleaved.
        columns: which columns play which part; see `Columns.resolve`.
        unsorted: see `Series.from_frame`. Only the rows of one id need an order.
        duplicates: see `Series.from_frame`. Ids may share times.

    Returns:
        The series, in the order in which their ids first appear. Their `name` is the `id_text`,
        or "" where there is no column of ids; their `time_unit` is the same.

    Raises:
        TypeError: `frame` is no DataFrame.
        ValueError: as `Series.from_frame` says, and empty ids, or two that are the same as text.
            The message names the row of the whole table, and the id.
    """
    series = []
    for name, label, rows in _read_groups(frame, columns):
        try:
            series.append(rows.in_order(unsorted, duplicates).to_series(name))
        except ValueError as error:
            raise ValueError(f"{error}{label}") from error
    return tuple(series)


@dataclasses.dataclass(frozen=True)
class SeriesReport:
    """What is in the rows of one series.

    Attributes:
        name: the id as text, "" without a column of ids.
        rows: how many rows there are.
        first: the earliest stamp.
        last: the latest stamp.
        duplicates: rows with a time that an earlier row has.
        out_of_order: rows that are earlier than the row before.
        median_step: the median of the times between stamps (for dates and integers the lower
            one): for dates a text such as "15 min", else a number. None for a single time.
        frequency: the frequency that pandas sees in the stamps, or None.
        gaps: steps longer than 1.5 times the median step.
        longest_gap: the longest of them, as `median_step`; None for none.
        missing: how many values each target column lacks.
        masked_rows: rows that lack at least one value. They are masked whole.
        partly_missing_rows: those of them that lack some values but not all.
    """

    name: str
    rows: int
    first: Any
    last: Any
    duplicates: int
    out_of_order: int
    median_step: str | float | None
    frequency: str | None
    gaps: int
    longest_gap: str | float | None
    missing: Mapping[Hashable, int]
    masked_rows: int
    partly_missing_rows: int


@dataclasses.dataclass(frozen=True)
class TableReport:
    """What is in a table; made by `inspect_table`.

    Attributes:
        columns: which columns play which part.
        series: one report for each id, in order of first appearance.
    """

    columns: Columns
    series: tuple[SeriesReport, ...]

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return sum(report.rows for report in self.series)

    @property
    def duplicates(self) -> int:
        """How many rows have a time that an earlier row of the same id has."""
        return sum(report.duplicates for report in self.series)

    @property
    def out_of_order(self) -> int:
        """How many rows are earlier than the row of the same id before them."""
        return sum(report.out_of_order for report in self.series)

    def to_frame(self) -> pd.DataFrame:
        """Gives a table with one row a series, for printing.

        Returns:
            The attributes of `SeriesReport` as columns, `missing` as one column for each target.
        """
        lines = []
        for report in self.series:
            line: dict[str, Any] = {}
            for field in dataclasses.fields(report):
                value = getattr(report, field.name)
                if field.name == "missing":
                    line |= {f"missing {column}": count for column, count in value.items()}
                else:
                    line[field.name] = value
            lines.append(line)
        return pd.DataFrame(lines)


def inspect_table(frame: pd.DataFrame, columns: Columns) -> TableReport:
    """Reports what is in a table, without making series of it.

    Args:
        frame: the table. Rows that are not in order and times that come again are counted.
        columns: which columns play which part; see `Columns.resolve`.

    Returns:
        One report for each id.

    Raises:
        TypeError: `frame` is no DataFrame.
        ValueError: what cannot be read at all, as `split_table` says: stamps that are no times,
            text or infinite values in a target, empty ids.
    """
    reports = [_report(name, rows) for name, _, rows in _read_groups(frame, columns)]
    return TableReport(columns, tuple(reports))


def median_step(steps: np.ndarray) -> Any:
    """Gives the median of some steps; for integers the lower one, which is one of them."""
    if steps.dtype.kind == "f":
        return np.median(steps)
    middle = (len(steps) - 1) // 2
    return np.partition(steps, middle)[middle]


def infer_offset(stamps: pd.Index) -> pd.tseries.offsets.BaseOffset | None:
    """Gives the frequency that pandas sees in at least three dates, or None."""
    if not isinstance(stamps, pd.DatetimeIndex) or len(stamps) < 3:
        return None
    with warnings.catch_warnings():
        # Text from one pandas, an offset from another, and a warning in between.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = pd.infer_freq(stamps)
    return None if found is None else pd.tseries.frequencies.to_offset(found)


def _span_text(span: Any, time_unit: str | None) -> str | float:
    if time_unit is None:
        return span.item()
    nanoseconds = int(span) * NANOSECONDS[time_unit]
    name, size = next(item for item in _SPANS.items() if nanoseconds % item[1] == 0)
    count = nanoseconds // size
    return f"{count} {name}" if name != "day" or count == 1 else f"{count} days"


def _frequency(stamps: pd.Index) -> str | None:
    if isinstance(stamps, pd.PeriodIndex):
        return stamps.freqstr
    offset = infer_offset(stamps)
    return None if offset is None else offset.freqstr


def _report(name: str, rows: TableRows) -> SeriesReport:
    order = np.argsort(rows.time, kind="stable")
    time = rows.time[order]
    fresh = np.concatenate([[True], time[1:] != time[:-1]])
    steps = np.diff(time[fresh])
    missing = np.isnan(rows.values)
    masked = missing.any(axis=1)
    median = longest = None
    gaps = 0
    if len(steps):
        middle = median_step(steps)
        # Divided, as 1.5 times an integer may leave 64 bits.
        gaps = int((steps / _GAP > middle).sum())
        median = _span_text(middle, rows.time_unit)
        longest = _span_text(steps.max(), rows.time_unit) if gaps else None
    stamps = rows.stamps[order][fresh]
    return SeriesReport(
        name=name,
        rows=len(time),
        first=stamps[0],
        last=stamps[-1],
        duplicates=int((~fresh).sum()),
        out_of_order=int((rows.time[1:] < rows.time[:-1]).sum()),
        median_step=median,
        frequency=_frequency(stamps),
        gaps=gaps,
        longest_gap=longest,
        missing=dict(
            zip(rows.target_columns, (int(count) for count in missing.sum(axis=0)), strict=True)
        ),
        masked_rows=int(masked.sum()),
        partly_missing_rows=int(masked.sum() - missing.all(axis=1).sum()),
    )
