"""`.keras` files in a fresh process."""

import subprocess
import sys
import zipfile

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer import (
    NeuralProcess,
    RepresentationExtractor,
    Taylorformer,
    TransformerNeuralProcess,
)
from taylorformer.model.frozen_weights import freeze_as, frozen_state, numbered_weights
from taylorformer.model.keras_private import sublayers

_FRESH = """
import sys
import numpy as np
from taylorformer import Taylorformer
import keras

folder = sys.argv[1]
data = dict(np.load(f"{folder}/data.npz"))
y_target = data.pop("y_target")
model = keras.models.load_model(f"{folder}/model.keras")
assert type(model) is Taylorformer
model.export(f"{folder}/served")  # never called so far
outputs = model({**data, "y_target": y_target})
iterations = int(model.optimizer.iterations)
model.fit(data, y_target, initial_epoch=2, epochs=4, verbose=0, shuffle=False)
np.savez(
    f"{folder}/fresh.npz", mean=outputs["mean"], scale=outputs["scale"], iterations=iterations,
    **{f"weight_{number}": value for number, value in enumerate(model.get_weights())},
)
"""


@pytest.mark.slow
def test_a_file_is_resumed_and_is_exported_in_a_fresh_process(tmp_path):
    inputs, y_target = conformance.points()
    np.savez(tmp_path / "data.npz", **inputs, y_target=y_target)
    extractor = RepresentationExtractor(encoding_dim=4, feature_order=2, seed=1)
    model = Taylorformer(
        **conformance.TINY, seed=0, target_permutations=1, representation_extractor=extractor
    )
    model.compile(keras.optimizers.Adam(1e-2, global_clipnorm=10.0), run_eagerly=True)
    model.fit(inputs, y_target, epochs=2, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    (tmp_path / "fresh.py").write_text(_FRESH)
    subprocess.run(
        [sys.executable, tmp_path / "fresh.py", tmp_path], check=True, cwd=tmp_path, timeout=300
    )
    fresh = np.load(tmp_path / "fresh.npz")
    outputs = model({**inputs, "y_target": y_target})
    np.testing.assert_allclose(fresh["mean"], outputs["mean"], atol=1e-6)
    np.testing.assert_allclose(fresh["scale"], outputs["scale"], atol=1e-6)
    assert fresh["iterations"] == 2
    served = tf.saved_model.load(tmp_path / "served").signatures["log_prob"]
    batch = {**inputs, "y_target": y_target}
    log_prob = served(**{key: tf.constant(value) for key, value in batch.items()})["log_prob"]
    np.testing.assert_allclose(log_prob, model.log_prob(inputs, y_target), rtol=1e-5, atol=1e-5)
    model.fit(inputs, y_target, initial_epoch=2, epochs=4, verbose=0, shuffle=False)
    for number, weight in enumerate(model.get_weights()):
        np.testing.assert_allclose(fresh[f"weight_{number}"], weight, atol=1e-6)


def test_the_file_is_about_as_large_as_its_weights(tmp_path):
    model = Taylorformer(seed=0)
    inputs, y_target = conformance.points()
    model({**inputs, "y_target": y_target})
    model.save(tmp_path / "model.keras")
    weights = sum(4 * int(np.prod(weight.shape)) for weight in model.weights)
    assert (tmp_path / "model.keras").stat().st_size < weights + 500_000


def test_a_model_that_was_loaded_and_never_called_has_all_its_weights(tmp_path):
    case = conformance.MODELS[1]
    model = case.make()
    inputs, y_target = case.data()
    expected = model({**inputs, "y_target": y_target})
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.built
    assert not again.compiled
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(again({**inputs, "y_target": y_target})["mean"], expected["mean"])


def test_default_sizes_are_the_papers():
    """About 92 thousand parameters; the features of the paper read two numbers more a point."""
    model = Taylorformer()
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})
    released_features = 91_858
    # D^n and its flag enter three projections 66 wide and a skip 32 wide.
    assert model.count_params() == released_features + 2 * (3 * 66 + 32) + 2


def _layer(model, name):
    return next(layer for layer in sublayers(model) if layer.name == name)


def _freeze_tower(model):
    _layer(model, "mha_x").trainable = False


def _freeze_one_dense(model):
    _layer(model, "mha_xy").blocks[1].attention.query_dense.trainable = False


def _thaw_inside(model):
    model.local_taylor.trainable = False
    _layer(model, "mha_xy").blocks[0].trainable = True


def _freeze_everything(model):
    model.trainable = False


def _freeze_one_weight(model):
    _layer(model, "join").kernel.trainable = False


def _nothing(model):
    pass


def _flags(model):
    layers = [layer.trainable for layer in (model, *sublayers(model))]
    return layers, [weight.trainable for weight in model.weights]


FREEZINGS = [
    _nothing,
    _freeze_tower,
    _freeze_one_dense,
    _thaw_inside,
    _freeze_one_weight,
    _freeze_everything,
]
QUICK_FREEZINGS = [_freeze_one_weight, _freeze_everything]


@pytest.mark.parametrize(
    "freeze, trained_before",
    [
        *((freeze, False) for freeze in (_nothing, _freeze_tower)),
        *((freeze, True) for freeze in QUICK_FREEZINGS),
        *(
            pytest.param(freeze, True, marks=pytest.mark.slow)
            for freeze in FREEZINGS
            if freeze not in QUICK_FREEZINGS
        ),
    ],
    ids=lambda value: getattr(value, "__name__", "trained" if value else "new").strip("_"),
)
def test_what_is_frozen_stays_frozen_and_training_continues(tmp_path, freeze, trained_before):
    """Also of an optimizer that was built before something was frozen."""
    inputs, y_target = conformance.points()
    options = {"verbose": 0}
    model = conformance.MODELS[0].make(dropout=0.1)
    model.compile(keras.optimizers.Adam(1e-2, global_clipnorm=10.0), run_eagerly=True)
    if trained_before:
        model.fit(inputs, y_target, **options)
    else:
        model({**inputs, "y_target": y_target})
    freeze(model)
    everything = freeze is _freeze_everything
    if not everything:
        model.fit(inputs, y_target, initial_epoch=1, epochs=2, **options)
    model.save(tmp_path / "model.keras")
    # Warnings are errors: the state of the optimizer is loaded too.
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert _flags(again) == _flags(model)
    count = len(model.trainable_weights)
    assert len(again.trainable_weights) == count
    assert (count == 0) == everything
    frozen = [
        weight.numpy() for weight in again.non_trainable_weights if "moving" not in weight.path
    ]
    for ours, theirs in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    if everything:
        for each in (model, again):
            each.trainable = True
    for each in (model, again):
        each.fit(inputs, y_target, initial_epoch=2, epochs=3, **options)
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    if not everything:
        kept = [w.numpy() for w in again.non_trainable_weights if "moving" not in w.path]
        for ours, old in zip(kept, frozen, strict=True):
            np.testing.assert_array_equal(ours, old)


@conformance.every_model
def test_any_layer_of_any_model_stays_frozen(case, tmp_path):
    inputs, y_target = case.data()
    model = case.make()
    model({**inputs, "y_target": y_target})
    layers = [layer for layer in sublayers(model) if layer.trainable_weights]
    for layer in layers[:: max(1, len(layers) // 4)]:
        layer.trainable = False
        model.save(tmp_path / "model.keras")
        assert _flags(keras.saving.load_model(tmp_path / "model.keras")) == _flags(model)


@conformance.every_model
def test_what_is_frozen_before_the_weights_are_made_is_frozen(case):
    model = case.make()
    model.trainable = False
    if hasattr(model, "local_taylor"):
        model = case.make()
        model.local_taylor.trainable = False
    model(case.data()[0])
    assert not any(layer.trainable for layer in sublayers(model))
    assert model.trainable_weights == []


def test_normalisation_that_a_user_has_thawed_stays_thawed(tmp_path):
    case = next(case for case in conformance.MODELS if case.name == "taylorformer_x_only")
    model = case.make()
    model({**dict(zip(("y_target",), case.data()[1:], strict=True)), **case.data()[0]})
    assert not _layer(model, "derivative_normalization").trainable
    _layer(model, "derivative_normalization").trainable = True
    model.save(tmp_path / "model.keras")
    assert _flags(keras.saving.load_model(tmp_path / "model.keras")) == _flags(model)


def test_a_copy_from_a_configuration_is_as_frozen_as_that_says():
    model = conformance.MODELS[0].make(trainable=False)
    again = Taylorformer.from_config(model.get_config())
    clone = keras.models.clone_model(model)
    for each in (model, again, clone):
        each({**conformance.points()[0]})
        assert each.trainable_weights == []
    extractor = RepresentationExtractor(encoding_dim=4, trainable=False)
    model = Taylorformer(**conformance.TINY, representation_extractor=extractor)
    again = Taylorformer.from_config(model.get_config())
    assert not again.representation_extractor.trainable


def test_files_without_a_word_on_frozen_layers_load_as_they_did():
    model = conformance.MODELS[0].make()
    inputs, _ = conformance.points()
    model(inputs)
    flags = _flags(model)
    freeze_as(model, {"x_dims": 1, "y_dims": 1})
    assert _flags(model) == flags
    assert numbered_weights(model, None) == model.trainable_variables
    state = frozen_state(model)
    freeze_as(model, {**state, "num_layers": 3})
    assert _flags(model) == flags
    # Other weights, as after LoRA: layers count.
    number = sublayers(model).index(_layer(model, "mha_x"))
    freeze_as(model, {**state, "num_weights": 3, "frozen_layers": [number]})
    assert not any(weight.trainable for weight in _layer(model, "mha_x").weights)
    message = "the model must have 3 layers, of which 1 are frozen.*Received: Taylorformer with"
    with pytest.raises(ValueError, match=message):
        freeze_as(model, {**state, "num_layers": 3, "frozen_layers": [1]})


def test_an_optimizer_that_was_not_built_is_loaded_without_a_word(tmp_path):
    model = conformance.MODELS[0].make()
    model.compile()
    inputs, y_target = conformance.points()
    model(inputs)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert not again.optimizer.built
    again.compile(run_eagerly=True)
    assert np.isfinite(again.fit(inputs, y_target, verbose=0).history["loss"][0])


def test_a_file_of_another_dtype_is_refused_in_plain_words(tmp_path):
    model = conformance.MODELS[0].make()
    model(conformance.points()[0])
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    parts["config.json"] = parts["config.json"].replace(b'"float32"', b'"float64"')
    with zipfile.ZipFile(tmp_path / "wide.keras", "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    message = "`dtype` must be float32, mixed_float16 or mixed_bfloat16.*dtype='float64'"
    with pytest.raises(ValueError, match=message):
        keras.saving.load_model(tmp_path / "wide.keras")


@pytest.fixture
def restored_dtype():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize("kind", [Taylorformer, NeuralProcess, TransformerNeuralProcess])
def test_a_default_dtype_is_refused_as_a_given_one(restored_dtype, kind):
    keras.config.set_dtype_policy("float64")
    with pytest.raises(ValueError, match=r"`dtype` must be float32.*dtype='float64'"):
        kind()
    # The default of numbers that have no policy does not matter to a model of float32.
    keras.config.set_floatx("float64")
    case = {Taylorformer: 0, NeuralProcess: 7, TransformerNeuralProcess: 9}[kind]
    model = conformance.MODELS[case].make(dtype="float32")
    assert type(model) is kind
    model.compile(run_eagerly=True)
    inputs, y_target = conformance.points()
    assert np.isfinite(model.fit(inputs, y_target, verbose=0).history["loss"][0])
    assert model.sample(inputs, 2, seed=0).dtype == tf.float32
