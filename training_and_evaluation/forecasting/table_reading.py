"""Reading the tables of users for a forecaster: to a panel, with checks that name rows."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.frames import ForeignTable, flatten_index, type_name
from taylorformer.data_wrangler.tables.long_table import split_table
from taylorformer.data_wrangler.tables.odd_series import OddSeries
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.value_support import ValueSupport

Table = pd.DataFrame | pd.Series | ForeignTable | Series | Panel | Sequence[Series]

ID_COLUMN = "unique_id"
"""The column of ids in the output, where several series have no such column."""


def without_left_out(panel: Panel, odd: OddSeries) -> Panel:
    """Returns the panel of the series that are not left out."""
    kept = odd.kept(panel)
    return panel if len(kept) == panel.num_series else Panel(kept)


def check_values(support: ValueSupport, data: Any, panel: Panel, columns: Columns) -> None:
    """Checks that all values are in the support; an error names the row of the user's table.

    Rows that were merged are looked at as well: the mean of whole numbers may be none.
    """
    if support.is_everything:
        return
    if isinstance(data, pd.DataFrame):
        support.check_frame(flatten_index(data), columns.target_columns)
    for series in panel.series:
        support.check_series(series)


def read_panel(
    data: Any, resolve: Callable[[pd.DataFrame], Columns], unsorted: str, duplicates: str
) -> tuple[Panel, Columns]:
    """Reads what a user has: a table, or series.

    Args:
        data: a pandas table, or series of this package.
        resolve: returns the columns of a table.
        unsorted: see `Series.from_frame`.
        duplicates: see `Series.from_frame`.

    Raises:
        TypeError: anything else.
        ValueError: a table that cannot be read.
    """
    if isinstance(data, pd.DataFrame):
        columns = resolve(data)
        series = split_table(data, columns, unsorted=unsorted, duplicates=duplicates)
        return Panel(series), columns
    if not isinstance(data, Panel | Series):
        for one in data if isinstance(data, list | tuple) else (data,):
            if not isinstance(one, Series):
                raise TypeError(
                    "`data` must be a pandas DataFrame of times and targets, such as "
                    'pd.DataFrame({"ds": times, "y": values}), a table of another library that '
                    "has `to_pandas()`, or a Series of this package or a list of them. "
                    f"Received: {type_name(one)}"
                )
    panel = as_panel(data)
    first = panel.series[0]
    id_column = ID_COLUMN if panel.num_series > 1 else None
    return panel, Columns(
        first.time_column, first.target_columns, id_column, first.covariate_columns
    )
