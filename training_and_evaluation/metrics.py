"""Scores of forecasts: likelihood, squared error, CRPS, energy score, coverage, reliability.

Two ways of scoring are never mixed, so every name says which. Free-running: each sample is drawn
from the context alone, and no true value of an earlier target is read. Teacher-forced: each target
is predicted with the true values of all earlier targets.

Scores are computed for each point, `[B, N_T]`, or for each window, `[B]`, where a score belongs to
the window as a whole: the energy score and the joint density. Averages over what was scored come
afterwards, so they do not depend on how windows were put into batches: concatenate the scores of
batches along B, then average.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scoringrules
from scipy import stats
from scipy.spatial import distance

from taylorformer.training_and_evaluation.levels import check_levels

INTERVALS = (50, 90)
"""Central intervals whose coverage and width are scored, in percent."""
RELIABILITY_LEVELS = tuple(number / 20 for number in range(1, 20))
"""Levels of a reliability diagram: 0.05, 0.1, ..., 0.95."""


def sample_quantiles(samples: Any, levels: Any) -> np.ndarray:
    """Returns quantiles of samples, by linear interpolation between them.

    Example:
        >>> sample_quantiles([[0.0, 4.0], [1.0, 8.0]], [0.5, 0.75]).tolist()
        [[0.5, 6.0], [0.75, 7.0]]

    Args:
        samples: `[S, ...]`.
        levels: `[Q]`, from 0 to 1, none twice; or one number, and Q = 1.

    Returns:
        `[Q, ...]`. A quantile of a higher level is never below one of a lower level.

    Raises:
        TypeError: levels that are no numbers.
        ValueError: no samples, or levels outside 0 to 1 or twice.
    """
    samples, levels = np.asarray(samples), check_levels("levels", levels)
    if not samples.ndim or not samples.shape[0]:
        raise ValueError(
            f"`samples` must be [S, ...], S at least 1. Received: {list(samples.shape)}"
        )
    order = np.argsort(levels, kind="stable")
    # What interpolation rounds off may be enough to make two quantiles cross.
    rising = np.maximum.accumulate(np.quantile(samples, levels[order], axis=0), axis=0)
    return rising[np.argsort(order, kind="stable")]


def free_running_point_scores(samples: Any, y_target: Any, mask: Any) -> dict[str, np.ndarray]:
    """Scores samples at every point.

    Example:
        >>> samples = np.array([1.0, 2.0, 4.0, 5.0]).reshape(4, 1, 1, 1)
        >>> scores = free_running_point_scores(samples, [[[2.0]]], [[True]])
        >>> scores["free_running_mae"].tolist(), scores["free_running_crps"].tolist()
        ([[1.0]], [[0.625]])

    Args:
        samples: `[S, B, N_T, D_y]`.
        y_target: `[B, N_T, D_y]`, the true values in the same units. Those of points that are not
            scored may be anything.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        Each `[B, N_T]` float64, the mean over D_y, and NaN where a point is not scored:

        - `free_running_mse` and `free_running_mae`, in squared units and units: of the sample mean;
        - `free_running_crps`, in units: the continuous ranked probability score of the empirical
          distribution of the S samples (the quantile decomposition of `scoringrules`). It scores
          the samples themselves, and is higher than the score of the distribution that they were
          drawn from, by about 1/S of their spread; for S = 1 it is the absolute error;
        - `free_running_coverage_50`, `free_running_coverage_90`: 1 inside the central interval,
          which for 90 % lies between the 0.05 and the 0.95 sample quantile, else 0;
        - `free_running_width_50`, `free_running_width_90`, in units: the width of the interval.

    Raises:
        ValueError: shapes that do not fit, or values that are not finite at a scored point.
    """
    samples, y_target, mask = _check("samples", "[S, B, N_T, D_y]", samples, y_target, mask)
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
        low, high = sample_quantiles(drawn, [(100 - percent) / 200, (100 + percent) / 200])
        points[f"free_running_coverage_{percent}"] = (low <= true) & (true <= high)
        points[f"free_running_width_{percent}"] = high - low
    return {name: _spread_out(values.mean(axis=-1), mask) for name, values in points.items()}


def free_running_energy_score(samples: Any, y_target: Any, mask: Any) -> np.ndarray:
    """Scores the joint samples of every window over all its scored targets and columns at once.

    Example:
        >>> samples = np.array([[3.0, 4.0], [3.0, 4.0]]).reshape(2, 1, 2, 1)
        >>> free_running_energy_score(samples, np.zeros([1, 2, 1]), [[True, True]]).tolist()
        [5.0]

    It is the energy score of the empirical distribution of the S samples, `mean |X_s - y| -
    1/2 mean |X_s - X_r|` over all S and S^2 pairs, with the Euclidean norm over the scored values;
    for S = 1 the Euclidean error. It grows with the number of values, about as its square root.

    Pairs are taken window by window, and each pair once: that needs `8 S (S - 1) / 2` bytes, 4 MB
    for S = 1000, however many values a window has. (`scoringrules` gives the same number, and
    needs `8 S^2 N_T D_y` bytes for it, 1.5 GB for S = 1000 and 192 values.)

    Args:
        samples: `[S, B, N_T, D_y]`.
        y_target: `[B, N_T, D_y]`, the true values in the same units.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        `[B]` float64, in units; NaN for a window without a scored point.

    Raises:
        ValueError: as `free_running_point_scores`.
    """
    samples, y_target, mask = _check("samples", "[S, B, N_T, D_y]", samples, y_target, mask)
    num_samples = len(samples)
    scores = np.full(len(mask), np.nan)
    for window in np.flatnonzero(mask.any(axis=1)):
        drawn = samples[:, window, mask[window]].reshape(num_samples, -1)
        error = np.linalg.norm(drawn - y_target[window, mask[window]].ravel(), axis=-1)
        pairs = distance.pdist(drawn) if num_samples > 1 else np.zeros(1)
        scores[window] = error.mean() - pairs.sum() / num_samples**2
    return scores


def free_running_reliability(
    samples: Any, y_target: Any, mask: Any, levels: Any = RELIABILITY_LEVELS
) -> np.ndarray:
    """Tells at every point which sample quantiles the truth does not exceed.

    Example:
        >>> samples = np.arange(5.0).reshape(5, 1, 1, 1)
        >>> free_running_reliability(samples, [[[2.5]]], [[True]], levels=[0.5, 0.75]).tolist()
        [[[0.0, 1.0]]]

    Args:
        samples: `[S, B, N_T, D_y]`.
        y_target: `[B, N_T, D_y]`, the true values in the same units.
        mask: `[B, N_T]` bool, True where a point is scored.
        levels: `[Q]`, nominal levels from 0 to 1.

    Returns:
        `[B, N_T, Q]` float64, the share of the D_y columns; NaN where a point is not scored. If the
        samples follow the true distribution, the average is the level, up to 1/S: the expected
        share at or below a quantile interpolated between S samples is
        `((S - 1) level + 1) / (S + 1)`.

    Raises:
        TypeError, ValueError: as `free_running_point_scores` and `sample_quantiles`.
    """
    samples, y_target, mask = _check("samples", "[S, B, N_T, D_y]", samples, y_target, mask)
    below = y_target[mask] <= sample_quantiles(samples[:, mask], levels)
    return _spread_out(np.moveaxis(below.mean(axis=-1), 0, -1), mask)


def point_forecast_scores(forecast: Any, y_target: Any, mask: Any) -> dict[str, np.ndarray]:
    """Scores point forecasts, which have no spread: their CRPS is the absolute error.

    Example:
        >>> scores = point_forecast_scores([[[0.0]]], [[[-3.0]]], [[True]])
        >>> {name: values.item() for name, values in scores.items()}
        {'free_running_mse': 9.0, 'free_running_mae': 3.0, 'free_running_crps': 3.0}

    Args:
        forecast: `[B, N_T, D_y]`.
        y_target: `[B, N_T, D_y]`, the true values in the same units.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        `free_running_mse`, `free_running_mae` and `free_running_crps`, each as returned by
        `free_running_point_scores`.

    Raises:
        ValueError: as `free_running_point_scores`.
    """
    forecast, y_target, mask = _check("forecast", "[B, N_T, D_y]", forecast, y_target, mask)
    error = forecast[mask] - y_target[mask]
    size = _spread_out(np.abs(error).mean(axis=-1), mask)
    return {
        "free_running_mse": _spread_out(np.square(error).mean(axis=-1), mask),
        "free_running_mae": size,
        "free_running_crps": size.copy(),
    }


def teacher_forced_nll(log_prob: Any, mask: Any) -> np.ndarray:
    """Turns the joint log density of every window into the score per observed target.

    Example:
        >>> teacher_forced_nll([-6.0, 0.0], [[True, True], [False, False]]).tolist()
        [3.0, nan]

    Args:
        log_prob: `[B]`, in nats, summed over D_y and the observed targets.
        mask: `[B, N_T]` bool, True where a target was observed.

    Returns:
        `[B]` float64, `-log_prob` over the number of observed targets; NaN for a window of none.

    Raises:
        ValueError: shapes that do not fit.
    """
    log_prob, mask = np.asarray(log_prob, np.float64), np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != np.bool_ or log_prob.shape != mask.shape[:1]:
        raise ValueError(
            "`log_prob` and `mask` must be [B] and [B, N_T] bool. "
            f"Received: {list(log_prob.shape)} and {list(mask.shape)} {mask.dtype}"
        )
    count = mask.sum(axis=1)
    return np.where(count > 0, -log_prob / np.maximum(count, 1), np.nan)


def teacher_forced_mse(mean: Any, y_target: Any, mask: Any) -> np.ndarray:
    """Scores one-step means at every point.

    Example:
        >>> teacher_forced_mse([[[0.0, 0.0]]], [[[1.0, 3.0]]], [[True]]).tolist()
        [[5.0]]

    Args:
        mean: `[B, N_T, D_y]`, of each target given the true values of all earlier targets.
        y_target: `[B, N_T, D_y]`, the true values in the same units.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        `[B, N_T]` float64, the squared error, the mean over D_y, in squared units; NaN where a
        point is not scored.

    Raises:
        ValueError: shapes that do not fit, or values that are not finite at a scored point.
    """
    mean, y_target, mask = _check("mean", "[B, N_T, D_y]", mean, y_target, mask)
    return _spread_out(np.square(mean[mask] - y_target[mask]).mean(axis=-1), mask)


def gaussian_nll(mean: Any, scale: Any, y_target: Any, mask: Any) -> np.ndarray:
    """Scores point forecasts as the means of normal distributions of given scales.

    Example:
        >>> gaussian_nll([[[1.0]]], 2.0, [[[3.0]]], [[True]]).round(3).tolist()
        [[2.112]]

    Args:
        mean: `[B, N_T, D_y]`.
        scale: standard deviations, positive; a number, or an array that broadcasts to
            `[B, N_T, D_y]`, such as `[D_y]`, one a column.
        y_target: `[B, N_T, D_y]`, the true values in the same units.
        mask: `[B, N_T]` bool, True where a point is scored.

    Returns:
        `[B, N_T]` float64, the negative log density in nats, summed over D_y; NaN where a point is
        not scored.

    Raises:
        ValueError: shapes that do not fit, values that are not finite at a scored point, or a
            scale that is not positive and finite.
    """
    mean, y_target, mask = _check("mean", "[B, N_T, D_y]", mean, y_target, mask)
    scale = np.asarray(scale, np.float64)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError(f"`scale` must be positive and finite. Received: scale={scale}")
    scale = np.broadcast_to(scale, mean.shape)
    density = stats.norm.logpdf(y_target[mask], mean[mask], scale[mask])
    return _spread_out(-density.sum(axis=-1), mask)


def average(scores: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Averages over windows: each window that has a scored point counts the same.

    Example:
        >>> average({"mae": np.array([[1.0, 3.0], [6.0, np.nan], [np.nan, np.nan]])})
        {'mae': 4.0}

    Args:
        scores: each `[B, N_T]`, NaN where a point is not scored, or `[B]`, one a window.

    Returns:
        One number a score.

    Raises:
        ValueError: no point was scored.
    """
    by_window = average_by_window(scores)
    return {name: float(_mean(values, name, axis=0)) for name, values in by_window.items()}


def average_by_window(scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Averages over the scored points of each window, NaN for a window without any.

    Args:
        scores: each `[B, N_T]` or `[B, N_T, Q]`, NaN where a point is not scored. Those of a
            window as a whole, `[B]`, are left as they are.

    Returns:
        `[B]` or `[B, Q]` a score.
    """
    return {
        name: values if values.ndim == 1 else _mean(values, None, axis=1)
        for name, values in scores.items()
    }


def average_by_step(scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Averages over the windows scored at each step, NaN for a step without any.

    Args:
        scores: as in `average_by_window`. Those of a window as a whole have no steps, and are left
            out.

    Returns:
        `[N_T]` or `[N_T, Q]` a score.
    """
    return {name: _mean(values, None, axis=0) for name, values in scores.items() if values.ndim > 1}


def average_reliability(
    reliability: np.ndarray, levels: Sequence[float] = RELIABILITY_LEVELS
) -> pd.DataFrame:
    """Averages the values returned by `free_running_reliability`, each window counting the same.

    Example:
        >>> average_reliability(np.array([[[0.0, 1.0]], [[1.0, 1.0]]]), [0.5, 0.9])
           level  share
        0    0.5    0.5
        1    0.9    1.0

    Args:
        reliability: `[B, N_T, Q]`, NaN where a point is not scored, or `[B, Q]`, its averages by
            window.
        levels: `[Q]`, the nominal levels.

    Returns:
        Q rows of `level` and `share`, the share of truths at or below the quantile of the level.

    Raises:
        ValueError: another number of levels, or no scored point.
    """
    nominal = check_levels("levels", levels)
    if reliability.ndim not in (2, 3) or reliability.shape[-1] != len(nominal):
        raise ValueError(
            f"`reliability` must be [B, N_T, Q] or [B, Q] with Q = {len(nominal)}. "
            f"Received: {list(reliability.shape)}"
        )
    if reliability.ndim == 3:
        reliability = _mean(reliability, None, axis=1)
    share = _mean(reliability, "reliability", axis=0)
    return pd.DataFrame({"level": nominal, "share": share})


def _mean(values: np.ndarray, name: str | None, axis: int) -> np.ndarray:
    scored = ~np.isnan(values)
    count = scored.sum(axis=axis)
    if name is not None and not count.any():
        raise ValueError(f"`{name}` must have at least one scored point. Received: none")
    total = np.where(scored, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _check(
    name: str, letters: str, forecast: Any, y_target: Any, mask: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    forecast, y_target = np.asarray(forecast, np.float64), np.asarray(y_target, np.float64)
    mask = np.asarray(mask)
    samples = forecast.shape[: forecast.ndim - 3]
    if (
        forecast.ndim != letters.count(",") + 1
        or 0 in samples
        or forecast.shape[len(samples) :] != y_target.shape
        or mask.shape != y_target.shape[:2]
        or mask.dtype != np.bool_
    ):
        raise ValueError(
            f"`{name}`, `y_target` and `mask` must be {letters}, [B, N_T, D_y] and [B, N_T] bool"
            f"{', S at least 1' if 'S' in letters else ''}. Received: {list(forecast.shape)}, "
            f"{list(y_target.shape)} and {list(mask.shape)} {mask.dtype}"
        )
    for what, wrong in (
        (name, ~np.isfinite(forecast[..., mask, :])),
        ("y_target", ~np.isfinite(y_target[mask])),
    ):
        if wrong.any():
            raise ValueError(
                f"`{what}` must be finite at scored points. Received: {int(wrong.sum())} values "
                "that are not"
            )
    return forecast, y_target, mask


def _spread_out(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Puts values `[n, ...]` of the n scored points back into `[B, N_T, ...]`, NaN elsewhere."""
    points = np.full(mask.shape + values.shape[1:], np.nan)
    points[mask] = values
    return points
