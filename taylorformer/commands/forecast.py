"""The commands that forecast a table: `fit`, `forecast`, `backtest` and `export`."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taylorformer.commands import options
from taylorformer.commands.dry_run import show_plan
from taylorformer.commands.outputs import check_output, check_output_folder, overwrite_option
from taylorformer.commands.table_file import TableFile, with_table_file

if TYPE_CHECKING:
    from taylorformer.data_wrangler.tables.columns import Columns
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

_CHECKPOINT = "training.npz"
_OF_PRESET = "that of the preset"
# A day of quarter hours, and the shares of the parts: those of the paper's ETT tables.
_DEFAULT_ROWS = 96
_DEFAULT_FRACTIONS = (0.69, 0.11, 0.20)
_DEFAULT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Digits of a score on the screen; files have all of them.
_SHOWN_DIGITS = 4

_model_option = click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder that `fit` has written.",
)


def _bounds(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> Any:
    """Reads numbers, or "none"; one for all targets is returned as it is, none as None."""
    try:
        bounds = [None if text.lower() == "none" else float(text) for text in texts]
    except ValueError:
        raise click.BadParameter(
            f"must be a number, or 'none'. Received: {', '.join(texts)}", context, option
        ) from None
    return None if not bounds else bounds[0] if len(bounds) == 1 else bounds


_sampling_options = options.joined(
    click.option("--samples", type=options.POSITIVE, default=100, help="Joint samples."),
    options.seed_option("Seed of the samples."),
)

_freq_option = click.option(
    "--freq",
    help="How times continue, such as B, 30min, W-FRI, ME, or a step of numbers. Default: by a "
    "calendar that they keep.",
)


@click.command()
@with_table_file
@click.option(
    "--model",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the model.",
)
@click.option(
    "--time",
    "time_columns",
    multiple=True,
    help="Column of time, more than once to join several, such as date and time of day. "
    "Default: ds, date, ... or the first.",
)
@click.option(
    "--target", "targets", multiple=True, help="Column to forecast, more than once for several."
)
@click.option("--id", "id_column", help="Column that tells series apart. Default: unique_id.")
@click.option(
    "--covariate", "covariates", multiple=True, help="Column that is known ahead of time."
)
@click.option("--date-format", help="Form of the dates, such as %d/%m/%Y. Default: ISO 8601.")
@click.option("--day-first", is_flag=True, help="The dates are such as 31/12/2024 or 31.12.2024.")
@click.option(
    "--time-unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="Times are numbers that count this unit since 1970, and become dates.",
)
@click.option(
    "--time-zone", help="Show dates with UTC offsets in this zone, such as Europe/Berlin."
)
@_freq_option
@click.option("--horizon", type=options.POSITIVE, default=_DEFAULT_ROWS, help="Rows to forecast.")
@click.option(
    "--context-length", type=options.POSITIVE, default=_DEFAULT_ROWS, help="Rows a forecast reads."
)
@click.option("--preset", default="compact", help="Sizes of the model and how it is trained.")
@click.option(
    "--scaling",
    type=click.Choice(["window", "standard"]),
    show_default=_OF_PRESET,
    help="Values about the last one of the context, or about the training mean.",
)
@click.option(
    "--lower",
    "lower",
    callback=_bounds,
    multiple=True,
    metavar="NUMBER",
    help="Least value of the targets; once for all, or once for each ('none': no bound).",
)
@click.option(
    "--upper",
    "upper",
    callback=_bounds,
    multiple=True,
    metavar="NUMBER",
    help="Largest value of the targets, likewise.",
)
@click.option("--integers", is_flag=True, help="The targets are whole numbers, such as counts.")
@options.number_option("--max-steps", _OF_PRESET, "Training steps.")
@options.number_option("--batch-size", _OF_PRESET, "Windows in a training step.")
@options.learning_rate_option(_OF_PRESET)
@click.option(
    "--fractions",
    type=float,
    nargs=3,
    default=_DEFAULT_FRACTIONS,
    help="Shares of the training, validation and test part, in the order of time.",
)
@options.seed_option("Seed of the training.")
@options.resume_options(
    "Continue a training that was stopped.", "Replace the model that is in the folder."
)
@click.option("--dry-run", is_flag=True, help="Say what would be read, and train nothing.")
def fit(
    table: TableFile,
    model: Path,
    time_columns: Sequence[str],
    targets: Sequence[str],
    id_column: str | None,
    covariates: Sequence[str],
    date_format: str | None,
    day_first: bool,
    time_unit: str | None,
    time_zone: str | None,
    freq: str | None,
    horizon: int,
    context_length: int,
    preset: str,
    scaling: str | None,
    lower: Any,
    upper: Any,
    integers: bool,
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
    package). A training that was stopped, or killed, continues with --resume as if it had not been.
    """
    options.refuse_both("--resume", resume, "--overwrite", overwrite)
    if not (dry_run or overwrite):
        _check_free(model, resume)
    from taylorformer.data_wrangler.tables.columns import Columns

    frame = table.read(targets, id_column, time_columns)
    columns = Columns.resolve(
        frame,
        time_column=list(time_columns) or None,
        target_columns=list(targets) or None,
        id_column=id_column,
        covariate_columns=tuple(covariates),
        date_format=date_format,
        day_first=day_first,
        time_unit=time_unit,
        time_zone=time_zone,
        freq=freq,
    )
    if dry_run:
        show_plan(frame, columns, table.disorder, context_length, horizon, fractions)
        return
    options.start_tensorflow()
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
        lower=lower,
        upper=upper,
        integers=integers,
    )
    checkpoint = model / _CHECKPOINT

    def advice() -> str:
        return "The same command with --resume continues it." if checkpoint.exists() else ""

    with options.stoppable(advice), WorkProgress("Training") as progress:
        forecaster.fit(
            frame,
            [str(part) for part in columns.time_parts] or columns.time_column,
            columns.target_columns,
            id_column=columns.id_column,
            covariate_columns=columns.covariate_columns,
            date_format=columns.date_format,
            day_first=columns.day_first,
            time_unit=columns.time_unit,
            time_zone=columns.time_zone,
            freq=columns.freq,
            checkpoint=checkpoint,
            resume=resume,
            callbacks=[TrainingBar(progress)],
            **table.disorder,
        )
    forecaster.save(model, overwrite=True)
    _show_training(forecaster)
    click.echo(f"Wrote {model}. Next:")
    for command, output in (("forecast", "forecast.csv"), ("backtest", "backtest")):
        words = ["taylorformer", command, table.file, "--model", str(model), *table.words]
        click.echo(f"  {shlex.join([*words, '--output', output])}")


def _show_training(forecaster: "Forecaster") -> None:
    """Says how much a training read, and which of its weights were kept."""
    report = forecaster.report_
    rows = sum(series["rows"] for series in report["series"].values())
    masked = sum(series["masked_rows"] for series in report["series"].values())
    click.echo(f"Read {rows} rows; {masked} of them lack a value and are masked.")
    click.echo(
        f"Trained {report['training_steps']} steps on {report['num_training_windows']} windows; "
        f"the weights kept are those of step {report['best_step']}, chosen on "
        f"{report['num_validation_windows']} validation windows."
    )
    _show_left_out("the training", report["left_out"])


def _show_left_out(work: str, left_out: Mapping[str, str]) -> None:
    """Names the series that a command could not use, with the reasons."""
    from taylorformer.data_wrangler.tables.odd_series import by_reason

    if left_out:
        click.echo(f"Left out of {work}: {by_reason(left_out)}.")


def _check_free(folder: Path, resume: bool) -> None:
    """Refuses to replace a model unasked."""
    from taylorformer.data_wrangler.whole_files import find_file
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import FILE

    has_model, has_checkpoint = (find_file(folder, name).exists() for name in (FILE, _CHECKPOINT))
    if has_model and not has_checkpoint:
        obstacle = f"{folder} holds a model without its training"
        raise options.refusal("--model", obstacle, overwrite="replaces it")
    if has_checkpoint and not resume:
        obstacle = f"{folder} holds {'a model' if has_model else 'a training that was stopped'}"
        raise options.refusal("--model", obstacle, "starts anew", resume="continues it")


@click.command()
@with_table_file
@_model_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File for the forecast: .csv (also .gz, .bz2, .xz, .zip), .parquet or .pq.",
)
@click.option(
    "--future",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table of the times (and covariates) to forecast. --sort sorts it too.",
)
@_freq_option
@options.number_option("--horizon", "that of the model", "Rows to forecast.")
@_sampling_options
@click.option(
    "--quantile",
    "quantiles",
    type=click.FloatRange(0, 1),
    multiple=True,
    default=_DEFAULT_QUANTILES,
    help="Quantile to write, more than once for several.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default="the output, as .png",
    help="File for the picture of the first series: .png, .pdf, .svg, ...",
)
@overwrite_option
def forecast(
    table: TableFile,
    model: Path,
    output: Path,
    future: Path | None,
    freq: str | None,
    horizon: int | None,
    samples: int,
    seed: int,
    quantiles: Sequence[float],
    plot: Path | None,
    overwrite: bool,
) -> None:
    """Forecast what follows the last row of a table, as a table of quantiles and a picture.

    FILE is as for `fit`, with the same columns.
    """
    picture = _checked_picture(output, plot, overwrite, [*_inputs(table, model), future])
    columns = _columns_of(model)
    frame = table.read(columns.target_columns, columns.id_column, _time_columns(columns))
    future_frame = None
    if future is not None:
        future_frame = table.read_path(future, columns.id_column, _time_columns(columns))
    forecaster = _load_forecaster(model)
    from taylorformer.training_and_evaluation.training.progress import WorkProgress

    with WorkProgress("Forecasting series") as progress:
        result = forecaster.forecast(
            frame,
            future_frame,
            horizon=horizon,
            num_samples=samples,
            seed=seed,
            freq=freq,
            progress=progress,
            **table.disorder,
        )
    from taylorformer.training_and_evaluation.plot_style import save_figure

    title = result.names[0] or Path(table.file).name.split(".")[0]
    figure = result.plot(title=f"{title}: forecast by Taylorformer")
    result.save(output, quantiles, overwrite=overwrite)
    save_figure(figure, picture, overwrite=overwrite)
    click.echo(f"Wrote {output} and {picture}: {samples} samples.")
    _show_left_out("the forecast", result.left_out)


def _checked_picture(
    output: Path, plot: Path | None, overwrite: bool, inputs: Sequence[Path | None]
) -> Path:
    """Returns the path of the picture; refuses files that must not be written, before any work."""
    from taylorformer.data_wrangler.tables.files import check_table_path
    from taylorformer.training_and_evaluation.plot_style import check_picture_path

    ending = check_table_path(output, "--output")
    picture = output.with_name(output.name.removesuffix(ending) + ".png") if plot is None else plot
    check_picture_path(picture, "--plot")
    read = [path for path in inputs if path is not None]
    check_output("--output", output, overwrite, read)
    check_output("--plot", picture, overwrite, read)
    return picture


def _inputs(table: TableFile, model: Path) -> list[Path]:
    """Returns the files that a command with a trained model reads."""
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import FILE, MODEL_FILE

    return [Path(table.file), *(model / name for name in (FILE, MODEL_FILE, _CHECKPOINT))]


@click.command()
@with_table_file
@_model_option
@options.output_folder_option(
    "Folder for tables and pictures. Without it the scores are only shown."
)
@click.option(
    "--part",
    type=click.Choice(["test", "validation", "training"]),
    default="test",
    help="Which part of the table to score.",
)
@options.number_option("--step", "the horizon", "Rows from one window to the next.")
@options.number_option("--windows", "all", "Windows a series, the last ones.")
@click.option(
    "--season", help="Adds the line that repeats the last season, such as '1 day', or a number."
)
@click.option(
    "--units",
    type=click.Choice(["user", "scaled"]),
    default="user",
    help="Scores in the units of the table, or standardised as in papers.",
)
@_sampling_options
@overwrite_option
def backtest(
    table: TableFile,
    model: Path,
    output: Path | None,
    part: str,
    step: int | None,
    windows: int | None,
    season: str | None,
    units: str,
    samples: int,
    seed: int,
    overwrite: bool,
) -> None:
    """Score forecasts from many origins in the part of a table that training has not seen.

    FILE is as for `fit`, with the same columns; it may be longer than the table of training.
    """
    if output is not None:
        from taylorformer.training_and_evaluation.forecasting.backtest import FILES

        for name in FILES:
            check_output("--output", output / name, overwrite, _inputs(table, model))
    columns = _columns_of(model)
    frame = table.read(columns.target_columns, columns.id_column, _time_columns(columns))
    forecaster = _load_forecaster(model)
    from taylorformer.training_and_evaluation.training.progress import WorkProgress

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
            **table.disorder,
        )
    click.echo(
        f"{result.num_windows} windows of the {part} part, {result.num_scored_points} points, "
        f"{samples} samples, {'units of the table' if units == 'user' else 'standardised'}"
    )
    click.echo(
        result.scores.set_index("line").T.to_string(
            float_format=lambda value: f"{value:.{_SHOWN_DIGITS}g}", na_rep=""
        )
    )
    _show_left_out("the back-test", result.left_out)
    if output is not None:
        result.save(output, overwrite=overwrite)
        click.echo(f"Wrote {output}.")


@click.command()
@_model_option
@options.output_folder_option("Folder for the SavedModel.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace a SavedModel that is in the folder.")
def export(model: Path, output: Path, overwrite: bool) -> None:
    """Write a model as a SavedModel that TensorFlow alone can serve.

    It takes raw numbers and times and gives forecasts in their units.
    """
    _columns_of(model)
    from taylorformer.model.saved_model_folder import check_export_folder

    try:
        check_export_folder(output, overwrite=True)
    except FileExistsError as error:
        raise click.BadParameter(str(error), param_hint="--output") from error
    check_output_folder(output, overwrite)
    forecaster = _load_forecaster(model)
    forecaster.export(output, overwrite=overwrite)
    names = forecaster.scaler_.names
    click.echo(f"Wrote {output}: endpoints serving_default, sample, log_prob.")
    if len(names) > 1:
        click.echo(f"The input `series` counts from 0 in this order: {', '.join(names)}")


def _columns_of(model: Path) -> "Columns":
    """Reads the columns of a model, without TensorFlow, so that a bad table is found at once."""
    from taylorformer.data_wrangler.whole_files import find_file
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import (
        FILE,
        SavedForecaster,
    )

    if not find_file(model, FILE).exists():
        raise click.BadParameter(f"{model} holds no trained model.", param_hint="--model")
    return SavedForecaster.read(model).columns


def _time_columns(columns: "Columns") -> tuple[Any, ...]:
    return columns.time_parts or (columns.time_column,)


def _load_forecaster(model: Path) -> "Forecaster":
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

    return Forecaster.load(model)


def _season(season: str | None) -> float | str | None:
    try:
        return None if season is None else float(season)
    except ValueError:
        return season
