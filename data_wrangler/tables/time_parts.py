"""A time that is split over several columns, such as one of dates and one of times of day."""

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.frames import as_names, check_columns, check_name


def split_time_column(
    time_column: Hashable | Sequence[str],
) -> tuple[Hashable, tuple[Hashable, ...]]:
    """Returns the name of the column of time, and the columns that make it, if there are any.

    Example:
        >>> split_time_column("ds"), split_time_column(["Date", "Time"])
        (('ds', ()), ('Date Time', ('Date', 'Time')))

    Args:
        time_column: a name, or a list of names.

    Raises:
        TypeError: neither a name nor a list of text.
        ValueError: a list without a name, or with one twice.
    """
    if not isinstance(time_column, list) or not all(isinstance(one, str) for one in time_column):
        check_name("time_column", time_column)
        return time_column, ()
    parts = as_names("time_column", time_column, 1)
    return (parts[0], ()) if len(parts) == 1 else (joined_name(parts), parts)


def joined_name(parts: Sequence[Hashable]) -> str:
    """Returns the name of the column that joins others."""
    return " ".join(map(str, parts))


def join_time(
    frame: pd.DataFrame, name: Hashable, parts: Sequence[Hashable], argument: str = "frame"
) -> pd.DataFrame:
    """Replaces the columns that make a time by one: their text, joined by blanks.

    Example:
        >>> table = pd.DataFrame({"Date": ["2024-01-31"], "Time": ["17:24"], "y": [1.5]})
        >>> join_time(table, "Date Time", ["Date", "Time"])["Date Time"].tolist()
        ['2024-01-31 17:24']

    Args:
        frame: the table. It is not changed.
        name: of the joined column, which comes first. Where `frame` has it, and not the parts,
            `frame` is returned.
        parts: the columns that make it. A row that lacks one of them lacks the time.
        argument: the name of the argument that holds the table, for messages.

    Raises:
        ValueError: a part is missing, or the joined column is there, too.
    """
    if not parts:
        return frame
    is_joined = name in frame.columns
    if is_joined and not any(part in frame.columns for part in parts):
        return frame
    if is_joined:
        raise ValueError(
            f"`{argument}` must have either the column {name!r} or those that make it. "
            f"Received: {', '.join(map(repr, frame.columns))}"
        )
    check_columns(frame, argument, time_column=tuple(parts))
    texts = [_as_text(frame[part]) for part in parts]
    joined = functools.reduce(lambda first, second: first + " " + second, texts)
    rest: Any = frame.drop(columns=list(parts))
    rest.insert(0, name, joined)
    return rest


def _as_text(column: pd.Series) -> pd.Series:
    if column.dtype.kind == "M" and (column.dropna() == column.dropna().dt.normalize()).all():
        return column.dt.strftime("%Y-%m-%d").astype("string")
    if column.dtype.kind == "f" and column.dropna().map(float.is_integer).all():
        # Integers with an empty cell.
        column = column.astype("Int64")
    return column.astype("object").map(str, na_action="ignore").astype("string")
