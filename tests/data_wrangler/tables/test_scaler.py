"""Scaling: what is measured on the training part, and values there and back."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from tables import SPEC, make_series

from taylorformer.data_wrangler.tables.scaler import SCALINGS, WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.windows import Windows


@pytest.mark.parametrize(
    "spec", [SPEC, WindowSpec(1, 1), WindowSpec(1, 9), WindowSpec(11, 1)], ids=str
)
def test_even_grid_becomes_the_even_grid_on_minus_one_to_one(spec):
    # Epoch nanoseconds a millisecond apart: float32 could not tell them apart.
    time = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(40)
    series = make_series(np.arange(40.0), time)
    windows = Windows(series, WindowScaler.fit(series, spec, 30))
    inputs = windows.forecast_inputs([0, 17])
    x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)
    grid = np.linspace(-1, 1, spec.length)
    # One row for all windows.
    np.testing.assert_allclose(x[..., 0], [grid], atol=1e-7)
    assert x.dtype == np.float32


def test_uneven_spacing_is_kept(windows, series):
    spans = [series.time[start + 11] - series.time[start] for start in range(69 - 11)]
    assert windows.scaler.half_span == np.median(spans) / 2
    inputs = windows.forecast_inputs([5])
    x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)[0, :, 0]
    steps = np.diff(series.time[5:17]) / windows.scaler.half_span
    np.testing.assert_allclose(np.diff(x), steps, rtol=1e-5)
    assert x[7] == np.float32(2 * 7 / 11 - 1)


def test_y_is_relative_to_the_last_observed_context_value(windows, series):
    starts = np.arange(series.num_rows - SPEC.length + 1)
    reference = windows.reference(starts)
    inputs, y_target = windows.batch(starts)
    for start, column in itertools.product(starts, range(2)):
        context = series.values[start : start + 8, column]
        assert reference[start, column] == context[~np.isnan(context)][-1]
    observed = series.observed[windows.target_rows(starts)]
    assert np.array_equal(inputs["target_mask"], observed) and not observed.all()
    assert np.array_equal(inputs["context_mask"], series.observed[windows.context_rows(starts)])
    assert not y_target[~observed].any() and not inputs["y_context"][~inputs["context_mask"]].any()
    assert np.isfinite(y_target).all()
    truth = windows.truth(starts)
    restored = windows.inverse(y_target, starts)
    np.testing.assert_allclose(restored[observed], truth[observed], rtol=1e-6)
    scaled = windows.scale_y(truth, starts).astype(np.float32)
    np.testing.assert_array_equal(scaled[observed], y_target[observed])


def test_a_context_without_values_is_relative_to_the_training_mean():
    values = np.arange(40.0)
    values[20:28] = np.nan
    series = make_series(values)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 30))
    assert windows.reference([20, 19]).tolist() == [[np.nanmean(values[:30])], [19.0]]


@pytest.mark.parametrize("scaling", SCALINGS)
def test_samples_scales_and_densities_go_back_to_units(series, rng, scaling):
    windows = Windows(series, WindowScaler.fit(series, SPEC, 69, scaling))
    starts = [3, 50, 60]
    reference, spread = windows.reference(starts), windows.scaler.spread[0]
    y = rng.normal(size=(5, 3, 4, 2))
    units = windows.inverse(y, starts)
    assert units.shape == y.shape and units.dtype == np.float64
    np.testing.assert_allclose((units - reference[:, np.newaxis]) / spread, y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(windows.scale_y(units, starts), y, rtol=1e-9, atol=1e-9)
    mean, stddev = windows.inverse_moments(y.mean(axis=0), y.std(axis=0), starts)
    np.testing.assert_allclose(units.std(axis=0), stddev, rtol=1e-9)
    np.testing.assert_allclose(units.mean(axis=0), mean, rtol=1e-9)
    # A standard normal density in scaled y is one of scale `spread` in units; what is missing does
    # not count.
    y_one, units_one = y[0], units[0]
    observed = series.observed[windows.target_rows(starts)]
    assert observed.any(axis=1).all() and not observed.all()
    z = (units_one - reference[:, np.newaxis]) / spread

    def total(density):
        return np.where(observed[..., np.newaxis], density, 0.0).sum(axis=(1, 2))

    log_prob = total(-0.5 * (y_one**2 + np.log(2 * np.pi)))
    log_prob_units = total(-0.5 * (z**2 + np.log(2 * np.pi)) - np.log(spread))
    restored = windows.inverse_log_prob(log_prob, starts)
    np.testing.assert_allclose(restored, log_prob_units, rtol=1e-9)
    count = observed.sum(axis=1)
    nll = windows.inverse_nll(-log_prob / count, starts)
    np.testing.assert_allclose(nll, -log_prob_units / count, rtol=1e-9)


def test_standard_scaling_is_that_of_the_training_part(series):
    windows = Windows(series, WindowScaler.fit(series, SPEC, 69, "standard"))
    train = series.values[:69]
    starts = np.arange(series.num_rows - SPEC.length + 1)
    np.testing.assert_allclose(windows.reference(starts), [np.nanmean(train, axis=0)] * len(starts))
    np.testing.assert_allclose(windows.spread(starts), [np.nanstd(train, axis=0)] * len(starts))
    with pytest.raises(ValueError, match="`scaling` must be one of"):
        WindowScaler.fit(series, SPEC, 69, "minmax")


def test_spread_is_the_standard_deviation_of_a_normal_distribution(rng):
    walk = rng.normal(scale=3.0, size=4000).cumsum()
    one_step = WindowScaler.fit(make_series(walk), WindowSpec(5, 1), 4000)
    np.testing.assert_allclose(one_step.spread, [[3.0]], rtol=0.05)
    walk[2000] = 1e7
    outlier = WindowScaler.fit(make_series(walk), WindowSpec(5, 1), 4000)
    np.testing.assert_allclose(outlier.spread, one_step.spread, rtol=0.01)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(
    "values",
    [
        np.zeros(40),
        np.full(40, 5000.0),
        np.full(40, 5000.0) + 1e-12 * np.arange(40),
        np.where(np.arange(40) == 20, 1.0, 0.0),
        np.where(np.arange(40) % 12 == 0, 7.0, np.nan),
        np.where(np.arange(40) == 3, 7.0, np.nan),
        1e300 * np.sin(np.arange(40)),
        1e-300 * np.sin(np.arange(40)),
    ],
    ids=["zero", "constant", "rounding", "one spike", "sparse", "one value", "huge", "tiny"],
)
def test_spread_is_never_zero_or_nan(values, scaling):
    series = make_series(values)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 40, scaling))
    assert windows.scaler.spread[0, 0] > 0 and np.isfinite(windows.scaler.spread[0, 0])
    assert np.isfinite(windows.scaler.center[0, 0])
    inputs, y_target = windows.batch(np.arange(29))
    assert np.isfinite(inputs["y_context"]).all() and np.isfinite(y_target).all()


def test_scaler_errors_and_round_trip(series, windows):
    config = json.loads(json.dumps(windows.scaler.get_config()))
    again = WindowScaler.from_config(config)
    assert again.get_config() == windows.scaler.get_config() and again.spec == SPEC
    with pytest.raises(ValueError, match=r"12 rows in the training part\. Received: 11"):
        WindowScaler.fit(series, SPEC, 11)
    with pytest.raises(
        ValueError, match=r"Column `y0` of series .series. must have a value in the"
    ):
        WindowScaler.fit(make_series(np.where(np.arange(40) < 20, np.nan, 1.0)), SPEC, 20)
    with pytest.raises(ValueError, match=r"D_y = 2 columns"):
        Windows(make_series(np.arange(40.0)), windows.scaler)
    for starts in ([-1], [89], [0.0], [], 3):
        with pytest.raises(ValueError, match="`starts` must be"):
            windows.batch(starts)


def test_a_strange_series_is_an_error_or_measured_by_itself(panel):
    scaler = WindowScaler.fit(list(panel.series[:2]), SPEC, [40, 6])
    with pytest.raises(ValueError, match="Received: 's2'; the scaler has 's0', 's1'"):
        Windows(panel, scaler)
    wider = scaler.with_series(panel)
    assert wider.names == ("s0", "s1", "s2")
    np.testing.assert_array_equal(wider.spread[:2], scaler.spread)
    alone = WindowScaler.fit(panel.series[2], SPEC, 40)
    np.testing.assert_array_equal(wider.spread[2], alone.spread[0])
    assert wider.half_span == scaler.half_span and wider.with_series(panel) is wider
    assert Windows(panel, wider).batch([75])[1].shape == (1, 4, 1)


def test_other_lengths_keep_the_scale_of_x_and_y(series):
    scaler = WindowScaler.fit(series, SPEC, 69)
    inputs, y_target = Windows(series, scaler, WindowSpec(8, 9)).batch([20])
    short, short_y_target = Windows(series, scaler, WindowSpec(5, 2)).batch([23])
    np.testing.assert_array_equal(short["x_context"][0], inputs["x_context"][0, 3:])
    np.testing.assert_array_equal(short["x_target"][0], inputs["x_target"][0, :2])
    np.testing.assert_array_equal(short_y_target[0], y_target[0, :2])
    assert inputs["x_target"].max() > 1


def test_the_resolution_of_dates_does_not_matter(rng):
    values = rng.normal(size=40).cumsum()
    fine, coarse = (
        Series.from_frame(
            pd.DataFrame({"t": pd.date_range("2020", periods=40, unit=unit), "y": values}), "t", "y"
        )
        for unit in ("ns", "s")
    )
    scaler = WindowScaler.fit(fine, SPEC, 30)
    inputs, _ = Windows(fine, scaler).batch([20])
    other, _ = Windows(coarse, scaler).batch([20])
    np.testing.assert_array_equal(inputs["x_target"], other["x_target"])
    again = WindowScaler.from_config(json.loads(json.dumps(scaler.get_config())))
    assert again.time_unit == "ns"
    with pytest.raises(ValueError, match=r"time must be dates, as in training\. Received: numbers"):
        Windows(make_series(values), scaler)


def test_a_covariate_that_never_changes_in_training_is_finite(panel):
    one = panel.series[0]
    covariate = np.where(np.arange(60) < 50, 7e5, 9e5)[:, np.newaxis]
    series = Series(
        one.time, one.values.copy(), one.stamps, "t", ("y",), None, "s", covariate, ("heat",)
    )
    inputs, _ = Windows(series, WindowScaler.fit(series, SPEC, 40)).batch(np.arange(49))
    assert np.abs(inputs["x_target"][..., 1]).max() < 1
