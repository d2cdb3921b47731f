"""The error of a column that cannot be read: its message, with column, row and value."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd


class ColumnError(ValueError):
    """A column of a table that cannot be read.

    Attributes:
        column: its name.
        wish: what it must do.
        received: what it holds.
        row: the row that holds it, counted from 0; None where it is not a matter of one row.
    """

    def __init__(self, column: Hashable, wish: str, received: str, row: int | None = None) -> None:
        super().__init__(column, wish, received, row)
        self.column, self.wish, self.received, self.row = column, wish, received, row

    def __str__(self) -> str:
        return self.describe()

    def describe(
        self, argument: str | None = None, numbers: np.ndarray | None = None, label: str = ""
    ) -> str:
        """Words the error for a table whose rows are a part of a larger one.

        Args:
            argument: the name of the argument that holds the larger table. None: not mentioned.
            numbers: `[T]` int64, the numbers of the rows in the larger table, counted from 1.
                None: the rows are the whole table.
            label: put at the end, to name the part.
        """
        table = "" if argument is None else f" of `{argument}`"
        position = ""
        if self.row is not None:
            position = f" in row {self.row + 1 if numbers is None else numbers[self.row]}"
        return (
            f"Column `{self.column}`{table} must {self.wish}. "
            f"Received: {self.received}{position}{label}"
        )


def bad_row(column: Hashable, wish: str, row: int, value: Any) -> ColumnError:
    """Returns the error for one cell; `wish` and `row` as in `ColumnError`."""
    return ColumnError(column, wish, "an empty cell" if pd.isna(value) else repr(value), row)
