"""A program that kills whole commands, and checks that the files they leave are complete.

    python tests/killed_commands.py FOLDER KILLS

Every command replaces what an earlier one wrote. Half of the kills come at any time of its run, the
others while it writes: as soon as an unfinished file is seen. Shown are for each command how many
kills there were, how many hit it before its end, and how many hit a write.
"""

import json
import random
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf

from taylorformer.data_wrangler.whole_files import find_file

_HORIZON = 4
_SIZES = (
    *("--context-length", "6", "--horizon", str(_HORIZON)),
    *("--max-steps", "2", "--start", "none"),
)
_EXPERIMENT = ("--architecture", "np", "--iterations", "2", "--validate-every", "2")
_SEQUENCES = ("--validation-sequences", "4", "--test-sequences", "4")


def _check_model(folder):
    settings = json.loads(find_file(folder, "forecaster.json").read_text())["settings"]
    with zipfile.ZipFile(find_file(folder, "model.keras")) as archive:
        _check(archive.testzip() is None, "the model file is damaged")
        config = json.loads(archive.read("config.json"))["config"]
    _check(config["seed"] == settings["seed"], "model and settings are of two trainings")
    if (folder / "training.npz").exists():
        with np.load(folder / "training.npz") as arrays:
            _check(all(arrays[name] is not None for name in arrays.files), "no checkpoint")


def _check_forecast(folder):
    table = pd.read_csv(folder / "forecast.csv")
    _check(len(table) == _HORIZON and not table.isna().any(axis=None), "half a table")
    _check_picture(folder / "forecast.png")


def _check_scores(folder):
    for name in ("scores", "by_step", "by_window", "reliability"):
        _check(len(pd.read_csv(folder / "scores" / f"{name}.csv")) > 0, "half a table")
    json.loads((folder / "scores" / "backtest.json").read_text())
    for name in ("reliability", "by_step"):
        _check_picture(folder / "scores" / f"{name}.png")


def _check_served(folder):
    served = tf.saved_model.load(str(folder / "served"))
    _check(set(served.signatures) == {"serving_default", "sample", "log_prob"}, "half a SavedModel")


def _check_demo(folder):
    _check_model(folder / "demo" / "model")
    _check(len(pd.read_csv(folder / "demo" / "forecast.csv")) > _HORIZON, "half a table")
    _check_picture(folder / "demo" / "forecast.png")
    json.loads((folder / "demo" / "metrics.json").read_text())


def _check_experiment(folder):
    # A run that starts anew takes the old record away first.
    for record in folder.glob("runs/gp-rbf/*.json"):
        _check("scores" in json.loads(record.read_text()), "half a record")
    for name in folder.glob("runs/gp-rbf/*/*.npz"):
        with np.load(name) as arrays:
            _check(len(arrays.files) > 0, "half an archive")
    _check((folder / "runs" / "table.md").read_text().endswith("\n"), "half a table")


def _check_picture(path):
    _check(path.read_bytes().endswith(b"IEND\xaeB`\x82"), f"half a picture: {path.name}")


def _check(holds, words):
    if not holds:
        raise AssertionError(words)


def _commands(folder):
    """Returns for each command the words that start it with a seed, and the check of its files."""
    table, model = str(folder / "table.csv"), str(folder / "model")
    read = (table, "--model", model, "--samples", "2")
    return {
        "fit": (("fit", table, "--model", model, *_SIZES), lambda: _check_model(folder / "model")),
        "forecast": (
            ("forecast", *read, "--output", str(folder / "forecast.csv")),
            lambda: _check_forecast(folder),
        ),
        "backtest": (
            ("backtest", *read, "--output", str(folder / "scores")),
            lambda: _check_scores(folder),
        ),
        "export": (
            ("export", "--model", model, "--output", str(folder / "served")),
            lambda: _check_served(folder),
        ),
        "demo": (
            ("demo", "--steps", "1", "--samples", "2", "--output", str(folder / "demo")),
            lambda: _check_demo(folder),
        ),
        "experiment": (
            (
                *("experiment", "gp-rbf", *_EXPERIMENT, *_SEQUENCES),
                *("--output", str(folder / "runs")),
            ),
            lambda: _check_experiment(folder),
        ),
    }


def _start(words, seed):
    seeds = () if words[0] == "export" else ("--seed", str(seed))
    command = [sys.executable, "-m", "taylorformer", *words, *seeds, "--overwrite"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _writes(folder):
    return any(path.name.endswith((".unfinished", ".complete")) for path in folder.rglob(".*"))


def main(folder, kills, names):
    """Kills each command so many times."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    rows = np.arange(80)
    days = pd.date_range("2020-01-01", periods=len(rows))
    pd.DataFrame({"ds": days, "y": np.sin(rows / 3) + rows / 50}).to_csv(
        folder / "table.csv", index=False
    )
    for name, (words, check) in _commands(folder).items():
        started = time.perf_counter()
        _check(_start(words, 0).wait() == 0, f"{name} failed")
        seconds = time.perf_counter() - started
        if name not in names:
            continue
        running = writing = 0
        for number in range(1, kills + 1):
            for left in list(folder.rglob(".*.unfinished")):
                shutil.rmtree(left, ignore_errors=True)  # one may be inside another
            process = _start(words, number)
            if number % 2:
                deadline = time.perf_counter() + rng.uniform(0, seconds)
                while time.perf_counter() < deadline and process.poll() is None:
                    time.sleep(0.01)
            else:
                while not _writes(folder) and process.poll() is None:
                    time.sleep(0.0005)
                time.sleep(rng.uniform(0, 0.02))
            running += process.poll() is None
            process.kill()
            process.wait()
            writing += _writes(folder)
            check()
        print(f"{name}: {kills} kills, {running} before its end, {writing} in a write", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(_commands(Path())))
