"""Splits a table with a column of ids into one series for each id."""

import itertools
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.column_error import ColumnError
from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.frames import check_columns, check_frame, flatten_index
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.table_rows import TableRows


def id_text(value: Any) -> str:
    """Writes an id as the name of its series.

    An integer has one name, also where it comes as a float: pandas turns a column of integers with
    an empty cell into floats.

    Example:
        >>> id_text(1), id_text(1.0), id_text(1.5), id_text("1.0")
        ('1', '1', '1.5', '1.0')
    """
    whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value)) if whole else str(value)


class Ids(NamedTuple):
    """The G ids in a column of T rows; made by `read_ids`.

    Attributes:
        codes: `[T]` int64, the number of each row's id, from 0 to G - 1.
        values: the ids as they are in the table, in order of first appearance.
        names: the same as text, see `id_text`.
        labels: text to add to an error, to name each id.
    """

    codes: np.ndarray
    values: list[Any]
    names: list[str]
    labels: list[str]

    def group(self) -> tuple[np.ndarray, list[slice]]:
        """Returns an order `[T]` that puts rows of the same id together, and the G slices of it."""
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
    """Returns the ids of a table by the names of its series.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"shop": [7, 3, 7], "ds": [1, 1, 2], "y": 0.0})
        >>> ids_of(frame, Columns("ds", ("y",), "shop"))
        {'7': 7, '3': 3}

    Args:
        frame: the table.
        columns: which columns play which part; only `id_column` is read.

    Returns:
        For the name of each series, see `split_table`, the id as it is in the table, in order of
        first appearance. Without a column of ids `{"": None}`.

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


class SeriesGroup(NamedTuple):
    """The rows of one series in a table of several.

    Attributes:
        name: the id as text.
        label: text to add to an error, to name the id.
        rows: the rows, in the order of the table.
    """

    name: str
    label: str
    rows: TableRows


def read_groups(frame: pd.DataFrame, columns: Columns) -> Iterator[SeriesGroup]:
    """Reads a table once, and yields the rows of each id, in order of first appearance."""
    check_frame(frame)
    frame = columns.with_time(flatten_index(frame))
    columns.check(frame)
    names = (columns.time_column, columns.target_columns, columns.covariate_columns)
    if columns.id_column is None:
        yield SeriesGroup("", "", TableRows.read(frame, *names, columns.stamp_form))
        return
    ids = read_ids(frame[columns.id_column], columns.id_column)
    try:
        rows = TableRows.read(frame, *names, columns.stamp_form)
    except ColumnError as error:
        if error.row is None:
            raise
        raise ValueError(error.describe(label=ids.labels[ids.codes[error.row]])) from error
    order, parts = ids.group()
    # One copy in the order of the ids: each series is then a slice of it.
    rows = rows.take(order)
    for name, label, part in zip(ids.names, ids.labels, parts, strict=True):
        yield SeriesGroup(name, label, rows.take(part))


def split_table(
    frame: pd.DataFrame, columns: Columns, *, unsorted: str = "error", duplicates: str = "error"
) -> tuple[Series, ...]:
    """Makes one series of each id of a table.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"shop": ["b", "a", "b"], "day": [1, 1, 2], "sales": [5, 6, 7]})
        >>> series = split_table(frame, Columns("day", ("sales",), "shop"))
        >>> [(one.name, one.values[:, 0].tolist()) for one in series]
        [('b', [5.0, 7.0]), ('a', [6.0])]

    Args:
        frame: one row for each stamp and id; the ids may come in any order, also interleaved.
        columns: which columns play which part; see `Columns.resolve`.
        unsorted: see `Series.from_frame`. Only rows of the same id must be in order.
        duplicates: see `Series.from_frame`. Ids may share times.

    Returns:
        The series, in the order in which their ids first appear. Their `name` is the `id_text`,
        or "" where there is no column of ids; their `time_unit` is the same.

    Raises:
        TypeError: `frame` is no DataFrame.
        ValueError: as in `Series.from_frame`; also empty ids, or two that are the same as text.
            The message names the row of the whole table, and the id.
    """
    series = []
    for name, label, rows in read_groups(frame, columns):
        try:
            series.append(Series.from_rows(rows.in_order(unsorted, duplicates), name))
        except ValueError as error:
            raise ValueError(f"{error}{label}") from error
    return tuple(series)
