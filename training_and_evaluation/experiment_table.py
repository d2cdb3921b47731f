"""Tables of experiments, made from their JSON files."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taylorformer.training_and_evaluation.experiment_presets import NETWORKS, TASKS

_RECORD_FORMAT = 1
_COLUMNS = {
    "test set": "l",
    "network": "l",
    "score": "l",
    "log-likelihood": "r",
    "runs": "r",
    "iterations": "r",
    "parameters": "r",
    "training": "r",
    "ceiling": "r",
    "below it": "r",
    "paper": "r",
    "paper's iterations": "r",
}


def read_records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Reads all records of experiments in a folder and the folders in it.

    Returns:
        The records, by task, network and seed.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file that is no record, or one of another format.
    """
    found = []
    for path in sorted(Path(folder).rglob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            wrong = record["format"] != _RECORD_FORMAT
            settings, _ = record["settings"], record["scores"]
            key = [
                list(TASKS).index(settings["task"]),
                list(NETWORKS).index(settings["architecture"]),
                settings["seed"],
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"`folder` must hold records of experiments only. Received: {path} ({error!r})"
            ) from error
        if wrong:
            raise ValueError(
                f"records must have the format {_RECORD_FORMAT}. Received: {path} of the format "
                f"{record['format']}"
            )
        found.append((key, str(path), record))
    if not found:
        raise FileNotFoundError(f"no record of an experiment is in {folder}")
    return [record for _, _, record in sorted(found, key=lambda entry: entry[:2])]


def log_likelihood(record: Mapping[str, Any], test_set: str) -> float:
    """Gives the average log-likelihood per target, teacher-forced or joint, as `score` says."""
    return float(record["scores"][test_set][f"{record['score']}_log_likelihood"]["mean"])


def table_rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Makes one row of each test set, network and way to train, over the runs of all seeds.

    Runs that differ in more than their seed are never put together. With several runs the
    log-likelihood is followed by its standard deviation over them, with one by the standard error
    over the sequences.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        settings = {name: v for name, v in record["settings"].items() if name != "seed"}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    rows = []
    for runs in groups.values():
        first = runs[0]
        settings = first["settings"]
        task = TASKS[settings["task"]]
        name = settings["architecture"]
        if settings["target_permutations"] != task.target_permutations:
            name += f", {settings['target_permutations']} permutations"
        for test_set, scores in first["scores"].items():
            values = [log_likelihood(run, test_set) for run in runs]
            own = scores[f"{first['score']}_log_likelihood"]
            spread = np.std(values, ddof=1) if len(values) > 1 else own["standard_error"]
            seconds = np.mean([run["seconds"]["training"] for run in runs])
            row = {
                "test set": task.name if test_set == "test" else f"{task.name} {test_set}",
                "network": name,
                "score": first["score"].replace("_", "-"),
                "log-likelihood": f"{np.mean(values):.3f} ± {spread:.3f}",
                "runs": str(len(runs)),
                "iterations": f"{first['iterations']:,}",
                "parameters": f"{first['parameters']:,}",
                "training": f"{seconds / 60:.0f} min",
            }
            if "ceiling" in scores:
                below = [run["scores"][test_set]["below_ceiling"]["mean"] for run in runs]
                error = scores["below_ceiling"]["standard_error"]
                row["ceiling"] = f"{scores['ceiling']['mean']:.3f}"
                row["below it"] = f"{np.mean(below):.3f} ± {error:.3f}"
            if "paper_log_likelihood" in scores:
                paper = scores["paper_log_likelihood"]
                row["paper"] = f"{paper['mean']:.2f} ± {paper['standard_deviation']:.2f}"
                row["paper's iterations"] = f"{task.iterations:,}"
            rows.append(row)
    return rows


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Writes rows as a table in Markdown; columns that no row has are left out."""
    names = [name for name in _COLUMNS if any(name in row for row in rows)]
    width = {name: max(len(name), 3, *(len(row.get(name, "")) for row in rows)) for name in names}
    rule = ["-" * (width[n] - 1) + (":" if _COLUMNS[n] == "r" else "-") for n in names]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width[name]) if _COLUMNS[name] == "r" else cell.ljust(width[name])
            for name, cell in zip(names, cells, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    body = [line([row.get(name, "") for name in names]) for row in rows]
    return "\n".join([line(names), line(rule), *body]) + "\n"


def consistency_rows(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Says in one line what each run with a measured consistency gave."""
    lines = []
    for record in records:
        if "consistency" not in record:
            continue
        found, settings = record["consistency"], record["settings"]
        low, high = found["interval_95"]
        lines.append(
            f"- {settings['task']}, {settings['architecture']}, seed {settings['seed']}, "
            f"{settings['target_permutations']} permutations in training: standard deviation over "
            f"{found['orders']} orders {found['mean']:.3f}, 95 % of {found['sequences']} sequences "
            f"in [{low:.3f}, {high:.3f}]"
        )
    return lines
