"""Bounds, whole numbers and units of a Forecaster: forecast, served, saved, scored."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from forecasting import tiny_forecaster, wave_table

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

# The other ones are among the slow tests.
QUICK = (("window", (1e6, 0)), ("standard", (1, 1e9)))


def counts(rows=90, seed=0):
    """Daily counts, most of them 0, one missing."""
    rng = np.random.default_rng(seed)
    values = (rng.random(rows) < 0.3) * (1.0 + rng.poisson(3, rows))
    values[30] = np.nan
    return pd.DataFrame({"ds": pd.date_range("2023-01-01", periods=rows), "y": values})


def shares(rows=90, seed=0):
    """Daily shares from 0 to 1, some at either bound."""
    rng = np.random.default_rng(seed)
    values = np.clip(0.5 + 0.6 * np.sin(np.arange(rows) / 4) + 0.1 * rng.normal(size=rows), 0, 1)
    return pd.DataFrame({"ds": pd.date_range("2023-01-01", periods=rows), "y": values})


@pytest.fixture(scope="module", params=["counts", "shares"])
def fitted(request, tmp_path_factory):
    """A table, its forecaster, and the same as a SavedModel."""
    table = counts() if request.param == "counts" else shares()
    options = {"integers": True} if request.param == "counts" else {"upper": 1}
    forecaster = tiny_forecaster(lower=0, **options).fit(table)
    folder = tmp_path_factory.mktemp("support")
    forecaster.save(folder / "model")
    forecaster.export(folder / "served")
    return table, forecaster, folder


def check_inside(values, forecaster):
    assert np.isfinite(values).all() and values.min() >= 0
    if forecaster.integers:
        assert (values == np.round(values)).all()
    else:
        assert values.max() <= 1


def test_no_sample_is_outside(fitted):
    table, forecaster, folder = fitted
    forecast = forecaster.forecast(table, num_samples=300)
    check_inside(forecast.samples, forecaster)
    assert (forecast.to_frame().drop(columns="ds") >= 0).all(axis=None)
    assert forecast.samples.std() > 0
    again = Forecaster.load(folder / "model")
    assert again.get_params()["lower"] == 0 and again.scaler_.support == forecaster.scaler_.support
    same = again.forecast(table, num_samples=300)
    np.testing.assert_array_equal(same.samples, forecast.samples)


def request(table, origin, num_targets):
    seconds = (table["ds"] - table["ds"].iloc[0]).dt.total_seconds().to_numpy()
    rows, targets = slice(origin - 6, origin), slice(origin, origin + num_targets)
    return {
        "time_context": tf.constant(seconds[np.newaxis, rows]),
        "y_context": tf.constant(table["y"].to_numpy()[np.newaxis, rows, np.newaxis]),
        "time_target": tf.constant(seconds[np.newaxis, targets]),
    }


@pytest.mark.parametrize("origin", [33, 50])
def test_the_served_density_of_one_target_is_one_in_total(fitted, origin):
    table, forecaster, folder = fitted
    served = tf.saved_model.load(str(folder / "served")).signatures
    if forecaster.integers:
        values, weights = np.arange(4000.0), np.ones(4000)
    else:
        # The density jumps at the ends of the margins, which are therefore ends of pieces.
        margin = 0.01 * forecaster.scaler_.softness[0, 0]
        edges = np.concatenate([[0], np.linspace(margin, 1 - margin, 4000), [1]])
        values, weights = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    copies = {
        name: tf.repeat(one, len(values), axis=0) for name, one in request(table, origin, 1).items()
    }
    y_target = tf.constant(values[:, np.newaxis, np.newaxis])
    log_prob = served["log_prob"](**copies, y_target=y_target)["log_prob"].numpy()
    assert abs((weights * np.exp(log_prob)).sum() - 1) < 1e-3


def test_what_is_served_is_what_is_local(fitted):
    table, forecaster, folder = fitted
    served = tf.saved_model.load(str(folder / "served")).signatures
    windows = Windows(Series.from_frame(table, "ds", "y"), forecaster.scaler_)
    starts = np.array([20, 44, 70])
    asked = [request(table, start + 6, 4) for start in starts]
    raw = {name: tf.concat([one[name] for one in asked], axis=0) for name in asked[0]}
    inputs, y_target = windows.batch(starts)
    truth = tf.constant(windows.truth(starts))
    local = windows.inverse_log_prob(forecaster.model_.log_prob(inputs, y_target), starts)
    np.testing.assert_allclose(
        served["log_prob"](**raw, y_target=truth)["log_prob"], local, rtol=1e-4, atol=1e-4
    )
    drawn = served["sample"](**raw, num_samples=tf.constant(50), seed=tf.constant(3))["samples"]
    check_inside(drawn.numpy(), forecaster)
    wanted = windows.inverse(
        forecaster.model_.sample(windows.forecast_inputs(starts), 50, 3), starts
    )
    tolerance = {"atol": 1e-4} if not forecaster.integers else {"atol": 0}
    np.testing.assert_allclose(drawn, wanted, **tolerance)
    levels = tf.constant([0.1, 0.5, 0.9])
    asked = {"num_samples": tf.constant(50), "seed": tf.constant(3), "quantile_levels": levels}
    answer = served["serving_default"](**raw, **asked)
    assert all(float(tf.reduce_min(part)) >= 0 for part in answer.values())
    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold values from"):
        served["sample"](
            **{**raw, "y_context": raw["y_context"] - 5.0},
            num_samples=tf.constant(1),
            seed=tf.constant(0),
        )


def test_a_back_test_scores_the_transformed_distribution(fitted):
    table, forecaster, _ = fitted
    result = forecaster.backtest(table, num_samples=40, season="7 days")
    scores = result.scores.set_index("line")
    assert np.isfinite(scores["teacher_forced_nll"]).all()
    assert np.isfinite(scores["free_running_crps"]).all()
    if forecaster.integers:
        # Probabilities are at most 1.
        assert (scores["teacher_forced_nll"] >= 0).all()
    windows = Windows(Series.from_frame(table, "ds", "y"), forecaster.scaler_)
    starts = Split.chronological(len(table)).window_starts(windows.spec, "test")[-4:-3]
    mean, stddev = windows.inverse_moments(np.zeros([1, 4, 1]), np.ones([1, 4, 1]), starts)
    normal = np.random.default_rng(0).normal(size=[20_000, 1, 4, 1])
    drawn = windows.inverse(normal, starts)
    np.testing.assert_allclose(mean, drawn.mean(axis=0), atol=0.05 * stddev.max())


def test_values_beyond_a_bound_are_an_error_with_their_row(fitted):
    table, forecaster, _ = fitted
    wrong = table.copy()
    wrong.loc[40, "y"] = -3.0
    for call in (
        lambda: tiny_forecaster(lower=0).fit(wrong),
        lambda: forecaster.forecast(wrong),
        lambda: forecaster.backtest(wrong),
    ):
        with pytest.raises(ValueError, match=r"Column `y` must hold .* -3.0 in row 41"):
            call()
    with pytest.raises(ValueError, match="Received: 2"):
        tiny_forecaster(lower=[0, 0]).fit(table)


@pytest.mark.slow
def test_only_the_column_with_a_bound_is_bounded():
    table = counts().assign(z=wave_table()["y"] - 5000)
    forecaster = tiny_forecaster(lower=[0, None], integers=[True, False])
    samples = forecaster.fit(table, "ds", ["y", "z"]).forecast(table, num_samples=200).samples
    assert samples[..., 0].min() >= 0 and (samples[..., 0] % 1 == 0).all()
    assert (samples[..., 1] % 1 != 0).any()
    scores = forecaster.backtest(table, num_samples=20).scores
    assert np.isfinite(scores["free_running_crps"][0])


@pytest.mark.parametrize(
    ("scaling", "factor", "shift"),
    [
        pytest.param(scaling, *units, marks=[pytest.mark.slow] * ((scaling, units) not in QUICK))
        for scaling in ("window", "standard")
        for units in ((1e-6, 0), (1e6, 0), (1, 1e9), (1e-150, 0))
    ],
)
def test_other_units_give_the_same_forecast(scaling, factor, shift):
    table = wave_table(mean=40.0, spread=3.0)
    other = table.assign(y=table["y"] * factor + shift)
    one, two = (
        tiny_forecaster(scaling=scaling, max_steps=2).fit(frame).forecast(frame, num_samples=50)
        for frame in (table, other)
    )
    undone = (two.samples - shift) / factor
    np.testing.assert_allclose(undone, one.samples, rtol=0, atol=1e-4 * 3.0)


@pytest.mark.slow
def test_small_moves_and_zeros_keep_their_own_unit():
    level = wave_table(mean=1e9, spread=0.01)
    forecast = tiny_forecaster(max_steps=2).fit(level).forecast(level, num_samples=50)
    assert 1e-4 < forecast.samples.std() < 1
    tiny = wave_table(mean=0.0, spread=1e-7).assign(unique_id="tiny")
    zeros = tiny.assign(y=0.0, unique_id="zeros")
    panel = pd.concat([tiny, zeros], ignore_index=True)
    forecaster = tiny_forecaster(max_steps=2)
    with pytest.warns(UserWarning, match="constant"):
        forecaster.fit(panel)
    np.testing.assert_allclose(forecaster.scaler_.spread[1], forecaster.scaler_.spread[0])
    rounding = wave_table(mean=1e9, spread=1e-7)
    with pytest.warns(UserWarning, match=r"less than 64-bit numbers .* apart: `y`"):
        tiny_forecaster(max_steps=2).fit(rounding)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_counts_with_many_zeros_are_covered(seed, record_property):
    """500 days, 80 % of them 0: the 80 % interval holds a share that is near 80 %."""
    rng = np.random.default_rng(seed)
    values = (rng.random(500) < 0.2) * (1.0 + rng.poisson(3, 500))
    table = pd.DataFrame({"ds": pd.date_range("2023-01-01", periods=500), "y": values})
    forecaster = Forecaster(14, 28, preset="compact", max_steps=300, lower=0, integers=True).fit(
        table
    )
    windows = Windows(Series.from_frame(table, "ds", "y"), forecaster.scaler_)
    starts = Split.chronological(500).window_starts(windows.spec, "test")
    inputs, keys = windows.forecast_inputs(starts), windows.sequence_keys(starts)
    drawn = windows.inverse(forecaster.model_.sample(inputs, 200, 0, keys), starts)
    low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
    truth = windows.truth(starts)
    coverage = float(((low <= truth) & (truth <= high)).mean())
    record_property("coverage", coverage)
    assert low.min() >= 0
    assert 0.70 <= coverage <= 0.92
