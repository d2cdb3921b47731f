"""Where one model is ahead of another on a Gaussian-process task, target by target.

    python -m benchmarks.paired_scores gp-rbf FIRST/model.keras SECOND/model.keras

Both models, as `taylorformer experiment` saves them, score the same sequences, each target with the
true values before it. A row of the table is a group of targets: the mean log density of both, that
of the Gaussian process which drew the sequences, and the difference of the two models with its
standard error over sequences. Validation sequences are the default: what is chosen by this table
must not be chosen on the test set.
"""

import argparse
import itertools
from collections.abc import Iterator

import keras
import numpy as np

from taylorformer import load_model
from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.tasks.kernels import cholesky_factor, find_kernel
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.training_and_evaluation.experiments.presets import find_task

_BATCH = 50
_CONTEXT_LIMITS = (3, 10, 30, 60, 98)
_INDEX_LIMITS = (0, 1, 5, 20, 50, 97)
_DISTANCE_LIMITS = (0.0, 0.01, 0.03, 0.1, 0.3, 4.0)
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


def log_densities(model: keras.Model, tasks: TaskSet) -> np.ndarray:
    """Returns the log density of each point `[n, N]`, NaN where it is no target."""
    densities = np.full(tasks.x.shape[:2], np.nan)
    for rows, inputs, y_target in tasks.batches(_BATCH):
        outputs = model.teacher_forced(inputs, y_target)
        mean, scale = (np.float64(outputs[name])[..., 0] for name in ("mean", "scale"))
        z = (y_target[..., 0] - mean) / scale
        log_density = -0.5 * z**2 - np.log(scale) - _HALF_LOG_TWO_PI
        for row, mask, values in zip(rows, inputs["target_mask"], log_density, strict=True):
            start = tasks.num_context[row]
            densities[row, start : start + mask.sum()] = values[mask]
    return densities


def exact_log_densities(kernel_name: str, tasks: TaskSet) -> np.ndarray:
    """Returns the log density `[n, N]` of each point given those before it, of the true process."""
    kernel = find_kernel(kernel_name)
    covariance = kernel.covariance(tasks.x, tasks.x, **tasks.hyperparameters)
    diagonal = np.arange(tasks.x.shape[1])
    covariance[:, diagonal, diagonal] += tasks.about["jitter"]
    factor = cholesky_factor(covariance)
    z = np.linalg.solve(factor, tasks.y)[..., 0]
    scale = factor[:, diagonal, diagonal]
    return -0.5 * z**2 - np.log(scale) - _HALF_LOG_TWO_PI


def groups(tasks: TaskSet) -> Iterator[tuple[str, np.ndarray]]:
    """Yields names of groups of targets, and `[n, N]` bool."""
    shape = tasks.x.shape[:2]
    index = np.arange(shape[1]) - tasks.num_context[:, np.newaxis]
    is_target = index >= 0
    yield "all", is_target
    for name, values in tasks.hyperparameters.items():
        limits = np.quantile(values, [0, 1 / 3, 2 / 3, 1])
        for low, high in itertools.pairwise(limits):
            chosen = (values >= low) & (values <= high)
            yield f"{name} {low:.2f} to {high:.2f}", is_target & chosen[:, np.newaxis]
    for low, high in itertools.pairwise(_CONTEXT_LIMITS):
        chosen = (tasks.num_context >= low) & (tasks.num_context < high)
        yield f"N_C {low} to {high - 1}", is_target & chosen[:, np.newaxis]
    for low, high in itertools.pairwise(_INDEX_LIMITS):
        yield f"targets {low} to {high - 1}", is_target & (index >= low) & (index < high)
    x = tasks.x[..., 0]
    away = np.abs(x[:, :, np.newaxis] - x[:, np.newaxis])
    rows = np.arange(shape[1])
    away = np.where(rows[:, np.newaxis] > rows, away, np.inf).min(axis=-1)
    for low, high in itertools.pairwise(_DISTANCE_LIMITS):
        chosen = (away >= low) & (away < high)
        yield f"nearest {low:g} to {high:g} away", is_target & chosen


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--sequences", type=int, default=1000)
    options = parser.parse_args()
    kernel = find_task(options.task).source
    tasks = held_out_gaussian_process_tasks(kernel, options.sequences, 0, part=options.part)
    first, second = (
        log_densities(load_model(path), tasks) for path in (options.first, options.second)
    )
    exact = exact_log_densities(kernel, tasks)
    print("| targets | number | first | second | exact | first - second |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, chosen in groups(tasks):
        difference = np.where(chosen, first - second, 0.0).sum(axis=1)
        count = chosen.sum(axis=1)
        # The standard error of a ratio of sums over sequences.
        mean = difference.sum() / count.sum()
        error = np.sqrt(np.sum((difference - mean * count) ** 2)) / count.sum()
        means = " | ".join(f"{values[chosen].mean():.3f}" for values in (first, second, exact))
        print(f"| {name} | {count.sum():,} | {means} | {mean:+.3f} +- {error:.3f} |")


if __name__ == "__main__":
    main()
