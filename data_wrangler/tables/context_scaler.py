"""One representation for every table: all that scaling needs is measured on a window's context.

So a model that was trained on other series reads any series without a training part: values are
relative to the mean and the spread of the context, time to its last observed row, in its usual
steps, and the seasons are cosines and sines of the time since that row.
"""

import dataclasses
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.covariate_scaling import (
    FURTHEST_READ,
    NO_COVARIATES,
    CovariateScaling,
)
from taylorformer.data_wrangler.tables.scaler import ValueScaling
from taylorformer.data_wrangler.tables.seasons import NUM_PERIODS, season_phases
from taylorformer.data_wrangler.tables.value_support import SupportTransform, ValueSupport

NUM_X = 1 + 2 * NUM_PERIODS
"""D_x without covariates: the time, then the cosine and the sine of each season."""


def input_shapes(num_covariates: int = 0) -> dict[str, tuple[int | None, ...]]:
    """Returns the shapes to build a model with that reads windows of any B, N_C and N_T."""
    x = (None, None, NUM_X + num_covariates)
    return {"x_context": x, "y_context": (None, None, 1), "x_target": x}


STEPS_PER_UNIT = 64.0
"""How many usual steps are 1 in x: a step means the same in every table."""

# Values further from the median than so many usual spreads count as this far when mean and spread
# are measured: one outlier must not make all the others look the same.
_OUTLIER = 10.0
# The distance of the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349
# A spread below this share of the size of the values is their rounding.
_ROUNDING = 1e-14
# The spread of a constant context, as a share of its value.
_SPREAD_OF_CONSTANT = 1e-3
# A whole number is known to half a unit and no better.
_SPREAD_OF_INTEGERS = 0.5
FURTHEST_TRAINED = 30.0
"""Beyond so many spreads of its context a target says nothing about others: no model is trained on
it."""


@dataclasses.dataclass(frozen=True, eq=False)
class ContextTime:
    """How the times of B windows become x; made by `ContextTime.measure`.

    Attributes:
        origin: `[B]` float64, the time of the last observed context row. Where there is none, one
            step before the first target.
        step: `[B]` float64, the usual step: the lower median of the differences of observed context
            rows, so rows without a value and absent rows are the same. Where fewer than two are
            observed the targets count too.
    """

    origin: Any
    step: Any

    @classmethod
    def measure(
        cls,
        time: Any,
        observed: Any,
        num_context: Any,
        ops: ArrayOps = NUMPY_OPS,
    ) -> "ContextTime":
        """Measures the time axis of each window.

        Args:
            time: `[B, N]` float64, the context first, in increasing order; targets in any order.
            observed: `[B, N]` bool; of targets it is not read.
            num_context: N_C.
            ops: the array functions for what the arguments are.
        """
        in_context = observed[:, :num_context]
        few = ops.total(ops.cast(in_context, "float64")) < 2
        in_target = observed[:, num_context:] | True
        step = _lower_median_step(time, ops.join(in_context, in_target & few[:, np.newaxis]), ops)
        first_target = -ops.greatest(-time[:, num_context:])
        before = first_target - step
        # A column in front, for contexts without rows.
        last = ops.where(in_context, time[:, :num_context], -np.inf)
        last = ops.greatest(ops.join(0.0 * before[:, np.newaxis] - np.inf, last))
        origin = ops.where(last > -np.inf, last, before)
        return cls(origin, step)

    def x(self, time: Any, periods: Any, ops: ArrayOps = NUMPY_OPS) -> Any:
        """Returns x `[B, N, D_x]` float32 of times `[B, N]` and periods `[B, 3]`, 0 = none."""
        elapsed = time - self.origin[:, np.newaxis]
        steps = elapsed / (self.step[:, np.newaxis] * STEPS_PER_UNIT)
        steps = ops.cast(steps, "float32")[..., np.newaxis]
        return ops.join(steps, season_phases(elapsed, periods, ops))


def _lower_median_step(time: Any, seen: Any, ops: ArrayOps) -> Any:
    """Returns the lower median of the differences of the times that are seen, `[B]`; 1 for none."""
    times = ops.sort(ops.where(seen, time, np.inf))
    later, earlier = times[:, 1:], times[:, :-1]
    there = later < np.inf
    steps = ops.where(there, later - ops.where(there, earlier, 0.0), np.inf)
    steps = ops.where(steps > 0, steps, np.inf)
    steps = ops.sort(steps)
    count = ops.total(ops.cast(steps < np.inf, "int32"))
    middle = ops.pick(ops.join(steps, 0.0 * time[:, :1] + 1.0), ops.larger(count - 1, 0) // 2)
    return ops.where(count > 0, middle, 1.0 + 0.0 * middle)


def measure_values(values: Any, observed: Any, ops: ArrayOps = NUMPY_OPS) -> tuple[Any, Any]:
    """Measures centre and spread of the observed values of each row.

    They are the mean and the standard deviation of the values, after those further than ten usual
    spreads from the median (a usual spread is the distance of the quartiles over 1.349) are moved
    there; where the quartiles are equal, of the values as they are. Fallbacks: of equal values,
    the value and 0.1 % of its size; of one value, the value and its size; of none, 0 and 1. Where
    the size is 0, it counts as 1.

    Args:
        values: `[B, N]` float64; what is not observed must be finite.
        observed: `[B, N]` bool.
        ops: the array functions for what the arguments are.

    Returns:
        Centre and spread, `[B]` float64 both.
    """
    weight = ops.cast(observed, "float64")
    count = ops.total(weight)
    size = ops.greatest(ops.join(0.0 * count[:, np.newaxis], ops.where(observed, abs(values), 0.0)))
    unit = ops.where(size > 0, size, 1.0 + 0.0 * size)
    # Relative to their size, so that no square overflows.
    relative = ops.where(observed, values / unit[:, np.newaxis], 0.0)
    ordered = ops.sort(ops.where(observed, relative, np.inf))
    ordered = ops.join(ordered, 0.0 * count[:, np.newaxis])
    last = ops.cast(ops.larger(count - 1, 0.0), "int32")
    low, median, high = (
        ops.where(count > 0, ops.pick(ordered, (last * quarters) // 4), 0.0 * count)
        for quarters in (1, 2, 3)
    )
    usual = (high - low) / _QUARTILES
    differ = usual > _ROUNDING * abs(median)
    reach = ops.where(differ, _OUTLIER * usual, np.inf + 0.0 * usual)
    inside = ops.larger(relative, (median - reach)[:, np.newaxis])
    inside = ops.smaller(inside, (median + reach)[:, np.newaxis])
    many = ops.larger(count, 1.0)
    center = ops.total(weight * inside) / many
    # What is not observed is 0 there, and must not count.
    distance = weight * (inside - center[:, np.newaxis])
    spread = (ops.total(distance * distance) / many) ** 0.5
    fallback = ops.where(count > 1, _SPREAD_OF_CONSTANT + 0.0 * count, 1.0 + 0.0 * count)
    largest = ops.greatest(ops.join(abs(inside), 0.0 * count[:, np.newaxis]))
    moves = (spread > _ROUNDING * largest) & (count > 1)
    return center * unit, ops.where(moves, spread, fallback) * unit


@dataclasses.dataclass(frozen=True)
class ContextScaler:
    """Scales windows to what a pretrained model reads, and back; nothing is measured ahead.

    Example:
        >>> time, observed = np.arange(5.0)[np.newaxis], np.ones((1, 5), bool)
        >>> values = np.array([1.0, 3.0, 1.0, 3.0, 0.0]).reshape(1, 5, 1)
        >>> batch, scaling = ContextScaler().batch(time, values, observed, 4, np.zeros((1, 3)))
        >>> batch["y_context"].ravel().tolist(), batch["x_target"].shape
        ([-1.0, 1.0, -1.0, 1.0], (1, 1, 7))
        >>> float(batch["x_target"][0, 0, 0]) * STEPS_PER_UNIT
        1.0

    Attributes:
        support: which values the one column can have. None: all real numbers.
        covariates: how covariates are scaled, which are the last dimensions of x.
    """

    support: ValueSupport | None = None
    covariates: CovariateScaling = NO_COVARIATES

    def value_scaling(self, values: Any, observed: Any, ops: ArrayOps = NUMPY_OPS) -> ValueScaling:
        """Measures the contexts of B windows.

        Args:
            values: `[B, N_C, 1]` float64, in user units; what is not observed may be NaN.
            observed: `[B, N_C]` bool.
            ops: the array functions for what the arguments are.
        """
        values = ops.where(observed, values[..., 0], 0.0)
        center, spread = measure_values(values, observed, ops)
        transform = None
        if self.support is not None:
            lower, upper = (bound[0] for bound in self.support.outer_bounds)
            integer = self.support.integers[0]
            softness = ops.larger(spread, 1.0) if integer else spread
            softness = ops.smaller(softness, upper - lower)
            softness = softness[:, np.newaxis, np.newaxis]
            transform = SupportTransform.of(self.support, softness, ops)
            # What is not observed must lie inside, too.
            inside = ops.where(observed, values, center[:, np.newaxis])
            real = transform.to_real(inside[..., np.newaxis])[..., 0]
            center, spread = measure_values(real, observed, ops)
            if integer:
                spread = ops.larger(spread, _SPREAD_OF_INTEGERS)
        return ValueScaling(center[:, np.newaxis], spread[:, np.newaxis], ops, transform)

    def batch(
        self,
        time: Any,
        values: Any,
        observed: Any,
        num_context: Any,
        periods: Any,
        ops: ArrayOps = NUMPY_OPS,
        covariates: Any = None,
    ) -> tuple[dict[str, Any], ValueScaling]:
        """Makes a batch of the data contract, with `y_target`, and its scaling.

        Where `time`, `observed`, `periods` and `covariates` have 1 in the position of B, all
        sequences share their points.

        Args:
            time: `[B, N]` float64, the context first.
            values: `[B, N, 1]` float64, in user units, NaN where a value is missing; those of
                targets may all be.
            observed: `[B, N]` bool: of the context the rows with a value, of the targets those
                to be predicted or scored.
            num_context: N_C.
            periods: `[B, 3]` float64, in units of time, 0 = none.
            ops: the array functions for what the arguments are.
            covariates: `[B, N, D_c]` float64, in user units. They are not read for D_c = 0.
        """
        context, target = slice(None, num_context), slice(num_context, None)
        x = ContextTime.measure(time, observed, num_context, ops).x(time, periods, ops)
        if self.covariates.num_covariates:
            x = ops.join(x, self.covariates.scale(covariates, ops))
        # NaN is the only number that is not equal to itself.
        is_value = observed & (values[..., 0] == values[..., 0])
        scaling = self.value_scaling(values[:, context], is_value[:, context], ops)
        y = scaling.model_input(values, is_value)
        batch = {
            "x_context": x[:, context],
            "y_context": ops.clip(y[:, context], -FURTHEST_READ, FURTHEST_READ),
            "x_target": x[:, target],
            "y_target": y[:, target],
            "context_mask": observed[:, context],
            "target_mask": observed[:, target],
        }
        if scaling.transform is not None:
            batch["y_support"] = scaling.parts
        return batch, scaling
