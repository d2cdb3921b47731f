"""Forecasting tasks on synthetic series: what a model is trained on that forecasts without `fit`.

A batch is drawn in four parts: how many context rows and targets, and which stamps; series of the
families of `series_families` on a grid; rows that are missing, dropped or hidden; and the
representation of `ContextScaler`, with the seasons that are named or that the search of `seasons`
gives on the context, as for a table.

In half of the batches all sequences share their stamps and seasons, which makes a training step
quicker. In the others groups of eight share their stamps and seasons, often those that a search
gives on the context of one of them, and each sequence has its missing rows.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.seeds import LARGEST_SEED, numbered_generator
from taylorformer.data_wrangler.tables.context_scaler import (
    FURTHEST_TRAINED,
    NUM_X,
    ContextScaler,
)
from taylorformer.data_wrangler.tables.seasons import NUM_PERIODS, find_periods
from taylorformer.data_wrangler.tasks.drawn_batches import (
    batch_numbers,
    masked_specs,
    numbered_batches,
)
from taylorformer.data_wrangler.tasks.series_families import (
    FAMILIES,
    SeriesGrid,
    log_uniform,
    standardized,
)

if TYPE_CHECKING:
    import tensorflow as tf

# Streams of random numbers: what is drawn from one never comes from another.
_STREAMS = {"training": 0, "test": 1, "validation": 2}
_PICTURES = 3

# Sequences that share their true seasons where they do not share their stamps.
_GROUP = 8
# Longer sequences come in smaller batches, and shorter ones in larger batches of up to twice the
# size, so that steps take about as long.
_USUAL_LENGTH = 128
_MOST_SEQUENCES = 2.0
_LEAST_SEQUENCES = 4
# Noise that is added to every series of unit size: a density over equal values has no bound.
_LEAST_NOISE = 2e-3
# Points a usual step where stamps are uneven.
_FINENESS = 4
# Usual periods, in steps, their shares, and second periods beside them.
_PERIODS = np.array([0.0, 4.0, 12.0, 7.0, 24.0, 52.18, 5.0, -1.0])
_PERIOD_SHARES = np.array([0.22, 0.15, 0.25, 0.1, 0.1, 0.06, 0.02, 0.1])
_SECOND_PERIODS = {7.0: 30.437, 24.0: 168.0}
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@dataclasses.dataclass(frozen=True)
class SeriesPrior:
    """The distribution of tasks; every attribute has a default.

    Attributes:
        shares: of the families, by name; they need not add up to 1.
        max_context: the most context rows.
        max_targets: the most targets.
        target_share: the most targets as a share of the context rows, beside a few.
        even_targets: share of the batches where every number of targets is as likely; in the
            others short horizons are.
        shared: share of the batches whose sequences share their points.
        detected: share of the other batches whose seasons are searched for in contexts.
        dropped: share of the batches with targets left out, so that the next one is further ahead.
        gaps: share of the batches whose targets lie between context rows, in random order.
    """

    shares: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {name: share for name, (_, share) in FAMILIES.items()}
    )
    max_context: int = 700
    max_targets: int = 64
    target_share: float = 0.5
    even_targets: float = 0.0
    shared: float = 0.5
    detected: float = 0.75
    dropped: float = 0.2
    gaps: float = 0.08

    def __post_init__(self) -> None:
        unknown = [name for name in self.shares if name not in FAMILIES]
        total = sum(self.shares.values())
        if unknown or total <= 0 or min(self.shares.values()) < 0:
            raise ValueError(
                f"`shares` must map names of {', '.join(FAMILIES)} to shares of at least 0, not "
                f"all 0. Received: shares={dict(self.shares)!r}"
            )
        check_integer("max_context", self.max_context, 8)
        check_integer("max_targets", self.max_targets, 4)
        check_number("target_share", self.target_share, above=0)
        for name in ("even_targets", "shared", "detected", "dropped", "gaps"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"`{name}` must be from 0 to 1. Received: {name}={value!r}")

    def draw(self, rng: np.random.Generator, batch_size: int) -> dict[str, np.ndarray]:
        """Draws one batch.

        Args:
            rng: the generator of the random numbers.
            batch_size: B of sequences of 128 points; fewer where they are longer.

        Returns:
            The inputs of the data contract, with `y_target`, float32 and bool. Where points are
            shared x and masks are `[1, N, D_x]` and `[1, N]`.
        """
        plan = _draw_plan(self, rng, batch_size)
        series = self._draw_series(rng, plan)
        rows = np.arange(plan.batch_size)[:, np.newaxis]
        values = series[rows, plan.points]
        observed = plan.observed
        _make_some_constant(rng, values, plan.num_context)
        periods = plan.named
        if plan.searched:
            periods = _searched(rng, plan, values)
        batch, _ = ContextScaler().batch(
            plan.time, values[..., np.newaxis], observed, plan.num_context, periods
        )
        return _without_exploded(batch, plan.shared)

    def _draw_series(self, rng: np.random.Generator, plan: "_Plan") -> np.ndarray:
        names = list(self.shares)
        shares = np.array([self.shares[name] for name in names], np.float64)
        kinds = rng.choice(len(names), plan.batch_size, p=shares / shares.sum())
        series = np.empty((plan.batch_size, plan.grid.num_points))
        for kind in np.unique(kinds):
            mine = np.flatnonzero(kinds == kind)
            family, _ = FAMILIES[names[kind]]
            series[mine] = family(rng, plan.grid, plan.periods[mine])
        return _altered(rng, series, plan.grid)


def _searched(rng: np.random.Generator, plan: "_Plan", values: np.ndarray) -> np.ndarray:
    """Searches the context of one sequence of each group for seasons, and gives them to all of it.

    A search in every sequence would take longer than the training step.
    """
    periods = np.zeros((plan.batch_size, NUM_PERIODS))
    if plan.num_context < 2:
        return periods
    first = np.arange(0, plan.batch_size, _GROUP)
    time, rows, observed = (
        array[first, : plan.num_context] for array in (plan.time, values, plan.observed)
    )
    candidates = plan.named[first] if rng.random() < 0.5 else None
    shown = find_periods(time, rows, observed, candidates)
    return np.repeat(shown, _GROUP, axis=0)[: plan.batch_size]


@dataclasses.dataclass(frozen=True, eq=False)
class _Plan:
    """How one batch is laid out.

    Attributes:
        batch_size: B.
        grid: what series are drawn on.
        shared: whether all sequences have the same points.
        searched: whether seasons are searched for in the context.
        periods: `[B, 2]`, the true ones, in steps of the grid's series.
        named: `[1, 3]` or `[B, 3]`, in units of `time`.
        points: `[1, N]` or `[B, N]`, points of the grid, the context first.
        time: of the same shape, in usual steps.
        observed: of the same shape, bool.
        num_context: N_C.
    """

    batch_size: int
    grid: SeriesGrid
    shared: bool
    searched: bool
    periods: np.ndarray
    named: np.ndarray
    points: np.ndarray
    time: np.ndarray
    observed: np.ndarray
    num_context: int


def _draw_plan(prior: SeriesPrior, rng: np.random.Generator, batch_size: int) -> _Plan:
    shared = rng.random() < prior.shared
    num_context, num_targets = _draw_lengths(prior, rng)
    length = num_context + num_targets
    # About as many points in every batch.
    share = min(_USUAL_LENGTH / max(length, 1), _MOST_SEQUENCES)
    batch_size = max(int(batch_size * share), min(batch_size, _LEAST_SEQUENCES))
    num_axes = 1 if shared else batch_size
    group = np.zeros(batch_size, int) if shared else np.arange(batch_size) // _GROUP
    of_groups = [_draw_periods(rng, num_context) for _ in range(int(group.max()) + 1)]
    periods = np.array(of_groups)[group]

    kind = rng.random()
    is_gap = kind < prior.gaps and num_context > 8
    is_dropped = not is_gap and kind < prior.gaps + prior.dropped
    stretch = rng.uniform(1.2, 3.0) if is_dropped else 1.0
    num_steps = num_context + max(round(num_targets * stretch), num_targets)
    uneven = rng.random() < (0.12 if shared else 0.3)
    grid = SeriesGrid(num_steps, _FINENESS if uneven else 1)

    axes = [_draw_stamps(rng, grid) for _ in range(int(group[:num_axes].max()) + 1)]
    steps = np.array(axes)[group[:num_axes]]
    if is_gap:
        steps = np.array([rng.permutation(row) for row in steps])
        steps[:, :num_context].sort(axis=1)
    elif is_dropped:
        kept = [_draw_kept(rng, num_steps - num_context, num_targets) for _ in range(num_axes)]
        later = np.take_along_axis(steps[:, num_context:], np.array(kept), axis=1)
        steps = np.concatenate([steps[:, :num_context], later], axis=1)
    time, scale = _calendar(rng, steps / grid.fineness, periods[0], uneven, shared)
    named = np.zeros((num_axes, NUM_PERIODS))
    named[:, :2] = periods[:num_axes] * scale
    observed = np.ones(steps.shape, bool)
    if not shared:
        observed[:, :num_context] = _draw_observed(rng, num_axes, num_context)
    searched = not shared and rng.random() < prior.detected
    return _Plan(
        batch_size,
        grid,
        shared,
        searched,
        periods,
        named,
        steps,
        time,
        observed,
        num_context,
    )


def _draw_lengths(prior: SeriesPrior, rng: np.random.Generator) -> tuple[int, int]:
    """Draws N_C and N_T."""
    usual = min(170, prior.max_context)
    kind = rng.random()
    if kind < 0.05:
        num_context = int(rng.integers(0, 6))
    elif kind < 0.97 or prior.max_context <= usual:
        # Half of them as likely short as long, so that short series are not drowned.
        short = float(log_uniform(rng, 6, usual))
        num_context = round(short if rng.random() < 0.5 else rng.uniform(min(20, usual), usual))
    else:
        num_context = round(float(log_uniform(rng, usual, prior.max_context)))
    most = min(prior.max_targets, max(8, int(num_context * prior.target_share) + 4))
    # Without such batches nothing is drawn, so that the others are those of before.
    if prior.even_targets and rng.random() < prior.even_targets:
        return num_context, int(rng.integers(4, most, endpoint=True))
    return num_context, round(float(log_uniform(rng, 4, most)))


def _draw_periods(rng: np.random.Generator, num_context: int) -> np.ndarray:
    """Draws the true periods of a group, `[2]` in steps; 0 where there is none."""
    period = float(rng.choice(_PERIODS, p=_PERIOD_SHARES))
    if period < 0:
        period = float(log_uniform(rng, 3, max(num_context / 2, 4)))
        period = period if rng.random() < 0.4 else float(round(period))
    # A season that is named without being seen twice is rare.
    if period > num_context / 2 and rng.random() < 0.8:
        period = 0.0
    second = 0.0
    if period:
        if rng.random() < 0.35:
            second = _SECOND_PERIODS.get(period, 0.0)
        elif rng.random() < 0.1:
            second = period * float(rng.choice([4, 5, 7, 12]))
        second = second if second < num_context else 0.0
    return np.array([period, second])


def _draw_stamps(rng: np.random.Generator, grid: SeriesGrid) -> np.ndarray:
    """Draws points of the grid in increasing order, one for each step."""
    steps = np.arange(grid.num_steps)
    if grid.fineness == 1:
        return steps
    if rng.random() < 0.4:
        return steps * grid.fineness + rng.integers(0, grid.fineness, grid.num_steps)
    return np.sort(rng.permutation(grid.num_points)[: grid.num_steps])


def _draw_kept(rng: np.random.Generator, num_rows: int, num_targets: int) -> np.ndarray:
    """Draws which rows ahead stay targets: single ones at random, or all after a gap."""
    if rng.random() < 0.5:
        return np.sort(rng.permutation(num_rows)[:num_targets])
    first = int(rng.integers(0, num_targets))
    rows = np.arange(num_targets)
    return np.where(rows < first, rows, rows + num_rows - num_targets)


def _calendar(
    rng: np.random.Generator,
    steps: np.ndarray,
    periods: np.ndarray,
    uneven: bool,
    shared: bool,
) -> tuple[np.ndarray, float]:
    """Returns times of steps, and how long a step is on average, where a calendar is uneven.

    Months have 28 to 31 days, and after five business days there are two more.
    """
    if uneven or not shared:
        return steps, 1.0
    last = int(steps.max()) + 1
    if periods[0] == 12 and rng.random() < 0.5:
        days = np.concatenate([[0.0], np.cumsum(_MONTH_DAYS[(np.arange(last)) % 12])])
        return days[steps.astype(int)] / 30.4375, 365.2425 / 12 / 30.4375
    if periods[0] == 5:
        return steps + 2 * (steps // 5), 7 / 5
    return steps, 1.0


def _draw_observed(rng: np.random.Generator, num_axes: int, num_context: int) -> np.ndarray:
    """Draws which context rows have a value, `[B, N_C]`: late starts, single gaps, long gaps."""
    observed = np.ones((num_axes, num_context), bool)
    if not num_context:
        return observed
    rows = np.arange(num_context)
    if rng.random() < 0.5:
        starts = rng.random(num_axes) < 0.5
        length = log_uniform(rng, 1, num_context, num_axes)
        observed &= ~starts[:, np.newaxis] | (rows >= num_context - length[:, np.newaxis])
    if rng.random() < 0.5:
        missing = rng.uniform(0.05, 0.5, (num_axes, 1)) * (rng.random((num_axes, 1)) < 0.7)
        single = rng.random((num_axes, num_context)) >= missing
        begin = rng.uniform(0, 1, (num_axes, 1)) * (1 - missing) * num_context
        block = (rows < begin) | (rows >= begin + missing * num_context)
        observed &= np.where(rng.random((num_axes, 1)) < 0.6, single, block)
    return observed


def _altered(rng: np.random.Generator, series: np.ndarray, grid: SeriesGrid) -> np.ndarray:
    """Changes some series: their scale, their sign, single values; adds a little noise to all."""
    series = standardized(np.nan_to_num(series, nan=0.0, posinf=1e6, neginf=-1e6))
    n, length = series.shape

    def some(share: float) -> np.ndarray:
        return np.flatnonzero(rng.random(n) < share)

    chosen = some(0.12)
    series[chosen] = np.exp(
        rng.uniform(0.1, 1.0, (len(chosen), 1)) * np.clip(series[chosen], -5, 5)
    )
    series = standardized(series)
    chosen = some(0.08)
    if len(chosen) > 1:
        weight = rng.uniform(0.2, 0.8, (len(chosen), 1))
        series[chosen] = weight * series[chosen] + (1 - weight) * np.roll(series[chosen], 1, axis=0)
    chosen = some(0.3)
    series[chosen] *= -1
    chosen = some(0.05)
    spikes = rng.random((len(chosen), length)) < rng.uniform(0.005, 0.04, (len(chosen), 1))
    size = rng.choice([-1, 1], (len(chosen), 1)) * log_uniform(rng, 2, 10, (len(chosen), length))
    series[chosen] += spikes * size
    chosen = some(0.04)
    limit = np.quantile(series[chosen], rng.uniform(0.1, 0.9), axis=1, keepdims=True)
    series[chosen] = np.maximum(series[chosen], limit)
    series = standardized(series) + _LEAST_NOISE * rng.standard_normal(series.shape)
    # What few or no context rows say nothing about.
    level = rng.standard_normal((n, 1)) * rng.choice([0.0, 1.0, 10.0], (n, 1))
    return (series + level) * log_uniform(rng, 0.3, 3.0, (n, 1))


def _make_some_constant(rng: np.random.Generator, values: np.ndarray, num_context: int) -> None:
    """Gives a few sequences a constant context, after which little changes."""
    for index in np.flatnonzero(rng.random(len(values)) < 0.01):
        level = values[index, 0]
        moves = 0.3 * rng.standard_normal(values.shape[1] - num_context)
        values[index, :num_context] = level
        values[index, num_context:] = level * (1 + 1e-3 * moves)


def _without_exploded(batch: Mapping[str, np.ndarray], shared: bool) -> dict[str, np.ndarray]:
    """Replaces sequences that lie far outside of their context by others of the batch."""
    batch = dict(batch)
    largest = np.abs(batch["y_target"]).max(axis=(1, 2))
    good = np.flatnonzero(np.isfinite(largest) & (largest < FURTHEST_TRAINED))
    if len(good) == len(largest) or not len(good):
        return batch
    rows = np.arange(len(largest))
    bad = np.setdiff1d(rows, good)
    rows[bad] = good[bad % len(good)]
    for name in ("y_context", "y_target") if shared else batch:
        batch[name] = batch[name][rows]
    return batch


def synthetic_series_tasks(
    batch_size: int = 32,
    seed: int = 0,
    prior: SeriesPrior | None = None,
    first_batch: int = 0,
    num_batches: int | None = None,
    part: str = "training",
) -> "tf.data.Dataset":
    """Makes a data set of forecasting tasks on synthetic series, drawn on the fly.

    Batch k is a function of `seed`, `part` and k alone, so a training that was stopped continues
    with `first_batch`.

    Example:
        >>> prior = SeriesPrior(max_context=40)
        >>> dataset = synthetic_series_tasks(batch_size=8, prior=prior, num_batches=2)
        >>> inputs, y_target = next(iter(dataset))
        >>> inputs["x_target"].shape[-1], y_target.shape[-1]
        (7, 1)

    Args:
        batch_size: B of sequences of 128 points; long ones come in smaller batches, short ones in
            larger ones.
        seed: of everything that is drawn, 0 to 2^63 - 1.
        prior: the distribution of the tasks. None: the default.
        first_batch: how many batches of the endless row to leave out.
        num_batches: how many batches to draw. None: no end.
        part: "training", "validation" or "test", which share no sequence.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)` of the data contract, D_x = 7 and D_y = 1, with
        masks; see `ContextScaler`. B, N_C and N_T are None in its `element_spec`, so that no graph
        is traced anew.

    Raises:
        TypeError, ValueError: a number of the wrong kind or out of range.
    """
    prior = SeriesPrior() if prior is None else prior
    batch_size = check_integer("batch_size", batch_size, 1)
    seed = check_integer("seed", seed, 0, LARGEST_SEED)
    stream = _STREAMS[check_choice("part", part, tuple(_STREAMS))]

    def draw(number: int) -> dict[str, np.ndarray]:
        return prior.draw(numbered_generator(seed, stream, number), batch_size)

    numbers = batch_numbers(first_batch, num_batches)
    return numbered_batches(numbers, draw, masked_specs(NUM_X, 1))


def draw_family(
    name: str, count: int, num_steps: int, period: float = 0.0, seed: int = 0
) -> np.ndarray:
    """Draws series of one family, to look at.

    Example:
        >>> draw_family("clean", count=2, num_steps=24, period=12).shape
        (2, 24)

    Args:
        name: one of `FAMILIES`.
        count: n.
        num_steps: the length of each.
        period: of the season, in steps; 0: none.
        seed: of what is drawn.

    Returns:
        `[n, num_steps]` float64, as the family draws them.

    Raises:
        ValueError: an unknown name, or a number out of range.
    """
    check_choice("name", name, tuple(FAMILIES))
    count = check_integer("count", count, 1)
    grid = SeriesGrid(check_integer("num_steps", num_steps, 2))
    rng = numbered_generator(check_integer("seed", seed, 0, LARGEST_SEED), _PICTURES, 0)
    periods = np.tile(np.array([float(period), 0.0]), (count, 1))
    family, _ = FAMILIES[name]
    return family(rng, grid, periods)
