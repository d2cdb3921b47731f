"""Taylor terms whose derivatives are fitted together."""

import math

import numpy as np
import pytest
import tensorflow as tf

from taylorformer import RepresentationExtractor, Taylorformer
from taylorformer.data_wrangler.features.fitted_terms import (
    compress,
    fitted_terms,
    fitted_weights,
)


def terms_by_hand(x, y, x_of_points, y_of_points, order):
    """The terms of one point, from the docstring: n(i) is the first of the seen points."""
    z, t = x_of_points[1:] - x_of_points[0], x - x_of_points[0]
    terms, before = [], 0.0
    for k in range(1, order + 1):
        if len(z) < k:
            terms.append(0.0)
            continue
        unit = max(abs(t), *np.abs(z[:k])) or 1.0
        scale = np.sqrt([math.factorial(m) for m in range(1, k + 1)])
        basis = (z[:k, np.newaxis] / unit) ** np.arange(1, k + 1) / scale
        # The ridge in its primal form: penalised coefficients.
        coefficients = np.linalg.solve(
            basis.T @ basis + 1e-4 * np.eye(k), basis.T @ (y_of_points[1 : k + 1] - y_of_points[0])
        )
        polynomial = (t / unit) ** np.arange(1, k + 1) / scale @ coefficients
        terms.append(np.clip(polynomial - before, -1, 1))
        before = polynomial
    return terms


def batch_of(x, y, num_context):
    x, y = (np.asarray(values, "float32")[np.newaxis, :, np.newaxis] for values in (x, y))
    return {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
        "y_target": y[:, num_context:],
    }


@pytest.mark.parametrize("num_context", [0, 1, 5])
def test_terms_are_those_of_a_ridge_fit_to_the_next_seen_points(rng, num_context):
    x, y = rng.uniform(-1, 1, 9), rng.normal(size=9)
    features = RepresentationExtractor(encoding_dim=2, fitted_order=3)(batch_of(x, y, num_context))
    terms = features["gated_terms"].numpy()[0, :, :, 0]
    assert terms.shape == (9 - num_context, 3)
    for i in range(num_context, 9):
        nearest = np.argsort(np.abs(x[:i] - x[i]))
        wanted = terms_by_hand(x[i], y[i], x[nearest], y[nearest], 3) if i else [0.0] * 3
        np.testing.assert_allclose(terms[i - num_context], wanted, rtol=2e-3, atol=2e-4)
    seen = features["y_seen"].numpy()[0, num_context:, -3:]
    np.testing.assert_allclose(seen, compress(tf.constant(terms)).numpy(), rtol=1e-5, atol=1e-6)


def test_each_order_brings_a_smooth_function_closer(rng):
    x = rng.uniform(-1, 1, 60)
    y = np.sin(12 * x)
    features = RepresentationExtractor(encoding_dim=2, fitted_order=3)(batch_of(x, y, 40))
    predicted = (
        features["taylor_terms"].numpy()[0, :, 0]
        + np.cumsum(features["gated_terms"].numpy()[0, :, :, 0], axis=1).T
    )
    log_errors = np.mean(np.log(np.abs(predicted - y[40:])), axis=1)
    assert np.all(np.diff(log_errors) < -0.3), log_errors


def test_noise_of_points_that_are_very_close_is_not_extrapolated():
    """The quotient of differences is 100 here, and would put the target off by 50."""
    x, y = [0.0, 1e-5, -1.0, 0.5], [0.0, 1e-3, 0.0, 0.0]
    options = {"encoding_dim": 2, "max_derivative": 1e9}
    features = RepresentationExtractor(fitted_order=2, **options)(batch_of(x, y, 3))
    assert np.abs(features["gated_terms"]).max() < 1e-2
    plain = RepresentationExtractor(taylor_order=1, **options)(batch_of(x, y, 3))
    assert np.abs(plain["taylor_terms"]).max() > 10


def test_terms_do_not_grow_without_bound_far_from_all_points():
    x = np.array([0.0, 0.1, 0.2, 100.0])
    features = RepresentationExtractor(encoding_dim=2, fitted_order=2)(batch_of(x, x**2, 3))
    assert np.all(np.abs(features["gated_terms"]) <= 1)


def test_weights_are_finite_where_points_are_the_same_or_missing():
    dx, x = tf.zeros([1, 2, 1]), tf.zeros([1, 2, 2])
    seen = tf.constant([[[True, True, True], [True, False, False]]])
    weights = fitted_weights(dx, x, dx, seen)
    np.testing.assert_array_equal(weights, np.zeros([1, 2, 2, 2]))
    y = tf.constant([[[[1.0], [np.inf]], [[2.0], [3.0]]]])
    np.testing.assert_array_equal(fitted_terms(weights, y, tf.zeros([1, 2, 1])), 0.0)


def test_compressed_terms_keep_sign_and_order_of_size():
    assert compress(tf.constant([0.0, 1.0, -1.0])).numpy().tolist() == [0.0, 1.0, -1.0]
    sizes = compress(tf.constant([1e-4, 1e-3, 1e-2, 1e-1, 10.0])).numpy()
    assert np.all(np.diff(sizes) > 0.08)


def test_gates_begin_almost_open_and_are_learnt():
    settings = {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1, "encoding_dim": 2}
    model = Taylorformer(**settings, fitted_order=2, dropout=0.0, seed=0)
    batch = batch_of(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9) ** 2, 5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch)["mean"])
    gates = model.local_taylor.network.gate_dense
    assert gates.bias.numpy().tolist() == [0.0, 0.0]
    assert model.local_taylor.representation_extractor.first_gates == [4.0, 4.0]
    assert np.abs(tape.gradient(loss, gates.kernel.value)).max() > 0
    without = Taylorformer(**settings, dropout=0.0, seed=0)
    without.build({name: values.shape for name, values in batch.items()})
    assert without.local_taylor.network.gate_dense is None


@pytest.mark.parametrize(
    ("settings", "x_dims", "message"),
    [
        ({"fitted_order": 0}, 1, "`fitted_order` must be .*1"),
        ({"fitted_order": 2, "taylor_order": 1}, 1, "`taylor_order` must be 0 with `fitted_order`"),
        (
            {"fitted_order": 2},
            2,
            "`fitted_order` and the anchor .* need one dimension that defines",
        ),
    ],
)
def test_bad_settings(settings, x_dims, message):
    with pytest.raises(ValueError, match=message):
        RepresentationExtractor(**settings).build(
            {"x_context": (None, None, x_dims), "y_context": (None, None, 1)}
        )
