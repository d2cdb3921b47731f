"""Pictures of forecasts.

They are made as `Figure` objects of their own: no global backend or style is touched, and they are
saved the same with and without a screen.
"""

from typing import Any, Literal

import matplotlib.dates
import matplotlib.ticker
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_CONTEXT = "#3d4451"
_TRUTH = "#d1495b"
_MODEL = "#1f6f8b"
_BAND_90 = "#cfe3ea"
_BAND_50 = "#95c3d2"
_GRID = "#e4e6ea"
_TEXT = "#2b2f36"


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
    num_paths: int = 4,
) -> Figure:
    """Draws one forecast of one column: context, truth, median, 50 % and 90 % bands, some paths.

    Args:
        context_stamps: `[N_C]`, dates, periods or numbers.
        context_values: `[N_C]`, in user units. NaN leaves a gap.
        target_stamps: `[N_T]`, of the same kind.
        samples: `[S, N_T]`, in user units. The bands lie between their quantiles.
        truth: `[N_T]`, or None where it is not known. NaN leaves a gap.
        title: of the picture.
        y_label: what the values are, with their unit.
        time_label: what the stamps are; dates need none.
        num_paths: how many samples to draw as lines, the first ones.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        ValueError: arrays that do not fit one another.
    """
    context_values = np.asarray(context_values, np.float64)
    samples = np.asarray(samples, np.float64)
    before, after = _positions(context_stamps), _positions(target_stamps)
    known = None if truth is None else np.asarray(truth, np.float64)
    if (
        samples.ndim != 2
        or not samples.shape[0]
        or samples.shape[1:] != after.shape
        or context_values.shape != before.shape
        or (known is not None and known.shape != after.shape)
    ):
        raise ValueError(
            "context, truth and targets must be [N_C], [N_T] and [N_T], `samples` [S, N_T]. "
            f"Received: {list(context_values.shape)}, "
            f"{None if known is None else list(known.shape)}, {list(after.shape)}, "
            f"{list(samples.shape)}"
        )
    low_90, low_50, median, high_50, high_90 = np.quantile(
        samples, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0
    )
    figure = Figure(figsize=(10.5, 5.2), dpi=150, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.plot(before, context_values, color=_CONTEXT, linewidth=1.5, label="context", zorder=4)
    # A band of one target has no width, so it is drawn as a bar.
    step: Literal["mid"] | None = "mid" if len(after) == 1 else None
    axes.fill_between(
        after, low_90, high_90, step=step, color=_BAND_90, linewidth=0, label="90 % interval"
    )
    axes.fill_between(
        after, low_50, high_50, step=step, color=_BAND_50, linewidth=0, label="50 % interval"
    )
    for number, path in enumerate(samples[: max(num_paths, 0)]):
        axes.plot(
            after,
            path,
            color=_MODEL,
            linewidth=0.7,
            alpha=0.55,
            label="sample paths" if number == 0 else None,
            zorder=2,
        )
    axes.plot(after, median, color=_MODEL, linewidth=2.0, label="median", zorder=3)
    if known is not None:
        axes.plot(
            after,
            known,
            color=_TRUTH,
            linewidth=1.4,
            marker="o",
            markersize=2.6,
            label="truth",
            zorder=5,
        )
    if len(before):
        axes.axvline(before[-1], color=_TEXT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    _style(axes, title, y_label, time_label)
    if np.issubdtype(after.dtype, np.datetime64):
        locator = matplotlib.dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))
    return figure


def _style(axes: Axes, title: str, y_label: str, time_label: str) -> None:
    axes.set_title(title, loc="left", fontsize=12.5, color=_TEXT, pad=26)
    axes.set_ylabel(y_label, color=_TEXT)
    axes.set_xlabel(time_label, color=_TEXT)
    axes.margins(x=0.01)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#a9adb5")
    axes.tick_params(colors=_TEXT, labelsize=9.5)
    axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(7))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=len(axes.get_legend_handles_labels()[1]),
        frameon=False,
        fontsize=9.5,
        labelcolor=_TEXT,
        handlelength=1.6,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def _positions(stamps: Any) -> np.ndarray:
    """Turns stamps into what Matplotlib reads as dates or numbers; time zones show local time."""
    index = pd.Index(stamps)
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        index = index.tz_localize(None)
    return index.to_numpy()
