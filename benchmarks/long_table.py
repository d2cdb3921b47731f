"""A long table: how long until the first batch, and how much memory.

    python -m benchmarks.long_table --rows 1000000

TensorFlow is imported before the clock starts, and its memory is not counted.
"""

import argparse
import importlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def write_table(path: Path, rows: int) -> None:
    """Writes a random walk, one value a minute."""
    walk = np.random.default_rng(0).normal(size=rows).cumsum()
    stamps = pd.date_range("2000-01-01", periods=rows, freq="min")
    pd.DataFrame({"ds": stamps, "y": walk}).to_csv(path, index=False)


def first_batch(path: Path) -> tuple[float, float]:
    """Reads the table and takes one batch; returns seconds and megabytes."""
    importlib.import_module("tensorflow").zeros([1]).numpy()
    from taylorformer.data_wrangler import (
        Columns,
        Split,
        Windows,
        WindowScaler,
        WindowSpec,
        read_table,
        split_table,
    )

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    frame = read_table(path)
    (series,) = split_table(frame, Columns.resolve(frame))
    spec = WindowSpec(96, 96)
    split = Split.chronological(series.num_rows)
    windows = Windows(series, WindowScaler.fit(series, spec, split.train_end))
    starts = split.window_starts(spec, "training")
    batch = next(iter(windows.training_dataset(starts, 32, seed=0)))
    seconds = time.perf_counter() - started
    if batch[1].shape != (32, 96, 1):
        raise ValueError(f"the batch must be [32, 96, 1]. Received: {batch[1].shape}")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, (after - before) / 1024


def main() -> None:
    """Measures in fresh processes, and prints medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(*first_batch(options.measure))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, options.rows)
        command = [sys.executable, "-m", "benchmarks.long_table", "--measure", str(path)]
        runs = []
        for _ in range(options.repeats):
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append([float(word) for word in done.stdout.split()])
    seconds, megabytes = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"{options.rows} rows: first batch after {seconds:.1f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
