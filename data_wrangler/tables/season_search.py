"""Periods of seasons that the values of series show: a search in many series at once."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from taylorformer.data_wrangler.tables.season_background import TINY, EvenRows
from taylorformer.data_wrangler.tables.season_evidence import SHORTEST_PERIOD, best_season
from taylorformer.data_wrangler.tables.season_odds import WHOLE_PATTERN, BestSeasons
from taylorformer.data_wrangler.tables.season_patterns import Rows
from taylorformer.data_wrangler.tables.season_uneven import UnevenRows

NUM_PERIODS = 3
"""How many seasons a series has at most."""

MOST_ROWS = 1500
"""Of more observed rows, the last so many are searched."""

# Rows one step apart, with gaps of whole steps, and on no grid.
_EVEN, _GRID, _UNEVEN = range(3)
# One more, for an alternation of 2 steps, which is removed but no season.
_ROUNDS = NUM_PERIODS + 1
_FEWEST_ROWS = 8
# Changes this small are rounding, of float32: relative to the largest value, and to the range.
_ROUNDING = 1e-7
_ROUNDING_OF_RANGE = 1e-6
# Makes products of columns regular.
_RIDGE = 1e-9
# Rows at most this far from even positions count as even, in steps: months are.
_OFF_STEP = 0.12
# Gaps up to this many times the shortest are one step.
_SHORT_GAP = 1.5
# A grid of more steps than this for each row is none.
_LONGEST_GRID = 6.0
# Numbers that one part of a group may hold, for the processor's memory.
_MOST_EVEN_VALUES = 16_384
_MOST_WAVES = 4_000_000
# A season of uneven rows that is slow, so many rows a period, must be there in means of parts of
# the time, too: so many parts, each of so many rows; and there its period is about the same.
_SLOW = 8
_PARTS = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_ROWS_A_PART = 2
_SAME_PERIOD = 0.05
# The log odds by which it must be more than a candidate needs to be.
_CONFIRMED = 2.0
# A season next to the second to fourth part of another one is a harmonic of it.
_MOST_HARMONICS, _SAME_HARMONIC = 4, 0.01
# A period is a candidate if it is so much of a cycle off at the end of the series.
_SAME_CYCLES = 0.1
# Seasons are removed with no more harmonics than rows allow, whose size may grow in time.
_ROWS_A_HARMONIC = 6


def find_periods(
    time: np.ndarray,
    values: np.ndarray,
    observed: np.ndarray,
    candidates: np.ndarray | None = None,
) -> np.ndarray:
    """Returns the periods of the seasons that series show.

    A season is a wave, with or without harmonics, that stands out of every background without
    one: a trend with white noise, an autoregression, a random walk, or smooth changes. Free
    periods have at least 3 steps and 2.5 cycles, candidates 2 steps and 2 cycles.

    Example:
        >>> time = np.arange(60.0)[np.newaxis]
        >>> values = np.cos(2 * np.pi * time / 12) + 0.1 * time
        >>> find_periods(time, values, np.ones(time.shape, bool)).tolist()
        [[12.0, 0.0, 0.0]]

    Args:
        time: `[B, N]` float64, of any origin, increasing where rows are observed.
        values: `[B, N]` float64, finite where rows are observed.
        observed: `[B, N]` bool; False for missing values and padding, in any row.
        candidates: `[B, K]` or `[K]` float64, in the unit of time, 0 for none: periods that need
            less evidence, and that a period next to one of them becomes.

    Returns:
        `[B, 3]` float64 in the unit of time, the strongest first, 0 where there is none.

    Raises:
        ValueError: arrays of different shapes.
    """
    time, values = np.asarray(time, np.float64), np.asarray(values, np.float64)
    observed = np.asarray(observed, bool)
    if time.ndim != 2 or not time.shape == values.shape == observed.shape:
        raise ValueError(
            "`time`, `values` and `observed` must be [B, N] all. "
            f"Received: {list(time.shape)}, {list(values.shape)} and {list(observed.shape)}"
        )
    candidates = np.zeros(1) if candidates is None else np.asarray(candidates, np.float64)
    candidates = np.broadcast_to(candidates, (len(time), candidates.shape[-1]))
    periods = np.zeros((len(time), NUM_PERIODS))
    for group in _groups(time, values, observed):
        asked = candidates[group.series] / group.step[:, np.newaxis]
        periods[group.series] = _find(group, asked) * group.step[:, np.newaxis]
    return periods


class _Group(NamedTuple):
    """Series that are searched together.

    Attributes:
        series: `[b]`, their indices.
        values: `[b, n]`, scaled; padding is last.
        position: `[b, n]`, in steps.
        step: `[b]`, in the unit of time.
        num_rows: `[b]`.
        rounding: `[b]`, changes of values that are rounding.
        kind: `_EVEN`, `_GRID` or `_UNEVEN`.
    """

    series: np.ndarray
    values: np.ndarray
    position: np.ndarray
    step: np.ndarray
    num_rows: np.ndarray
    rounding: np.ndarray
    kind: int

    def rows(self, which: np.ndarray, values: np.ndarray) -> Rows:
        """Returns some of the series, with other values."""
        if self.kind == _EVEN:
            return EvenRows(values)
        return UnevenRows(values, self.position[which], self.num_rows[which], self.kind == _GRID)


def _groups(time: np.ndarray, values: np.ndarray, observed: np.ndarray) -> Iterator[_Group]:
    """Yields groups of series of one kind, and those one step apart by their number of rows."""
    observed = observed & (np.cumsum(observed[:, ::-1], axis=1)[:, ::-1] <= MOST_ROWS)
    num_rows = observed.sum(axis=1)
    order = np.argsort(~observed, axis=1, kind="stable")
    observed = np.take_along_axis(observed, order, axis=1)
    time = np.take_along_axis(time, order, axis=1)
    values = np.where(observed, np.take_along_axis(values, order, axis=1), 0.0)
    values, rounding = _scaled(values, observed, num_rows)
    alive = (rounding < 1) & (num_rows >= _FEWEST_ROWS)
    time = np.where(observed, time - time[:, :1], 0.0)
    gaps = np.where(observed[:, 1:], np.diff(time, axis=1), np.inf)
    alive &= gaps.min(axis=1, initial=np.inf) > 0
    kinds, step, position = _kinds(time, gaps, observed, num_rows)
    for kind in np.unique(kinds[alive]):
        members = np.flatnonzero(alive & (kinds == kind))
        for part in _parts(kind, num_rows[members], position[members]):
            rows = members[part]
            length = num_rows[rows].max()
            values_of, position_of = values[rows, :length], position[rows, :length]
            rest = step[rows], num_rows[rows], rounding[rows]
            yield _Group(rows, values_of, position_of, *rest, kind)


def _kinds(
    time: np.ndarray, gaps: np.ndarray, observed: np.ndarray, num_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the kind `[B]` and the step `[B]` of series, and positions `[B, N]` in steps."""
    last = time.max(axis=1)
    mean_step = last / np.maximum(num_rows - 1, 1)
    mean_step = np.where(last > 0, mean_step, 1.0)
    position = time / mean_step[:, np.newaxis]
    off = np.abs(position - np.arange(time.shape[1]))
    even = (np.where(observed, off, 0.0) <= _OFF_STEP).all(axis=1)
    # Gaps of a whole number of steps: the mean of the shortest ones is about a step.
    short = gaps <= _SHORT_GAP * gaps.min(axis=1, initial=np.inf, keepdims=True)
    short &= np.isfinite(gaps)
    step = np.where(short, gaps, 0.0).sum(axis=1) / np.maximum(short.sum(axis=1), 1)
    step = np.where(step > 0, step, 1.0)
    counts = np.rint(np.where(observed[:, 1:], gaps, 0.0) / step[:, np.newaxis])
    counts = np.concatenate([np.zeros((len(time), 1)), counts.cumsum(axis=1)], axis=1)
    grid_step = last / np.maximum(counts[:, -1], 1)
    grid_step = np.where(last > 0, grid_step, 1.0)
    off = np.abs(time / grid_step[:, np.newaxis] - counts)
    grid = (np.where(observed, off, 0.0) <= _OFF_STEP).all(axis=1) & ~even
    grid &= last <= _LONGEST_GRID * mean_step * num_rows
    kinds = np.where(even, _EVEN, np.where(grid, _GRID, _UNEVEN))
    step = np.where(grid, grid_step, mean_step)
    return kinds, step, np.where(grid[:, np.newaxis], counts, position)


def _parts(kind: int, num_rows: np.ndarray, position: np.ndarray) -> Iterator[np.ndarray]:
    """Yields indices of series that are searched together, within bounds of memory."""
    if kind == _EVEN:
        for count in np.unique(num_rows):
            same = np.flatnonzero(num_rows == count)
            yield from np.array_split(same, -(-len(same) * count // _MOST_EVEN_VALUES))
        return
    order = np.argsort(num_rows, kind="stable")
    if len(order):
        waves = num_rows.max() * position.max() * 2
        yield from np.array_split(
            order, min(len(order), int(len(order) * waves // _MOST_WAVES) + 1)
        )


def _scaled(
    values: np.ndarray, observed: np.ndarray, num_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns values less their mean, at most 1, and what of them `[B]` is rounding."""
    mean = values.sum(axis=1) / np.maximum(num_rows, 1)
    size = np.abs(values).max(axis=1, initial=0.0)
    values = np.where(observed, values - mean[:, np.newaxis], 0.0)
    largest = np.abs(values).max(axis=1, initial=0.0)
    largest = np.where(largest > _ROUNDING * size, largest, np.inf)
    rounding = np.where(np.isinf(largest), 1.0, _ROUNDING * size / largest)
    return values / largest[:, np.newaxis], np.maximum(rounding, _ROUNDING_OF_RANGE)


def _find(group: _Group, candidates: np.ndarray) -> np.ndarray:
    """Returns the periods `[b, 3]` in steps, one search after the other."""
    count = len(group.series)
    values = group.values.copy()
    # Each round finds one season, and perhaps one inside of it.
    periods, strength = np.zeros((2, count, 2 * _ROUNDS))
    used = np.zeros(count)
    active = np.arange(count)
    for turn in range(_ROUNDS):
        rows = group.rows(active, values[active])
        alive = rows.rest > group.rounding[active] ** 2 * rows.num_rows
        removed = periods[active][:, : 2 * turn]
        odds, season = best_season(rows, candidates[active], removed, used[active])
        shown = np.flatnonzero(alive & (odds > 0))
        if not rows.is_exact:
            shown = shown[_is_confirmed(rows, shown, values[active[shown]], season)]
        if not len(shown):
            break
        fit, regressors = _fit(rows, shown, values[active[shown]], season)
        active = active[shown]
        values[active] -= fit
        used[active] += regressors
        period, inside = season.period[shown], season.inside[shown]
        periods[active, 2 * turn], periods[active, 2 * turn + 1] = period, inside
        legal = season.asked[shown] | (period >= SHORTEST_PERIOD - _ROUNDING)
        size = (fit**2).sum(axis=1) * legal
        strength[active, 2 * turn] = size * (1 - season.part[shown])
        strength[active, 2 * turn + 1] = size * season.part[shown]
    strength += _strength_of_harmonics(periods, strength)
    order = np.argsort(-strength, axis=1, kind="stable")[:, :NUM_PERIODS]
    periods = np.take_along_axis(np.where(strength > 0, periods, 0.0), order, axis=1)
    return _as_asked(periods, candidates, group)


def _strength_of_harmonics(periods: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Returns what the harmonics among the periods `[b, R]` of a series add to its seasons."""
    times = periods[:, :, np.newaxis] / np.where(periods > 0, periods, np.inf)[:, np.newaxis]
    number = np.rint(times)
    is_harmonic = (number >= 2) & (number <= _MOST_HARMONICS)
    is_harmonic &= np.abs(times - number) <= _SAME_HARMONIC * number
    is_season = (strength > 0)[:, :, np.newaxis]
    return (is_harmonic * is_season * strength[:, np.newaxis]).sum(axis=2)


def _as_asked(periods: np.ndarray, candidates: np.ndarray, group: _Group) -> np.ndarray:
    """Replaces periods `[b, 3]` by candidates that they are as far as the rows can tell."""
    steps = group.position.max(axis=1)[:, np.newaxis]
    for candidate in candidates.T[..., np.newaxis]:
        away = np.abs(periods - candidate) * steps / np.maximum(periods * candidate, TINY)
        periods = np.where(
            (candidate > 0) & (periods > 0) & (away <= _SAME_CYCLES), candidate, periods
        )
    return periods


def _is_confirmed(
    rows: Rows, which: np.ndarray, values: np.ndarray, season: BestSeasons
) -> np.ndarray:
    """Tells which slow seasons `[b]` the means of equal parts of the time show, too.

    They are one step apart, so that every background is tried; uneven rows have fewer of them.
    """
    confirmed = np.ones(len(which), bool)
    num_rows, num_steps = rows.num_rows[which], rows.num_steps[which]
    slow = season.period[which] * num_rows >= _SLOW * num_steps
    size = np.searchsorted(_PARTS, num_rows // _ROWS_A_PART, side="right") - 1
    for index in np.unique(size[slow & (size >= 0)]):
        count = _PARTS[index]
        part = np.flatnonzero(slow & (size == index))
        scale = count / num_steps[part]
        number = (rows.position[which[part]] * scale[:, np.newaxis]).astype(np.intp)
        number = np.minimum(number, count - 1) + np.arange(len(part))[:, np.newaxis] * count
        weight = rows.weight[which[part]].ravel()
        total, sums = (
            np.bincount(number.ravel(), one, len(part) * count).reshape(-1, count)
            for one in (weight, weight * values[part].ravel())
        )
        means = sums / np.maximum(total, 1)
        for row, there in zip(means, total > 0, strict=True):
            row[~there] = np.interp(np.flatnonzero(~there), np.flatnonzero(there), row[there])
        period = season.period[which[part]] * scale
        nothing = np.zeros((len(part), 0))
        odds, again = best_season(
            EvenRows(means), period[:, np.newaxis], nothing, np.zeros(len(part))
        )
        confirmed[part] = (odds > _CONFIRMED) & (np.abs(again.period / period - 1) <= _SAME_PERIOD)
    return confirmed


def _fit(
    rows: Rows, which: np.ndarray, values: np.ndarray, season: BestSeasons
) -> tuple[np.ndarray, np.ndarray]:
    """Returns seasons `[b, N]` by least squares, and how many regressors `[b]` that took."""
    fit, regressors = np.zeros_like(values), np.zeros(len(values))
    counts = season.harmonics[which]
    counts = np.where(counts == WHOLE_PATTERN, season.period[which].astype(np.intp) // 2, counts)
    most = np.maximum(rows.num_rows[which] // _ROWS_A_HARMONIC, 1)
    counts = np.minimum(np.minimum(counts, most), (season.period[which] / 2).astype(np.intp))
    for count in np.unique(counts):
        part = np.flatnonzero(counts == count)
        index = which[part]
        position, weight = rows.position[index][:, np.newaxis], rows.weight[index][:, np.newaxis]
        turns = position / season.period[index][:, np.newaxis, np.newaxis]
        angle = 2 * np.pi * np.arange(1, count + 1)[:, np.newaxis] * turns
        x = 2 * position / position.max(axis=2, keepdims=True) - 1
        waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        columns = np.concatenate([waves, waves * x, x**0, x, x**2], axis=1) * weight
        gram = columns @ columns.swapaxes(1, 2)
        # Equal columns, such as two waves of 2 steps, share what they explain.
        np.einsum("bii->bi", gram)[:] *= 1 + _RIDGE
        np.einsum("bii->bi", gram)[:] += _RIDGE
        solution = np.linalg.solve(gram, columns @ values[part][..., np.newaxis])
        fit[part] = (solution[:, :-3].swapaxes(1, 2) @ columns[:, :-3])[:, 0]
        regressors[part] = 4 * count
    return fit, regressors
