"""Tables of experiments, made from their records."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taylorformer.training_and_evaluation.experiments.presets import find_preset
from taylorformer.training_and_evaluation.experiments.record import log_likelihood, settings_of
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings

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

_SERIES_COLUMNS = {
    "task": "l",
    "model": "l",
    "score": "l",
    "nll": "r",
    "paper's nll": "r",
    "mse": "r",
    "paper's mse": "r",
    "free mse": "r",
    "free mae": "r",
    "CRPS": "r",
    "energy": "r",
    "50 %": "r",
    "90 %": "r",
    "runs": "r",
    "iterations": "r",
    "paper's": "r",
    "parameters": "r",
    "training": "r",
}
_FREE_RUNNING = {
    "free mse": "free_running_mse",
    "free mae": "free_running_mae",
    "CRPS": "free_running_crps",
    "energy": "free_running_energy_score",
    "50 %": "free_running_coverage_50",
    "90 %": "free_running_coverage_90",
}
SERIES_LEGEND = (
    "Forecasts, in standardised units; lower is better. `nll` is the negative log density per "
    "target and `mse` the squared error of means, over all windows of the test part. They are "
    "teacher-forced (each target is predicted with the true values before it), or for models that "
    "read no earlier targets the joint density, and the error of forecasts of the whole horizon. "
    "The two kinds are not to be compared. The columns after them are of samples of the whole "
    "horizon, the model running free, on 128 windows: squared and absolute error of the mean of "
    "100 samples, CRPS, energy score, and the share of truths in the 50 % and 90 % intervals. Of "
    "naive lines, which are point forecasts, CRPS is the absolute and the energy score the "
    "Euclidean error, and their `nll` has a Gaussian scale fitted on validation windows. `paper's` "
    "figures are those of the model at the paper's size, after `paper's` iterations; those for "
    "electricity are of another client."
)
_SERIES = "series"
_TEACHER_FORCED = "teacher_forced"
_NAIVE_NLL, _NAIVE_MSE = "teacher_forced_nll", "teacher_forced_mse"
_NAIVE = {
    "last_value": "naive: last value",
    "last_difference": "naive: last value and difference",
    "seasonal": "naive: last season",
}
# Smaller numbers need more digits than three after the point.
_SMALLEST_WITH_THREE = 0.1


def table_rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Makes one row of each test set, model and way to train, over the runs of all seeds.

    Runs that differ in more than their seed are never put together. `LEGEND` explains the columns.
    """
    return [
        _row(runs, test_set)
        for runs in _same_but_for_seed(records)
        if settings_of(runs[0]).experiment_task.kind != _SERIES
        for test_set in runs[0]["scores"]
    ]


def series_rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Makes one row of each forecasting task and model, and one of each naive line.

    `SERIES_LEGEND` explains the columns.
    """
    rows, tasks = [], set()
    for runs in _same_but_for_seed(records):
        settings = settings_of(runs[0])
        if settings.experiment_task.kind != _SERIES:
            continue
        for test_set, scores in runs[0]["scores"].items():
            if settings.task_name not in tasks:
                rows += [
                    {"task": settings.task_name, "model": _NAIVE[line], "score": "teacher-forced"}
                    | _score_cells([means], _NAIVE_NLL, _NAIVE_MSE)
                    for line, means in scores["naive"].items()
                ]
                tasks.add(settings.task_name)
            rows.append(_series_row(runs, test_set))
    return rows


def _same_but_for_seed(records: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        settings = {name: v for name, v in record["settings"].items() if name != "seed"}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    return list(groups.values())


def _series_row(runs: Sequence[Mapping[str, Any]], test_set: str) -> dict[str, str]:
    first = runs[0]
    settings, scores = settings_of(first), first["scores"][test_set]
    way = first["score"]
    row = {
        "task": settings.task_name,
        "model": settings.model_name,
        "score": way.replace("_", "-"),
        "runs": str(len(runs)),
        "iterations": f"{first['iterations']:,}" if settings.preset.trained else "theirs",
        "paper's": f"{_paper_iterations(settings):,}",
        "parameters": f"{first['parameters']:,}",
        "training": _minutes(runs) if settings.preset.trained else "",
    }
    mse = _NAIVE_MSE if way == _TEACHER_FORCED else "mse"
    means = [run["scores"][test_set]["model"] for run in runs]
    row |= _score_cells(means, f"{way}_nll", mse)
    if "paper_log_likelihood" in scores:
        nll = scores["paper_log_likelihood"]
        row["paper's nll"] = f"{-nll['mean']:.2f} +- {nll['standard_deviation']:.2f}"
    if "paper_mse" in scores:
        paper_mse = scores["paper_mse"]
        row["paper's mse"] = f"{paper_mse['mean']:.2g} +- {paper_mse['standard_deviation']:.1g}"
    return row


def _paper_iterations(settings: ExperimentSettings) -> int:
    usual = find_preset(settings.preset.paper_name).training
    return int(usual.get("iterations", settings.experiment_task.iterations))


def _score_cells(means: Sequence[Mapping[str, Any]], nll: str, mse: str) -> dict[str, str]:
    """Writes the scores of runs, or of a naive line, by column."""
    cells = {}
    for column, name in {"nll": nll, "mse": mse, **_FREE_RUNNING}.items():
        scores = [scores.get(name) for scores in means]
        if all(score is not None and score["mean"] is not None for score in scores):
            values = [score["mean"] for score in scores if score is not None]
            cells[column] = _three_digits(float(np.mean(values)))
            if len(values) > 1:
                cells[column] += f" +- {np.std(values, ddof=1):.1g}"
    return cells


def _three_digits(value: float) -> str:
    return f"{value:.3f}" if abs(value) >= _SMALLEST_WITH_THREE else f"{value:.3g}"


def _learning_rate(settings: ExperimentSettings) -> str:
    """Writes the learning rate and what else is not usual in how weights are changed."""
    words = [f"{settings.learning_rate:g}", settings.schedule]
    if settings.optimizer != "adam":
        words.append(settings.optimizer)
    if settings.warm_up:
        words.append(f"warm-up {settings.warm_up:,}")
    config = settings.get_config()
    words += [
        f"{text} {config[name]:g}"
        for name, text in (("beta_2", "beta 2"), ("clip_norm", "norm"), ("average", "average"))
        if name in config
    ]
    return ", ".join(words)


def _minutes(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{np.mean([run['seconds']['training'] for run in runs]) / 60:.0f} min"


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
        "learning rate": _learning_rate(settings),
        "parameters": f"{first['parameters']:,}",
        "training": _minutes(runs),
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
    columns = _SERIES_COLUMNS if "task" in rows[0] else _COLUMNS
    names = [name for name in columns if any(name in row for row in rows)]
    width = {name: max(len(name), 3, *(len(row.get(name, "")) for row in rows)) for name in names}
    rule = ["-" * (width[n] - 1) + (":" if columns[n] == "r" else "-") for n in names]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width[name]) if columns[name] == "r" else cell.ljust(width[name])
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
