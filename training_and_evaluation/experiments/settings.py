"""What an experiment trains, and for how long."""

import dataclasses
import os
import shlex
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.training_and_evaluation.experiments.presets import find_network, find_task
from taylorformer.training_and_evaluation.forecasting.presets import SCHEDULES


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
        target_permutations: random orders of the targets for each sequence in training; 0 for
            networks that do not read earlier targets.
        validate_every: training steps between two looks at the validation sequences; must divide
            `iterations`, or be larger.
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
        network = find_network(self.architecture)
        check_choice("schedule", self.schedule, SCHEDULES)
        checked: dict[str, Any] = {
            "learning_rate": check_number("learning_rate", self.learning_rate, above=0),
            "seed": check_integer("seed", self.seed, 0, 2**31 - 1),
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
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.target_permutations and not network.autoregressive:
            raise ValueError(
                f"`target_permutations` must be 0 for {self.architecture}, which does not read "
                f"earlier targets. Received: target_permutations={self.target_permutations}"
            )
        if self.iterations % self.epoch_steps:
            raise ValueError(
                "`iterations` must be a multiple of `validate_every`, or smaller. "
                f"Received: iterations={self.iterations}, validate_every={self.validate_every}"
            )

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
        values |= {name: getattr(find_task(task), name) for name in names if name not in values}
        if not find_network(architecture).autoregressive:
            values["target_permutations"] = 0
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
        usual = find_task(self.task).target_permutations
        label = self.architecture
        if find_network(label).autoregressive and self.target_permutations != usual:
            label += f"-permutations-{self.target_permutations}"
        return f"{label}-seed-{self.seed}"

    def record_path(self, output: str | os.PathLike[str]) -> Path:
        """Where the record of the run is, in a folder."""
        return Path(output) / self.task / f"{self.label}.json"

    def checkpoint_path(self, output: str | os.PathLike[str]) -> Path:
        """Where the checkpoint of the run is, in a folder beside the record."""
        return self.record_path(output).with_suffix("") / "training.npz"

    @property
    def epoch_steps(self) -> int:
        """Training steps between two looks: never more than there are."""
        return min(self.validate_every, self.iterations)
