"""Which scaling to take by default: both, trained alike, scored on validation windows.

    python -m benchmarks.scaling --data-dir FOLDER --output FILE

The test part is not looked at. Scores are in user units, so that they can be compared: the
teacher-forced negative log-likelihood per target over all validation windows, and the free-running
CRPS over some of them.
"""

import argparse
import json
import time
from pathlib import Path

import pandas as pd

from taylorformer.data_wrangler.provenance import versions
from taylorformer.data_wrangler.tables.datasets import load_dataset
from taylorformer.data_wrangler.tables.scaler import SCALINGS
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

DATASETS = {"mauna_loa_co2": (104, 52), "ETTm2": (96, 96), "exchange": (96, 96)}


def compare(data_dir: Path, steps: int, seeds: int, num_windows: int) -> pd.DataFrame:
    """Trains and scores every combination."""
    rows = []
    for name, (context_length, horizon) in DATASETS.items():
        series = load_dataset(name, data_dir)
        for seed in range(seeds):
            for scaling in SCALINGS:
                started = time.perf_counter()
                forecaster = Forecaster(
                    horizon, context_length, scaling=scaling, max_steps=steps, seed=seed
                ).fit(series)
                forced = forecaster.backtest(series, part="validation", step=16, num_samples=0)
                free = forecaster.backtest(
                    series,
                    part="validation",
                    step=max(1, (len(series.time) // 10 - horizon) // num_windows),
                    num_windows=num_windows,
                    num_samples=30,
                )
                rows.append(
                    {
                        "data": name,
                        "scaling": scaling,
                        "seed": seed,
                        "teacher_forced_nll": forced.scores["teacher_forced_nll"].iloc[0],
                        "free_running_crps": free.scores["free_running_crps"].iloc[0],
                        "last_value_crps": free.scores["free_running_crps"].iloc[1],
                        "coverage_90": free.scores["free_running_coverage_90"].iloc[0],
                        "windows": free.num_windows,
                        "best_step": forecaster.report_["best_step"],
                        "seconds": round(time.perf_counter() - started),
                    }
                )
                print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    """Runs the comparison and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--windows", type=int, default=12)
    options = parser.parse_args()
    table = compare(options.data_dir, options.steps, options.seeds, options.windows)
    means = table.groupby(["data", "scaling"], sort=False).mean(numeric_only=True)
    print(means.drop(columns="seed").to_string(float_format=lambda value: f"{value:.4g}"))
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "steps": options.steps,
            "versions": versions(),
            "runs": table.to_dict("records"),
        }
        options.output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
