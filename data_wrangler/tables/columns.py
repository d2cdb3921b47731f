"""Which columns of a table play which part: time, targets, ids, covariates."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_boolean
from taylorformer.data_wrangler.tables.frames import (
    TARGET_NAME,
    as_names,
    check_columns,
    check_frame,
    check_name,
    check_roles,
    flatten_index,
    index_levels,
)
from taylorformer.data_wrangler.tables.frequencies import Frequency, saved_frequency
from taylorformer.data_wrangler.tables.stamp_form import StampForm, form_of
from taylorformer.data_wrangler.tables.time_parts import join_time, split_time_column
from taylorformer.data_wrangler.tables.time_text import looks_like_iso_date, read_time

# What a column of time is called, in any case. "ds", "unique_id" and "y" are the names of the
# long format of many forecasting libraries, and come before the others.
_TIME_NAMES = ("ds", "date", "time", "timestamp", "datetime")
_ID_NAME = "unique_id"


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of a table play which part.

    Example:
        >>> columns = Columns("date", "sales", id_column="shop", covariate_columns=["holiday"])
        >>> columns.target_columns, columns.covariate_columns
        (('sales',), ('holiday',))

    Attributes:
        time_column: the column of time; see `Series.from_frame`, as for the next ones.
        target_columns: the D_y columns to forecast.
        id_column: the column that tells series apart, or None where the table is one series.
        covariate_columns: the D_c columns that are known ahead of time.
        date_format: for text that is not ISO 8601.
        time_parts: the columns whose text, joined by blanks, is the time, such as one of dates
            and one of times of day; empty where it is one column. `time_column` is the name of
            the joined one, which a table may also have instead of them.
        day_first: text is dates such as 16/12/2006, see `Series.from_frame`.
        time_unit: for numbers that count time since 1970.
        time_zone: for dates with UTC offsets.
        period: a frequency of periods, see `StampForm`: filled in by `Forecaster.fit`, so that a
            file of such periods is read as in training.
        freq: how stamps continue, see `continue_stamps`. An offset of pandas becomes its text.
            None: by a calendar that they keep.

    Raises:
        TypeError: a name that is neither text nor a number, nor a tuple of them: a file could not
            hold it.
        ValueError: no target column, a column named twice, or one that plays two parts; both
            `date_format` and `day_first`; no such unit, time zone or periods.
    """

    time_column: Hashable
    target_columns: tuple[Hashable, ...]
    id_column: Hashable | None = None
    covariate_columns: tuple[Hashable, ...] = ()
    date_format: str | None = None
    time_parts: tuple[Hashable, ...] = ()
    day_first: bool = False
    time_unit: str | None = None
    time_zone: str | None = None
    period: str | None = None
    freq: str | int | float | None = None

    def __post_init__(self) -> None:
        targets = as_names("target_columns", self.target_columns, 1)
        covariates = as_names("covariate_columns", self.covariate_columns)
        object.__setattr__(self, "target_columns", targets)
        object.__setattr__(self, "covariate_columns", covariates)
        object.__setattr__(self, "time_parts", as_names("time_parts", self.time_parts))
        object.__setattr__(self, "day_first", check_boolean("day_first", self.day_first))
        _check_names("time_column", self.time_column)
        _check_names("time_parts", *self.time_parts)
        _check_names("target_columns", *targets)
        _check_names("id_column", *() if self.id_column is None else (self.id_column,))
        _check_names("covariate_columns", *covariates)
        check_roles(**self._roles, time_parts=self.time_parts)
        object.__setattr__(self, "freq", saved_frequency(self.freq))
        # Its checks are those of these fields.
        _ = self.stamp_form

    @property
    def stamp_form(self) -> StampForm:
        """How the stamps are written."""
        return StampForm(
            self.date_format, self.time_unit, self.time_zone, self.period, self.day_first
        )

    def with_form_of(self, stamps: pd.Index) -> "Columns":
        """Adds what stamps of a table say by their type, see `form_of`."""
        form = form_of(stamps, self.stamp_form)
        return dataclasses.replace(self, time_zone=form.time_zone, period=form.period)

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
            ValueError: a column is missing, or there are no rows. The message names the columns.
        """
        check_columns(self._joined(frame.head(1)), **self._roles)

    def _joined(self, frame: pd.DataFrame, argument: str = "frame") -> pd.DataFrame:
        return join_time(frame, self.time_column, self.time_parts, argument)

    def with_time(self, frame: pd.DataFrame, argument: str = "frame") -> pd.DataFrame:
        """Returns a table with one column of time, where several make it; see `join_time`.

        Where the table has that column instead of them, such as a forecast of this package, its
        dates may also be those of ISO 8601, whatever `date_format` says.

        Args:
            frame: the table. It is not changed.
            argument: the name of the argument that holds it, for messages.

        Raises:
            ValueError: a part of the time is missing, or it is there twice.
        """
        joined = self._joined(frame, argument)
        if joined is not frame or not self.time_parts or self.date_format is None:
            return joined
        column = frame[self.time_column]
        first = next(iter(column), None)
        if not looks_like_iso_date(first):
            return frame
        try:
            read_time(column.iloc[:1], self.time_column, self.stamp_form)
        except ValueError:
            form = dataclasses.replace(self.stamp_form, date_format=None)
            stamps = read_time(column, self.time_column, form)
            return frame.assign(**{str(self.time_column): stamps})
        return frame

    @classmethod
    def resolve(
        cls,
        frame: pd.DataFrame,
        time_column: Hashable | Sequence[str] | None = None,
        target_columns: Hashable | Sequence[Hashable] | None = None,
        id_column: Hashable | None = None,
        covariate_columns: Hashable | Sequence[Hashable] = (),
        date_format: str | None = None,
        day_first: bool = False,
        time_unit: str | None = None,
        time_zone: str | None = None,
        freq: Frequency | None = None,
    ) -> "Columns":
        """Finds the columns of a table that are not given as arguments.

        Example:
            >>> import pandas as pd
            >>> columns = Columns.resolve(pd.DataFrame({"Date": ["2024-01-31"], "load": [0.5]}))
            >>> columns.time_column, columns.target_columns
            ('Date', ('load',))

        Args:
            frame: the table.
            time_column: None: `ds`; without it the only one of `date`, `time`, `timestamp` and
                `datetime` (in any case); else an index of dates or periods; else the first column.
                A list of names, such as `["Date", "Time"]`: columns whose text, joined by blanks,
                is the time.
            target_columns: None: `y`; without it the only column that is left.
            id_column: None: `unique_id` if there is such a column, else the table is one series.
            covariate_columns: never guessed.
            date_format: see the class, as the next ones.
            day_first: see the class.
            time_unit: see the class.
            time_zone: see the class.
            freq: see the class.

        Returns:
            The columns, all of them in the table.

        Raises:
            TypeError: `frame` is no DataFrame, or as the class says.
            ValueError: a column that is missing or plays two parts, a table without rows, or more
                than one choice for time or target.
        """
        check_frame(frame)
        time_column, parts = split_time_column(time_column)
        check_name("id_column", id_column)
        levels = index_levels(frame)
        names: list[Hashable] = list(frame.columns)
        covariates = as_names("covariate_columns", covariate_columns)
        targets = None if target_columns is None else as_names("target_columns", target_columns, 1)
        taken = {*covariates, *(targets or ()), time_column, id_column, *parts}
        if id_column is None and _ID_NAME in {*levels, *names} - taken:
            id_column = _ID_NAME
            taken.add(id_column)
        if time_column is None:
            time_column = _find_time(frame, levels, names, taken)
            taken.add(time_column)
        if targets is None:
            targets = _find_targets([name for name in names if name not in taken])
        columns = cls(
            time_column,
            targets,
            id_column,
            covariates,
            date_format,
            parts,
            day_first,
            time_unit,
            time_zone,
            freq=saved_frequency(freq),
        )
        columns.check(flatten_index(frame))
        return columns

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of these columns, ready for JSON; those of stamps if given."""
        stamps = {
            "time_unit": self.time_unit,
            "time_zone": self.time_zone,
            "period": self.period,
            "freq": self.freq,
        }
        return {
            "time_column": _plain(self.time_column),
            "target_columns": [_plain(name) for name in self.target_columns],
            "id_column": _plain(self.id_column),
            "covariate_columns": [_plain(name) for name in self.covariate_columns],
            "date_format": self.date_format,
            "time_parts": [_plain(name) for name in self.time_parts],
            "day_first": self.day_first,
            **{name: value for name, value in stamps.items() if value is not None},
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Columns":
        """Makes columns from the dictionary returned by `get_config`."""
        return cls(
            _hashable(config["time_column"]),
            tuple(_hashable(name) for name in config["target_columns"]),
            _hashable(config["id_column"]),
            tuple(_hashable(name) for name in config["covariate_columns"]),
            config["date_format"],
            # Not in files of the first versions.
            tuple(_hashable(name) for name in config.get("time_parts", ())),
            config.get("day_first", False),
            config.get("time_unit"),
            config.get("time_zone"),
            config.get("period"),
            config.get("freq"),
        )


def guess_time(names: Sequence[Hashable]) -> list[Hashable]:
    """Returns the columns that `Columns.resolve` may take for the time, by their names alone.

    Example:
        >>> guess_time(["load", "Date"]), guess_time(["Date", "Time", "y"]), guess_time(["a", "b"])
        (['Date'], ['Date', 'Time'], ['a'])
    """
    likely = [name for name in names if str(name).lower() in _TIME_NAMES]
    return [_TIME_NAMES[0]] if _TIME_NAMES[0] in likely else likely or list(names[:1])


def _find_time(
    frame: pd.DataFrame, levels: list[Hashable], names: list[Hashable], taken: set[Any]
) -> Hashable:
    free = [name for name in [*levels, *names] if name not in taken]
    likely = [name for name in free if str(name).lower() in _TIME_NAMES]
    if _TIME_NAMES[0] in likely:
        return _TIME_NAMES[0]
    if len(likely) > 1:
        raise ValueError(
            "`time_column` must be given where several columns may be it (a list of them, or "
            "--time more than once, joins them). "
            f"Received: {', '.join(map(repr, likely))}"
        )
    if likely:
        return likely[0]
    for number, name in enumerate(frame.index.names):
        dates = isinstance(frame.index.get_level_values(number), pd.DatetimeIndex | pd.PeriodIndex)
        level = levels[0] if name is None and levels else name
        if dates and level in free:
            return level
    columns = [name for name in names if name not in taken]
    if not columns:
        raise ValueError(
            "`frame` must have a column of time. "
            f"Received: {', '.join(map(repr, names)) or 'no columns'}"
        )
    return columns[0]


def _find_targets(left: list[Hashable]) -> tuple[Hashable, ...]:
    if TARGET_NAME in left:
        return (TARGET_NAME,)
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
    """Converts a name as read from JSON, which has lists where there were tuples."""
    return tuple(map(_hashable, name)) if isinstance(name, list) else name
