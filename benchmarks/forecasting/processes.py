"""Series whose true predictive distribution is computed: Gaussian processes and ARMA processes.

A pretrained model reads one context and was told nothing of the process, so it cannot be as good as
the true distribution; shown is by how much it is worse. Gaussian processes have a noise variance
of at least 1 % of that of the signal. Beside our line is a Gaussian process with a kernel of the
true kind whose hyper-parameters scikit-learn fits to the same context. For ARMA processes the
standard deviation of what is drawn at the last step is compared with the true one.
"""

import dataclasses
import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel

from benchmarks.forecasting import lines, naive
from benchmarks.forecasting.scores import COVERAGE, quantiles_of, window_crps
from benchmarks.forecasting.sets import Window

SET = "processes"
TRUE, FITTED = "true distribution", "scikit-learn, fitted"
NUM_CONTEXT, HORIZON = 96, 24
# Of each kind.
COUNT = 200

_STEPS = np.arange(NUM_CONTEXT + HORIZON, dtype=float)[:, np.newaxis]
# In steps, and shares of the variance of the signal.
_LENGTHS, _NOISES = (3.0, 48.0), (0.01, 0.5)
# scikit-learn searches here, which is wider than what is drawn.
_SEARCHED_LENGTHS, _SEARCHED_NOISES = (0.5, 500.0), (1e-5, 10.0)
_RESTARTS = 2
_GP_KERNELS = {
    "gp, rbf": RBF,
    "gp, matern 5/2": functools.partial(Matern, nu=2.5),
    "gp, matern 3/2": functools.partial(Matern, nu=1.5),
}
_ARMA_ORDERS = {"ar(1)": (1, 0), "ar(2)": (2, 0), "arma(1, 1)": (1, 1), "arma(2, 1)": (2, 1)}
# Partial autocorrelations and coefficients of the moving average are below this.
_LARGEST = 0.95
# Weights of so many earlier shocks. What is drawn and its true distribution have the same ones.
_NUM_WEIGHTS = 2000


@dataclasses.dataclass(frozen=True, eq=False)
class Draw:
    """A series and its true distribution.

    Attributes:
        window: what is forecast.
        kind: of the process.
        mean: `[N_T]`, of the true distribution of the targets given the context.
        deviation: `[N_T]`, its standard deviations.
        kernel: what scikit-learn starts from. None: it does not forecast this one.
    """

    window: Window
    kind: str
    mean: np.ndarray
    deviation: np.ndarray
    kernel: Kernel | None = None


def draw_processes(count: int, seed: int) -> list[Draw]:
    """Draws series of each kind; one depends on the seed, its kind and its number alone."""
    kinds = [*_GP_KERNELS, *_ARMA_ORDERS]
    return [
        _draw(kind, number, np.random.default_rng([seed, index, number]))
        for index, kind in enumerate(kinds)
        for number in range(count)
    ]


def _draw(kind: str, number: int, rng: np.random.Generator) -> Draw:
    kernel = None
    if kind in _GP_KERNELS:
        length, noise = (np.exp(rng.uniform(*np.log(ends))) for ends in (_LENGTHS, _NOISES))
        covariance = (_GP_KERNELS[kind](length) + WhiteKernel(noise))(_STEPS)
        kernel = (
            ConstantKernel(1.0, (1e-3, 1e3))
            * _GP_KERNELS[kind](10.0, length_scale_bounds=_SEARCHED_LENGTHS)
        ) + WhiteKernel(0.1, _SEARCHED_NOISES)
    else:
        autoregressive, moving = draw_arma(*_ARMA_ORDERS[kind], rng)
        covariance = arma_covariance(autoregressive, moving, len(_STEPS))
    values = np.linalg.cholesky(covariance) @ rng.normal(size=len(_STEPS))
    context, truth = values[:NUM_CONTEXT], values[NUM_CONTEXT:]
    mean, deviation = condition(covariance, context)
    steps = pd.RangeIndex(len(_STEPS))
    window = Window(
        f"{kind} {number}", context, truth, steps[:NUM_CONTEXT], steps[NUM_CONTEXT:], None
    )
    return Draw(window, kind, mean, deviation, kernel)


def draw_arma(
    num_autoregressive: int, num_moving: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws the coefficients of a stationary and invertible ARMA process.

    Those of the autoregression come from partial autocorrelations by the recursion of Durbin and
    Levinson, those of the moving average (at most one) are uniform.

    Returns:
        phi `[p]` and theta `[q]` of `y_t = sum phi_i y_(t-i) + e_t + sum theta_j e_(t-j)`.
    """
    phi = np.empty(0)
    for partial in rng.uniform(-_LARGEST, _LARGEST, num_autoregressive):
        phi = np.append(phi - partial * phi[::-1], partial)
    return phi, rng.uniform(-_LARGEST, _LARGEST, num_moving)


def arma_covariance(phi: np.ndarray, theta: np.ndarray, num_rows: int) -> np.ndarray:
    """Returns the covariance `[T, T]` of an ARMA process with shocks of variance 1."""
    shock = np.zeros(_NUM_WEIGHTS + num_rows)
    shock[0] = 1.0
    weights = lfilter(np.append(1.0, theta), np.append(1.0, -phi), shock)
    lags = [weights[: len(weights) - lag] @ weights[lag:] for lag in range(num_rows)]
    return np.asarray(toeplitz(lags))


def condition(covariance: np.ndarray, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and standard deviations of the last values given the first, of mean 0."""
    count = len(context)
    factor = np.linalg.cholesky(covariance)
    mean = factor[count:, :count] @ np.linalg.solve(factor[:count, :count], context)
    return mean, np.sqrt(np.square(factor[count:, count:]).sum(axis=1))


def true_line(draws: Sequence[Draw]) -> lines.Made:
    """Forecasts by the true distributions."""
    values = {one.window.name: naive.normal_quantiles(one.mean, one.deviation) for one in draws}
    return lines.Made(values, False, {})


def fitted_line(draws: Sequence[Draw]) -> lines.Made:
    """Forecasts by scikit-learn's Gaussian process with a kernel of the true kind."""
    values = {}
    for one in draws:
        if one.kernel is None:
            continue
        regression = GaussianProcessRegressor(
            one.kernel, n_restarts_optimizer=_RESTARTS, normalize_y=True, random_state=0
        )
        with warnings.catch_warnings():
            # A length at the end of what is searched is an answer, too.
            warnings.simplefilter("ignore", ConvergenceWarning)
            regression.fit(_STEPS[:NUM_CONTEXT], one.window.context)
        mean, deviation = regression.predict(_STEPS[NUM_CONTEXT:], return_std=True)
        values[one.window.name] = naive.normal_quantiles(mean, deviation)
    return lines.Made(values, False, {})


def score(draws: Sequence[Draw], made: lines.Made) -> dict[str, dict[str, float]]:
    """Scores a line by the kind of process, and over all Gaussian and all ARMA processes.

    Returns:
        For each: `n`; `crps`, the mean over series in standard deviations of the signal (of a
        shock for ARMA processes); `over_true`, its ratio to that of the true distributions, and
        `over_true_error`, the standard error of the ratio; `cov80`; and of the last step
        `spread`, the geometric mean of the ratios of the line's standard deviation to the true
        one, with the quartiles `spread_25` and `spread_75`.
    """
    mine = [one for one in draws if one.window.name in made.values]
    values = [made.values[one.window.name] for one in mine]
    true = true_line(mine).values
    tails = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    rows = []
    for one, drawn in zip(mine, values, strict=True):
        truth = one.window.truth
        low, high = quantiles_of(drawn, tails)
        crps = [window_crps(each, truth).mean() for each in (drawn, true[one.window.name])]
        spread = _deviation(drawn[:, -1], made.are_samples) / one.deviation[-1]
        rows.append([*crps, np.mean((low <= truth) & (truth <= high)), np.log(spread)])
    columns = np.array(rows)
    kinds = np.array([one.kind for one in mine])
    groups = {kind: kinds == kind for kind in dict.fromkeys(kinds)}
    is_gp = np.isin(kinds, list(_GP_KERNELS))
    groups |= {"all gp": is_gp, "all arma": ~is_gp}
    return {
        name: _figures(*columns[members].T) for name, members in groups.items() if members.any()
    }


def _deviation(values: np.ndarray, are_samples: bool) -> float:
    """Returns the standard deviation that samples, or the quantiles of a normal one, stand for."""
    return float(values.std(ddof=1) if are_samples else values.std() / ndtri(naive.LEVELS).std())


def _figures(
    crps: np.ndarray, of_true: np.ndarray, inside: np.ndarray, spread: np.ndarray
) -> dict[str, float]:
    ratio = crps.mean() / of_true.mean()
    error = np.std(crps - ratio * of_true, ddof=1) / np.sqrt(len(crps)) if len(crps) > 1 else np.nan
    low, high = np.exp(np.quantile(spread, [0.25, 0.75]))
    return {
        "n": len(crps),
        "crps": float(crps.mean()),
        "over_true": float(ratio),
        "over_true_error": float(error / of_true.mean()),
        "cov80": float(inside.mean()),
        "spread": float(np.exp(spread.mean())),
        "spread_25": float(low),
        "spread_75": float(high),
    }


def measure(
    names: Sequence[str], settings: lines.Settings, made: Mapping[str, Any], count: int = COUNT
) -> dict[str, Any]:
    """Returns the record of the true distributions, scikit-learn and our lines among the names."""
    draws = draw_processes(count, settings.seed)
    results = {TRUE: true_line(draws), FITTED: fitted_line(draws)}
    windows = [one.window for one in draws]
    for name in names:
        if name in (lines.ZERO_SHOT[0], lines.MIRRORED):
            results[name] = lines.zero_shot_line(
                windows, settings, bare=False, one_by_one=False, mirrored=name == lines.MIRRORED
            )
    about = (
        f"draws of Gaussian and ARMA processes, {NUM_CONTEXT} context rows, {HORIZON} targets, "
        f"{count} series of a kind"
    )
    return {
        "set": SET,
        "kind": "processes",
        "report_only": False,
        "about": {"about": about, "seed": settings.seed},
        "lines": {
            name: {"figures": score(draws, line), "made": made} for name, line in results.items()
        },
    }
