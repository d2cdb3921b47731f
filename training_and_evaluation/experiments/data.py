"""The sequences of an experiment: endless training batches, held-out sets."""

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

_HELD_OUT_SEED = 0


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The sequences of a task.

    Attributes:
        training: gives endless batches from a batch number on, given that number, the seed and B.
        validation: chooses the weights.
        test: the test sets by name.
        about: what JSON can hold of where the sequences come from.
        images: the images that the test sets are made of, by the same names; empty for others.
    """

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
    """Makes the sequences of a task; held-out ones are the same for every network and seed.

    Args:
        task: the task.
        validation_sequences: how many.
        test_sequences: how many, in each test set.
        data_dir: where images are looked for.

    Raises:
        ImportError, OSError, ValueError: images that are not there, or are not what they should be.
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
    found = held_out(num_sequences=validation, part="validation")
    about = {name: v for name, v in found.about.items() if name not in ("part", "num_sequences")}
    tests = {name: held_out(num_sequences=test, part="test") for name in task.test_sets}
    return TaskData(training, found, tests, about)


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
    found = held_out(images("validation", seen), validation)
    about = {
        **{name: v for name, v in found.about.items() if name not in ("image_rows", "split")},
        "training_images": len(source),
        "training_images_sha256": hashlib.sha256(source.pixels.tobytes()).hexdigest(),
        "test_images": {name: len(own) for name, own in test_images.items()},
    }
    tests = {name: held_out(own, test) for name, own in test_images.items()}
    return TaskData(training, found, tests, about, test_images)
