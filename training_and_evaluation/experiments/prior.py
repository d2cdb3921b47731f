"""The training of the weights that come with the package, on synthetic series alone."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.provenance import devices
from taylorformer.data_wrangler.tables.context_scaler import input_shapes
from taylorformer.data_wrangler.tasks.series_prior import (
    SeriesPrior,
    synthetic_series_tasks,
)
from taylorformer.data_wrangler.versioned_files import FileKind, write_json
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.experiments.scores import finite_or_none
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import find_pretrained
from taylorformer.training_and_evaluation.training.gradient_norms import NAME, GradientNorms
from taylorformer.training_and_evaluation.training.path_training import PathTrainedTaylorformer
from taylorformer.training_and_evaluation.training.plan import (
    LARGEST_TRAINING_SEED,
    TrainingPlan,
)
from taylorformer.training_and_evaluation.training.progress import TrainingBar, WorkProgress
from taylorformer.training_and_evaluation.training.resumable_fit import (
    TrainingProgress,
    kept_weights,
    resumable_fit,
)

TASK = "prior"
"""The name of this training on the command line."""

_KIND = FileKind(format_number=1, writer="`train_prior`")
MODEL_FILE, RECORD_FILE, CHECKPOINT_FILE = "prior.keras", "prior.json", "training.npz"
# Options of the command; what else is changed is set by name.
_OPTIONS = (
    "seed",
    "iterations",
    "batch_size",
    "learning_rate",
    "schedule",
    "optimizer",
    "validate_every",
)
_OF_PRIOR = "prior."
# Validation sequences are the same for every training.
_VALIDATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class PriorSettings:
    """The model, its training and the distribution of its tasks.

    Attributes:
        seed: of the first weights and of the training tasks.
        iterations: training steps.
        batch_size: B of sequences of usual length.
        learning_rate: the peak.
        schedule: "cosine", which ends at 0, or "constant": such a training can be continued with
            more `iterations`, and what it wrote can be the `start` of one that ends at 0.
        optimizer: "adam", or "muon", see `TrainingPlan`.
        warm_up: first steps, in which the learning rate rises.
        validate_every: training steps from one look at the validation tasks to the next.
        validation_batches: how many.
        num_heads: see `Taylorformer`, as the next ones.
        head_dim: width of one head.
        width: width of the towers.
        num_layers: layers of each tower.
        encoding_dim: E.
        shortest: of the positional encoding, in units of x: 1 is 64 steps.
        longest: of the positional encoding.
        fitted_order: of `Taylorformer`.
        anchors: of `Taylorformer`; with "season" the first season of x is the one it reads.
        average: the decay per step of the running average of the weights that is validated and
            kept. None: no average.
        path_weight: of the score of free-running samples, see `PathTrainedTaylorformer`; 0: the
            likelihood alone is trained on.
        start: the weights to begin with: the name of a pretrained preset, or the path of a model
            or of a checkpoint, with the same arguments, that an earlier training wrote. None:
            random ones.
        prior: the distribution of the tasks.
    """

    seed: int = 0
    iterations: int = 30_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    optimizer: str = "adam"
    warm_up: int = 1000
    validate_every: int = 1000
    validation_batches: int = 64
    num_heads: int = 4
    head_dim: int = 16
    width: int = 48
    num_layers: int = 4
    encoding_dim: int = 16
    shortest: float = 0.05
    longest: float = 2.0
    fitted_order: int | None = None
    anchors: tuple[str, ...] = ("nearest",)
    average: float | None = None
    path_weight: float = 0.0
    start: str | None = None
    prior: SeriesPrior = dataclasses.field(default_factory=SeriesPrior)

    def __post_init__(self) -> None:
        check_integer("seed", self.seed, 0, LARGEST_TRAINING_SEED)
        check_integer("validation_batches", self.validation_batches, 1)
        check_number("path_weight", self.path_weight, minimum=0)
        _ = self.plan  # which checks the rest

    @property
    def plan(self) -> TrainingPlan:
        """How long the model is trained, and with what optimizer."""
        return TrainingPlan(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            max_steps=self.iterations,
            steps_per_epoch=self.validate_every,
            warm_up_steps=min(self.warm_up, self.iterations - 1),
            weight_decay=1e-3,
            optimizer=self.optimizer,
            beta_2=0.98,
            clip_norm=1.0,
            average=self.average,
            keep_last=True,
            record_norms=True,
        )

    @property
    def model_arguments(self) -> dict[str, Any]:
        """The arguments of `Taylorformer`."""
        names = (
            "num_heads",
            "head_dim",
            "width",
            "num_layers",
            "encoding_dim",
            "shortest",
            "longest",
            "fitted_order",
            "anchors",
            "seed",
        )
        # Time alone says which points are neighbours: phases do not bring stamps together.
        return {
            **{name: getattr(self, name) for name in names},
            "dropout": 0.0,
            "neighbour_dims": 1,
        }

    def make_model(self) -> Taylorformer:
        """Makes the model that is trained, with its first weights."""
        if not self.path_weight:
            return Taylorformer(**self.model_arguments)
        return PathTrainedTaylorformer(path_weight=self.path_weight, **self.model_arguments)

    @property
    def fingerprint(self) -> str:
        """Tells trainings that take the same steps from others."""
        config = self.get_config()
        if not self.plan.length_matters:
            del config["iterations"]
        return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()

    @property
    def command(self) -> str:
        """The command that does it."""
        words = ["taylorformer", "experiment", TASK]
        for name in _OPTIONS:
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        usual = _flat(PriorSettings())
        for name, value in _flat(self).items():
            if name not in _OPTIONS and value != usual[name]:
                words += ["--set", f"{name}={json.dumps(value)}"]
        return shlex.join(words)

    @classmethod
    def of(cls, changes: Mapping[str, Any], **given: Any) -> "PriorSettings":
        """Makes settings from values by name, as the command line has them.

        Example:
            >>> settings = PriorSettings.of({"width": 32, "prior.gaps": 0.2}, seed=1)
            >>> settings.width, settings.prior.gaps, settings.seed
            (32, 0.2, 1)

        Args:
            changes: values of attributes; those of `prior` have names as "prior.gaps".
            given: more attributes.

        Raises:
            TypeError, ValueError: an unknown name, or a value outside its range.
        """
        possible = [name for name in _flat(cls()) if name not in _OPTIONS]
        for name in changes:
            check_choice("changes", name, possible)
        others = {name: value for name, value in changes.items() if not name.startswith(_OF_PRIOR)}
        if "anchors" in others:
            others["anchors"] = tuple(others["anchors"])
        start = len(_OF_PRIOR)
        of_prior = {name[start:]: v for name, v in changes.items() if name.startswith(_OF_PRIOR)}
        return cls(**others, **given, prior=SeriesPrior(**of_prior))

    def get_config(self) -> dict[str, Any]:
        """Returns all settings, ready for JSON."""
        return {**dataclasses.asdict(self), "anchors": list(self.anchors)}


def _flat(settings: PriorSettings) -> dict[str, Any]:
    """Returns all settings by the names of `PriorSettings.of`."""
    config = settings.get_config()
    of_prior = config.pop("prior")
    return {**config, **{f"{_OF_PRIOR}{name}": value for name, value in of_prior.items()}}


def train_prior(
    settings: PriorSettings,
    output: str | os.PathLike[str],
    *,
    resume: bool = False,
    overwrite: bool = False,
    show_progress: bool = True,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains a model on synthetic series, and writes it with its record.

    `<output>/prior/` gets the checkpoint `training.npz`, the model `prior.keras` with the last
    weights, and the record `prior.json` with the scores on validation tasks on the way.

    Args:
        settings: what to do.
        output: a folder.
        resume: continue from the checkpoint, if there is one.
        overwrite: start anew, whatever is there.
        show_progress: show a bar on standard error.
        callbacks: more of Keras' callbacks.

    Returns:
        The record.

    Raises:
        FileExistsError: a training is there, and neither `resume` nor `overwrite` says what to do.
        ValueError: the checkpoint is of another training, or the model to start from has other
            arguments.
        KeyboardInterrupt: the user stopped; the checkpoint is that of the last validation.
    """
    folder = Path(output) / TASK
    checkpoint = folder / CHECKPOINT_FILE
    if overwrite:
        for name in (CHECKPOINT_FILE, MODEL_FILE, RECORD_FILE):
            (folder / name).unlink(missing_ok=True)
    elif checkpoint.exists() and not resume:
        raise FileExistsError(
            f"{checkpoint} is there: `resume` continues it, `overwrite` starts anew. "
            "Received: neither"
        )
    folder.mkdir(parents=True, exist_ok=True)
    model = settings.make_model()
    start_hash = None
    if settings.start is not None:
        _start_from(settings.start, model)
        # Now, as the file may be gone when the training ends.
        start_hash = _file_hash(settings.start) if Path(settings.start).suffix else None
    model.compile(settings.plan.make_optimizer())
    validation = synthetic_series_tasks(
        settings.batch_size,
        _VALIDATION_SEED,
        settings.prior,
        num_batches=settings.validation_batches,
        part="validation",
    ).cache()
    progress = TrainingProgress()
    every: list[keras.callbacks.Callback] = [GradientNorms(), *callbacks]
    with contextlib.ExitStack() as stack:
        if show_progress:
            bar = stack.enter_context(WorkProgress(f"Prior, seed {settings.seed}"))
            every.append(TrainingBar(bar))
        resumable_fit(
            model,
            lambda first: synthetic_series_tasks(
                settings.batch_size, settings.seed, settings.prior, first_batch=first
            ),
            validation,
            settings.plan,
            checkpoint=checkpoint,
            resume=resume,
            fingerprint=settings.fingerprint,
            callbacks=every,
            progress=progress,
        )
    # Without the optimizer, which is larger than the model.
    plain = Taylorformer(**settings.model_arguments)
    plain.build(input_shapes())
    plain.set_weights(model.get_weights())
    plain.save(folder / MODEL_FILE)
    return write_json(
        _KIND,
        folder / RECORD_FILE,
        _record(settings, model, progress, folder, start_hash),
        indent=1,
    )


def _file_hash(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _start_from(start: str, model: Taylorformer) -> None:
    """Gives a new model the weights of another one.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the other one has other arguments, or there is none of this name.
    """
    if Path(start).suffix == Path(CHECKPOINT_FILE).suffix:
        _take_weights(start, model, kept_weights(start))
        return
    other = find_pretrained(start, "start").load()
    ours, theirs = ({**one.get_config(), "seed": None, "name": None} for one in (model, other))
    different = [name for name in ours if ours[name] != theirs.get(name)]
    if different:
        raise ValueError(
            "`start` must be a model with the arguments of the one to be trained. Received: "
            + ", ".join(f"{name}={theirs.get(name)!r}, not {ours[name]!r}" for name in different)
        )
    _take_weights(start, model, other.get_weights())


def _take_weights(start: str, model: Taylorformer, weights: Sequence[np.ndarray]) -> None:
    model.build(input_shapes())
    ours, theirs = ([value.shape for value in values] for values in (model.get_weights(), weights))
    if ours != theirs:
        raise ValueError(
            f"`start` must have the {len(ours)} weights of the model to be trained. Received: "
            f"{start}, with {len(theirs)} of other shapes"
        )
    model.set_weights(weights)


def _record(
    settings: PriorSettings,
    model: Taylorformer,
    progress: TrainingProgress,
    folder: Path,
    start_hash: str | None,
) -> dict[str, Any]:
    start = {}
    if settings.start is not None and start_hash is not None:
        # Where the file lies says nothing elsewhere; what is in it does.
        start["start_sha256"] = start_hash
        settings = dataclasses.replace(settings, start=Path(settings.start).name)
    return {
        "command": settings.command,
        "settings": settings.get_config(),
        **start,
        "parameters": int(sum(np.prod(weight.shape) for weight in model.trainable_weights)),
        "iterations": progress.steps,
        "seconds": {"training": round(progress.seconds, 1)},
        "processor": devices(),
        "curve": [_point(row) for row in progress.history],
        "sha256": _file_hash(folder / MODEL_FILE),
    }


def _point(row: Mapping[str, float]) -> dict[str, Any]:
    return {
        "step": int(row["step"]),
        "training_nll": finite_or_none(row["teacher_forced_nll"]),
        "validation_nll": finite_or_none(row["validation_teacher_forced_nll"]),
        NAME: finite_or_none(row.get(NAME, float("nan"))),
    }
