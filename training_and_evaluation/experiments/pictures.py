"""Writes the pictures of experiments beside their records."""

import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from taylorformer.data_wrangler.tasks.images import whole_image_tasks
from taylorformer.training_and_evaluation.experiments.consistency import Consistency
from taylorformer.training_and_evaluation.experiments.data import TaskData
from taylorformer.training_and_evaluation.experiments.plots import (
    plot_completions,
    plot_consistency,
    plot_samples,
    plot_validation_curves,
)
from taylorformer.training_and_evaluation.experiments.presets import find_task
from taylorformer.training_and_evaluation.experiments.record import network_name, read_records
from taylorformer.training_and_evaluation.experiments.run import (
    MODEL_FILE,
    SCORES_FILE,
    ExperimentRun,
)
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

_IMAGES = 6


def write_pictures(run: ExperimentRun, path: str | os.PathLike[str]) -> list[Path]:
    """Draws samples, or completed images, of one run.

    Args:
        run: what `run_experiment` gave.
        path: of its record.

    Returns:
        The files.
    """
    path = Path(path)
    settings = run.record["settings"]
    task = find_task(settings["task"])
    figures = {}
    if task.kind == "gaussian_process":
        tasks = next(iter(run.data.test.values()))
        names = {network_name(run.record): run.model}
        figures["samples"] = plot_samples(names, tasks, title=f"{task.name}: joint samples")
    else:
        for name, images in run.data.images.items():
            height, width, _ = images.image_shape
            tasks = whole_image_tasks(
                images.take(min(len(images), _IMAGES)), num_context=max(1, height * width // 4)
            )
            figures["images" if name == "test" else f"images-{name}"] = plot_completions(
                run.model, tasks, num_images=_IMAGES, title=f"{task.name}, {path.stem}"
            )
    return [
        _write(figure, path.with_name(f"{path.stem}-{name}.png"))
        for name, figure in figures.items()
    ]


def write_comparison(output: str | os.PathLike[str], task: str, data: TaskData) -> list[Path]:
    """Draws all runs of one task together: validation curves, consistency, samples in 1D.

    Args:
        output: the folder of all tasks.
        task: its name.
        data: the sequences of the task.

    Returns:
        The files.
    """
    folder = Path(output) / task
    records = read_records(folder)
    curves = plot_validation_curves(records, f"{task}: validation")
    written = [_write(curves, folder / "validation-curves.png")]
    deviations: dict[str, np.ndarray] = {}
    models: dict[str, Any] = {}
    for record in records:
        own = ExperimentSettings(**record["settings"]).checkpoint_path(output).parent
        name = network_name(record)
        if "consistency" in record and (own / SCORES_FILE).exists():
            with np.load(own / SCORES_FILE) as arrays:
                found = Consistency(arrays["consistency"])
            deviations[f"{name}, seed {record['settings']['seed']}"] = found.deviations
        if name not in models and (own / MODEL_FILE).exists():
            models[name] = own / MODEL_FILE
    if deviations:
        figure = plot_consistency(deviations, f"{task}: orders of the targets")
        written.append(_write(figure, folder / "consistency.png"))
    if find_task(task).kind == "gaussian_process" and len(models) > 1:
        loaded = {name: keras.models.load_model(path) for name, path in models.items()}
        tasks = next(iter(data.test.values()))
        figure = plot_samples(loaded, tasks, title=f"{task}: joint samples")
        written.append(_write(figure, folder / "samples.png"))
    return written


def _write(figure: Any, path: Path) -> Path:
    figure.savefig(path)
    return path
