"""Scores of forecasting experiments: every test window, and some of them by samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.window_set import WindowSet
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.experiments.presets import ExperimentTask
from taylorformer.training_and_evaluation.experiments.scores import mean_and_error
from taylorformer.training_and_evaluation.forecasting.backtest import Backtest, backtest

NUM_SAMPLES = 100
"""Joint samples of a window: the quantiles of 90 % intervals then rest on five samples each."""

_MODEL = "model"
_BATCH = 32


def score_windows(
    model: ProbabilisticModel,
    test: WindowSet,
    validation: WindowSet,
    task: ExperimentTask,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Scores a model and the naive lines on test windows, in standardised units.

    The joint density, and the squared error of teacher-forced means, are those of all windows.
    Scores of samples are those of `task.free_running_sequences` of them, evenly spaced. The
    Gaussian scales of naive lines are fitted on the validation windows.

    Args:
        model: a trained model.
        test: the windows to score.
        validation: windows for the scales of the naive lines.
        task: a task of a series.
        progress: called with the number of windows that are done, and of all.

    Returns:
        - arrays `[n]` of the model: the scores of each window by name, NaN in `free_running_...`
          where a window was not forecast by samples;
        - `model` and `naive`, for JSON: means and standard errors by name of the score; of naive
          lines by name of the line.
    """
    season = task.seasons[0] if task.seasons else None

    def score(windows: WindowSet, num_samples: int, tell: Any = None) -> Backtest:
        return backtest(
            model,
            windows.windows,
            windows.starts,
            fit_starts=validation.starts,
            num_samples=num_samples,
            batch_size=_BATCH,
            season=season,
            units="scaled",
            name=_MODEL,
            progress=tell,
        )

    forced = score(test, 0, progress)
    chosen = test.spread_out(task.free_running_sequences)
    free = score(chosen, NUM_SAMPLES)
    arrays = _arrays(forced, _MODEL, "")
    drawn = _arrays(free, _MODEL, "free_running_")
    positions = np.searchsorted(test.starts, chosen.starts)
    for name, values in drawn.items():
        arrays[name] = np.full(len(test), np.nan)
        arrays[name][positions] = values
    lines = [line for line in forced.scores["line"] if line != _MODEL]
    summary = {
        "model": _means({**_arrays(forced, _MODEL, ""), **drawn}),
        "naive": {
            line: _means({**_arrays(forced, line, ""), **_arrays(free, line, "free_running_")})
            for line in lines
        },
        "free_running_windows": len(chosen),
        "samples": NUM_SAMPLES,
    }
    return arrays, summary


def _arrays(result: Backtest, line: str, prefix: str) -> dict[str, np.ndarray]:
    """Returns the scores of the windows of one line whose names begin with `prefix`."""
    table: pd.DataFrame = result.by_window[result.by_window["line"] == line]
    scores = {}
    for name in result.scores.columns[1:]:
        values = table[name].to_numpy(np.float64)
        if str(name).startswith(prefix) and not np.isnan(values).all():
            scores[str(name)] = values
    return scores


def _means(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: mean_and_error(values[~np.isnan(values)]) for name, values in arrays.items()}
