"""The command that trains and compares models of random processes: `experiment`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taylorformer.commands import options

if TYPE_CHECKING:
    from taylorformer.training_and_evaluation.experiments.data import TaskData
    from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

_TABLE = "table.md"
# Of a name in the lists: the longest preset has 21 letters.
_NAME_WIDTH = 24
_OF_TASK = "that of the task, see --list"
_DEFAULT_PRESET = "taylorformer"
# The random orders that `--consistency` compares: their spread is then known to about a tenth.
_NUM_ORDERS = 40
# The training of the weights that come with the package, and what other tasks have beside it.
_PRIOR = "prior"
_NOT_OF_PRIOR = (
    "target_permutations",
    "validation_sequences",
    "test_sequences",
    "column",
    "warm_up",
    "beta_2",
    "clip_norm",
    "average",
    "variant",
    "recipe",
)


@click.command()
@click.argument("task_name", metavar="[TASK]", required=False)
@click.option("--list", "show_list", is_flag=True, help="List tasks, models and recipes, and stop.")
@click.option(
    "--architecture",
    "preset_name",
    show_default=_DEFAULT_PRESET,
    help="The preset of the model, see --list.",
)
@click.option("--ablation", is_flag=True, help="Train the four models of the ablation instead.")
@click.option(
    "--weights",
    "prefixes",
    multiple=True,
    type=click.Path(path_type=Path),
    help="With --architecture released: the path of a checkpoint of the authors' code, without its "
    ".index ending, to be scored; may be given several times.",
)
@options.number_option("--iterations", _OF_TASK, "Training steps.")
@click.option(
    "--repeats", type=options.POSITIVE, default=1, help="Trainings, from SEED, SEED + 1, ..."
)
@options.seed_option("Seed of the first training.")
@options.learning_rate_option(_OF_TASK)
@click.option(
    "--recipe",
    show_default="paper",
    help="How to train, see --list; the other options go before it.",
)
@click.option(
    "--schedule",
    type=click.Choice(["constant", "cosine"]),
    show_default="constant, or that of the model's preset; of the prior: cosine",
    help="Cosine lets the learning rate fall to 0 over all iterations.",
)
@options.number_option("--batch-size", _OF_TASK, "Sequences in a training step.")
@click.option(
    "--target-permutations",
    type=click.IntRange(min=0),
    show_default=_OF_TASK,
    help="Random orders of the targets of each sequence in training.",
)
@click.option(
    "--validate-every",
    type=options.POSITIVE,
    default=500,
    help="Training steps between two looks at the validation sequences.",
)
@options.number_option(
    "--validation-sequences",
    "256, or one of each image",
    "Held-out sequences that choose the weights to keep.",
)
@options.number_option(
    "--test-sequences", "2000, or one of each image", "Held-out sequences that are scored."
)
@click.option(
    "--column",
    show_default=_OF_TASK,
    help="The column of a series, such as a client of the electricity data.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    show_default="0",
    help="First training steps, in which the learning rate rises.",
)
@click.option(
    "--optimizer",
    type=click.Choice(["adam", "muon"]),
    show_default="adam",
    help="Muon changes matrices by orthogonal steps; newer versions of Keras have it.",
)
@click.option("--beta-2", type=options.BETWEEN_0_AND_1, show_default="0.999", help="Of Adam.")
@click.option(
    "--clip-norm",
    type=options.POSITIVE_REAL,
    show_default="10",
    help="The largest norm of a gradient.",
)
@click.option(
    "--average",
    type=options.BETWEEN_0_AND_1,
    show_default="no average",
    help="The decay per step of the average of the weights that is validated and kept.",
)
@click.option(
    "--variant", help="A name for the run, so that it stands beside the usual one of the model."
)
@click.option(
    "--set",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="An argument of the model, as num_neighbours=2, or with the task prior any of its "
    "settings, as prior.gaps=0.2; may be given several times.",
)
@click.option(
    "--consistency",
    is_flag=True,
    help=f"Also score 256 test sequences in {_NUM_ORDERS} orders of their targets.",
)
@options.output_folder_option(
    "Folder for records, tables and figures.", default=Path("runs/experiments")
)
@options.data_dir_option(
    "Folder with the files of images or series, or one .npz file.", file_okay=True
)
@options.resume_options(
    "Continue what was stopped; leave what is done.",
    "Start anew, and replace what is in the folder.",
)
@click.option(
    "--table", "show_table", is_flag=True, help="Write and print the table of --output, and stop."
)
def experiment(
    task_name: str | None,
    show_list: bool,
    preset_name: str | None,
    ablation: bool,
    prefixes: tuple[Path, ...],
    repeats: int,
    seed: int,
    consistency: bool,
    output: Path,
    data_dir: Path | None,
    resume: bool,
    overwrite: bool,
    show_table: bool,
    assignments: tuple[str, ...],
    **given: Any,
) -> None:
    """Train a model on a task of the paper and score it on held-out sequences.

    TASK is a family of sequences, such as gp-rbf, emnist or ett-96 (see --list). Each training
    gives one JSON record; --output also gets a table over all its records, with the paper's figures
    and the exact Gaussian process or naive forecasts beside ours, and pictures.
    """
    if show_list:
        _show_list()
        return
    if show_table:
        click.echo(_write_table(output))
        return
    if task_name is None:
        raise click.UsageError("TASK is missing; --list shows all of them.")
    options.refuse_both("--resume", resume, "--overwrite", overwrite)
    changes = dict(_assignment(text) for text in assignments)
    if task_name == _PRIOR:
        others = [preset_name, data_dir, prefixes or None]
        others += [given[name] for name in _NOT_OF_PRIOR]
        if any(value is not None for value in others) or ablation or consistency or repeats > 1:
            raise click.UsageError(
                f"{_PRIOR} takes --iterations, --batch-size, --learning-rate, --optimizer, "
                "--validate-every, --seed, --set, --output, --resume and --overwrite alone."
            )
        _train_prior(seed, given, changes, output, resume, overwrite)
        return
    options.refuse_both("--ablation", ablation, "--architecture", preset_name is not None)
    # Bad names and numbers are found before TensorFlow starts.
    from taylorformer.training_and_evaluation.experiments.presets import (
        ABLATION,
        RELEASED,
        find_task,
    )
    from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

    task = find_task(task_name)
    if consistency and task.kind == "series":
        raise click.UsageError("--consistency is for tasks whose targets have no order.")
    if bool(prefixes) != (preset_name == RELEASED):
        raise click.UsageError(f"--architecture {RELEASED} and --weights go together.")
    plans = [
        ExperimentSettings.of(task.name, name, seed + repeat, **given, changes=changes)
        for name in (ABLATION if ablation else (preset_name or _DEFAULT_PRESET,))
        for repeat in range(len(prefixes) or repeats)
    ]
    done = [plan for plan in plans if _is_done(output, plan, resume, overwrite, consistency)]
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.experiments.data import load_task
    from taylorformer.training_and_evaluation.experiments.pictures import write_comparison

    first = plans[0]
    data = load_task(
        first.experiment_task,
        first.validation_sequences,
        first.test_sequences,
        data_dir,
        time_features=first.preset.time_features,
    )
    resuming = "--resume instead of --overwrite" if overwrite else "--resume"
    for number, plan in enumerate(plans):
        if plan in done:
            click.echo(f"{plan.record_path(output)} is there already.")
            continue
        if prefixes:
            _score_released(plan, prefixes[number], output, data)
            continue
        with options.stoppable(lambda: f"The same command with {resuming} continues it."):
            _run(plan, output, data, resume, overwrite, _NUM_ORDERS if consistency else 0)
    for picture in write_comparison(output, data, data_dir):
        click.echo(f"Wrote {picture}")
    click.echo(_write_table(output))


def _assignment(text: str) -> tuple[str, Any]:
    """Splits NAME=VALUE; a value that is not JSON is text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--set must be NAME=VALUE. Received: {text}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _score_released(
    plan: "ExperimentSettings", prefix: Path, output: Path, data: "TaskData"
) -> None:
    """Scores a checkpoint of the authors' code."""
    from taylorformer.training_and_evaluation.experiments.released import score_released

    score_released(plan, prefix, output, data)
    click.echo(f"Wrote {plan.record_path(output)}")


def _train_prior(
    seed: int,
    given: Mapping[str, Any],
    changes: Mapping[str, Any],
    output: Path,
    resume: bool,
    overwrite: bool,
) -> None:
    """Trains a model that forecasts without `fit`, on synthetic series."""
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.experiments.prior import PriorSettings, train_prior

    names = ("iterations", "batch_size", "learning_rate", "schedule", "optimizer")
    chosen = {name: given[name] for name in names if given[name] is not None}
    settings = PriorSettings.of(
        changes, seed=seed, validate_every=given["validate_every"], **chosen
    )
    resuming = "--resume instead of --overwrite" if overwrite else "--resume"
    with options.stoppable(lambda: f"The same command with {resuming} continues it."):
        record = train_prior(settings, output, resume=resume, overwrite=overwrite)
    last = record["curve"][-1]["validation_nll"]
    click.echo(
        f"Trained {record['iterations']:,} steps: {last:.3f} nats per target of validation tasks."
    )
    click.echo(f"Wrote {output / _PRIOR}")


def _show_list() -> None:
    from taylorformer.training_and_evaluation.experiments.presets import MODEL_PRESETS, TASKS
    from taylorformer.training_and_evaluation.experiments.recipes import RECIPES

    click.echo("Tasks:")
    for task in TASKS.values():
        paper = f"{task.repeats} repeats in the paper" if task.paper else "not in the paper"
        click.echo(
            f"  {task.name:<{_NAME_WIDTH}} {task.iterations:,} steps of "
            f"{task.batch_size} sequences, Adam {task.learning_rate:g}; {paper}"
        )
    click.echo(
        f"  {_PRIOR:<{_NAME_WIDTH}} synthetic series, for forecasts without training; "
        "takes no --architecture"
    )
    click.echo("Models:")
    for name, preset in MODEL_PRESETS.items():
        click.echo(f"  {name:<{_NAME_WIDTH}} {preset.model}: {preset.note}")
    click.echo("Recipes:")
    for name, recipe in RECIPES.items():
        kinds = f" ({', '.join(recipe.kinds).replace('_', ' ')})" if recipe.kinds else ""
        click.echo(f"  {name:<{_NAME_WIDTH}} {recipe.note}{kinds}")


def _is_done(
    output: Path, plan: "ExperimentSettings", resume: bool, overwrite: bool, consistency: bool
) -> bool:
    """Tells whether a run is complete; refuses to replace anything unasked."""
    from taylorformer.training_and_evaluation.experiments.record import read_record

    if overwrite:
        return False
    path, checkpoint = plan.record_path(output), plan.checkpoint_path(output)
    if not resume:
        for file, what in ((path, "leaves it"), (checkpoint, "continues it")):
            if file.exists():
                raise options.refusal("--output", f"{file} is there", "starts anew", resume=what)
        return False
    if not path.exists():
        return False
    record = read_record(path)
    # What was measured more than is asked for does no harm.
    measured = "consistency" in record or not consistency
    if measured and record["settings"] == plan.get_config():
        return True
    if not checkpoint.exists():
        raise options.refusal(
            "--output",
            f"{path} is there, of other settings or measures, and its checkpoint is not",
            "starts anew",
        )
    return False


def _run(
    plan: "ExperimentSettings",
    output: Path,
    data: "TaskData",
    resume: bool,
    overwrite: bool,
    num_orders: int,
) -> None:
    """Runs one training, says what came of it, and draws it."""
    from taylorformer.training_and_evaluation.experiments.pictures import write_pictures
    from taylorformer.training_and_evaluation.experiments.record import log_likelihood
    from taylorformer.training_and_evaluation.experiments.run import run_experiment
    from taylorformer.training_and_evaluation.experiments.table import mean_and_spread

    run = run_experiment(
        plan, output, data=data, resume=resume, overwrite=overwrite, num_orders=num_orders
    )
    for name in run.record["scores"]:
        score = mean_and_spread([log_likelihood(run.record, name)])
        way = run.record["score"].replace("_", "-")
        click.echo(
            f"{plan.task_name} {name}, {plan.label}: {way} log-likelihood {score} nats per target"
        )
    path = plan.record_path(output)
    for written in (path, *write_pictures(run, path)):
        click.echo(f"Wrote {written}")


def _write_table(output: Path) -> str:
    """Writes the table over all records of a folder, and returns it."""
    from taylorformer.data_wrangler.whole_files import replaced_whole
    from taylorformer.training_and_evaluation.experiments import table as experiment_table
    from taylorformer.training_and_evaluation.experiments.record import read_records

    records = read_records(output)
    parts = []
    for make_rows, legend in (
        (experiment_table.table_rows, experiment_table.LEGEND),
        (experiment_table.series_rows, experiment_table.SERIES_LEGEND),
    ):
        rows = make_rows(records)
        if rows:
            parts += [experiment_table.markdown_table(rows), legend]
    parts.append("\n".join(experiment_table.consistency_rows(records)))
    text = "\n".join(f"{part}\n" for part in parts if part)
    with replaced_whole(output / _TABLE) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    return text
