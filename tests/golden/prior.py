"""Writes what the weights of the package computed when they were made, for `test_golden.py`.

    python tests/golden/prior.py prior-2

A file that is there stays as it is: the numbers belong to the weights.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from taylorformer.data_wrangler import Series, WindowSpec
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import find_pretrained

FOLDER = Path(__file__).parent
_CONTEXT, _HORIZON = 48, 6


def _windows() -> ContextWindows:
    """Three series: a season, a walk with gaps, and one that is shorter than its context."""
    steps = np.arange(_CONTEXT + _HORIZON)
    walk = np.cumsum(np.sin(1.7 * steps**1.5))
    walk[[5, 6, 20]] = np.nan
    values = (
        100 + 2 * steps + 9 * np.sin(2 * np.pi * steps / 12),
        walk,
        1e-3 * np.cos(0.9 * steps[-20:]),
    )
    series = [
        Series(np.arange(len(one)), one[:, np.newaxis], pd.RangeIndex(len(one)), name=str(number))
        for number, one in enumerate(values)
    ]
    periods = (12.0, 0.0, 7.0)
    return ContextWindows(
        series,
        WindowSpec(_CONTEXT, _HORIZON),
        lambda number, _: np.array([periods[number], 0.0, 0.0]),
    )


def outputs(version: str) -> dict[str, np.ndarray]:
    """Computes densities, one-step distributions and samples, in user units."""
    model = find_pretrained(version).load()
    windows = _windows()
    starts = windows.panel.offsets[1:] - windows.spec.length
    forced = model.teacher_forced(*windows.batch(starts))
    mean, scale = windows.inverse_moments(forced["mean"], forced["scale"], starts)
    samples = model.sample(windows.forecast_inputs(starts), 3, 0, sequence_keys=np.arange(3))
    return {
        "log_prob": windows.inverse_log_prob(forced["log_prob"], starts),
        "mean": mean,
        "scale": scale,
        "samples": windows.inverse(samples, starts),
    }


if __name__ == "__main__":
    path = FOLDER / f"{sys.argv[1]}.npz"
    if path.exists():
        sys.exit(f"{path} is there already")
    np.savez(path, **outputs(sys.argv[1]))
