"""Log-likelihoods of held-out sequences, one for each, and their means."""

from collections.abc import Callable
from typing import Any

import numpy as np

from taylorformer.comparison_models.latent_model import LatentModel
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.probabilistic_model import ProbabilisticModel

SCORE_BATCH = 50
"""Sequences that are scored at once: enough to keep a processor busy, with little memory."""


def score_tasks(
    model: ProbabilisticModel,
    tasks: TaskSet,
    batch_size: int = SCORE_BATCH,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Scores held-out sequences.

    Example:
        >>> from taylorformer import NeuralProcess
        >>> model = NeuralProcess(width=4, latent_dim=2, log_prob_latents=3, seed=0)
        >>> x = np.linspace(-1, 1, 8).reshape(2, 4, 1)
        >>> scores = score_tasks(model, TaskSet(x, np.sin(x), num_context=[1, 2]))
        >>> scores["log_likelihood"].shape
        (2,)

    Args:
        model: a trained model.
        tasks: n sequences.
        batch_size: how many are scored at once; it changes no score.
        progress: called with the number of sequences that are done, and of all.

    Returns:
        Arrays `[n]`, float64, in the order of the set. `log_likelihood`: log p(Y_T given X_T, X_C,
        Y_C) / N_T, exact with the true values of all earlier targets for autoregressive models, by
        importance weighting for latent ones. `squared_error`: of the mean of `call`, averaged over
        targets and outputs. Latent models also have `monte_carlo_error`, the standard error of the
        estimate, and `marginal_log_likelihood`, the average over targets of the log density of
        each alone.
    """
    all_scores: dict[str, np.ndarray] = {}
    done = 0
    for rows, inputs, y_target in tasks.batches(batch_size):
        count = tasks.num_target[rows]
        if isinstance(model, LatentModel):
            # Each sequence has a key, so that their Monte-Carlo errors average out.
            outputs = model(inputs)
            log_prob, error = model.log_prob(
                inputs, y_target, sequence_keys=rows, return_error=True
            )
            marginal = model.marginal_log_prob(inputs, y_target, sequence_keys=rows)
            scores = {
                "monte_carlo_error": np.float64(error) / count,
                "marginal_log_likelihood": np.float64(marginal) / count,
            }
        else:
            outputs = model.teacher_forced(inputs, y_target)
            log_prob, scores = outputs["log_prob"], {}
        squares = np.mean(np.square(np.float64(outputs["mean"]) - y_target), axis=-1)
        scores["squared_error"] = np.sum(squares, axis=1, where=inputs["target_mask"]) / count
        scores["log_likelihood"] = np.float64(log_prob) / count
        for name, values in scores.items():
            all_scores.setdefault(name, np.zeros(len(tasks)))[rows] = values
        done += len(rows)
        if progress is not None:
            progress(done, len(tasks))
    return all_scores


def mean_and_error(values: np.ndarray) -> dict[str, float | None]:
    """Returns the mean over sequences and its standard error; None where it is not a number."""
    values = np.asarray(values, np.float64)
    if not np.all(np.isfinite(values)):
        return {"mean": None, "standard_error": None}
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return {"mean": float(np.mean(values)), "standard_error": finite_or_none(error)}


def finite_or_none(value: Any) -> float | None:
    """Returns a number as JSON can hold it, None if it is not finite."""
    return float(value) if np.isfinite(value) else None
