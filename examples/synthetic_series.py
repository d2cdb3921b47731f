"""Draws series of every family that the pretrained model was trained on, as one picture.

python examples/synthetic_series.py docs/synthetic_series.png
"""

import sys

from matplotlib.figure import Figure

from taylorformer.data_wrangler import draw_family
from taylorformer.data_wrangler.tasks.series_families import FAMILIES
from taylorformer.training_and_evaluation import save_figure

COLUMNS, NUM_STEPS, PERIOD, SEED = 6, 120, 12, 1


def main(path: str) -> None:
    """Writes the picture."""
    figure = Figure(figsize=(10, 7.5), dpi=90, layout="constrained")
    axes = figure.subplots(len(FAMILIES), COLUMNS)
    for row, (name, (_, share)) in zip(axes, FAMILIES.items(), strict=True):
        for axis, series in zip(
            row, draw_family(name, COLUMNS, NUM_STEPS, PERIOD, SEED), strict=True
        ):
            axis.plot(series, linewidth=0.8)
            axis.set_xticks([])
            axis.set_yticks([])
        row[0].set_ylabel(
            f"{name.replace('_', ' ')}\n{100 * share:.0f} %",
            rotation=0,
            horizontalalignment="right",
            verticalalignment="center",
            fontsize=8,
        )
    figure.suptitle(f"Synthetic series of {NUM_STEPS} steps with a season of {PERIOD}")
    save_figure(figure, path, overwrite=True)


if __name__ == "__main__":
    main(sys.argv[1])
