"""Pictures of experiments: validation curves, consistency, samples in 1D, completed images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from taylorformer.data_wrangler.tasks.image_points import picture
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.experiments.record import network_name
from taylorformer.training_and_evaluation.plot_style import (
    BAND_90,
    CONTEXT,
    LINES,
    MODEL,
    TEXT,
    TRUTH,
    frame_axes,
    new_figure,
    style_axes,
)


def plot_validation_curves(records: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """Draws the validation nll of runs over training steps.

    Args:
        records: of `run_experiment`. Each network has one colour; its runs are lines of it.
        title: of the picture.
    """
    figure = new_figure(9.0, 5.4)
    axes = figure.add_subplot()
    names = list(dict.fromkeys(_label(record) for record in records))
    found: list[float] = []
    drawn = set()
    for record in records:
        name = _label(record)
        curve = [row for row in record["curve"] if row["validation_nll"] is not None]
        nll = [row["validation_nll"] for row in curve]
        axes.plot(
            [row["step"] for row in curve],
            nll,
            color=LINES[names.index(name) % len(LINES)],
            linewidth=1.6,
            marker="o" if len(nll) <= 30 else None,
            markersize=3.0,
            label=None if name in drawn else name,
        )
        drawn.add(name)
        found += nll
    if found:
        # The first steps of one run must not flatten the rest.
        low, high = min(found), float(np.quantile(found, 0.95))
        margin = 0.06 * (high - low) or 0.1
        axes.set_ylim(low - margin, high + margin)
    style_axes(axes, title, "validation nll, nats per target", "training step", legend_columns=2)
    return figure


def _label(record: Mapping[str, Any]) -> str:
    score = record["score"].replace("_", "-")
    return f"{network_name(record)}: {score}, {record['parameters']:,} parameters"


def plot_consistency(deviations: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Draws histograms of the standard deviation over orders of the targets.

    Args:
        deviations: `Consistency.deviations` by name; each gets a panel on the same scale.
        title: of the picture.
    """
    figure = new_figure(4.6 * len(deviations), 3.6)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(1, len(deviations), squeeze=False, sharex=True)
    # Rounding alone must not fill a picture.
    top = max([1e-3, *(float(np.quantile(values, 0.995)) for values in deviations.values())])
    for axes, (name, values) in zip(panels.flat, deviations.items(), strict=True):
        axes.hist(np.clip(values, 0, top), bins=np.linspace(0, top, 41), color=MODEL)
        axes.axvline(float(np.mean(values)), color=TRUTH, linewidth=1.2)
        axes.set_title(f"{name}: mean {np.mean(values):.2g}", fontsize=10.5, color=TEXT)
        axes.set_xlabel("standard deviation over orders, nats per target", color=TEXT)
        axes.set_ylabel("sequences", color=TEXT)
        frame_axes(axes)
    return figure


def plot_samples(
    models: Mapping[str, ProbabilisticModel],
    tasks: TaskSet,
    *,
    num_sequences: int = 3,
    num_samples: int = 50,
    num_places: int = 100,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draws joint samples in 1D: a row for each model, a column for each sequence.

    Args:
        models: trained models by name.
        tasks: sequences with D_x = D_y = 1; the first ones are drawn.
        num_sequences: how many; no more than there are.
        num_samples: behind the 90 % band; the first few are drawn as lines.
        num_places: places on an even grid to draw at, where the samples are one curve.
        seed: of the samples.
        title: of the picture.
    """
    num_sequences = min(num_sequences, len(tasks))
    rows = np.arange(num_sequences)
    inputs, y_target = tasks.batch(rows)
    low, high = float(tasks.x.min()), float(tasks.x.max())
    grid = np.linspace(low, high, num_places, dtype="float32")
    places = np.tile(grid[np.newaxis, :, np.newaxis], [num_sequences, 1, 1])
    wanted = {**{k: v for k, v in inputs.items() if k != "target_mask"}, "x_target": places}
    figure = new_figure(4.0 * num_sequences, 2.4 * len(models) + 0.4)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(len(models), num_sequences, squeeze=False, sharex=True, sharey="col")
    for row, (name, model) in enumerate(models.items()):
        # Nearest first: steps into the unknown are short, as they were in training.
        drawn = model.sample(wanted, num_samples, seed, rows, order="nearest").numpy()[..., 0]
        for column in rows:
            axes = panels[row, column]
            bounds = np.quantile(drawn[:, column], [0.05, 0.95], axis=0)
            axes.fill_between(grid, *bounds, color=BAND_90, linewidth=0, label="90 % interval")
            for number, path in enumerate(drawn[:4, column]):
                label = "samples" if number == 0 else None
                axes.plot(grid, path, color=MODEL, linewidth=0.8, label=label)
            for part, color, size, label in (
                ("context", CONTEXT, 3.5, "context"),
                ("target", TRUTH, 2.0, "truth"),
            ):
                mask = inputs[f"{part}_mask"][column]
                y = y_target if part == "target" else inputs["y_context"]
                x = inputs[f"x_{part}"]
                axes.plot(x[column, mask, 0], y[column, mask, 0], "o", color=color, markersize=size)
                axes.lines[-1].set_label(label)
            frame_axes(axes)
            if column == 0:
                axes.set_ylabel(name, color=TEXT)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def plot_completions(
    model: ProbabilisticModel,
    tasks: TaskSet,
    *,
    num_images: int = 6,
    num_samples: int = 20,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draws completed images: the truth, what was seen, a sample, mean and standard deviation.

    Args:
        model: a trained model.
        tasks: what `whole_image_tasks` gives, so that every other pixel is a target.
        num_images: how many, the first ones; no more than there are.
        num_samples: behind mean and standard deviation.
        seed: of the samples.
        title: of the picture.
    """
    shape = tasks.about["image_shape"]
    num_images = min(num_images, len(tasks))
    rows = np.arange(num_images)
    inputs, y_target = tasks.batch(rows)
    drawn = model.sample(inputs, num_samples, seed, rows, order="nearest").numpy()
    context = inputs["x_context"], inputs["y_context"], inputs["context_mask"]
    mask = inputs["target_mask"]
    seen = picture(context[0], context[1], shape, mask=context[2])

    def whole(values: np.ndarray, where_seen: float | None = None) -> np.ndarray:
        found = picture(inputs["x_target"], values, shape, mask=mask)
        known = seen if where_seen is None else np.full_like(seen, where_seen)
        return np.where(np.isnan(found), known, found)

    panels_of = {
        "truth": whole(y_target) + 0.5,
        "seen": seen + 0.5,
        "one sample": whole(drawn[0]) + 0.5,
        "mean": whole(drawn.mean(axis=0)) + 0.5,
        "2 x deviation": whole(drawn.std(axis=0), 0.0) * 2,
    }
    figure = new_figure(1.4 * num_images + 0.4, 1.4 * len(panels_of) + 0.4)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(len(panels_of), num_images, squeeze=False)
    for row, (name, images) in enumerate(panels_of.items()):
        for column in rows:
            axes = panels[row, column]
            image = np.clip(images[column], 0, 1)
            image = image[..., 0] if image.shape[-1] == 1 else image
            axes.imshow(np.ma.masked_invalid(image), cmap="gray", vmin=0, vmax=1)
            axes.set_facecolor(BAND_90)
            axes.set_xticks([])
            axes.set_yticks([])
            if column == 0:
                axes.set_ylabel(name)
    return figure
