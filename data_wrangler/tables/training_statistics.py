"""Mean and spread of the training part of a series, which scaling divides by."""

import math

import numpy as np

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec, evenly_spaced

# Enough windows to measure a quantile well, and few enough to hold their targets in memory.
_MAX_WINDOWS_FOR_SPREAD = 4096
# This share of the targets of "window" scaling lies within `_NORMAL_QUANTILE` spreads.
_QUANTILE = 0.95
# The 95 % quantile of |z| for a standard normal z.
_NORMAL_QUANTILE = 1.959963984540054
# A spread below this share of the size of y is rounding, not movement.
_SMALLEST_SPREAD = 1e-9


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
        spread[index] = (deviation if deviation > _SMALLEST_SPREAD else 1.0) * size
    return center, spread


def measure_series(
    series: Series, num_train_rows: int, spec: WindowSpec, scaling: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and the spread of each column of a training part, `[D_y]` both.

    Args:
        series: T rows.
        num_train_rows: how many of them are the training part; later rows are not read.
        spec: N_C and N_T.
        scaling: "window" or "standard"; see `WindowScaler`.

    Raises:
        ValueError: a column has no value in the training part.
    """
    starts = np.arange(max(num_train_rows - spec.length + 1, 0), dtype=np.int64)
    center, spread = np.empty(series.num_columns), np.empty(series.num_columns)
    for index, name in enumerate(series.target_columns):
        column = series.values[:num_train_rows, index]
        observed = column[~np.isnan(column)]
        if not len(observed):
            owner = f" of series {series.name!r}" if series.name else ""
            raise ValueError(
                f"Column `{name}`{owner} must have a value in the training part. "
                f"Received: {num_train_rows} empty cells"
            )
        center[index] = _mean(observed)
        last = series.last_observed_row[:num_train_rows, index]
        size = float(np.abs(observed).max())
        distance = np.empty(0)
        if scaling == "window" and size:
            distance = _distances(column / size, last, starts, spec)
        spread[index] = _measure_spread(observed, distance, size)
    return center, spread


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


def _measure_spread(observed: np.ndarray, distance: np.ndarray, size: float) -> float:
    """Measures one column; distances are relative to its size, so that no square overflows."""
    if not size:
        return 1.0
    if not len(distance):
        spread = float(np.std(observed / size))
    else:
        spread = float(np.quantile(distance, _QUANTILE)) / _NORMAL_QUANTILE
        if spread < _SMALLEST_SPREAD:
            spread = math.sqrt(float(np.mean(np.square(distance))))
    return max(spread, _SMALLEST_SPREAD) * size
