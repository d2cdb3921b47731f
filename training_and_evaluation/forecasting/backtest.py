"""Rolling back-tests: a model and the naive lines, scored on windows whose truth is known."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_choice, check_integer
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED
from taylorformer.data_wrangler.tables.files import write_table
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.panel_windows import PanelWindows
from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_together
from taylorformer.training_and_evaluation.forecasting.naive import (
    last_difference,
    last_value,
    seasonal,
)
from taylorformer.training_and_evaluation.metrics import (
    INTERVALS,
    average_by_step,
    average_by_window,
    average_reliability,
    free_running_energy_score,
    free_running_point_scores,
    free_running_reliability,
    gaussian_nll,
    point_forecast_scores,
    teacher_forced_mse,
    teacher_forced_nll,
)
from taylorformer.training_and_evaluation.plot_style import save_figure
from taylorformer.training_and_evaluation.plots import plot_by_step, plot_reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from taylorformer.model.probabilistic_model import ProbabilisticModel

UNITS = ("user", "scaled")
NAIVE_LINES = ("last_value", "last_difference", "seasonal")

_TEACHER_FORCED = ("teacher_forced_nll", "teacher_forced_mse")
_JOINT = "joint_nll"
_FREE_RUNNING = (
    "free_running_mse",
    "free_running_mae",
    "free_running_crps",
    "free_running_energy_score",
    *(f"free_running_{what}_{percent}" for percent in INTERVALS for what in ("coverage", "width")),
)
_OF_WINDOWS = (_JOINT, "teacher_forced_nll", "free_running_energy_score")

# The scale of a naive line is measured on so many windows at once, to bound the memory.
_FIT_BATCH = 1024

_FILES_OF_SAMPLES = ("reliability.csv", "reliability.png", "by_step.png")
FILES = ("scores.csv", "by_step.csv", "by_window.csv", "backtest.json", *_FILES_OF_SAMPLES)
"""What `Backtest.save` writes."""

_Forecast = Callable[..., np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Backtest:
    """The scores of a model and of the naive lines beside it.

    `Forecaster.backtest` makes it. The name of a score begins with `teacher_forced_` or
    `free_running_`, see `metrics`; models that read no earlier targets have instead of
    teacher-forced scores a `joint_nll`, and the squared error of what `call` returns (`mse` of
    direct forecasters). Averages run over windows with at least one scored target, each
    counting the same. A score that a line does not have is NaN: naive lines have no intervals.

    Example:
        >>> table = pd.DataFrame({"level": [0.1, 0.5, 0.9], "share": [0.2, 0.5, 0.8]})
        >>> by_step = pd.DataFrame(
        ...     {"line": "taylorformer", "step": [1, 2], "free_running_crps": [0.1, 0.2]}
        ... )
        >>> scores = pd.DataFrame({"line": ["taylorformer"], "free_running_crps": [0.15]})
        >>> result = Backtest(
        ...     scores, by_step, scores, reliability=table, units="user", num_windows=1,
        ...     num_scored_points=2, num_samples=10, seed=0,
        ... )
        >>> result.plot_by_step().axes[0].get_ylabel()
        'free-running CRPS (units of the series)'

    Attributes:
        scores: one row a line, the model first: `line`, then a column a score.
        by_step: one row for each `line` and `step`, 1 to N_T. Scores that belong to a window as a
            whole (the joint density and the energy score) are not in it.
        by_window: one row for each `line` and window: `line`, `series` (its name), `first_target`
            (its stamp), `num_scored` (targets with a true value), then a column a score.
        reliability: of the model: `level` and `share`, the share of truths at or below the sample
            quantile of that level. No rows without samples.
        units: "user", those of the series, or "scaled", those that the model reads.
        num_windows: how many windows were scored.
        num_scored_points: how many of their targets have a true value.
        num_samples: S, samples of each window; 0: only teacher-forced scores.
        seed: of the samples.
        left_out: the names of series that could not be scored, with the reason.
        notes: the names of series that are scored and odd, with what is odd about them.
    """

    scores: pd.DataFrame
    by_step: pd.DataFrame
    by_window: pd.DataFrame
    reliability: pd.DataFrame
    units: str
    num_windows: int
    num_scored_points: int
    num_samples: int
    seed: int
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def plot_reliability(self) -> "Figure":
        """Draws the share of truths at or below each quantile of the model against its level.

        Raises:
            ValueError: no samples were drawn.
        """
        if not self.num_samples:
            raise ValueError(
                "`num_samples` must be at least 1 in a back-test with a reliability diagram. "
                "Received: num_samples=0"
            )
        return plot_reliability(
            self.reliability["level"],
            self.reliability["share"],
            title=f"Reliability of {self.scores['line'].iloc[0]}\n"
            f"{_counted(self.num_windows, 'window')}, {_counted(self.num_samples, 'sample')} each",
        )

    def plot_by_step(self, score: str = "free_running_crps") -> "Figure":
        """Draws a score of every line that has it against the step ahead.

        Raises:
            ValueError: no column of `by_step` has that name.
        """
        check_choice("score", score, list(self.by_step.columns[2:]))
        lines = {
            str(line): rows[score].to_numpy()
            for line, rows in self.by_step.groupby("line", sort=False)
            if rows[score].notna().any()
        }
        return plot_by_step(
            lines,
            title=f"By step ahead: {_counted(self.num_windows, 'window')}",
            y_label=_label(score, self.units),
            wanted=int(score.rsplit("_", 1)[1]) / 100 if "coverage" in score else None,
        )

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the tables and pictures, all of them or none.

        `scores.csv`, `by_step.csv`, `by_window.csv`, and `backtest.json` with all of them in one;
        from samples also `reliability.csv`, `reliability.png` and `by_step.png`. An empty cell, in
        JSON null, is a score that does not exist. `backtest.json` also names the series that were
        left out.

        Args:
            folder: made if it is not there. Other files in it stay.
            overwrite: replace files of these names, or remove those that this back-test lacks.

        Raises:
            FileExistsError: one of the files is there, and `overwrite` is not set.
            OSError: it cannot be written.
        """
        for name in FILES:
            refuse_existing(Path(folder) / name, overwrite, "folder")
        with replaced_together(folder) as unfinished:
            for name in ("scores", "by_step", "by_window"):
                write_table(getattr(self, name), unfinished / f"{name}.csv")
            text = json.dumps(self._report(), allow_nan=False)
            (unfinished / "backtest.json").write_text(text + "\n", encoding="utf-8")
            if self.num_samples:
                write_table(self.reliability, unfinished / "reliability.csv")
                save_figure(self.plot_reliability(), unfinished / "reliability.png")
                save_figure(self.plot_by_step(), unfinished / "by_step.png")
        if not self.num_samples:
            for name in _FILES_OF_SAMPLES:
                (Path(folder) / name).unlink(missing_ok=True)

    def _report(self) -> dict[str, Any]:
        counts = ("units", "num_windows", "num_scored_points", "num_samples", "seed")
        tables = ("scores", "by_step", "by_window", "reliability")
        return {
            **{name: getattr(self, name) for name in counts},
            "left_out": dict(self.left_out),
            "notes": dict(self.notes),
            **{name: _columns(getattr(self, name)) for name in tables if len(getattr(self, name))},
        }


def backtest(
    model: "ProbabilisticModel",
    windows: PanelWindows,
    starts: Any,
    *,
    fit_starts: Any = None,
    num_samples: int = 100,
    seed: int = 0,
    batch_size: int = 32,
    season: Any = None,
    units: str = "user",
    name: str = "taylorformer",
    progress: Callable[[int, int], object] | None = None,
) -> Backtest:
    """Scores a model on windows, teacher-forced and free-running, with naive lines beside it.

    Targets without a true value are drawn and not scored; a window without any true value is left
    out. The samples of a window are a function of `seed`, the name of its series and the time of
    its last context row, so no score depends on `batch_size`. Samples are kept for one batch only.

    The naive lines are `last_value`, `last_difference` and, where there is a season, `seasonal`.
    The teacher-forced scores are those of their one-step forecasts. For the `nll` these are the
    means of normal distributions with one scale for each column, the root mean square error on the
    targets of `fit_starts` in scaled units. The free-running scores are those of their forecasts
    from the origin, which are point forecasts: the CRPS is the absolute error and the energy score
    the Euclidean error. Where a series has no value before a target a naive line has no forecast;
    its averages run over the other targets.

    Args:
        model: any `ProbabilisticModel` of the D_x and D_y of `windows`.
        windows: the windows of one or several series.
        starts: `[B]`, first rows of the windows to score.
        fit_starts: first rows of training or validation windows, on which the scales of the naive
            lines are fitted. None: these lines get no `nll`.
        num_samples: S, joint samples a window. 0 leaves the free-running part out.
        seed: of the samples, a 64-bit integer.
        batch_size: windows at once. Memory grows with it.
        season: adds the line `naive.seasonal`, with a season of this length, or of one for each
            series. None: no such line.
        units: "user": of the series, densities too; or "scaled": those that the model reads, such
            as the standardised numbers of papers.
        name: of the model's line.
        progress: called after each batch with the number of windows that are done, and of all.

    Returns:
        The scores.

    Raises:
        TypeError, ValueError: an argument outside its range; no window with a scored target; or
            windows of `fit_starts` that share a target with `starts`.
    """
    num_samples = check_integer("num_samples", num_samples, 0)
    seed = check_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
    batch_size = check_integer("batch_size", batch_size, 1)
    check_choice("units", units, UNITS)
    if not isinstance(name, str) or name in NAIVE_LINES:
        raise ValueError(
            f"`name` must be a text other than {', '.join(NAIVE_LINES)}. Received: name={name!r}"
        )
    starts = _scored_starts(windows, starts, "starts")
    lines: dict[str, _Forecast] = {"last_value": last_value, "last_difference": last_difference}
    if season is not None:
        if not isinstance(season, Mapping):
            windows.panel.series[0].duration(season)
        lines["seasonal"] = functools.partial(seasonal, season=season)
    scales = {}
    if fit_starts is not None:
        fit_starts = _fit_starts(windows, fit_starts, starts)
        scales = {line: _one_step_scale(lines[line], windows, fit_starts) for line in lines}

    ruler = _Ruler(windows, units)
    tallies = {line: _Tally() for line in (name, *lines)}
    shares = []
    for first in range(0, len(starts), batch_size):
        chosen = starts[first : first + batch_size]
        truth, scored = ruler.truth(chosen), windows.scored(chosen)
        scores = _forced_scores(model, ruler, chosen, truth, scored)
        if num_samples:
            samples = model.sample(
                windows.forecast_inputs(chosen),
                num_samples=num_samples,
                seed=seed,
                sequence_keys=windows.sequence_keys(chosen),
            )
            samples = ruler.from_scaled(samples, chosen)
            scores |= free_running_point_scores(samples, truth, scored)
            scores["free_running_energy_score"] = free_running_energy_score(samples, truth, scored)
            reliability = {"share": free_running_reliability(samples, truth, scored)}
            shares.append(average_by_window(reliability)["share"])
        tallies[name].add(scores)
        for line, forecast in lines.items():
            scores = _naive_forced_scores(forecast, scales.get(line), ruler, chosen, truth, scored)
            if num_samples:
                scores |= _naive_free_running_scores(forecast, ruler, chosen, truth, scored)
            tallies[line].add(scores)
        if progress is not None:
            progress(first + len(chosen), len(starts))

    joint = () if model.score_names == _TEACHER_FORCED else model.score_names
    columns = [*joint, *_TEACHER_FORCED, *(_FREE_RUNNING if num_samples else ())]
    no_reliability = pd.DataFrame({"level": np.empty(0), "share": np.empty(0)})
    return Backtest(
        scores=_joined(tallies, columns, _Tally.total, pd.DataFrame(index=[0])),
        by_step=_joined(
            tallies,
            [column for column in columns if column not in _OF_WINDOWS],
            _Tally.by_step,
            pd.DataFrame({"step": np.arange(1, windows.spec.horizon + 1)}),
        ),
        by_window=_joined(tallies, columns, _Tally.by_window, _about_windows(windows, starts)),
        reliability=average_reliability(np.concatenate(shares)) if shares else no_reliability,
        units=units,
        num_windows=len(starts),
        num_scored_points=int(windows.scored(starts).sum()),
        num_samples=num_samples,
        seed=seed,
    )


class _Ruler:
    """Turns user units and scaled units into the units of the scores."""

    def __init__(self, windows: PanelWindows, units: str) -> None:
        self.windows = windows
        self._user = units == "user"

    def truth(self, starts: np.ndarray) -> np.ndarray:
        return self.from_user(self.windows.truth(starts), starts)

    def from_user(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return values if self._user else self.windows.scale_y(values, starts)

    def from_scaled(self, y: Any, starts: np.ndarray) -> np.ndarray:
        y = np.asarray(y, np.float64)
        return self.windows.inverse(y, starts) if self._user else y

    def mean_from_scaled(self, outputs: Mapping[str, Any], starts: np.ndarray) -> np.ndarray:
        """Returns the means of one-step distributions."""
        if not self._user:
            return np.asarray(outputs["mean"], np.float64)
        return self.windows.inverse_moments(outputs["mean"], outputs["scale"], starts)[0]

    def nll_from_scaled(self, nll: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return self.windows.inverse_nll(nll, starts) if self._user else nll


class _Tally:
    """Collects the scores of one line: each window's, and for each step their sum and count."""

    def __init__(self) -> None:
        self._windows: dict[str, list[np.ndarray]] = {}
        self._steps: dict[str, np.ndarray] = {}

    def add(self, scores: Mapping[str, np.ndarray]) -> None:
        for name, values in average_by_window(scores).items():
            self._windows.setdefault(name, []).append(values)
        for name, means in average_by_step(scores).items():
            count = (~np.isnan(scores[name])).sum(axis=0)
            sums = np.stack([np.where(count > 0, means, 0.0) * count, count])
            self._steps[name] = self._steps.get(name, 0.0) + sums

    def by_window(self, name: str) -> np.ndarray:
        return np.concatenate(self._windows[name]) if name in self._windows else np.full(1, np.nan)

    def by_step(self, name: str) -> np.ndarray:
        total, count = self._steps.get(name, np.zeros([2, 1]))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def total(self, name: str) -> np.ndarray:
        values = self.by_window(name)
        values = values[~np.isnan(values)]
        return np.full(1, values.mean() if len(values) else np.nan)


def _scored_starts(windows: PanelWindows, starts: Any, name: str) -> np.ndarray:
    """Returns the first rows of those windows that have a scored target."""
    kept = windows.scored(starts).any(axis=1)
    if not kept.any():
        raise ValueError(
            f"`{name}` must hold at least one window with a target whose true value is known. "
            f"Received: {kept.size} windows without any"
        )
    return np.asarray(starts)[kept]


def _fit_starts(windows: PanelWindows, fit_starts: Any, starts: np.ndarray) -> np.ndarray:
    fit_starts = _scored_starts(windows, fit_starts, "fit_starts")
    horizon = windows.spec.horizon
    # Targets of two windows overlap where their first rows are less than a horizon apart.
    ordered = np.unique(starts)
    first_after = np.searchsorted(ordered, fit_starts - horizon, side="right")
    candidates = ordered[np.minimum(first_after, len(ordered) - 1)]
    overlap = np.abs(candidates - fit_starts) < horizon
    if overlap.any():
        raise ValueError(
            "`fit_starts` must be windows that share no target with `starts`. Received: "
            f"{int(overlap.sum())} that do, the first one starts at row "
            f"{fit_starts[overlap.argmax()]}"
        )
    return fit_starts


def _one_step_scale(forecast: _Forecast, windows: PanelWindows, starts: np.ndarray) -> np.ndarray:
    """Measures the root mean square error in scaled units, `[D_y]`; NaN where there is none."""
    total: np.ndarray = np.zeros(windows.panel.num_columns)
    count = 0
    for first in range(0, len(starts), _FIT_BATCH):
        chosen = starts[first : first + _FIT_BATCH]
        values = windows.truth(chosen), forecast(windows, chosen, teacher_forced=True)
        if windows.support is None:
            error = (values[0] - values[1]) / windows.spread(chosen)[:, np.newaxis]
        else:
            truth, mean = (windows.scale_y(one, chosen) for one in values)
            error = truth - mean
        has_error = windows.scored(chosen) & np.isfinite(error).all(axis=-1)
        total += np.square(error[has_error]).sum(axis=0)
        count += int(has_error.sum())
    return np.sqrt(total / count) if count else np.full(total.shape, np.nan)


def _forced_scores(
    model: "ProbabilisticModel",
    ruler: _Ruler,
    starts: np.ndarray,
    truth: np.ndarray,
    scored: np.ndarray,
) -> dict[str, np.ndarray]:
    outputs = model.teacher_forced(*ruler.windows.batch(starts))
    nll = teacher_forced_nll(outputs["log_prob"], scored)
    mean = ruler.mean_from_scaled(outputs, starts)
    nll_name, mse_name = model.score_names
    return {
        nll_name: ruler.nll_from_scaled(nll, starts),
        mse_name: teacher_forced_mse(mean, truth, scored),
    }


def _naive_forced_scores(
    forecast: _Forecast,
    scale: np.ndarray | None,
    ruler: _Ruler,
    starts: np.ndarray,
    truth: np.ndarray,
    scored: np.ndarray,
) -> dict[str, np.ndarray]:
    windows = ruler.windows
    mean = forecast(windows, starts, teacher_forced=True)
    scored = scored & np.isfinite(mean).all(axis=-1)
    scores = {
        "teacher_forced_mse": teacher_forced_mse(ruler.from_user(mean, starts), truth, scored)
    }
    # A line that was never wrong has no scale, and no density.
    if scale is not None and (scale > 0).all():
        mean, truth = (windows.scale_y(values, starts) for values in (mean, windows.truth(starts)))
        if windows.support is None:
            nll = gaussian_nll(mean, scale, truth, scored)
        else:
            density = windows.normal_log_prob(mean, scale, truth, starts).sum(axis=-1)
            nll = np.where(scored, -density, np.nan)
        nll = average_by_window({"nll": nll})["nll"]
        scores["teacher_forced_nll"] = ruler.nll_from_scaled(nll, starts)
    return scores


def _naive_free_running_scores(
    forecast: _Forecast,
    ruler: _Ruler,
    starts: np.ndarray,
    truth: np.ndarray,
    scored: np.ndarray,
) -> dict[str, np.ndarray]:
    values = ruler.from_user(forecast(ruler.windows, starts), starts)
    scored = scored & np.isfinite(values).all(axis=-1)
    energy = free_running_energy_score(values[np.newaxis], truth, scored)
    return {
        **point_forecast_scores(values, truth, scored),
        "free_running_energy_score": energy,
    }


def _joined(
    tallies: Mapping[str, _Tally],
    columns: list[str],
    values: Callable[[_Tally, str], np.ndarray],
    index: pd.DataFrame,
) -> pd.DataFrame:
    """Makes one table of all lines: the line, the columns of `index`, and the scores."""
    table = pd.concat([index] * len(tallies), ignore_index=True)
    table.insert(0, "line", [line for line in tallies for _ in range(len(index))])
    for name in columns:
        parts = [np.broadcast_to(values(tally, name), len(index)) for tally in tallies.values()]
        table[name] = np.concatenate(parts)
    return table


def _about_windows(windows: PanelWindows, starts: np.ndarray) -> pd.DataFrame:
    panel, rows = windows.panel, windows.target_rows(starts)[:, 0]
    number = panel.series_of(rows)
    return pd.DataFrame(
        {
            "series": [panel.names[index] for index in number],
            "first_target": _stamps(panel, rows, number),
            "num_scored": windows.scored(starts).sum(axis=1),
        }
    )


def _stamps(panel: Panel, rows: np.ndarray, number: np.ndarray) -> pd.Series:
    """Returns the stamps of rows, which may be of several series."""
    parts = []
    for index in np.unique(number):
        mine = np.flatnonzero(number == index)
        parts.append(pd.Series(panel.stamps(rows[mine]), index=mine))
    if len({part.dtype for part in parts}) > 1:
        # Such as two time zones: each stamp keeps its type.
        parts = [part.astype("object") for part in parts]
    return pd.concat(parts).sort_index()


def _columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Turns a table into lists for JSON: NaN becomes None, and a stamp its text."""
    lists = {}
    for name, column in table.items():
        values = column.astype("object")
        if column.dtype.kind == "f":
            values = values.where(column.notna(), None)
        elif column.dtype.kind != "i":
            values = values.map(str)
        lists[str(name)] = values.tolist()
    return lists


def _label(score: str, units: str) -> str:
    """Names a score for people, with its units."""
    words = score.replace("teacher_forced_", "teacher-forced ").replace(
        "free_running_", "free-running "
    )
    for short in ("crps", "mse", "mae"):
        words = words.replace(short, short.upper())
    for percent in INTERVALS:
        for what in ("coverage", "width"):
            words = words.replace(f"{what}_{percent}", f"{what} of the {percent} % interval")
    if "coverage" in score:
        return words
    what = "squared units" if score.endswith("mse") else "units"
    return f"{words} ({what} of the series)" if units == "user" else f"{words} (scaled {what})"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
