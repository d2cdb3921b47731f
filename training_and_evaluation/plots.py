"""Pictures of forecasts and of scores: one band, one reliability diagram, one score by step.

Pictures of experiments are in `experiments.pictures`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import matplotlib.dates
import matplotlib.ticker
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from taylorformer.training_and_evaluation.levels import check_levels
from taylorformer.training_and_evaluation.plot_style import (
    BAND_50,
    BAND_50_LEVELS,
    BAND_90,
    BAND_90_LEVELS,
    CONTEXT,
    DASHES,
    LINES,
    MODEL,
    MOST_MARKERS,
    NUM_PATHS,
    TEXT,
    TRUTH,
    new_figure,
    style_axes,
)

# The naive line that rises above so many times the others is cut off.
_RUNAWAY = 3.0
# The picture then reaches above the others by so much.
_HEADROOM = 1.5


def plot_forecast(
    context_stamps: Any,
    context_values: Any,
    target_stamps: Any,
    samples: Any,
    truth: Any = None,
    *,
    title: str = "",
    y_label: str = "",
    time_label: str = "",
    num_paths: int = NUM_PATHS,
) -> Figure:
    """Draws one forecast of one column: context, truth, median, 50 % and 90 % bands, some paths.

    Example:
        >>> samples = np.random.default_rng(0).normal(size=[20, 3])
        >>> figure = plot_forecast([0, 1], [0.5, 0.2], [2, 3, 4], samples, title="demand")
        >>> figure.axes[0].get_title(loc="left")
        'demand'

    Args:
        context_stamps: `[N_C]`, dates, periods or numbers.
        context_values: `[N_C]`, in user units. NaN leaves a gap.
        target_stamps: `[N_T]`, of the same kind.
        samples: `[S, N_T]`, in user units. The bands lie between their quantiles.
        truth: `[N_T]`, or None if it is not there. NaN leaves a gap.
        title: of the picture.
        y_label: what the values are, with their unit.
        time_label: what the stamps are; dates need none.
        num_paths: how many samples to draw as lines, the first ones.

    Returns:
        The figure; `save_figure` writes it.

    Raises:
        ValueError: arrays that do not fit one another.
    """
    context_values = np.asarray(context_values, np.float64)
    samples = np.asarray(samples, np.float64)
    before, after = _positions(context_stamps), _positions(target_stamps)
    truth = None if truth is None else np.asarray(truth, np.float64)
    if (
        samples.ndim != 2
        or not samples.shape[0]
        or samples.shape[1:] != after.shape
        or context_values.shape != before.shape
        or (truth is not None and truth.shape != after.shape)
    ):
        raise ValueError(
            "context, truth and targets must be [N_C], [N_T] and [N_T], `samples` [S, N_T]. "
            f"Received: {list(context_values.shape)}, "
            f"{None if truth is None else list(truth.shape)}, {list(after.shape)}, "
            f"{list(samples.shape)}"
        )
    low_90, high_90, low_50, high_50, median = np.quantile(
        samples, [*BAND_90_LEVELS, *BAND_50_LEVELS, 0.5], axis=0
    )
    figure = new_figure(10.5, 5.2)
    axes = figure.add_subplot()
    axes.plot(before, context_values, color=CONTEXT, linewidth=1.5, label="context", zorder=4)
    # A band of one target has no width, so it is drawn as a bar.
    step: Literal["mid"] | None = "mid" if len(after) == 1 else None
    axes.fill_between(
        after, low_90, high_90, step=step, color=BAND_90, linewidth=0, label="90 % interval"
    )
    axes.fill_between(
        after, low_50, high_50, step=step, color=BAND_50, linewidth=0, label="50 % interval"
    )
    for number, path in enumerate(samples[: max(num_paths, 0)]):
        axes.plot(
            after,
            path,
            color=MODEL,
            linewidth=0.7,
            alpha=0.55,
            label="sample paths" if number == 0 else None,
            zorder=2,
        )
    axes.plot(after, median, color=MODEL, linewidth=2.0, label="median", zorder=3)
    if truth is not None:
        axes.plot(
            after,
            truth,
            color=TRUTH,
            linewidth=1.4,
            marker="o",
            markersize=2.6,
            label="truth",
            zorder=5,
        )
    if len(before):
        axes.axvline(before[-1], color=TEXT, linewidth=0.8, linestyle=DASHES, zorder=1)
    style_axes(axes, title, y_label, time_label)
    if np.issubdtype(after.dtype, np.datetime64):
        locator = matplotlib.dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))
    return figure


def plot_reliability(
    levels: Any,
    shares: Any,
    *,
    title: str = "",
) -> Figure:
    """Draws a reliability diagram: the share of truths at or below each quantile.

    Where the quantiles are right the points lie on the diagonal. Forecasts that are too wide lie
    below it on the left and above it on the right; those that are too narrow the other way round.

    Example:
        >>> figure = plot_reliability([0.1, 0.5, 0.9], [0.2, 0.5, 0.8])
        >>> figure.axes[0].get_xlabel()
        'level of the quantile'

    Args:
        levels: `[Q]`, the nominal levels of the quantiles, from 0 to 1.
        shares: `[Q]`, the share of truths at or below each of them.
        title: of the picture.

    Returns:
        The figure; `save_figure` writes it.

    Raises:
        TypeError, ValueError: levels that are no numbers from 0 to 1, or another number of shares.
    """
    levels, shares = check_levels("levels", levels), np.asarray(shares, np.float64)
    shares = np.atleast_1d(shares)
    if shares.shape != levels.shape:
        raise ValueError(
            "`levels` and `shares` must be [Q], Q at least 1. "
            f"Received: {list(levels.shape)} and {list(shares.shape)}"
        )
    figure = new_figure(6.2, 6.2)
    axes = figure.add_subplot()
    axes.plot(
        [0, 1], [0, 1], color=TEXT, linewidth=0.9, linestyle=DASHES, label="perfect", zorder=2
    )
    axes.fill_between(levels, levels, shares, color=BAND_90, linewidth=0, zorder=1)
    axes.plot(
        levels,
        shares,
        color=MODEL,
        linewidth=1.8,
        marker="o",
        markersize=4.5,
        label="observed",
        zorder=3,
    )
    style_axes(axes, title, "share of truths at or below the quantile", "level of the quantile")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(matplotlib.ticker.MultipleLocator(0.2))
    return figure


def plot_by_step(
    lines: Mapping[str, Any],
    *,
    title: str = "",
    y_label: str = "",
    wanted: float | None = None,
) -> Figure:
    """Draws a score against the step ahead, one line for each forecaster, the model first.

    A naive line far above all others is cut off, so that the others can be told apart; the legend
    says so.

    Example:
        >>> scores = {"taylorformer": [0.1, 0.2], "last_value": [0.3, 0.4]}
        >>> [text.get_text() for text in plot_by_step(scores).axes[0].get_legend().get_texts()]
        ['taylorformer', 'last value']

    Args:
        lines: maps names to scores `[N_T]`. NaN leaves a gap.
        title: of the picture.
        y_label: what the score is, with its unit.
        wanted: a value to mark, such as 0.9 for the coverage of a 90 % interval, or None.

    Returns:
        The figure; `save_figure` writes it.

    Raises:
        ValueError: no lines, or lines of different lengths.
    """
    scores = {name: np.asarray(values, np.float64) for name, values in lines.items()}
    shapes = {values.shape for values in scores.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(
            "`lines` must hold at least one line, each [N_T]. Received: "
            f"{', '.join(str(list(shape)) for shape in sorted(shapes)) or 'none'}"
        )
    figure = new_figure(9.0, 4.8)
    axes = figure.add_subplot()
    runaway, top = _runaway(scores)
    for number, (name, values) in enumerate(scores.items()):
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            color=LINES[number % len(LINES)],
            linewidth=2.2 if number == 0 else 1.4,
            # A line of few steps is hard to see without markers, and one step not at all.
            marker="o" if len(values) <= MOST_MARKERS else None,
            markersize=4.0,
            label=name.replace("_", " ") + (", off the scale" if name == runaway else ""),
            zorder=4 if number == 0 else 3,
        )
    if wanted is not None:
        axes.axhline(wanted, color=TEXT, linewidth=0.9, linestyle=DASHES, label="wanted", zorder=2)
    style_axes(axes, title, y_label, "steps ahead of the forecast origin")
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(10, integer=True))
    if not any((values < 0).any() for values in scores.values()):
        axes.set_ylim(0, None if runaway is None else _HEADROOM * top)
    return figure


def _runaway(scores: Mapping[str, np.ndarray]) -> tuple[str | None, float]:
    """Returns the name of a naive line far above all others, or None, and the others' maximum."""
    highest = {name: np.nanmax(values, initial=-np.inf) for name, values in scores.items()}
    last, *others = sorted(highest, key=lambda name: highest[name], reverse=True)
    top = float(highest[others[0]]) if len(others) > 1 else np.inf
    is_runaway = 0 < _RUNAWAY * top < highest[last] and last != next(iter(scores))
    return (last if is_runaway else None), top


def _positions(stamps: Any) -> np.ndarray:
    """Turns stamps into what Matplotlib reads as dates or numbers; time zones show local time."""
    index = pd.Index(stamps)
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        index = index.tz_localize(None)
    return index.to_numpy()
