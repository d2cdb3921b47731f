"""The support of values: bounds and whole numbers, as a smooth transform to all real numbers.

A bounded value v, and z, which can be any real number, belong together by

    v = lower + s softplus((z - lower) / s) - s softplus((z - upper) / s)

(without an upper bound the last term is absent; without a lower one, `v = upper - s softplus((upper
- z) / s)`). Far from the bounds, compared with the softness s, z and v are the same; near a bound
they belong together by an exponential. The inverse has a closed form.

Values no further than `MARGIN` s from a bound are read as the bound itself, and what is drawn there
is that bound: its probability is known, and its density is spread evenly over the margin. Whole
numbers have cells from v - 1/2 to v + 1/2, and the bounds lie half a cell further out; their
"density" is the probability of the cell.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_number
from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.column_error import ColumnError, bad_row
from taylorformer.data_wrangler.tables.series import Series

MARGIN = 0.01
"""How close to a bound, in units of the softness, a value counts as the bound itself."""

_HALF_CELL = 0.5
# exp of it is near the end of 64-bit numbers; 1 / exp of it is nothing beside 1.
_LARGEST_EXPONENT = 700.0
# A distance from a bound that is nothing, and whose logarithm is finite.
_TINY = np.float64(1e-300)
# So many times s beyond a bound, in z, a value differs from it by less than rounding.
_AT_BOUND = 40.0
# The bounds of whole numbers in 64-bit floating point, which cannot tell larger ones apart.
_LARGEST_INTEGER = 2.0**53


@dataclasses.dataclass(frozen=True)
class ValueSupport:
    """Which values each target column can have.

    Example:
        >>> support = ValueSupport.of(0, None, True, num_columns=2)
        >>> support.lower, support.upper, support.integers
        ((0.0, 0.0), (inf, inf), (True, True))
        >>> support.is_everything
        False

    Attributes:
        lower: D_y numbers, -inf where there is no lower bound.
        upper: D_y numbers, inf where there is no upper bound.
        integers: D_y times whether values are whole numbers.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    integers: tuple[bool, ...]

    @classmethod
    def of(cls, lower: Any, upper: Any, integers: Any, num_columns: int) -> "ValueSupport":
        """Makes a support from arguments: one value for all columns, or one for each.

        Args:
            lower: the least value, or None for none.
            upper: the largest value, or None for none.
            integers: whether values are whole numbers.
            num_columns: D_y.

        Raises:
            TypeError: bounds that are no numbers, or `integers` that are not True or False.
            ValueError: another number of columns, a bound that is not finite, a lower one that is
                not below the upper one, or no whole number between them.
        """
        lowest, highest = (
            tuple(
                outside if bound is None else float(bound)
                for bound in _for_each_column(name, check_bounds(name, bounds), num_columns)
            )
            for name, bounds, outside in (("lower", lower, -np.inf), ("upper", upper, np.inf))
        )
        for low, high in zip(lowest, highest, strict=True):
            if not low < high:
                raise ValueError(
                    f"`lower` must be below `upper`. Received: lower={low:g} and upper={high:g}"
                )
        whole = _for_each_column("integers", check_integers(integers), num_columns)
        rounded = [
            (np.ceil(low), np.floor(high)) if is_whole else (low, high)
            for low, high, is_whole in zip(lowest, highest, whole, strict=True)
        ]
        for low, high in rounded:
            if low > high:
                raise ValueError(
                    "`lower` and `upper` must have a whole number between them where `integers` is "
                    f"set. Received: lower={lower!r} and upper={upper!r}"
                )
        return cls(
            tuple(float(low) for low, _ in rounded),
            tuple(float(high) for _, high in rounded),
            tuple(bool(one) for one in whole),
        )

    def of_column(self, column: int) -> "ValueSupport":
        """Returns the support of one column."""
        return ValueSupport((self.lower[column],), (self.upper[column],), (self.integers[column],))

    @classmethod
    def everything(cls, num_columns: int) -> "ValueSupport":
        """Returns the support of all real numbers."""
        return cls.of(None, None, False, num_columns)

    @property
    def is_everything(self) -> bool:
        """Whether every column can have any real value."""
        return not (np.isfinite([*self.lower, *self.upper]).any() or any(self.integers))

    @property
    def has_integers(self) -> bool:
        """Whether a column holds whole numbers."""
        return any(self.integers)

    @property
    def outer_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the transform, `[D_y]` both: half a cell further out for whole numbers."""
        further = np.where(self.integers, _HALF_CELL, 0.0)
        return np.array(self.lower) - further, np.array(self.upper) + further

    def check_frame(self, frame: pd.DataFrame, columns: Sequence[Hashable]) -> None:
        """Checks the target columns of a table; the error names the row of the table.

        Args:
            frame: a table whose target columns can be read.
            columns: the D_y target columns.

        Raises:
            ValueError: a value outside the support.
        """
        if self.is_everything:
            return
        values = np.stack(
            [pd.to_numeric(frame[name]).to_numpy(np.float64, na_value=np.nan) for name in columns],
            axis=-1,
        )
        wrong = self._first_outside(values)
        if wrong is not None:
            row, index = wrong
            raise bad_row(columns[index], self._wish(index), row, float(values[row, index]))

    def check_series(self, series: Series) -> None:
        """Checks the values of a series; the error names its row.

        Raises:
            ValueError: a value outside the support.
        """
        if self.is_everything:
            return
        wrong = self._first_outside(series.values)
        if wrong is not None:
            row, index = wrong
            of = f" of series {series.name!r}" if series.name else ""
            received = f"{float(series.values[row, index])!r} in row {row + 1}{of}"
            raise ColumnError(series.target_columns[index], self._wish(index), received)

    def outside(self, values: Any, ops: ArrayOps = NUMPY_OPS) -> Any:
        """Returns which values are outside the support.

        Args:
            values: `[.., D_y]`; what is missing is not outside.
            ops: the array functions for what they are.
        """
        beyond = (values < np.array(self.lower)) | (values > np.array(self.upper))
        is_whole = (values == ops.round(values)) & (values <= _LARGEST_INTEGER)
        is_whole &= values >= -_LARGEST_INTEGER
        is_missing = values != values
        return beyond | (np.array(self.integers) & ~is_whole & ~is_missing)

    def _first_outside(self, values: np.ndarray) -> tuple[int, int] | None:
        """Returns row and column of the first value outside, column by column; None for none."""
        wrong = self.outside(values)
        if not wrong.any():
            return None
        index = int(wrong.any(axis=0).argmax())
        return int(wrong[:, index].argmax()), index

    def _wish(self, index: int) -> str:
        low, high = self.lower[index], self.upper[index]
        kind = "whole numbers" if self.integers[index] else "values"
        parts = []
        if np.isfinite(low):
            parts.append(f"of at least {low:g} (`lower`)")
        if np.isfinite(high):
            parts.append(f"of at most {high:g} (`upper`)")
        option = " (`integers`)" if self.integers[index] else ""
        return f"hold {kind}{option} {' and '.join(parts)}".rstrip()

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `of` except D_y, ready for JSON."""
        return {
            "lower": [low if np.isfinite(low) else None for low in self.lower],
            "upper": [high if np.isfinite(high) else None for high in self.upper],
            "integers": list(self.integers),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ValueSupport":
        """Makes a support from the dictionary returned by `get_config`."""
        return cls.of(config["lower"], config["upper"], config["integers"], len(config["integers"]))


def check_bounds(name: str, bounds: Any) -> tuple[float | None, ...] | float | None:
    """Returns a bound, or one for each column, as plain numbers; None stays None.

    Raises:
        TypeError: no number, and no sequence of numbers.
        ValueError: a bound that is not finite, or an empty sequence.
    """
    if bounds is None:
        return None
    if not _is_sequence(bounds):
        return float(check_number(name, bounds))
    if not len(bounds):
        raise ValueError(f"`{name}` must be a number, or one for each target. Received: none")
    return tuple(None if one is None else float(check_number(name, one)) for one in bounds)


def check_integers(integers: Any) -> tuple[bool, ...] | bool:
    """Returns True or False, or one for each column, as plain ones.

    Raises:
        TypeError: anything else.
        ValueError: an empty sequence.
    """
    is_sequence = _is_sequence(integers)
    values = tuple(integers) if is_sequence else (integers,)
    if not values:
        raise ValueError("`integers` must be True or False, or one for each target. Received: none")
    for value in values:
        if not isinstance(value, bool | np.bool_):
            raise TypeError(
                "`integers` must be True or False, or one for each target. "
                f"Received: integers={integers!r}"
            )
    plain = tuple(bool(value) for value in values)
    return plain if is_sequence else plain[0]


def check_support(lower: Any, upper: Any, integers: Any) -> None:
    """Checks arguments of `ValueSupport.of` against each other, before D_y is known.

    Args:
        lower: returned by `check_bounds`.
        upper: returned by `check_bounds`.
        integers: returned by `check_integers`.

    Raises:
        ValueError: different numbers of columns, or as `ValueSupport.of` says.
    """
    sizes = {len(value) for value in (lower, upper, integers) if isinstance(value, tuple)}
    if len(sizes) > 1:
        raise ValueError(
            "`lower`, `upper` and `integers` must be one value each, or one for each target. "
            f"Received: lower={lower!r}, upper={upper!r}, integers={integers!r}"
        )
    ValueSupport.of(lower, upper, integers, max(sizes, default=1))


def _is_sequence(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _for_each_column(name: str, value: Any, num_columns: int) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        return (value,) * num_columns
    if len(value) != num_columns:
        raise ValueError(
            f"`{name}` must be one value, or one for each of the {num_columns} target columns. "
            f"Received: {len(value)}"
        )
    return value


@dataclasses.dataclass(frozen=True, eq=False)
class SupportTransform:
    """The transform of values inside a support to all real numbers, and back.

    All attributes broadcast to the values.

    Example:
        >>> counts = SupportTransform.of(ValueSupport.of(0, None, True, 1), np.array([2.0]))
        >>> real = counts.to_real(np.array([[0.0], [1.0], [50.0]]))
        >>> real.round(2).ravel().tolist(), counts.to_values(real).ravel().tolist()
        ([-3.02, -0.28, 50.0], [0.0, 1.0, 50.0])

    Attributes:
        lower: the bounds of the transform, -inf for none; those of whole numbers lie half a cell
            further out.
        upper: inf for none.
        softness: s, positive, in user units.
        integer: bool.
        ops: the array functions for what these are.
    """

    lower: Any
    upper: Any
    softness: Any
    integer: Any
    ops: ArrayOps = NUMPY_OPS

    @classmethod
    def of(
        cls, support: ValueSupport, softness: Any, ops: ArrayOps = NUMPY_OPS
    ) -> "SupportTransform":
        """Makes the transform of D_y columns with `softness`, whose last axis is D_y."""
        lower, upper = support.outer_bounds
        return cls(lower, upper, softness, np.array(support.integers), ops)

    @property
    def margin(self) -> Any:
        """How close to a bound a value counts as the bound; 0 for whole numbers."""
        return self.ops.where(self.integer, 0.0 * self.softness, MARGIN * self.softness)

    @property
    def has_lower(self) -> Any:
        """Whether there is a lower bound."""
        return self.lower > -np.inf

    @property
    def has_upper(self) -> Any:
        """Whether there is an upper bound."""
        return self.upper < np.inf

    @property
    def _finite_bounds(self) -> tuple[Any, Any]:
        """The bounds, and numbers to calculate with where there is none."""
        nothing = 0.0 * self.softness
        return (
            self.ops.where(self.has_lower, self.lower, nothing),
            self.ops.where(self.has_upper, self.upper, nothing),
        )

    def _distances(self, values: Any, least: Any) -> tuple[Any, Any]:
        """Returns how far values lie inside the bounds, in units of s, and no less than `least`."""
        ops = self.ops
        lower, upper = self._finite_bounds
        far = 0.0 * self.softness + _LARGEST_EXPONENT
        from_lower = ops.where(self.has_lower, (values - lower) / self.softness, far)
        from_upper = ops.where(self.has_upper, (upper - values) / self.softness, far)
        return (
            ops.smaller(ops.larger(from_lower, least), _LARGEST_EXPONENT),
            ops.smaller(ops.larger(from_upper, least), _LARGEST_EXPONENT),
        )

    def to_real(self, values: Any) -> Any:
        """Returns z of values in user units; of those within the margin, that of its end.

        NaN stays NaN. Values beyond a bound count as the bound.
        """
        return self._transform(values, self.ops.where(self.integer, _TINY, np.float64(MARGIN)))

    def edges(self, values: Any) -> tuple[Any, Any]:
        """Returns z at the two ends of the cells of whole numbers; -inf and inf at bounds."""
        low, high = (self._transform(values + side, _TINY) for side in (-_HALF_CELL, _HALF_CELL))
        low = self.ops.where(values - _HALF_CELL <= self.lower, np.float64(-np.inf), low)
        high = self.ops.where(values + _HALF_CELL >= self.upper, np.float64(np.inf), high)
        return low, high

    def _transform(self, values: Any, least: Any) -> Any:
        ops = self.ops
        inside = ops.larger(values, self.lower + least * self.softness)
        inside = ops.smaller(inside, self.upper - least * self.softness)
        from_lower, from_upper = self._distances(inside, least)
        shift = ops.log(-ops.expm1(-from_lower)) - ops.log(-ops.expm1(-from_upper))
        return inside + self.softness * shift

    def to_values(self, real: Any) -> Any:
        """Returns values in user units: whole where they are to be, and bounds in the margins."""
        ops, softness = self.ops, self.softness
        lower, upper = self._finite_bounds
        # Further out there is nothing but the rounding of large numbers.
        real = ops.larger(real, self.lower - _AT_BOUND * softness)
        real = ops.smaller(real, self.upper + _AT_BOUND * softness)
        values = ops.where(
            self.has_lower, lower + softness * ops.softplus((real - lower) / softness), real
        )
        below = softness * ops.softplus((real - upper) / softness)
        values = values - ops.where(self.has_upper, below, 0.0 * softness)
        margin = self.margin
        at_lower = self.has_lower & (values - lower <= margin)
        at_upper = self.has_upper & (upper - values <= margin)
        whole = ops.round(values)
        # On a half, which only the ends of the outermost cells are, rounding may lead outwards.
        whole = ops.larger(whole, self.lower + _HALF_CELL)
        whole = ops.smaller(whole, self.upper - _HALF_CELL)
        values = ops.where(at_lower, lower, ops.where(at_upper, upper, values))
        # Adding 0 makes 0 of -0.
        return ops.where(self.integer, whole, values) + 0.0

    def log_density_factor(self, values: Any, log_spread: Any) -> Any:
        """Returns what to add to the log density of scaled z, for that of values in user units.

        The logarithm of the derivative of scaled z; in the margins, whose probability takes the
        part of a density, that of one over their width; 0 for whole numbers.
        """
        ops = self.ops
        from_lower, from_upper = self._distances(values, MARGIN)
        slope = 1 + 1 / ops.expm1(from_lower) + 1 / ops.expm1(from_upper)
        factor = ops.log(slope) - log_spread
        width = ops.log(MARGIN * self.softness)
        in_margin = (from_lower <= MARGIN) | (from_upper <= MARGIN)
        factor = ops.where(in_margin, 0.0 * factor - width, factor)
        return ops.where(self.integer, 0.0 * factor, factor)
