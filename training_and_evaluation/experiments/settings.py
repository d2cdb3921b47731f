"""The settings of an experiment: which task, which model, and how it is trained and scored."""

import dataclasses
import functools
import json
import os
import shlex
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.training_and_evaluation.experiments.presets import (
    MODEL_PRESETS,
    TASKS,
    ExperimentTask,
    NetworkPreset,
    find_preset,
    find_task,
)
from taylorformer.training_and_evaluation.experiments.recipes import PAPER, find_recipe
from taylorformer.training_and_evaluation.training.plan import LARGEST_TRAINING_SEED, TrainingPlan

_DEFAULTS: dict[str, Any] = {"schedule": "constant", "validate_every": 500}


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _differs(field: "dataclasses.Field[Any]", value: Any) -> bool:
    """Tells whether a setting that has a default is something else."""
    return bool(value != (field.default if field.default is not dataclasses.MISSING else {}))


@dataclasses.dataclass(frozen=True)
class ExperimentSettings:
    """Which model is trained on which task, and how it is trained and scored.

    `of` fills in what the paper does. Names are looked up once for each settings object, whose
    `experiment_task` and `preset` are handed on to whatever needs them.

    Example:
        >>> settings = ExperimentSettings.of("gp-rbf", "tnp", seed=1, iterations=1000)
        >>> settings.batch_size, settings.plan.num_epochs, settings.preset.model
        (32, 2, 'TransformerNeuralProcess')
        >>> settings.record_path("runs").as_posix()
        'runs/gp-rbf/tnp-seed-1.json'

    Attributes:
        task: the name of a task, see `experiments.presets.TASKS`.
        architecture: the name of a preset of a model, see `experiments.presets.MODEL_PRESETS`.
        seed: of the model, of training data and of everything drawn in training.
        iterations: training steps.
        batch_size: B in training.
        learning_rate: of Adam, at the start.
        schedule: "constant", or "cosine": the learning rate falls to 0 over all iterations.
        target_permutations: random orders of the targets for each sequence in training; 0 for
            models that do not read earlier targets.
        validate_every: training steps from one evaluation on the validation sequences to the next;
            must divide `iterations`, or be larger.
        validation_sequences: how many.
        test_sequences: how many, in each test set.
        column: of a series, the name of the column instead of that of the task, for tasks of one
            column. None: that of the task.
        warm_up: first training steps, in which the learning rate rises.
        optimizer: "adam", or "muon", see `TrainingPlan`.
        beta_2: of Adam.
        clip_norm: the largest global norm of a gradient. None: 10.
        average: the decay per step of the running average of the weights that is validated and
            kept. None: no average.
        variant: what a run is called that differs from the usual one of its preset, so that both
            can be in one folder.
        changes: arguments of the model that replace those of the preset.

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
    column: str | None = None
    warm_up: int = 0
    optimizer: str = "adam"
    beta_2: float = 0.999
    clip_norm: float | None = None
    average: float | None = None
    variant: str = ""
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "seed": check_integer("seed", self.seed, 0, LARGEST_TRAINING_SEED)
        }
        for name, minimum in (
            ("target_permutations", 0),
            ("iterations", 1),
            ("batch_size", 1),
            ("validate_every", 1),
            ("validation_sequences", 1),
            ("test_sequences", 1),
        ):
            checked[name] = check_integer(name, getattr(self, name), minimum)
        plan = self.plan
        checked |= {
            "learning_rate": plan.learning_rate,
            "warm_up": plan.warm_up_steps,
            "optimizer": plan.optimizer,
            "beta_2": plan.beta_2,
            "clip_norm": plan.clip_norm,
            "average": plan.average,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        task, _ = find_task(self.task), self.preset  # which raise where a name is unknown
        kind = task.kind
        if self.column is not None and (kind != "series" or task.columns):
            able = [name for name, one in TASKS.items() if one.kind == "series" and not one.columns]
            raise ValueError(
                f"`column` is for tasks of one column of a table: {', '.join(able)}. "
                f"Received: task={self.task!r}, column={self.column!r}"
            )
        if kind not in self.preset.kinds:
            able = [name for name, preset in MODEL_PRESETS.items() if kind in preset.kinds]
            raise ValueError(
                f"`architecture` must be one of {', '.join(able)} for {self.task}. "
                f"Received: {self.architecture}"
            )
        if self.target_permutations and not self.preset.autoregressive:
            raise ValueError(
                f"`target_permutations` must be 0 for {self.architecture}, which does not read "
                f"earlier targets. Received: target_permutations={self.target_permutations}"
            )
        if self.iterations % self.plan.epoch_steps:
            raise ValueError(
                "`iterations` must be a multiple of `validate_every`, or smaller. "
                f"Received: iterations={self.iterations}, validate_every={self.validate_every}"
            )

    @classmethod
    def of(
        cls,
        task: str,
        architecture: str = "taylorformer",
        seed: int = 0,
        recipe: str | None = None,
        **given: Any,
    ) -> "ExperimentSettings":
        """Makes the settings of a task.

        Args:
            task: its name.
            architecture: the name of a preset of a model.
            seed: of the model and of training.
            recipe: the name of a recipe of training, see `experiments.recipes.RECIPES`; one that
                is not the paper's is also the `variant`. None: that of the paper.
            given: values of the other attributes; those left out, or None, are those of the
                recipe, or else the paper's.
        """
        experiment_task, preset = find_task(task), find_preset(architecture)
        values = dict(_DEFAULTS)
        names = [field.name for field in dataclasses.fields(cls)[3:] if _is_required(field)]
        of_task = [name for name in names if name not in values]
        values |= {name: getattr(experiment_task, name) for name in of_task}
        values |= preset.training
        if not preset.autoregressive:
            values["target_permutations"] = 0
        given = {name: value for name, value in given.items() if value is not None}
        chosen = find_recipe(PAPER if recipe is None else recipe, experiment_task.kind)
        if chosen.name != PAPER:
            values["variant"] = chosen.name
        iterations = (values | given)["iterations"]
        values |= chosen.settings(architecture, check_integer("iterations", iterations, 1))
        return cls(task, architecture, seed, **(values | given))

    @functools.cached_property
    def experiment_task(self) -> ExperimentTask:
        """The task that `task` names, of the column that `column` names."""
        task = find_task(self.task)
        return task if self.column is None else dataclasses.replace(task, columns=(self.column,))

    @functools.cached_property
    def preset(self) -> NetworkPreset:
        """The preset of the model that `architecture` names."""
        return find_preset(self.architecture)

    @property
    def plan(self) -> TrainingPlan:
        """How long the model is trained, and with what optimizer."""
        return TrainingPlan(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            max_steps=self.iterations,
            steps_per_epoch=self.validate_every,
            warm_up_steps=self.warm_up,
            optimizer=self.optimizer,
            beta_2=self.beta_2,
            clip_norm=self.clip_norm,
            average=self.average,
        )

    @property
    def command(self) -> str:
        """The command that does it."""
        values = self.get_config()
        words = ["taylorformer", "experiment", values.pop("task")]
        changes = values.pop("changes", {})
        for name, value in values.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        for name, value in changes.items():
            words += ["--set", f"{name}={json.dumps(value)}"]
        return shlex.join(words)

    def get_config(self) -> dict[str, Any]:
        """Returns the settings, ready for JSON; those that have a default only where they differ.

        So records and checkpoints stay valid when a setting is added.
        """
        values = dataclasses.asdict(self)
        for field in dataclasses.fields(self):
            if not _is_required(field) and not _differs(field, values[field.name]):
                del values[field.name]
        return values

    @property
    def _has_other_permutations(self) -> bool:
        """Whether training shuffles targets more or less often than is usual for the task."""
        usual = self.experiment_task.target_permutations
        return self.preset.autoregressive and self.target_permutations != usual

    @property
    def model_name(self) -> str:
        """Names the model for people, and what is not usual of it and its training."""
        words = [self.architecture, self.variant]
        words += [f"{name} {json.dumps(value)}" for name, value in self.changes.items()]
        if self._has_other_permutations:
            words.append(f"{self.target_permutations} permutations")
        return ", ".join(word for word in words if word)

    @property
    def task_name(self) -> str:
        """Names the task for people, and the column if that is not the usual one."""
        return self.task if self.column is None else f"{self.task}, column {self.column}"

    @property
    def column_ending(self) -> str:
        """What names of files say of the column; empty for that of the task."""
        return "" if self.column is None else f"-column-{urllib.parse.quote(self.column, safe='')}"

    @property
    def label(self) -> str:
        """The name of the files of the run, without their endings."""
        words = [self.architecture, self.variant]
        words += [f"{name}-{json.dumps(value)}" for name, value in self.changes.items()]
        name = "-".join(urllib.parse.quote(word, safe="") for word in words if word)
        name += self.column_ending
        if self._has_other_permutations:
            name += f"-permutations-{self.target_permutations}"
        return f"{name}-seed-{self.seed}"

    def record_path(self, output: str | os.PathLike[str]) -> Path:
        """Returns the path of the record of the run, in a folder of all runs."""
        return Path(output) / self.task / f"{self.label}.json"

    def run_folder(self, output: str | os.PathLike[str]) -> Path:
        """Returns the folder of the other files of the run, which lies beside the record."""
        return self.record_path(output).with_suffix("")

    def checkpoint_path(self, output: str | os.PathLike[str]) -> Path:
        """Returns the path of the checkpoint of the run."""
        return self.run_folder(output) / "training.npz"
