"""One experiment: a network trained on a task, scored on held-out sequences, and put on record."""

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from taylorformer.comparison_models.attentive_neural_process import AttentiveNeuralProcess
from taylorformer.comparison_models.gaussian_process import GaussianProcess
from taylorformer.comparison_models.neural_process import NeuralProcess
from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.files import replaced_whole
from taylorformer.data_wrangler.provenance import devices
from taylorformer.model.probabilistic_model import GLOBAL_CLIPNORM, ProbabilisticModel
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.experiments.consistency import (
    Consistency,
    measure_consistency,
)
from taylorformer.training_and_evaluation.experiments.data import TaskData, load_task
from taylorformer.training_and_evaluation.experiments.presets import find_network, find_task
from taylorformer.training_and_evaluation.experiments.record import write_record
from taylorformer.training_and_evaluation.experiments.scores import (
    SCORE_BATCH,
    finite_or_none,
    mean_and_error,
    score_tasks,
)
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings
from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress
from taylorformer.training_and_evaluation.training.resumable_fit import (
    TrainingProgress,
    resumable_fit,
)

MODELS = {
    model.__name__: model
    for model in (
        Taylorformer,
        TransformerNeuralProcess,
        AttentiveNeuralProcess,
        NeuralProcess,
    )
}
"""The classes that presets name."""

MODEL_FILE = "model.keras"
SCORES_FILE = "scores.npz"
_CONSISTENCY_SEQUENCES = 256


def make_network(settings: ExperimentSettings) -> ProbabilisticModel:
    """Makes the network of an experiment; it is built."""
    task, preset = find_task(settings.task), find_network(settings.architecture)
    model_type = MODELS[preset.model]
    arguments = {**preset.for_task(task), "seed": settings.seed}
    if preset.autoregressive:
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
    data: TaskData | None = None,
    resume: bool = False,
    overwrite: bool = False,
    num_orders: int = 0,
    show_progress: bool = True,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> ExperimentRun:
    """Trains, keeps the best validation weights, scores, and writes one JSON file.

    Files are `<output>/<task>/<label>.json`, and in a folder of the label's name the checkpoint
    `training.npz`, the model `model.keras` and the scores of every sequence, `scores.npz`.

    Args:
        settings: what to do.
        output: a folder.
        data: what `load_task` gives. None: it is loaded.
        resume: go on from the checkpoint, if there is one. A run that is complete is scored again.
        overwrite: start anew, whatever is there.
        num_orders: random orders of the targets for `consistency`, at least 2; 0: none.
        show_progress: with bars, on standard error.
        callbacks: more of Keras' callbacks.

    Raises:
        FileExistsError: a run is there, and neither `resume` nor `overwrite` says what to do.
        ImportError, OSError, ValueError: data that are not there, or another checkpoint.
        KeyboardInterrupt: the user stopped; the checkpoint is that of the last look at the
            validation sequences.
    """
    if num_orders:
        check_integer("num_orders", num_orders, 2)
    path, checkpoint = settings.record_path(output), settings.checkpoint_path(output)
    folder = checkpoint.parent
    there = next((file for file in (path, checkpoint) if file.exists()), None)
    if overwrite:
        # Else a run that is stopped now would leave the old record as if it were the new one.
        path.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
    elif there is not None and not resume:
        raise FileExistsError(
            f"{there} is there: `resume` goes on with it, `overwrite` starts anew. "
            "Received: neither"
        )
    if data is None:
        data = load_task(
            find_task(settings.task), settings.validation_sequences, settings.test_sequences
        )
    model = make_network(settings)
    model.compile(make_optimizer(settings))
    progress = TrainingProgress()
    training = data.training
    with _bar(settings, "", show_progress) as bar:
        resumable_fit(
            model,
            lambda first: training(first, settings.seed, settings.batch_size),
            data.validation.dataset(SCORE_BATCH),
            num_epochs=settings.iterations // settings.epoch_steps,
            epoch_steps=settings.epoch_steps,
            checkpoint=checkpoint,
            resume=resume,
            fingerprint=fingerprint(settings, model, data),
            callbacks=callbacks if bar is None else [*callbacks, TrainingBar(bar)],
            progress=progress,
        )
    started = time.perf_counter()
    scores = _score(settings, model, data, show_progress)
    consistency = None
    if num_orders:
        tasks = next(iter(data.test.values()))
        tasks = tasks.take(min(len(tasks), _CONSISTENCY_SEQUENCES))
        with _bar(settings, ": orders of targets", show_progress) as bar:
            consistency = measure_consistency(model, tasks, num_orders, progress=bar)
    record = _record(settings, model, data, progress, scores)
    record["seconds"]["scoring"] = round(time.perf_counter() - started, 1)
    if consistency is not None:
        record["command"] += " --consistency"
        record["consistency"] = consistency.summary()
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL_FILE)
    arrays: dict[str, Any] = {
        f"{name}_{key}": v for name, found in scores.items() for key, v in found.items()
    }
    if consistency is not None:
        arrays["consistency"] = consistency.log_likelihoods
    with replaced_whole(folder / SCORES_FILE) as file:
        np.savez(file, **arrays)
    record = write_record(path, record)
    return ExperimentRun(record, model, data, scores, consistency)


@contextlib.contextmanager
def _bar(settings: ExperimentSettings, what: str, show: bool) -> Iterator[WorkProgress | None]:
    if not show:
        yield None
        return
    title = f"{settings.task}, {settings.architecture}, seed {settings.seed}{what}"
    with WorkProgress(title) as bar:
        yield bar


def _score(
    settings: ExperimentSettings, model: ProbabilisticModel, data: TaskData, show_progress: bool
) -> dict[str, dict[str, np.ndarray]]:
    task = find_task(settings.task)
    scores = {}
    for name, tasks in data.test.items():
        with _bar(settings, f": scoring {name}", show_progress) as bar:
            scores[name] = score_tasks(model, tasks, progress=bar)
        if task.kind == "gaussian_process":
            exact = GaussianProcess(task.source)
            scores[name].update(exact.score_task_set(tasks, model.min_scale))
    return scores


def fingerprint(settings: ExperimentSettings, model: ProbabilisticModel, data: TaskData) -> str:
    """Digests what training depends on: settings, network and data.

    How many test sequences are scored is not part of it, nor, with a constant learning rate, the
    number of iterations: more of them continue the same training.
    """
    values = dataclasses.asdict(settings)
    for name in ("test_sequences", "validate_every"):
        values.pop(name)
    values["epoch_steps"] = settings.epoch_steps
    if settings.schedule == "constant":
        values.pop("iterations")
    parts = [values, _network(model), data.about, data.validation.about]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _network(model: ProbabilisticModel) -> dict[str, Any]:
    """Gives the class of a model and its arguments."""
    config = {k: v for k, v in model.get_config().items() if k not in ("name", "dtype")}
    return {"class": type(model).__name__, "dtype": model.dtype_policy.name, **config}


def _record(
    settings: ExperimentSettings,
    model: ProbabilisticModel,
    data: TaskData,
    progress: TrainingProgress,
    scores: Mapping[str, Mapping[str, np.ndarray]],
) -> dict[str, Any]:
    task, network = find_task(settings.task), find_network(settings.architecture)
    way = "teacher_forced" if network.autoregressive else "joint"
    history = progress.history
    tables: dict[str, Any] = {}
    for name, found in scores.items():
        table: dict[str, Any] = {
            "sequences": len(found["log_likelihood"]),
            f"{way}_log_likelihood": mean_and_error(found["log_likelihood"]),
        }
        if network.autoregressive:
            table["teacher_forced_mse"] = mean_and_error(found["squared_error"])
        else:
            # The mean of `call` is that of the mean latent.
            table["mean_latent_mse"] = mean_and_error(found["squared_error"])
            table["marginal_log_likelihood"] = mean_and_error(found["marginal_log_likelihood"])
            errors = np.square(found["monte_carlo_error"])
            table["monte_carlo_error"] = finite_or_none(np.sqrt(np.sum(errors)) / len(errors))
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
        "command": settings.command,
        "settings": dataclasses.asdict(settings),
        "score": way,
        "parameters": int(sum(np.prod(weight.shape) for weight in model.trainable_weights)),
        "min_scale": model.min_scale,
        "iterations": int(history[-1]["step"]),
        "best_iteration": int(history[progress.best_epoch - 1]["step"]),
        "seconds": {"training": round(progress.seconds, 1)},
        "processor": devices(),
        "network": _network(model),
        "data": data.about,
        "curve": [
            {
                "step": int(row["step"]),
                "training_nll": finite_or_none(row["teacher_forced_nll"]),
                "validation_nll": finite_or_none(row["validation_teacher_forced_nll"]),
            }
            for row in history
        ],
        "scores": tables,
    }
