"""Records of experiments: one JSON file a run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.versioned_files import FileKind, read_json, write_json
from taylorformer.training_and_evaluation.experiments.presets import MODEL_PRESETS, TASKS
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

_KIND = FileKind(format_number=1, writer="`run_experiment`")


def write_record(path: str | os.PathLike[str], content: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a record; a file that is there is replaced whole.

    Returns:
        The record: the content, `format` and `versions`.
    """
    return write_json(_KIND, path, content, indent=1, allow_nan=False)


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a record.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file that is no record, or one of another format.
    """
    record = read_json(_KIND, path, _checked)
    task, preset = record["settings"]["task"], record["settings"]["architecture"]
    if task not in TASKS or preset not in MODEL_PRESETS:
        raise ValueError(
            "a record must be of a task and a model of this version. Received: "
            f"{task!r} and {preset!r} in {path}, made by taylorformer "
            f"{record['versions'].get('taylorformer')}"
        )
    return record


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    settings = record["settings"]
    names = settings["task"], settings["architecture"]
    if not isinstance(record["scores"], Mapping) or not all(isinstance(n, str) for n in names):
        raise TypeError("scores or names of another type")
    return record


def read_records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Reads the records of a folder: those in folders of it that have the name of a task.

    Returns:
        The records, by task, column, model and seed.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file that is no record, or one of another format.
    """
    folder = Path(folder)
    paths = sorted((p for p in folder.rglob("*.json") if p.parent.name in TASKS), key=str)
    if not paths:
        raise FileNotFoundError(f"no record of an experiment is in {folder}")
    tasks, presets = list(TASKS), list(MODEL_PRESETS)

    def order(record: dict[str, Any]) -> tuple[int, str, int, int]:
        settings = record["settings"]
        task, preset = tasks.index(settings["task"]), presets.index(settings["architecture"])
        return task, settings.get("column", ""), preset, settings["seed"]

    # Sorting keeps the order of paths where all else is equal.
    return sorted((read_record(path) for path in paths), key=order)


def settings_of(record: Mapping[str, Any]) -> ExperimentSettings:
    """Makes the settings that a run was made with, which know its task and the model's preset."""
    return ExperimentSettings(**record["settings"])


def log_likelihood(record: Mapping[str, Any], test_set: str) -> dict[str, Any]:
    """Returns mean and standard error of the log-likelihood per target, of the kind in `score`."""
    return dict(record["scores"][test_set][f"{record['score']}_log_likelihood"])
