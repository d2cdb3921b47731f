"""Values of targets and covariates: read as 64-bit numbers, an error where a cell is text."""

import re
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.column_error import bad_row

_NUMBERS = "hold numbers, or empty cells where a value is missing"
# 1,500 and 1.500,5 and 1 500 and 1'500.
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:[,.' ]\d{2,3})*[,.' ]\d{3}(?:[.,]\d+)?")
_COMMENTED = re.compile(r"[+-]?\d[\d.,]*\s*#.*")
_COMMA = re.compile(r"[+-]?\d*,\d+")


class UnreadNumber(str):
    """A cell that is no number in the form of its file, though it would be one in another form.

    In a file with the decimal mark "," 1.500 is such a cell: 1.5 or 1500.
    """

    __slots__ = ()


def read_targets(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> np.ndarray:
    """Reads targets, `[T, D_y]` float64: finite numbers, or NaN for an empty cell."""
    values = np.empty((len(frame), len(columns)), np.float64)
    for index, name in enumerate(columns):
        values[:, index] = _read_numbers(frame[name], name)
    check_finite(values, columns)
    return values


def read_covariates(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> np.ndarray:
    """Reads covariates, `[T, D_c]` float64: finite numbers, or True and False."""
    covariates = np.empty((len(frame), len(columns)), np.float64)
    wish = "hold a number, or True or False, in every row"
    for index, name in enumerate(columns):
        column = frame[name]
        if getattr(column.dtype, "kind", "O") in "cmM":
            raise bad_row(name, wish, 0, column.iloc[0])
        covariates[:, index] = _to_numbers(column, name, wish)
    check_covariates(covariates, columns)
    return covariates


def _read_numbers(column: pd.Series, name: Hashable) -> np.ndarray:
    if pd.api.types.is_bool_dtype(column.dtype) or getattr(column.dtype, "kind", "O") in "cmM":
        raise bad_row(name, "hold numbers", 0, column.iloc[0])
    wish = _NUMBERS
    if column.dtype == object:
        # Where a cell is empty, True and False come as objects, and would become 1 and 0.
        wrong = column.map(type).isin([bool, np.bool_]).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise bad_row(name, wish, row, column.iloc[row])
    return _to_numbers(column, name, wish)


def _to_numbers(column: pd.Series, name: Hashable, wish: str) -> np.ndarray:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        text = column.astype("object")
        column = pd.to_numeric(text, errors="coerce")
        unread = text.map(type) == UnreadNumber
        wrong = (column.isna() & text.notna() | unread).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise bad_row(
                name, wish + _advice(text.iloc[row], wish == _NUMBERS), row, text.iloc[row]
            )
    return column.to_numpy(np.float64, na_value=np.nan)


def _advice(value: Any, may_be_missing: bool) -> str:
    """Says which option of reading a file would read a cell as a number."""
    if not isinstance(value, str):
        return ""
    if isinstance(value, UnreadNumber):
        return (
            ", as `decimal` (--decimal) and `thousands` (--thousands) spell them, in groups of "
            "three digits"
        )
    if value != value.strip():
        return " (`strip` (--strip) leaves out the blanks around cells of a file)"
    if _COMMENTED.fullmatch(value):
        return " (`comment` (--comment '#') leaves out the ends of lines of a file)"
    if _GROUPS.fullmatch(value):
        return (
            " (`thousands` (--thousands) is the mark between groups of digits in a file, `decimal` "
            "(--decimal) its decimal mark)"
        )
    if _COMMA.fullmatch(value):
        return " (`decimal` (--decimal) is the decimal mark of a file)"
    return " (`missing` (--missing) is for other marks of them in a file)" if may_be_missing else ""


def check_finite(values: np.ndarray, columns: tuple[Hashable, ...]) -> None:
    """Checks that values are finite or NaN."""
    wrong = np.isinf(values)
    if wrong.any():
        row, index = (int(i) for i in np.argwhere(wrong)[0])
        wish = "hold finite numbers, or empty cells where a value is missing"
        raise bad_row(columns[index], wish, row, float(values[row, index]))


def check_covariates(covariates: np.ndarray, columns: tuple[Hashable, ...]) -> None:
    """Checks that covariates are finite."""
    wrong = ~np.isfinite(covariates)
    if wrong.any():
        row, index = (int(i) for i in np.argwhere(wrong)[0])
        wish = "hold a finite number in every row, as covariates are known ahead of time"
        raise bad_row(columns[index], wish, row, float(covariates[row, index]))
