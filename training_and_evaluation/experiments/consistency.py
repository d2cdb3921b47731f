"""Consistency: how much a score depends on the order of the targets.

Targets of a random process have one joint density, whatever their order. A model that reads earlier
targets may contradict itself from order to order; trained on random orders it does so little. The
paper measures this in its section on consistency.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.experiments.scores import SCORE_BATCH

NUM_ORDERS = 40
"""Orders of each sequence in the paper."""
_INTERVAL_95 = (0.025, 0.975)


@dataclasses.dataclass(frozen=True)
class Consistency:
    """Scores of the same sequences under several orders of their targets.

    Example:
        >>> consistency = Consistency(np.array([[1.0, 2.0], [1.0, 4.0]]))
        >>> consistency.deviations.tolist()
        [0.0, 1.0]
        >>> consistency.summary()["mean"]
        0.5

    Attributes:
        log_likelihoods: `[orders, n]`, log p(Y_T given X_T, X_C, Y_C) / N_T, in nats per target.
    """

    log_likelihoods: np.ndarray

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation over the orders, `[n]`; 0 where the order does not matter."""
        return np.std(self.log_likelihoods, axis=0)

    def summary(self) -> dict[str, Any]:
        """Returns mean and 95 % interval of the deviations over sequences, and the counts."""
        low, high = np.quantile(self.deviations, _INTERVAL_95)
        orders, sequences = self.log_likelihoods.shape
        return {
            "orders": orders,
            "sequences": sequences,
            "mean": float(np.mean(self.deviations)),
            "interval_95": [float(low), float(high)],
        }


def measure_consistency(
    model: ProbabilisticModel,
    tasks: TaskSet,
    num_orders: int = NUM_ORDERS,
    seed: int = 0,
    batch_size: int = SCORE_BATCH,
    progress: Callable[[int, int], None] | None = None,
) -> Consistency:
    """Scores sequences under random orders of their targets.

    Example:
        >>> from taylorformer import NeuralProcess
        >>> model = NeuralProcess(width=4, latent_dim=2, log_prob_latents=3, seed=0)
        >>> x = np.linspace(-1, 1, 4).reshape(1, 4, 1)
        >>> tasks = TaskSet(x, np.sin(x), num_context=[1])
        >>> measure_consistency(model, tasks, num_orders=2).log_likelihoods.shape
        (2, 1)

    Args:
        model: a trained model.
        tasks: n sequences.
        num_orders: how many orders of each sequence, at least 2.
        seed: of the orders. Those of a sequence do not depend on `batch_size`.
        batch_size: how many sequences are scored at once.
        progress: called with the number of scores that are done, and of all.

    Raises:
        TypeError, ValueError: a number outside its range.
    """
    num_orders = check_integer("num_orders", num_orders, 2)
    seed = check_integer("seed", seed, 0)
    batch_size = check_integer("batch_size", batch_size, 1)
    scores = np.zeros([num_orders, len(tasks)])
    done = 0
    for rows, inputs, y_target in tasks.batches(batch_size):
        counts = tasks.num_target[rows]
        generators = [np.random.default_rng([seed, int(row)]) for row in rows]
        for number in range(num_orders):
            # Padding stays at the end.
            order = np.tile(np.arange(y_target.shape[1]), [len(rows), 1])
            for row, generator, count in zip(order, generators, counts, strict=True):
                row[:count] = generator.permutation(count)
            order = order[..., np.newaxis]
            x_target = np.take_along_axis(inputs["x_target"], order, axis=1)
            outputs = model.teacher_forced(
                {**inputs, "x_target": x_target}, np.take_along_axis(y_target, order, axis=1)
            )
            scores[number, rows] = np.float64(outputs["log_prob"]) / counts
            done += len(rows)
            if progress is not None:
                progress(done, num_orders * len(tasks))
    return Consistency(scores)
