"""Columns of a table: their names, which of them plays which part, and that they are there."""

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

# What a column of time is called, in any case. "ds", "unique_id" and "y" are the names of the
# long format of many forecasting libraries, and come before the others.
_TIME_NAMES = ("ds", "date", "time", "timestamp", "datetime")
_ID_NAME = "unique_id"
_TARGET_NAME = "y"


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

    Raises:
        TypeError: a name that is neither text nor a number, nor a tuple of them: a file could not
            hold it.
        ValueError: no target column, a column named twice, or one that plays two parts.
    """

    time_column: Hashable
    target_columns: tuple[Hashable, ...]
    id_column: Hashable | None = None
    covariate_columns: tuple[Hashable, ...] = ()
    date_format: str | None = None

    def __post_init__(self) -> None:
        targets = as_names("target_columns", self.target_columns, 1)
        covariates = as_names("covariate_columns", self.covariate_columns)
        object.__setattr__(self, "target_columns", targets)
        object.__setattr__(self, "covariate_columns", covariates)
        _check_names("time_column", self.time_column)
        _check_names("target_columns", *targets)
        _check_names("id_column", *() if self.id_column is None else (self.id_column,))
        _check_names("covariate_columns", *covariates)
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
            ValueError: a column is missing, or there are no rows. The message names the columns.
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
            target_columns: None: `y`; without it the only column that is left.
            id_column: None: `unique_id` if there is such a column, else the table is one series.
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
        names: list[Hashable] = list(frame.columns)
        covariates = as_names("covariate_columns", covariate_columns)
        targets = None if target_columns is None else as_names("target_columns", target_columns, 1)
        taken = {*covariates, *(targets or ()), time_column, id_column}
        if id_column is None and _ID_NAME in {*levels, *names} - taken:
            id_column = _ID_NAME
            taken.add(id_column)
        if time_column is None:
            time_column = _find_time(frame, levels, names, taken)
            taken.add(time_column)
        if targets is None:
            targets = _find_targets([name for name in names if name not in taken])
        columns = cls(time_column, targets, id_column, covariates, date_format)
        columns.check(flatten_index(frame))
        return columns

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of these columns, ready for JSON."""
        return {
            "time_column": _plain(self.time_column),
            "target_columns": [_plain(name) for name in self.target_columns],
            "id_column": _plain(self.id_column),
            "covariate_columns": [_plain(name) for name in self.covariate_columns],
            "date_format": self.date_format,
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
        )


def _find_time(
    frame: pd.DataFrame, levels: list[Hashable], names: list[Hashable], taken: set[Any]
) -> Hashable:
    free = [name for name in [*levels, *names] if name not in taken]
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
    """Converts a name as read from JSON, which has lists where there were tuples."""
    return tuple(map(_hashable, name)) if isinstance(name, list) else name


def as_names(
    argument: str, columns: Hashable | Sequence[Hashable], minimum: int = 0
) -> tuple[Hashable, ...]:
    """Returns one or several names as a tuple; checks that they differ, and at least `minimum`."""
    is_sequence = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    names = tuple(columns) if is_sequence else (columns,)  # type: ignore[arg-type]
    if len(names) < minimum or len(set(names)) != len(names):
        wish = "at least one column, and none twice" if minimum else "no column twice"
        raise ValueError(f"`{argument}` must name {wish}. Received: {argument}={columns!r}")
    return names


def check_frame(frame: Any, argument: str = "frame") -> None:
    """Checks that an argument is a table.

    Raises:
        TypeError: it is no DataFrame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`{argument}` must be a pandas DataFrame. Received: {type(frame).__name__}"
        )


def index_levels(frame: pd.DataFrame) -> list[Hashable]:
    """Returns the names of the index levels that count as columns, in order.

    They are the levels with a name that no column has, and an index of dates without a name, which
    is called `"index"` unless a column has that name.
    """
    index = frame.index
    names = list(index.names)
    if names == [None] and isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        names = ["index"]
    return [name for name in names if name is not None and name not in frame.columns]


def flatten_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Makes columns of the levels named by `index_levels`, and drops the rest of the index."""
    levels = index_levels(frame)
    if not levels:
        return frame
    if frame.index.names == [None]:
        frame = frame.set_axis(frame.index.rename(levels[0]))
    drop: list[Hashable] = [
        number for number, name in enumerate(frame.index.names) if name not in levels
    ]
    return frame.droplevel(drop).reset_index() if drop else frame.reset_index()


def check_roles(**roles: Hashable | tuple[Hashable, ...] | None) -> None:
    """Checks that no column plays two parts; see `check_columns`."""
    role_of: dict[Hashable, str] = {}
    for role, column in _named(roles):
        if column in role_of:
            raise ValueError(
                f"`{role_of[column]}` and `{role}` must not share a column. "
                f"Received: {column!r} in both"
            )
        role_of[column] = role


def check_columns(
    frame: pd.DataFrame,
    argument: str = "frame",
    /,
    **roles: Hashable | tuple[Hashable, ...] | None,
) -> None:
    """Checks that a table has rows and its columns, and that no column plays two parts.

    Args:
        frame: the table.
        argument: the name of the argument that holds it, for messages.
        **roles: for each part, such as `time_column`, its column or tuple of columns, or None.

    Raises:
        ValueError: one of these checks fails. The message names the columns of the table.
    """
    there = ", ".join(map(repr, frame.columns))
    for _, column in _named(roles):
        count = int((frame.columns == column).sum())
        if count != 1:
            how = "missing" if not count else f"there {count} times"
            raise ValueError(
                f"`{argument}` must have one column {column!r}; it is {how}. Received: {there}"
            )
    check_roles(**roles)
    if frame.empty:
        raise ValueError(f"`{argument}` must have at least one row. Received: 0 rows")


def _named(roles: Mapping[str, Any]) -> Iterator[tuple[str, Hashable]]:
    for role, names in roles.items():
        for column in names if isinstance(names, tuple) else () if names is None else (names,):
            yield role, column
