"""What a forecast costs from a cold start, and many series in one call: seconds and memory.

Each is measured in a process that is started anew. Nothing but the standard library is imported
here before the clock starts, so that imports are counted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ONE, MANY = "one series of 200 rows", "10,000 series of 60 rows"
M1 = "all of M1, 1,001 series"
COLUMNS = (
    "seconds",
    "of these before the imports",
    "importing TensorFlow",
    "the rest",
    "seconds a series",
    "peak, MiB",
)
ABOUT = (
    "From the start of a process to the end of its first forecast, which compiles; "
    "seasons are detected"
)

_SIZES = {ONE: (1, 200, 24), MANY: (10_000, 60, 12)}
_LONGEST_HORIZON_OF_M1 = 18
# In bytes on macOS, in KiB elsewhere.
_BYTES_OF_PEAK = 1 if sys.platform == "darwin" else 1024


def run(
    what: str, num_samples: int, seed: int, model: str | None, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """Measures in a new process; returns the figures, or None where the data are absent."""
    from benchmarks.forecasting.peer_cache import REPOSITORY

    request = json.dumps({"what": what, "num_samples": num_samples, "seed": seed, "model": model})
    command = [sys.executable, "-m", "benchmarks.forecasting.cold", request]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # The time of day is the one clock that two processes are sure to share.
    done = subprocess.run(
        [*command, str(time.time())],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{what} could not be measured:\n{done.stderr[-2000:]}")
    figures = json.loads(done.stdout.splitlines()[-1])
    if "absent" in figures:
        say(f"{what}: left out: {figures['absent']}")
        return None
    return figures


def _measure(what: str, num_samples: int, seed: int, model: str | None, started: float) -> Any:
    """Forecasts in this process, which did nothing before."""
    before_imports = time.time() - started
    import tensorflow as tf

    imported = time.time() - started
    tf.zeros([1]).numpy()  # starts what TensorFlow runs on, which belongs to the rest
    from benchmarks.forecasting import sets, zero_shot

    if what == M1:
        try:
            windows = [one.bare() for one in sets.competition_windows("m1")]
        except FileNotFoundError as error:
            return {"absent": str(error)}
        horizon = _LONGEST_HORIZON_OF_M1
        table = zero_shot.to_table(windows)
    else:
        num_series, rows, horizon = _SIZES[what]
        table = _waves(num_series, rows, seed)
    forecaster = zero_shot.make_forecaster("auto", model)
    forecast = forecaster.forecast(table, horizon=horizon, num_samples=num_samples, seed=seed)
    seconds = time.time() - started
    count = len(forecast.names)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_OF_PEAK / 2**20
    figures = (
        seconds,
        before_imports,
        imported - before_imports,
        seconds - imported,
        (seconds - imported) / count,
        peak,
    )
    return dict(zip(COLUMNS, figures, strict=True))


def _waves(num_series: int, rows: int, seed: int) -> Any:
    """Makes seasonal series with a trend and noise."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    step = np.arange(rows)
    period, phase, slope = rng.uniform(
        [[4.0], [0.0], [-0.05]], [[20.0], [6.0], [0.05]], (3, num_series)
    )
    wave = np.sin(2 * np.pi * step / period[:, np.newaxis] + phase[:, np.newaxis])
    noise = rng.normal(scale=0.2, size=(num_series, rows))
    y = 10 + slope[:, np.newaxis] * step + wave + noise
    return pd.DataFrame(
        {
            "unique_id": np.repeat([f"wave {number}" for number in range(num_series)], rows),
            "ds": np.tile(step, num_series),
            "y": y.ravel(),
        }
    )


def main() -> None:
    """Prints the figures of one measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("request")
    parser.add_argument("started", type=float)
    options = parser.parse_args()
    print(json.dumps(_measure(**json.loads(options.request), started=options.started)))


if __name__ == "__main__":
    main()
