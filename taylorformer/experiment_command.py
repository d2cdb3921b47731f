"""The command of the command line that trains and compares models of random processes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taylorformer.forecast_commands import start_tensorflow, stopped_politely

if TYPE_CHECKING:
    from taylorformer.training_and_evaluation.experiment import ExperimentSettings

_TABLE = "table.md"
_OF_PRESET = "that of the paper"


@click.command()
@click.argument("task", required=False)
@click.option("--list", "show_list", is_flag=True, help="List tasks and networks, and stop.")
@click.option("--architecture", default="taylorformer", help="The network, see --list.")
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
    show_default="256",
    help="Held-out sequences that choose the weights to keep.",
)
@click.option(
    "--test-sequences",
    type=click.IntRange(min=1),
    show_default="2000, or all there are",
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
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the files of images.",
)
@click.option("--resume", is_flag=True, help="Go on with what was stopped; leave what is done.")
@click.option("--overwrite", is_flag=True, help="Replace records that are in the folder.")
@click.option("--table", "show_table", is_flag=True, help="Print the table of a folder, and stop.")
def experiment(
    task: str | None,
    show_list: bool,
    architecture: str,
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

    TASK is a family of sequences, such as gp-rbf or emnist (see --list). Defaults are those of the
    paper. Each training gives one JSON record; --output also gets a table over all its records,
    with the paper's figures and the exact Gaussian process beside ours, and figures.
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
    from taylorformer.training_and_evaluation import experiment_presets

    # Bad names are found before TensorFlow starts.
    experiment_presets.find_task(task)
    experiment_presets.find_network(architecture)
    start_tensorflow()
    from taylorformer.training_and_evaluation.experiment import ExperimentSettings

    architectures = experiment_presets.ABLATION if ablation else (architecture,)
    plans = [
        ExperimentSettings.of(task, name, seed + repeat, **given)
        for name in architectures
        for repeat in range(repeats)
    ]
    done = [plan for plan in plans if _check_free(output, plan, resume, overwrite)]
    for plan in plans:
        if plan in done:
            click.echo(f"{_record_path(output, plan)} is there already.")
            continue
        try:
            with stopped_politely():
                _run(plan, output, data_dir, resume, 40 if consistency else 0)
        except KeyboardInterrupt:
            click.echo("Stopped. The same command with --resume goes on.", err=True)
            raise SystemExit(1) from None
    _draw_curves(output, task)
    click.echo(_write_table(output))


def _show_list() -> None:
    from taylorformer.training_and_evaluation.experiment_presets import NETWORKS, TASKS

    click.echo("Tasks:")
    for task in TASKS.values():
        click.echo(
            f"  {task.name:<24} {task.iterations:,} steps of {task.batch_size} sequences, "
            f"Adam {task.learning_rate:g}, {task.repeats} repeats in the paper"
            if task.paper
            else f"  {task.name:<24} {task.iterations:,} steps of {task.batch_size} sequences, "
            f"Adam {task.learning_rate:g}; not in the paper"
        )
    click.echo("Networks:")
    for network in NETWORKS.values():
        click.echo(f"  {network.architecture:<24} {network.model}: {network.note}")


def _record_path(output: Path, plan: "ExperimentSettings") -> Path:
    return output / plan.task / f"{plan.label}.json"


def _check_free(output: Path, plan: "ExperimentSettings", resume: bool, overwrite: bool) -> bool:
    """Tells whether a training is on record already; refuses to replace anything unasked."""
    path = _record_path(output, plan)
    if overwrite:
        return False
    if path.exists():
        if not resume:
            message = f"{path} is there; --resume leaves it, --overwrite starts anew."
            raise click.BadParameter(message, param_hint="--output")
        if json.loads(path.read_text(encoding="utf-8")).get("command") == plan.command:
            return True
        message = f"{path} was made with other settings; choose another folder, or --overwrite."
        raise click.BadParameter(message, param_hint="--output")
    checkpoint = path.with_suffix("") / "training.npz"
    if checkpoint.exists() and not resume:
        message = f"{checkpoint} was stopped; --resume goes on with it, --overwrite starts anew."
        raise click.BadParameter(message, param_hint="--output")
    return False


def _run(
    plan: "ExperimentSettings", output: Path, data_dir: Path | None, resume: bool, num_orders: int
) -> None:
    """Runs one training, says what came of it, and draws it."""
    from taylorformer.training_and_evaluation.experiment import run_experiment
    from taylorformer.training_and_evaluation.experiment_pictures import write_pictures

    run = run_experiment(plan, output, data_dir=data_dir, resume=resume, num_orders=num_orders)
    record, way = run.record, run.record["score"]
    for name, scores in record["scores"].items():
        own = scores[f"{way}_log_likelihood"]
        click.echo(
            f"{plan.task} {name}, {plan.label}: {way.replace('_', '-')} log-likelihood "
            f"{own['mean']:.3f} +- {own['standard_error']:.3f} nats per target"
        )
    path = _record_path(output, plan)
    for picture in (path, *write_pictures(run, path.with_suffix(""))):
        click.echo(f"Wrote {picture}")


def _draw_curves(output: Path, task: str) -> None:
    from taylorformer.training_and_evaluation.experiment_pictures import write_curves

    click.echo(f"Wrote {write_curves(output / task)}")


def _write_table(output: Path) -> str:
    """Makes the table over all records of a folder, writes it, and gives it."""
    from taylorformer.training_and_evaluation import experiment_table

    records = experiment_table.read_records(output)
    text = experiment_table.markdown_table(experiment_table.table_rows(records))
    lines = experiment_table.consistency_rows(records)
    if lines:
        text += "\n" + "\n".join(lines) + "\n"
    (output / _TABLE).write_text(text, encoding="utf-8")
    return text
