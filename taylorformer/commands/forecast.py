"""The commands that forecast a table: `fit`, `forecast`, `backtest` and `export`."""

import functools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taylorformer.commands import options
from taylorformer.commands.dry_run import show_plan, show_table
from taylorformer.commands.outputs import check_output, check_output_folder, overwrite_option
from taylorformer.commands.table_file import TableFile, with_table_file
from taylorformer.training_and_evaluation.model_kinds import MODEL_KINDS

if TYPE_CHECKING:
    from taylorformer.data_wrangler.tables.columns import Columns
    from taylorformer.training_and_evaluation.forecasting.forecast import Forecast
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
    from taylorformer.training_and_evaluation.forecasting.pretrained_forecaster import (
        PretrainedForecaster,
    )

_CHECKPOINT = "training.npz"
_OF_PRESET = "that of the preset"
_OF_TRAINING = "by the length of the table; of new weights that of the preset"
_NO_START, _START_OF_ARGUMENTS = "none", "auto"
# The shares of the parts: those of the paper's ETT tables.
_DEFAULT_FRACTIONS = (0.69, 0.11, 0.20)
_DEFAULT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Digits of a score on the screen; files have all of them.
_SHOWN_DIGITS = 4

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_model_option = click.option(
    "--model", type=_FOLDER, required=True, help="Folder that `fit` has written."
)
_optional_model_option = click.option(
    "--model",
    type=_FOLDER,
    show_default="the pretrained model, which needs no `fit`",
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


_column_options = options.joined(
    click.option(
        "--time",
        "time_columns",
        multiple=True,
        help="Column of time, more than once to join several, such as date and time of day. "
        "Default: ds, date, ... or the first.",
    ),
    click.option(
        "--target", "targets", multiple=True, help="Column to forecast, more than once for several."
    ),
    click.option("--id", "id_column", help="Column that tells series apart. Default: unique_id."),
    click.option(
        "--covariate", "covariates", multiple=True, help="Column that is known ahead of time."
    ),
    click.option("--date-format", help="Form of the dates, such as %d/%m/%Y. Default: ISO 8601."),
    click.option(
        "--day-first", is_flag=True, help="The dates are such as 31/12/2024 or 31.12.2024."
    ),
    click.option(
        "--time-unit",
        type=click.Choice(["s", "ms", "us", "ns"]),
        help="Times are numbers that count this unit since 1970, and become dates.",
    ),
    click.option(
        "--time-zone", help="Show dates with UTC offsets in this zone, such as Europe/Berlin."
    ),
)

_support_options = options.joined(
    click.option(
        "--lower",
        "lower",
        callback=_bounds,
        multiple=True,
        metavar="NUMBER",
        help="Least value of the targets; once for all, or once for each ('none': no bound).",
    ),
    click.option(
        "--upper",
        "upper",
        callback=_bounds,
        multiple=True,
        metavar="NUMBER",
        help="Largest value of the targets, likewise.",
    ),
    click.option("--integers", is_flag=True, help="The targets are whole numbers, such as counts."),
)

_pretrained_options = options.joined(
    click.option(
        "--season",
        "seasons",
        multiple=True,
        help="Season: a number of steps, a length such as '7 days', 'none', or 'auto'; more than "
        "once for several. Default: those that the rows show.",
    ),
    options.number_option("--context-length", "160, or more for long seasons", "Rows to read."),
    _column_options,
    _support_options,
)
_OPTION_NAMES = {
    "seasons": "--season",
    "context_length": "--context-length",
    "time_columns": "--time",
    "targets": "--target",
    "id_column": "--id",
    "covariates": "--covariate",
    "date_format": "--date-format",
    "day_first": "--day-first",
    "time_unit": "--time-unit",
    "time_zone": "--time-zone",
    "lower": "--lower",
    "upper": "--upper",
    "integers": "--integers",
}
_SETTINGS = ("seasons", "context_length", "lower", "upper", "integers")
# Of a forecast of many series.
_MOST_SHOWN_SEASONS = 3


@click.command()
@with_table_file
@click.option(
    "--model",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the model.",
)
@_column_options
@_freq_option
@options.number_option("--horizon", "one season; of new weights 96", "Rows to forecast.")
@options.number_option(
    "--context-length",
    "160, or more for long seasons; of new weights 96",
    "Rows a forecast reads.",
)
@click.option(
    "--start",
    default=_START_OF_ARGUMENTS,
    show_default="auto: prior, unless --architecture, --preset, --scaling or --interpolate "
    "describe a model",
    help="Weights to begin with: prior, the pretrained ones, which suit short tables too; the "
    ".keras file of a model that `taylorformer experiment prior` trained; or none: new ones.",
)
@click.option(
    "--architecture",
    "model_name",
    type=click.Choice(list(MODEL_KINDS)),
    show_default="that of --preset, or taylorformer",
    help="Which model is trained. Autoformer and Informer read even times of fixed lengths.",
)
@click.option(
    "--preset",
    show_default="the small one of the model, such as compact",
    help="Sizes of the model and how it is trained, such as ett, tnp-ett, autoformer-small.",
)
@click.option(
    "--season",
    "seasons",
    multiple=True,
    show_default="auto; none for new weights, but of autoformer and informer",
    help="Season that the model reads as time features: a number of steps, a length such as "
    "'7 days', 'none', or 'auto' for those that the training part shows; more than once for "
    "several.",
)
@click.option(
    "--interpolate",
    is_flag=True,
    help="Interpolate uneven and missing rows, for autoformer and informer.",
)
@click.option(
    "--scaling",
    type=click.Choice(["window", "standard"]),
    show_default=_OF_PRESET,
    help="Values about the last one of the context, or about the training mean.",
)
@_support_options
@options.number_option("--max-steps", _OF_TRAINING, "Training steps.")
@options.number_option("--batch-size", _OF_TRAINING, "Windows in a training step.")
@options.learning_rate_option(_OF_TRAINING)
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
    horizon: int | None,
    context_length: int | None,
    start: str,
    model_name: str | None,
    preset: str | None,
    seasons: Sequence[str],
    interpolate: bool,
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
    is_pretrained = start not in (_NO_START, _START_OF_ARGUMENTS)
    for name, value in (
        ("--architecture", model_name),
        ("--preset", preset),
        ("--scaling", scaling),
        ("--interpolate", interpolate),
    ):
        options.refuse_both("--start", is_pretrained, name, bool(value))
    if not (dry_run or overwrite):
        _check_free(model, resume)
    given = {
        "time_columns": time_columns,
        "targets": targets,
        "id_column": id_column,
        "covariates": covariates,
        "date_format": date_format,
        "day_first": day_first,
        "time_unit": time_unit,
        "time_zone": time_zone,
    }
    frame = table.read(targets, id_column, time_columns)
    columns = _resolve_columns(frame, given, freq)
    arguments: dict[str, Any] = {
        "horizon": horizon,
        "context_length": context_length,
        "start": None if start == _NO_START else start,
        "model": model_name,
        "preset": preset,
        "scaling": scaling,
        "max_steps": max_steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "fractions": fractions,
        "seed": seed,
        "lower": lower,
        "upper": upper,
        "integers": integers,
        "interpolate": interpolate,
    }
    if seasons:
        # Without the option the model says which seasons it reads.
        arguments["seasons"] = _seasons(seasons)
    if dry_run:
        _show_plan(frame, columns, table.disorder, arguments, _seasons(seasons))
        return
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
    from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress

    forecaster = Forecaster(**arguments)
    checkpoint = model / _CHECKPOINT
    before = _written_at(checkpoint)

    def advice() -> str:
        written = _written_at(checkpoint)
        if written is None or (written == before and not resume):
            return ""
        instead = " instead of --overwrite" if overwrite else ""
        return f"The same command with --resume{instead} continues it."

    with options.stoppable(advice), WorkProgress("Training") as progress:
        forecaster.fit(
            frame,
            **_roles_of(columns),
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


def _written_at(path: Path) -> int | None:
    """Returns when a file was written, None where there is none."""
    return path.stat().st_mtime_ns if path.exists() else None


def _show_plan(
    frame: Any,
    columns: "Columns",
    disorder: Mapping[str, Any],
    arguments: Mapping[str, Any],
    seasons: Any,
) -> None:
    """Says what a training would read."""
    from taylorformer.training_and_evaluation.forecasting.settings import ForecasterSettings

    settings = ForecasterSettings.of(arguments)
    spec = settings.spec if settings.start is None else None
    show_plan(frame, columns, disorder, spec, settings.fractions, seasons)


def _resolve_columns(frame: Any, given: Mapping[str, Any], freq: str | None) -> "Columns":
    """Finds the columns of a table by the values of `_column_options`."""
    from taylorformer.data_wrangler.tables.columns import Columns

    return Columns.resolve(
        frame,
        time_column=list(given["time_columns"]) or None,
        target_columns=list(given["targets"]) or None,
        id_column=given["id_column"],
        covariate_columns=tuple(given["covariates"]),
        date_format=given["date_format"],
        day_first=given["day_first"],
        time_unit=given["time_unit"],
        time_zone=given["time_zone"],
        freq=freq,
    )


def _roles_of(columns: "Columns") -> dict[str, Any]:
    """Returns the arguments of forecasters that say which column is what."""
    return {
        "time_column": [str(part) for part in columns.time_parts] or columns.time_column,
        "target_columns": columns.target_columns,
        "id_column": columns.id_column,
        "covariate_columns": columns.covariate_columns,
        "date_format": columns.date_format,
        "day_first": columns.day_first,
        "time_unit": columns.time_unit,
        "time_zone": columns.time_zone,
    }


def _time_columns(columns: "Columns") -> tuple[Any, ...]:
    """Returns the columns that make the time."""
    return columns.time_parts or (columns.time_column,)


def _show_training(forecaster: "Forecaster") -> None:
    """Says how much a training read, and which of its weights were kept."""
    report = forecaster.report_
    rows = sum(series["rows"] for series in report["series"].values())
    masked = sum(series["masked_rows"] for series in report["series"].values())
    click.echo(f"Read {rows} rows; {masked} of them lack a value and are masked.")
    share, windows = report.get("share", 1), report["num_validation_windows"]
    kept = f"those of step {report['best_step']}"
    if not share:
        kept = (
            f"the pretrained ones: no others forecast {windows} validation windows clearly better"
        )
    elif not windows:
        kept = "those of the last step"
    else:
        if share < 1:
            kept = f"at {share:.0%} of the way from the pretrained ones to {kept}"
        kept += f", chosen on {windows} validation windows"
    click.echo(
        f"Trained {report['training_steps']} steps on {report['num_training_windows']} windows; "
        f"the weights kept are {kept}."
    )
    if share and report.get("kept"):
        ((score, after),) = report["kept"].items()
        before = report["start"][score]
        click.echo(f"{score.replace('_', ' ').capitalize()}: {before:.4g} before, {after:.4g} now.")
    if "seasons" in report:
        click.echo(f"Time features: the phases of seasons, {report['seasons']}.")
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
@_optional_model_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the forecast: .csv (also .gz, .bz2, .xz, .zip), .parquet or .pq.",
)
@click.option(
    "--future",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table of the times (and covariates) to forecast. --sort sorts it too.",
)
@_freq_option
@options.number_option("--horizon", "that of the model, or one season", "Rows to forecast.")
@_pretrained_options
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
@click.option("--dry-run", is_flag=True, help="Say what would be read, and forecast nothing.")
@overwrite_option
def forecast(
    table: TableFile,
    model: Path | None,
    output: Path | None,
    future: Path | None,
    freq: str | None,
    horizon: int | None,
    samples: int,
    seed: int,
    quantiles: Sequence[float],
    plot: Path | None,
    dry_run: bool,
    overwrite: bool,
    **pretrained: Any,
) -> None:
    """Forecast what follows the last row of a table, as a table of quantiles and a picture.

    FILE is as for `fit`. Without --model a pretrained model forecasts it, and nothing is trained.
    With --model the columns are those of the training.
    """
    source = _Source(table, model, pretrained, freq)
    if dry_run:
        source.show()
        return
    if output is None:
        raise click.UsageError("Missing option '--output'.")
    picture = _checked_picture(output, plot, overwrite, [*_inputs(table, model), future])
    frame = source.read()
    future_frame = None
    if future is not None:
        future_frame = table.read_path(
            future, source.columns.id_column, _time_columns(source.columns)
        )
    forecaster = source.forecaster()
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
            **source.roles,
            **table.disorder,
        )
    from taylorformer.training_and_evaluation.plot_style import save_figure

    title = result.names[0] or Path(table.file).name.split(".")[0]
    figure = result.plot(title=f"{title}: forecast by {_name_of(forecaster)}")
    result.save(output, quantiles, overwrite=overwrite)
    save_figure(figure, picture, overwrite=overwrite)
    if result.seasons:
        _show_seasons(result, "pretrained" if source.is_pretrained else "trained")
    click.echo(f"Wrote {output} and {picture}: {samples} samples.")
    _show_left_out("the forecast", result.left_out)


def _name_of(forecaster: "Forecaster | PretrainedForecaster") -> str:
    """Names the model for people."""
    return type(forecaster.model_).__name__


def _show_seasons(result: "Forecast", kind: str) -> None:
    """Says how many rows are forecast, by what kind of model, and with which seasons."""
    horizons = sorted({len(stamps) for stamps in result.stamps})
    rows = " to ".join(str(count) for count in dict.fromkeys([horizons[0], horizons[-1]]))
    texts = [one.describe() for every in result.seasons for one in every]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    shown = list(counts)[:_MOST_SHOWN_SEASONS]
    seasons = "; ".join(
        text if len(texts) == 1 else f"{text} ({counts[text]} of {len(texts)})" for text in shown
    )
    more = f"; {len(counts) - len(shown)} more" if len(counts) > len(shown) else ""
    click.echo(f"Forecast of {rows} rows by the {kind} model; seasons: {seasons}{more}.")


class _Source:
    """A table and the model that reads it: one of a folder, or the pretrained one.

    Args:
        table: the file.
        model: the folder, or None.
        given: the values of `_pretrained_options`.
        freq: how stamps continue.

    Raises:
        click.UsageError: options of the pretrained model beside a folder.
    """

    def __init__(
        self,
        table: TableFile,
        model: Path | None,
        given: Mapping[str, Any],
        freq: str | None = None,
    ) -> None:
        self._table = table
        self._model = model
        self._given = given
        self._freq = freq
        self._columns = None if model is None else _columns_of(model)
        # A pretrained model that was saved has settings, and no columns.
        self._takes_columns = self._columns is None
        if model is not None:
            used = [
                option
                for name, option in _OPTION_NAMES.items()
                if given.get(name) not in (None, (), False)
                and not (self._takes_columns and name not in _SETTINGS)
            ]
            if used:
                raise click.UsageError(
                    f"{', '.join(used)} cannot be given with --model, which has "
                    f"{'its settings' if self._takes_columns else 'its columns and settings'}."
                )

    @functools.cached_property
    def _read(self) -> tuple[Any, "Columns"]:
        given, columns = self._given, self._columns
        if columns is not None:
            frame = self._table.read(
                columns.target_columns, columns.id_column, _time_columns(columns)
            )
            return frame, columns
        frame = self._table.read(given["targets"], given["id_column"], given["time_columns"])
        return frame, _resolve_columns(frame, given, self._freq)

    def read(self) -> Any:
        """Reads the table, once."""
        return self._read[0]

    @property
    def columns(self) -> "Columns":
        """Which column plays which part."""
        return self._read[1]

    @property
    def roles(self) -> dict[str, Any]:
        """The arguments of a pretrained forecaster that say which column is what."""
        return _roles_of(self.columns) if self._takes_columns else {}

    @property
    def is_pretrained(self) -> bool:
        """Whether the model has seen no table yet."""
        return self._takes_columns

    def show(self) -> None:
        """Says what would be read, and which seasons the rows show."""
        frame = self.read()
        show_table(frame, self.columns, self._table.disorder, _seasons(self._given["seasons"]))

    def forecaster(self) -> Any:
        """Loads the model."""
        if self._model is not None:
            return _load_forecaster(self._model)
        options.start_tensorflow()
        from taylorformer.training_and_evaluation.forecasting.pretrained_forecaster import (
            PretrainedForecaster,
        )

        given = self._given
        return PretrainedForecaster(
            context_length=given["context_length"],
            seasons=_seasons(given["seasons"]),
            lower=given["lower"],
            upper=given["upper"],
            integers=given["integers"],
        )


def _seasons(texts: Sequence[str]) -> Any:
    """Reads the values of `--season`: none given is "auto", "none" is None."""
    if not texts:
        return "auto"
    lowered = [text.lower() for text in texts]
    for word, value in (("none", None), ("auto", "auto")):
        if word in lowered:
            if len(texts) > 1:
                raise click.BadParameter(
                    f"{word!r} must be the only one. Received: {', '.join(texts)}",
                    param_hint="--season",
                )
            return value
    return [_season(text) for text in texts]


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


def _inputs(table: TableFile, model: Path | None) -> list[Path]:
    """Returns the files that a command reads."""
    if model is None:
        return [Path(table.file)]
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import FILE, MODEL_FILE

    return [Path(table.file), *(model / name for name in (FILE, MODEL_FILE, _CHECKPOINT))]


@click.command()
@with_table_file
@_optional_model_option
@options.output_folder_option(
    "Folder for tables and pictures. Without it the scores are only shown."
)
@click.option(
    "--part",
    type=click.Choice(["test", "validation", "training"]),
    show_default="test; without --model the last fifth of the rows",
    help="Which part of the table to score.",
)
@options.number_option("--step", "the horizon", "Rows from one window to the next.")
@options.number_option("--windows", "all", "Windows a series, the last ones.")
@options.number_option("--horizon", "that of the model, or one season", "Rows to forecast.")
@_pretrained_options
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
    model: Path | None,
    output: Path | None,
    part: str | None,
    step: int | None,
    windows: int | None,
    horizon: int | None,
    units: str,
    samples: int,
    seed: int,
    overwrite: bool,
    seasons: Sequence[str],
    **pretrained: Any,
) -> None:
    """Score forecasts from many origins in the part of a table that training has not seen.

    FILE is as for `fit`; with --model it has the columns of the training, and may be longer than
    its table. Without --model a pretrained model is scored on the last fifth of the rows, and
    --season is as for `forecast`; with --model it adds the line that repeats the last season.
    """
    if output is not None:
        from taylorformer.training_and_evaluation.forecasting.backtest import FILES

        for name in FILES:
            check_output("--output", output / name, overwrite, _inputs(table, model))
    chosen: dict[str, Any] = {}
    if model is None:
        if part is not None:
            raise click.UsageError("--part must not be given without --model: nothing is trained.")
        source = _Source(table, None, {**pretrained, "seasons": seasons})
    else:
        if len(seasons) > 1:
            raise click.UsageError("--season must be given once with --model.")
        source = _Source(table, model, pretrained)
        chosen = {"part": part or "test", "season": _season(seasons[0] if seasons else None)}
    frame = source.read()
    forecaster = source.forecaster()
    from taylorformer.training_and_evaluation.training.progress import WorkProgress

    with WorkProgress("Forecasting windows") as progress:
        result = forecaster.backtest(
            frame,
            step=step,
            num_windows=windows,
            horizon=horizon,
            num_samples=samples,
            seed=seed,
            units=units,
            progress=progress,
            **chosen,
            **source.roles,
            **table.disorder,
        )
    of_part = f" of the {chosen['part']} part" if chosen else ""
    click.echo(
        f"{result.num_windows} windows{of_part}, {result.num_scored_points} points, "
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
@_optional_model_option
@options.output_folder_option("Folder for the SavedModel.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace a SavedModel that is in the folder.")
def export(model: Path | None, output: Path, overwrite: bool) -> None:
    """Write a model as a SavedModel that TensorFlow alone can serve.

    It takes raw numbers and times and gives forecasts in their units.
    """
    if model is not None:
        _columns_of(model)
    from taylorformer.model.saved_model_folder import check_export_folder

    try:
        check_export_folder(output, overwrite=True)
    except FileExistsError as error:
        raise click.BadParameter(str(error), param_hint="--output") from error
    check_output_folder(output, overwrite)
    forecaster = _load_forecaster(model)
    forecaster.export(output, overwrite=overwrite)
    click.echo(f"Wrote {output}: endpoints serving_default, sample, log_prob.")
    scaler = getattr(forecaster, "scaler_", None)
    if scaler is None:
        click.echo("The input `periods` takes the seasons that `forecast` reports; 0 is none.")
    elif len(scaler.names) > 1:
        click.echo(f"The input `series` counts from 0 in this order: {', '.join(scaler.names)}")


def _columns_of(model: Path) -> "Columns | None":
    """Reads the columns of a model, without TensorFlow, so that a bad table is found at once.

    A pretrained model that was not trained on a table has none.
    """
    from taylorformer.data_wrangler.whole_files import find_file
    from taylorformer.training_and_evaluation.forecasting.saved_forecaster import (
        FILE,
        SavedPretrained,
        read_saved,
    )

    if not find_file(model, FILE).exists():
        raise click.BadParameter(f"{model} holds no trained model.", param_hint="--model")
    saved = read_saved(model)
    if isinstance(saved, SavedPretrained):
        return None if saved.training is None else saved.training.columns
    return saved.columns


def _load_forecaster(model: Path | None) -> "Forecaster | PretrainedForecaster":
    """Loads the forecaster of a folder, or the pretrained one."""
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

    return Forecaster.from_preset("prior") if model is None else Forecaster.load(model)


def _season(season: str | None) -> float | str | None:
    try:
        return None if season is None else float(season)
    except ValueError:
        return season
