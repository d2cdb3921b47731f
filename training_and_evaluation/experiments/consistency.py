"""Consistency: how much a score depends on the order of the targets (paper, section of that name).

A model of a random process gives the targets one joint density, whatever their order. A model that
reads earlier targets need not; trained on random orders it comes close.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.probabilistic_model import ProbabilisticModel


@dataclasses.dataclass(frozen=True)
class Consistency:
    """Scores of the same sequences under several orders of their targets.

    Attributes:
        log_likelihoods: `[orders, n]`, log p(Y_T given X_T, X_C, Y_C) / N_T, in nats per target.
    """

    log_likelihoods: np.ndarray

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation over the orders, `[n]`; 0 where the order does not matter."""
        return np.std(self.log_likelihoods, axis=0)

    def summary(self) -> dict[str, Any]:
        """Gives mean and 95 % interval of the deviations over sequences, and the counts."""
        low, high = np.quantile(self.deviations, [0.025, 0.975])
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
    num_orders: int = 40,
    seed: int = 0,
    batch_size: int = 50,
    progress: Callable[[int, int], None] | None = None,
) -> Consistency:
    """Scores sequences under random orders of their targets.

    Args:
        model: a trained model.
        tasks: n sequences.
        num_orders: how many orders of each, at least 2; the paper has 40.
        seed: of the orders. Those of a sequence do not depend on `batch_size`.
        batch_size: how many sequences are scored at once.
        progress: called with the scores that are done, and all.

    Raises:
        TypeError, ValueError: a number outside its range.
    """
    check_integer("num_orders", num_orders, 2)
    check_integer("seed", seed, 0)
    check_integer("batch_size", batch_size, 1)
    scores = np.zeros([num_orders, len(tasks)])
    done = 0
    for rows, inputs, y_target in tasks.batches(batch_size):
        counts = tasks.num_target[rows]
        generators = [np.random.default_rng([seed, int(row)]) for row in rows]
        for number in range(num_orders):
            # Padding stays at the end.
            order = np.tile(np.arange(y_target.shape[1]), [len(rows), 1])
            for place, (generator, count) in enumerate(zip(generators, counts, strict=True)):
                order[place, :count] = generator.permutation(count)
            order = order[..., np.newaxis]
            moved = {**inputs, "x_target": np.take_along_axis(inputs["x_target"], order, axis=1)}
            outputs = model.teacher_forced(moved, np.take_along_axis(y_target, order, axis=1))
            scores[number, rows] = np.float64(outputs["log_prob"]) / counts
            done += len(rows)
            if progress is not None:
                progress(done, num_orders * len(tasks))
    return Consistency(scores)
