"""Averages of y by the heads of the towers as terms of the mean, each with a gate."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer import Taylorformer, load_model
from tests import two_samplers

SMALL = {
    "num_heads": 2,
    "head_dim": 4,
    "width": 8,
    "num_layers": 2,
    "encoding_dim": 2,
    "dropout": 0.0,
    "seed": 0,
}


def batch_of(rng, num_context=7, num_target=4, sequences=2):
    x = rng.uniform(-1, 1, (sequences, num_context + num_target, 1)).astype("float32")
    y = rng.normal(size=x.shape).astype("float32")
    return {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
        "y_target": y[:, num_context:],
    }


def built(batch, **settings):
    model = Taylorformer(**{**SMALL, "attention_terms": ("x", "xy"), **settings})
    model(batch)
    return model


def with_open_gates(model, bias):
    """Leaves nothing of A, and sets all gates to sigmoid(bias - 2)."""
    network = model.local_taylor.network
    for dense in (network.mean_dense, network.gate_dense):
        dense.kernel.assign(tf.zeros_like(dense.kernel))
        dense.bias.assign(tf.zeros_like(dense.bias))
    network.gate_dense.bias.assign(bias + tf.zeros_like(network.gate_dense.bias))
    return model


@pytest.mark.parametrize("tower", ["x", "xy"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_open_gates_move_the_mean_to_the_averages(rng, tower, num_layers):
    batch = batch_of(rng)
    options = {"num_heads": 1, "attention_terms": (tower,), "num_layers": num_layers}
    model = with_open_gates(built(batch, **options), 40.0)
    mean = model(batch)["mean"].numpy()
    features = model.local_taylor.representation_extractor(model.prepare(batch))
    network = model.local_taylor.network
    outputs = network(features)
    np.testing.assert_allclose(mean, outputs["averages"].numpy()[:, :, 0], rtol=1e-5, atol=1e-6)
    # Averages lie among the seen values, and earlier targets are among these.
    y = np.concatenate([batch["y_context"], batch["y_target"]], axis=1)[..., 0]
    for index in range(4):
        seen = y[:, : 7 + index]
        assert np.all(mean[:, index, 0] <= seen.max(axis=1) + 1e-6)
        assert np.all(mean[:, index, 0] >= seen.min(axis=1) - 1e-6)


def test_closed_gates_leave_the_nearest_point(rng):
    batch = batch_of(rng)
    model = with_open_gates(built(batch), -60.0)
    features = model.local_taylor.representation_extractor(model.prepare(batch))
    np.testing.assert_allclose(model(batch)["mean"], features["taylor_terms"], atol=1e-6)


def test_gates_begin_almost_closed_and_are_learnt(rng):
    batch = batch_of(rng)
    model = built(batch)
    gates = model.local_taylor.network.gate_dense
    assert gates.bias.numpy().tolist() == [0.0] * 4
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch)["mean"])
    assert np.abs(tape.gradient(loss, gates.kernel.value)).max() > 0


def test_towers_return_the_same_with_averages(rng):
    batch = batch_of(rng)
    model = built(batch)
    features = model.local_taylor.representation_extractor(model.prepare(batch))
    network = model.local_taylor.network
    visible = tf.linalg.band_part(tf.ones([1, 4, 11]), -1, 7) > 0
    sees = {"visible": visible, "context_visible": visible[:, :1, :7]}
    x_fe, y = features["x_fe"], features["y"]
    of_xy = (x_fe, features["y_fe"], features["y_seen"])
    for plain, (same, averages) in (
        (network.mha_x(x_fe, y, **sees), network.mha_x.with_averages(x_fe, y, **sees)),
        (network.mha_xy(*of_xy, **sees), network.mha_xy.with_averages(*of_xy, y, **sees)),
    ):
        np.testing.assert_allclose(plain, same, rtol=1e-6, atol=1e-6)
        assert averages.shape == (2, 4, 2, 1)


def test_without_any_point_the_first_term_is_zero(rng):
    batch = batch_of(rng, num_context=0)
    model = with_open_gates(built(batch), 40.0)
    mean = model(batch)["mean"].numpy()
    assert np.all(mean[:, 0] == 0) and np.isfinite(mean).all()


@pytest.mark.parametrize("settings", [{"fitted_order": 2}, {"num_layers": 1}])
def test_both_samplers_draw_the_same(rng, settings):
    batch = batch_of(rng, sequences=3)
    inputs = two_samplers.masked({key: batch[key] for key in batch if key != "y_target"})
    model = with_open_gates(built(batch, **settings), 2.0)
    two_samplers.assert_close(*two_samplers.both(model, inputs))


def test_the_option_is_saved(rng, tmp_path):
    batch = batch_of(rng)
    model = built(batch)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert list(loaded.attention_terms) == ["x", "xy"]
    np.testing.assert_array_equal(loaded(batch)["mean"], model(batch)["mean"])


@pytest.mark.parametrize(
    "settings",
    [
        {"towers": ("xy",), "attention_terms": ("x",)},
        {"attention_terms": "x"},
        {"attention_terms": ("x", "x")},
        {"attention_terms": True},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(ValueError, match="`attention_terms` must name some of the towers"):
        Taylorformer(**{**SMALL, **settings})


def test_mixed_precision_makes_float32_terms(rng):
    batch = batch_of(rng)
    model = Taylorformer(
        **SMALL, attention_terms=("x", "xy"), dtype=keras.DTypePolicy("mixed_bfloat16")
    )
    assert model(batch)["mean"].dtype == tf.float32
