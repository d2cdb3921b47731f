"""Training with checkpoints: keeps the best weights, stops early, resumes where it was stopped."""

import dataclasses
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from taylorformer.data_wrangler.provenance import versions
from taylorformer.data_wrangler.user_warnings import warn_user
from taylorformer.data_wrangler.versioned_files import FileKind, read_arrays, write_arrays
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.training.averaged_weights import (
    AveragedValidation,
    averaged_weights,
)
from taylorformer.training_and_evaluation.training.gradient_norms import NAME
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.progress import TrainingBar

_CHECKPOINT = FileKind(format_number=1, writer="training", argument="checkpoint")
_BEST = "best_"
_STEP, _VALIDATION = "step", "validation_"
# What the nll is called in Keras' logs; the squared error is called `mse_name` of the model.
_KERAS_NLL = "nll"


@dataclasses.dataclass(frozen=True)
class ScoreNames:
    """What the scores of a model are called in the history of its training.

    Attributes:
        nll: of the joint density for each observed target.
        mse: of the means.
        chooses: the one of the two that chooses the weights to keep.
    """

    nll: str
    mse: str
    chooses: str

    @classmethod
    def of(cls, model: ProbabilisticModel) -> "ScoreNames":
        """Returns the names for a model."""
        return cls(*model.score_names, chooses=model.score_names[not model.selected_by_nll])

    @property
    def validation_nll(self) -> str:
        """The name of the nll on the validation data."""
        return f"{_VALIDATION}{self.nll}"

    @property
    def validation_choice(self) -> str:
        """The name of the score that chooses the weights."""
        return f"{_VALIDATION}{self.chooses}"

    def renamed(self, row: Mapping[str, float]) -> dict[str, float]:
        """Renames a row of the first checkpoints, which had the names of one kind of model."""
        names = {"teacher_forced_nll": self.nll, "teacher_forced_mse": self.mse}
        names |= {_VALIDATION + old: _VALIDATION + new for old, new in names.items()}
        return {names.get(name, name): value for name, value in row.items()}


@dataclasses.dataclass
class TrainingProgress:
    """How far a training has come.

    Attributes:
        epoch: how many epochs are done.
        history: one dictionary an epoch: `step`, `teacher_forced_nll`, `teacher_forced_mse` (of
            latent models `joint_nll`, `mean_latent_mse`), and where there is validation data the
            same two scores of it, with `validation_` before their names; all in units of the model.
        best_epoch: the epoch (from 1) of the best weights so far, 0 before the first.
        best_weights: the weights to keep, None before the first epoch.
        seconds: duration of the epochs, with evaluations on validation data and compilation.
        seconds_by_epoch: the same up to the end of each epoch; None for epochs of checkpoints that
            were written without it.
        start: where the weights before the first step may be kept, their scores.
    """

    epoch: int = 0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    best_epoch: int = 0
    best_weights: list[np.ndarray] | None = None
    seconds: float = 0.0
    seconds_by_epoch: list[float | None] = dataclasses.field(default_factory=list)
    start: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How many training steps are done."""
        return int(self.history[-1][_STEP]) if self.history else 0

    @property
    def best_step(self) -> int:
        """The training step of the best weights so far, 0 before the first."""
        return int(self.history[self.best_epoch - 1][_STEP]) if self.best_epoch else 0

    def lacks_finite(self, score: str) -> bool:
        """Tells whether the history has a score, but no finite value of it."""
        values = [row[score] for row in self.history if score in row]
        return bool(values) and not np.isfinite(values).any()


def resumable_fit(
    model: ProbabilisticModel,
    make_training_data: Callable[[int], tf.data.Dataset],
    validation_data: tf.data.Dataset | None,
    plan: TrainingPlan,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    fingerprint: str = "",
    callbacks: Sequence[keras.callbacks.Callback] = (),
    progress: TrainingProgress | None = None,
    choice: "WeightChoice | None" = None,
) -> TrainingProgress:
    """Trains a compiled model and leaves the best weights in it.

    The best weights are those with the lowest `nll` (of models trained on the squared error, the
    lowest `mse`) on the validation data; without such data, or where the plan says so, they are the
    last ones; where the optimizer keeps averages of the weights (`use_ema`), it is these that are
    validated and kept. What a model fits after training (`calibrate`) is fitted with them.

    After each epoch everything that training needs is written to `checkpoint`, as one file that is
    replaced whole: whenever the process ends, the file is that of the last epoch. Training that
    resumes from it ends with the weights of training that never stopped, to the last bit on one
    machine.

    Args:
        model: compiled. It is built from the training data if it has not been.
        make_training_data: makes the endless data set of training, without the batches before the
            one whose number it is called with.
        validation_data: a data set that ends, or None.
        plan: epochs, their training steps and the patience; the model is compiled with its
            optimizer already. Keras' `fit` is called once for all epochs of one length, so once
            more where the last one is shorter.
        checkpoint: the file. None: none is written.
        resume: continue from `checkpoint`, if it is there.
        fingerprint: of data and settings; a checkpoint with another one is refused.
        callbacks: more of Keras' callbacks.
        progress: updated after each epoch; for callers that need it when training is stopped.
        choice: which weights are kept, where it is not the usual score that says so.

    Returns:
        How far training came.

    Raises:
        ValueError: `checkpoint` is no checkpoint, or one of a training on other data or with other
            settings.
        KeyboardInterrupt: the user stopped; the model then has the best weights so far.
    """
    path = None if checkpoint is None else Path(checkpoint)
    progress = TrainingProgress() if progress is None else progress
    model.build_for_training(make_training_data(0), model.optimizer)
    if resume and path is not None and path.exists():
        _load(path, model, fingerprint, progress)
        if progress.steps > plan.total_steps:
            raise ValueError(
                f"training must have at least the {progress.steps} steps of {path}. "
                f"Received: {plan.total_steps} steps"
            )
    keeper = _Keeper(progress, path, fingerprint, plan, ScoreNames.of(model), choice)
    if choice is not None and not progress.start:
        progress.start = choice.scores(model, validation_data)
        progress.best_weights = model.get_weights()
    scoring = []
    if choice is not None and choice.score is not None:
        scoring.append(_ChoosingScore(choice.name, choice.score))
    for callback in callbacks:
        if isinstance(callback, TrainingBar):
            name = scoring[0].score_name if scoring else None
            callback.start_from(progress.steps, plan.total_steps, keeper.best_score, name)
    try:
        for num_epochs, epoch_steps in plan.epochs_after(progress.steps):
            if keeper.out_of_patience:
                break
            model.fit(
                make_training_data(progress.steps),
                initial_epoch=progress.epoch,
                epochs=progress.epoch + num_epochs,
                steps_per_epoch=epoch_steps,
                validation_data=validation_data,
                # The last to be called, so that the checkpoint holds what the others have done.
                callbacks=[AveragedValidation(), *scoring, *callbacks, keeper],
                verbose=0,
            )
            # Set by this keeper or by a callback of the user.
            if model.stop_training:
                break
    finally:
        if progress.best_weights is not None:
            model.set_weights(progress.best_weights)
    model.calibrate(validation_data)
    return progress


@dataclasses.dataclass(frozen=True)
class WeightChoice:
    """Keeps the weights with the lowest of a score of the caller's; those of the start are allowed.

    Attributes:
        name: of the score, in the history.
        score: returns it, for the weights that are in the model. None: the usual score of the
            validation data, whose name `name` then is.
    """

    name: str
    score: Callable[[], float] | None = None

    def scores(
        self, model: ProbabilisticModel, validation_data: tf.data.Dataset | None
    ) -> dict[str, float]:
        """Scores the weights before the first step."""
        scores = {} if self.score is None else {self.name: self.score()}
        if validation_data is not None:
            names = ScoreNames.of(model)
            of_keras = model.evaluate(validation_data, verbose=0, return_dict=True)
            scores[names.validation_nll] = float(of_keras[_KERAS_NLL])
        return scores


class _ChoosingScore(keras.callbacks.Callback):
    """Adds the score that chooses the weights to the logs of each epoch."""

    def __init__(self, score_name: str, score: Callable[[], float]) -> None:
        super().__init__()
        self.score_name, self._score = score_name, score

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if logs is not None:
            with averaged_weights(self.model):
                logs[self.score_name] = self._score()


class _Keeper(keras.callbacks.Callback):
    """Keeps the best weights, stops early, and writes the checkpoint."""

    def __init__(
        self,
        progress: TrainingProgress,
        path: Path | None,
        fingerprint: str,
        plan: TrainingPlan,
        names: ScoreNames,
        choice: WeightChoice | None = None,
    ) -> None:
        super().__init__()
        self._progress = progress
        self._path = path
        self._fingerprint = fingerprint
        self._plan = plan
        self._names = names
        self._chooses = names.validation_choice if choice is None else choice.name
        self._since = time.perf_counter()

    @property
    def out_of_patience(self) -> bool:
        waited = self._progress.epoch - self._progress.best_epoch
        return self._plan.patience is not None and waited >= self._plan.patience

    @property
    def best_score(self) -> float | None:
        """The score of the best weights on the validation data, None where there is none."""
        return self._validation_score(self._progress.best_epoch)

    def _validation_score(self, epoch: int) -> float | None:
        rows = self._progress.history
        return (rows[epoch - 1] if epoch else self._progress.start).get(self._chooses)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        logs = logs or {}
        progress = self._progress
        scores: dict[str, float] = {_STEP: progress.steps + self.params["steps"]}
        keras_names = _KERAS_NLL, self.model.mse_name
        for name, keras_name in zip((self._names.nll, self._names.mse), keras_names, strict=True):
            scores[name] = float(logs[keras_name])
            if f"val_{keras_name}" in logs:
                scores[f"{_VALIDATION}{name}"] = float(logs[f"val_{keras_name}"])
        if NAME in logs:
            scores[NAME] = float(logs[NAME])
        if self._chooses in logs:
            scores[self._chooses] = float(logs[self._chooses])
        best = self.best_score
        progress.epoch = epoch + 1
        now = time.perf_counter()
        progress.seconds, self._since = progress.seconds + now - self._since, now
        progress.history.append(scores)
        progress.seconds_by_epoch.append(progress.seconds)
        score = self._validation_score(progress.epoch)
        # Without validation data the last weights are the ones to keep.
        first_finite = best is not None and not math.isfinite(best) and math.isfinite(score or 0)
        is_best = score is None or best is None or score < best or first_finite
        if is_best or self._plan.keep_last:
            progress.best_epoch = progress.epoch
            with averaged_weights(self.model):
                progress.best_weights = self.model.get_weights()
        if self.out_of_patience:
            self.model.stop_training = True
        if self._path is not None:
            _save(self._path, self.model, progress, self._fingerprint)


def _state(model: ProbabilisticModel) -> dict[str, keras.Variable]:
    """Returns all that changes in training: weights, moving statistics, seeds, the optimizer."""
    variables = dict(model.seed_states())
    for index, value in enumerate(model.weights):
        variables[f"model_{index}"] = value
    for index, value in enumerate(model.optimizer.variables):
        variables[f"optimizer_{index}"] = value
    return variables


@dataclasses.dataclass(frozen=True)
class _Checkpoint:
    """The content of a checkpoint.

    Attributes:
        state: the values of `_state`, by name.
        progress: how far training came, with the best weights.
        fingerprint: of data and settings.
        versions: of the packages that wrote it.
    """

    state: Mapping[str, np.ndarray]
    progress: TrainingProgress
    fingerprint: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> "_Checkpoint":
        best_names = [name for name in arrays if name.startswith(_BEST)]
        best = [arrays.pop(f"{_BEST}{index}") for index in range(len(best_names))]
        progress = TrainingProgress(
            epoch=meta["epoch"],
            history=meta["history"],
            best_epoch=meta["best_epoch"],
            best_weights=best or None,
            # The first checkpoints were written without it.
            seconds=meta.get("seconds", 0.0),
            seconds_by_epoch=meta.get("seconds_by_epoch", [None] * len(meta["history"])),
            start=meta.get("start", {}),
        )
        return cls(arrays, progress, meta["fingerprint"], dict(meta["versions"]))


def kept_weights(checkpoint: str | os.PathLike[str]) -> list[np.ndarray]:
    """Reads the weights that a training would leave in its model if it ended with this checkpoint.

    Args:
        checkpoint: a file of `resumable_fit`.

    Returns:
        What `get_weights` of the model would return.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no checkpoint.
    """
    read = read_arrays(_CHECKPOINT, Path(checkpoint), _Checkpoint.of)
    return read.progress.best_weights or []


def _save(
    path: Path, model: ProbabilisticModel, progress: TrainingProgress, fingerprint: str
) -> None:
    arrays: dict[str, np.ndarray] = {name: v.numpy() for name, v in _state(model).items()}
    for index, weight in enumerate(progress.best_weights or []):
        arrays[f"{_BEST}{index}"] = weight
    meta = {
        "fingerprint": fingerprint,
        "epoch": progress.epoch,
        "best_epoch": progress.best_epoch,
        "history": progress.history,
        "seconds": progress.seconds,
        "seconds_by_epoch": progress.seconds_by_epoch,
        "start": progress.start,
    }
    write_arrays(_CHECKPOINT, path, arrays, meta)


def _load(
    path: Path, model: ProbabilisticModel, fingerprint: str, progress: TrainingProgress
) -> None:
    """Puts a checkpoint into the model, its optimizer and `progress`."""
    checkpoint = read_arrays(_CHECKPOINT, path, _Checkpoint.of)
    if checkpoint.fingerprint != fingerprint:
        raise ValueError(
            "training can only resume with the data and settings it began with (and as many steps "
            "in all, unless the learning rate is constant). "
            f"Received: others than those of {path}; choose another file, or start anew"
        )
    state = _state(model)
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    if shapes != {name: value.shape for name, value in checkpoint.state.items()}:
        raise ValueError(
            f"`checkpoint` must fit the model of {len(state)} variables. Received: {path}, made "
            f"by taylorformer {checkpoint.versions.get('taylorformer')}, with "
            f"{len(checkpoint.state)}"
        )
    here, there = versions(), checkpoint.versions
    changed = {name: there.get(name) for name in here if there.get(name) != here[name]}
    if changed:
        then = ", ".join(f"{name} {version}" for name, version in changed.items())
        warn_user(
            f"training began with {then} and resumes with other versions: the weights may differ "
            "in the last digits"
        )
    for name, value in state.items():
        value.assign(checkpoint.state[name])
    for field in dataclasses.fields(progress):
        setattr(progress, field.name, getattr(checkpoint.progress, field.name))
    progress.history = [ScoreNames.of(model).renamed(row) for row in progress.history]
