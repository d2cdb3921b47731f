"""Scores of forecasts: of single series here, of competition sets by the shared `score.py`."""

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecasting.lines import Made, with_stand_ins
from benchmarks.forecasting.sets import Window, shared_folder
from taylorformer.training_and_evaluation import free_running_point_scores

COVERAGE = 0.8
THIRDS = 3

Figures = dict[str, dict[str, Any]]

_SCORED_LEVELS = tuple(number / 10 for number in range(1, 10))
_FORECAST = "forecast"
# The figures of score.py that are kept.
_KEPT = (
    "n",
    "rel_mase",
    "rel_scrps",
    "mase",
    "scrps",
    "cov80",
    "cov80_1",
    "cov80_2",
    "cov80_3",
)


def quantiles_of(values: np.ndarray, levels: Any) -> np.ndarray:
    """Returns quantiles of S equally likely values, the i-th being that of level (i - 1/2) / S.

    So the quantiles of lines that have no samples are what they say.
    """
    return np.quantile(values, levels, axis=0, method="hazen")


def scale(window: Window) -> float:
    """Returns the mean absolute error of the seasonal naive line within a context, or NaN for 0.

    Without a season, or with a context of no more than one, it is that of the last value.
    """
    season = window.season if window.season and len(window.context) > window.season else 1
    size = float(np.abs(window.context[season:] - window.context[:-season]).mean())
    return size if size > 0 else np.nan


def score_windows(windows: Sequence[Window], made: Made) -> tuple[dict[str, float], int]:
    """Scores the windows of one series, each counting the same.

    Returns:
        `crps` and `mae` (of the median) in units of the series, `mase` and `scrps` (both over the
        scale of each window), `cov80` and `cov80_1` to `cov80_3`, the share of truths in the 80 %
        interval over all targets and over each third of the horizon; and the number of windows that
        the line left out, where the last value stands in.
    """
    whole, stand_ins = with_stand_ins(made.values, windows)
    values = [whole[window.name] for window in windows]
    truth = np.stack([window.truth for window in windows])
    # Lines that stand in have another S.
    crps = np.stack([window_crps(one, true) for one, true in zip(values, truth, strict=True)])
    middle = np.stack([np.median(one, axis=0) for one in values])
    tails = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    low, high = np.stack([quantiles_of(one, tails) for one in values], axis=1)
    error, inside = np.abs(middle - truth), (low <= truth) & (truth <= high)
    scales = np.array([scale(window) for window in windows])[:, np.newaxis]
    thirds = [
        float(part.mean()) if part.size else np.nan
        for part in np.array_split(inside, THIRDS, axis=1)
    ]
    figures = {
        "crps": float(crps.mean()),
        "mae": float(error.mean()),
        "mase": float((error / scales).mean()),
        "scrps": float((crps / scales).mean()),
        "cov80": float(inside.mean()),
        **{f"cov80_{number}": share for number, share in enumerate(thirds, 1)},
    }
    return figures, stand_ins


def score_competition(
    name: str, windows: Sequence[Window], made: Made, *, subset: bool = False
) -> tuple[Figures, int]:
    """Scores a competition set by the script beside its data.

    What it reads is in a temporary folder, and its figures of single series are not kept.

    Args:
        name: of the set.
        windows: all of its series.
        made: the forecasts.
        subset: `windows` are part of the series.

    Returns:
        The figures by frequency, and those of `all`; and the number of series where the last value
        stands in.
    """
    whole, stand_ins = with_stand_ins(made.values, windows)
    with tempfile.TemporaryDirectory() as folder:
        if made.are_samples:
            path = Path(folder) / "samples.npz"
            np.savez(path, **whole)
        else:
            path = Path(folder) / "quantiles.csv"
            _write_quantiles(path, whole)
        options = ["--subset-ok"] if subset else []
        return _run_script(name, str(path), *options)[_FORECAST], stand_ins


def competition_baselines(name: str) -> dict[str, Figures]:
    """Returns the figures of the baselines of a competition set, as `score_competition`."""
    return _run_script(name, "none")


def _run_script(name: str, forecasts: str, *options: str) -> dict[str, Figures]:
    """Returns the figures of a forecast and of all baselines."""
    script = shared_folder("data", "score.py")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        command = [sys.executable, str(script), forecasts, name, "--json", str(output)]
        command += ["--data", str(script.parent), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"score.py failed: {done.stderr.strip() or done.stdout.strip()}")
        rows = json.loads(output.read_text(encoding="utf-8"))
    figures: dict[str, Figures] = {}
    for row in rows:
        # `forecast, same n` repeats the forecast on the series of a baseline.
        if not row["model"].startswith(f"{_FORECAST},"):
            kept = {key: row[key] for key in _KEPT}
            figures.setdefault(row["model"], {})[row["frequency"]] = kept
    for by_frequency in figures.values():
        # The script leaves `all` out where there is one frequency.
        by_frequency.setdefault("all", next(iter(by_frequency.values())))
    return figures


def window_crps(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Returns the CRPS `[N_T]` of values `[S, N_T]` at every target of one window."""
    samples = values[:, np.newaxis, :, np.newaxis]
    y_target = truth[np.newaxis, :, np.newaxis]
    mask = np.ones([1, len(truth)], bool)
    return free_running_point_scores(samples, y_target, mask)["free_running_crps"][0]


def _write_quantiles(path: Path, values: Mapping[str, np.ndarray]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["unique_id", "horizon", *map(str, _SCORED_LEVELS)])
        for name, one in values.items():
            quantiles = quantiles_of(one, _SCORED_LEVELS)
            # 17 digits, so that nothing is rounded.
            writer.writerows(
                [name, step, *(repr(float(value)) for value in row)]
                for step, row in enumerate(quantiles.T, 1)
            )
