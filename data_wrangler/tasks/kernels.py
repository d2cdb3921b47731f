"""The covariance functions of the Gaussian-process tasks, as data."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_ends, check_number

JITTER = 1e-6
"""The variance that is added to the diagonal of every covariance, in squared units of y.

It is part of the distribution of y: independent noise of standard deviation 1e-3. Points with equal
x are different points, each with a noise value of it alone.
"""


def _distance(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    if x.shape[-1] == 1:
        return np.abs(x - z[:, 0])
    return np.sqrt(np.square(x[:, np.newaxis] - z).sum(axis=-1))


def _rbf(x: np.ndarray, z: np.ndarray, scale: float, length_scale: float) -> np.ndarray:
    return scale**2 * np.exp(-0.5 * (_distance(x, z) / length_scale) ** 2)


def _matern(x: np.ndarray, z: np.ndarray, length_scale: float) -> np.ndarray:
    d = math.sqrt(5.0) / length_scale * _distance(x, z)
    return (1.0 + d + d**2 / 3.0) * np.exp(-d)


def _periodic(x: np.ndarray, z: np.ndarray, length_scale: float, period: float) -> np.ndarray:
    a, b = math.pi / period * x, math.pi / period * z[:, 0]
    # sin(a - b) from N + M sines, not N M of them: they would take most of the time.
    sine = np.sin(a) * np.cos(b) - np.cos(a) * np.sin(b)
    return np.exp(-2.0 * (sine / length_scale) ** 2)


_FORMULAS: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "rbf": (_rbf, ("scale", "length_scale")),
    "matern": (_matern, ("length_scale",)),
    "periodic": (_periodic, ("length_scale", "period")),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """A covariance function and the distribution of its hyper-parameters.

    With r the Euclidean distance of two points:

    - "rbf": `s^2 exp(-r^2 / 2 l^2)`, s = `scale`, l = `length_scale`;
    - "matern", of order 5/2: `(1 + sqrt(5) r / l + 5 r^2 / 3 l^2) exp(-sqrt(5) r / l)`;
    - "periodic": `exp(-2 sin^2(pi r / p) / l^2)`, p = `period`, only for D_x = 1. The paper's text
      has r squared inside the sine, a misprint: that is not periodic.

    Source: "Data generation" in the paper's appendix.

    Example:
        >>> narrow = Kernel("rbf", {"scale": (1.0, 1.0), "length_scale": (0.1, 0.2)})
        >>> x = np.array([[[0.0], [0.1]]])
        >>> narrow.covariance(x, x, scale=1.0, length_scale=0.1).round(3).tolist()
        [[[1.0, 0.607], [0.607, 1.0]]]

    Args:
        name: "rbf", "matern" or "periodic".
        ranges: for each hyper-parameter the ends between which it is uniform, above 0; equal ends
            fix it. `scale` is in units of y, the others in units of x.

    Raises:
        TypeError: a range that is not of numbers.
        ValueError: another name, other hyper-parameters than those of the kernel, or a range that
            is none.
    """

    name: str
    ranges: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", check_choice("name", self.name, tuple(_FORMULAS)))
        self._check_names("ranges", self.ranges)
        ranges = {}
        for name in self.hyperparameter_names:
            ends = check_ends(name, self.ranges[name])
            low, high = (check_number(name, end) for end in ends)
            if not 0.0 < low <= high:
                raise ValueError(
                    f"`ranges` must hold (low, high) with 0 < low <= high. Received: "
                    f"{name}={self.ranges[name]!r}"
                )
            ranges[name] = (low, high)
        object.__setattr__(self, "ranges", ranges)

    @property
    def hyperparameter_names(self) -> tuple[str, ...]:
        """The names of the hyper-parameters, in the order they are drawn."""
        _, names = _FORMULAS[self.name]
        return names

    def draw_hyperparameters(self, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        """Draws hyper-parameters of sequences.

        Args:
            rng: the generator of the random numbers.
            size: B.

        Returns:
            `[B]` float64 by name.
        """
        return {name: rng.uniform(*ends, size=size) for name, ends in self.ranges.items()}

    def covariance(self, x: Any, z: Any, **hyperparameters: Any) -> np.ndarray:
        """Returns the covariances of the values at two sets of points, without jitter.

        Args:
            x: `[B, N, D_x]`.
            z: `[B, M, D_x]`.
            **hyperparameters: `[B]`, or one number for all sequences.

        Returns:
            `[B, N, M]` float64, in squared units of y.

        Raises:
            ValueError: shapes that do not fit, or other hyper-parameters than those of the kernel.
        """
        x, z = np.asarray(x, np.float64), np.asarray(z, np.float64)
        if x.ndim != 3 or z.ndim != 3 or x.shape[::2] != z.shape[::2]:
            raise ValueError(
                "`x` and `z` must have the shapes [B, N, D_x] and [B, M, D_x]. "
                f"Received: {list(x.shape)} and {list(z.shape)}"
            )
        D_x = x.shape[-1]
        if self.name == "periodic" and D_x != 1:
            # Of a distance in more dimensions it is no covariance: not positive definite.
            raise ValueError(f"the periodic kernel must have D_x = 1. Received: D_x = {D_x}")
        columns = self._columns(hyperparameters, len(x))
        formula, _ = _FORMULAS[self.name]
        covariance = np.empty([len(x), x.shape[1], z.shape[1]])
        # One sequence after the other: its arrays stay in the processor's cache, which is three
        # times as quick as whole batches.
        for b in range(len(x)):
            values = {name: column[b] for name, column in columns.items()}
            covariance[b] = formula(x[b], z[b], **values)
        return covariance

    def _columns(self, hyperparameters: Mapping[str, Any], size: int) -> dict[str, np.ndarray]:
        self._check_names("hyperparameters", hyperparameters)
        values = {name: np.asarray(value, np.float64) for name, value in hyperparameters.items()}
        for name, value in values.items():
            if value.shape not in ((), (size,)):
                raise ValueError(
                    f"`{name}` must be one number or of the shape [B] = [{size}]. "
                    f"Received: {list(value.shape)}"
                )
            if not (np.isfinite(value) & (value > 0.0)).all():
                raise ValueError(
                    f"`{name}` must be finite and above 0. Received: {name}={value.min()}"
                )
        return {name: np.broadcast_to(value, [size]) for name, value in values.items()}

    def _check_names(self, what: str, given: Mapping[str, Any]) -> None:
        if set(given) != set(self.hyperparameter_names):
            raise ValueError(
                f"`{what}` of the {self.name} kernel must be "
                f"{', '.join(self.hyperparameter_names)}. Received: {', '.join(given) or 'none'}"
            )


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("rbf", {"scale": (0.1, 1.0), "length_scale": (0.1, 0.6)}),
        Kernel("matern", {"length_scale": (0.3, 1.0)}),
        Kernel("periodic", {"length_scale": (0.1, 0.6), "period": (0.5, 1.0)}),
    )
}
"""The kernels of the paper, with its ranges of their hyper-parameters."""


def find_kernel(kernel: str | Kernel) -> Kernel:
    """Returns the paper's kernel of a name; returns a `Kernel` as it is.

    Example:
        >>> find_kernel("matern").ranges
        {'length_scale': (0.3, 1.0)}

    Raises:
        ValueError: no kernel has this name.
    """
    if isinstance(kernel, Kernel):
        return kernel
    return KERNELS[check_choice("kernel", kernel, tuple(KERNELS))]


def cholesky_factor(covariance: np.ndarray) -> np.ndarray:
    """Returns the lower triangular L with `L L^T` = `covariance`, `[..., N, N]` float64.

    Raises:
        ValueError: a covariance is not positive definite in float64.
    """
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "the covariance must be positive definite in float64; take a larger jitter. "
            f"Received: {len(covariance)} matrices of {covariance.shape[-1]} points ({error})"
        ) from error
