"""What a covariate gains that pretrained weights learn from one table, and what it costs.

    python -m benchmarks.covariates --count 3

Days of sales with a week's season, noise that dies out slowly, and a promotion on 15 % of the days:
300 rows are trained and validated on, the 48 after them are forecast, 12 at a time. The
promotion adds `effect` standard deviations of the rest, or nothing. Shown is the CRPS of the
pretrained model that is not told of promotions, of the same trained on the table without and
with them, and of the pretrained model on the same series without the effect.
"""

import argparse
import json
import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd

from taylorformer import Forecaster

ROWS, HORIZON, NUM_WINDOWS, SEASON = 300, 12, 4, 7
_SHARE, _MEMORY, _NOISE = 0.15, 0.7, 0.4
_EFFECTS = (1.5, 0.0)
# What is scored comes after the rows of the training.
_FRACTIONS = (0.8, 0.2, 0.0)


def draw_table(seed: int) -> pd.DataFrame:
    """Returns days with `promotion`, and `y` without any effect of it, of standard deviation 1."""
    rng = np.random.default_rng(seed)
    count = ROWS + NUM_WINDOWS * HORIZON
    days = np.arange(count)
    y = np.sin(2 * np.pi * days / SEASON) + 0.5 * np.sin(4 * np.pi * days / SEASON)
    noise = 0.0
    for day in days:
        noise = _MEMORY * noise + _NOISE * rng.normal()
        y[day] += noise
    promotion = (rng.random(count) < _SHARE).astype(float)
    stamps = pd.date_range("2024-01-01", periods=count)
    return pd.DataFrame({"ds": stamps, "y": y / y.std(), "promotion": promotion})


def crps_of(forecaster: Forecaster, table: pd.DataFrame, num_samples: int) -> float:
    """Returns the mean CRPS of the windows after the rows of the training."""
    result = forecaster.backtest(table, num_windows=NUM_WINDOWS, num_samples=num_samples)
    return float(result.scores["free_running_crps"].iloc[0])


def figures_of(effect: float, seed: int, num_samples: int) -> dict[str, float]:
    """Returns the CRPS of every line on one table."""
    clean = draw_table(seed)
    table = clean.assign(y=clean["y"] + effect * clean["promotion"])
    settings = {"horizon": HORIZON, "seasons": SEASON}
    prior = Forecaster.from_preset("prior", **settings)
    bare = table.drop(columns="promotion")
    figures = {
        "zero-shot": crps_of(prior, bare, num_samples),
        "zero-shot, effect removed": crps_of(prior, clean.drop(columns="promotion"), num_samples),
    }
    for name, data, roles in (
        ("fit", bare, {}),
        ("fit with the covariate", table, {"covariate_columns": ["promotion"]}),
    ):
        forecaster = Forecaster(start="prior", fractions=_FRACTIONS, seed=seed, **settings).fit(
            data[:ROWS], target_columns="y", **roles
        )
        figures[name] = crps_of(forecaster, data, num_samples)
    return figures


def main() -> None:
    """Trains, forecasts and shows the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.covariates")
    parser.add_argument("--count", type=int, default=3, help="tables for each effect")
    parser.add_argument("--num-samples", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for effect in _EFFECTS:
        rows = []
        for seed in range(options.count):
            rows.append(figures_of(effect, seed, options.num_samples))
            print(json.dumps({"effect": effect, "seed": seed, **_rounded(rows[-1])}), flush=True)
        means = pd.DataFrame(rows).mean().to_dict()
        print(json.dumps({"effect": effect, "tables": len(rows), **_rounded(means)}), flush=True)


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


if __name__ == "__main__":
    main()
