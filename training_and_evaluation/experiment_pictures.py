"""Writes the pictures of experiments beside their records."""

import os
from pathlib import Path

from taylorformer.data_wrangler.image_completion_tasks import whole_image_tasks
from taylorformer.training_and_evaluation.experiment import ExperimentRun
from taylorformer.training_and_evaluation.experiment_plots import (
    plot_completions,
    plot_consistency,
    plot_samples,
    plot_validation_curves,
)
from taylorformer.training_and_evaluation.experiment_presets import find_task
from taylorformer.training_and_evaluation.experiment_table import read_records


def write_pictures(run: ExperimentRun, stem: str | os.PathLike[str]) -> list[Path]:
    """Draws samples, or completed images, and the consistency where it was measured.

    Args:
        run: what `run_experiment` gave.
        stem: the path of the record without its ending.

    Returns:
        The files.
    """
    stem = Path(stem)
    settings = run.record["settings"]
    task, label = find_task(settings["task"]), stem.name
    figures = {}
    if task.kind == "gaussian_process":
        tasks = next(iter(run.data.test.values()))
        figures["samples"] = plot_samples(
            {settings["architecture"]: run.model}, tasks, title=f"{task.name}: joint samples"
        )
    else:
        for name, images in run.data.images.items():
            height, width, _ = images.image_shape
            tasks = whole_image_tasks(
                images.take(min(len(images), 6)), num_context=max(1, height * width // 4)
            )
            figures["images" if name == "test" else f"images-{name}"] = plot_completions(
                run.model, tasks, num_images=len(tasks), title=f"{task.name} {name}, {label}"
            )
    if run.consistency is not None:
        figures["consistency"] = plot_consistency(
            {label: run.consistency.deviations}, title=f"{task.name}: orders of the targets"
        )
    written = []
    for name, figure in figures.items():
        path = stem.with_name(f"{stem.name}-{name}.png")
        figure.savefig(path)
        written.append(path)
    return written


def write_curves(folder: str | os.PathLike[str]) -> Path:
    """Draws the validation curves of all records in the folder of one task."""
    path = Path(folder) / "validation-curves.png"
    records = read_records(folder)
    title = f"{Path(folder).name}: validation"
    plot_validation_curves(records, title).savefig(path)
    return path
