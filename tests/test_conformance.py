"""What every layer and every model must do; see `conformance.py`."""

import itertools
import json
import warnings

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch

layers = conformance.every_layer
models = conformance.every_model


def _flat(outputs):
    return tf.nest.flatten(outputs)


def _assert_same(left, right, tolerance=0.0):
    for a, b in zip(_flat(left), _flat(right), strict=True):
        if a.dtype == tf.bool:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(
                tf.cast(a, tf.float32), tf.cast(b, tf.float32), rtol=tolerance, atol=tolerance
            )


def _tensors(structure):
    return tf.nest.map_structure(tf.constant, structure)


def _call(layer, case, sizes, **flags):
    arguments, named = _tensors(case.arguments(*sizes))
    if not case.takes_training:
        flags.pop("training", None)
    return layer(*arguments, **named, **flags)


def _unspecific(tensor):
    """A specification with free batch and lengths; a size of 1 is one that broadcasts."""
    sizes = [None if size > 1 or axis == 0 else 1 for axis, size in enumerate(tensor.shape)]
    if tensor.dtype != tf.bool:
        sizes[-1] = tensor.shape[-1]
    return tf.TensorSpec(sizes, tensor.dtype)


@layers
def test_layer_in_a_graph_with_free_lengths_equals_eager(case):
    layer = case.make()
    arguments, named = _tensors(case.arguments(5, 4))
    eager = layer(*arguments, **named)
    specs = tf.nest.map_structure(_unspecific, (arguments, named))
    graph = tf.function(lambda a, k: layer(*a, **k), input_signature=specs, autograph=False)
    _assert_same(graph(arguments, named), eager, 1e-5)
    longer = _tensors(case.arguments(7, 2))
    _assert_same(graph(*longer), layer(*longer[0], **longer[1]), 1e-5)


@layers
def test_layer_round_trips_through_its_config(case):
    layer = case.make()
    expected = _call(layer, case, (5, 4))
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    _call(again, case, (5, 4))
    again.set_weights(layer.get_weights())
    _assert_same(_call(again, case, (5, 4)), expected)


@layers
def test_layer_is_made_of_its_seed(case):
    first, second = case.make(), case.make()
    _call(first, case, (5, 4))
    _call(second, case, (5, 4))
    for a, b in zip(first.trainable_weights, second.trainable_weights, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@layers
def test_gradient_reaches_every_weight_of_a_layer(case):
    layer = case.make()
    _call(layer, case, (5, 4))
    with tf.GradientTape() as tape:
        outputs = [o for o in _flat(_call(layer, case, (5, 4))) if o.dtype != tf.bool]
        loss = tf.add_n([tf.reduce_sum(tf.sin(tf.cast(o, tf.float32) + 0.3)) for o in outputs])
    for weight, gradient in zip(
        layer.trainable_weights, tape.gradient(loss, layer.trainable_weights), strict=True
    ):
        assert gradient is not None, weight.path
        assert np.any(np.asarray(gradient) != 0) or weight.path.endswith("key/bias"), weight.path


@layers
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_layer_in_mixed_precision_is_close_to_float32(case, policy):
    layer, exact = case.make(dtype=policy), case.make()
    expected = _call(exact, case, (5, 4))
    _call(layer, case, (5, 4))
    layer.set_weights(exact.get_weights())
    outputs = _call(layer, case, (5, 4))
    dtype = layer.compute_dtype if case.dtype_follows_policy else "float32"
    for output in _flat(outputs):
        assert output.dtype in (tf.bool, tf.as_dtype(dtype))
    _assert_same(outputs, expected, 0.1)


@keras.saving.register_keras_serializable("conformance")
class Holder(keras.Model):
    """A model around one layer, to save it as a `.keras` file."""

    def __init__(self, layer, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.layer = layer

    def build(self, *_, **__):
        self.built = True

    def call(self, arguments):
        positional, named = arguments
        return self.layer(*positional, **named)

    def get_config(self):
        return {
            **super().get_config(),
            "layer": keras.saving.serialize_keras_object(self.layer),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "layer": keras.saving.deserialize_keras_object(config["layer"])})


@layers
def test_subclass_with_one_more_argument_round_trips_through_a_file(case, tmp_path):
    base = type(case.make())

    @keras.saving.register_keras_serializable(f"conformance_{case.name}")
    class Subclass(base):
        def __init__(self, *args, colour="red", **kwargs):
            super().__init__(*args, **kwargs)
            self.colour = colour

        def get_config(self):
            return {**super().get_config(), "colour": self.colour}

    config = {**case.make().get_config(), "colour": "blue"}
    model = Holder(Subclass.from_config(config))
    arguments = _tensors(case.arguments(5, 4))
    expected = model(arguments)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.layer.colour == "blue"
    assert type(again.layer) is Subclass
    _assert_same(again(arguments), expected)


def _as_numpy(value, integer, floating):
    """Numbers of a configuration as NumPy's; what is nested is configured by itself."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return floating(value)
    if isinstance(value, list):
        return [_as_numpy(part, integer, floating) for part in value]
    return np.str_(value) if isinstance(value, str) else value


def _from_numpy_numbers(made, integer, floating):
    """Makes a layer or model anew from NumPy numbers, and checks that it remembers plain ones."""
    config = made.get_config()
    numbers = {
        key: _as_numpy(value, integer, floating)
        for key, value in config.items()
        if key not in ("name", "trainable", "dtype")
    }
    again = type(made).from_config({**config, **numbers})
    plain = {
        key: float(floating(value)) if isinstance(value, float) else value
        for key, value in config.items()
    }
    assert again.get_config() == plain
    assert json.loads(json.dumps(again.get_config())) == json.loads(json.dumps(plain))
    for key, value in again.get_config().items():
        for part in value if isinstance(value, list) else [value]:
            assert not isinstance(part, np.generic), key
    return again


numbers = pytest.mark.parametrize(
    "integer, floating", [(np.int64, np.float64), (np.int32, np.float32)]
)


@numbers
@layers
def test_a_layer_of_numpy_numbers_remembers_plain_ones_and_saves(case, integer, floating, tmp_path):
    layer = _from_numpy_numbers(case.make(), integer, floating)
    model = Holder(layer)
    arguments = _tensors(case.arguments(5, 4))
    expected = model(arguments)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    ours, theirs = again.layer.get_config(), layer.get_config()
    # What is nested has been built in the one and is named by class in the other.
    for key, value in theirs.items():
        assert isinstance(value, dict) or ours[key] == value
    _assert_same(again(arguments), expected)


@numbers
@models
def test_a_model_of_numpy_numbers_remembers_plain_ones_and_saves(case, integer, floating, tmp_path):
    plain = case.make()
    model = _from_numpy_numbers(plain, integer, floating)
    for each in (plain, model):
        each.build(case.shapes())
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    for ours, expected in zip(again.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, expected)


@models
@pytest.mark.parametrize("policy", ["float64", "int32"])
def test_a_model_refuses_a_dtype_it_cannot_train_in(case, policy):
    message = f"`dtype` must be float32, mixed_float16 or mixed_bfloat16.*dtype='{policy}'"
    with pytest.raises(ValueError, match=message):
        case.make(dtype=policy)
    # As a loaded file would.
    config = case.make().get_config()
    config["dtype"]["config"]["name"] = policy
    with pytest.raises(ValueError, match=message):
        type(case.make()).from_config(config)


@layers
def test_a_layer_on_its_own_works_in_float64(case):
    layer, exact = case.make(dtype="float64"), case.make()
    expected = _call(exact, case, (5, 4))
    _call(layer, case, (5, 4))
    layer.set_weights(exact.get_weights())
    _assert_same(_call(layer, case, (5, 4)), expected, 1e-4)


def _with_targets(inputs, y_target):
    return {**inputs, "y_target": y_target}


@models
def test_model_gives_float32_of_the_documented_shape_in_one_graph(case):
    model = case.make()
    inputs, y_target = case.data()
    eager = model(_with_targets(inputs, y_target))
    assert set(eager) == {"mean", "scale"}
    specs = {
        key: tf.TensorSpec([None, None, value.shape[-1]])
        for key, value in _with_targets(inputs, y_target).items()
    }
    graph = tf.function(model, input_signature=[specs], autograph=False)
    lengths = itertools.product((0, 1, 5), (1, 4)) if case.times == "free" else [(5, 4)]
    for num_context, num_target in lengths:
        inputs, y_target = case.data(num_context=num_context, num_target=num_target)
        batch = _tensors(_with_targets(inputs, y_target))
        outputs = graph(batch)
        for value in outputs.values():
            assert value.shape == y_target.shape
            assert value.dtype == tf.float32
            assert np.all(np.isfinite(value))
        assert np.all(outputs["scale"].numpy() >= model.min_scale)
        _assert_same(outputs, model(batch), 1e-4)


@models
def test_float64_and_integer_inputs_give_the_float32_numbers(case):
    model = case.make()
    inputs, y_target = case.data()
    expected = model(_with_targets(inputs, y_target))
    wide = {key: value.astype("float64") for key, value in inputs.items()}
    _assert_same(model(_with_targets(wide, y_target.astype("float64"))), expected)
    _assert_same(model.log_prob(wide, y_target.astype("float64")), model.log_prob(inputs, y_target))
    if case.times == "free":
        whole = {**inputs, "x_context": np.arange(15 * case.x_dims).reshape(3, 5, case.x_dims)}
    else:  # whole times, in order, without a gap between context and targets
        whole = {key: np.round(9 * value).astype("int64") for key, value in inputs.items()}
    as_float = {key: value.astype("float32") for key, value in whole.items()}
    _assert_same(model(whole), model(as_float))


@models
def test_gradient_reaches_every_weight_of_a_model(case):
    model = case.make()
    inputs, y_target = case.data(num_context=9, num_target=7, batch_size=4)
    with tf.GradientTape() as tape:
        model(_with_targets(inputs, y_target))
        loss = -tf.reduce_sum(model.log_prob(inputs, y_target))
    gradients = tape.gradient(loss, model.trainable_variables)
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, weight.path
        # The bias of a key moves all scores of a row alike, and nothing else.
        assert np.any(np.asarray(gradient) != 0) or weight.path.endswith("key/bias"), weight.path


@models
def test_model_file_holds_everything(case, tmp_path):
    model = case.make()
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), run_eagerly=True)
    inputs, y_target = case.data()
    model.fit(inputs, y_target, epochs=2, batch_size=2, verbose=0)
    expected = model(_with_targets(inputs, y_target))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    _assert_same(again(_with_targets(inputs, y_target)), expected)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) == 4
    # Both resume alike: optimizer state and seeds are in the file.
    for each in (model, again):
        each.fit(inputs, y_target, epochs=1, batch_size=3, verbose=0, shuffle=False)
    for a, b in zip(again.weights, model.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-6)


@models
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_one_training_step_in_mixed_precision(case, policy):
    model = case.make(dtype=policy)
    optimizer = keras.optimizers.SGD(1e-3)
    if policy == "mixed_float16":
        # The default first scale, 2^15, makes the first few steps overflow and be left out.
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=64.0)
    model.compile(optimizer, run_eagerly=True)
    inputs, y_target = case.data()
    outputs = model(_with_targets(inputs, y_target), training=True)
    assert outputs["mean"].dtype == outputs["scale"].dtype == tf.float32
    before = [w.numpy() for w in model.trainable_variables]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        history = model.fit(inputs, y_target, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    after = [w.numpy() for w in model.trainable_variables]
    assert all(np.all(np.isfinite(w)) for w in after)
    assert any(np.any(a != b) for a, b in zip(after, before, strict=True))
    assert model.log_prob(inputs, y_target).dtype == tf.float32


_JUNK = (np.nan, 1e6, np.inf)


def _masked(case, everything):
    """A batch with masks, and the same with junk at masked points, of all kinds side by side."""
    inputs, y_target = case.data(num_context=6, num_target=5, batch_size=4)
    rng = np.random.default_rng(1)
    masks = {
        "context_mask": (rng.random((4, 6)) < 0.6) & (not everything),
        "target_mask": (rng.random((4, 5)) < 0.6) & (not everything),
    }
    masks["context_mask"][1] = False
    masks["target_mask"][2] = False
    spoiled = {}
    for key, value in _with_targets(inputs, y_target).items():
        mask = masks["context_mask" if key.endswith("context") else "target_mask"]
        junk = rng.choice(np.float32(_JUNK), value.shape)
        assert set(np.float32(_JUNK)[~np.isnan(_JUNK)]) <= set(junk[~mask].ravel())
        spoiled[key] = np.where(mask[..., None], value, junk)
    return {**inputs, **masks}, y_target, spoiled, masks


@models
@pytest.mark.parametrize(
    ("training", "everything"),
    [
        pytest.param(True, False, id="training-some"),
        pytest.param(False, True, id="inference-all"),
        pytest.param(True, True, id="training-all", marks=pytest.mark.slow),
        pytest.param(False, False, id="inference-some", marks=pytest.mark.slow),
    ],
)
def test_masked_values_change_nothing(case, everything, training):
    case.needs("missing context rows")
    model = case.make()

    def run(batch):
        model.set_weights(weights_before)
        for generator in conformance.seed_generators(model):
            generator.state.assign([1, 0])
        weights = model._sequence_weights(batch, None)
        with tf.GradientTape() as tape:
            outputs, nll, loss = model._loss(batch, weights, training=training)
        return outputs, nll, loss, tape.gradient(loss, model.trainable_variables)

    model(_with_targets(*case.data(num_context=6, num_target=5)))
    weights_before = model.get_weights()
    clean, y_target, spoiled, masks = _masked(case, everything)
    expected = run(prepare_batch(_with_targets(clean, y_target)))
    outcome = run(prepare_batch({**spoiled, **masks}))
    for a, b in zip(_flat(expected), _flat(outcome), strict=True):
        np.testing.assert_array_equal(a, b)
    outputs, _, loss, gradients = outcome
    hidden = ~masks["target_mask"]
    assert np.all(outputs["mean"].numpy()[hidden] == 0)
    assert np.all(outputs["scale"].numpy()[hidden] == 1)
    assert all(np.all(np.isfinite(g)) for g in gradients)
    if everything:
        assert loss == 0
        assert all(np.all(g.numpy() == 0) for g in gradients)
    y_spoiled = spoiled.pop("y_target")
    np.testing.assert_array_equal(
        model.log_prob({**spoiled, **masks}, y_spoiled), model.log_prob(clean, y_target)
    )


@models
def test_padding_a_ragged_batch_changes_nothing(case):
    case.needs("free lengths", "missing context rows")
    model = case.make()
    sizes = [(5, 4), (2, 1), (0, 3)]
    alone = [case.data(num_context=c, num_target=t, batch_size=1, seed=c) for c, t in sizes]
    batch, y = {}, np.full((3, 4, case.y_dims), np.nan, "float32")
    for key, dims in (("x_context", 5), ("y_context", 5), ("x_target", 4)):
        batch[key] = np.full((3, dims, alone[0][0][key].shape[-1]), np.nan, "float32")
        for row, (inputs, _) in enumerate(alone):
            batch[key][row, : inputs[key].shape[1]] = inputs[key][0]
    for row, (_, y_target) in enumerate(alone):
        y[row, : y_target.shape[1]] = y_target[0]
    batch["context_mask"] = np.arange(5)[None] < np.array([c for c, _ in sizes])[:, None]
    batch["target_mask"] = np.arange(4)[None] < np.array([t for _, t in sizes])[:, None]
    together = model.log_prob(batch, y)
    for row, (inputs, y_target) in enumerate(alone):
        expected = model.log_prob(inputs, y_target)[0]
        np.testing.assert_allclose(together[row], expected, rtol=1e-5, atol=1e-5)


@models
def test_order_of_the_context_does_not_matter(case):
    case.needs("any order of the context")
    model = case.make()
    inputs, y_target = case.data(num_context=8, num_target=5)
    grid = np.linspace(-1, 1, 13, dtype="float32")[None, :, None].repeat(3, 0)
    even = np.concatenate([grid] + [grid**2] * (case.x_dims - 1), axis=-1)
    twins = inputs["x_context"].copy()
    twins[:, 1::2] = twins[:, ::2]
    for x_context, x_target in (
        (inputs["x_context"], inputs["x_target"]),
        (even[:, ::2][:, :7], even[:, 1::2]),
        (twins, twins[:, :5]),
    ):
        count = x_context.shape[1]
        batch = {
            "x_context": x_context,
            "y_context": inputs["y_context"][:, :count],
            "x_target": x_target,
            "y_target": y_target[:, :5].repeat(2, 1)[:, : x_target.shape[1]],
        }
        expected = model(batch)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(count)
            shuffled = {
                key: value[:, order] if key.endswith("context") else value
                for key, value in batch.items()
            }
            _assert_same(model(shuffled), expected, 1e-5)


@models
def test_samples_do_not_depend_on_what_they_are_drawn_with(case):
    model = case.make()
    inputs, _ = case.data(batch_size=4)
    keys = np.array([3, -1, 7, 2**40])
    together = model.sample(inputs, 5, seed=11, sequence_keys=keys)
    assert together.shape == (5, *inputs["x_target"].shape[:2], case.y_dims)
    spread = np.std(together, axis=0)
    assert np.all(spread > 0)
    one = {key: value[2:3] for key, value in inputs.items()}
    alone = model.sample(one, 3, seed=11, sequence_keys=keys[2:3])
    scale = np.max(np.abs(together))
    np.testing.assert_allclose(alone, together[:3, 2:3], atol=1e-5 * scale)
    chunks = model.sample(inputs, 5, seed=11, sequence_keys=keys, chunk_size=3)
    np.testing.assert_allclose(chunks, together, atol=1e-5 * scale)
    other = model.sample(inputs, 5, seed=12, sequence_keys=keys)
    assert np.all(other != together)


@pytest.mark.parametrize("name", ["taylorformer", "np", "tnp", "autoformer"])
def test_arguments_of_methods_may_be_numpy_numbers(name):
    case = next(case for case in conformance.MODELS if case.name == name)
    model = case.make(predict_samples=np.int32(2))
    inputs, y_target = case.data()
    plain = model.sample(inputs, 3, seed=3, order="random", chunk_size=4)
    numbers = {"num_samples": np.int64(3), "seed": np.uint32(3), "chunk_size": np.int32(4)}
    drawn = model.sample(inputs, **numbers, order=np.str_("random"))
    np.testing.assert_array_equal(drawn, plain)
    if name == "np":
        plain = model.log_prob(inputs, y_target, num_latents=3, seed=5)
        scores = model.log_prob(inputs, y_target, num_latents=np.uint8(3), seed=np.int16(5))
        np.testing.assert_array_equal(scores, plain)
        latents = {"num_latents": np.int64(3), "seed": np.uint64(5)}
        assert np.all(np.isfinite(model.marginal_log_prob(inputs, y_target, **latents)))


@models
def test_wrong_batches_are_refused_in_plain_words(case):
    model = case.make()
    inputs, y_target = case.data()
    with pytest.raises(ValueError, match="must have the keys x_context, y_context, x_target"):
        model({"x_context": inputs["x_context"]})
    with pytest.raises(ValueError, match="must have the keys"):
        model({**inputs, "x_targets": inputs["x_target"]})
    with pytest.raises(ValueError, match=r"`y_context` must have the shape \[B, N_C, D_y\] with"):
        model({**inputs, "y_context": inputs["y_context"][:, :2]})
    with pytest.raises(ValueError, match=r"`x_target` must have the shape \[B, N_T, D_x\]"):
        model({**inputs, "x_target": inputs["x_target"][0]})
    with pytest.raises(ValueError, match=r"with D_y = "):
        model.log_prob(inputs, np.concatenate([y_target, y_target], axis=-1))
    with pytest.raises(TypeError, match="`inputs` must be a dictionary"):
        model.log_prob(inputs["x_context"], y_target)
