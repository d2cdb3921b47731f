"""Records of experiments: one JSON file a run."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taylorformer.data_wrangler.files import replaced_whole
from taylorformer.training_and_evaluation.experiments.presets import NETWORKS, TASKS

RECORD_FORMAT = 1


def write_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Writes a record; a file that is there is replaced whole."""
    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    with replaced_whole(path) as file:
        file.write(text.encode())


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a record.

    Raises:
        ValueError: a file that is no record, or one of another format.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        made_by = record["versions"].get("taylorformer")
        found = record["format"]
        settings = record["settings"]
        known = settings["task"] in TASKS and settings["architecture"] in NETWORKS
        complete = known and isinstance(record["scores"], Mapping)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"a record must be the JSON file of a run of an experiment. Received: {path} "
            f"({error!r})"
        ) from error
    if found != RECORD_FORMAT or not complete:
        raise ValueError(
            f"a record must have the format {RECORD_FORMAT} and a task and network of this "
            f"version. Received: {path} of the format {found}, made by taylorformer {made_by}"
        )
    return dict(record)


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
