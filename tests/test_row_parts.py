"""What is drawn row by row: `ROW_PARTS` names all methods on which the loops rely.

A subclass that overrides one of them is drawn by the plain sampler, unless it says that it is
`row_wise`.
"""

import inspect

import conformance
import keras
import pytest
import tensorflow as tf

from taylorformer.comparison_models import transformer_block
from taylorformer.comparison_models.transformer_block import TransformerBlock
from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor
from taylorformer.data_wrangler.features.row_features import RowFeatures
from taylorformer.model.keras_private import sublayers
from taylorformer.model.layers import attention_block
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.local_taylor import LocalTaylor
from taylorformer.model.layers.mha_x import MHAX
from taylorformer.model.layers.mha_x_net import MHAXNet
from taylorformer.model.layers.mha_xy import MHAXY
from taylorformer.model.layers.tower import AttentionTower
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.sampling.cached import CachedSampler
from taylorformer.model.sampling.plain import PlainSampler
from taylorformer.model.taylorformer import Taylorformer

# Each class, and those of its methods that a subclass may override: `call` and the loops both run
# them, or neither does. Constructors, `build` and configurations are so in every class.
SHARED = {
    RowFeatures: set(),
    # How ties are broken and how a derivative is estimated is the same for one row and for all.
    RepresentationExtractor: {"_orders", "_estimate_derivative"},
    MultiHeadAttention: {"_join_heads"},
    AttentionBlock: set(),
    AttentionTower: {"_build_blocks"},
    MHAX: set(),
    MHAXY: set(),
    MHAXNet: set(),
    LocalTaylor: set(),
    Taylorformer: {"make_sampler", "_check_extractor"},
    TransformerBlock: set(),
    # Noise is drawn in training only.
    TransformerNeuralProcess: {"make_sampler", "_noisy"},
}
IN_EVERY_CLASS = {"__init__", "build", "get_config", "from_config"}
SETTINGS = {**conformance.TINY, "num_layers": 1, "seed": 3}


def _built(model):
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})
    return model


def _taylorformer(**settings):
    return _built(Taylorformer(**SETTINGS, **settings))


def _tnp():
    return _built(TransformerNeuralProcess(**SETTINGS))


@pytest.fixture(scope="module")
def models():
    return [_taylorformer(), _tnp()]


def _with(kind, models):
    """A model that has a layer of a class, and the layer."""
    for model in models:
        for layer in (model, *sublayers(model)):
            if isinstance(layer, kind):
                return model, layer
    raise AssertionError(f"no model with a {kind.__name__}")


def _is_quick(model):
    sampler = model.make_sampler()
    assert isinstance(sampler, CachedSampler | PlainSampler)
    return isinstance(sampler, CachedSampler)


def _methods(kind):
    return {
        name
        for name, value in vars(kind).items()
        if inspect.isfunction(value) or isinstance(value, staticmethod | classmethod)
    }


def test_every_class_with_row_parts_is_listed(models):
    layers = [layer for model in models for layer in (model, *sublayers(model))]
    declaring = {
        kind for layer in layers for kind in type(layer).__mro__ if "ROW_PARTS" in vars(kind)
    }
    assert declaring == {*SHARED, ProbabilisticModel}


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.__name__)
def test_every_method_is_relied_on_or_shared(kind):
    """A new method must be put into one of the two, or a subclass of it is drawn wrongly."""
    assert len(set(kind.ROW_PARTS)) == len(kind.ROW_PARTS)
    assert _methods(kind) - IN_EVERY_CLASS - SHARED[kind] == set(kind.ROW_PARTS)
    assert _methods(kind) >= SHARED[kind]


@pytest.mark.parametrize(
    "kind, name",
    [(kind, name) for kind in (*SHARED, ProbabilisticModel) for name in kind.ROW_PARTS],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_an_overridden_part_is_drawn_the_plain_way(models, kind, name):
    model, layer = _with(kind, models)
    original = type(layer)
    overriding = type("Overriding", (original,), {name: getattr(original, name)})
    row_wise = type("RowWise", (original,), {name: getattr(original, name), "row_wise": True})
    try:
        assert _is_quick(model)
        for changed, quick in ((overriding, False), (row_wise, True)):
            object.__setattr__(layer, "__class__", changed)
            assert _is_quick(model) is quick
            # A subclass of a subclass changes nothing further.
            object.__setattr__(layer, "__class__", type("Further", (changed,), {}))
            assert _is_quick(model) is quick
    finally:
        object.__setattr__(layer, "__class__", original)


@pytest.mark.parametrize(
    "kind, name",
    [(kind, name) for kind, names in SHARED.items() for name in sorted(names)],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_what_is_shared_may_be_overridden(models, kind, name):
    model, layer = _with(kind, models)
    original = type(layer)
    changed = type("Changed", (original,), {name: vars(kind)[name]})
    if name == "make_sampler":
        changed = type("Changed", (original,), {name: lambda self: kind.make_sampler(self)})
    try:
        object.__setattr__(layer, "__class__", changed)
        assert _is_quick(model)
    finally:
        object.__setattr__(layer, "__class__", original)


def test_layers_in_the_way_that_users_write_them(monkeypatch):
    class Shifted(RepresentationExtractor):
        def call(self, inputs, training=False):
            moved = {name: value + 1.0 for name, value in inputs.items() if name[0] == "x"}
            return super().call({**inputs, **moved}, training=training)

    class Doubled(RepresentationExtractor):
        def _estimate_derivative(self, *arguments):
            derivative, flag = super()._estimate_derivative(*arguments)
            return 2 * derivative, flag

    class Called(Taylorformer):
        def __call__(self, *arguments, **named):
            return super().__call__(*arguments, **named)

    class Positive(Taylorformer):
        @staticmethod
        def finish_outputs(mean, scale, target_mask):
            return Taylorformer.finish_outputs(tf.nn.softplus(mean), scale, target_mask)

    class Scaled(TransformerNeuralProcess):
        def embed(self, x, y):
            return super().embed(x / tf.reduce_max(tf.abs(x)), y)

    class Sharp(MultiHeadAttention):
        def _queries(self, query):
            return 5 * super()._queries(query)

    with monkeypatch.context() as patch:
        for module in (attention_block, transformer_block):
            patch.setattr(module, "MultiHeadAttention", Sharp)
        sharp = _taylorformer(), _tnp()
    for model in sharp:
        assert any(isinstance(layer, Sharp) for layer in sublayers(model))
        assert not _is_quick(model)
    assert not _is_quick(_taylorformer(representation_extractor=Shifted()))
    assert _is_quick(_taylorformer(representation_extractor=Doubled()))
    for model in (Called(**SETTINGS), Positive(**SETTINGS), Scaled(**SETTINGS)):
        assert not _is_quick(_built(model))
    inputs, _ = conformance.points(num_context=3, num_target=2)
    assert isinstance(Called(**SETTINGS).sample(inputs, 2, seed=0), tf.Tensor)


@pytest.mark.parametrize(
    "find",
    [
        lambda taylorformer, _: taylorformer.local_taylor.network.mean_dense,
        lambda taylorformer, _: taylorformer.local_taylor.network.mha_xy.blocks[0].skip_dense,
        lambda _, tnp: tnp.blocks[0].attention.key_dense,
    ],
    ids=["head", "skip", "attention"],
)
def test_dense_layers_that_do_more_are_drawn_the_plain_way(find):
    models = _taylorformer(), _tnp()
    dense = find(*models)
    dense.quantize("int8")
    assert sorted(map(_is_quick, models)) == [False, True]


def test_another_network_is_drawn_the_plain_way():
    class Other(keras.layers.Layer):
        def call(self, features):
            return {"mean": features["taylor_terms"], "raw_scale": features["taylor_terms"]}

    model = _taylorformer()
    model.local_taylor._tracker.unlock()
    model.local_taylor.network = Other()
    assert not _is_quick(model)
