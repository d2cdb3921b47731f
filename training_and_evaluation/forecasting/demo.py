"""The demonstration: years of carbon dioxide, forecast without training and then after it."""

import dataclasses
import json
import sys
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.provenance import machine, versions
from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2, write_table
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_whole
from taylorformer.training_and_evaluation.forecasting.backtest import Backtest
from taylorformer.training_and_evaluation.forecasting.forecast import Forecast
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.forecasting.pretrained_forecaster import (
    PretrainedForecaster,
)
from taylorformer.training_and_evaluation.metrics import INTERVALS
from taylorformer.training_and_evaluation.plot_style import save_figure
from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress

UNIT = "ppm"
_PRETRAINED = "pretrained"
_TITLES = {
    _PRETRAINED: "Taylorformer, pretrained",
    "taylorformer": "Taylorformer, trained on the record",
    "last_value": "repeat the last value",
    "last_difference": "continue with the last slope",
    "seasonal": "same week last year",
}
_PICTURE, _FORECAST, _METRICS = "forecast.png", "forecast.csv", "metrics.json"
_PRETRAINED_PICTURE, _PRETRAINED_FORECAST = "pretrained.png", "pretrained.csv"
_BACKTEST, _MODEL = "backtest", "model"
FILES = (
    _PRETRAINED_PICTURE,
    _PRETRAINED_FORECAST,
    _PICTURE,
    _FORECAST,
    _METRICS,
    _BACKTEST,
    _MODEL,
)
"""What the demonstration writes."""
# By whether training moved the weights at all.
_WHAT_WAS_KEPT = {
    True: "Of the way from the pretrained weights to those after training {:.0f} % was kept: "
    "validation windows say how much.",
    False: "Forecasts of validation windows were not clearly better after training, so the "
    "pretrained weights were kept.",
}


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """What the demonstration forecasts, and with what weights; lengths are in rows, here weeks.

    Example:
        >>> settings = DemoSettings(horizon=26)
        >>> settings.horizon, settings.start
        (26, 'prior')

    Attributes:
        horizon: N_T.
        start: the weights: the name of a pretrained preset, or a `.keras` file.
        num_test_windows: at most this many, the last ones; their targets do not overlap.
        season: length of the season of the naive forecast.
    """

    horizon: int = 52
    start: str = "prior"
    num_test_windows: int = 8
    season: str = "365.25 days"


def run_demo(
    output: Path,
    seed: int = 0,
    steps: int = 300,
    num_samples: int = 100,
    settings: DemoSettings | None = None,
    *,
    overwrite: bool = False,
    console: Console | None = None,
) -> None:
    """Forecasts held-out years of the Mauna Loa record without training, then with it.

    First the pretrained model, then the same after `fit` has trained it on the record, on the same
    years. Which weights are kept is said by validation windows; test windows are read once, at the
    end. These files are written into `output`:

    - `pretrained.png`, `pretrained.csv`: the last test window, by the pretrained model;
    - `forecast.png`, `forecast.csv`: the same window after training;
    - `backtest/`: all scores, teacher-forced and free-running, with the naive lines beside them,
      see `Backtest.save`;
    - `model/`: the model, for `Forecaster.load` and the command line;
    - `metrics.json`: the scores once more, and everything that made them.

    Args:
        output: the folder, made if it is not there. Other files in it stay.
        seed: of the first weights, the order of training windows, dropout and samples.
        steps: training steps, unless training stops early.
        num_samples: S, samples a forecast.
        settings: everything else. None: `DemoSettings()`.
        overwrite: replace files of these names.
        console: where progress and results are shown. None: nowhere.

    Raises:
        TypeError, ValueError: an argument outside its range.
        FileExistsError: one of the files is there, and `overwrite` is not set.
        OSError: `output` cannot be written.
    """
    seed = check_integer("seed", seed, 0)
    steps = check_integer("steps", steps, 1)
    num_samples = check_integer("num_samples", num_samples, 1)
    settings = settings or DemoSettings()
    output = Path(output)
    for name in FILES:
        refuse_existing(output / name, overwrite, "output")
    output.mkdir(parents=True, exist_ok=True)
    console = console or Console(quiet=True)
    started = time.perf_counter()

    series = load_mauna_loa_co2()
    table = series.to_frame()
    forecaster = Forecaster(settings.horizon, start=settings.start, max_steps=steps, seed=seed)
    _introduce(console, series, settings)
    pretrained = PretrainedForecaster(settings.start, horizon=settings.horizon)
    past, year = table[: -settings.horizon], table[-settings.horizon :]
    first = pretrained.forecast(past, year, num_samples=num_samples, seed=seed)
    _write_forecast(
        output, first, year, _PRETRAINED_PICTURE, _PRETRAINED_FORECAST, "without training"
    )
    console.print(
        f"A forecast without training, after {time.perf_counter() - started:.0f} seconds: "
        f"{output / _PRETRAINED_PICTURE}",
        soft_wrap=True,
        highlight=False,
    )
    with WorkProgress("Forecasting held-out years", console) as progress:
        pretrained_scores = pretrained.backtest(
            table,
            num_windows=settings.num_test_windows,
            num_samples=num_samples,
            seed=seed,
            progress=progress,
        )
    began = time.perf_counter()
    with WorkProgress("Training", console) as progress:
        forecaster.fit(table, callbacks=[TrainingBar(progress)])
    trained = time.perf_counter()
    with WorkProgress("Forecasting held-out years", console) as progress:
        scores = forecaster.backtest(
            table,
            num_windows=settings.num_test_windows,
            num_samples=num_samples,
            seed=seed,
            season=settings.season,
            progress=progress,
        )
    forecast = forecaster.forecast(past, year, num_samples=num_samples, seed=seed)

    forecaster.save(output / _MODEL, overwrite=True)
    scores.save(output / _BACKTEST, overwrite=True)
    _write_forecast(output, forecast, year, _PICTURE, _FORECAST, "after training on the record")
    total = time.perf_counter() - started
    report = {
        "unit": UNIT,
        "pretrained_scores": _records(pretrained_scores.scores.head(1)),
        "scores": _records(scores.scores),
        "by_window": _records(scores.by_window),
        "num_scored_points": scores.num_scored_points,
        "seed": seed,
        "num_samples": num_samples,
        "settings": dataclasses.asdict(settings),
        "training": forecaster.report_,
        "seconds": {"training": round(trained - began, 2), "total": round(total, 2)},
        "machine": machine(),
        "versions": versions(),
    }
    text = json.dumps(report, indent=2, allow_nan=False, default=str)
    with replaced_whole(output / _METRICS) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")
    _show(console, pretrained_scores, forecaster, scores, output, seed, steps, total)


def _write_forecast(
    output: Path, forecast: Forecast, year: pd.DataFrame, picture: str, file: str, how: str
) -> None:
    """Writes the forecast of the last year; an empty cell of `truth` is a missing value."""
    truth = year.iloc[:, -1].to_numpy()
    table = forecast.to_frame((0.05, 0.5, 0.95)).assign(truth=truth)
    write_table(table, output / file, overwrite=True, float_format="%.4f")
    figure = forecast.plot(
        truth=truth,
        title=f"Carbon dioxide at Mauna Loa: a held-out year, forecast {how}",
        y_label=f"CO₂ ({UNIT})",
    )
    save_figure(figure, output / picture, overwrite=True)


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Makes a table ready for JSON, which has no NaN."""
    return table.astype("object").where(table.notna(), None).to_dict("records")


def _introduce(console: Console, series: Series, settings: DemoSettings) -> None:
    console.print(
        f"[bold]Carbon dioxide at Mauna Loa[/bold], {series.num_rows} weeks, "
        f"{series.num_masked_rows} of them without a value. Each forecast predicts "
        f"{settings.horizon} weeks from the years before them."
    )


def _show(
    console: Console,
    pretrained: Backtest,
    forecaster: Forecaster,
    scores: Backtest,
    output: Path,
    seed: int,
    steps: int,
    seconds: float,
) -> None:
    title = (
        f"Free-running forecasts of {scores.num_windows} held-out years, "
        f"{scores.num_scored_points} weeks, {UNIT}"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for heading in ("CRPS", "MAE", "RMSE", *(f"in {percent} % band" for percent in INTERVALS)):
        table.add_column(heading, justify="right")
    rows: dict[Any, Any] = scores.scores.set_index("line").to_dict("index")
    rows[_PRETRAINED] = pretrained.scores.iloc[0].to_dict()
    for name, shown in _TITLES.items():
        row = rows[name]
        cells = [
            f"{row['free_running_crps']:.2f}",
            f"{row['free_running_mae']:.2f}",
            f"{row['free_running_mse'] ** 0.5:.2f}",
        ]
        for percent in INTERVALS:
            share = row[f"free_running_coverage_{percent}"]
            cells.append("" if np.isnan(share) else f"{100 * share:.0f} %")
        table.add_row(shown, *cells)
    console.print()
    console.print(table)
    share = forecaster.report_["share"]
    console.print(_WHAT_WAS_KEPT[share > 0].format(100 * share))
    console.print(f"Done in {seconds:.0f} seconds. Look at")
    for name, what in (
        (_PRETRAINED_PICTURE, "the last held-out year, forecast without training"),
        (_PICTURE, "the same after training"),
        (_FORECAST, "that forecast as a table"),
        (_BACKTEST, "all scores, by step and by window, with pictures"),
        (_METRICS, "the scores, and what made them"),
        (_MODEL, "the trained model"),
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
