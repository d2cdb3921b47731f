"""What is in a table, series by series: stamps, gaps, missing values."""

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import frequency_words
from taylorformer.data_wrangler.tables.long_table import read_groups
from taylorformer.data_wrangler.tables.missing_marks import likely_marks, possible_marks
from taylorformer.data_wrangler.tables.stamps import median_step, span_text
from taylorformer.data_wrangler.tables.table_rows import TableRows

# A step longer than this many times the median step is a gap.
_GAP = 1.5


@dataclasses.dataclass(frozen=True)
class SeriesReport:
    """What is in the rows of one series.

    Attributes:
        name: the id as text, "" without a column of ids.
        rows: how many rows there are.
        first: the earliest stamp.
        last: the latest stamp.
        duplicates: rows whose time occurs in an earlier row, too.
        out_of_order: rows that are earlier than the row before.
        median_step: the median time from one stamp to the next (for dates and integers the lower
            median): for dates a text such as "15 min", else a number. None for a single time.
        frequency: how the stamps continue, in words: the calendar that they keep, see
            `continue_stamps`, or `Columns.freq`. None for a single time.
        next_stamps: the two stamps that follow, as text. None for a single time.
        gaps: steps longer than 1.5 times the median step.
        longest_gap: the longest of them, written as `median_step`; None without a gap.
        missing: how many values each target column lacks.
        least: the least value of each target column, NaN where all are missing.
        largest: the largest value of each.
        possible_marks: for each target column how often it has values that may be marks for
            missing ones, such as -999.99; see `possible_marks`.
        masked_rows: rows that lack at least one value; such a row is masked as a whole.
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
    next_stamps: str | None
    gaps: int
    longest_gap: str | float | None
    missing: Mapping[Hashable, int]
    least: Mapping[Hashable, float]
    largest: Mapping[Hashable, float]
    possible_marks: Mapping[Hashable, Mapping[float, int]]
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

    @property
    def likely_marks(self) -> Mapping[Hashable, Mapping[float, int]]:
        """For target columns the values that look like marks for missing ones, and their counts."""
        return likely_marks(report.possible_marks for report in self.series)

    def to_frame(self) -> pd.DataFrame:
        """Returns a table with one row for each series, for printing.

        Returns:
            The attributes of `SeriesReport` as columns, without `possible_marks`; `missing`,
            `least` and `largest` as one column for each target.
        """
        lines = []
        for report in self.series:
            line: dict[str, Any] = {}
            for field in dataclasses.fields(report):
                value = getattr(report, field.name)
                if field.name in ("missing", "least", "largest"):
                    line |= {f"{field.name} {column}": one for column, one in value.items()}
                elif field.name != "possible_marks":
                    line[field.name] = value
            lines.append(line)
        return pd.DataFrame(lines)


def inspect_table(frame: pd.DataFrame, columns: Columns) -> TableReport:
    """Reports what is in a table, without making series of it.

    Example:
        >>> import pandas as pd
        >>> days = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-07", "2024-01-07"]
        >>> frame = pd.DataFrame({"day": days, "sales": [1.0, 2.0, None, 4.0, 5.0]})
        >>> report = inspect_table(frame, Columns("day", ("sales",))).series[0]
        >>> report.median_step, report.gaps, report.longest_gap, report.duplicates
        ('1 day', 1, '4 days', 1)

    Args:
        frame: the table. Rows that are not in order, or share a time, are counted, not refused.
        columns: which columns play which part; see `Columns.resolve`.

    Returns:
        One report for each id.

    Raises:
        TypeError: `frame` is no DataFrame.
        ValueError: cells that cannot be read at all, see `split_table`: stamps that are no times,
            text or infinite values in a target, empty ids.
    """
    reports = [_report(name, rows, columns) for name, _, rows in read_groups(frame, columns)]
    return TableReport(columns, tuple(reports))


def _report(name: str, rows: TableRows, columns: Columns) -> SeriesReport:
    order = np.argsort(rows.time, kind="stable")
    time = rows.time[order]
    is_new = np.concatenate([[True], time[1:] != time[:-1]])
    steps = np.diff(time[is_new])
    missing = np.isnan(rows.values)
    masked = missing.any(axis=1)
    observed = {
        name: column[~np.isnan(column)]
        for name, column in zip(rows.target_columns, rows.values.T, strict=True)
    }
    median = longest = None
    gaps = 0
    if len(steps):
        middle = median_step(steps)
        # Divided, as 1.5 times an integer may leave 64 bits.
        gaps = int((steps / _GAP > middle).sum())
        median = span_text(middle, rows.time_unit)
        longest = span_text(steps.max(), rows.time_unit) if gaps else None
    stamps = rows.stamps[order][is_new]
    frequency, following = frequency_words(stamps, columns.freq) or (None, None)
    return SeriesReport(
        name=name,
        rows=len(time),
        first=stamps[0],
        last=stamps[-1],
        duplicates=int((~is_new).sum()),
        out_of_order=int((rows.time[1:] < rows.time[:-1]).sum()),
        median_step=median,
        frequency=frequency,
        next_stamps=following,
        gaps=gaps,
        longest_gap=longest,
        missing={
            name: int(count)
            for name, count in zip(rows.target_columns, missing.sum(axis=0), strict=True)
        },
        least={name: _end(np.min, column) for name, column in observed.items()},
        largest={name: _end(np.max, column) for name, column in observed.items()},
        possible_marks={name: possible_marks(column) for name, column in observed.items()},
        masked_rows=int(masked.sum()),
        partly_missing_rows=int(masked.sum() - missing.all(axis=1).sum()),
    )


def _end(function: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    return float(function(values)) if len(values) else float("nan")
