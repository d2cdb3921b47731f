"""Rows of a table as exact numbers; sorted by time, or merged, where that is asked for."""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_choice
from taylorformer.data_wrangler.tables.frames import (
    as_names,
    check_columns,
    check_frame,
    flatten_index,
)
from taylorformer.data_wrangler.tables.stamp_form import StampForm
from taylorformer.data_wrangler.tables.stamps import (
    check_sorted,
    check_unique,
    exact_time,
)
from taylorformer.data_wrangler.tables.time_parts import join_time, split_time_column
from taylorformer.data_wrangler.tables.time_text import read_time
from taylorformer.data_wrangler.tables.values import read_covariates, read_targets

UNSORTED = ("error", "sort")
DUPLICATES = ("error", "first", "last", "mean")


@dataclasses.dataclass(frozen=True, eq=False)
class TableRows:
    """T rows of a table as exact numbers, in any order: what a `Series` is made from.

    Attributes:
        stamps: see `Series`, as the next ones.
        time: `[T]`, in any order; a time may occur more than once.
        values: `[T, D_y]`.
        covariates: `[T, D_c]`.
        time_unit: see `Series`.
        numbers: `[T]` int64, the numbers of the rows in the table, counted from 1, for messages.
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
        time_column: Hashable | Sequence[str],
        target_columns: Hashable | Sequence[Hashable],
        covariate_columns: Hashable | Sequence[Hashable] = (),
        form: StampForm | None = None,
    ) -> "TableRows":
        """Reads the rows of a table; see `Series.from_frame` for arguments and errors."""
        check_frame(frame)
        targets = as_names("target_columns", target_columns, 1)
        covariate_names = as_names("covariate_columns", covariate_columns)
        name, parts = split_time_column(time_column)
        frame = join_time(flatten_index(frame), name, parts)
        check_columns(
            frame,
            time_column=name,
            target_columns=targets,
            covariate_columns=covariate_names,
        )
        stamps = read_time(frame[name], name, form or StampForm())
        time, unit = exact_time(stamps)
        return cls(
            stamps,
            time,
            read_targets(frame, targets),
            read_covariates(frame, covariate_names),
            unit,
            np.arange(1, len(frame) + 1),
            name,
            targets,
            covariate_names,
        )

    def take(self, rows: Any) -> "TableRows":
        """Selects rows by their indices or by a slice."""
        return dataclasses.replace(
            self,
            stamps=self.stamps[rows],
            time=self.time[rows],
            values=self.values[rows],
            covariates=self.covariates[rows],
            numbers=self.numbers[rows],
        )

    def in_order(self, unsorted: str = "error", duplicates: str = "error") -> "TableRows":
        """Returns the rows in strictly increasing order of time.

        Args:
            unsorted: see `Series.from_frame`.
            duplicates: see `Series.from_frame`.

        Raises:
            ValueError: another word, or rows that need sorting or merging which is an "error".
        """
        check_choice("unsorted", unsorted, UNSORTED)
        check_choice("duplicates", duplicates, DUPLICATES)
        if (self.time[1:] > self.time[:-1]).all():
            return self
        if duplicates == "error":
            check_unique(self.time, self.stamps, self.time_column, self.numbers)
        if unsorted == "error":
            check_sorted(self.time, self.stamps, self.time_column, self.numbers)
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
        """Averages observed values over each run of equal times; `firsts` are their first rows."""
        run = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(self.time)))
        differ = self.covariates != self.covariates[firsts][run]
        if differ.any():
            row, index = (int(i) for i in np.argwhere(differ)[0])
            first = int(firsts[run[row]])
            raise ValueError(
                f"Column `{self.covariate_columns[index]}` must be the same in rows of one time "
                'for duplicates="mean". '
                f"Received: {float(self.covariates[first, index])!r} and "
                f"{float(self.covariates[row, index])!r} "
                f"in rows {self.numbers[first]} and {self.numbers[row]}"
            )
        observed = ~np.isnan(self.values)
        count = np.add.reduceat(observed.astype(np.int64), firsts, axis=0)
        # Divided first: the sum of large numbers may leave the range of floating point.
        share = np.where(observed, self.values, 0) / np.maximum(count, 1)[run]
        return np.where(count > 0, np.add.reduceat(share, firsts, axis=0), np.nan)
