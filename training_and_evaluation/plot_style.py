"""How all pictures look, and how they are written: colours, figures, axes and files.

Each figure is an object that no global state of Matplotlib knows: no backend or style is changed,
and a figure is saved the same with and without a screen.
"""

from os import PathLike
from pathlib import Path

import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_whole

CONTEXT = "#3d4451"
TRUTH = "#d1495b"
MODEL = "#1f6f8b"
BAND_90 = "#cfe3ea"
BAND_50 = "#95c3d2"
LINES = (MODEL, "#d1495b", "#c98a1b", "#6b5b95", "#5c8a4a", "#3d4451")
GRID = "#e4e6ea"
SPINE = "#a9adb5"
TEXT = "#2b2f36"

DASHES = (0, (4, 3))
"""Of lines that help the eye and are no data."""
BAND_90_LEVELS = (0.05, 0.95)
BAND_50_LEVELS = (0.25, 0.75)
NUM_PATHS = 4
"""Samples that are drawn as lines: enough to see how they differ, few enough to follow each."""
MOST_MARKERS = 30
"""Lines of more points have no markers, which would hide them."""


def new_figure(width: float, height: float) -> Figure:
    """Makes an empty figure of a size in inches."""
    return Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")


def check_picture_path(path: str | PathLike[str], name: str = "path") -> None:
    """Checks that a picture can be written in the format that the ending of a file says.

    Args:
        path: of the file.
        name: of the argument, for messages.

    Raises:
        ValueError: the ending is none of a picture.
    """
    endings = sorted(f".{ending}" for ending in FigureCanvasBase.get_supported_filetypes())
    if Path(path).suffix.lower() not in endings:
        raise ValueError(f"`{name}` must end in one of {', '.join(endings)}. Received: {path}")


def save_figure(figure: Figure, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Writes a figure to a file, which appears when it is complete.

    Args:
        figure: of Matplotlib.
        path: of the file, whose ending says the format, such as .png, .pdf or .svg. Its folder is
            made.
        overwrite: replace a file that is there.

    Raises:
        FileExistsError: a file is there, and `overwrite` is not set.
        ValueError: another ending.
        OSError: the file cannot be written.
    """
    check_picture_path(path)
    refuse_existing(path, overwrite)
    with replaced_whole(path) as unfinished:
        figure.savefig(unfinished)


def frame_axes(axes: Axes) -> None:
    """Draws spines, grid and ticks as all pictures have them."""
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SPINE)
    axes.tick_params(colors=TEXT, labelsize=9.5)


def style_axes(
    axes: Axes, title: str, y_label: str, x_label: str, legend_columns: int | None = None
) -> None:
    """Titles and labels axes, draws them as all pictures have them, and adds a legend above.

    Args:
        axes: what is drawn already, with its labels.
        title: of the picture.
        y_label: of the vertical axis.
        x_label: of the horizontal axis.
        legend_columns: None: one for each label.
    """
    num_labels = len(axes.get_legend_handles_labels()[1])
    columns = num_labels if legend_columns is None else min(legend_columns, num_labels)
    legend_rows = -(-num_labels // columns) if columns else 1
    axes.set_title(title, loc="left", fontsize=12.5, color=TEXT, pad=8 + 18 * legend_rows)
    axes.set_ylabel(y_label, color=TEXT)
    axes.set_xlabel(x_label, color=TEXT)
    axes.margins(x=0.01)
    frame_axes(axes)
    axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(7))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=9.5,
        labelcolor=TEXT,
        handlelength=1.6,
        columnspacing=1.4,
        borderaxespad=0.2,
    )
