"""The demonstration: a year of carbon dioxide, forecast from the two years before it."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.series import Series, load_mauna_loa_co2
from taylorformer.data_wrangler.windows import (
    DEFAULT_FRACTIONS,
    Split,
    Windows,
    WindowScaler,
    WindowSpec,
    spaced_starts,
)
from taylorformer.model.probabilistic_model import GLOBAL_CLIPNORM
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.metrics import (
    average,
    average_by_step,
    average_by_window,
    free_running_point_scores,
    point_forecast_scores,
)
from taylorformer.training_and_evaluation.naive import last_value, seasonal
from taylorformer.training_and_evaluation.plots import plot_forecast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNIT = "ppm"
_TITLES = {
    "taylorformer": "Taylorformer",
    "last_value": "repeat the last value",
    "same_week_last_year": "same week last year",
}


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """What the demonstration trains and how; lengths are in rows, which are weeks.

    Attributes:
        context_length: N_C.
        horizon: N_T.
        fractions: shares of the training, validation and test part, in the order of time.
        num_heads: see `Taylorformer`, as the next four.
        head_dim: width of one head.
        width: width of the towers.
        num_layers: layers of each tower.
        dropout: rate of the dropout.
        learning_rate: of Adam at the start; it falls to 0 along a cosine.
        batch_size: B in training.
        steps_per_epoch: training steps between two looks at the validation windows, at most.
        validation_step: rows from one validation window to the next.
        num_test_windows: at most this many, the last ones; their targets do not overlap.
        season: length of the season of the naive forecast.
    """

    context_length: int = 104
    horizon: int = 52
    fractions: tuple[float, float, float] = DEFAULT_FRACTIONS
    num_heads: int = 4
    head_dim: int = 8
    width: int = 32
    num_layers: int = 3
    dropout: float = 0.05
    learning_rate: float = 1e-3
    batch_size: int = 32
    steps_per_epoch: int = 30
    validation_step: int = 4
    num_test_windows: int = 8
    season: str = "365.25 days"


def run_demo(
    output: Path,
    seed: int = 0,
    steps: int = 600,
    num_samples: int = 100,
    settings: DemoSettings | None = None,
) -> None:
    """Trains a small Taylorformer on the Mauna Loa record and forecasts held-out years with it.

    The weights kept are those with the best score on validation windows; test windows are looked
    at once, at the end. Into `output` go

    - `forecast.png`, `forecast.csv`: the last test window;
    - `metrics.json`: all scores, teacher-forced and free-running, with the naive lines beside
      them, and everything that made them;
    - `model.keras`: the model, for `keras.saving.load_model`. It reads and gives scaled numbers;
      the scaler is in `metrics.json`.

    Args:
        output: the folder, made if it is not there. Files of these names are replaced.
        seed: of the first weights, the order of training windows, dropout and samples.
        steps: training steps. A number that does not divide into epochs is rounded up.
        num_samples: S, samples a forecast.
        settings: everything else; by default that of `DemoSettings`.

    Raises:
        TypeError, ValueError: an argument outside its range.
        OSError: `output` cannot be written.
    """
    check_integer("seed", seed, 0)
    check_integer("steps", steps, 1)
    check_integer("num_samples", num_samples, 1)
    settings = settings or DemoSettings()
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    console = Console()
    clock = _Clock()

    series = load_mauna_loa_co2()
    spec = WindowSpec(settings.context_length, settings.horizon)
    split = Split.chronological(series.num_rows, settings.fractions)
    scaler = WindowScaler.fit(series, spec, split.train_end)
    windows = Windows(series, scaler)
    test_starts = spaced_starts(
        split.window_starts(spec, "test"), spec.horizon, settings.num_test_windows
    )
    _introduce(console, series, split, windows, len(test_starts))

    console.print(f"Training, {steps} steps. The first one takes a while, as it compiles.")
    with clock.phase("training"):
        model, history = _train(windows, split, settings, seed, steps)
    with clock.phase("sampling"):
        samples = _sample(console, model, windows, test_starts, seed, num_samples)
    with clock.phase("scoring"):
        scores = _score(model, windows, test_starts, samples, settings)

    with clock.phase("writing"):
        _forecast_table(windows, test_starts, samples).to_csv(
            output / "forecast.csv", index=False, float_format="%.4f"
        )
        _forecast_figure(windows, test_starts, samples).savefig(output / "forecast.png")
        model.save(output / "model.keras")
    report = {
        **scores,
        "validation": history,
        "seed": seed,
        "num_samples": num_samples,
        "settings": dataclasses.asdict(settings),
        "num_weights": int(model.count_params()),
        "series": series.missing_summary(),
        "split": dataclasses.asdict(split),
        "scaler": scaler.get_config(),
        "seconds": clock.seconds,
        "machine": {"cpus": os.cpu_count(), "system": platform.platform()},
        "versions": _versions(),
    }
    (output / "metrics.json").write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    _show(console, report, output, seed, steps)


class _Clock:
    """Measures phases, in seconds."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._phases: dict[str, float] = {}

    def phase(self, name: str) -> "_Phase":
        return _Phase(self._phases, name)

    @property
    def seconds(self) -> dict[str, float]:
        total = time.perf_counter() - self._start
        return {name: round(value, 2) for name, value in {**self._phases, "total": total}.items()}


class _Phase:
    def __init__(self, phases: dict[str, float], name: str) -> None:
        self._phases = phases
        self._name = name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._phases[self._name] = time.perf_counter() - self._start


def _train(
    windows: Windows, split: Split, settings: DemoSettings, seed: int, steps: int
) -> tuple[Taylorformer, dict[str, Any]]:
    """Fits a model and gives it the weights that were best on validation windows."""
    spec = windows.spec
    num_epochs = -(-steps // settings.steps_per_epoch)
    steps_per_epoch = -(-steps // num_epochs)
    training = windows.training_dataset(
        split.window_starts(spec, "training"), settings.batch_size, seed
    )
    validation_starts = spaced_starts(
        split.window_starts(spec, "validation"), settings.validation_step
    )
    validation = windows.evaluation_dataset(validation_starts, settings.batch_size)
    model = Taylorformer(
        num_heads=settings.num_heads,
        head_dim=settings.head_dim,
        width=settings.width,
        num_layers=settings.num_layers,
        dropout=settings.dropout,
        seed=seed,
    )
    schedule = keras.optimizers.schedules.CosineDecay(
        settings.learning_rate, num_epochs * steps_per_epoch
    )
    model.compile(keras.optimizers.Adam(schedule, global_clipnorm=GLOBAL_CLIPNORM))
    # With this patience it never stops early, and only keeps the best weights.
    keep_best = keras.callbacks.EarlyStopping(
        "val_nll", mode="min", patience=num_epochs + 1, restore_best_weights=True
    )
    history = model.fit(
        training,
        epochs=num_epochs,
        steps_per_epoch=steps_per_epoch,
        validation_data=validation,
        callbacks=[keep_best],
        # Without a terminal the bar would fill a log with its own traces.
        verbose=1 if sys.stdout.isatty() else 2,
    ).history
    best = int(np.nanargmin(history["val_nll"]))
    return model, {
        "training_steps": num_epochs * steps_per_epoch,
        "best_step": (best + 1) * steps_per_epoch,
        "num_windows": len(validation_starts),
        "teacher_forced_nll": float(windows.scaler.inverse_nll(history["val_nll"][best])),
    }


def _sample(
    console: Console,
    model: Taylorformer,
    windows: Windows,
    starts: np.ndarray,
    seed: int,
    num_samples: int,
) -> np.ndarray:
    """Draws `[S, B, N_T, D_y]` in user units, one window after the other."""
    drawn = []
    with Progress(
        TextColumn("Sampling test windows"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        for start in progress.track(starts):
            one = np.array([start])
            samples = model.sample(
                windows.forecast_inputs(one),
                num_samples=num_samples,
                seed=seed,
                sequence_keys=windows.sequence_keys(one),
            )
            drawn.append(windows.scaler.inverse(samples, windows.reference(one)))
    return np.concatenate(drawn, axis=1)


def _score(
    model: Taylorformer,
    windows: Windows,
    starts: np.ndarray,
    samples: np.ndarray,
    settings: DemoSettings,
) -> dict[str, Any]:
    """Scores the test windows, in user units."""
    truth, scored = windows.truth(starts), windows.scored(starts)
    points = {
        "taylorformer": free_running_point_scores(samples, truth, scored),
        "last_value": point_forecast_scores(last_value(windows, starts), truth, scored),
        "same_week_last_year": point_forecast_scores(
            seasonal(windows, starts, settings.season), truth, scored
        ),
    }
    forced = model.evaluate(
        windows.evaluation_dataset(starts, settings.batch_size), verbose=0, return_dict=True
    )
    by_window = {name: average_by_window(scores) for name, scores in points.items()}
    first_targets = windows.series.stamps[windows.target_rows(starts)[:, 0]]
    return {
        "unit": UNIT,
        "num_scored_points": int(scored.sum()),
        "teacher_forced_nll": float(windows.scaler.inverse_nll(forced["nll"])),
        "teacher_forced_mse": float(
            forced["teacher_forced_mse"] * np.square(windows.scaler.spread[0])
        ),
        **{name: average(scores) for name, scores in points.items()},
        "by_step": {name: _listed(average_by_step(scores)) for name, scores in points.items()},
        "windows": [
            {
                "first_target": stamp.date().isoformat(),
                "num_scored_points": int(scored[place].sum()),
                **{
                    name: {score: _number(values[place]) for score, values in scores.items()}
                    for name, scores in by_window.items()
                },
            }
            for place, stamp in enumerate(first_targets)
        ],
    }


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else float(value)


def _listed(scores: Mapping[str, np.ndarray]) -> dict[str, list[float | None]]:
    return {name: [_number(value) for value in values] for name, values in scores.items()}


def _forecast_table(windows: Windows, starts: np.ndarray, samples: np.ndarray) -> pd.DataFrame:
    """Makes the table of the last window; an empty cell of `truth` is a missing value."""
    rows = windows.target_rows(starts)[-1]
    drawn = samples[:, -1, :, 0]
    low, median, high = np.quantile(drawn, [0.05, 0.5, 0.95], axis=0)
    return pd.DataFrame(
        {
            str(windows.series.time_column): windows.series.stamps[rows],
            "mean": drawn.mean(axis=0),
            "q05": low,
            "q50": median,
            "q95": high,
            "truth": windows.series.values[rows, 0],
        }
    )


def _forecast_figure(windows: Windows, starts: np.ndarray, samples: np.ndarray) -> "Figure":
    """Draws the last window."""
    series = windows.series
    before, after = windows.context_rows(starts)[-1], windows.target_rows(starts)[-1]
    return plot_forecast(
        series.stamps[before],
        series.values[before, 0],
        series.stamps[after],
        samples[:, -1, :, 0],
        series.values[after, 0],
        title="Carbon dioxide at Mauna Loa: a held-out year, forecast by Taylorformer",
        y_label=f"CO₂ ({UNIT})",
    )


def _versions() -> dict[str, str]:
    names = ("taylorformer", "tensorflow", "keras", "tensorflow-probability", "numpy", "pandas")
    versions = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed as a package"
    return versions


def _introduce(
    console: Console, series: Series, split: Split, windows: Windows, num_test_windows: int
) -> None:
    spec = windows.spec
    console.print(
        f"[bold]Carbon dioxide at Mauna Loa[/bold], {series.num_rows} weeks, "
        f"{series.num_masked_rows} of them without a value. "
        f"A forecast reads {spec.context_length} weeks and predicts the next {spec.horizon}."
    )
    console.print(
        f"Trained up to {series.stamps[split.train_end - 1]:%Y-%m-%d}, weights chosen on weeks up "
        f"to {series.stamps[split.validation_end - 1]:%Y-%m-%d}, scored on {num_test_windows} "
        "forecasts after that."
    )


def _show(console: Console, report: Mapping[str, Any], output: Path, seed: int, steps: int) -> None:
    table = Table(title=f"Free-running forecasts of held-out weeks, {UNIT}", title_justify="left")
    table.add_column("", no_wrap=True)
    for heading in ("CRPS", "MAE", "RMSE", "in 50 % band", "in 90 % band"):
        table.add_column(heading, justify="right")
    for name, title in _TITLES.items():
        scores = report[name]
        cells = [
            f"{scores['free_running_crps']:.2f}",
            f"{scores['free_running_mae']:.2f}",
            f"{scores['free_running_mse'] ** 0.5:.2f}",
        ]
        for percent in (50, 90):
            share = scores.get(f"free_running_coverage_{percent}")
            cells.append("" if share is None else f"{100 * share:.0f} %")
        table.add_row(title, *cells)
    console.print()
    console.print(table)
    console.print(f"Done in {report['seconds']['total']:.0f} seconds. Look at")
    for name, what in (
        ("forecast.png", "the last held-out year as a picture"),
        ("forecast.csv", "the same as a table"),
        ("metrics.json", "all scores, and what made them"),
        ("model.keras", "the trained model"),
    ):
        console.print(f"  {output / name}  {what}", soft_wrap=True, highlight=False)
    again = output.with_name(f"{output.name}_seed_{seed + 1}")
    command = (
        f"{_python()} -m taylorformer demo --seed {seed + 1} --steps {2 * steps} --output {again}"
    )
    console.print("Next, try another seed and twice the training, and compare the pictures:")
    console.print(f"  {command}", soft_wrap=True, highlight=False, markup=False)


def _python() -> str:
    """Names this Python as briefly as it can be typed here."""
    here, full = Path.cwd(), Path(sys.executable)
    return str(full.relative_to(here)) if full.is_relative_to(here) else full.name
