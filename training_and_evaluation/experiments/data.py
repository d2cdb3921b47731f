"""The sequences of an experiment: endless training batches, and held-out sets."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.tables.datasets import load_dataset
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, WindowSpec
from taylorformer.data_wrangler.tables.window_set import WindowSet
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.data_wrangler.tasks.gaussian_process import (
    gaussian_process_tasks,
    held_out_gaussian_process_tasks,
)
from taylorformer.data_wrangler.tasks.image_set import Images, load_images
from taylorformer.data_wrangler.tasks.images import (
    held_out_image_completion_tasks,
    image_completion_tasks,
)
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.training_and_evaluation.experiments.presets import ExperimentTask

if TYPE_CHECKING:
    import tensorflow as tf

# Every model and seed is scored on the same sequences, so that differences between them are paired.
_HELD_OUT_SEED = 0


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The sequences of a task.

    Attributes:
        task: the task.
        training: makes a data set of endless batches from the number of its first batch, the seed
            and B.
        validation: the set by which the weights to keep are chosen.
        test: the test sets by name.
        about: where the sequences come from, as JSON can hold it.
        images: the images that the test sets are made of, by the same names; empty for other tasks.
        x_dims: D_x of the batches, with time features.
    """

    task: ExperimentTask
    training: "Callable[[int, int, int], tf.data.Dataset]"
    validation: TaskSet | WindowSet
    test: Mapping[str, TaskSet | WindowSet]
    about: Mapping[str, Any]
    images: Mapping[str, Images] = dataclasses.field(default_factory=dict)
    x_dims: int = 1

    @property
    def test_tasks(self) -> TaskSet:
        """The sequences of the first test set; not of a series."""
        tasks = next(iter(self.test.values()))
        if not isinstance(tasks, TaskSet):
            raise TypeError(f"`test` must hold task sets. Received: {type(tasks).__name__}")
        return tasks

    @property
    def test_windows(self) -> WindowSet:
        """The windows of the first test set of a series."""
        windows = next(iter(self.test.values()))
        if not isinstance(windows, WindowSet):
            raise TypeError(f"`test` must hold window sets. Received: {type(windows).__name__}")
        return windows


def load_task(
    task: ExperimentTask,
    validation_sequences: int,
    test_sequences: int,
    data_dir: str | os.PathLike[str] | None = None,
    time_features: bool = False,
) -> TaskData:
    """Makes the sequences of a task; held-out ones are the same for every model and seed.

    Args:
        task: the task.
        validation_sequences: how many.
        test_sequences: how many, in each test set.
        data_dir: the folder or file of images, where None is where `load_images` looks; or the
            folder of series.
        time_features: of series, add cos and sin of the phases of the task's seasons to x.

    Raises:
        ImportError, OSError, ValueError: images or series that cannot be found, or are not those
            of the task.
    """
    if task.kind == "series":
        return _series_data(task, validation_sequences, test_sequences, data_dir, time_features)
    if task.kind == "gaussian_process":
        return _gaussian_process_data(task, validation_sequences, test_sequences)
    return _image_data(task, validation_sequences, test_sequences, data_dir)


def _gaussian_process_data(task: ExperimentTask, validation: int, test: int) -> TaskData:
    arguments: dict[str, Any] = {"num_context": task.num_context}

    def training(first_batch: int, seed: int, batch_size: int) -> "tf.data.Dataset":
        return gaussian_process_tasks(
            task.source, batch_size, seed, first_batch=first_batch, **arguments
        )

    held_out = functools.partial(
        held_out_gaussian_process_tasks, task.source, seed=_HELD_OUT_SEED, **arguments
    )
    validation_tasks = held_out(num_sequences=validation, part="validation")
    about = dict(validation_tasks.about)
    for name in ("part", "num_sequences"):
        del about[name]
    tests = {name: held_out(num_sequences=test, part="test") for name in task.test_sets}
    return TaskData(task, training, validation_tasks, tests, about)


def _series_data(
    task: ExperimentTask,
    validation: int,
    test: int,
    data_dir: str | os.PathLike[str] | None,
    time_features: bool,
) -> TaskData:
    """Makes the windows of a series, standardised and split as in the authors' code.

    The context of a test window lies in the test part, too.
    """
    if task.num_context is None or task.num_target is None:
        raise ValueError(f"a task of a series must have fixed lengths. Received: {task.name}")
    parts = [load_dataset(task.source, data_dir, column) for column in task.columns or (None,)]
    series = _side_by_side(parts)
    spec = WindowSpec(task.num_context[0], task.num_target[0])
    split = Split.chronological(series.num_rows)
    about = {
        "data": task.source,
        **_names_of(series),
        "rows": series.num_rows,
        "values_sha256": hashlib.sha256(series.values.tobytes()).hexdigest(),
        "training_rows": split.train_end,
        "validation_rows": split.validation_end - split.train_end,
        "time_features": list(task.seasons) if time_features else [],
    }
    periods = [float(series.duration(season)) for season in task.seasons] if time_features else []
    scaler = WindowScaler.fit(series, spec, split.train_end, "standard", periods=periods)
    windows = Windows(series, scaler)
    starts = split.window_starts(spec, "training")

    def training(first_batch: int, seed: int, batch_size: int) -> "tf.data.Dataset":
        return windows.training_dataset(starts, batch_size, seed, first_batch)

    def held_out(part: str, count: int) -> WindowSet:
        rows = split.window_starts(spec, part, context_inside=part == "test")
        return WindowSet(windows, rows, {**about, "part": part}).spread_out(count)

    tests: dict[str, TaskSet | WindowSet] = {
        name: held_out("test", test) for name in task.test_sets
    }
    validation_windows = held_out("validation", validation)
    return TaskData(task, training, validation_windows, tests, about, {}, scaler.num_x)


def _names_of(series: Series) -> dict[str, Any]:
    names = [str(name) for name in series.target_columns]
    return {"column": names[0]} if len(names) == 1 else {"columns": names}


def _side_by_side(parts: list[Series]) -> Series:
    """Makes one series of many columns out of series at the same times."""
    return dataclasses.replace(
        parts[0],
        values=np.concatenate([part.values for part in parts], axis=1),
        target_columns=tuple(part.target_columns[0] for part in parts),
    )


def _image_data(
    task: ExperimentTask, validation: int, test: int, data_dir: str | os.PathLike[str] | None
) -> TaskData:
    lengths: dict[str, Any] = {"num_context": task.num_context, "num_target": task.num_target}
    seen = "seen" if "seen" in task.test_sets else None

    def images(split: str, classes: str | None) -> Images:
        return load_images(task.source, split, classes=classes, data_dir=data_dir)

    source = images("train", seen)

    def training(first_batch: int, seed: int, batch_size: int) -> "tf.data.Dataset":
        return image_completion_tasks(source, batch_size, seed, first_batch=first_batch, **lengths)

    def held_out(source: Images, count: int) -> TaskSet:
        # More sequences than images would show some of them again, and count them as new ones.
        count = min(count, len(source))
        return held_out_image_completion_tasks(source, count, _HELD_OUT_SEED, **lengths)

    test_images = {name: images("test", classes) for name, classes in task.test_sets.items()}
    validation_tasks = held_out(images("validation", seen), validation)
    about = dict(validation_tasks.about)
    for name in ("image_rows", "split"):
        del about[name]
    about |= {
        "training_images": len(source),
        "training_images_sha256": hashlib.sha256(source.pixels.tobytes()).hexdigest(),
        "test_images": {name: len(part) for name, part in test_images.items()},
    }
    tests = {name: held_out(part, test) for name, part in test_images.items()}
    return TaskData(task, training, validation_tasks, tests, about, test_images, task.x_dims)
