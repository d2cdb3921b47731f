"""The commands of the command line that forecast a table: fit, forecast, backtest."""

import contextlib
import dataclasses
import functools
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    import pandas as pd

    from taylorformer.data_wrangler.tables.columns import Columns

_CHECKPOINT = "training.npz"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _options(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Joins options that several commands share into one decorator."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@dataclasses.dataclass(frozen=True)
class _Reading:
    """A file and how to read it: the options that all commands on tables have."""

    file: str
    separator: str
    decimal: str
    sort: bool
    duplicates: str
    data_dir: Path | None
    download: bool

    def table(self, path: Path, id_column: Any) -> "pd.DataFrame":
        """Reads a file that is there; ids are read as they are spelled."""
        from taylorformer.data_wrangler.tables.files import read_table

        text = ("unique_id" if id_column is None else id_column,)
        return read_table(path, separator=self.separator, decimal=self.decimal, text_columns=text)

    def frame(self, targets: Sequence[Any], id_column: Any) -> "pd.DataFrame":
        """Reads the file, or columns of a named data set as a table."""
        from taylorformer.data_wrangler.tables import datasets

        path = Path(self.file)
        if path.is_file():
            return self.table(path, id_column)
        known = {name.lower(): name for name in datasets.dataset_names()}
        if self.file.lower() not in known:
            raise click.BadParameter(
                f"must be a file that is there, or one of {', '.join(known.values())}. "
                f"Received: {self.file}",
                param_hint="FILE",
            )
        parts = [
            datasets.load_dataset(self.file, self.data_dir, target, self.download).to_frame()
            for target in targets or [None]
        ]
        return parts[0].assign(**{str(part.columns[-1]): part.iloc[:, -1] for part in parts[1:]})

    @property
    def disorder(self) -> dict[str, Any]:
        """What to do with rows that are not in order."""
        return {"unsorted": "sort" if self.sort else "error", "duplicates": self.duplicates}

    @property
    def words(self) -> list[str]:
        """The options once more, for a next command on the same file."""
        words = []
        if self.separator != ",":
            words += ["--separator", self.separator]
        if self.decimal != ".":
            words += ["--decimal", self.decimal]
        if self.sort:
            words.append("--sort")
        if self.duplicates != "error":
            words += ["--duplicates", self.duplicates]
        if self.data_dir is not None:
            words += ["--data-dir", str(self.data_dir)]
        return words


_reading_options = _options(
    click.argument("file"),
    click.option("--separator", default=",", help="What stands between columns."),
    click.option("--decimal", default=".", help="The decimal mark."),
    click.option("--sort", is_flag=True, help="Sort rows by time instead of refusing disorder."),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "last", "mean"]),
        default="error",
        help="Which of the rows of one time to keep.",
    ),
    click.option(
        "--data-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder with the files of named data sets.",
    ),
    click.option("--download", is_flag=True, help="Fetch a named data set that is not there."),
)


def _reading(command: _Command) -> _Command:
    """Gives a command the options of `_Reading`, as one argument."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        names = [field.name for field in dataclasses.fields(_Reading)]
        reading = _Reading(**{name: options.pop(name) for name in names})
        return command(reading=reading, **options)

    return cast(_Command, _reading_options(wrapped))


_sampling = _options(
    click.option("--samples", type=click.IntRange(min=1), default=100, help="Joint samples."),
    click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the samples."),
)

_model_to_read = click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder that `fit` has written.",
)


def _columns_of(model: Path) -> "Columns":
    """Reads the columns of a model, without TensorFlow, so that a bad table is found at once."""
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import (
        FILE,
        SavedForecaster,
    )

    if not (model / FILE).exists():
        raise click.BadParameter(f"{model} holds no trained model.", param_hint="--model")
    return SavedForecaster.read(model).columns


def start_tensorflow() -> None:
    """Checks the backend, and says what takes so long."""
    from taylorformer import _registry

    if sys.stderr.isatty():
        click.echo("Starting TensorFlow, which takes some seconds ...", err=True)
    # Its notes on starting are not for the users of a command; warnings of Python still show.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _registry.check_backend()
    _registry.register()


@click.command()
@_reading
@click.option(
    "--model",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the model.",
)
@click.option("--time", "time_column", help="Column of time. Default: ds, date, ... or the first.")
@click.option(
    "--target", "targets", multiple=True, help="Column to forecast, more than once for several."
)
@click.option("--id", "id_column", help="Column that tells series apart. Default: unique_id.")
@click.option(
    "--covariate", "covariates", multiple=True, help="Column that is known ahead of time."
)
@click.option("--date-format", help="Form of the dates, such as %d/%m/%Y. Default: ISO 8601.")
@click.option("--horizon", type=click.IntRange(min=1), default=96, help="Rows to forecast.")
@click.option(
    "--context-length", type=click.IntRange(min=1), default=96, help="Rows a forecast reads."
)
@click.option("--preset", default="compact", help="Network and training plan.")
@click.option(
    "--scaling",
    type=click.Choice(["window", "standard"]),
    show_default="that of the preset",
    help="Values about the last one of the context, or about the training mean.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    show_default="that of the preset",
    help="Training steps.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    show_default="that of the preset",
    help="Windows in a training step.",
)
@click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    show_default="that of the preset",
    help="Of Adam, at the start.",
)
@click.option(
    "--fractions",
    type=float,
    nargs=3,
    default=(0.69, 0.11, 0.20),
    help="Shares of the training, validation and test part, in the order of time.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the training.")
@click.option("--resume", is_flag=True, help="Go on with a training that was stopped.")
@click.option("--overwrite", is_flag=True, help="Replace the model that is in the folder.")
@click.option("--dry-run", is_flag=True, help="Say what would be read, and train nothing.")
def fit(
    reading: _Reading,
    model: Path,
    time_column: str | None,
    targets: Sequence[str],
    id_column: str | None,
    covariates: Sequence[str],
    date_format: str | None,
    horizon: int,
    context_length: int,
    preset: str,
    scaling: str | None,
    max_steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    fractions: tuple[float, float, float],
    seed: int,
    resume: bool,
    overwrite: bool,
    dry_run: bool,
) -> None:
    """Train a model on a table and write it to a folder.

    FILE is a CSV (also .gz) or parquet file with one row a time, or the name of a data set: ETTm1,
    ETTm2, ETTh1, ETTh2, exchange, electricity (see --data-dir), mauna_loa_co2 (comes with the
    package). Training that is stopped, killed too, goes on with --resume as if it had not been.
    """
    if resume and overwrite:
        raise click.UsageError("--resume and --overwrite exclude each other.")
    if not (dry_run or overwrite):
        _check_free(model, resume)
    from taylorformer.data_wrangler.tables.columns import Columns

    frame = reading.frame(targets, id_column)
    columns = Columns.resolve(
        frame,
        time_column=time_column,
        target_columns=list(targets) or None,
        id_column=id_column,
        covariate_columns=tuple(covariates),
        date_format=date_format,
    )
    if dry_run:
        _show_plan(frame, columns, reading.disorder, context_length, horizon, fractions)
        return
    start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
    from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress

    forecaster = Forecaster(
        horizon,
        context_length,
        preset=preset,
        scaling=scaling,
        max_steps=max_steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        fractions=fractions,
        seed=seed,
    )
    checkpoint = model / _CHECKPOINT
    try:
        with stopped_politely(), WorkProgress("Training") as progress:
            forecaster.fit(
                frame,
                columns.time_column,
                columns.target_columns,
                id_column=columns.id_column,
                covariate_columns=columns.covariate_columns,
                date_format=columns.date_format,
                checkpoint=checkpoint,
                resume=resume,
                callbacks=[TrainingBar(progress)],
                **reading.disorder,
            )
    except KeyboardInterrupt:
        what = "The same command with --resume goes on." if checkpoint.exists() else ""
        click.echo(f"Stopped. {what}".rstrip(), err=True)
        raise SystemExit(1) from None
    forecaster.save(model, overwrite=True)
    report = forecaster.report_
    rows = sum(one["rows"] for one in report["series"].values())
    masked = sum(one["masked_rows"] for one in report["series"].values())
    click.echo(f"Read {rows} rows; {masked} of them lack a value and are masked.")
    click.echo(
        f"Trained {report['training_steps']} steps on {report['num_training_windows']} windows; "
        f"the weights kept are those of step {report['best_step']}, chosen on "
        f"{report['num_validation_windows']} validation windows."
    )
    click.echo(f"Wrote {model}. Next:")
    for command, output in (("forecast", "forecast.csv"), ("backtest", "backtest")):
        words = ["taylorformer", command, reading.file, "--model", str(model), *reading.words]
        click.echo(f"  {shlex.join([*words, '--output', output])}")


def _check_free(folder: Path, resume: bool) -> None:
    """Refuses to replace a model unasked."""
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import FILE

    model, checkpoint = ((folder / name).exists() for name in (FILE, _CHECKPOINT))
    if not checkpoint and model:
        message = f"{folder} holds a model without its training; --overwrite replaces it."
    elif checkpoint and not resume:
        what = "a model" if model else "a training that was stopped"
        message = f"{folder} holds {what}; --resume goes on with it, --overwrite starts anew."
    else:
        return
    raise click.BadParameter(message, param_hint="--model")


@contextlib.contextmanager
def stopped_politely() -> Iterator[None]:
    """Makes a polite kill stop as Ctrl-C does, so that there is a word on how to go on."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show_plan(
    frame: "pd.DataFrame",
    columns: "Columns",
    disorder: dict[str, Any],
    context_length: int,
    horizon: int,
    fractions: Sequence[float],
) -> None:
    """Says what a training would read."""
    from taylorformer.data_wrangler.tables.long_table import split_table
    from taylorformer.data_wrangler.tables.panel import Panel
    from taylorformer.data_wrangler.tables.report import inspect_table
    from taylorformer.data_wrangler.tables.split import (
        PARTS,
        Split,
        WindowSpec,
        panel_window_starts,
    )

    click.echo(f"time        {columns.time_column}")
    click.echo(f"targets     {', '.join(map(str, columns.target_columns))}")
    if columns.id_column is not None:
        click.echo(f"ids         {columns.id_column}")
    if columns.covariate_columns:
        click.echo(f"covariates  {', '.join(map(str, columns.covariate_columns))}")
    click.echo()
    report = inspect_table(frame, columns).to_frame()
    shown = report if len(report) <= 20 else report.head(20)
    # One series reads best as a column of facts, several as a table.
    text = shown.iloc[0].to_string() if len(shown) == 1 else shown.to_string(index=False)
    click.echo(text)
    if len(report) > len(shown):
        click.echo(f"... and {len(report) - len(shown)} more series")
    click.echo()
    panel = Panel(split_table(frame, columns, **disorder))
    spec = WindowSpec(context_length, horizon)
    splits = [Split.chronological(one.num_rows, fractions) for one in panel.series]
    for part in PARTS:
        sizes = [len(split.rows(part)) for split in splits]
        if not any(sizes):
            click.echo(f"{part:<11} no rows")
            continue
        try:
            count = len(panel_window_starts(panel, splits, spec, part))
        except ValueError as error:
            # Training does not need the test part.
            if part != PARTS[-1]:
                raise
            click.echo(f"{part:<11} {sum(sizes)} rows: {error}")
            continue
        span = ""
        if panel.num_series == 1:
            rows, stamps = splits[0].rows(part), panel.series[0].stamps
            span = f", {stamps[rows[0]]} to {stamps[rows[-1]]}"
        click.echo(f"{part:<11} {sum(sizes)} rows, {count} windows of {spec.length} rows{span}")
    click.echo("\nNothing was trained.")


@click.command()
@_reading
@_model_to_read
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="CSV file for the forecast.",
)
@click.option(
    "--future",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table of the times (and covariates) to forecast.",
)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    show_default="that of the model",
    help="Rows to forecast.",
)
@_sampling
@click.option(
    "--quantile",
    "quantiles",
    type=click.FloatRange(0, 1),
    multiple=True,
    default=(0.05, 0.25, 0.5, 0.75, 0.95),
    help="Quantile to write, more than once for several.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default="the output, as .png",
    help="File for the picture of the first series.",
)
def forecast(
    reading: _Reading,
    model: Path,
    output: Path,
    future: Path | None,
    horizon: int | None,
    samples: int,
    seed: int,
    quantiles: Sequence[float],
    plot: Path | None,
) -> None:
    """Forecast what follows the last row of a table, as a table of quantiles and a picture.

    FILE is as for `fit`, with the same columns.
    """
    columns = _columns_of(model)
    frame = reading.frame(columns.target_columns, columns.id_column)
    places = None
    if future is not None:
        places = reading.table(future, columns.id_column)
    start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
    from taylorformer.training_and_evaluation.training.progress import WorkProgress

    forecaster = Forecaster.load(model)
    with WorkProgress("Forecasting series") as progress:
        result = forecaster.forecast(
            frame,
            places,
            horizon=horizon,
            num_samples=samples,
            seed=seed,
            progress=progress,
            **reading.disorder,
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    result.to_frame(quantiles).to_csv(output, index=False)
    picture = output.with_suffix(".png") if plot is None else plot
    picture.parent.mkdir(parents=True, exist_ok=True)
    title = result.names[0] or Path(reading.file).name.split(".")[0]
    result.plot(title=f"{title}: forecast by Taylorformer").savefig(picture)
    click.echo(f"Wrote {output} and {picture}: {samples} samples.")


@click.command()
@_reading
@_model_to_read
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for tables and pictures. Without it the scores are only shown.",
)
@click.option(
    "--part",
    type=click.Choice(["test", "validation", "training"]),
    default="test",
    help="Which part of the table to score.",
)
@click.option(
    "--step",
    type=click.IntRange(min=1),
    show_default="the horizon",
    help="Rows from one window to the next.",
)
@click.option(
    "--windows",
    type=click.IntRange(min=1),
    show_default="all",
    help="Windows a series, the last ones.",
)
@click.option(
    "--season", help="Adds the line that repeats the last season, such as '1 day', or a number."
)
@click.option(
    "--units",
    type=click.Choice(["user", "scaled"]),
    default="user",
    help="Scores in the units of the table, or standardised as in papers.",
)
@_sampling
def backtest(
    reading: _Reading,
    model: Path,
    output: Path | None,
    part: str,
    step: int | None,
    windows: int | None,
    season: str | None,
    units: str,
    samples: int,
    seed: int,
) -> None:
    """Score forecasts from many origins in the part of a table that training has not seen.

    FILE is as for `fit`, with the same columns; it may be longer than the table of training.
    """
    columns = _columns_of(model)
    frame = reading.frame(columns.target_columns, columns.id_column)
    start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
    from taylorformer.training_and_evaluation.training.progress import WorkProgress

    forecaster = Forecaster.load(model)
    with WorkProgress("Forecasting windows") as progress:
        result = forecaster.backtest(
            frame,
            part=part,
            step=step,
            num_windows=windows,
            num_samples=samples,
            seed=seed,
            season=_season(season),
            units=units,
            progress=progress,
            **reading.disorder,
        )
    click.echo(
        f"{result.num_windows} windows of the {part} part, {result.num_scored_points} points, "
        f"{samples} samples, {'units of the table' if units == 'user' else 'standardised'}"
    )
    click.echo(
        result.scores.set_index("line").T.to_string(
            float_format=lambda value: f"{value:.4g}", na_rep=""
        )
    )
    if output is not None:
        result.save(output)
        click.echo(f"Wrote {output}.")


@click.command()
@_model_to_read
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the SavedModel.",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder.")
def export(model: Path, output: Path, overwrite: bool) -> None:
    """Write a model as a SavedModel that TensorFlow alone can serve.

    It takes raw numbers and times and gives forecasts in their units.
    """
    _columns_of(model)
    if output.exists() and any(output.iterdir()) and not overwrite:
        raise click.BadParameter(
            f"{output} is not empty; --overwrite replaces what is in it.", param_hint="--output"
        )
    start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

    forecaster = Forecaster.load(model)
    forecaster.export(output)
    names = forecaster.scaler_.names
    click.echo(f"Wrote {output}: endpoints serving_default, sample, log_prob.")
    if len(names) > 1:
        click.echo(f"The input `series` counts from 0 in this order: {', '.join(names)}")


def _season(season: str | None) -> float | str | None:
    try:
        return None if season is None else float(season)
    except ValueError:
        return season
