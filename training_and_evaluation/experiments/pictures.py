"""Pictures of experiments: `plot_...` draws a figure, `write_...` the files beside the records."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from matplotlib.figure import Figure

from taylorformer.data_wrangler.tables.window_set import WindowSet
from taylorformer.data_wrangler.tasks.image_points import picture
from taylorformer.data_wrangler.tasks.images import whole_image_tasks
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.training_and_evaluation.experiments.consistency import Consistency
from taylorformer.training_and_evaluation.experiments.data import TaskData, load_task
from taylorformer.training_and_evaluation.experiments.record import read_records, settings_of
from taylorformer.training_and_evaluation.experiments.run import (
    MODEL_FILE,
    SCORES_FILE,
    ExperimentRun,
)
from taylorformer.training_and_evaluation.plot_style import (
    BAND_90,
    BAND_90_LEVELS,
    CONTEXT,
    LINES,
    MODEL,
    MOST_MARKERS,
    NUM_PATHS,
    TEXT,
    TRUTH,
    frame_axes,
    new_figure,
    save_figure,
    style_axes,
)

# y of a black pixel; y of a white one is 1 more.
_DARKEST = -0.5
# Columns of a picture of completed images.
_NUM_IMAGES = 6
# A quarter of the pixels lets one guess the image, and leaves room for different guesses.
_SHARE_SEEN = 0.25
# Above this quantile the first steps of one run would flatten the curves of all others.
_CURVE_QUANTILE = 0.95
# Free space above and below the curves: a share of their range, or nats where they are flat.
_MARGIN = 0.06
_FLAT_MARGIN = 0.1
# What a curve is drawn over: the name in its rows, its label, and how much of it is one unit.
_CURVE_UNITS = {"step": ("training step", 1), "seconds": ("minutes of training", 60)}
# Rounding alone must not fill a histogram, so its scale reaches at least so far, in nats.
_SMALLEST_DEVIATION = 1e-3
# A few sequences far out must not squeeze a histogram into its first bars.
_HISTOGRAM_QUANTILE = 0.995
_HISTOGRAM_BARS = 40
# Of lines, where there are more than colours.
_STYLES = ("-", "--", ":")
# Inches: width and height of one panel, and the height of a title.
_HISTOGRAM_SIZE = (4.6, 3.6)
_CURVES_SIZE = (9.0, 5.4)
_SAMPLES_SIZE = (4.0, 2.4)
_IMAGE_SIZE = (1.4, 1.4)
_TITLE = 0.4


def plot_validation_curves(records: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """Draws the validation nll of runs over training steps, and over minutes where they are known.

    Example:
        >>> import dataclasses
        >>> from taylorformer.training_and_evaluation import ExperimentSettings
        >>> settings = ExperimentSettings.of("gp-rbf", iterations=2, validate_every=1)
        >>> record = {
        ...     "settings": dataclasses.asdict(settings),
        ...     "score": "teacher_forced",
        ...     "parameters": 92318,
        ...     "curve": [
        ...         {"step": 1, "validation_nll": 1.5, "seconds": 6.0},
        ...         {"step": 2, "validation_nll": 1.1, "seconds": 12.0},
        ...     ],
        ... }
        >>> figure = plot_validation_curves([record])
        >>> [axes.get_xlabel() for axes in figure.axes]
        ['training step', 'minutes of training']

    Args:
        records: as `run_experiment` writes them. Each model has one look, and a line for each of
            its runs. Minutes are drawn if all points of all curves have them.
        title: of the picture.
    """
    drawn = ["step"]
    if records and all(map(_has_seconds, records)):
        drawn.append("seconds")
    width, height = _CURVES_SIZE
    figure = new_figure(width * len(drawn), height)
    panels = figure.subplots(1, len(drawn), squeeze=False, sharey=True)[0]
    labels = [_label(record) for record in records]
    looks = {
        name: {"color": LINES[i % len(LINES)], "linestyle": _STYLES[i // len(LINES) % len(_STYLES)]}
        for i, name in enumerate(dict.fromkeys(labels))
    }
    all_scores = [score for record in records for score in _curve(record, "step")[1]]
    for axes, name in zip(panels, drawn, strict=True):
        x_label, unit = _CURVE_UNITS[name]
        labelled = set()
        for record, label in zip(records, labels, strict=True):
            at, nll = _curve(record, name)
            axes.plot(
                np.array(at) / unit,
                nll,
                **looks[label],
                linewidth=1.6,
                marker="o" if len(nll) <= MOST_MARKERS else None,
                markersize=3.0,
                label=None if label in labelled else label,
            )
            labelled.add(label)
        first = axes is panels[0]
        style_axes(
            axes,
            title if first else "",
            "validation nll, nats per target" if first else "",
            x_label,
            legend_columns=2,
        )
        if not first:
            axes.get_legend().remove()
            # There is room for it above the panel beside it, too.
            panels[0].get_legend().set_in_layout(False)
    if all_scores:
        low, high = min(all_scores), float(np.quantile(all_scores, _CURVE_QUANTILE))
        margin = _MARGIN * (high - low) or _FLAT_MARGIN
        panels[0].set_ylim(low - margin, high + margin)
    return figure


def _curve(record: Mapping[str, Any], name: str) -> tuple[list[float], list[float]]:
    """Returns where a curve is drawn, in steps or seconds, and its validation nll."""
    rows = [row for row in record["curve"] if row["validation_nll"] is not None and name in row]
    return [row[name] for row in rows], [row["validation_nll"] for row in rows]


def _has_seconds(record: Mapping[str, Any]) -> bool:
    """Tells whether all points of a curve have them."""
    return len(_curve(record, "seconds")[0]) == len(_curve(record, "step")[0])


def _label(record: Mapping[str, Any]) -> str:
    score = record["score"].replace("_", "-")
    return f"{settings_of(record).model_name}: {score}, {record['parameters']:,} parameters"


def _in_lines(name: str) -> str:
    """Puts the parts of a name below one another: beside a panel there is little room."""
    return name.replace(", ", "\n")


def plot_consistency(deviations: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Draws histograms of the standard deviation over orders of the targets.

    Example:
        >>> figure = plot_consistency({"tnp": np.array([0.1, 0.3]), "np": np.zeros(2)})
        >>> [axes.get_title() for axes in figure.axes]
        ['tnp: mean 0.2', 'np: mean 0']

    Args:
        deviations: `Consistency.deviations` by name; each gets a panel on the same scale.
        title: of the picture.
    """
    width, height = _HISTOGRAM_SIZE
    figure = new_figure(width * len(deviations), height)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(1, len(deviations), squeeze=False, sharex=True)
    tops = [float(np.quantile(values, _HISTOGRAM_QUANTILE)) for values in deviations.values()]
    top = max([_SMALLEST_DEVIATION, *tops])
    bins = np.linspace(0, top, _HISTOGRAM_BARS + 1)
    for axes, (name, values) in zip(panels.flat, deviations.items(), strict=True):
        axes.hist(np.clip(values, 0, top), bins=bins, color=MODEL)
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
    num_points: int = 100,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draws joint samples in 1D: a row for each model, a column for each sequence.

    Args:
        models: trained models by name.
        tasks: sequences with D_x = D_y = 1; the first ones are drawn.
        num_sequences: how many; no more than there are.
        num_samples: behind the 90 % band; the first few are drawn as lines.
        num_points: points on an even grid at which samples are drawn, so that each is one curve.
        seed: of the samples.
        title: of the picture.
    """
    num_sequences = min(num_sequences, len(tasks))
    rows = np.arange(num_sequences)
    inputs, y_target = tasks.batch(rows)
    low, high = float(tasks.x.min()), float(tasks.x.max())
    grid = np.linspace(low, high, num_points, dtype="float32")
    on_grid = {name: values for name, values in inputs.items() if name != "target_mask"}
    on_grid["x_target"] = np.tile(grid[np.newaxis, :, np.newaxis], [num_sequences, 1, 1])
    width, height = _SAMPLES_SIZE
    figure = new_figure(width * num_sequences, height * len(models) + _TITLE)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(len(models), num_sequences, squeeze=False, sharex=True, sharey="col")
    for row, (name, model) in enumerate(models.items()):
        # Nearest first: steps away from the points that are there are short, as in training.
        samples = model.sample(on_grid, num_samples, seed, rows, order="nearest").numpy()[..., 0]
        for column in rows:
            axes = panels[row, column]
            bounds = np.quantile(samples[:, column], BAND_90_LEVELS, axis=0)
            axes.fill_between(grid, *bounds, color=BAND_90, linewidth=0, label="90 % interval")
            for number, path in enumerate(samples[:NUM_PATHS, column]):
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
                axes.set_ylabel(_in_lines(name), color=TEXT)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def plot_forecasts(
    forecasts: Mapping[str, tuple[ProbabilisticModel, WindowSet]],
    *,
    num_windows: int = 3,
    num_samples: int = 50,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draws sample paths of forecasts: a row for each model, a column for each window.

    Args:
        forecasts: trained models by name, each with windows it can read, of one column, at the
            same rows for all of them.
        num_windows: how many, evenly spaced.
        num_samples: behind the 90 % band; the first few are drawn as lines.
        seed: of the samples.
        title: of the picture.
    """
    width, height = _SAMPLES_SIZE
    shown = {
        name: (model, held.spread_out(num_windows)) for name, (model, held) in forecasts.items()
    }
    num_columns = min(len(held) for _, held in shown.values())
    figure = new_figure(width * num_columns, height * len(shown) + _TITLE)
    figure.suptitle(title, color=TEXT)
    panels = figure.subplots(len(shown), num_columns, squeeze=False, sharex=True, sharey="col")
    for row, (name, (model, held)) in enumerate(shown.items()):
        windows, starts = held.windows, held.starts
        inputs, y_target = windows.batch(starts)
        samples = model.sample(
            windows.forecast_inputs(starts), num_samples, seed, windows.sequence_keys(starts)
        ).numpy()[..., 0]
        before = np.arange(-inputs["y_context"].shape[1], 0) + 1
        after = np.arange(y_target.shape[1]) + 1
        for column in range(num_columns):
            axes = panels[row, column]
            bounds = np.quantile(samples[:, column], BAND_90_LEVELS, axis=0)
            axes.fill_between(after, *bounds, color=BAND_90, linewidth=0, label="90 % interval")
            for number, path in enumerate(samples[:NUM_PATHS, column]):
                label = "samples" if number == 0 else None
                axes.plot(after, path, color=MODEL, linewidth=0.8, label=label)
            context = inputs["y_context"][column, :, 0]
            axes.plot(before, context, color=CONTEXT, linewidth=1.2, label="context")
            axes.plot(after, y_target[column, :, 0], color=TRUTH, linewidth=1.2, label="truth")
            frame_axes(axes)
            if column == 0:
                axes.set_ylabel(f"{_in_lines(name)}\nstandardised", color=TEXT)
            if row == len(shown) - 1:
                axes.set_xlabel("step ahead", color=TEXT)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def plot_completions(
    model: ProbabilisticModel,
    tasks: TaskSet,
    *,
    num_images: int = _NUM_IMAGES,
    num_samples: int = 20,
    seed: int = 0,
    title: str = "",
) -> Figure:
    """Draws completed images: the truth, what was seen, a sample, mean and standard deviation.

    Args:
        model: a trained model.
        tasks: made by `whole_image_tasks`, so that every pixel that was not seen is a target.
        num_images: how many, the first ones; no more than there are.
        num_samples: behind mean and standard deviation.
        seed: of the samples.
        title: of the picture.
    """
    shape = tasks.about["image_shape"]
    num_images = min(num_images, len(tasks))
    rows = np.arange(num_images)
    inputs, y_target = tasks.batch(rows)
    samples = model.sample(inputs, num_samples, seed, rows, order="nearest").numpy()
    seen = picture(inputs["x_context"], inputs["y_context"], shape, mask=inputs["context_mask"])

    def whole(values: np.ndarray, at_seen_pixels: np.ndarray = seen) -> np.ndarray:
        targets = picture(inputs["x_target"], values, shape, mask=inputs["target_mask"])
        return np.where(np.isnan(targets), at_seen_pixels, targets)

    panels_of = {
        "truth": whole(y_target) - _DARKEST,
        "seen": seen - _DARKEST,
        "one sample": whole(samples[0]) - _DARKEST,
        "mean": whole(samples.mean(axis=0)) - _DARKEST,
        # Pixels span 1, so no standard deviation is above 0.5.
        "2 x deviation": whole(samples.std(axis=0), np.zeros_like(seen)) * 2,
    }
    width, height = _IMAGE_SIZE
    figure = new_figure(width * num_images + _TITLE, height * len(panels_of) + _TITLE)
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
                axes.set_ylabel(_in_lines(name))
    return figure


def write_pictures(run: ExperimentRun, path: str | os.PathLike[str]) -> list[Path]:
    """Writes pictures of one run: joint samples, or completed images.

    Args:
        run: as `run_experiment` returns it.
        path: of its record.

    Returns:
        The files.
    """
    path = Path(path)
    task = run.data.task
    figures = {}
    settings = settings_of(run.record)
    name = settings.model_name
    if task.kind == "gaussian_process":
        tasks = run.data.test_tasks
        title = f"{task.name}: joint samples"
        figures["samples"] = plot_samples({name: run.model}, tasks, title=title)
    elif task.kind == "series":
        held = run.data.test_windows
        title = f"{settings.task_name}: sample paths"
        figures["samples"] = plot_forecasts({name: (run.model, held)}, title=title)
    else:
        for name, images in run.data.images.items():
            height, width, _ = images.image_shape
            tasks = whole_image_tasks(
                images.take(min(len(images), _NUM_IMAGES)),
                num_context=max(1, int(height * width * _SHARE_SEEN)),
            )
            figures["images" if name == "test" else f"images-{name}"] = plot_completions(
                run.model, tasks, title=f"{task.name}, {path.stem}"
            )
    return [
        _write(figure, path.with_name(f"{path.stem}-{name}.png"))
        for name, figure in figures.items()
    ]


def write_comparison(
    output: str | os.PathLike[str],
    data: TaskData,
    data_dir: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Writes pictures of all runs of one task: validation curves, consistency, samples in 1D.

    Args:
        output: the folder of all tasks.
        data: the sequences of the task.
        data_dir: where they came from, for models that read other features of a series.

    Returns:
        The files.
    """
    task = data.task
    folder = Path(output) / task.name
    records = [
        record
        for record in read_records(folder)
        if record["curve"] and settings_of(record).experiment_task.columns == task.columns
    ]
    if not records:
        return []
    first = settings_of(records[0])
    title, ending = first.task_name, f"{first.column_ending}.png"
    curves = plot_validation_curves(records, f"{title}: validation")
    written = [_write(curves, folder / f"validation-curves{ending}")]
    deviations: dict[str, np.ndarray] = {}
    model_paths: dict[str, Path] = {}
    for record in records:
        settings = settings_of(record)
        run_folder, name = settings.run_folder(output), settings.model_name
        if "consistency" in record and (run_folder / SCORES_FILE).exists():
            with np.load(run_folder / SCORES_FILE) as arrays:
                consistency = Consistency(arrays["consistency"])
            deviations[f"{name}, seed {settings.seed}"] = consistency.deviations
        if (run_folder / MODEL_FILE).exists():
            model_paths.setdefault(name, run_folder / MODEL_FILE)
    if deviations:
        figure = plot_consistency(deviations, f"{task.name}: orders of the targets")
        written.append(_write(figure, folder / "consistency.png"))
    if task.kind == "gaussian_process" and len(model_paths) > 1:
        models = {name: keras.models.load_model(path) for name, path in model_paths.items()}
        tasks = data.test_tasks
        figure = plot_samples(models, tasks, title=f"{task.name}: joint samples")
        written.append(_write(figure, folder / "samples.png"))
    if task.kind == "series" and len(model_paths) > 1:
        figure = plot_forecasts(
            _forecasts(model_paths, data, data_dir), title=f"{title}: sample paths"
        )
        written.append(_write(figure, folder / f"samples{ending}"))
    return written


def _forecasts(
    model_paths: Mapping[str, Path], data: TaskData, data_dir: str | os.PathLike[str] | None
) -> dict[str, tuple[ProbabilisticModel, WindowSet]]:
    """Loads models, and for each the windows with the features that it reads."""
    task, by_dims = data.task, {data.x_dims: data}
    forecasts = {}
    for name, model_path in model_paths.items():
        model = keras.models.load_model(model_path)
        if model.x_dims not in by_dims:
            other = load_task(task, 1, task.test_sequences, data_dir, model.x_dims > task.x_dims)
            by_dims[other.x_dims] = other
        forecasts[name] = model, by_dims[model.x_dims].test_windows
    return forecasts


def _write(figure: Figure, path: Path) -> Path:
    save_figure(figure, path, overwrite=True)
    return path
