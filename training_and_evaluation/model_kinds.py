"""The kinds of models that presets name, and the sizes that presets of all rooms share.

Nothing here needs TensorFlow; `model_classes` has the classes.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

_DENSITY = ("scale", "min_scale")
_LATENT = (
    "width",
    "latent_dim",
    "latent_layers",
    "deterministic_layers",
    "decoder_layers",
    "num_latents",
    "log_prob_latents",
    *_DENSITY,
)
_DIRECT = (
    "width",
    "num_heads",
    "feed_forward",
    "encoder_layers",
    "decoder_layers",
    "dropout",
    "start_length",
    "min_scale",
)


@dataclasses.dataclass(frozen=True)
class ModelKind:
    """A kind of model.

    Example:
        >>> kind = MODEL_KINDS["tnp"]
        >>> kind.class_name, kind.reads_even_grid, "num_heads" in kind.arguments
        ('TransformerNeuralProcess', False, True)

    Attributes:
        name: in settings, in files and on the command line.
        class_name: of its class in `taylorformer`.
        arguments: those of its class that a preset may set, in the order of its records.
        reads_even_grid: whether it is a `DirectForecaster`: it has fixed lengths, reads an even
            grid, and knows times by time features alone.
    """

    name: str
    class_name: str
    arguments: tuple[str, ...]
    reads_even_grid: bool = False


_ALL = (
    ModelKind(
        "taylorformer",
        "Taylorformer",
        (
            "num_heads",
            "head_dim",
            "width",
            "num_layers",
            "dropout",
            "encoding_dim",
            "shortest",
            "longest",
            "taylor_order",
            "feature_order",
            "num_neighbours",
        ),
    ),
    ModelKind(
        "tnp",
        "TransformerNeuralProcess",
        (
            "num_heads",
            "head_dim",
            "width",
            "num_layers",
            "feed_forward",
            "embedding_layers",
            "dropout",
            "y_noise",
            *_DENSITY,
        ),
    ),
    ModelKind(
        "anp",
        "AttentiveNeuralProcess",
        ("num_heads", "key_layers", "self_attention", *_LATENT),
    ),
    ModelKind("np", "NeuralProcess", _LATENT),
    ModelKind(
        "autoformer",
        "Autoformer",
        (*_DIRECT, "moving_average", "factor"),
        reads_even_grid=True,
    ),
    ModelKind(
        "informer",
        "Informer",
        (*_DIRECT, "factor", "distilling"),
        reads_even_grid=True,
    ),
)

MODEL_KINDS: Mapping[str, ModelKind] = {kind.name: kind for kind in _ALL}
"""The kinds of models by their names."""

_Sizes = Mapping[str, Mapping[str, Any]]

_DIRECT_SIZES: _Sizes = {
    "ett": {},
    "exchange": {},
    "electricity": {"width": 20, "num_heads": 4, "feed_forward": 512},
}

PAPER_SIZES: Mapping[str, _Sizes] = {
    "taylorformer": {
        "ett": {},
        "exchange": {"num_heads": 8, "head_dim": 12, "num_layers": 3},
        "electricity": {"head_dim": 17, "width": 48, "dropout": 0.25},
    },
    "tnp": {
        # The paper says how many layers and heads, and how many parameters.
        "ett": {
            "num_layers": 4,
            "num_heads": 7,
            "head_dim": 12,
            "width": 48,
            "feed_forward": 48,
            "dropout": 0.05,
        },
        "exchange": {
            "num_layers": 6,
            "num_heads": 6,
            "width": 48,
            "feed_forward": 48,
            "dropout": 0.1,
        },
        "electricity": {"num_layers": 6, "num_heads": 4, "width": 64, "dropout": 0.25},
    },
    "autoformer": _DIRECT_SIZES,
    "informer": _DIRECT_SIZES,
}
"""The arguments of models in the paper's forecasts, by kind and data set.

Those that are left out are the defaults of the class."""

SMALL_DIRECT_SIZES: Mapping[str, Any] = {"width": 32, "num_heads": 4, "feed_forward": 64}
"""The arguments of an Autoformer or an Informer that two processor cores train in minutes."""

PAPER_BATCH_SIZE = 32
"""B in the training of the paper's forecasts."""

PAPER_LEARNING_RATE, PAPER_STEPS = 3e-4, 40_000
"""How the paper's Taylorformer and TNP are trained to forecast: Adam, and for how long."""

PAPER_DIRECT_LEARNING_RATE, PAPER_DIRECT_STEPS = 1e-4, 15_000
"""The same for Autoformer and Informer."""
