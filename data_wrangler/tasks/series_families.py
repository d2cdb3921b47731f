"""Families of synthetic series, such as tables may hold: each one a function that can be looked at.

A family draws n series on a `SeriesGrid`, whose points are a fraction of a usual step apart, so
that uneven stamps can be taken from it. Lengths and periods are in usual steps. Values have any
centre and any scale: what a model reads is relative to its context.

The families follow priors in use for forecasting without training: seasonal ARIMA with envelopes
(SarSim0), exponential smoothing, Gaussian processes with composed kernels (Corani et al. 2020,
KernelSynth), trend times season times noise (ForecastPFN), regimes and jumps (TempoPFN), counts.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit

# Points of the table of one pattern that is a sum of waves: fine enough to interpolate in.
_TABLE = 128
# A pattern of free values has at most so many of them.
_MOST_VALUES = 400
# Beyond this a Gaussian process costs more than all other families together.
MOST_GAUSSIAN_PROCESS_STEPS = 256
# Added to the diagonal of covariances of unit size.
_JITTER = 1e-6
# Earlier points that are drawn and left out, so that a process has forgotten its start.
_BURN_IN = 64


@dataclasses.dataclass(frozen=True)
class SeriesGrid:
    """The points that series are drawn on.

    Attributes:
        num_steps: the length, in usual steps.
        fineness: points a usual step, at least 1.
    """

    num_steps: int
    fineness: int = 1

    @property
    def num_points(self) -> int:
        """L, the number of points."""
        return self.num_steps * self.fineness

    @property
    def time(self) -> np.ndarray:
        """`[L]`, in usual steps."""
        return np.arange(self.num_points) / self.fineness


Family = Callable[[np.random.Generator, SeriesGrid, np.ndarray], np.ndarray]
"""Draws n series: reads a generator, the grid, and the periods of each, `[n, 2]` in usual steps,
0 where there is none; returns `[n, L]` float64."""


def log_uniform(
    rng: np.random.Generator, low: float, high: float, size: int | tuple[int, ...] = ()
) -> np.ndarray:
    """Draws numbers whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def standardized(values: np.ndarray) -> np.ndarray:
    """Returns series `[n, L]` with mean 0 and standard deviation 1; 0 where all are the same."""
    values = values - values.mean(axis=1, keepdims=True)
    deviation = values.std(axis=1, keepdims=True)
    return values / np.where(deviation > 0, deviation, 1.0)


def seasonal_pattern(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws patterns that repeat: sums of 1 to 6 waves, free values, or peaks.

    Args:
        rng: the generator of the random numbers.
        grid: the points.
        periods: `[n]`, 0 where there is none.

    Returns:
        `[n, L]`, of unit size over a period; 0 where there is no period.
    """
    n = len(periods)
    kind = rng.choice(3, n, p=[0.55, 0.35, 0.1])
    coefficients = rng.standard_normal((n, 6, 2))
    order = np.arange(1, 7)
    size = order ** -rng.uniform(0.3, 2.0, (n, 1))
    # A wave needs more than two steps.
    legal = order <= np.minimum(rng.integers(1, 7, n), np.maximum(periods / 2.01, 1))[:, np.newaxis]
    angle = 2 * np.pi * np.outer(order, np.arange(_TABLE) / _TABLE)
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    tables = np.einsum("nkc,kct->nt", coefficients * (size * legal)[..., np.newaxis], waves)
    patterns = np.zeros((n, grid.num_points))
    smooth = rng.random(n) < 0.5
    for index in range(n):
        period = periods[index]
        if not period:
            continue
        table = tables[index]
        if kind[index]:
            table = rng.standard_normal(min(max(round(period), 2), _MOST_VALUES))
            if kind[index] == 2:
                # Few high peaks over a flat rest.
                table = np.exp(1.5 * table)
            if smooth[index] and len(table) > 3:
                table = table + 0.5 * (np.roll(table, 1) + np.roll(table, -1))
        deviation = table.std()
        table = (table - table.mean()) / (deviation if deviation > 0 else 1.0)
        position = (grid.time / period + rng.random()) % 1 * len(table)
        if kind[index] and abs(period - len(table)) < 1e-9:
            # Whole steps fall on the values, wherever the pattern begins.
            position = (grid.time + rng.integers(len(table))) % len(table)
        patterns[index] = np.interp(position, np.arange(len(table) + 1), np.append(table, table[0]))
    return patterns


def _with_seasons(
    rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Draws the seasons of both periods, whose size may change: a trend, a walk, or none."""
    n = len(periods)
    season = sizes[:, np.newaxis] * seasonal_pattern(rng, grid, periods[:, 0])
    second = seasonal_pattern(rng, grid, periods[:, 1])
    season += (sizes * log_uniform(rng, 0.3, 2.0, n))[:, np.newaxis] * second
    share = grid.time / grid.num_steps
    changes = np.zeros((n, grid.num_points))
    trend = rng.random(n) < 0.3
    changes[trend] += rng.normal(0, 1, (int(trend.sum()), 1)) * share
    walk = rng.random(n) < 0.25
    steps = rng.standard_normal((int(walk.sum()), grid.num_points)) / np.sqrt(grid.num_points)
    changes[walk] += rng.uniform(0.2, 1.0, (len(steps), 1)) * np.cumsum(steps, axis=1)
    return season * np.exp(np.clip(changes, -3, 3))


def _noise(rng: np.random.Generator, n: int, grid: SeriesGrid) -> np.ndarray:
    """Draws independent noise of unit size, of a heavy-tailed distribution in one of five."""
    noise = rng.standard_normal((n, grid.num_points))
    heavy = rng.random(n) < 0.2
    noise[heavy] = rng.standard_t(3, (int(heavy.sum()), grid.num_points)) / np.sqrt(3)
    return noise


def _autoregression(
    rng: np.random.Generator, coefficient: np.ndarray, grid: SeriesGrid
) -> np.ndarray:
    """Draws stationary AR(1) series of unit size; the coefficients `[n]` are for a usual step."""
    coefficient = coefficient ** (1 / grid.fineness)
    length = grid.num_points + _BURN_IN * grid.fineness
    noise = rng.standard_normal((len(coefficient), length))
    size = np.sqrt(1 - coefficient**2)
    for index, (s, a) in enumerate(zip(size, coefficient, strict=True)):
        noise[index] = lfilter([s], [1, -a], noise[index])
    return noise[:, -grid.num_points :]


def _walk(rng: np.random.Generator, n: int, grid: SeriesGrid) -> np.ndarray:
    """Draws random walks whose move in a usual step has unit size."""
    moves = rng.standard_normal((n, grid.num_points)) / np.sqrt(grid.fineness)
    return np.cumsum(moves, axis=1)


def _trend(rng: np.random.Generator, n: int, grid: SeriesGrid) -> np.ndarray:
    """Draws lines, lines that flatten, and lines that break, of unit change over the series."""
    share = grid.time / grid.num_steps
    line = np.tile(share, (n, 1))
    kind = rng.random(n)
    damped = np.flatnonzero(kind < 0.2)
    rate = log_uniform(rng, 1.0, 12.0, len(damped))[:, np.newaxis]
    line[damped] = (1 - np.exp(-rate * share)) / (1 - np.exp(-rate))
    broken = np.flatnonzero((kind >= 0.2) & (kind < 0.35))
    start = rng.uniform(0.1, 0.9, (len(broken), 1))
    line[broken] += rng.normal(0, 2, (len(broken), 1)) * np.maximum(share - start, 0)
    return line


def components(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws sums of a trend, a level that moves, seasons and noise; of some the exponential."""
    n = len(periods)
    slope = rng.standard_normal(n) * rng.choice([0.3, 1.0, 3.0], n) * (rng.random(n) < 0.6)
    values = slope[:, np.newaxis] * _trend(rng, n, grid)
    kind = rng.choice(5, n, p=[0.35, 0.15, 0.2, 0.15, 0.15])
    walks = np.flatnonzero(kind == 0)
    size = rng.choice([0.02, 0.05, 0.1, 0.3], len(walks))[:, np.newaxis]
    values[walks] += size * _walk(rng, len(walks), grid)
    smooth = np.flatnonzero(kind == 1)
    size = rng.choice([0.002, 0.005, 0.01], len(smooth))[:, np.newaxis]
    slope_walk = size * _walk(rng, len(smooth), grid)
    values[smooth] += np.cumsum(slope_walk, axis=1) / grid.fineness
    stationary = np.flatnonzero(kind == 2)
    size = rng.choice([0.2, 0.5, 1.0], len(stationary))[:, np.newaxis]
    coefficient = rng.uniform(0.5, 0.99, len(stationary))
    values[stationary] += size * _autoregression(rng, coefficient, grid)
    waves = np.flatnonzero(kind == 3)
    length = log_uniform(rng, 0.3, 3.0, (3, len(waves), 1)) * grid.num_steps
    phase = rng.uniform(0, 2 * np.pi, length.shape)
    size = rng.standard_normal(length.shape) * 0.5
    values[waves] += (size * np.sin(2 * np.pi * grid.time / length + phase)).sum(axis=0)
    shifted = np.flatnonzero(rng.random(n) < 0.1)
    since = rng.uniform(0, 1, (len(shifted), 1)) * grid.num_steps
    values[shifted] += rng.standard_normal((len(shifted), 1)) * (grid.time >= since)
    sizes = rng.choice([0.2, 0.5, 1.0, 2.0], n) * (rng.random(n) < 0.85)
    values += _with_seasons(rng, grid, periods, sizes)
    values += 10 ** rng.uniform(-2.5, 0.2, (n, 1)) * _noise(rng, n, grid)
    return _some_exponential(rng, values, 0.3)


def _some_exponential(rng: np.random.Generator, values: np.ndarray, share: float) -> np.ndarray:
    """Replaces a share of series by their exponential, after a change of their scale."""
    chosen = rng.random(len(values)) < share
    size = rng.uniform(0.1, 1.0, (int(chosen.sum()), 1))
    values = values.copy()
    values[chosen] = np.exp(np.clip(size * standardized(values[chosen]), -6, 6))
    return values


def exponential_smoothing(
    rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray
) -> np.ndarray:
    """Draws from the state-space models behind exponential smoothing (ETS).

    Level, damped trend and season all take up a share of the same error at every step; in four of
    ten the logarithm of the series is such a sum, so that season and error multiply. One of five
    is a random walk with drift.
    """
    n, length = len(periods), grid.num_points
    error = _noise(rng, n, grid) * np.sqrt(1 / grid.fineness)
    walk_only = rng.random(n) < 0.2
    alpha = np.where(walk_only, 1.0, log_uniform(rng, 0.02, 1.0, n))
    beta = alpha * rng.uniform(0, 0.3, n) * (rng.random(n) < 0.5) * ~walk_only
    damping = np.where(rng.random(n) < 0.5, 1.0, rng.uniform(0.8, 0.98, n))
    earlier = np.pad(error, [(0, 0), (1, 0)])[:, :-1]
    values = error + alpha[:, np.newaxis] * np.cumsum(earlier, axis=1)
    drift = rng.standard_normal(n) * rng.choice([0.0, 0.02, 0.1, 0.3], n)
    for index in np.flatnonzero((beta > 0) | (drift != 0)):
        phi = damping[index] ** (1 / grid.fineness)
        start = np.zeros(length)
        start[0] = drift[index]
        slope = lfilter([1], [1, -phi], beta[index] * earlier[index] + start)
        values[index] += np.cumsum(slope) / grid.fineness
    gamma = rng.uniform(0, 0.3, n) * (1 - alpha) * (rng.random(n) < 0.6)
    sizes = rng.choice([0.5, 1.5, 4.0, 10.0], n) * (rng.random(n) < 0.85)
    values += _with_seasons(rng, grid, periods, sizes)
    lags = np.maximum(np.round(periods[:, 0] * grid.fineness).astype(int), 1)
    for index in np.flatnonzero((gamma > 0) & (periods[:, 0] > 0) & (lags < length)):
        lag = int(lags[index])
        padded = np.zeros(-(-length // lag) * lag)
        padded[lag:length] = error[index, : length - lag]
        values[index] += gamma[index] * np.cumsum(padded.reshape(-1, lag), axis=0).ravel()[:length]
    multiplied = rng.random(n) < 0.4
    scale = log_uniform(rng, 0.003, 0.15, n)[:, np.newaxis]
    return np.where(multiplied[:, np.newaxis], np.exp(np.clip(scale * values, -5, 5)), values)


def _stable_polynomial(rng: np.random.Generator, order: int, radius: float) -> np.ndarray:
    """Draws `[1, c_1, .., c_order]` of a filter whose poles lie in a disc."""
    polynomial = np.ones(1)
    while order > 0:
        size = radius * np.sqrt(rng.random())
        if order == 1 or rng.random() < 0.4:
            factor, order = np.array([1.0, -size * rng.choice([-0.4, 1.0])]), order - 1
        else:
            angle = rng.uniform(0, np.pi)
            factor, order = np.array([1.0, -2 * size * np.cos(angle), size**2]), order - 2
        polynomial = np.convolve(polynomial, factor)
    return polynomial


def _at_lags(polynomial: np.ndarray, lag: int) -> np.ndarray:
    """Spreads the coefficients of a polynomial to multiples of a lag."""
    spread = np.zeros((len(polynomial) - 1) * lag + 1)
    spread[::lag] = polynomial
    return spread


def seasonal_arima(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws seasonal ARIMA series; half of them are multiplied by a seasonal envelope.

    The poles lie in a disc, so the differences are stationary. They are summed once, a fraction of
    once, or not at all.
    """
    n, length = len(periods), grid.num_points
    burn_in = _BURN_IN * grid.fineness
    noise = rng.standard_normal((n, length + burn_in))
    values = np.empty((n, length))
    weights = {}
    for index in range(n):
        denominator = _stable_polynomial(rng, int(rng.integers(0, 5)), 0.95)
        numerator = _stable_polynomial(rng, int(rng.integers(0, 3)), 0.95)
        period = periods[index, 0]
        if period and rng.random() < 0.6:
            lag = max(round(period * grid.fineness), 2)
            seasonal = np.array([1.0, -rng.uniform(0.3, 0.98)])
            denominator = np.convolve(denominator, _at_lags(seasonal, lag))
        row = lfilter(numerator, denominator, noise[index])[burn_in:]
        sums = rng.choice([0.0, 1.0, rng.random()], p=[0.25, 0.35, 0.4])
        if sums == 1.0:
            row = np.cumsum(row - row.mean() * (rng.random() < 0.7))
        elif sums > 0:
            # Coefficients of (1 - L)^-d.
            if length not in weights:
                weights[length] = np.arange(1, length)
            lags = weights[length]
            row = np.convolve(row, np.append(1.0, np.cumprod((lags - 1 + sums) / lags)))[:length]
        values[index] = row
    values = standardized(values)
    envelope = standardized(_with_seasons(rng, grid, periods, np.ones(n)))
    kind = rng.choice(3, n, p=[0.4, 0.4, 0.2])[:, np.newaxis]
    weight = rng.uniform(0.1, 1.0, (n, 1))
    added = values + 2 * weight * envelope
    multiplied = values * np.maximum(1 + weight * envelope, 0.05)
    return np.select([kind == 0, kind == 1], [values, added], multiplied)


def gaussian_process(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws from Gaussian processes with a composed kernel, the same for eight series at a time.

    Half the kernels are sums of a line, a smooth curve, a season and two damped waves with the
    log-normal hyper-parameters of Corani et al.; the others join one to four kernels by sums and
    products. Between usual steps values are interpolated.
    """
    steps = min(grid.num_steps, MOST_GAUSSIAN_PROCESS_STEPS)
    time = np.linspace(0, grid.num_steps - 1, steps)
    values = np.empty((len(periods), grid.num_points))
    for first in range(0, len(periods), 8):
        rows = slice(first, first + 8)
        period = float(periods[rows, 0].max())
        covariance = _composed_kernel(rng, time, grid.num_steps, period)
        covariance /= max(covariance.diagonal().mean(), 1e-12)
        covariance[np.diag_indices(steps)] += _JITTER
        factor = np.linalg.cholesky(covariance)
        drawn = rng.standard_normal((len(periods[rows]), steps)) @ factor.T
        fine = [np.interp(grid.time, time, row) for row in drawn]
        noise = np.sqrt(log_uniform(rng, 1e-4, 0.5))
        values[rows] = np.array(fine) + noise * rng.standard_normal((len(drawn), grid.num_points))
    return values


def _composed_kernel(
    rng: np.random.Generator, time: np.ndarray, num_steps: int, period: float
) -> np.ndarray:
    """Draws the covariance `[N, N]` of one composed kernel."""
    distance = np.abs(time[:, np.newaxis] - time)
    share = time / num_steps
    span = float(num_steps)

    def periodic(length: float) -> np.ndarray:
        return np.exp(-2 * (np.sin(np.pi * distance / period) / length) ** 2)

    def smooth(length: float) -> np.ndarray:
        return np.exp(-0.5 * (distance / (length * span)) ** 2)

    def line() -> np.ndarray:
        return np.outer(share - share.mean(), share - share.mean()) * 12

    if rng.random() < 0.5:
        sizes = np.exp(rng.normal(-1.5, 1.0, 5))
        total = sizes[0] * line() + sizes[1] * smooth(float(np.exp(rng.normal(-1.0, 1.0))))
        if period:
            total += 2 * sizes[2] * periodic(float(np.exp(rng.normal(0.2, 1.0))))
        for size in sizes[3:]:
            wave = np.cos(2 * np.pi * distance / (span * log_uniform(rng, 0.05, 1.5)))
            total += size * wave * smooth(float(log_uniform(rng, 0.1, 2.0)))
        return total
    total = np.zeros_like(distance)
    for number in range(int(rng.integers(1, 5))):
        weights = np.array([5.0 * (period > 0), 1.0, 1.0, 1.0, 2.0, 2.0, 1.0])
        kind = int(rng.choice(7, p=weights / weights.sum()))
        length = float(log_uniform(rng, 0.02, 3.0))
        scaled = distance / (length * span)
        if kind == 0:
            kernel = periodic(float(log_uniform(rng, 0.3, 3.0)))
        elif kind == 1:
            kernel = np.exp(-scaled)
        elif kind == 2:
            kernel = (1 + np.sqrt(3) * scaled) * np.exp(-np.sqrt(3) * scaled)
        elif kind == 3:
            root = np.sqrt(5) * scaled
            kernel = (1 + root + root**2 / 3) * np.exp(-root)
        elif kind == 4:
            kernel = line()
        elif kind == 5:
            kernel = smooth(length)
        else:
            alpha = rng.choice([0.1, 1.0, 10.0])
            kernel = (1 + scaled**2 / (2 * alpha)) ** -alpha
        added = number == 0 or rng.random() < 0.5
        total = total + kernel if added else total * kernel
    return total


def multiplied_parts(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws a trend times a season times Weibull noise around 1 (ForecastPFN)."""
    n = len(periods)
    share = grid.time / grid.num_steps
    trend = 1 + rng.normal(0, 0.8, (n, 1)) * share + rng.uniform(-0.1, 0.5, (n, 1))
    trend *= np.exp(rng.normal(0, 0.5, (n, 1)) * share)
    sizes = rng.choice([0.1, 0.2, 0.5, 1.0], n) * rng.uniform(0, 1, n)
    season = 1 + 0.5 * _with_seasons(rng, grid, periods, sizes)
    shape = rng.uniform(1, 5, (n, 1))
    noise = rng.weibull(shape, (n, grid.num_points)) / np.log(2) ** (1 / shape)
    kind = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    low, high = np.array([[0.0, 0.2, 0.6], [0.1, 0.4, 0.8]])[:, kind]
    scale = (low + (high - low) * rng.random(n))[:, np.newaxis]
    return np.maximum(trend, 0.05) * season * (1 + scale * (noise - 1))


def regimes(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws Ornstein-Uhlenbeck series of two regimes, with jumps of the level and of the spread."""
    n, length = len(periods), grid.num_points
    stay = rng.uniform(0.85, 0.999, (n, 1)) ** (1 / grid.fineness)
    regime = np.cumsum(rng.random((n, length)) > stay, axis=1) % 2
    pull = np.stack([rng.uniform(0.3, 2.0, n), rng.uniform(0.01, 0.3, n)])
    keep = np.exp(-np.take_along_axis(pull.T, regime, axis=1) / grid.fineness)
    spread = np.take_along_axis(log_uniform(rng, 0.2, 2.0, (n, 2)), regime, axis=1)
    log_change = 0.3 * _walk(rng, n, grid) / np.sqrt(grid.num_steps)
    spread = spread * np.exp(np.where(rng.random((n, 1)) < 0.3, log_change, 0))
    moves = spread * np.sqrt(1 - keep**2) * rng.standard_normal((n, length))
    values = np.empty((n, length))
    state = np.zeros(n)
    for point in range(length):
        state = keep[:, point] * state + moves[:, point]
        values[:, point] = state
    for index in np.flatnonzero(rng.random(n) < 0.6):
        for since in rng.uniform(0, grid.num_steps, int(rng.integers(1, 4))):
            values[index] += rng.choice([-1, 1]) * rng.uniform(1, 5) * (grid.time >= since)
    sizes = rng.choice([0.3, 1.0, 2.0], n) * (rng.random(n) < 0.7)
    trend = rng.normal(0, 2, (n, 1)) * (rng.random((n, 1)) < 0.5) * _trend(rng, n, grid)
    return values + trend + _with_seasons(rng, grid, periods, sizes)


def counts(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws whole numbers: Poisson or negative binomial, some with many zeros.

    Noise of a third of a unit is added: a density over whole numbers has no bound.
    """
    n = len(periods)
    shape = standardized(components(rng, grid, periods))
    rate = log_uniform(rng, 0.1, 100.0, (n, 1)) * np.exp(
        rng.uniform(0.1, 0.7, (n, 1)) * np.clip(shape, -4, 4)
    )
    dispersion = log_uniform(rng, 0.5, 20.0, (n, 1))
    mixed = rng.random((n, 1)) < 0.4
    rate = np.where(mixed, rate * rng.gamma(dispersion, 1 / dispersion, rate.shape), rate)
    drawn = rng.poisson(np.minimum(rate, 1e6)).astype(np.float64)
    rare = rng.random((n, 1)) < 0.2
    drawn = np.where(rare & (rng.random(drawn.shape) < rng.uniform(0.3, 0.8, (n, 1))), 0.0, drawn)
    return drawn + 0.3 * rng.standard_normal(drawn.shape)


def clean(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws what has one right answer, with little noise: waves, patterns, lines and steps."""
    n = len(periods)
    kind = rng.choice(4, n, p=[0.35, 0.25, 0.25, 0.15])
    kind = np.where((periods[:, 0] == 0) & (kind < 2), 2, kind)
    lines = rng.choice([-1, 1], (n, 1)) * _trend(rng, n, grid)
    steps = np.zeros((n, grid.num_points))
    for index in np.flatnonzero(kind == 3):
        for since in rng.uniform(0, grid.num_steps, int(rng.integers(1, 3))):
            steps[index] += rng.standard_normal() * (grid.time >= since)
    period = np.where(periods[:, 0] > 0, periods[:, 0], 1.0)[:, np.newaxis]
    wave = np.sin(2 * np.pi * (grid.time / period + rng.random((n, 1))))
    pattern = seasonal_pattern(rng, grid, periods[:, 0])
    values = np.select(
        [kind[:, np.newaxis] == one for one in range(3)], [wave, pattern, lines], steps
    )
    tilted = (rng.random((n, 1)) < 0.3) & (kind[:, np.newaxis] < 2)
    values = standardized(values) + np.where(tilted, rng.normal(0, 1, (n, 1)) * lines, 0)
    noise = 10 ** rng.uniform(-2.5, -0.5, (n, 1))
    return values + noise * rng.standard_normal(values.shape)


def growth(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws series that grow at a rate which itself moves, as many yearly aggregates do.

    The rate is a constant, an autoregression around one, or a random walk, and may jump once. The
    series is the sum of the rates and of moves of the level, of two of three the exponential.
    """
    n = len(periods)
    step = 1 / grid.fineness
    constant = rng.standard_normal(n) * rng.choice([0.0, 0.5, 1.0, 3.0], n)
    kind = rng.choice(3, n, p=[0.25, 0.5, 0.25])
    coefficient = np.select([kind == 0, kind == 1], [np.zeros(n), rng.uniform(0.5, 0.98, n)], 1.0)
    move = log_uniform(rng, 0.1, 1.0, n) * (kind > 0)
    error = _noise(rng, n, grid) * np.sqrt(step)
    rate = np.empty((n, grid.num_points))
    for index, (a, size) in enumerate(zip(coefficient**step, move, strict=True)):
        rate[index] = size * lfilter([1], [1, -a], error[index])
    rate += constant[:, np.newaxis]
    jumps = np.flatnonzero(rng.random(n) < 0.25)
    since = rng.uniform(0, 1, (len(jumps), 1)) * grid.num_steps
    rate[jumps] += rng.normal(0, 2, (len(jumps), 1)) * (grid.time >= since)
    values = np.cumsum(rate, axis=1) * step
    values += log_uniform(rng, 0.05, 1.5, (n, 1)) * _walk(rng, n, grid)
    sizes = rng.choice([0.5, 1.5, 4.0], n) * (rng.random(n) < 0.7)
    values += _with_seasons(rng, grid, periods, sizes)
    noise = log_uniform(rng, 0.02, 1.0, (n, 1)) * (rng.random((n, 1)) < 0.5)
    values += noise * _noise(rng, n, grid)
    size = log_uniform(rng, 0.05, 1.2, (n, 1))
    return np.where(rng.random((n, 1)) < 0.67, np.exp(size * standardized(values)), values)


def cycles(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws stochastic cycles, whose length and height vary, beside a season that fades or grows.

    A cycle is a damped complex rotation that is moved at every step (Harvey, 1989). Of some series
    it is sharpened by an exponential, as counts of sunspots are.
    """
    n = len(periods)
    length = log_uniform(rng, 5.0, 60.0, n)
    life = length * log_uniform(rng, 0.7, 20.0, n)
    keep = np.exp((2j * np.pi / length - 1 / life) / grid.fineness)
    size = np.sqrt(1 - np.abs(keep) ** 2)
    moves = rng.standard_normal((n, grid.num_points)) + 1j * rng.standard_normal(
        (n, grid.num_points)
    )
    cycle = np.empty((n, grid.num_points))
    for index, (k, s) in enumerate(zip(keep, size, strict=True)):
        moves[index, 0] /= s  # so that it begins with its stationary distribution
        cycle[index] = lfilter([s], [1, -k], moves[index]).real
    sharp = rng.random((n, 1)) < 0.4
    sharpness = rng.uniform(0.3, 1.2, (n, 1))
    values = np.where(sharp, np.exp(sharpness * cycle), cycle)
    sizes = rng.choice([0.5, 1.0, 3.0], n) * (rng.random(n) < 0.6)
    values += _with_seasons(rng, grid, periods, sizes)
    slope = rng.normal(0, 1, (n, 1)) * (rng.random((n, 1)) < 0.3)
    noise = 10 ** rng.uniform(-2.5, -0.3, (n, 1))
    return values + slope * _trend(rng, n, grid) + noise * _noise(rng, n, grid)


def changed_levels(rng: np.random.Generator, grid: SeriesGrid, periods: np.ndarray) -> np.ndarray:
    """Draws positive series whose level changes by a factor, mostly falls, up to three times.

    Walk, season and noise are shares of the level, so that little moves after a crash.
    """
    n = len(periods)
    time = grid.time / grid.num_steps
    level = rng.normal(0, 0.7, (n, 1)) * (rng.random((n, 1)) < 0.5) * time
    for share in (1.0, 0.5, 0.25):
        middle, duration = rng.uniform(0, 1.1, (n, 1)), log_uniform(rng, 0.002, 0.15, (n, 1))
        size = np.abs(rng.normal(0, 1.5, (n, 1))) * (rng.random((n, 1)) < share)
        size *= rng.choice([-1, 1], (n, 1), p=[0.75, 0.25])
        level += size * expit((time - middle) / duration)
    level += log_uniform(rng, 0.003, 0.15, (n, 1)) * _walk(rng, n, grid)
    sizes = log_uniform(rng, 0.02, 0.5, n) * (rng.random(n) < 0.6)
    level += _with_seasons(rng, grid, periods, sizes)
    level += log_uniform(rng, 0.005, 0.3, (n, 1)) * _noise(rng, n, grid)
    return np.exp(np.clip(level, -8, 8))


FAMILIES: Mapping[str, tuple[Family, float]] = {
    "components": (components, 0.30),
    "exponential_smoothing": (exponential_smoothing, 0.22),
    "seasonal_arima": (seasonal_arima, 0.12),
    "gaussian_process": (gaussian_process, 0.12),
    "multiplied_parts": (multiplied_parts, 0.07),
    "regimes": (regimes, 0.07),
    "counts": (counts, 0.05),
    "clean": (clean, 0.05),
    # No weights that come with the package were trained on these.
    "growth": (growth, 0.0),
    "cycles": (cycles, 0.0),
    "changed_levels": (changed_levels, 0.0),
}
"""The families, and their shares of the prior, which add up to 1."""
