"""Gaussian-process regression tasks: sequences drawn from a GP, some of their points observed.

x is uniform in `x_range`, in no order; y is drawn from a GP whose hyper-parameters are drawn anew
for each sequence; the first N_C points are the context and the others the targets. Everything is
drawn in float64. Source: "Data generation" in the paper's appendix; the paper keeps 100,000
training sequences, here each batch is new.

Training, validation and test each have a separate stream of random numbers: also with one seed they
share no sequence.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_ends,
    check_integer,
    check_number,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, numbered_generator
from taylorformer.data_wrangler.tasks.drawn_batches import drawn_batches, split_points
from taylorformer.data_wrangler.tasks.kernels import JITTER, Kernel, cholesky_factor, find_kernel
from taylorformer.data_wrangler.tasks.lengths import check_lengths, draw_lengths
from taylorformer.data_wrangler.tasks.task_set import TaskSet

if TYPE_CHECKING:
    import tensorflow as tf

# Streams of random numbers: what is drawn from one never comes from another.
_TRAINING = 0
_HELD_OUT = {"test": 1, "validation": 2}
# Sequences of a held-out set are drawn so many at a time: a larger set begins with a smaller one.
_BLOCK = 256

# N, the ends of N_C, and the ends of x, as in the paper.
NUM_POINTS = 100
NUM_CONTEXT = (3, 97)
X_RANGE = (-2.0, 2.0)


def gaussian_process_tasks(
    kernel: str | Kernel,
    batch_size: int = 32,
    seed: int = 0,
    num_points: int = NUM_POINTS,
    num_context: tuple[int, int] = NUM_CONTEXT,
    x_range: tuple[float, float] = X_RANGE,
    jitter: float = JITTER,
    first_batch: int = 0,
    num_batches: int | None = None,
) -> "tf.data.Dataset":
    """Makes an endless data set of training batches, drawn on the fly.

    All sequences of a batch have the same N_C. Batch k is a function of `seed` and k alone, so a
    run that was stopped continues with `first_batch`.

    Example:
        >>> dataset = gaussian_process_tasks("rbf", batch_size=2, num_context=(30, 30))
        >>> inputs, y_target = next(iter(dataset))
        >>> inputs["x_context"].shape.as_list(), y_target.shape.as_list()
        ([2, 30, 1], [2, 70, 1])

    Args:
        kernel: "rbf", "matern", "periodic", or a `Kernel` with other ranges than the paper's.
        batch_size: B.
        seed: of everything that is drawn, 0 to 2^63 - 1.
        num_points: N = N_C + N_T.
        num_context: the smallest and the largest N_C; each number between is as likely.
        x_range: x is uniform between these ends.
        jitter: added to the diagonal of the covariance, in squared units of y.
        first_batch: how many batches of the endless row to leave out.
        num_batches: how many batches to draw. None: no end.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)` of the data contract, float32, D_x = D_y = 1,
        without masks: `x_context`, `y_context` `[B, N_C, 1]`, `x_target`, `y_target`
        `[B, N_T, 1]`. N_C and N_T are None in its `element_spec`, so that no graph is traced anew.

    Raises:
        TypeError: a number of the wrong kind.
        ValueError: an unknown kernel, or numbers that are out of range.
    """
    distribution = _Distribution(kernel, num_points, num_context, x_range, jitter)
    batch_size = check_integer("batch_size", batch_size, 1)
    seed = check_integer("seed", seed, 0, LARGEST_SEED)

    def draw(number: int) -> dict[str, np.ndarray]:
        return _training_batch(distribution, batch_size, seed, number)

    return drawn_batches(draw, batch_size, 1, 1, first_batch, num_batches)


def held_out_gaussian_process_tasks(
    kernel: str | Kernel,
    num_sequences: int,
    seed: int,
    num_points: int = NUM_POINTS,
    num_context: tuple[int, int] = NUM_CONTEXT,
    x_range: tuple[float, float] = X_RANGE,
    jitter: float = JITTER,
    part: str = "test",
) -> TaskSet:
    """Draws held-out sequences, with an N_C drawn for each of them.

    Example:
        >>> tasks = held_out_gaussian_process_tasks("matern", num_sequences=20, seed=0)
        >>> tasks.x.shape, sorted(tasks.hyperparameters), tasks.about["kernel"]
        ((20, 100, 1), ['length_scale'], 'matern')

    Args:
        kernel: as in `gaussian_process_tasks`, like the arguments not named here.
        num_sequences: n. A larger set begins with the smaller ones of the same seed.
        seed: of everything that is drawn, 0 to 2^63 - 1.
        num_points: N = N_C + N_T.
        num_context: the smallest and the largest N_C.
        x_range: x is uniform between these ends.
        jitter: added to the diagonal of the covariance, in squared units of y.
        part: "test" or "validation", which share no sequence, nor does training.

    Returns:
        The sequences in float64, with their hyper-parameters; `about` holds all the arguments.

    Raises:
        TypeError: a number of the wrong kind.
        ValueError: an unknown kernel, or numbers that are out of range.
    """
    distribution = _Distribution(kernel, num_points, num_context, x_range, jitter)
    num_sequences = check_integer("num_sequences", num_sequences, 1)
    seed = check_integer("seed", seed, 0, LARGEST_SEED)
    part = check_choice("part", part, tuple(_HELD_OUT))
    blocks = []
    for number in range(-(-num_sequences // _BLOCK)):
        rng = numbered_generator(seed, _HELD_OUT[part], number)
        num_contexts = draw_lengths(rng, distribution.num_context, _BLOCK)
        x, y, hyperparameters = distribution.draw(rng, _BLOCK)
        blocks.append({"x": x, "y": y, "num_context": num_contexts, **hyperparameters})
    drawn = {
        name: np.concatenate([block[name] for block in blocks])[:num_sequences]
        for name in blocks[0]
    }
    return TaskSet(
        drawn.pop("x"),
        drawn.pop("y"),
        drawn.pop("num_context"),
        about={
            "kind": "gaussian_process",
            "part": part,
            "num_sequences": num_sequences,
            "seed": seed,
            **distribution.about(),
        },
        hyperparameters=drawn,
    )


def draw_values(
    rng: np.random.Generator, kernel: Kernel, x: np.ndarray, jitter: float, **hyperparameters: Any
) -> np.ndarray:
    """Draws y at given x.

    Args:
        rng: the generator of the random numbers.
        kernel: the covariance function.
        x: `[B, N, D_x]`.
        jitter: added to the diagonal of the covariance, in squared units of y.
        **hyperparameters: `[B]`, or one number for all sequences.

    Returns:
        `[B, N, 1]` float64.

    Raises:
        ValueError: shapes or hyper-parameters that do not fit, or a jitter too small for float64.
    """
    covariance = kernel.covariance(x, x, **hyperparameters)
    diagonal = np.arange(x.shape[1])
    covariance[:, diagonal, diagonal] += jitter
    return cholesky_factor(covariance) @ rng.standard_normal([*x.shape[:2], 1])


def _training_batch(
    distribution: "_Distribution", batch_size: int, seed: int, number: int
) -> dict[str, np.ndarray]:
    rng = numbered_generator(seed, _TRAINING, number)
    (N_C,) = draw_lengths(rng, distribution.num_context, 1)
    x, y, _ = distribution.draw(rng, batch_size)
    return split_points(x.astype(np.float32), y.astype(np.float32), N_C)


class _Distribution:
    """The distribution of sequences: their hyper-parameters, their x, and their y given both."""

    def __init__(
        self,
        kernel: str | Kernel,
        num_points: int,
        num_context: tuple[int, int],
        x_range: tuple[float, float],
        jitter: float,
    ) -> None:
        self.kernel = find_kernel(kernel)
        self.num_points = check_integer("num_points", num_points, 1)
        # At least one target is left.
        self.num_context = check_lengths("num_context", num_context, 0, self.num_points - 1)
        low, high = check_ends("x_range", x_range)
        self.low = check_number("x_range", low)
        self.high = check_number("x_range", high, above=self.low)
        self.jitter = check_number("jitter", jitter, above=0.0)

    def draw(
        self, rng: np.random.Generator, size: int
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Draws x and y, `[size, N, 1]`, and hyper-parameters, `[size]` by name."""
        hyperparameters = self.kernel.draw_hyperparameters(rng, size)
        x = rng.uniform(self.low, self.high, size=[size, self.num_points, 1])
        return x, draw_values(rng, self.kernel, x, self.jitter, **hyperparameters), hyperparameters

    def about(self) -> dict[str, Any]:
        """Returns what JSON can hold of it."""
        return {
            "kernel": self.kernel.name,
            "ranges": {name: list(ends) for name, ends in self.kernel.ranges.items()},
            "num_points": self.num_points,
            "num_context": list(self.num_context),
            "x_range": [self.low, self.high],
            "jitter": self.jitter,
        }
