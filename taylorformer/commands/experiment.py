"""The command of the command line that trains and compares models of random processes."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taylorformer.commands.forecast import start_tensorflow, stopped_politely

if TYPE_CHECKING:
    from taylorformer.training_and_evaluation.experiments.data import TaskData
    from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

_TABLE = "table.md"
_OF_PRESET = "that of the task, see --list"


@click.command()
@click.argument("task", required=False)
@click.option("--list", "show_list", is_flag=True, help="List tasks and networks, and stop.")
@click.option(
    "--architecture", show_default="taylorformer", default=None, help="The network, see --list."
)
@click.option("--ablation", is_flag=True, help="Train the four networks of the ablation instead.")
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    show_default=_OF_PRESET,
    help="Training steps.",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, help="Trainings, from SEED, SEED + 1, ..."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the first training.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    show_default=_OF_PRESET,
    help="Of Adam, at the start.",
)
@click.option(
    "--schedule",
    type=click.Choice(["constant", "cosine"]),
    default="constant",
    help="Cosine lets the learning rate fall to 0 over all iterations.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    show_default=_OF_PRESET,
    help="Sequences in a training step.",
)
@click.option(
    "--target-permutations",
    type=click.IntRange(min=0),
    show_default=_OF_PRESET,
    help="Random orders of the targets of each sequence in training.",
)
@click.option(
    "--validate-every",
    type=click.IntRange(min=1),
    default=500,
    help="Training steps between two looks at the validation sequences.",
)
@click.option(
    "--validation-sequences",
    type=click.IntRange(min=1),
    show_default="256, or one of each image",
    help="Held-out sequences that choose the weights to keep.",
)
@click.option(
    "--test-sequences",
    type=click.IntRange(min=1),
    show_default="2000, or one of each image",
    help="Held-out sequences that are scored.",
)
@click.option(
    "--consistency",
    is_flag=True,
    help="Also score 256 test sequences in 40 orders of their targets.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/experiments"),
    help="Folder for records, tables and figures.",
)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, path_type=Path),
    help="Folder with the files of images, or one .npz file.",
)
@click.option("--resume", is_flag=True, help="Go on with what was stopped; leave what is done.")
@click.option("--overwrite", is_flag=True, help="Start anew, and replace what is in the folder.")
@click.option(
    "--table", "show_table", is_flag=True, help="Write and print the table of --output, and stop."
)
def experiment(
    task: str | None,
    show_list: bool,
    architecture: str | None,
    ablation: bool,
    repeats: int,
    seed: int,
    consistency: bool,
    output: Path,
    data_dir: Path | None,
    resume: bool,
    overwrite: bool,
    show_table: bool,
    **given: Any,
) -> None:
    """Train a neural process on a task and score it on held-out sequences.

    TASK is a family of sequences, such as gp-rbf or emnist (see --list). Each training gives one
    JSON record; --output also gets a table over all its records, with the paper's figures and the
    exact Gaussian process beside ours, and pictures.
    """
    if show_list:
        _show_list()
        return
    if show_table:
        click.echo(_write_table(output))
        return
    if task is None:
        raise click.UsageError("TASK is missing; --list shows all of them.")
    if resume and overwrite:
        raise click.UsageError("--resume and --overwrite exclude each other.")
    if ablation and architecture is not None:
        raise click.UsageError("--ablation and --architecture exclude each other.")
    # Bad names and numbers are found before TensorFlow starts.
    from taylorformer.training_and_evaluation.experiments.presets import ABLATION, find_task
    from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

    plans = [
        ExperimentSettings.of(task, name, seed + repeat, **given)
        for name in (ABLATION if ablation else (architecture or "taylorformer",))
        for repeat in range(repeats)
    ]
    done = [plan for plan in plans if _is_done(output, plan, resume, overwrite, consistency)]
    start_tensorflow()
    from taylorformer.training_and_evaluation.experiments.data import load_task
    from taylorformer.training_and_evaluation.experiments.pictures import write_comparison

    first = plans[0]
    sequences = first.validation_sequences, first.test_sequences
    data = load_task(find_task(task), *sequences, data_dir)
    for plan in plans:
        if plan in done:
            click.echo(f"{plan.record_path(output)} is there already.")
            continue
        try:
            with stopped_politely():
                _run(plan, output, data, resume, overwrite, 40 if consistency else 0)
        except KeyboardInterrupt:
            instead = "--resume instead of --overwrite" if overwrite else "--resume"
            click.echo(f"Stopped. The same command with {instead} goes on.", err=True)
            raise SystemExit(1) from None
    for picture in write_comparison(output, data):
        click.echo(f"Wrote {picture}")
    click.echo(_write_table(output))


def _show_list() -> None:
    from taylorformer.training_and_evaluation.experiments.presets import MODEL_PRESETS, TASKS

    click.echo("Tasks:")
    for task in TASKS.values():
        paper = f"{task.repeats} repeats in the paper" if task.paper else "not in the paper"
        click.echo(
            f"  {task.name:<24} {task.iterations:,} steps of {task.batch_size} sequences, "
            f"Adam {task.learning_rate:g}; {paper}"
        )
    click.echo("Networks:")
    for network in MODEL_PRESETS.values():
        click.echo(f"  {network.architecture:<24} {network.model}: {network.note}")


def _is_done(
    output: Path, plan: "ExperimentSettings", resume: bool, overwrite: bool, consistency: bool
) -> bool:
    """Tells whether a run is complete; refuses to replace anything unasked."""
    from taylorformer.training_and_evaluation.experiments.record import read_record

    if overwrite:
        return False
    path = plan.record_path(output)
    if not resume:
        for file, what in (
            (path, "leaves it"),
            (plan.checkpoint_path(output), "goes on with it"),
        ):
            if file.exists():
                message = f"{file} is there; --resume {what}, --overwrite starts anew."
                raise click.BadParameter(message, param_hint="--output")
        return False
    if not path.exists():
        return False
    record = read_record(path)
    # What was measured more than is asked for does no harm.
    measured = "consistency" in record or not consistency
    return measured and record["settings"] == dataclasses.asdict(plan)


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
            f"{plan.task} {name}, {plan.label}: {way} log-likelihood {score} nats per target"
        )
    path = plan.record_path(output)
    for written in (path, *write_pictures(run, path)):
        click.echo(f"Wrote {written}")


def _write_table(output: Path) -> str:
    """Makes the table over all records of a folder, writes it, and gives it."""
    from taylorformer.training_and_evaluation.experiments import table as experiment_table
    from taylorformer.training_and_evaluation.experiments.record import read_records

    records = read_records(output)
    parts = [
        experiment_table.markdown_table(experiment_table.table_rows(records)),
        experiment_table.LEGEND,
        "\n".join(experiment_table.consistency_rows(records)),
    ]
    text = "\n".join(f"{part}\n" for part in parts if part)
    (output / _TABLE).write_text(text, encoding="utf-8")
    return text
