"""The registry of small configured layers and models, and what is fed to them.

A new layer or model joins by one line in `LAYERS` or `MODELS`; `test_conformance.py` does the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pytest

from taylorformer.comparison_models.attentive_neural_process import AttentiveNeuralProcess
from taylorformer.comparison_models.auto_correlation import AutoCorrelation
from taylorformer.comparison_models.autoformer import Autoformer
from taylorformer.comparison_models.autoformer_decoder_layer import AutoformerDecoderLayer
from taylorformer.comparison_models.autoformer_encoder_layer import AutoformerEncoderLayer
from taylorformer.comparison_models.circular_convolution import CircularConvolution
from taylorformer.comparison_models.distilling import Distilling
from taylorformer.comparison_models.feed_forward import FeedForward
from taylorformer.comparison_models.informer import Informer
from taylorformer.comparison_models.informer_decoder_layer import InformerDecoderLayer
from taylorformer.comparison_models.informer_encoder_layer import InformerEncoderLayer
from taylorformer.comparison_models.mlp import MLP
from taylorformer.comparison_models.neural_process import NeuralProcess
from taylorformer.comparison_models.prob_sparse_attention import ProbSparseAttention
from taylorformer.comparison_models.seasonal_layer_norm import SeasonalLayerNorm
from taylorformer.comparison_models.series_decomposition import SeriesDecomposition
from taylorformer.comparison_models.transformer_block import TransformerBlock
from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.comparison_models.value_embedding import ValueEmbedding
from taylorformer.data_wrangler.features.masked_normalization import MaskedBatchNormalization
from taylorformer.data_wrangler.features.positional_encoding import PositionalEncoding
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor
from taylorformer.model.keras_private import sublayers
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.dropout import Dropout
from taylorformer.model.layers.layer_normalization import LayerNormalization
from taylorformer.model.layers.local_taylor import LocalTaylor
from taylorformer.model.layers.mha_x import MHAX
from taylorformer.model.layers.mha_x_net import MHAXNet
from taylorformer.model.layers.mha_xy import MHAXY
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.released_weights import ReleasedRepresentationExtractor
from taylorformer.model.taylorformer import Taylorformer

TINY = {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 2}
_BLOCK = {"num_heads": 2, "head_dim": 4, "width": 8}


def points(
    num_context: int = 5,
    num_target: int = 4,
    x_dims: int = 1,
    y_dims: int = 1,
    batch_size: int = 3,
    seed: int = 0,
    times: str = "free",
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Makes a batch of smooth functions at random x; for `times` see `ModelCase`."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (batch_size, num_context + num_target, x_dims))
    if times != "free":
        x[..., 0] = np.sort(x[..., 0], axis=1)
    slope = rng.normal(size=(batch_size, x_dims, y_dims))
    y = np.sin(3 * x @ slope + rng.normal(size=(batch_size, 1, y_dims)))
    if times == "even":
        # Whole numbers, each sequence with another first one.
        x[..., 0] = np.arange(num_context + num_target) + 10.0 * np.arange(batch_size)[:, None]
    x, y = x.astype("float32"), y.astype("float32")
    inputs = {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
    }
    return inputs, y[:, num_context:]


def _batch(**sizes: Any) -> dict[str, np.ndarray]:
    inputs, y_target = points(**sizes)
    return {**inputs, "y_target": y_target}


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def _visibility(num_context: int, num_target: int, batch_size: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(num_context)
    context = rng.random((batch_size, 1, num_context)) < 0.8
    earlier = np.tril(np.ones((num_target, num_target), bool), -1)
    visible = np.concatenate(
        [
            np.broadcast_to(context, (batch_size, num_target, num_context)),
            np.broadcast_to(earlier, (batch_size, num_target, num_target)),
        ],
        axis=-1,
    )
    return {"visible": visible, "context_visible": context}


def _attention_arguments(num_context: int, num_target: int) -> tuple[tuple, dict]:
    n = num_context + num_target
    return (
        (_random(3, n, 8), _random(3, n, 8), _random(3, n, 8)),
        _visibility(num_context, num_target),
    )


def _tower_arguments(*widths: int) -> Callable[[int, int], tuple[tuple, dict]]:
    def arguments(num_context: int, num_target: int) -> tuple[tuple, dict]:
        n = num_context + num_target
        return (
            tuple(_random(3, n, width) for width in widths),
            _visibility(num_context, num_target),
        )

    return arguments


def _batch_arguments(num_context: int, num_target: int) -> tuple[tuple, dict]:
    return (_batch(num_context=num_context, num_target=num_target),), {}


def _feature_arguments(num_context: int, num_target: int) -> tuple[tuple, dict]:
    n = num_context + num_target
    features = {
        "x_fe": _random(3, n, 6),
        "y_fe": _random(3, n, 4),
        "y_seen": _random(3, n, 3),
        "y": _random(3, n, 1),
        "taylor_terms": _random(3, num_target, 1),
        "context_mask": np.ones((3, num_context), bool),
        "target_seen": np.ones((3, num_target), bool),
    }
    return (features,), {}


def seed_generators(model: keras.Model) -> list[keras.random.SeedGenerator]:
    """Finds every generator of a model, to set it back."""
    return [
        value
        for layer in (model, *sublayers(model))
        for value in vars(layer).values()
        if isinstance(value, keras.random.SeedGenerator)
    ]


@dataclass(frozen=True)
class LayerCase:
    """A layer, and its arguments for given numbers of context and target points."""

    name: str
    make: Callable[..., keras.layers.Layer]
    arguments: Callable[[int, int], tuple[tuple, dict]]
    takes_training: bool = True
    dtype_follows_policy: bool = False


LAYERS = [
    LayerCase(
        "positional_encoding",
        lambda **kw: PositionalEncoding(8, **kw),
        lambda c, t: ((_random(3, c + t, 2),), {}),
        takes_training=False,
    ),
    LayerCase(
        "masked_normalization",
        lambda **kw: MaskedBatchNormalization(momentum=0.9, **kw),
        lambda c, t: ((_random(3, c + t, 2), np.arange(c + t)[None].repeat(3, 0) < c), {}),
    ),
    *(
        LayerCase(
            f"representation_extractor_{order}",
            lambda order=order, **kw: RepresentationExtractor(
                encoding_dim=4, feature_order=order, taylor_order=order, seed=1, **kw
            ),
            _batch_arguments,
        )
        for order in (0, 1, 2)
    ),
    LayerCase(
        "representation_extractor_fitted",
        lambda **kw: RepresentationExtractor(encoding_dim=4, fitted_order=2, seed=1, **kw),
        _batch_arguments,
    ),
    LayerCase(
        "released_representation_extractor",
        lambda **kw: ReleasedRepresentationExtractor(encoding_dim=4, **kw),
        _batch_arguments,
    ),
    LayerCase(
        "multi_head_attention",
        lambda **kw: MultiHeadAttention(**_BLOCK, seed=1, **kw),
        _attention_arguments,
        takes_training=False,
        dtype_follows_policy=True,
    ),
    LayerCase(
        "dropout",
        lambda **kw: Dropout(0.25, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 4),), {}),
        dtype_follows_policy=True,
    ),
    LayerCase(
        "layer_normalization",
        lambda **kw: LayerNormalization(epsilon=1e-4, **kw),
        lambda c, t: ((_random(3, c + t, 4),), {}),
        takes_training=False,
        dtype_follows_policy=True,
    ),
    LayerCase(
        "attention_block",
        lambda **kw: AttentionBlock(**_BLOCK, dropout=0.1, seed=1, **kw),
        _attention_arguments,
    ),
    LayerCase(
        "mlp",
        lambda **kw: MLP(8, 3, output_width=5, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 4),), {}),
        takes_training=False,
        dtype_follows_policy=True,
    ),
    LayerCase(
        "transformer_block",
        lambda **kw: TransformerBlock(**_BLOCK, feed_forward=6, dropout=0.1, seed=1, **kw),
        lambda c, t: (_attention_arguments(c, t)[0][:2], _visibility(c, t)),
    ),
    LayerCase(
        "circular_convolution",
        lambda **kw: CircularConvolution(8, use_bias=True, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 4),), {}),
        takes_training=False,
        dtype_follows_policy=True,
    ),
    LayerCase(
        "value_embedding",
        lambda **kw: ValueEmbedding(8, dropout=0.1, positional=True, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 2), _random(3, c + t, 3)), {}),
    ),
    LayerCase(
        "series_decomposition",
        lambda **kw: SeriesDecomposition(5, **kw),
        lambda c, t: ((_random(3, c + t, 2),), {}),
        takes_training=False,
    ),
    LayerCase(
        "seasonal_layer_norm",
        lambda **kw: SeasonalLayerNorm(**kw),
        lambda c, t: ((_random(3, c + t, 8),), {}),
        takes_training=False,
    ),
    LayerCase(
        "feed_forward",
        lambda **kw: FeedForward(6, 5, dropout=0.1, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 4),), {}),
        dtype_follows_policy=True,
    ),
    LayerCase(
        "auto_correlation",
        lambda **kw: AutoCorrelation(**_BLOCK, factor=1.5, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 5), _random(3, 2 * t, 6), _random(3, 2 * t, 7)), {}),
        dtype_follows_policy=True,
    ),
    LayerCase(
        "autoformer_encoder_layer",
        lambda **kw: AutoformerEncoderLayer(2, 8, 6, 3, 1.5, dropout=0.1, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 8),), {}),
    ),
    LayerCase(
        "autoformer_decoder_layer",
        lambda **kw: AutoformerDecoderLayer(2, 8, 6, 2, 3, 1.5, dropout=0.1, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 8), _random(3, 2 * t, 7)), {}),
    ),
    LayerCase(
        "prob_sparse_attention",
        lambda **kw: ProbSparseAttention(**_BLOCK, factor=1, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 5), _random(3, 2 * t, 6), _random(3, 2 * t, 7)), {}),
        dtype_follows_policy=True,
    ),
    LayerCase(
        "prob_sparse_attention_causal",
        lambda **kw: ProbSparseAttention(**_BLOCK, factor=1, causal=True, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 5), _random(3, c + t, 6), _random(3, c + t, 7)), {}),
        dtype_follows_policy=True,
    ),
    LayerCase(
        "distilling",
        lambda **kw: Distilling(8, seed=1, **kw),
        lambda c, t: ((_random(3, c + t, 8),), {}),
    ),
    LayerCase(
        "informer_encoder_layer",
        lambda **kw: InformerEncoderLayer(
            **_BLOCK, feed_forward=6, factor=1, dropout=0.1, seed=1, **kw
        ),
        lambda c, t: ((_random(3, c + t, 8),), {}),
    ),
    LayerCase(
        "informer_decoder_layer",
        lambda **kw: InformerDecoderLayer(
            **_BLOCK, feed_forward=6, factor=1, dropout=0.1, seed=1, **kw
        ),
        lambda c, t: ((_random(3, c + t, 8), _random(3, 2 * t, 8)), {}),
    ),
    LayerCase("mha_x", lambda **kw: MHAX(**TINY, seed=1, **kw), _tower_arguments(6, 1)),
    LayerCase("mha_xy", lambda **kw: MHAXY(**TINY, seed=1, **kw), _tower_arguments(6, 3, 2)),
    LayerCase("mha_x_net", lambda **kw: MHAXNet(**TINY, seed=1, **kw), _feature_arguments),
    LayerCase(
        "local_taylor",
        lambda **kw: LocalTaylor(
            MHAXNet(**TINY, seed=1),
            RepresentationExtractor(encoding_dim=4, taylor_order=1, seed=1),
            taylor_order=1,
            **kw,
        ),
        _batch_arguments,
    ),
]


@dataclass(frozen=True)
class ModelCase:
    """A model with the sizes of its data."""

    name: str
    make: Callable[..., ProbabilisticModel]
    x_dims: int = 1
    y_dims: int = 1
    autoregressive: bool = True
    times: str = "free"
    """The first dimension of x: "free", "rising" (in order, rows may be missing) or "even" (on an
    even grid, of which no context row is missing). Lengths are free with free times alone."""

    def data(self, **sizes: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        return points(x_dims=self.x_dims, y_dims=self.y_dims, times=self.times, **sizes)

    def shapes(self) -> dict[str, tuple[int | None, ...]]:
        """The shapes to build a model with, of free lengths where it has them."""
        num_context, num_target = (None, None) if self.times == "free" else (5, 4)
        return {
            "x_context": (None, num_context, self.x_dims),
            "y_context": (None, num_context, self.y_dims),
            "x_target": (None, num_target, self.x_dims),
        }

    def needs(self, *abilities: str) -> None:
        """Skips a test that needs what this model is not made for, a key of `_LACKING`."""
        for ability in abilities:
            if self.times in _LACKING[ability]:
                pytest.skip(f"{self.name}: {ability}: {_LACKING[ability][self.times]}")


_FIXED = "N_C and N_T are those it was built for"
_IN_ORDER = "it reads a sequence in the order of time"
_LACKING = {
    "free lengths": {"rising": _FIXED, "even": _FIXED},
    "any order of the context": {"rising": _IN_ORDER, "even": _IN_ORDER},
    "missing context rows": {"even": "without `interpolate` they are an error"},
}
"""What models with times that are not free are not made for, and why."""


def _taylorformer(**settings: Any) -> Callable[..., Taylorformer]:
    def make(**more: Any) -> Taylorformer:
        defaults = {**TINY, "encoding_dim": 4, "dropout": 0.0, "seed": 3, "predict_samples": 4}
        return Taylorformer(**{**defaults, **settings, **more})

    return make


def _latent(kind: type[ProbabilisticModel], **settings: Any) -> Callable[..., ProbabilisticModel]:
    def make(**more: Any) -> ProbabilisticModel:
        defaults = {
            "width": 8,
            "latent_dim": 6,
            "latent_layers": (2, 2),
            "deterministic_layers": 2,
            "decoder_layers": 3,
            "num_latents": 3,
            "log_prob_latents": 5,
            "predict_samples": 4,
            "seed": 3,
        }
        return kind(**{**defaults, **settings, **more})

    return make


def _tnp(**settings: Any) -> Callable[..., TransformerNeuralProcess]:
    def make(**more: Any) -> TransformerNeuralProcess:
        small = {"num_heads": 2, "width": 8, "num_layers": 2, "feed_forward": 6}
        defaults = {**small, "embedding_layers": 2, "seed": 3, "predict_samples": 4}
        return TransformerNeuralProcess(**{**defaults, **settings, **more})

    return make


def _autoformer(**settings: Any) -> Callable[..., Autoformer]:
    def make(**more: Any) -> Autoformer:
        small = {"num_heads": 2, "width": 8, "feed_forward": 6, "moving_average": 3}
        defaults = {**small, "dropout": 0.0, "seed": 3, "predict_samples": 4}
        return Autoformer(**{**defaults, **settings, **more})

    return make


def _informer(**settings: Any) -> Callable[..., Informer]:
    def make(**more: Any) -> Informer:
        small = {"num_heads": 2, "width": 8, "feed_forward": 6, "factor": 1}
        defaults = {**small, "dropout": 0.0, "seed": 3, "predict_samples": 4}
        return Informer(**{**defaults, **settings, **more})

    return make


MODELS = [
    ModelCase("taylorformer", _taylorformer()),
    ModelCase("taylorformer_2d", _taylorformer(taylor_order=1, num_neighbours=3), 2, 2),
    ModelCase("taylorformer_second", _taylorformer(taylor_order=2, feature_order=2), 1, 2),
    ModelCase("taylorformer_plain", _taylorformer(taylor_order=None, feature_order=0)),
    ModelCase("taylorformer_x_only", _taylorformer(towers=("x",), scale="bounded", num_layers=1)),
    ModelCase(
        "taylorformer_xy_only",
        _taylorformer(
            towers=("xy",),
            num_layers=1,
            fitted_order=2,
            anchors=("nearest", "season"),
            neighbour_dims=1,
        ),
        3,
    ),
    ModelCase(
        "taylorformer_covariates",
        _taylorformer(neighbour_dims=1, feature_order=2, num_neighbours=2, target_permutations=2),
        3,
        1,
    ),
    ModelCase("np", _latent(NeuralProcess, num_latents=1), autoregressive=False),
    ModelCase(
        "anp",
        _latent(AttentiveNeuralProcess, num_heads=2, key_layers=3, self_attention=True),
        2,
        3,
        autoregressive=False,
    ),
    ModelCase("tnp", _tnp()),
    ModelCase(
        "tnp_2d",
        _tnp(num_layers=1, head_dim=3, y_noise=0.05, scale="bounded", target_permutations=2),
        2,
        2,
    ),
    ModelCase("autoformer", _autoformer(), autoregressive=False, times="even"),
    ModelCase(
        "autoformer_interpolating",
        _autoformer(interpolate=True, start_length=2, factor=2.0, decoder_layers=2),
        2,
        2,
        autoregressive=False,
        times="rising",
    ),
    ModelCase("informer", _informer(), autoregressive=False, times="even"),
    ModelCase(
        "informer_interpolating",
        _informer(interpolate=True, start_length=2, distilling=False, decoder_layers=2),
        2,
        2,
        autoregressive=False,
        times="rising",
    ),
]

# Variants of models of which another one stands in the quick tests.
_SLOW = (
    "taylorformer_second",
    "taylorformer_x_only",
    "taylorformer_xy_only",
    "tnp_2d",
    "autoformer_interpolating",
    "informer",
    "informer_interpolating",
)
# Layers of which models in the quick tests consist.
_SLOW_LAYERS = (
    "autoformer_encoder_layer",
    "autoformer_decoder_layer",
    "prob_sparse_attention",
    "informer_encoder_layer",
    "informer_decoder_layer",
)


def _parametrized(cases: Sequence[Any], slow: Sequence[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name in slow else [])
            for case in cases
        ],
    )


every_model = _parametrized(MODELS, _SLOW)
"""Runs a test on every model, the variants among the slow tests."""

every_autoregressive_model = _parametrized([case for case in MODELS if case.autoregressive], _SLOW)
"""The same for the models that read earlier targets."""

every_layer = _parametrized(LAYERS, _SLOW_LAYERS)
"""Runs a test on every layer, parts of models among the slow tests."""
