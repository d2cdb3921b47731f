"""Mean and spread of the training part of a series, which scaling divides by."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec, evenly_spaced
from taylorformer.data_wrangler.tables.value_support import SupportTransform, ValueSupport

# Enough windows to measure a quantile well, and few enough to hold their targets in memory.
_MAX_WINDOWS_FOR_SPREAD = 4096
# This share of the targets of "window" scaling lies within `_NORMAL_QUANTILE` spreads.
_QUANTILE = 0.95
# The 95 % quantile of |z| for a standard normal z.
_NORMAL_QUANTILE = 1.959963984540054
# Below this share of the size of y, moves are measured about the middle of y, not about 0.
_SMALL_SPREAD = 1e-6
# A spread below this share of the size of y is less than the rounding of 64-bit numbers.
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
# The spread, as a share of the size of y, where y does not move at all.
_SPREAD_OF_CONSTANT = 1e-9
# A whole number is known to half a unit and no better.
_SPREAD_OF_INTEGERS = 0.5


class PanelStatistics(NamedTuple):
    """What is measured on the training parts of G series, `[G, D_y]` each; see `WindowScaler`.

    Attributes:
        center: the mean.
        spread: positive.
        softness: of the support, in user units, positive.
        is_rounding: bool, where values move less than 64-bit numbers of their size can tell.
    """

    center: np.ndarray
    spread: np.ndarray
    softness: np.ndarray
    is_rounding: np.ndarray


def _mean(column: np.ndarray) -> float:
    # Halved first: a sum of large numbers may overflow.
    return float(2 * np.mean(column / 2))


def measure_covariates(covariates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and the spread of each covariate, `[D_c]` both; see `WindowScaler`."""
    num_covariates = covariates.shape[1]
    center, spread = np.empty(num_covariates), np.empty(num_covariates)
    for index, column in enumerate(covariates.T):
        size = float(np.abs(column).max()) or 1.0
        center[index] = _mean(column)
        deviation = float(np.std(column / size))
        if deviation < _SMALL_SPREAD:
            deviation = float(np.std((column - center[index]) / size))
        spread[index] = (deviation if deviation > _ROUNDING else 1.0) * size
    return center, spread


def standardized_covariates(covariates: Any, center: Any, spread: Any) -> Any:
    """Returns covariates `[..., D_c]` less their mean `[D_c]`, over their spread `[D_c]`."""
    return (covariates - center) / spread


def measure_panel(
    series: Sequence[Series],
    num_train_rows: Sequence[int],
    spec: WindowSpec,
    scaling: str,
    support: ValueSupport,
    other_units: np.ndarray,
) -> PanelStatistics:
    """Measures the training part of every series.

    Args:
        series: G series.
        num_train_rows: how many rows of each are the training part; later rows are not read.
        spec: N_C and N_T.
        scaling: "window" or "standard"; see `WindowScaler`.
        support: which values the columns can have. Center and spread are those of z, see
            `value_support`.
        other_units: `[.., D_y]`, spreads of further series, in user units, for series of zeros: the
            unit of such a one is the median of the others.

    Raises:
        ValueError: a column has no value in the training part.
    """
    parts = [_TrainingPart(one, end, spec) for one, end in zip(series, num_train_rows, strict=True)]
    measured = np.array([part.measure(part.values, scaling) for part in parts])
    center, unit, is_rounding = np.moveaxis(measured, -1, 0)
    is_zero = unit == 0
    unit = _with_units(unit, other_units)
    integers = np.array(support.integers)
    lower, upper = support.outer_bounds
    softness = np.where(integers, np.maximum(unit, 1.0), unit)
    softness = np.minimum(softness, upper - lower)
    spread = unit
    if not support.is_everything:
        measured = np.array(
            [
                part.measure(SupportTransform.of(support, soft).to_real(part.values), scaling)
                for part, soft in zip(parts, softness, strict=True)
            ]
        )
        center, spread, _ = np.moveaxis(measured, -1, 0)
        spread = np.where(is_zero | (spread == 0), unit, spread)
        spread = np.where(integers, np.maximum(spread, _SPREAD_OF_INTEGERS), spread)
    return PanelStatistics(center, spread, softness, is_rounding > 0)


def _with_units(unit: np.ndarray, other_units: np.ndarray) -> np.ndarray:
    """Gives series of zeros, whose unit is 0, the median unit of the others, or 1."""
    every = np.concatenate([unit, other_units])
    for column in np.flatnonzero((unit == 0).any(axis=0)):
        positive = every[every[:, column] > 0, column]
        unit[unit[:, column] == 0, column] = np.median(positive) if len(positive) else 1.0
    return unit


class _TrainingPart:
    """The training part of one series."""

    def __init__(self, series: Series, num_rows: int, spec: WindowSpec) -> None:
        self.values = series.values[:num_rows]
        self._last = series.last_observed_row[:num_rows]
        self._spec = spec
        self._starts = np.arange(max(num_rows - spec.length + 1, 0), dtype=np.int64)
        for column, name in zip(self.values.T, series.target_columns, strict=True):
            if np.isnan(column).all():
                owner = f" of series {series.name!r}" if series.name else ""
                raise ValueError(
                    f"Column `{name}`{owner} must have a value in the training part. "
                    f"Received: {num_rows} empty cells"
                )

    def measure(self, values: np.ndarray, scaling: str) -> list[tuple[float, float, bool]]:
        """Returns mean, spread and whether moves are rounding, of each column of values `[T, D_y]`.

        The spread is 0 where all values are 0.
        """
        return [
            _measure_column(column, self._last[:, index], self._starts, self._spec, scaling)
            for index, column in enumerate(values.T)
        ]


def _measure_column(
    column: np.ndarray, last: np.ndarray, starts: np.ndarray, spec: WindowSpec, scaling: str
) -> tuple[float, float, bool]:
    """Returns mean and spread of one column, and whether its moves are rounding."""
    observed = column[~np.isnan(column)]
    center, size = _mean(observed), float(np.abs(observed).max())
    if not size:
        return center, 0.0, False
    spread = _relative_spread(column / size, last, starts, spec, scaling)
    if spread < _SMALL_SPREAD:
        # Relative to 0 the moves would be rounded: to the size of y, not to that of the moves.
        spread = _relative_spread((column - center) / size, last, starts, spec, scaling)
    moves = bool((observed != observed[0]).any())
    if not moves:
        return center, _SPREAD_OF_CONSTANT * size, False
    is_rounding = spread < _ROUNDING
    return center, max(spread, _ROUNDING) * size, is_rounding


def _relative_spread(
    column: np.ndarray, last: np.ndarray, starts: np.ndarray, spec: WindowSpec, scaling: str
) -> float:
    """Measures one column that is relative to its size, so that no square overflows."""
    distance = np.empty(0)
    if scaling == "window":
        distance = _distances(column, last, starts, spec)
    if not len(distance):
        return float(np.std(column[~np.isnan(column)]))
    spread = float(np.quantile(distance, _QUANTILE)) / _NORMAL_QUANTILE
    if spread < _ROUNDING:
        spread = math.sqrt(float(np.mean(np.square(distance))))
    # Where only values move that are no targets, theirs is the spread.
    return spread if spread >= _ROUNDING else float(np.std(column[~np.isnan(column)]))


def _distances(
    column: np.ndarray, last_observed_row: np.ndarray, starts: np.ndarray, spec: WindowSpec
) -> np.ndarray:
    """Returns how far observed targets lie from the last value observed in their context."""
    starts = evenly_spaced(starts, _MAX_WINDOWS_FOR_SPREAD)
    last = last_observed_row[starts + spec.context_length - 1]
    has_last = last >= starts
    targets = starts[has_last][:, np.newaxis] + np.arange(spec.context_length, spec.length)
    distance = np.abs(column[targets] - column[last[has_last]][:, np.newaxis])
    return distance[~np.isnan(distance)]
