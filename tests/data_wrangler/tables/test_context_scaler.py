"""The representation of a pretrained model: measured on the context alone, one for every table."""

import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.tables.array_ops import tensorflow_ops
from taylorformer.data_wrangler.tables.context_scaler import (
    NUM_X,
    STEPS_PER_UNIT,
    ContextScaler,
    measure_values,
)
from taylorformer.data_wrangler.tables.value_support import ValueSupport

_NO_SEASONS = np.zeros((1, 3))


def _measure(values, observed=None):
    values = np.asarray(values, np.float64)[np.newaxis]
    observed = np.isfinite(values) if observed is None else np.asarray(observed)[np.newaxis]
    center, spread = measure_values(np.where(observed, values, 0.0), observed)
    return center[0], spread[0]


def _window(num_context=20, num_target=5, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(float(num_context + num_target))[np.newaxis]
    values = rng.normal(50, 4, (1, num_context + num_target, 1))
    return time, values, np.ones(time.shape, bool), num_context


def test_centre_and_spread_are_those_of_the_observed_values():
    values = np.random.default_rng(0).normal(3, 2, 40)
    missing = np.where(np.arange(40) % 3 == 0, np.nan, values)
    center, spread = _measure(missing)
    rest = values[np.arange(40) % 3 != 0]
    assert center == pytest.approx(rest.mean(), rel=1e-12)
    assert spread == pytest.approx(rest.std(), rel=1e-12)


@pytest.mark.parametrize(
    "values, center, spread",
    [
        ([7.0, 7.0, 7.0], 7.0, 0.007),
        ([-2.0, -2.0], -2.0, 0.002),
        ([0.0, 0.0, 0.0], 0.0, 0.001),
        ([5.0], 5.0, 5.0),
        ([-5.0, np.nan], -5.0, 5.0),
        ([0.0], 0.0, 1.0),
        ([np.nan, np.nan], 0.0, 1.0),
        ([], 0.0, 1.0),
    ],
)
def test_fallbacks_are_those_that_are_stated(values, center, spread):
    assert _measure(values) == pytest.approx((center, spread), rel=1e-12)


def test_one_outlier_does_not_make_the_others_look_the_same():
    values = np.random.default_rng(1).normal(0, 1, 100)
    _, usual = _measure(values)
    values[40] = 1e9
    center, spread = _measure(values)
    assert abs(center) < 0.5 and spread < 2 * usual


def test_where_most_values_are_equal_the_others_count_as_they_are():
    values = np.zeros(50)
    values[[3, 30]] = 40.0
    center, spread = _measure(values)
    assert center == pytest.approx(values.mean()) and spread == pytest.approx(values.std())


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_tiny_and_huge_values_are_scaled_like_others(size):
    values = np.random.default_rng(2).normal(1, 1, 30)
    center, spread = _measure(values)
    assert _measure(values * size) == pytest.approx((center * size, spread * size), rel=1e-9)


def test_x_is_in_usual_steps_since_the_last_observed_row_of_the_context():
    time, values, observed, num_context = _window()
    observed[0, num_context - 2 : num_context] = False
    batch, _ = ContextScaler().batch(7200.0 * time, values, observed, num_context, _NO_SEASONS)
    steps = batch["x_target"][0, :, 0] * STEPS_PER_UNIT
    np.testing.assert_allclose(steps, [3, 4, 5, 6, 7], rtol=1e-6)
    assert batch["x_context"].shape[-1] == NUM_X


@pytest.mark.parametrize("unit", [1.0, 3600.0, 1e-3])
def test_the_unit_and_the_origin_of_time_do_not_matter(unit):
    time, values, observed, num_context = _window()
    time = time + 0.3 * np.random.default_rng(3).random(time.shape)
    periods = np.array([[7.0, 30.4, 0.0]])
    one, _ = ContextScaler().batch(time, values, observed, num_context, periods)
    moved = unit * (time + 1000.0)
    other, _ = ContextScaler().batch(moved, values, observed, num_context, unit * periods)
    np.testing.assert_allclose(one["x_context"], other["x_context"], atol=1e-5)


def test_absent_rows_and_rows_without_a_value_are_the_same():
    time, values, observed, num_context = _window()
    observed[0, [2, 3, 9, num_context - 1]] = False
    kept = observed[0]
    periods = np.array([[5.0, 0.0, 0.0]])
    whole, whole_scaling = ContextScaler().batch(time, values, observed, num_context, periods)
    part, part_scaling = ContextScaler().batch(
        time[:, kept], values[:, kept], observed[:, kept], num_context - 4, periods
    )
    for name in ("x_context", "y_context"):
        np.testing.assert_array_equal(whole[name][:, kept[:num_context]], part[name])
    np.testing.assert_array_equal(whole["x_target"], part["x_target"])
    np.testing.assert_allclose(whole_scaling.spread, part_scaling.spread, rtol=1e-12)


@pytest.mark.parametrize("num_context", [0, 1])
def test_contexts_of_no_or_one_row_have_a_time_axis_too(num_context):
    time, values, observed, _ = _window(num_context, 4)
    batch, _ = ContextScaler().batch(time, values, observed, num_context, _NO_SEASONS)
    steps = batch["x_target"][0, :, 0] * STEPS_PER_UNIT
    np.testing.assert_allclose(steps, [1, 2, 3, 4], rtol=1e-6)


def test_a_single_target_without_a_context_is_one_step_ahead():
    batch, _ = ContextScaler().batch(
        np.array([[41.0]]), np.array([[[3.0]]]), np.ones((1, 1), bool), 0, _NO_SEASONS
    )
    assert batch["x_target"][0, 0, 0] * STEPS_PER_UNIT == pytest.approx(1.0)


def test_targets_are_never_read():
    time, values, observed, num_context = _window()
    one, scaling = ContextScaler().batch(time, values, observed, num_context, _NO_SEASONS)
    other_values = values.copy()
    other_values[:, num_context:] = np.array([np.nan, 1e300, -1e300, 0.0, np.nan])[:, np.newaxis]
    other, other_scaling = ContextScaler().batch(
        time, other_values, observed, num_context, _NO_SEASONS
    )
    for name in ("x_context", "x_target", "y_context", "context_mask"):
        np.testing.assert_array_equal(one[name], other[name])
    assert scaling.spread == other_scaling.spread and scaling.reference == other_scaling.reference


def test_what_is_read_is_clipped_and_what_is_scored_is_not():
    time, values, observed, num_context = _window()
    values[0, 3] = 1e7
    values[0, num_context] = 1e7
    batch, scaling = ContextScaler().batch(time, values, observed, num_context, _NO_SEASONS)
    assert batch["y_context"].max() == 20.0
    expected = (1e7 - scaling.reference[0, 0]) / scaling.spread[0, 0]
    assert batch["y_target"].max() == pytest.approx(expected, rel=1e-6) and expected > 1000


def test_shared_points_stay_shared():
    time, _, observed, num_context = _window()
    values = np.random.default_rng(4).normal(0, 1, (6, time.shape[1], 1))
    batch, _ = ContextScaler().batch(time, values, observed, num_context, _NO_SEASONS)
    assert batch["x_context"].shape[0] == batch["context_mask"].shape[0] == 1
    assert batch["y_context"].shape[0] == 6
    tiled, _ = ContextScaler().batch(
        np.tile(time, (6, 1)), values, np.tile(observed, (6, 1)), num_context, np.zeros((6, 3))
    )
    np.testing.assert_array_equal(batch["y_target"], tiled["y_target"])
    np.testing.assert_array_equal(np.tile(batch["x_target"], (6, 1, 1)), tiled["x_target"])


@pytest.mark.parametrize("support", [None, ValueSupport.of(0, None, True, 1)])
def test_tensorflow_gives_the_numbers_of_numpy(support):
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.uniform(0.5, 2, (8, 30)), axis=1)
    values = rng.poisson(20, (8, 30, 1)).astype(np.float64)
    observed = rng.random((8, 30)) < 0.8
    observed[0, :22] = False
    observed[1, :21] = False
    values[~observed] = np.nan
    periods = np.stack([np.array([7.0, 24.0, 0.0])] * 8)
    scaler = ContextScaler(support)
    expected, scaling = scaler.batch(time, values, observed, 22, periods)

    @tf.function
    def graph(time, values, observed, periods):
        batch, scaling = scaler.batch(time, values, observed, 22, periods, tensorflow_ops())
        return batch, scaling.spread

    batch, spread = graph(*map(tf.constant, (time, values, observed, periods)))
    assert batch.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(batch[name], array, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(spread, scaling.spread, rtol=1e-12)


def test_counts_are_scaled_by_at_least_half_a_unit():
    time, _, observed, num_context = _window()
    values = np.full((1, time.shape[1], 1), 3.0)
    _, scaling = ContextScaler(ValueSupport.of(0, None, True, 1)).batch(
        time, values, observed, num_context, _NO_SEASONS
    )
    assert scaling.spread[0, 0] >= 0.5
