"""One series: rows of one or several columns over time, with time kept exact in 64 bits."""

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.stamp_form import StampForm
from taylorformer.data_wrangler.tables.stamps import NANOSECONDS, check_increasing, duration
from taylorformer.data_wrangler.tables.table_rows import TableRows
from taylorformer.data_wrangler.tables.values import check_covariates, check_finite

# Between the name of a series and that of a column.
_SEPARATOR = "/"


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """T rows of one or several columns over time; made by `from_frame` or `read_series`.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"day": ["2024-01-01", "2024-01-02"], "load": [3.5, None]})
        >>> series = Series.from_frame(table, "day", "load")
        >>> series.values.tolist(), series.observed.tolist()
        ([[3.5], [nan]], [True, False])

    Attributes:
        time: `[T]`, strictly increasing. int64 for dates, counted in `time_unit` since 1970 in UTC,
            and for integers; float64 for other numbers.
        values: `[T, D_y]` float64, in the units of the table. NaN means missing.
        stamps: the T stamps as in the table, with its time zone, periods or resolution.
        time_column: the name of the column of time.
        target_columns: the names of the D_y columns.
        time_unit: "s", "ms", "us" or "ns" for dates, None for numbers.
        name: tells series apart, and their random numbers; in a table of several series the id.
        covariates: `[T, D_c]` float64, finite: what is known ahead of time, such as a calendar.
            None: there are none.
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
        check_increasing(self.time, self.stamps, self.time_column)
        check_finite(self.values, self.target_columns)
        covariates = self.covariate_values
        if covariates.shape != (shape[0], len(self.covariate_columns)):
            raise ValueError(
                f"`covariates` must be [T, D_c] with T, D_c = {shape[0]}, "
                f"{len(self.covariate_columns)}. Received: {list(covariates.shape)}"
            )
        check_covariates(covariates, self.covariate_columns)
        for array in (self.time, self.values, covariates):
            array.setflags(write=False)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        time_column: Hashable | Sequence[str],
        target_columns: Hashable | Sequence[Hashable],
        *,
        covariate_columns: Hashable | Sequence[Hashable] = (),
        date_format: str | None = None,
        day_first: bool = False,
        time_unit: str | None = None,
        time_zone: str | None = None,
        unsorted: str = "error",
        duplicates: str = "error",
        name: str = "",
    ) -> "Series":
        """Makes a series of a table.

        Nothing is filled in, sorted or dropped by default: rows that are not in the order of time,
        or share a time, are an error. Messages count rows from 1, in the order of the table and
        without the header.

        Args:
            frame: one row a stamp, in the order of time. It is not changed.
            time_column: a column (or the index) of dates, periods (their start counts), integers
                or floats. Text must be dates of ISO 8601, such as 1999-12-31, 1999-12 or
                1999-12-31T23:59:59.005+01:00, all with a UTC offset or none (where the offsets
                differ the stamps are in UTC, or in `time_zone`); or periods: quarters such as
                1999Q4, 1999-Q4 or Q4 1999, months such as 1999M12, weeks of ISO 8601 such as
                1999-W52, or weeks as pandas writes them, 1999-12-27/2000-01-02. An index of dates
                without a name is called `"index"`. A list of names: columns
                whose text, joined by blanks, is the time, such as `["Date", "Time"]`; the series
                calls it `"Date Time"`.
            target_columns: one name or several. Empty cells are missing values.
            covariate_columns: columns that are known ahead of time, of numbers or of True and
                False (1 and 0), with no empty cell.
            date_format: for text of another form, such as `"%d/%m/%Y"`, or for numbers that spell
                a date, such as `"%Y%m%d"`.
            day_first: text is dates such as 16/12/2006, 16.12.2006 17:24 or 1-2-2006: the day, the
                month and the year of four digits, all in the form of the first row. Dates of
                ISO 8601, whose year comes first, are read, too.
            time_unit: "s", "ms", "us" or "ns" for numbers that count time since 1970: the stamps
                are then dates in UTC, and dates without a time zone are taken for such. None:
                numbers stay numbers.
            time_zone: the name of a time zone, such as `"Europe/Berlin"`, for dates with UTC
                offsets and those of `time_unit`: they are converted to it.
            unsorted: what to do with rows that are not in the order of time: raise an `"error"`,
                or `"sort"` them.
            duplicates: what to do with rows of the same time: raise an `"error"`, or keep one of
                them, the `"first"` or the `"last"` in the order of the table, or their `"mean"`:
                for each column the mean of the values that are not missing; their covariates must
                be the same.
            name: see the class.

        Returns:
            The series, `[T, D_y]`.

        Raises:
            TypeError: `frame` is no DataFrame.
            ValueError: missing columns, no rows, stamps that are no times, are not in order or
                come twice, text or infinite values in a target column, text or empty cells in a
                covariate; no such unit or time zone. The message names the column, the row and
                the value.
        """
        form = StampForm(date_format, time_unit, time_zone, day_first=day_first)
        rows = TableRows.read(frame, time_column, target_columns, covariate_columns, form)
        return cls.from_rows(rows.in_order(unsorted, duplicates), name)

    @classmethod
    def from_rows(cls, rows: TableRows, name: str = "") -> "Series":
        """Makes a series of rows that are in strictly increasing order of time."""
        return cls(
            rows.time,
            rows.values,
            rows.stamps,
            rows.time_column,
            rows.target_columns,
            rows.time_unit,
            name,
            rows.covariates,
            rows.covariate_columns,
        )

    def to_frame(self) -> pd.DataFrame:
        """Returns a table that `from_frame` can read: the stamps, the targets, the covariates."""
        table: dict[Hashable, Any] = {self.time_column: self.stamps}
        table |= dict(zip(self.target_columns, self.values.T, strict=True))
        if self.covariates is not None:
            table |= dict(zip(self.covariate_columns, self.covariates.T, strict=True))
        return pd.DataFrame(table)

    def take(self, rows: Any) -> "Series":
        """Returns the series of some rows.

        Args:
            rows: a slice, a mask `[T]` or row numbers, in increasing order; at least one row.
        """
        covariates = None if self.covariates is None else self.covariates[rows]
        return dataclasses.replace(
            self,
            time=self.time[rows],
            values=self.values[rows],
            stamps=self.stamps[rows],
            covariates=covariates,
        )

    def column(self, column: int) -> "Series":
        """Returns the series of one target column.

        Where there are several columns its name gets that of the column, and the column is called
        "y", so that the series of all columns can be told apart and stand in one panel.
        """
        target = self.target_columns[column]
        is_alone = self.num_columns == 1
        name = self.name if is_alone else f"{self.name}{_SEPARATOR}{target}"
        return dataclasses.replace(
            self,
            values=self.values[:, column : column + 1],
            target_columns=(target if is_alone else "y",),
            name=name,
        )

    @property
    def num_rows(self) -> int:
        """T, the number of rows."""
        return len(self.time)

    @property
    def num_columns(self) -> int:
        """D_y, the number of target columns."""
        return self.values.shape[1]

    @property
    def covariate_values(self) -> np.ndarray:
        """`[T, D_c]` float64, as `covariates`; where that is None, an array without a column."""
        return np.empty((self.num_rows, 0)) if self.covariates is None else self.covariates

    @functools.cached_property
    def observed(self) -> np.ndarray:
        """`[T]` bool: True where no column is missing. Every other row is masked as a whole."""
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
        """How many rows lack at least one value; such a row is masked as a whole."""
        return int((~self.observed).sum())

    @property
    def num_partly_missing_rows(self) -> int:
        """How many rows lack some of their values but not all; they are masked, too."""
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
        """Converts a length of time to the units of `time`.

        Args:
            span: for dates a Timedelta, or text with a unit such as `"365.25 days"`; for other
                times a number.

        Returns:
            A positive number.

        Raises:
            ValueError: `span` is not positive, or no length of time. For dates a plain number is
                no length of time, as it has no unit.
        """
        return duration(span, self.time_unit)

    def time_label(self, row: int) -> str:
        """Returns a name for the instant of one row; the same at every resolution of the stamps."""
        value = self.time[row]
        if self.time_unit is not None:
            return str(int(value) * NANOSECONDS[self.time_unit])
        number = float(value)
        return str(int(value)) if number.is_integer() else number.hex()
