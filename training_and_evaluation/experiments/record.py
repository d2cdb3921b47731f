"""Records of experiments: one JSON file a run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.files import FileKind, read_json, write_json
from taylorformer.training_and_evaluation.experiments.presets import NETWORKS, TASKS

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
    settings = record["settings"]
    if settings["task"] not in TASKS or settings["architecture"] not in NETWORKS:
        raise ValueError(
            "a record must be of a task and a model of this version. Received: "
            f"{settings['task']!r} and {settings['architecture']!r} in {path}, made by "
            f"taylorformer {record['versions'].get('taylorformer')}"
        )
    return record


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    settings = record["settings"]
    names = settings["task"], settings["architecture"]
    if not isinstance(record["scores"], Mapping) or not all(isinstance(n, str) for n in names):
        raise TypeError("scores or names of another type")
    return record


def read_records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Reads the records of a folder: those in folders of it that are called like a task.

    Returns:
        The records, by task, network and seed.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file that is no record, or one of another format.
    """
    folder = Path(folder)
    paths = sorted(path for path in folder.rglob("*.json") if path.parent.name in TASKS)
    if not paths:
        raise FileNotFoundError(f"no record of an experiment is in {folder}")
    found = [(path, read_record(path)) for path in paths]

    def place(entry: tuple[Path, dict[str, Any]]) -> tuple[int, int, int, str]:
        settings = entry[1]["settings"]
        task, network = list(TASKS).index(settings["task"]), settings["architecture"]
        return task, list(NETWORKS).index(network), settings["seed"], str(entry[0])

    return [record for _, record in sorted(found, key=place)]


def network_name(record: Mapping[str, Any]) -> str:
    """Says which network a run trained, and how if that is not the usual way."""
    settings = record["settings"]
    name = str(settings["architecture"])
    permutations = settings["target_permutations"]
    if (
        NETWORKS[name].autoregressive
        and permutations != TASKS[settings["task"]].target_permutations
    ):
        name += f", {permutations} permutations"
    return name


def log_likelihood(record: Mapping[str, Any], test_set: str) -> dict[str, Any]:
    """Gives mean and standard error of the log-likelihood per target, as `score` says."""
    return dict(record["scores"][test_set][f"{record['score']}_log_likelihood"])
