"""The sequences of an experiment: endless training batches, and held-out sets."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

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
    """

    task: ExperimentTask
    training: "Callable[[int, int, int], tf.data.Dataset]"
    validation: TaskSet
    test: Mapping[str, TaskSet]
    about: Mapping[str, Any]
    images: Mapping[str, Images] = dataclasses.field(default_factory=dict)


def load_task(
    task: ExperimentTask,
    validation_sequences: int,
    test_sequences: int,
    data_dir: str | os.PathLike[str] | None = None,
) -> TaskData:
    """Makes the sequences of a task; held-out ones are the same for every model and seed.

    Args:
        task: the task.
        validation_sequences: how many.
        test_sequences: how many, in each test set.
        data_dir: the folder or file of images; None: where `load_images` looks.

    Raises:
        ImportError, OSError, ValueError: images that cannot be found, or are not those of the task.
    """
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
    return TaskData(task, training, validation_tasks, tests, about, test_images)
