"""How models for forecasting compare on the synthetic series that `experiment prior` validates on.

    python -m benchmarks.synthetic_tasks prior FILE.keras

All models score the same sequences, each target with the true values before it. A few sequences
that a model takes for certain and that turn out otherwise decide a mean, and with it the order of
short trainings. So the last columns have the difference to the first model, as a mean with its
standard error and without the outermost 2 % of the sequences on either side.
"""

import argparse

import numpy as np
from scipy import stats

from taylorformer.data_wrangler.tasks.series_prior import SeriesPrior, synthetic_series_tasks
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import find_pretrained
from taylorformer.training_and_evaluation.metrics import teacher_forced_nll

_BATCH_SIZE, _SEED = 32, 0
_TRIMMED = 0.02


def sequence_nll(model: ProbabilisticModel, num_batches: int) -> np.ndarray:
    """Returns the nll per target of every sequence that has one, `[n]`."""
    nll = []
    tasks = synthetic_series_tasks(
        _BATCH_SIZE, _SEED, SeriesPrior(), num_batches=num_batches, part="validation"
    )
    for inputs, y_target in tasks:
        mask = np.broadcast_to(inputs["target_mask"], y_target.shape[:2])
        nll.append(teacher_forced_nll(model.log_prob(inputs, y_target), mask))
    scores = np.concatenate(nll)
    return scores[~np.isnan(scores)]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="names of presets, and .keras files")
    parser.add_argument("--batches", type=int, default=64)
    options = parser.parse_args()
    first = None
    print("| model | sequences | nll | median | to the first | trimmed |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in options.models:
        nll = sequence_nll(find_pretrained(name, "models").load(), options.batches)
        first = nll if first is None else first
        difference = nll - first
        error = difference.std() / np.sqrt(len(difference))
        print(
            f"| {name} | {len(nll):,} | {nll.mean():.3f} | {np.median(nll):.3f} "
            f"| {difference.mean():+.3f} +- {error:.3f} "
            f"| {stats.trim_mean(difference, _TRIMMED):+.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
