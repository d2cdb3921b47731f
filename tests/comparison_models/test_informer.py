"""The Informer: its formulas, its size, no leak, the same forecast in any batch, learning."""

import informer_by_loops
import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance import seed_generators

from taylorformer.comparison_models.informer import Informer
from taylorformer.comparison_models.informer_decoder_layer import InformerDecoderLayer
from taylorformer.comparison_models.informer_encoder_layer import InformerEncoderLayer
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.resumable_fit import resumable_fit

TINY = {"width": 8, "num_heads": 2, "feed_forward": 12, "seed": 3, "predict_samples": 4}
NUM_CONTEXT, NUM_TARGET = 21, 10


def _data(batch=3, y_dims=1, num_features=2, num_context=NUM_CONTEXT, num_target=NUM_TARGET):
    rng = np.random.default_rng(0)
    count = num_context + num_target
    times = np.arange(count, dtype="float32")[:, None] / 10
    x = np.concatenate([times, *[np.sin(times + k) for k in range(num_features)]], axis=-1)
    x = np.broadcast_to(x, (batch, *x.shape))
    phase = rng.uniform(0, 6, (batch, 1, y_dims))
    y = np.sin(times * 2 + phase) + 0.1 * rng.normal(size=(batch, count, y_dims))
    y = y.astype("float32")
    inputs = {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
    }
    return inputs, y[:, num_context:]


def _built(y_dims=1, num_features=2, **settings):
    model = Informer(**{**TINY, **settings})
    inputs, _ = _data(y_dims=y_dims, num_features=num_features)
    model.build({key: value.shape for key, value in inputs.items()})
    return model


def _shaken(layer):
    """Moves all weights, so that no bias is 0 and no scale 1."""
    rng = np.random.default_rng(5)
    for weight in layer.weights:
        value = weight.numpy() + 0.3 * rng.normal(size=weight.shape)
        weight.assign(np.abs(value) if "variance" in weight.path else value)
    return layer


def _rows(length, seed=1):
    return tf.random.stateless_normal([3, length, 8], seed=(seed, 2))


def test_layers_are_what_the_formulas_say():
    sizes = {"num_heads": 2, "head_dim": 4, "width": 8, "feed_forward": 12, "factor": 2}
    rows, encoded = _rows(20), _rows(7, seed=2)
    layer = InformerEncoderLayer(**sizes, seed=0)
    layer.build(rows.shape)
    expected = informer_by_loops.encoder_layer(_shaken(layer), np.float64(rows))
    np.testing.assert_allclose(layer(rows), expected, rtol=1e-5, atol=1e-5)
    layer = InformerDecoderLayer(**sizes, seed=0)
    layer.build(rows.shape, encoded.shape)
    expected = informer_by_loops.decoder_layer(
        _shaken(layer), np.float64(rows), np.float64(encoded)
    )
    np.testing.assert_allclose(layer(rows, encoded), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"encoder_layers": 3, "decoder_layers": 2, "factor": 1, "start_length": 0, "y_dims": 2},
        {"distilling": False, "factor": 2, "start_length": 21, "num_features": 0},
    ],
    ids=["default", "deep", "plain"],
)
def test_the_forecast_is_what_the_formulas_say(settings):
    model = _shaken(_built(**settings))
    inputs, _ = _data(y_dims=model.y_dims, num_features=model.x_dims - 1)
    rows = (inputs["y_context"], inputs["x_context"][..., 1:], inputs["x_target"][..., 1:])
    expected = informer_by_loops.forecast(model, *map(np.float64, rows))
    outputs = model(inputs)["mean"].numpy()
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)))


@pytest.mark.parametrize("layers, distilling, lengths", [
    (2, True, [21, 11]), (4, True, [21, 11, 6, 3]), (3, False, [21, 21, 21]),
])  # fmt: skip
def test_distilling_halves_the_length_between_two_layers(layers, distilling, lengths, monkeypatch):
    seen = []
    call = InformerEncoderLayer.call

    def watched(self, rows, training=False):
        seen.append(rows.shape[1])
        return call(self, rows, training=training)

    monkeypatch.setattr(InformerEncoderLayer, "call", watched)
    model = _built(encoder_layers=layers, distilling=distilling)
    model(_data()[0])
    assert seen == lengths


@pytest.mark.parametrize("y_dims, num_features, millions", [(7, 6, 11.33), (1, 6, 11.31)])
def test_official_sizes(y_dims, num_features, millions):
    model = Informer(seed=0)
    shapes = {key: (None, 96, 1 + num_features) for key in ("x_context", "x_target")}
    model.build({**shapes, "y_context": (None, 96, y_dims)})
    count = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    width, feed_forward = 512, 2048
    norm = 2 * width
    attention = 4 * (width * width + width)
    pointwise = width * feed_forward + feed_forward + feed_forward * width + width + norm
    embedding = 3 * y_dims * width + num_features * width
    encoder = 2 * (attention + norm + pointwise) + norm
    distilling = 3 * width * width + width + norm
    decoder = 2 * (attention + norm) + pointwise + norm + width * y_dims + y_dims
    assert count == 2 * embedding + encoder + distilling + decoder
    assert count == pytest.approx(millions * 1e6, rel=0.001)
    # The paper's table has 45 megabytes of float32.
    assert 4 * count / 1e6 == pytest.approx(45, rel=0.01)


def test_settings_are_remembered_and_checked():
    config = Informer(factor=3, distilling=False, **TINY).get_config()
    assert config["factor"] == 3 and config["distilling"] is False
    for wrong, message in (
        ({"factor": 0}, "`factor` must be at least 1"),
        ({"width": 9, "num_heads": 2}, "`width` must be a multiple of `num_heads`"),
        ({"width": 9, "num_heads": 3}, "`width` must be even"),
    ):
        with pytest.raises(ValueError, match=message):
            Informer(**{**TINY, **wrong})
    with pytest.raises(TypeError, match="`distilling` must be True or False"):
        Informer(distilling=1)


def _run(model, batch, training):
    for generator in seed_generators(model):
        generator.state.assign([1, 0])
    return model(batch, training=training)


@pytest.mark.parametrize("training", [False, True])
def test_no_target_is_read(training):
    inputs, y_target = _data()
    model = _built(factor=1)
    expected = _run(model, {**inputs, "y_target": y_target}, training)
    for junk in (1e6, -1e6):
        outputs = _run(model, {**inputs, "y_target": np.full_like(y_target, junk)}, training)
        for key, value in expected.items():
            np.testing.assert_array_equal(outputs[key], value)
    target = tf.constant(y_target)
    with tf.GradientTape() as tape:
        tape.watch(target)
        outputs = _run(model, {**inputs, "y_target": target}, training)
        total = tf.reduce_sum(outputs["mean"] + outputs["scale"])
    assert tape.gradient(total, target) is None


def test_a_forecast_is_the_same_in_any_batch_and_at_any_time():
    inputs, _ = _data(batch=5)
    model = _built(factor=1, dropout=0.3)
    together = model(inputs)["mean"].numpy()
    model(inputs, training=True)
    model.distillings[0].norm.set_weights(_built(factor=1).distillings[0].norm.get_weights())
    np.testing.assert_array_equal(model(inputs)["mean"], together)
    for number in range(5):
        alone = model({key: value[number : number + 1] for key, value in inputs.items()})
        np.testing.assert_allclose(alone["mean"][0], together[number], rtol=1e-5, atol=1e-5)


def test_training_draws_other_keys():
    inputs, _ = _data()
    model = _built(factor=1, dropout=0.0)
    first, second = (model(inputs, training=True)["mean"].numpy() for _ in range(2))
    assert np.any(first != second)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_is_close(policy):
    # With all queries chosen: rounding may change a choice.
    model, exact = _built(dtype=policy, factor=20), _built(factor=20)
    model.set_weights(exact.get_weights())
    inputs, _ = _data()
    outputs = model(inputs)["mean"]
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, exact(inputs)["mean"], atol=0.05)


def _sines(count, seed):
    """Noisy sines of different phases, 24 rows to forecast 12."""
    rng = np.random.default_rng(seed)
    times = np.arange(36, dtype="float32")[None, :, None].repeat(count, 0)
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    y = np.sin(times * (2 * np.pi / 12) + phase) + 0.1 * rng.normal(size=times.shape)
    y = y.astype("float32")
    x = times / 24
    return {"x_context": x[:, :24], "y_context": y[:, :24], "x_target": x[:, 24:]}, y[:, 24:]


@pytest.mark.slow
def test_it_learns_to_forecast_a_noisy_sine():
    model = Informer(**{**TINY, "width": 16, "feed_forward": 32}, factor=3)
    model.compile(keras.optimizers.Adam(3e-3))
    inputs, y_target = _sines(256, seed=0)
    model.fit(inputs, y_target, batch_size=32, epochs=9, verbose=0)
    inputs, y_target = _sines(64, seed=1)
    mse = np.mean(np.square(model(inputs)["mean"] - y_target))
    last = np.mean(np.square(inputs["y_context"][:, -1:] - y_target))
    assert mse < 0.15 * last


@pytest.mark.slow
def test_training_that_is_stopped_resumes_to_the_same_weights(tmp_path):
    inputs, y_target = _data(batch=8)
    data = tf.data.Dataset.from_tensor_slices((inputs, y_target))

    def fit(steps, name):
        model = Informer(**TINY, factor=1, dropout=0.2)
        plan = TrainingPlan(4, 1e-3, "constant", max_steps=steps, steps_per_epoch=2)
        model.compile(plan.make_optimizer(), run_eagerly=True)
        resumable_fit(
            model,
            lambda first: data.repeat().batch(4).skip(first),
            data.batch(4),
            plan,
            checkpoint=tmp_path / name,
            resume=True,
        )
        return model

    expected = fit(4, "whole.npz")
    fit(2, "parts.npz")
    resumed = fit(4, "parts.npz")
    for ours, theirs in zip(resumed.variables, expected.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)
