"""Bounds and whole numbers: there and back, densities of total 1, errors with their row."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import SPEC, make_series

from taylorformer.data_wrangler.tables.scaled_support import ScaledSupport
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.value_support import MARGIN, SupportTransform, ValueSupport
from taylorformer.data_wrangler.tables.windows import Windows

BOUNDS = [(0, None), (None, 3), (-1, 4), (0, 1e6), (-1e-6, 1e-6)]
NORMALS = [(0.0, 1.0), (-1.0, 2.0), (1.0, 0.05), (0.5, 6.0)]


def transform_of(lower, upper, integers, softness=1.3):
    return SupportTransform.of(ValueSupport.of(lower, upper, integers, 1), np.array([softness]))


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_values_there_and_back(lower, upper):
    size = 2e-6 if upper == 1e-6 else 50.0
    softness = size / 40
    transform = transform_of(lower, upper, False, softness)
    low, high = (-size if lower is None else lower), (size if upper is None else min(upper, size))
    values = np.linspace(low, high, 1001)[:, np.newaxis]
    real = transform.to_real(values)
    assert np.isfinite(real).all() and (np.diff(real[:, 0]) >= 0).all()
    back = transform.to_values(real)
    # In the margin a value is its bound.
    assert np.abs(back - values).max() <= MARGIN * softness * (1 + 1e-9)
    inside = np.abs(back - values) < 1e-12 * size
    assert inside[20:-20].all()
    step = 1e-7 * softness
    slope = (transform.to_real(values + step) - transform.to_real(values - step)) / (2 * step)
    factor = transform.log_density_factor(values, 0.0)
    np.testing.assert_allclose(factor[30:-30], np.log(slope[30:-30]), atol=1e-5)


@pytest.mark.parametrize(("lower", "upper"), [*BOUNDS, (None, None)])
@pytest.mark.parametrize("integers", [False, True])
def test_no_number_is_outside(lower, upper, integers):
    if integers and upper == 1e-6:
        lower, upper = -1, 1
    real = np.array([-1e15, -1e6, -40.0, -1.0, 0.0, 1.0, 40.0, 1e6, 1e15])[:, np.newaxis]
    values = transform_of(lower, upper, integers).to_values(real)
    assert (values >= (-np.inf if lower is None else lower)).all()
    assert (values <= (np.inf if upper is None else upper)).all()
    assert (np.diff(values[:, 0]) >= 0).all()
    if integers:
        assert (values == np.round(values)).all()


@pytest.mark.parametrize(("mean", "scale"), NORMALS)
@pytest.mark.parametrize(("lower", "upper"), [(0, None), (None, 0), (2, 9), (0, 1), (None, None)])
def test_probabilities_of_whole_numbers_add_up(lower, upper, mean, scale):
    transform = transform_of(lower, upper, True)
    scaled = ScaledSupport(np.array([[0.3]]), np.array([[2.0]]), transform)
    low, high = (-300 if lower is None else lower), (300 if upper is None else upper)
    values = np.arange(low, high + 1.0)[:, np.newaxis]
    y = scaled.scale(transform.to_real(values)).astype(np.float32)
    log_prob = scaled.log_prob(mean, scale, y)
    assert abs(np.exp(log_prob).sum() - 1) < 1e-9
    # As many draws of the normal distribution snap to each number.
    drawn = np.random.default_rng(0).normal(mean, scale, [1, 1, 40_000]).reshape(-1, 1)
    share = (scaled.values(drawn.astype(np.float32)) == values.T).mean(axis=0)
    np.testing.assert_allclose(share, np.exp(log_prob[:, 0]), atol=0.01)
    snapped = scaled.snap(drawn.astype(np.float32))
    assert np.isin(snapped, y).all()
    np.testing.assert_array_equal(scaled.snap(snapped), snapped)


@pytest.mark.parametrize(("mean", "scale"), NORMALS)
@pytest.mark.parametrize(("lower", "upper"), [(0, None), (None, 0), (-2, 3)])
def test_densities_of_bounded_values_integrate_to_one(lower, upper, mean, scale):
    transform = transform_of(lower, upper, False)
    scaled = ScaledSupport(np.array([[0.3]]), np.array([[2.0]]), transform)
    low, high = (-80.0 if lower is None else lower), (80.0 if upper is None else upper)
    edges = np.unique(np.concatenate([np.linspace(low, high, 400_001), [low, high]]))
    # The density jumps at the ends of the margins, which are therefore ends of pieces.
    margin = MARGIN * 1.3
    for end in (low + margin, high - margin):
        edges = np.sort(np.append(edges, end))
    middles = (edges[1:] + edges[:-1])[:, np.newaxis] / 2
    y = scaled.scale(transform.to_real(middles)).astype(np.float32)
    log_prob = scaled.log_prob(mean, scale, y) + transform.log_density_factor(middles, np.log(2.0))
    assert abs((np.exp(log_prob[:, 0]) * np.diff(edges)).sum() - 1) < 1e-3


def test_log_probabilities_far_away_are_finite_and_smooth():
    import tensorflow as tf

    from taylorformer.model.observed_density import observable, observed_log_prob

    transform = SupportTransform.of(ValueSupport.of(0, None, True, 1), np.array([[2.0]]))
    scaling_parts = np.array([[[0.0, 1.0, 2.0, -0.5, np.inf, 1.0]]])
    counts = np.array([0.0, 1.0, 7.0, 500.0, 1e6]).reshape(1, 5, 1)
    y = tf.constant(transform.to_real(counts), tf.float32)
    mean, scale = tf.Variable(tf.zeros([1, 5, 1])), tf.Variable(tf.fill([1, 5, 1], 0.01))
    with tf.GradientTape() as tape:
        log_prob = observed_log_prob(mean, scale, y, tf.constant(scaling_parts))
    gradients = tape.gradient(log_prob, [mean, scale])
    assert all(np.isfinite(part).all() for part in [log_prob, *gradients])
    wanted = ScaledSupport.from_parts(scaling_parts[:, np.newaxis]).log_prob(0.0, 0.01, y.numpy())
    np.testing.assert_allclose(log_prob, wanted, rtol=1e-6)
    drawn = tf.constant(np.linspace(-1e7, 1e7, 101).reshape(1, -1, 1), tf.float32)
    snapped = observable(drawn, tf.constant(scaling_parts)[:, tf.newaxis])
    assert float(tf.reduce_min(snapped)) == transform.to_real(np.zeros([1, 1])).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_bounded_series_is_scaled_there_and_back(lower, width, is_two_sided, seed):
    rng = np.random.default_rng(seed)
    values = lower + width * rng.beta(0.3, 0.6, [40, 1])
    values[rng.random(40) < 0.2] = lower
    upper = lower + width if is_two_sided else None
    values = np.minimum(values, np.inf if upper is None else upper)
    series = make_series(values)
    support = ValueSupport.of(lower, upper, False, 1)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 40, support=support))
    starts = np.arange(29)
    inputs, y_target = windows.batch(starts)
    assert np.isfinite(inputs["y_context"]).all() and np.isfinite(y_target).all()
    back = windows.inverse(y_target, starts)
    margin = MARGIN * windows.scaler.softness[0, 0]
    assert np.abs(back - windows.truth(starts)).max() <= margin + 1e-5 * width
    assert (back >= lower).all() and (upper is None or (back <= upper).all())
    log_prob = windows.inverse_log_prob(np.zeros(29), starts)
    assert np.isfinite(log_prob).all()
    mean, stddev = windows.inverse_moments(y_target, np.ones_like(y_target), starts)
    assert np.isfinite(stddev).all() and (mean >= lower).all()


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize(
    "values", [np.zeros(40), np.full(40, 5.0), np.where(np.arange(40) == 35, 1e6, 0.0)], ids=str
)
def test_odd_counts_are_finite(values, integers):
    series = make_series(values)
    support = ValueSupport.of(0, None, integers, 1)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 30, support=support))
    inputs, y_target = windows.batch(np.arange(29))
    assert np.isfinite(inputs["y_context"]).all() and np.isfinite(y_target).all()
    np.testing.assert_allclose(
        windows.inverse(y_target, np.arange(29)), windows.truth(np.arange(29)), atol=1e-6, rtol=1e-5
    )


def test_moments_are_those_of_the_transformed_distribution(rng):
    values = rng.poisson(0.4, 40).astype(float)
    series = make_series(values)
    support = ValueSupport.of(0, None, True, 1)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 40, support=support))
    mean, scale = np.full([1, 4, 1], -0.3), np.full([1, 4, 1], 0.9)
    drawn = windows.inverse(rng.normal(mean, scale, [40_000, 1, 4, 1]), [5])
    center, stddev = windows.inverse_moments(mean, scale, [5])
    np.testing.assert_allclose(center, drawn.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(stddev, drawn.std(axis=0), rtol=0.03)


def test_errors_name_the_row_and_what_was_expected():
    frame = pd.DataFrame({"t": range(4), "y": [1.0, np.nan, -2.0, 3.0], "z": 0.5})
    with pytest.raises(
        ValueError, match=r"Column `y` must hold values of at least 0 .* -2.0 in row 3"
    ):
        ValueSupport.of(0, None, False, 2).check_frame(frame, ["y", "z"])
    with pytest.raises(ValueError, match=r"values of at most 2 \(`upper`\).* 3.0 in row 4"):
        ValueSupport.of([None, 0], [2, 9], False, 2).check_frame(frame, ["y", "z"])
    with pytest.raises(ValueError, match=r"Column `z` must hold whole numbers.* 0.5 in row 1"):
        ValueSupport.of(None, None, [False, True], 2).check_frame(frame, ["y", "z"])
    with pytest.raises(ValueError, match=r"-1.0 in row 2 of series 'series'"):
        ValueSupport.of(0, None, False, 1).check_series(make_series(np.array([1.0, -1.0])))
    ValueSupport.of(-2, 3, False, 2).check_frame(frame, ["y", "z"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("0", None, False), TypeError, "`lower` must be a number"),
        ((0, True, False), TypeError, "`upper` must be a number"),
        ((np.nan, None, False), ValueError, "`lower` must be finite"),
        ((0, 0, False), ValueError, "`lower` must be below `upper`. Received: lower=0 and upper=0"),
        ((5, 1, False), ValueError, "lower=5 and upper=1"),
        ((0.2, 0.8, True), ValueError, "whole number between them"),
        (([0, 0, 0], None, False), ValueError, "each of the 2 target columns. Received: 3"),
        (([], None, False), ValueError, "Received: none"),
        ((0, None, 1), TypeError, "`integers` must be True or False"),
        ((0, None, "yes"), TypeError, "`integers` must be True or False"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ValueSupport.of(*arguments, num_columns=2)


def test_a_support_in_a_file():
    support = ValueSupport.of([0, None], [np.float32(2), np.int64(7)], [False, np.bool_(True)], 2)
    again = ValueSupport.from_config(json.loads(json.dumps(support.get_config())))
    assert again == support and again.upper == (2.0, 7.0) and again.integers == (False, True)
    assert ValueSupport.of(0.2, 8.7, True, 1) == ValueSupport.of(1, 8, True, 1)
    series = make_series(np.arange(40.0))
    bounded = WindowScaler.fit(series, SPEC, 30, support=ValueSupport.of(0, None, True, 1))
    loaded = WindowScaler.from_config(json.loads(json.dumps(bounded.get_config())))
    assert loaded.get_config() == bounded.get_config() and loaded.support == bounded.support
    plain = WindowScaler.fit(series, SPEC, 30, support=ValueSupport.everything(1))
    assert plain.get_config() == WindowScaler.fit(series, SPEC, 30).get_config()
