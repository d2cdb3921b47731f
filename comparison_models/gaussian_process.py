"""The exact Gaussian process: the ceiling of every model on the Gaussian-process tasks.

Every number comes from one batched Cholesky factor L of the joint covariance of context and
targets, in the order they are scored. With `w = L^-1 y`, the one-step conditional of point i given
all points before it is Normal with mean `L[i, :i] w[:i]` and scale `L[i, i]`, and the
distribution of the targets given the context has the mean `L_TC w_C` and the factor `L_TT`.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from taylorformer.data_wrangler.batch import (
    check_finite,
    check_keys,
    check_shapes,
    tiled_arrays,
)
from taylorformer.data_wrangler.checks import check_integer, check_number
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED
from taylorformer.data_wrangler.tasks.kernels import JITTER, Kernel, cholesky_factor, find_kernel
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.sampling.counter_noise import normal_noise

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# So few that sequences of like N_C come together, and their matrices take little memory.
_BATCH_SIZE = 64


class GaussianProcess:
    """The GP that a task was drawn from, its kernel and hyper-parameters known.

    It is no Keras model: it has nothing to train, and works in float64. Its methods take batches
    of the data contract (D_y = 1; masks are honoured, N_C = 0 is legal) and the hyper-parameters
    of each sequence, `[B]` by name or one number for all. Give it x and y as they were drawn, in
    float64: the smallest scales are 1e-3 of those of y, so that of the 7 digits of float32 only 4
    are left of a distance from the mean. (On the paper's tasks that moved the score of a sequence
    by up to 0.0012 a target, and no average of 2,000 in the third digit.)

    Example:
        >>> from taylorformer.data_wrangler import held_out_gaussian_process_tasks
        >>> tasks = held_out_gaussian_process_tasks("rbf", num_sequences=50, seed=0)
        >>> scores = GaussianProcess("rbf").score_task_set(tasks, min_scale=1e-3)
        >>> scores["ceiling"].shape
        (50,)

    Args:
        kernel: "rbf", "matern", "periodic" or a `Kernel`; its ranges are not used.
        jitter: what stands on the diagonal besides the kernel, in squared units of y. It is a part
            of the distribution of the data: points with equal x are different points, with
            independent noise.

    Raises:
        ValueError: an unknown kernel, or a jitter not above 0.
    """

    def __init__(self, kernel: str | Kernel, jitter: float = JITTER) -> None:
        self.kernel = find_kernel(kernel)
        self.jitter = check_number("jitter", jitter, above=0.0)

    def one_step(
        self,
        inputs: Mapping[str, Any],
        y_target: Any,
        hyperparameters: Mapping[str, Any],
    ) -> dict[str, np.ndarray]:
        """Returns the one-step conditionals p(y_i given context and earlier targets).

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, 1]`.
            hyperparameters: `[B]` by name.

        Returns:
            `mean` and `scale`, `[B, N_T, 1]` float64; 0 and 1 at masked targets.
        """
        joint = _Joint(self, inputs, y_target, hyperparameters)
        mean, scale = joint.one_step
        return {"mean": mean[..., np.newaxis], "scale": scale[..., np.newaxis]}

    def log_prob(
        self,
        inputs: Mapping[str, Any],
        y_target: Any,
        hyperparameters: Mapping[str, Any],
    ) -> np.ndarray:
        """Returns the exact log p(Y_T given X_T, X_C, Y_C), `[B]` float64, in nats.

        The arguments are those of `one_step`. Masked targets are not scored.
        """
        return self.ceiling(inputs, y_target, hyperparameters, min_scale=0.0)

    def ceiling(
        self,
        inputs: Mapping[str, Any],
        y_target: Any,
        hyperparameters: Mapping[str, Any],
        min_scale: float,
    ) -> np.ndarray:
        """Returns the most that a model with a smallest scale can reach, in expectation.

        It is the sum over the one-step conditionals, in the order given, of
        `log N(y_i; m_i, max(sd_i, min_scale))`. No model whose one-step conditionals are Normal
        with scales of at least `min_scale` does better on average over the data.

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, 1]`.
            hyperparameters: `[B]` by name.
            min_scale: the smallest scale of the model, in units of y. 0: `log_prob`.

        Returns:
            `[B]` float64, in nats. Masked targets are not scored.
        """
        min_scale = check_number("min_scale", min_scale, minimum=0.0)
        return _Joint(self, inputs, y_target, hyperparameters).log_prob(min_scale)

    def condition(
        self, inputs: Mapping[str, Any], hyperparameters: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """Returns the joint distribution of the targets given the context.

        Args:
            inputs: a batch of the data contract.
            hyperparameters: `[B]` by name.

        Returns:
            `mean` `[B, N_T, 1]` and `covariance` `[B, N_T, N_T]` of y, so with the jitter on the
            diagonal, float64. A masked target has mean 0 and variance 1, and is
            independent of all others.
        """
        mean, factor = _Joint(self, inputs, None, hyperparameters).condition()
        return {"mean": mean[..., np.newaxis], "covariance": factor @ np.swapaxes(factor, 1, 2)}

    def sample(
        self,
        inputs: Mapping[str, Any],
        hyperparameters: Mapping[str, Any],
        num_samples: int,
        seed: int,
        sequence_keys: Any = None,
    ) -> np.ndarray:
        """Draws joint samples of the targets.

        As with the models, the noise of (sample s, sequence b, target i) is a function of (seed,
        key of b, s, i), and of nothing else.

        Args:
            inputs: a batch of the data contract.
            hyperparameters: `[B]` by name.
            num_samples: S.
            seed: a 64-bit integer.
            sequence_keys: `[B]` integers. None: every sequence has key 0, and so the same noise.

        Returns:
            `[S, B, N_T, 1]` float64, 0 at masked targets.
        """
        num_samples = check_integer("num_samples", num_samples, 1)
        seed = check_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
        joint = _Joint(self, inputs, None, hyperparameters)
        mean, factor = joint.condition()
        B, N_T = mean.shape
        keys = np.zeros(B, np.int64) if sequence_keys is None else np.asarray(sequence_keys)
        if keys.shape != (B,) or keys.dtype.kind not in "iu":
            raise ValueError(
                f"`sequence_keys` must be integers of the shape [B] = [{B}]. "
                f"Received: dtype {keys.dtype}, shape {list(keys.shape)}"
            )
        samples = np.arange(num_samples)[:, np.newaxis, np.newaxis]
        noise = normal_noise(seed, keys[:, np.newaxis], samples, np.arange(N_T), 1).numpy()
        drawn = mean[..., np.newaxis] + factor @ noise.astype(np.float64)
        return np.where(joint.target_mask[..., np.newaxis], drawn, 0.0)

    def score_task_set(self, tasks: TaskSet, min_scale: float) -> dict[str, np.ndarray]:
        """Scores held-out sequences under their true distribution.

        Reads the float64 arrays of `tasks`, not batches in float32, for the reason given above.
        With the tasks' jitter of 1e-6 no one-step scale is below 1e-3, so that a `min_scale` of
        1e-3 or less changes nothing: `ceiling` is `exact`.

        Args:
            tasks: sequences drawn from this kernel, with their hyper-parameters.
            min_scale: as in `ceiling`.

        Returns:
            `exact` (no floor) and `ceiling`, `[n]` float64 in the order of the set: log densities
            per target, in nats.

        Raises:
            ValueError: `tasks` were drawn from another distribution.
        """
        min_scale = check_number("min_scale", min_scale, minimum=0.0)
        settings: dict[str, Any] = {"kernel": self.kernel.name, "jitter": self.jitter}
        for name, value in settings.items():
            if tasks.about.get(name, value) != value:
                raise ValueError(
                    f"`tasks` must be drawn with the {name} {value!r}, as this process has. "
                    f"Received: {tasks.about[name]!r}"
                )
        exact, ceiling = np.zeros(len(tasks)), np.zeros(len(tasks))
        for rows, inputs, y_target in tasks.batches(_BATCH_SIZE, dtype="float64"):
            values = {name: value[rows] for name, value in tasks.hyperparameters.items()}
            joint = _Joint(self, inputs, y_target, values)
            exact[rows] = joint.log_prob(0.0) / tasks.num_target[rows]
            ceiling[rows] = joint.log_prob(min_scale) / tasks.num_target[rows]
        return {"exact": exact, "ceiling": ceiling}


class _Joint:
    """Context and targets of a batch in one row, and the Cholesky factor of their covariance.

    A masked point has x = y = 0 and a unit row of the covariance, and so of the factor: it is
    independent of every other point, and its one-step conditional is N(0, 1).
    """

    def __init__(
        self,
        process: GaussianProcess,
        inputs: Mapping[str, Any],
        y_target: Any,
        hyperparameters: Mapping[str, Any],
    ) -> None:
        check_keys(inputs)
        batch = {name: np.asarray(value) for name, value in inputs.items() if name != "y_target"}
        if y_target is not None:
            batch["y_target"] = np.asarray(y_target)
        sizes = check_shapes({name: value.shape for name, value in batch.items()})
        batch = tiled_arrays(batch)
        if sizes["D_y"] != 1:
            raise ValueError(f"`y_context` must have D_y = 1. Received: D_y = {sizes['D_y']}")
        check_finite(batch)
        masks, x, y = [], [], []
        for side in ("context", "target"):
            x_of_side = batch[f"x_{side}"]
            mask = batch.get(f"{side}_mask", np.ones(x_of_side.shape[:2], bool)).astype(bool)
            values = batch.get(f"y_{side}", np.zeros([*x_of_side.shape[:2], 1]))
            masks.append(mask)
            x.append(np.where(mask[..., np.newaxis], x_of_side.astype(np.float64), 0.0))
            y.append(np.where(mask, values[..., 0].astype(np.float64), 0.0))
        self.target_mask = masks[1]
        self.y = np.concatenate(y, axis=1)
        self._num_context = y[0].shape[1]
        mask = np.concatenate(masks, axis=1)
        B, N = mask.shape
        # Observed points first, in their order, and only as many as there are: sequences of a
        # padded batch have like N, but twice as many points with the masked ones.
        order = np.argsort(~mask, axis=1, kind="stable")[:, : mask.sum(axis=1).max()]
        seen = np.take_along_axis(mask, order, axis=1)
        points = np.take_along_axis(np.concatenate(x, axis=1), order[..., np.newaxis], axis=1)
        covariance = process.kernel.covariance(points, points, **hyperparameters)
        covariance *= seen[:, :, np.newaxis] & seen[:, np.newaxis]
        diagonal = np.arange(seen.shape[1])
        covariance[:, diagonal, diagonal] += np.where(seen, process.jitter, 1.0)
        self._factor = np.tile(np.eye(N), [B, 1, 1])
        rows = np.arange(B)[:, np.newaxis, np.newaxis]
        self._factor[rows, order[:, :, np.newaxis], order[:, np.newaxis]] = cholesky_factor(
            covariance
        )
        diagonal = np.arange(N)
        self._scale = self._factor[:, diagonal, diagonal]

    def _means(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Solves `L w = y` for the first points; returns one-step means and w, `[B, length]` each.

        The sum that is taken from y_i in the i-th step of a forward substitution is the mean of y_i
        given all points before it.
        """
        means = np.zeros_like(self.y[:, :length])
        w = np.zeros_like(means)
        for i in range(length):
            means[:, i] = np.einsum("bj,bj->b", self._factor[:, i, :i], w[:, :i])
            w[:, i] = (self.y[:, i] - means[:, i]) / self._scale[:, i]
        return means, w

    @functools.cached_property
    def one_step(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns means and scales of the targets, `[B, N_T]`."""
        means, _ = self._means(self.y.shape[1])
        return means[:, self._num_context :], self._scale[:, self._num_context :]

    def log_prob(self, min_scale: float) -> np.ndarray:
        """Returns the sum over the observed targets, `[B]`."""
        mean, scale = self.one_step
        scale = np.maximum(scale, min_scale)
        distance = (self.y[:, self._num_context :] - mean) / scale
        densities = -0.5 * distance**2 - np.log(scale) - _HALF_LOG_TWO_PI
        return np.where(self.target_mask, densities, 0.0).sum(axis=1)

    def condition(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mean `[B, N_T]` and the Cholesky factor of the covariance of the targets."""
        N_C = self._num_context
        _, w = self._means(N_C)
        mean = (self._factor[:, N_C:, :N_C] @ w[..., np.newaxis])[..., 0]
        return mean, self._factor[:, N_C:, N_C:]
