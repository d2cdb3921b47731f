"""What `fit` costs by the length of a table: from the pretrained weights, and from nothing.

    python -m benchmarks.fit_seconds --rows 60 144 2000 17420

Seconds are the median over new processes, without the imports; those of a first forecast
are counted. How good the forecasts are is for `benchmarks.forecasting` to say.
"""

import argparse
import json
import statistics
import sys

from benchmarks.pairs import measure_script

_SCRIPT = """
import json, sys, time, warnings
import numpy as np, pandas as pd
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

warnings.simplefilter("ignore", UserWarning)
line, rows, season, freq, horizon, context = sys.argv[1:]
rows, season, horizon, context = int(rows), int(season), int(horizon), int(context)
rng = np.random.default_rng(rows)
y = np.sin(2 * np.pi * np.arange(rows) / season) + 0.1 * rng.standard_normal(rows).cumsum()
y += 0.3 * rng.standard_normal(rows)
table = pd.DataFrame({"ds": pd.date_range("2000-01-01", periods=rows, freq=freq), "y": y})
new = {"preset": "compact", "context_length": context, "fractions": (0.7, 0.3, 0.0)}
started = time.perf_counter()
forecaster = Forecaster(horizon, **(new if line == "new" else {})).fit(table)
fitted = time.perf_counter()
forecaster.forecast(table, num_samples=100)
seconds = {"fit": fitted - started, "forecast": time.perf_counter() - fitted}
print(json.dumps({**seconds, "steps": forecaster.report_["training_steps"]}))
"""
LINES = {"pretrained": "the pretrained weights", "new": "new weights, the compact preset"}
# From so many rows on, the step of a table, its season in steps, and the horizon.
_KINDS = ((10_000, "h", 24, 24), (1_000, "D", 7, 28), (0, "MS", 12, 12))
_LONGEST_CONTEXT = 96


def words_of(line: str, rows: int) -> list[str]:
    """Returns what the script is told about one line and a table of so many rows."""
    freq, season, horizon = next(rest for least, *rest in _KINDS if rows >= least)
    # A window has to fit into the validation part, which is 30 % of the rows.
    context = min(_LONGEST_CONTEXT, int(0.3 * rows) - horizon)
    return [line, str(rows), str(season), freq, str(horizon), str(max(context, 1))]


def main() -> None:
    """Measures every line on every length, and shows the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_seconds")
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 144, 2_000, 17_420])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for rows in options.rows:
        for line, about in LINES.items():
            runs = [
                measure_script(_SCRIPT, sys.executable, *words_of(line, rows))
                for _ in range(options.repeats)
            ]
            median = {
                name: round(statistics.median(run[name] for run in runs), 1) for name in runs[0]
            }
            print(json.dumps({"rows": rows, "weights": about, **median}), flush=True)


if __name__ == "__main__":
    main()
