"""Tables of pandas: names of columns, index levels that count as columns, and checks of both."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd


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
    received = ", ".join(map(repr, frame.columns))
    for _, column in _named(roles):
        count = int((frame.columns == column).sum())
        if count != 1:
            how = "missing" if not count else f"there {count} times"
            raise ValueError(
                f"`{argument}` must have one column {column!r}; it is {how}. Received: {received}"
            )
    check_roles(**roles)
    if frame.empty:
        raise ValueError(f"`{argument}` must have at least one row. Received: 0 rows")


def _named(roles: Mapping[str, Any]) -> Iterator[tuple[str, Hashable]]:
    for role, names in roles.items():
        for column in names if isinstance(names, tuple) else () if names is None else (names,):
            yield role, column
