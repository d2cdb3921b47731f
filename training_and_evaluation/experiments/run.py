"""One experiment: a model is trained on a task, scored on held-out sequences, and put on record."""

import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import keras
import numpy as np

from taylorformer.comparison_models.gaussian_process import GaussianProcess
from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.provenance import devices
from taylorformer.data_wrangler.tables.window_set import WindowSet
from taylorformer.data_wrangler.whole_files import open_replaced
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.experiments.consistency import (
    Consistency,
    measure_consistency,
)
from taylorformer.training_and_evaluation.experiments.data import TaskData, load_task
from taylorformer.training_and_evaluation.experiments.record import write_record
from taylorformer.training_and_evaluation.experiments.scores import (
    SCORE_BATCH,
    finite_or_none,
    mean_and_error,
    score_tasks,
)
from taylorformer.training_and_evaluation.experiments.series_scores import score_windows
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings
from taylorformer.training_and_evaluation.model_classes import MODELS
from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress
from taylorformer.training_and_evaluation.training.resumable_fit import (
    ScoreNames,
    TrainingProgress,
    resumable_fit,
)

MODEL_FILE = "model.keras"
SCORES_FILE = "scores.npz"
# Arguments that older checkpoints do not have, where they change nothing.
_ADDED_LATER = {"fitted_order": None, "anchors": ["nearest"], "season_dims": [1, 2]}
# In 40 orders each they are about five times as many scores as the test set.
_CONSISTENCY_SEQUENCES = 256


def make_model(settings: ExperimentSettings, x_dims: int | None = None) -> ProbabilisticModel:
    """Makes the model of an experiment; it is built, and not compiled.

    Args:
        settings: which model, for which task.
        x_dims: D_x with time features. None: that of the task.

    Raises:
        ValueError: `settings.changes` has what is no argument of the model.
    """
    task, preset = settings.experiment_task, settings.preset
    model_type = MODELS[preset.model]
    possible = [
        name
        for name in inspect.signature(model_type).parameters
        if name not in ("kwargs", "seed", "target_permutations")
    ]
    for name in settings.changes:
        if name not in possible:
            raise ValueError(
                f"`changes` must be arguments of {preset.model}: {', '.join(possible)}. "
                f"Received: {name}"
            )
    arguments = {**preset.for_task(task), **settings.changes, "seed": settings.seed}
    if preset.autoregressive:
        arguments["target_permutations"] = settings.target_permutations
    model: ProbabilisticModel = model_type(**arguments)
    x_dims = task.x_dims if x_dims is None else x_dims
    context, target = _fixed_length(task.num_context), _fixed_length(task.num_target)
    model.build(
        {
            "x_context": (None, context, x_dims),
            "y_context": (None, context, task.y_dims),
            "x_target": (None, target, x_dims),
        }
    )
    return model


def _fixed_length(limits: tuple[int, int] | None) -> int | None:
    """Returns the number of points if it is always the same."""
    return limits[0] if limits is not None and limits[0] == limits[1] else None


@dataclasses.dataclass
class ExperimentRun:
    """The results of one experiment.

    Attributes:
        record: everything that is written to the JSON file.
        model: the trained model, with the weights that were best on the validation sequences.
        data: the sequences.
        scores: for each test set the arrays returned by `score_tasks`, and `ceiling` and `exact`
            where the distribution of the sequences is known.
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

    The record is `<output>/<task>/<label>.json`. A folder beside it, with the name of the label,
    holds the checkpoint `training.npz`, the model `model.keras`, and the scores of every sequence,
    `scores.npz`.

    Args:
        settings: what to do.
        output: a folder.
        data: the sequences, as `load_task` returns them. None: they are loaded.
        resume: continue from the checkpoint, if there is one. A run that is complete is scored
            again.
        overwrite: start anew, whatever is there.
        num_orders: random orders of the targets for `consistency`, at least 2; 0: none.
        show_progress: show bars on standard error.
        callbacks: more of Keras' callbacks.

    Raises:
        FileExistsError: a run is there, and neither `resume` nor `overwrite` says what to do; or
            its record is there without its checkpoint, so that it cannot resume.
        ImportError, OSError, ValueError: images that cannot be found, or a checkpoint of another
            training.
        KeyboardInterrupt: the user stopped; the checkpoint is that of the last evaluation on the
            validation sequences.
    """
    if num_orders:
        num_orders = check_integer("num_orders", num_orders, 2)
        if settings.experiment_task.kind == "series":
            raise ValueError(
                "`num_orders` must be 0 for a task of a series, whose targets have one order. "
                f"Received: num_orders={num_orders}"
            )
    if not settings.preset.trained:
        raise ValueError(
            "`architecture` must be a preset that is trained. "
            f"Received: {settings.model_name}; see `score_released`"
        )
    path, checkpoint = settings.record_path(output), settings.checkpoint_path(output)
    there = next((file for file in (path, checkpoint) if file.exists()), None)
    if overwrite:
        # Else a run that is stopped now would leave the old record as if it were the new one.
        path.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
    elif there is not None and not resume:
        raise FileExistsError(
            f"{there} is there: `resume` continues it, `overwrite` starts anew. Received: neither"
        )
    elif path.exists() and not checkpoint.exists():
        raise FileExistsError(
            f"a run can only resume from its checkpoint: `overwrite` starts anew. Received: {path} "
            f"without {checkpoint}"
        )
    if data is None:
        data = load_task(
            settings.experiment_task,
            settings.validation_sequences,
            settings.test_sequences,
            time_features=settings.preset.time_features,
        )
    model = make_model(settings, data.x_dims)
    model.compile(settings.plan.make_optimizer())
    progress = TrainingProgress()
    training = data.training
    with _bar(settings, "", show_progress) as bar:
        resumable_fit(
            model,
            lambda first: training(first, settings.seed, settings.batch_size),
            data.validation.dataset(SCORE_BATCH),
            settings.plan,
            checkpoint=checkpoint,
            resume=resume,
            fingerprint=fingerprint(settings, model, data),
            callbacks=callbacks if bar is None else [*callbacks, TrainingBar(bar)],
            progress=progress,
        )
    started = time.perf_counter()
    scores, tables = score_model(settings, model, data, show_progress)
    consistency = None
    if num_orders:
        tasks = data.test_tasks
        tasks = tasks.take(min(len(tasks), _CONSISTENCY_SEQUENCES))
        with _bar(settings, ": orders of targets", show_progress) as bar:
            consistency = measure_consistency(model, tasks, num_orders, progress=bar)
    record = make_record(settings, model, data, progress, tables)
    record["seconds"]["scoring"] = round(time.perf_counter() - started, 1)
    if consistency is not None:
        record["command"] += " --consistency"
        record["consistency"] = consistency.summary()
    folder = settings.run_folder(output)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL_FILE)
    arrays: dict[str, Any] = {
        f"{name}_{key}": v for name, part in scores.items() for key, v in part.items()
    }
    if consistency is not None:
        arrays["consistency"] = consistency.log_likelihoods
    with open_replaced(folder / SCORES_FILE) as file:
        np.savez(file, **arrays)
    record = write_record(path, record)
    return ExperimentRun(record, model, data, scores, consistency)


@contextlib.contextmanager
def _bar(settings: ExperimentSettings, what: str, show: bool) -> Iterator[WorkProgress | None]:
    if not show:
        yield None
        return
    title = f"{settings.task_name}, {settings.model_name}, seed {settings.seed}{what}"
    with WorkProgress(title) as bar:
        yield bar


def score_model(
    settings: ExperimentSettings, model: ProbabilisticModel, data: TaskData, show_progress: bool
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, dict[str, Any]]]:
    """Returns the scores of every sequence, and their means for the record, by test set."""
    task, way = settings.experiment_task, score_kind(model)
    scores, tables = {}, {}
    for name, tasks in data.test.items():
        with _bar(settings, f": scoring {name}", show_progress) as bar:
            if isinstance(tasks, WindowSet):
                validation = cast(WindowSet, data.validation)
                scores[name], summary = score_windows(model, tasks, validation, task, bar)
                tables[name] = _series_table(scores[name], summary, way)
            else:
                scores[name] = score_tasks(model, tasks, progress=bar)
                if task.kind == "gaussian_process":
                    exact = GaussianProcess(task.source)
                    scores[name].update(exact.score_task_set(tasks, model.min_scale))
                tables[name] = _table(scores[name], way, model.min_scale)
        for kind, figures in (("log_likelihood", task.paper), ("mse", task.paper_mse)):
            paper = figures.get(name, {}).get(settings.preset.paper_name)
            if paper is not None:
                mean, deviation = paper
                tables[name][f"paper_{kind}"] = {"mean": mean, "standard_deviation": deviation}
    return scores, tables


def score_kind(model: ProbabilisticModel) -> str:
    """Names how the log-likelihood of a model is measured, "teacher_forced" or "joint"."""
    return model.score_names[0].removesuffix("_nll")


def _series_table(
    arrays: Mapping[str, np.ndarray], summary: Mapping[str, Any], way: str
) -> dict[str, Any]:
    """Puts the scores of test windows on record; log-likelihoods as for other tasks."""
    nll = arrays[f"{way}_nll"]
    return {
        "sequences": len(nll),
        f"{way}_log_likelihood": mean_and_error(-nll),
        **summary,
    }


def fingerprint(settings: ExperimentSettings, model: ProbabilisticModel, data: TaskData) -> str:
    """Digests everything that training depends on: settings, model and data.

    How many test sequences are scored is not part of it, nor, with a constant learning rate, the
    number of iterations: more of them continue the same training.
    """
    values = settings.get_config()
    for name in ("test_sequences", "validate_every", "variant"):
        values.pop(name, None)
    values["epoch_steps"] = settings.plan.epoch_steps
    if not settings.plan.length_matters:
        values.pop("iterations")
    parts = [values, _class_and_arguments(model), data.about, data.validation.about]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _class_and_arguments(model: ProbabilisticModel) -> dict[str, Any]:
    config = {k: v for k, v in model.get_config().items() if k not in ("name", "dtype")}
    for name, usual in _ADDED_LATER.items():
        if name in config and config[name] == usual:
            del config[name]
    return {"class": type(model).__name__, "dtype": model.dtype_policy.name, **config}


def make_record(
    settings: ExperimentSettings,
    model: ProbabilisticModel,
    data: TaskData,
    progress: TrainingProgress,
    tables: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Makes the record of a run, without the seconds that scoring took.

    Args:
        settings: what was done.
        model: trained.
        data: the sequences.
        progress: of the training.
        tables: the means of the scores by test set, as `score_model` returns them.
    """
    history, names = progress.history, ScoreNames.of(model)
    return {
        "command": settings.command,
        "settings": settings.get_config(),
        "score": score_kind(model),
        "parameters": int(sum(np.prod(weight.shape) for weight in model.trainable_weights)),
        "min_scale": model.min_scale,
        "iterations": progress.steps,
        "best_iteration": progress.best_step,
        "seconds": {"training": round(progress.seconds, 1)},
        "processor": devices(),
        "network": _class_and_arguments(model),
        "data": data.about,
        "curve": [
            {
                "step": int(row["step"]),
                "training_nll": finite_or_none(row[names.nll]),
                "validation_nll": finite_or_none(row[names.validation_nll]),
                **_squared_error(row, names, model),
                **({} if seconds is None else {"seconds": round(seconds, 1)}),
            }
            for row, seconds in zip(history, progress.seconds_by_epoch, strict=True)
        ],
        "scores": tables,
    }


def _squared_error(
    row: Mapping[str, float], names: ScoreNames, model: ProbabilisticModel
) -> dict[str, float | None]:
    """Returns the validation score of a model whose weights it chooses instead of the nll."""
    if model.selected_by_nll:
        return {}
    return {"validation_mse": finite_or_none(row[names.validation_choice])}


def _table(arrays: Mapping[str, np.ndarray], way: str, min_scale: float) -> dict[str, Any]:
    """Averages the scores of one test set.

    Args:
        arrays: of `score_tasks`, with `ceiling` and `exact` where there are such scores.
        way: how the log-likelihood was measured, "teacher_forced" or "joint".
        min_scale: of the model, on which the ceiling depends.
    """
    table: dict[str, Any] = {
        "sequences": len(arrays["log_likelihood"]),
        f"{way}_log_likelihood": mean_and_error(arrays["log_likelihood"]),
    }
    if way == "teacher_forced":
        table["teacher_forced_mse"] = mean_and_error(arrays["squared_error"])
    else:
        # The mean of `call` is that of the mean latent.
        table["mean_latent_mse"] = mean_and_error(arrays["squared_error"])
        table["marginal_log_likelihood"] = mean_and_error(arrays["marginal_log_likelihood"])
        errors = np.square(arrays["monte_carlo_error"])
        table["monte_carlo_error"] = finite_or_none(np.sqrt(np.sum(errors)) / len(errors))
    if "ceiling" in arrays:
        below = arrays["ceiling"] - arrays["log_likelihood"]
        table["exact_log_likelihood"] = mean_and_error(arrays["exact"])
        table["ceiling"] = {**mean_and_error(arrays["ceiling"]), "min_scale": min_scale}
        table["below_ceiling"] = mean_and_error(below)
    return table
