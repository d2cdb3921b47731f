"""Presets of the paper's experiments, with the scores that the paper reports.

They follow the section "Experiments" of the paper, and its appendix "Experimental Details". The
paper leaves the sizes of the Taylorformer open for neural-process tasks; here they are those for
ETT, without dropout.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from taylorformer.data_wrangler.checks import check_choice
from taylorformer.training_and_evaluation.experiments.paper_forecasts import paper_figures
from taylorformer.training_and_evaluation.model_kinds import (
    PAPER_BATCH_SIZE,
    PAPER_DIRECT_LEARNING_RATE,
    PAPER_DIRECT_STEPS,
    PAPER_LEARNING_RATE,
    PAPER_SIZES,
    PAPER_STEPS,
    SMALL_DIRECT_SIZES,
)

_RANGE = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class ExperimentTask:
    """A family of sequences, and how the paper trains on it.

    Example:
        >>> task = find_task("gp-matern")
        >>> task.kind, task.source, task.batch_size, task.iterations
        ('gaussian_process', 'matern', 32, 250000)

    Attributes:
        name: of the task, also on the command line.
        kind: "gaussian_process", "images" or "series".
        source: the kernel, where images come from, or the name of a series.
        x_dims: D_x.
        y_dims: D_y.
        batch_size: B in training.
        learning_rate: of Adam.
        iterations: training steps.
        repeats: trainings from different seeds, in the paper.
        target_permutations: random orders of the targets for each sequence in training, for models
            that read earlier targets.
        num_context: least and largest N_C, None where the source decides.
        num_target: least and largest N_T, None where it follows from N_C or the source decides.
        test_sets: names of the test sets, with the classes of images they hold.
        validation_sequences: held-out sequences that choose the weights to keep; of images at most
            one each.
        test_sequences: held-out sequences that are scored, in each test set; of images at most one
            each.
        paper: the log-likelihood per target in the paper's table, mean and standard deviation of
            five repeats, by test set and by the name of the model's preset.
        paper_mse: the squared error in the paper's table, in the same way.
        seasons: of a series, the lengths of its seasons as pandas reads them; the first is that of
            the naive line, and models that read time features get the phases of all.
        free_running_sequences: of a series, how many test windows are forecast by samples.
        columns: of a series, the names of the D_y columns. Empty: that of the data set.
    """

    name: str
    kind: str
    source: str
    x_dims: int
    y_dims: int
    batch_size: int
    learning_rate: float
    iterations: int
    repeats: int = 5
    target_permutations: int = 1
    num_context: _RANGE | None = None
    num_target: _RANGE | None = None
    test_sets: Mapping[str, str | None] = dataclasses.field(default_factory=lambda: {"test": None})
    validation_sequences: int = 256
    test_sequences: int = 2000
    paper: Mapping[str, Mapping[str, tuple[float, float]]] = dataclasses.field(default_factory=dict)
    paper_mse: Mapping[str, Mapping[str, tuple[float, float]]] = dataclasses.field(
        default_factory=dict
    )
    seasons: tuple[str, ...] = ()
    free_running_sequences: int = 0
    columns: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class NetworkPreset:
    """A model and its arguments, which may differ from task to task.

    Example:
        >>> preset = NetworkPreset("tiny", "NeuralProcess", {"width": 8}, {"celeba": {"width": 9}})
        >>> preset.for_task(find_task("gp-rbf")), preset.for_task(find_task("celeba"))
        ({'width': 8}, {'width': 9})

    Attributes:
        architecture: the name of the preset, also on the command line.
        model: the name of the model's class in `taylorformer`.
        settings: arguments of that class.
        by_task: arguments that replace them, by the kind, the source or the name of a task.
        autoregressive: whether the model reads earlier targets.
        note: what it is, for lists.
        training: settings of training that replace those of the task: those of
            `ExperimentSettings`, by name.
        kinds: the kinds of tasks that the model can do.
        time_features: whether the model reads the phases of the seasons beside the time.
        trained: whether runs train the model; otherwise its weights come from files.
    """

    architecture: str
    model: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    autoregressive: bool = True
    note: str = ""
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    kinds: tuple[str, ...] = ("gaussian_process", "images")
    time_features: bool = False
    trained: bool = True

    @property
    def paper_name(self) -> str:
        """The preset of the same model at the paper's sizes, whose figures the paper gives."""
        return "taylorformer" if not self.trained else self.architecture.removesuffix("-small")

    def for_task(self, task: ExperimentTask) -> dict[str, Any]:
        """Returns the arguments for a task: those for its name go before those for its kind."""
        arguments = dict(self.settings)
        for key in (task.kind, task.source, task.name):
            arguments |= self.by_task.get(key, {})
        return arguments


def _by_preset(
    taylorformer: tuple[float, float],
    tnp: tuple[float, float],
    anp: tuple[float, float],
    np: tuple[float, float],
) -> Mapping[str, tuple[float, float]]:
    return {"taylorformer": taylorformer, "tnp": tnp, "anp": anp, "np": np}


def _gaussian_process(
    kernel: str, paper: Mapping[str, tuple[float, float]], name: str | None = None
) -> ExperimentTask:
    return ExperimentTask(
        name=f"gp-{name or kernel}",
        kind="gaussian_process",
        source=kernel,
        x_dims=1,
        y_dims=1,
        batch_size=32,
        learning_rate=1e-4,
        iterations=250_000,
        num_context=(3, 97),
        paper={"test": paper},
    )


def _images(source: str, y_dims: int, iterations: int, **settings: Any) -> ExperimentTask:
    return ExperimentTask(
        name=source,
        kind="images",
        source=source,
        x_dims=2,
        y_dims=y_dims,
        batch_size=64,
        learning_rate=1e-4,
        iterations=iterations,
        **settings,
    )


_CONTEXT_LENGTH = 96
_HORIZONS = (96, 192, 336, 720)
# Each window of the test parts counts once, and there are at most 13,745 of them.
_ALL_WINDOWS = 20_000


def _series(
    data: str,
    horizon: int,
    source: str,
    seasons: tuple[str, ...],
    columns: tuple[str, ...] = (),
) -> ExperimentTask:
    """Makes a forecasting task: 96 context rows and a horizon."""
    paper = {} if data in _NOT_IN_THE_PAPER else paper_figures(data, horizon)
    log_likelihood = {name: (-nll, spread) for name, (nll, spread) in paper.get("nll", {}).items()}
    return ExperimentTask(
        name=f"{data}-{horizon}",
        kind="series",
        source=source,
        x_dims=1,
        y_dims=len(columns) or 1,
        batch_size=PAPER_BATCH_SIZE,
        learning_rate=PAPER_LEARNING_RATE,
        iterations=PAPER_STEPS,
        target_permutations=0,
        num_context=(_CONTEXT_LENGTH, _CONTEXT_LENGTH),
        num_target=(horizon, horizon),
        validation_sequences=512,
        test_sequences=_ALL_WINDOWS,
        paper={"test": log_likelihood} if paper else {},
        paper_mse={"test": paper["mse"]} if paper else {},
        seasons=seasons,
        free_running_sequences=128,
        columns=columns,
    )


# Hourly data in all seven columns, on which Autoformer and Informer are usually compared.
_ETT_COLUMNS = ("OT", "HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL")
_NOT_IN_THE_PAPER = ("etth1",)
# No year for the others: their training parts have less than three, and on ETTh1 validation errors
# were larger with its phase, and rose from one evaluation to the next.
_SERIES = (
    ("ett", "ETTm2", ("1D", "7D")),
    ("exchange", "exchange", ("7D", "365.25D")),
    ("electricity", "electricity", ("1D", "7D")),
)

_PAPER_IMAGES = {"num_context": (6, 200), "num_target": (3, 197)}

_ALL_TASKS = (
    _gaussian_process("rbf", _by_preset((4.13, 0.03), (3.50, 0.05), (0.96, 0.02), (0.24, 0.01))),
    _gaussian_process("matern", _by_preset((3.87, 0.05), (3.22, 0.05), (1.07, 0.01), (0.40, 0.02))),
    _gaussian_process(
        "periodic", _by_preset((0.31, 0.02), (0.13, 0.04), (-0.85, 0.05), (-1.56, 0.00))
    ),
    # The 8 x 8 digits that come with scikit-learn: not in the paper, and no file is needed.
    _images("digits", 1, 20_000),
    _images(
        "emnist",
        1,
        71_000,
        **_PAPER_IMAGES,
        test_sets={"seen": "seen", "unseen": "unseen"},
        paper={
            "seen": _by_preset((2.18, 0.01), (1.59, 0.00), (0.82, 0.04), (0.62, 0.01)),
            "unseen": _by_preset((1.90, 0.03), (1.47, 0.01), (0.68, 0.08), (0.44, 0.00)),
        },
    ),
    _images(
        "celeba",
        3,
        125_000,
        **_PAPER_IMAGES,
        paper={"test": _by_preset((4.00, 0.02), (4.13, 0.02), (2.78, 0.03), (2.30, 0.01))},
    ),
    *(
        _series(data, horizon, source, seasons)
        for data, source, seasons in _SERIES
        for horizon in _HORIZONS
    ),
    _series("etth1", 96, "ETTh1", ("1D", "7D"), _ETT_COLUMNS),
)

TASKS: Mapping[str, ExperimentTask] = {task.name: task for task in _ALL_TASKS}
"""The tasks, by the names of the command line."""

_LIKE_EMNIST = ("emnist", "digits")


def _for_emnist(**settings: Any) -> Mapping[str, Mapping[str, Any]]:
    return {name: settings for name in _LIKE_EMNIST}


def _ablation(name: str, note: str, **settings: Any) -> NetworkPreset:
    return NetworkPreset(
        f"ablation-{name}",
        "Taylorformer",
        {"dropout": 0.0, **settings},
        _for_emnist(scale="bounded", min_scale=0.01),
        note=f"ablation: {note}",
    )


def _paper_sizes(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the sizes of the paper's forecasts, by the sources of the series."""
    sources = {data: source for data, source, _ in _SERIES}
    return {sources[data]: sizes for data, sizes in PAPER_SIZES[kind].items()}


RELEASED = "released"
"""The preset of the authors' trained weights."""

_EVERY_KIND = ("gaussian_process", "images", "series")


def _direct(model: str, name: str, note: str) -> tuple[NetworkPreset, NetworkPreset]:
    """Makes the presets of a direct forecaster: the paper's sizes, and small ones."""
    paper = NetworkPreset(
        name,
        model,
        by_task=_paper_sizes(name),
        autoregressive=False,
        note=f"{note}; the sizes of the paper",
        training={
            "iterations": PAPER_DIRECT_STEPS,
            "learning_rate": PAPER_DIRECT_LEARNING_RATE,
        },
        kinds=("series",),
        time_features=True,
    )
    small = dataclasses.replace(
        paper,
        architecture=f"{name}-small",
        settings=SMALL_DIRECT_SIZES,
        by_task={},
        note=f"{note}; small, for two processor cores",
        training={"iterations": 2_000, "learning_rate": 1e-3, "schedule": "cosine"},
    )
    return paper, small


_NO_TAYLOR = {"taylor_order": None, "feature_order": 0}
_ALL_PRESETS = (
    NetworkPreset(
        "taylorformer",
        "Taylorformer",
        {"dropout": 0.0},
        {
            **_for_emnist(scale="bounded", min_scale=0.01),
            "series": {"dropout": 0.05},
            **_paper_sizes("taylorformer"),
        },
        note="the sizes of ETT, without dropout; for series those of the paper",
        kinds=_EVERY_KIND,
    ),
    NetworkPreset(
        "tnp",
        "TransformerNeuralProcess",
        by_task={
            **_for_emnist(scale="bounded", min_scale=0.05, y_noise=0.05),
            **_paper_sizes("tnp"),
        },
        note="the autoregressive TNP-A of Nguyen and Grover (2022)",
        kinds=_EVERY_KIND,
    ),
    NetworkPreset(
        "anp",
        "AttentiveNeuralProcess",
        by_task={
            **_for_emnist(
                latent_layers=(3, 3), deterministic_layers=3, self_attention=True, key_layers=3
            ),
            "celeba": {
                "latent_layers": (4, 3),
                "deterministic_layers": 4,
                "self_attention": True,
                "key_layers": 3,
            },
        },
        autoregressive=False,
        note="the attentive neural process of Kim et al. (2019)",
    ),
    NetworkPreset(
        "np",
        "NeuralProcess",
        by_task={
            **_for_emnist(latent_layers=(5, 2), deterministic_layers=5),
            "celeba": {
                "latent_layers": (6, 3),
                "deterministic_layers": 6,
                "decoder_layers": 5,
            },
        },
        autoregressive=False,
        note="the neural process of Garnelo et al. (2018)",
    ),
    NetworkPreset(
        RELEASED,
        "Taylorformer",
        {"dropout": 0.05},
        note="the authors' trained weights for ett-96, from --weights",
        kinds=("series",),
        trained=False,
    ),
    *_direct("Autoformer", "autoformer", "the series decomposition of Wu et al. (2021)"),
    *_direct("Informer", "informer", "the sparse attention of Zhou et al. (2021)"),
    # Sizes are chosen so that on one input and one output dimension all four have the same number
    # of parameters, within 2 %.
    _ablation("base", "MHA-XY alone", towers=("xy",), head_dim=12, width=56, **_NO_TAYLOR),
    _ablation("mha-x", "MHA-XY and MHA-X", width=33, **_NO_TAYLOR),
    _ablation("local-taylor", "MHA-XY and LocalTaylor", towers=("xy",), head_dim=15, width=48),
    _ablation("both", "MHA-XY, MHA-X and LocalTaylor: the Taylorformer"),
)

MODEL_PRESETS: Mapping[str, NetworkPreset] = {
    preset.architecture: preset for preset in _ALL_PRESETS
}
"""The presets of models, by the names of the command line."""

ABLATION = tuple(name for name in MODEL_PRESETS if name.startswith("ablation-"))
"""The names of the presets that the ablation compares."""


def find_task(name: str) -> ExperimentTask:
    """Looks a task up by its name.

    Raises:
        ValueError: an unknown name.
    """
    return TASKS[check_choice("task", name, tuple(TASKS))]


def find_preset(name: str) -> NetworkPreset:
    """Looks the preset of a model up by its name.

    Raises:
        ValueError: an unknown name; the message says `architecture`, as the command line does.
    """
    return MODEL_PRESETS[check_choice("architecture", name, tuple(MODEL_PRESETS))]
