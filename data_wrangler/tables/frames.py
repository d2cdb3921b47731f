"""Tables of pandas: names of columns, index levels that count as columns, and checks of both.

Tables of other libraries become tables of pandas here.
"""

import importlib
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

TARGET_NAME = "y"
"""What the column to forecast is called in the long format of many forecasting libraries."""


class ForeignTable(Protocol):
    """A table of another library, such as Polars or PyArrow."""

    def to_pandas(self) -> Any:
        """Converts it."""


def as_frame(data: Any, argument: str = "data") -> Any:
    """Converts a table of another library, or a pandas Series with dates, to a pandas DataFrame.

    Example:
        >>> load = pd.Series([3.5, 4.5], pd.date_range("2024-01-01", periods=2), name="load")
        >>> as_frame(load).columns.tolist()
        ['load']

    Args:
        data: a table that has `to_pandas()`, such as those of Polars and PyArrow, or one that
            hands over its columns by `__arrow_c_stream__` (with PyArrow) or `__dataframe__`; or a
            pandas Series whose index holds the times, or has names: it becomes the column of its
            name, or `y`.
        argument: the name of the argument that holds it, for messages.

    Returns:
        A DataFrame. Everything else is returned as it is, for the caller to check.

    Raises:
        ImportError: the table needs a package that is not there to be converted.
        TypeError: a pandas Series without times.
    """
    if not isinstance(data, pd.DataFrame | pd.Series):
        data = _converted(data, argument)
    if not isinstance(data, pd.Series):
        return data
    frame = data.to_frame(TARGET_NAME if data.name is None else data.name)
    if not index_levels(frame):
        raise TypeError(
            f"`{argument}` must be a pandas DataFrame with a column of time, or a Series whose "
            f"index holds the times. Received: a Series with an index of {data.index.dtype}"
        )
    return frame


def _converted(data: Any, argument: str) -> Any:
    missing: ImportError | None = None
    # A class has these functions, too, but no rows.
    for convert in () if isinstance(data, type) else (_by_method, _by_arrow, _by_interchange):
        try:
            frame = convert(data)
        except ImportError as error:
            missing = missing or error
            continue
        if frame is not None:
            return frame
    if missing is not None:
        raise ImportError(
            f"`{argument}` must be a pandas DataFrame where a package to convert other tables is "
            f"missing. Received: {type_name(data)} ({missing})"
        ) from missing
    return data


def _by_method(data: Any) -> Any:
    frame = data.to_pandas() if callable(getattr(data, "to_pandas", None)) else None
    return frame if isinstance(frame, pd.DataFrame | pd.Series) else None


def _by_arrow(data: Any) -> Any:
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    return importlib.import_module("pyarrow").table(data).to_pandas()


def _by_interchange(data: Any) -> Any:
    if not hasattr(data, "__dataframe__"):
        return None
    with warnings.catch_warnings():
        # pandas 3 calls the protocol deprecated, and has no other way that needs no PyArrow.
        warnings.simplefilter("ignore")
        return pd.api.interchange.from_dataframe(data)


def type_name(value: Any) -> str:
    """Names the type of a value with its module, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def check_name(argument: str, name: Any) -> None:
    """Checks that an argument may be the name of a column, and is no array.

    Raises:
        TypeError: it cannot; the message says where values belong.
    """
    try:
        hash(name)
    except TypeError:
        raise TypeError(
            f"`{argument}` must be the name of a column: times and targets stand in one table, "
            'such as pd.DataFrame({"ds": times, "y": values}), not in a table and an array as '
            f"X and y. Received: {type_name(name)}"
        ) from None


def as_names(
    argument: str, columns: Hashable | Sequence[Hashable], minimum: int = 0
) -> tuple[Hashable, ...]:
    """Returns one or several names as a tuple; checks that they differ, and at least `minimum`.

    Names of columns may come as `frame.columns` returns them, too.
    """
    is_sequence = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    if isinstance(columns, np.ndarray) and columns.ndim == 1:
        # An array of numbers holds values, not names.
        is_sequence = columns.dtype.kind not in "biufc"
    is_sequence = is_sequence or isinstance(columns, pd.Index)
    names = tuple(columns) if is_sequence else (columns,)  # type: ignore[arg-type]
    for name in names:
        check_name(argument, name)
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
            how = f"there {count} times" if count else f"missing{_with_blanks(frame, column)}"
            raise ValueError(
                f"`{argument}` must have one column {column!r}; it is {how}. Received: {received}"
            )
    check_roles(**roles)
    if frame.empty:
        raise ValueError(f"`{argument}` must have at least one row. Received: 0 rows")


def _with_blanks(frame: pd.DataFrame, column: Hashable) -> str:
    """Says that a column is there with blanks around its name, if it is."""
    alike = [name for name in frame.columns if str(name).strip() == str(column).strip()]
    return f", but there is {alike[0]!r}, with other blanks around its name" if alike else ""


def _named(roles: Mapping[str, Any]) -> Iterator[tuple[str, Hashable]]:
    for role, names in roles.items():
        for column in names if isinstance(names, tuple) else () if names is None else (names,):
            yield role, column
