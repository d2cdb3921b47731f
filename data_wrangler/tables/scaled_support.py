"""The support of scaled values, as models and samplers need it: a batch carries it as `y_support`.

A model predicts a normal distribution of scaled z, see `value_support`. Where a value is known to
lie in a cell (a whole number, or a value within the margin of a bound), its probability is that of
the cell, and what is drawn in the cell is the number that a model reads for it.
"""

import dataclasses
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.value_support import SupportTransform

NUM_PARTS = 6
"""How many numbers describe the support of one column of one sequence."""
FURTHEST = 1e12
"""The largest scaled y: what lies further away counts as that far, so that its square still fits in
float32."""

# A cell narrower than this many standard deviations has an even density.
_NARROW = 1e-3
_LOG_NORMAL_CONSTANT = 0.5 * float(np.log(2 * np.pi))


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledSupport:
    """The support of y = (z - reference) / spread; all attributes broadcast to y.

    Example:
        >>> from taylorformer.data_wrangler.tables.value_support import ValueSupport
        >>> counts = SupportTransform.of(ValueSupport.of(0, None, True, 1), np.array([2.0]))
        >>> scaled = ScaledSupport(np.zeros([1, 1]), np.ones([1, 1]), counts)
        >>> y = counts.to_real(np.arange(40.0)[:, np.newaxis])
        >>> round(float(np.exp(scaled.log_prob(3.0, 4.0, y)).sum()), 6)
        1.0

    Attributes:
        reference: float64, as z.
        spread: float64, positive.
        transform: of values to z.
    """

    reference: Any
    spread: Any
    transform: SupportTransform

    @classmethod
    def from_parts(cls, parts: Any, ops: ArrayOps = NUMPY_OPS) -> "ScaledSupport":
        """Reads the support of batches, `[.., D_y, 6]` float64, see `parts`."""
        reference, spread, softness, lower, upper, integer = (
            parts[..., number] for number in range(NUM_PARTS)
        )
        transform = SupportTransform(lower, upper, softness, integer > 0, ops)
        return cls(reference, spread, transform)

    @property
    def _ops(self) -> ArrayOps:
        return self.transform.ops

    def scale(self, real: Any) -> Any:
        """Returns y of z, float64, within `FURTHEST`."""
        return self._ops.clip((real - self.reference) / self.spread, -FURTHEST, FURTHEST)

    def values(self, y: Any) -> Any:
        """Returns the values in user units, float64, that scaled y stand for."""
        return self.transform.to_values(self._ops.cast(y, "float64") * self.spread + self.reference)

    def snap(self, y: Any) -> Any:
        """Returns y as a model reads the values that they stand for, float32.

        Other values than those of cells stay as they are.
        """
        ops = self._ops
        of_cell = ops.cast(self.scale(self.transform.to_real(self.values(y))), "float32")
        lowest, highest = self._margins()
        within = ops.smaller(ops.larger(y, lowest), highest)
        return ops.where(self.transform.integer, of_cell, within)

    def _margins(self) -> tuple[Any, Any]:
        """Returns the y of values at the ends of the margins, float32; -inf, inf without bounds."""
        ops, transform = self._ops, self.transform
        bounds = (transform.lower, transform.upper)
        ends = (transform.to_real(bound + 0.0 * transform.softness) for bound in bounds)
        lowest, highest = (ops.cast(self.scale(end), "float32") for end in ends)
        return (
            ops.where(transform.has_lower, lowest, np.float32(-np.inf)),
            ops.where(transform.has_upper, highest, np.float32(np.inf)),
        )

    def log_prob(self, mean: Any, scale: Any, y: Any) -> Any:
        """Returns log densities of y; of y in a cell the log probability of the cell.

        Args:
            mean: of the normal distribution of y.
            scale: its standard deviation.
            y: float32, as a model reads it.

        Returns:
            float64, in the broadcast shape.
        """
        ops = self._ops
        mean, scale = ops.cast(mean, "float64"), ops.cast(scale, "float64")
        lowest, highest = self._margins()
        is_low, is_high = y <= lowest, y >= highest
        y_exact = ops.cast(y, "float64")
        density = -0.5 * ((y_exact - mean) / scale) ** 2 - ops.log(scale) - _LOG_NORMAL_CONSTANT
        low, high = (self.scale(edge) for edge in self.transform.edges(self.values(y)))
        integer = self.transform.integer
        far = 0.0 * y_exact + FURTHEST
        low = ops.where(integer, low, ops.where(is_high, y_exact, -far))
        high = ops.where(integer, high, ops.where(is_low, y_exact, far))
        mass = self._log_mass((low - mean) / scale, (high - mean) / scale)
        return ops.where(integer | is_low | is_high, mass, density)

    def _log_mass(self, low: Any, high: Any) -> Any:
        """Returns the log probability of a standard normal between two numbers."""
        ops = self._ops
        # In the lower half, where the logarithm of the distribution is exact.
        flip = low + high > 0
        low, high = ops.where(flip, -high, low), ops.where(flip, -low, high)
        width = high - low
        narrow = width < _NARROW
        middle = (low + high) / 2
        even = -0.5 * middle**2 - _LOG_NORMAL_CONSTANT + ops.log(ops.larger(width, 1e-300))
        # Where it is not read, too, the gradient must be finite.
        low = ops.where(narrow, high - 1, low)
        log_high = ops.log_normal_cdf(high)
        wide = log_high + ops.log(-ops.expm1(ops.log_normal_cdf(low) - log_high))
        return ops.where(narrow, even, wide)
