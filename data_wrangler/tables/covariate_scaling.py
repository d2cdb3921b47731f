"""Covariates of a table, standardised, as further dimensions of x of a pretrained model."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.training_statistics import (
    measure_covariates,
    standardized_covariates,
)

FURTHEST_READ = 20.0
"""How many spreads from its mean a number is read: further out no pretrained model was trained."""


@dataclasses.dataclass(frozen=True)
class CovariateScaling:
    """The mean and the spread of D_c covariates; made by `measure`.

    Example:
        >>> scaling = CovariateScaling.measure([np.array([[0.0], [4.0]])])
        >>> scaling.scale(np.array([[[2.0], [4.0], [1e9]]])).ravel().tolist()
        [0.0, 1.0, 20.0]

    Attributes:
        center: D_c means.
        spread: D_c standard deviations; of a covariate that does not change, its size, or 1.
    """

    center: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def measure(cls, parts: Sequence[np.ndarray]) -> "CovariateScaling":
        """Measures the rows of several series together.

        Args:
            parts: each `[T, D_c]` float64, finite.
        """
        center, spread = measure_covariates(np.concatenate(parts))
        return cls(tuple(center.tolist()), tuple(spread.tolist()))

    @property
    def num_covariates(self) -> int:
        """D_c."""
        return len(self.center)

    def scale(self, covariates: Any, ops: ArrayOps = NUMPY_OPS) -> Any:
        """Standardises covariates `[..., D_c]` in user units; returns float32."""
        center, spread = np.array(self.center), np.array(self.spread)
        scaled = standardized_covariates(covariates, center, spread)
        return ops.cast(ops.clip(scaled, -FURTHEST_READ, FURTHEST_READ), "float32")

    def get_config(self) -> dict[str, Any]:
        """Returns the attributes, as JSON can hold them."""
        return {"center": list(self.center), "spread": list(self.spread)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "CovariateScaling":
        """Makes it of what `get_config` returned."""
        return cls(tuple(config["center"]), tuple(config["spread"]))


NO_COVARIATES = CovariateScaling((), ())
"""The scaling where there are none."""
