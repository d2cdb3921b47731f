"""Scores of free-running samples, in user units.

Free-running: each sample is drawn from the context alone, and no true value of an earlier target
is read. These scores are never to be mixed with teacher-forced ones, so every name says which.

All scores are made point by point first. Averages are taken afterwards, over what was scored, so
they do not depend on how windows were put into batches: concatenate the point scores of batches
along B, then average.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scoringrules

INTERVALS = (50, 90)


def free_running_point_scores(samples: Any, y_target: Any, mask: Any) -> dict[str, np.ndarray]:
    """Scores samples at every point.

    Args:
        samples: `[S, B, N_T, D_y]`, in user units.
        y_target: `[B, N_T, D_y]`, the true values in the same units. What stands at points that
            are not scored is not read.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        Each `[B, N_T]` float64, the mean over D_y, and NaN where a point is not scored:

        - `free_running_mse` and `free_running_mae`, in squared units and units: of the sample mean;
        - `free_running_crps`, in units: the continuous ranked probability score of the empirical
          distribution of the S samples (the quantile decomposition of `scoringrules`). It is the
          score of the samples as they are handed out, about 1/S of their spread above the score
          of the law behind them, and for S = 1 the absolute error;
        - `free_running_coverage_50`, `free_running_coverage_90`: 1 inside the central interval
          between sample quantiles (linear interpolation), else 0;
        - `free_running_width_50`, `free_running_width_90`, in units: the width of the interval.

    Raises:
        ValueError: shapes that do not fit, or values that are not finite at a scored point.
    """
    samples, y_target, mask = _check(samples, y_target, mask)
    drawn, true = samples[:, mask], y_target[mask]
    error = drawn.mean(axis=0) - true
    points = {
        "free_running_mse": np.square(error),
        "free_running_mae": np.abs(error),
        "free_running_crps": scoringrules.crps_ensemble(
            true, drawn, m_axis=0, estimator="qd", backend="numpy"
        ),
    }
    for percent in INTERVALS:
        low, high = np.quantile(drawn, [0.5 - percent / 200, 0.5 + percent / 200], axis=0)
        points[f"free_running_coverage_{percent}"] = (low <= true) & (true <= high)
        points[f"free_running_width_{percent}"] = high - low
    return {name: _spread_out(values, mask) for name, values in points.items()}


def point_forecast_scores(forecast: Any, y_target: Any, mask: Any) -> dict[str, np.ndarray]:
    """Scores point forecasts, which have no spread: their CRPS is the absolute error.

    Args:
        forecast: `[B, N_T, D_y]`, in user units.
        y_target: `[B, N_T, D_y]`, the true values.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        `free_running_mse`, `free_running_mae` and `free_running_crps`, as
        `free_running_point_scores` gives them.

    Raises:
        ValueError: as `free_running_point_scores`.
    """
    scores = free_running_point_scores(np.asarray(forecast)[np.newaxis], y_target, mask)
    kept = ("free_running_mse", "free_running_mae", "free_running_crps")
    return {name: scores[name] for name in kept}


def average(point_scores: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Averages over windows: each window that has a scored point counts once, the same.

    Args:
        point_scores: each `[B, N_T]`, NaN where a point is not scored.

    Returns:
        One number a score.

    Raises:
        ValueError: no point was scored.
    """
    by_window = average_by_window(point_scores)
    return {name: float(_mean(values, name, axis=0)) for name, values in by_window.items()}


def average_by_window(point_scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Averages over the scored points of each window: `[B]` a score, NaN for a window of none."""
    return {name: _mean(values, None, axis=1) for name, values in point_scores.items()}


def average_by_step(point_scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Averages over the windows scored at each step: `[N_T]` a score, NaN for a step of none."""
    return {name: _mean(values, None, axis=0) for name, values in point_scores.items()}


def _mean(values: np.ndarray, name: str | None, axis: int) -> np.ndarray:
    scored = ~np.isnan(values)
    count = scored.sum(axis=axis)
    if name is not None and not count.any():
        raise ValueError(f"`{name}` must have at least one scored point. Received: none")
    total = np.where(scored, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _check(samples: Any, y_target: Any, mask: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    samples, y_target = np.asarray(samples, np.float64), np.asarray(y_target, np.float64)
    mask = np.asarray(mask)
    if (
        samples.ndim != 4
        or not samples.shape[0]
        or samples.shape[1:] != y_target.shape
        or mask.shape != y_target.shape[:2]
        or mask.dtype != np.bool_
    ):
        raise ValueError(
            "`samples`, `y_target` and `mask` must be [S, B, N_T, D_y], [B, N_T, D_y] and "
            f"[B, N_T] bool, S at least 1. Received: {list(samples.shape)}, "
            f"{list(y_target.shape)} and {list(mask.shape)} {mask.dtype}"
        )
    for name, wrong in (
        ("samples", ~np.isfinite(samples[:, mask])),
        ("y_target", ~np.isfinite(y_target[mask])),
    ):
        if wrong.any():
            raise ValueError(
                f"`{name}` must be finite at scored points. Received: {int(wrong.sum())} values "
                "that are not"
            )
    return samples, y_target, mask


def _spread_out(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    points = np.full(mask.shape, np.nan)
    points[mask] = values.astype(np.float64).mean(axis=-1)
    return points
