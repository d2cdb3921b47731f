"""Tables of experiments, made from their records."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taylorformer.training_and_evaluation.experiments.record import log_likelihood, settings_of

_COLUMNS = {
    "test set": "l",
    "model": "l",
    "score": "l",
    "log-likelihood": "r",
    "marginal": "r",
    "exact": "r",
    "ceiling": "r",
    "below it": "r",
    "paper": "r",
    "runs": "r",
    "sequences": "r",
    "iterations": "r",
    "paper's": "r",
    "learning rate": "r",
    "parameters": "r",
    "training": "r",
}
LEGEND = (
    "In nats per target, higher is better. +- is the standard deviation over runs, with one run "
    "the standard error over test sequences. `teacher-forced` and `joint` are the exact and the "
    "importance-weighted joint log-likelihood; `marginal` is the average log density of each "
    "target alone, which is what the code behind the paper's figures of NP and ANP scores. `exact` "
    "is the score of the true distribution, and `ceiling` the best score of a model whose scales "
    "are at least the number in brackets; `below it` is the paired difference to the ceiling. "
    "`paper` is the paper's figure, after `paper's` iterations."
)


def table_rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Makes one row of each test set, model and way to train, over the runs of all seeds.

    Runs that differ in more than their seed are never put together. `LEGEND` explains the columns.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        settings = {name: v for name, v in record["settings"].items() if name != "seed"}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    return [_row(runs, test_set) for runs in groups.values() for test_set in runs[0]["scores"]]


def _row(runs: Sequence[Mapping[str, Any]], test_set: str) -> dict[str, str]:
    first = runs[0]
    settings, scores = settings_of(first), first["scores"][test_set]
    task = settings.experiment_task
    row = {
        "test set": task.name if test_set == "test" else f"{task.name} {test_set}",
        "model": settings.model_name,
        "score": first["score"].replace("_", "-"),
        "log-likelihood": mean_and_spread([log_likelihood(run, test_set) for run in runs]),
        "runs": str(len(runs)),
        "sequences": f"{scores['sequences']:,}",
        "iterations": f"{first['iterations']:,}",
        "learning rate": f"{settings.learning_rate:g}, {settings.schedule}",
        "parameters": f"{first['parameters']:,}",
        "training": f"{np.mean([run['seconds']['training'] for run in runs]) / 60:.0f} min",
    }

    def of_all(name: str) -> list[Mapping[str, Any]]:
        return [run["scores"][test_set][name] for run in runs]

    if "marginal_log_likelihood" in scores:
        row["marginal"] = mean_and_spread(of_all("marginal_log_likelihood"), spread=False)
    if "ceiling" in scores:
        row["exact"] = mean_and_spread(of_all("exact_log_likelihood")[:1], spread=False)
        row["ceiling"] = f"{scores['ceiling']['mean']:.3f} ({scores['ceiling']['min_scale']:g})"
        row["below it"] = mean_and_spread(of_all("below_ceiling"))
    if "paper_log_likelihood" in scores:
        paper = scores["paper_log_likelihood"]
        row["paper"] = f"{paper['mean']:.2f} +- {paper['standard_deviation']:.2f}"
        row["paper's"] = f"{task.iterations:,}"
    return row


def mean_and_spread(scores: Sequence[Mapping[str, Any]], spread: bool = True) -> str:
    """Writes the mean over runs and its spread.

    Args:
        scores: `mean` and `standard_error` of each run, None where there is no such number.
        spread: write the standard deviation over runs too, with one run its standard error.
    """
    means = [np.nan if score["mean"] is None else score["mean"] for score in scores]
    error = np.std(means, ddof=1) if len(means) > 1 else scores[0]["standard_error"]
    text = f"{np.mean(means):.3f}"
    return f"{text} +- {error:.3f}" if spread and error is not None else text


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
    """Writes one line for each run whose consistency was measured."""
    lines = []
    for record in records:
        if "consistency" not in record:
            continue
        consistency, settings = record["consistency"], settings_of(record)
        low, high = consistency["interval_95"]
        lines.append(
            f"- {settings.task}, {settings.model_name}, seed {settings.seed}: standard "
            f"deviation over {consistency['orders']} orders of the targets "
            f"{consistency['mean']:.3f}, 95 % of {consistency['sequences']} sequences in "
            f"[{low:.3f}, {high:.3f}]"
        )
    return lines
