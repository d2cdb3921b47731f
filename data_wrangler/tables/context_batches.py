"""Training batches of a table for a pretrained model: windows of all lengths, as it was trained.

A batch has one N_C, the longest that a forecast reads or a shorter one, and one N_T, the horizon or
less. So the model keeps what it knows of short contexts, and a short table has windows at all,
whose contexts are not much shorter than those of its forecasts.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping

import numpy as np

from taylorformer.data_wrangler.seeds import numbered_generator
from taylorformer.data_wrangler.tables.context_scaler import FURTHEST_TRAINED
from taylorformer.data_wrangler.tables.context_windows import ContextWindows, Periods
from taylorformer.data_wrangler.tables.covariate_scaling import NO_COVARIATES, CovariateScaling
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.value_support import ValueSupport

SHORTEST_CONTEXT = 6
"""Contexts that a model is trained on are at least this long, where the table has so many rows."""

# Streams of random numbers of one seed.
_ORDERS, _LENGTHS = 0, 1
# The share of the batches with the longest context, and of those with all targets.
_SHARE_OF_LONGEST = 0.5
# A window has at least this share of the targets of a forecast, rounded up.
_LEAST_SHARE = 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class ContextBatches:
    """Batches of windows of one or several series of one column, by their numbers.

    Each pass over the first targets has another order. Of several series a pass takes all first
    targets of the one that has fewest, and of the others random ones, whose number grows with a
    power of how many there are: otherwise the long series would be nearly all that a model is
    trained on. A batch is a function of `seed` and its number alone.

    Example:
        >>> import pandas as pd
        >>> from taylorformer.data_wrangler.tables.series import Series
        >>> table = pd.DataFrame({"day": range(40), "load": np.sin(np.arange(40.0))})
        >>> panel = Panel(Series.from_frame(table, "day", "load"))
        >>> batches = ContextBatches(panel, 5, 16, lambda number, rows: np.zeros(3), 8, seed=0)
        >>> batches.draw(0)["y_target"].shape, len(batches.first_targets)
        ((8, 4, 1), 33)

    Attributes:
        panel: G series; all their rows are trained on.
        horizon: the largest N_T.
        longest_context: the largest N_C.
        periods: see `ContextWindows`.
        batch_size: B.
        seed: of orders and lengths.
        support: see `ContextWindows`.
        covariates: see `ContextWindows`.
        balance: the power: 0 takes as many windows of every series, 1 takes them all.
    """

    panel: Panel
    horizon: int
    longest_context: int
    periods: Periods
    batch_size: int
    seed: int
    support: ValueSupport | None = None
    covariates: CovariateScaling = NO_COVARIATES
    balance: float = 0.5
    _passes: dict[int, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)

    @functools.cached_property
    def first_targets(self) -> np.ndarray:
        """The rows of the panel that can be a first target: `[n]` int64."""
        return np.concatenate(self._by_series)

    @functools.cached_property
    def _by_series(self) -> list[np.ndarray]:
        """The rows of each series that can be a first target."""
        return first_targets_by_series(self.panel, self.horizon)

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """How many first targets of each series are in a pass."""
        counts = np.array([len(rows) for rows in self._by_series])
        if not counts.any():
            return counts
        fewest = counts[counts > 0].min()
        # Rounded, so that a power of a whole number that is whole stays so.
        return np.ceil(np.round(fewest * (counts / fewest) ** self.balance, 9)).astype(np.int64)

    def draw(self, number: int) -> dict[str, np.ndarray]:
        """Returns the inputs of batch `number` with `y_target`, as the data contract has them.

        Where all windows of the batch have the same points, x and masks have 1 in place of B.
        """
        rng = numbered_generator(self.seed, _LENGTHS, number)
        length = _length(rng, SHORTEST_CONTEXT, self.longest_context)
        num_targets = _length(rng, _fewest_targets(self.horizon), self.horizon)
        windows = ContextWindows(
            self.panel,
            WindowSpec(length, num_targets),
            self.periods,
            self.support,
            self.covariates,
        )
        starts = self._with_room(rng, self._first_targets_of(number), num_targets) - length
        inputs, y_target = windows.batch(starts)
        return with_shared_points(_kept({**inputs, "y_target": y_target}))

    def _first_targets_of(self, number: int) -> np.ndarray:
        count = int(self._counts.sum())
        positions = number * self.batch_size + np.arange(self.batch_size)
        passes, index = np.divmod(positions, count)
        orders = {number: self._order(int(number)) for number in np.unique(passes)}
        return np.array([orders[p][i] for p, i in zip(passes, index, strict=True)], np.int64)

    def _with_room(
        self, rng: np.random.Generator, first: np.ndarray, num_targets: int
    ) -> np.ndarray:
        """Puts another first target where the series ends too soon for so many targets."""
        numbers = self.panel.series_of(first)
        ends = self.panel.offsets[1:][numbers] - num_targets
        begins = np.array([rows[0] if len(rows) else 0 for rows in self._by_series])[numbers]
        return np.where(first <= ends, first, rng.integers(np.minimum(begins, ends), ends + 1))

    def _order(self, number: int) -> np.ndarray:
        """Returns the first targets in the order of a pass; the last few passes are remembered.

        Batches are made by several threads: what one of them forgets another may be about to read.
        """
        order = self._passes.get(number)
        if order is None:
            rng = numbered_generator(self.seed, _ORDERS, number)
            rows = [
                some if count == len(some) else rng.choice(some, count, replace=False)
                for some, count in zip(self._by_series, self._counts, strict=True)
            ]
            order = rng.permutation(np.concatenate(rows))
            if len(self._passes) > 2:
                self._passes.clear()
            self._passes[number] = order
        return order


def first_targets_by_series(panel: Panel, horizon: int) -> list[np.ndarray]:
    """Returns the rows of each series that can be the first target of a training window.

    Args:
        panel: G series.
        horizon: the largest N_T.

    Returns:
        G arrays `[n]` int64 of rows of the panel; empty ones of series that are no longer than the
        horizon.
    """
    parts = []
    for first, end in zip(panel.offsets[:-1], panel.offsets[1:], strict=True):
        count = int(end - first)
        least = min(SHORTEST_CONTEXT, max(count - horizon, 1))
        most = count - _fewest_targets(horizon) if count > horizon else 0
        parts.append((first + np.arange(least, most + 1)).astype(np.int64))
    return parts


def _fewest_targets(horizon: int) -> int:
    return math.ceil(horizon * _LEAST_SHARE)


def _length(rng: np.random.Generator, shortest: int, longest: int) -> int:
    """Draws a length: often the longest, and short ones as often as long ones."""
    if rng.random() < _SHARE_OF_LONGEST or longest <= shortest:
        return longest
    return round(float(np.exp(rng.uniform(np.log(shortest), np.log(longest)))))


def _kept(batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Hides the targets of windows that lie far outside of their context."""
    largest = np.abs(np.where(batch["target_mask"], batch["y_target"][..., 0], 0)).max(axis=1)
    usual = largest < FURTHEST_TRAINED
    return {**batch, "target_mask": batch["target_mask"] & usual[:, np.newaxis]}


def with_shared_points(batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a batch whose x and masks have 1 in place of B, if all its sequences share them."""
    names = ("x_context", "x_target", "context_mask", "target_mask")
    if any((batch[name] != batch[name][:1]).any() for name in names):
        return dict(batch)
    return {**batch, **{name: batch[name][:1] for name in names}}
