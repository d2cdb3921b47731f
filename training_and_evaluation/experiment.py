"""One experiment: a network trained on a task, scored on held-out sequences, and put on record."""

import dataclasses
import functools
import hashlib
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from taylorformer.comparison_models.attentive_neural_process import AttentiveNeuralProcess
from taylorformer.comparison_models.gaussian_process import GaussianProcess
from taylorformer.comparison_models.latent_model import LatentModel
from taylorformer.comparison_models.neural_process import NeuralProcess
from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.gaussian_process_tasks import (
    gaussian_process_tasks,
    held_out_gaussian_process_tasks,
)
from taylorformer.data_wrangler.image_completion_tasks import (
    held_out_image_completion_tasks,
    image_completion_tasks,
)
from taylorformer.data_wrangler.image_sources import Images, load_images
from taylorformer.data_wrangler.task_set import TaskSet
from taylorformer.data_wrangler.versions import versions
from taylorformer.model.probabilistic_model import GLOBAL_CLIPNORM, ProbabilisticModel
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.consistency import Consistency, measure_consistency
from taylorformer.training_and_evaluation.experiment_presets import (
    ExperimentTask,
    find_network,
    find_task,
)
from taylorformer.training_and_evaluation.presets import SCHEDULES
from taylorformer.training_and_evaluation.progress import TrainingBar, WorkProgress
from taylorformer.training_and_evaluation.resumable_fit import TrainingProgress, resumable_fit

FORMAT = 1
SCORE_BATCH = 50
_HELD_OUT_SEED = 0
_MODELS = {
    model.__name__: model
    for model in (
        Taylorformer,
        TransformerNeuralProcess,
        AttentiveNeuralProcess,
        NeuralProcess,
    )
}


@dataclasses.dataclass(frozen=True)
class ExperimentSettings:
    """What is trained, and for how long; `of` takes what is not said from the preset of the task.

    Attributes:
        task: the name of a task, see `experiment_presets.TASKS`.
        architecture: the name of a network, see `experiment_presets.NETWORKS`.
        seed: of the network, of training data and of everything drawn in training.
        iterations: training steps.
        batch_size: B in training.
        learning_rate: of Adam, at the start.
        schedule: "constant", or "cosine": the learning rate falls to 0 over all iterations.
        target_permutations: random orders of the targets for each sequence in training. (Models
            that do not read earlier targets take none.)
        validate_every: training steps between two looks at the validation sequences.
        validation_sequences: how many.
        test_sequences: how many, in each test set.

    Raises:
        TypeError, ValueError: an unknown name, or a number outside its range.
    """

    task: str
    architecture: str
    seed: int
    iterations: int
    batch_size: int
    learning_rate: float
    schedule: str
    target_permutations: int
    validate_every: int
    validation_sequences: int
    test_sequences: int

    def __post_init__(self) -> None:
        find_task(self.task)
        find_network(self.architecture)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_number("learning_rate", self.learning_rate, above=0)
        check_integer("seed", self.seed, 0, 2**31 - 1)
        check_integer("target_permutations", self.target_permutations, 0)
        for name in (
            "iterations",
            "batch_size",
            "validate_every",
            "validation_sequences",
            "test_sequences",
        ):
            check_integer(name, getattr(self, name), 1)

    @classmethod
    def of(
        cls, task: str, architecture: str = "taylorformer", seed: int = 0, **given: Any
    ) -> "ExperimentSettings":
        """Makes the settings of a task.

        Args:
            task: its name.
            architecture: the name of a network.
            seed: of the network and of training.
            given: values of the other attributes; those left out, or None, are those of the preset.
        """
        values: dict[str, Any] = {"schedule": "constant", "validate_every": 500}
        names = [field.name for field in dataclasses.fields(cls)[3:]]
        preset = find_task(task)
        values |= {name: getattr(preset, name) for name in names if hasattr(preset, name)}
        values |= {name: value for name, value in given.items() if value is not None}
        return cls(task, architecture, seed, **values)

    @property
    def command(self) -> str:
        """The command that does it."""
        words = ["taylorformer", "experiment", self.task]
        for field in dataclasses.fields(self)[1:]:
            words += [f"--{field.name.replace('_', '-')}", str(getattr(self, field.name))]
        return shlex.join(words)

    @property
    def label(self) -> str:
        """What the files of the run are called."""
        label = self.architecture
        permutations = find_task(self.task).target_permutations
        if self.target_permutations != permutations:
            label += f"-permutations-{self.target_permutations}"
        return f"{label}-seed-{self.seed}"

    @property
    def epoch_steps(self) -> int:
        """Training steps between two looks: never more than there are."""
        return min(self.validate_every, self.iterations)


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The sequences of a task.

    Attributes:
        training: gives endless batches from a batch number on, given that number, the seed and B.
        validation: chooses the weights.
        test: the test sets by name.
        images: the images that the test sets are made of, by the same names; empty for others.
    """

    training: Callable[[int, int, int], tf.data.Dataset]
    validation: TaskSet
    test: Mapping[str, TaskSet]
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

    def training(first_batch: int, seed: int, batch_size: int) -> tf.data.Dataset:
        return gaussian_process_tasks(
            task.source, batch_size, seed, first_batch=first_batch, **arguments
        )

    held_out = functools.partial(
        held_out_gaussian_process_tasks, task.source, seed=_HELD_OUT_SEED, **arguments
    )
    return TaskData(
        training,
        held_out(num_sequences=validation, part="validation"),
        {name: held_out(num_sequences=test, part="test") for name in task.test_sets},
    )


def _image_data(
    task: ExperimentTask, validation: int, test: int, data_dir: str | os.PathLike[str] | None
) -> TaskData:
    lengths: dict[str, Any] = {"num_context": task.num_context, "num_target": task.num_target}
    seen = "seen" if "seen" in task.test_sets else None

    def images(split: str, classes: str | None) -> Images:
        return load_images(task.source, split, classes=classes, data_dir=data_dir)

    source = images("train", seen)

    def training(first_batch: int, seed: int, batch_size: int) -> tf.data.Dataset:
        return image_completion_tasks(source, batch_size, seed, first_batch=first_batch, **lengths)

    def held_out(source: Images, count: int) -> TaskSet:
        return held_out_image_completion_tasks(source, count, _HELD_OUT_SEED, **lengths)

    test_images = {name: images("test", classes) for name, classes in task.test_sets.items()}
    return TaskData(
        training,
        held_out(images("validation", seen), validation),
        {name: held_out(found, test) for name, found in test_images.items()},
        test_images,
    )


def make_network(settings: ExperimentSettings) -> ProbabilisticModel:
    """Makes the network of an experiment; it is built."""
    task, preset = find_task(settings.task), find_network(settings.architecture)
    model_type = _MODELS[preset.model]
    arguments = {**preset.for_task(task), "seed": settings.seed}
    if not issubclass(model_type, LatentModel):
        arguments["target_permutations"] = settings.target_permutations
    model: ProbabilisticModel = model_type(**arguments)
    x, y = (None, None, task.x_dims), (None, None, task.y_dims)
    model.build({"x_context": x, "y_context": y, "x_target": x})
    return model


def make_optimizer(settings: ExperimentSettings) -> keras.optimizers.Optimizer:
    """Makes Adam, clipped, with the schedule of an experiment."""
    rate: Any = settings.learning_rate
    if settings.schedule == "cosine":
        rate = keras.optimizers.schedules.CosineDecay(rate, settings.iterations)
    return keras.optimizers.Adam(rate, global_clipnorm=GLOBAL_CLIPNORM)


def score_tasks(
    model: ProbabilisticModel,
    tasks: TaskSet,
    batch_size: int = SCORE_BATCH,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Scores held-out sequences.

    Args:
        model: a trained model.
        tasks: n sequences.
        batch_size: how many are scored at once; it changes no score.
        progress: called with the sequences that are done, and all.

    Returns:
        Arrays `[n]`, float64, in the order of the set. `log_likelihood`: log p(Y_T given X_T, X_C,
        Y_C) / N_T, exact with the true values of all earlier targets for autoregressive models, by
        importance weighting for latent ones. `squared_error`: of the mean of `call`, averaged over
        targets and outputs. Latent models also have `monte_carlo_error`, the standard error of the
        estimate, and `marginal_log_likelihood`, the average over targets of the log density of
        each alone.
    """
    found: dict[str, np.ndarray] = {}
    done = 0
    for rows, inputs, y_target in tasks.batches(batch_size):
        count = tasks.num_target[rows]
        outputs = model.teacher_forced(inputs, y_target)
        log_prob = outputs["log_prob"]
        squares = np.mean(np.square(np.float64(outputs["mean"]) - y_target), axis=-1)
        scores = {"squared_error": np.sum(squares, axis=1, where=inputs["target_mask"]) / count}
        if isinstance(model, LatentModel):
            # A key for each sequence, so that their Monte-Carlo errors average out.
            log_prob, error = model.log_prob(
                inputs, y_target, sequence_keys=rows, return_error=True
            )
            marginal = model.marginal_log_prob(inputs, y_target, sequence_keys=rows)
            scores["monte_carlo_error"] = np.float64(error) / count
            scores["marginal_log_likelihood"] = np.float64(marginal) / count
        scores["log_likelihood"] = np.float64(log_prob) / count
        for name, values in scores.items():
            found.setdefault(name, np.zeros(len(tasks)))[rows] = values
        done += len(rows)
        if progress is not None:
            progress(done, len(tasks))
    return found


def mean_and_error(values: np.ndarray) -> dict[str, float]:
    """Gives the mean over sequences and its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "standard_error": error}


def processor() -> str:
    """Gives the processor's model, where the system says it, and the number of cores."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name")
    except (OSError, StopIteration):
        pass  # not Linux, or a processor that has no name
    return f"{model}, {os.cpu_count()} cores"


@dataclasses.dataclass
class ExperimentRun:
    """What one experiment gave.

    Attributes:
        record: everything that is written to the JSON file.
        model: the trained model, with the weights that were best on the validation sequences.
        data: the sequences.
        scores: for each test set what `score_tasks` gives, and `ceiling` and `exact` where the law
            is known.
        consistency: of the first test set, where it was asked for.
    """

    record: dict[str, Any]
    model: ProbabilisticModel
    data: TaskData
    scores: dict[str, dict[str, np.ndarray]]
    consistency: Consistency | None = None


def run_experiment(
    settings: ExperimentSettings,
    output: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    num_orders: int = 0,
    show_progress: bool = True,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> ExperimentRun:
    """Trains, keeps the best validation weights, scores, and writes one JSON file.

    Files are `<output>/<task>/<label>.json`, and in a folder of the label's name the checkpoint
    `training.npz` and the model, `model.keras`.

    Args:
        settings: what to do.
        output: a folder.
        data_dir: where images are looked for.
        resume: go on from the checkpoint, if there is one.
        num_orders: random orders of the targets for `consistency`, at least 2; 0: none.
        show_progress: with bars, on standard error.
        callbacks: more of Keras' callbacks.

    Raises:
        ImportError, OSError, ValueError: data that are not there, or another checkpoint.
        KeyboardInterrupt: the user stopped; the checkpoint is that of the last look at the
            validation sequences.
    """
    task = find_task(settings.task)
    data = load_task(task, settings.validation_sequences, settings.test_sequences, data_dir)
    folder = Path(output) / settings.task / settings.label
    model = make_network(settings)
    model.compile(make_optimizer(settings))
    title = f"{settings.task}, {settings.architecture}, seed {settings.seed}"
    progress = TrainingProgress()
    with WorkProgress(title) as bar:
        resumable_fit(
            model,
            lambda first: data.training(first, settings.seed, settings.batch_size),
            data.validation.dataset(SCORE_BATCH),
            num_epochs=-(-settings.iterations // settings.epoch_steps),
            epoch_steps=settings.epoch_steps,
            checkpoint=folder / "training.npz",
            resume=resume,
            fingerprint=_fingerprint(settings),
            callbacks=[*callbacks, TrainingBar(bar)] if show_progress else callbacks,
            progress=progress,
        )
    started = time.perf_counter()
    scores = {}
    for name, tasks in data.test.items():
        with WorkProgress(f"{title}: scoring {name}") as bar:
            scores[name] = score_tasks(model, tasks, progress=bar if show_progress else None)
        if task.kind == "gaussian_process":
            exact = GaussianProcess(task.source)
            scores[name].update(exact.score_task_set(tasks, model.min_scale))
    consistency = None
    if num_orders:
        tasks = next(iter(data.test.values()))
        with WorkProgress(f"{title}: orders of targets") as bar:
            consistency = measure_consistency(
                model,
                tasks.take(min(len(tasks), 256)),
                num_orders,
                progress=bar if show_progress else None,
            )
    scoring = time.perf_counter() - started
    record = _record(settings, task, model, progress, scores, scoring)
    if consistency is not None:
        record["consistency"] = consistency.summary()
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    write_json(folder.with_name(f"{folder.name}.json"), record)
    return ExperimentRun(record, model, data, scores, consistency)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a file that is replaced whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    os.replace(unfinished, path)


def _fingerprint(settings: ExperimentSettings) -> str:
    """Of what training depends on; how many test sequences are scored does not matter."""
    values = dataclasses.asdict(settings)
    values.pop("test_sequences")
    if settings.schedule == "constant":
        values.pop("iterations")
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _record(
    settings: ExperimentSettings,
    task: ExperimentTask,
    model: ProbabilisticModel,
    progress: TrainingProgress,
    scores: Mapping[str, Mapping[str, np.ndarray]],
    scoring_seconds: float,
) -> dict[str, Any]:
    latent = isinstance(model, LatentModel)
    way = "joint" if latent else "teacher_forced"
    curve = [
        {
            "step": int(row["step"]),
            "training_nll": row["teacher_forced_nll"],
            "validation_nll": row["validation_teacher_forced_nll"],
        }
        for row in progress.history
    ]
    tables: dict[str, Any] = {}
    for name, found in scores.items():
        table: dict[str, Any] = {
            "sequences": len(found["log_likelihood"]),
            f"{way}_log_likelihood": mean_and_error(found["log_likelihood"]),
            f"{way}_mse": mean_and_error(found["squared_error"]),
        }
        if latent:
            table["marginal_log_likelihood"] = mean_and_error(found["marginal_log_likelihood"])
            table["monte_carlo_error"] = float(np.mean(found["monte_carlo_error"]))
        if "ceiling" in found:
            below = found["ceiling"] - found["log_likelihood"]
            table["exact_log_likelihood"] = mean_and_error(found["exact"])
            table["ceiling"] = {**mean_and_error(found["ceiling"]), "min_scale": model.min_scale}
            table["below_ceiling"] = mean_and_error(below)
        paper = task.paper.get(name, {}).get(settings.architecture)
        if paper is not None:
            table["paper_log_likelihood"] = {"mean": paper[0], "standard_deviation": paper[1]}
        tables[name] = table
    return {
        "format": FORMAT,
        "command": settings.command,
        "settings": dataclasses.asdict(settings),
        "score": way,
        "parameters": int(sum(np.prod(weight.shape) for weight in model.trainable_weights)),
        "min_scale": model.min_scale,
        "iterations": progress.epoch * settings.epoch_steps,
        "best_iteration": progress.best_epoch * settings.epoch_steps,
        "seconds": {"training": round(progress.seconds, 1), "scoring": round(scoring_seconds, 1)},
        "versions": versions(),
        "processor": processor(),
        "curve": curve,
        "scores": tables,
    }
