"""The pretrained forecaster: any table, no `fit`, honest at the door, served with its numbers."""

import hashlib
import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from forecasting import tiny_prior
from sklearn.base import clone

from taylorformer import Forecaster, PretrainedForecaster
from taylorformer.data_wrangler import Series, WindowSpec
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.model.mirrored import MirroredModel
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import (
    PRETRAINED,
    PretrainedPreset,
    find_pretrained,
)

_SAMPLES = 8


def monthly_table(rows=72, seed=0, level=300.0):
    """A trend and a year, growing together."""
    rng = np.random.default_rng(seed)
    steps = np.arange(rows)
    wave = np.sin(2 * np.pi * steps / 12) + 0.3 * np.cos(4 * np.pi * steps / 12)
    values = level * (1 + 0.01 * steps) * (1 + 0.15 * wave + 0.01 * rng.normal(size=rows))
    return pd.DataFrame({"ds": pd.date_range("2015-01-01", periods=rows, freq="MS"), "y": values})


@pytest.fixture(scope="module")
def forecaster():
    return Forecaster.from_preset("prior")


@pytest.fixture(scope="module")
def table():
    return monthly_table()


@pytest.fixture(scope="module")
def forecast(forecaster, table):
    return forecaster.forecast(table, num_samples=100)


# The weights.


def test_the_weights_are_those_on_record():
    for preset in PRETRAINED.values():
        content = preset.weights_file.read_bytes()
        assert hashlib.sha256(content).hexdigest() == preset.record["sha256"]
        assert len(content) < 3 * 2**20
    record = find_pretrained("prior").record
    assert record["command"].startswith("taylorformer experiment prior")
    assert record["seconds"]["training"] > 0 and record["iterations"] > 1000


def test_other_bytes_are_refused(tmp_path, monkeypatch):
    from taylorformer.training_and_evaluation.forecasting import pretrained_weights

    preset = pretrained_weights.PretrainedPreset("other", "other")
    (tmp_path / "other.keras").write_bytes(b"weights")
    (tmp_path / "other.json").write_text(json.dumps({"sha256": "0"}))
    monkeypatch.setattr(pretrained_weights, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match="SHA-256"):
        preset.load()


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ValueError, match="`preset` must be one of 'prior'"):
        Forecaster.from_preset("poster")
    with pytest.raises(TypeError):
        Forecaster.from_preset("prior", max_steps=3)
    assert isinstance(Forecaster.from_preset("ett", horizon=3), Forecaster)


def test_a_preset_says_whether_forecasts_are_mirrored_unless_the_caller_does(tmp_path, monkeypatch):
    weights = tiny_prior(tmp_path / "tiny.keras")
    for usual in (False, True):
        preset = PretrainedPreset("tiny", "tiny", weights, mirrored=usual)
        monkeypatch.setitem(PRETRAINED, "tiny", preset)
        kinds = [
            isinstance(PretrainedForecaster("tiny", mirrored=one).model_, MirroredModel)
            for one in (None, False, True)
        ]
        assert kinds == [usual, False, True]
        folder = tmp_path / str(usual)
        PretrainedForecaster("tiny").save(folder)
        # What is saved stays as it was, also where it is saved again or the preset has changed.
        monkeypatch.setitem(PRETRAINED, "prior", replace(PRETRAINED["prior"], mirrored=not usual))
        Forecaster.load(folder).save(tmp_path / f"{usual} again")
        for one in (folder, tmp_path / f"{usual} again"):
            loaded = Forecaster.load(one)
            assert loaded.mirrored is None
            assert isinstance(loaded.model_, MirroredModel) is usual


# Forecasts.


def test_it_forecasts_a_season_without_training(forecast, table):
    truth = monthly_table(84)["y"].to_numpy()[72:]
    median = forecast.quantile(0.5)[0, :, 0]
    naive = table["y"].to_numpy()[-12:]
    assert np.abs(median - truth).mean() < 0.6 * np.abs(naive - truth).mean()
    low, high = forecast.interval(0.9)
    assert ((low[0, :, 0] <= truth) & (truth <= high[0, :, 0])).mean() >= 0.75


def test_the_season_and_the_horizon_are_chosen_and_said(forecast):
    assert forecast.samples.shape == (100, 1, 12, 1)
    assert str(forecast.stamps[0][0].date()) == "2021-01-01"
    ((seasons,),) = forecast.seasons
    assert "365.2425 days" in seasons.describe()
    assert len(forecast.context_stamps[0]) == 72


def test_the_default_horizon_without_a_season_is_a_tenth_of_the_rows(forecaster):
    rng = np.random.default_rng(0)
    for rows, expected in ((30, 6), (200, 20), (1200, 96)):
        walk = pd.DataFrame({"t": range(rows), "y": rng.normal(size=rows).cumsum()})
        forecast = forecaster.forecast(walk, num_samples=1)
        assert len(forecast.stamps[0]) == expected


def test_one_seed_gives_one_forecast_on_its_own_and_among_others(forecaster, forecast, table):
    again = forecaster.forecast(table, num_samples=100)
    np.testing.assert_array_equal(again.samples, forecast.samples)
    other = forecaster.forecast(table, num_samples=100, seed=1)
    assert (other.samples != forecast.samples).all()
    alone = forecaster.forecast(table.assign(unique_id="a"), num_samples=_SAMPLES)
    parts = [table.assign(unique_id="a"), monthly_table(40, 1).assign(unique_id="b")]
    both = forecaster.forecast(pd.concat(parts), num_samples=_SAMPLES)
    np.testing.assert_allclose(both.select("a").samples, alone.samples, rtol=1e-4)


def test_rows_without_a_value_and_absent_rows_are_the_same(forecaster, table):
    gaps = table.copy()
    gaps.loc[[5, 6, 30, 47], "y"] = np.nan
    kept = gaps.dropna()
    whole, part = (
        forecaster.forecast(one, num_samples=_SAMPLES, horizon=6, freq="MS") for one in (gaps, kept)
    )
    np.testing.assert_allclose(whole.samples, part.samples, rtol=1e-3)


def test_units_and_levels_do_not_matter(forecaster, table):
    one = forecaster.forecast(table, num_samples=_SAMPLES)
    other = forecaster.forecast(table.assign(y=1e6 * table["y"] - 3e7), num_samples=_SAMPLES)
    np.testing.assert_allclose(other.samples, 1e6 * one.samples - 3e7, rtol=1e-3)


def test_named_seasons_are_used_and_warned_of_where_they_do_not_show(table):
    noise = table.assign(y=np.random.default_rng(0).normal(size=len(table)))
    named = PretrainedForecaster(seasons=12)
    with pytest.warns(UserWarning, match="do not show the season that was named"):
        forecast = named.forecast(noise, num_samples=2)
    assert forecast.samples.shape[2] == 12
    none = PretrainedForecaster(seasons=None).forecast(table, num_samples=2)
    assert none.seasons[0][0].describe() == "none"


def test_several_targets_are_forecast_one_by_one_and_it_says_so(forecaster, table):
    two = table.assign(z=np.random.default_rng(0).normal(size=len(table)))
    with pytest.warns(UserWarning, match="one by one"):
        forecast = forecaster.forecast(two, target_columns=["y", "z"], num_samples=4, horizon=5)
    assert forecast.samples.shape == (4, 1, 5, 2)
    alone = forecaster.forecast(two[["ds", "z"]], num_samples=4, horizon=5)
    # The name of a column is part of what its random numbers depend on.
    assert alone.samples.shape == (4, 1, 5, 1)
    assert np.isfinite(forecast.samples).all()
    scores = forecaster.backtest(two, target_columns=["y", "z"], num_samples=4, num_windows=1)
    assert scores.num_windows == 2
    assert np.isfinite(scores.scores["free_running_crps"]).all()


def test_covariates_are_refused_with_a_pointer_to_fit(forecaster, table):
    table = table.assign(k=1.0)
    message = (
        r"`covariate_columns` must be empty before `fit`, which learns them.*Received: \('k',\)"
    )
    with pytest.raises(ValueError, match=message):
        forecaster.forecast(table, covariate_columns=["k"], target_columns="y")


def test_odd_series_are_named_and_do_not_stop_the_others(forecaster, table):
    parts = [
        table.assign(unique_id="good"),
        table.assign(unique_id="constant", y=7.0),
        table.assign(unique_id="empty", y=np.nan),
        table[-1:].assign(unique_id="one"),
    ]
    with pytest.warns(UserWarning, match="some series are odd"):
        forecast = forecaster.forecast(pd.concat(parts), num_samples=_SAMPLES, horizon=4)
    assert set(forecast.names) == {"good", "constant", "one"}
    assert "no value" in forecast.left_out["empty"]
    assert "constant" in forecast.notes["constant"] and "one value" in forecast.notes["one"]
    constant = forecast.select("constant").samples
    assert np.abs(constant - 7.0).max() < 0.1


def test_a_context_that_the_model_does_not_understand_gets_a_warning(forecaster):
    # Two steps of a pattern that no prior has, but that repeats to the last digit.
    rng = np.random.default_rng(0)
    pattern = np.sign(rng.normal(size=13)) * np.exp(rng.normal(size=13))
    rows = pd.DataFrame({"t": range(130), "y": np.tile(pattern, 10) + 1e-6 * rng.normal(size=130)})
    with pytest.warns(UserWarning, match="does not understand"):
        PretrainedForecaster(seasons=13).forecast(rows, num_samples=2)


def test_bounds_and_whole_numbers_hold(table):
    counts = table.assign(y=np.random.default_rng(0).poisson(2.0, len(table)).astype(float))
    forecaster = PretrainedForecaster(lower=0, integers=True)
    samples = forecaster.forecast(counts, num_samples=50, horizon=6).samples
    assert (samples >= 0).all() and (samples == np.round(samples)).all()
    with pytest.raises(ValueError, match="whole"):
        forecaster.forecast(table, num_samples=2)


def test_stamps_and_futures_as_for_a_trained_forecaster(forecaster, table):
    future = pd.DataFrame({"ds": pd.to_datetime(["2021-02-01", "2021-07-15", "2022-01-01"])})
    forecast = forecaster.forecast(table, future, num_samples=2)
    assert list(forecast.stamps[0]) == list(future["ds"])
    with pytest.raises(ValueError, match="after"):
        forecaster.forecast(table, future - pd.Timedelta("900 days"), num_samples=2)


# Densities.


def _windows(series, spec, period=0.0):
    return ContextWindows(series, spec, lambda number, rows: np.array([period, 0.0, 0.0]))


def test_the_density_in_user_units_integrates_to_one(forecaster):
    rng = np.random.default_rng(0)
    values = 1e4 + 300 * rng.normal(size=40).cumsum()
    grid = np.linspace(values[-2] - 6000, values[-2] + 6000, 400)
    time = np.arange(40)
    densities = []
    for value in grid:
        values[-1] = value
        series = Series(time.copy(), values[:, np.newaxis].copy(), pd.Index(time))
        windows = _windows(series, WindowSpec(39, 1))
        densities.append((windows, windows.batch([0])))
    inputs = densities[0][1][0]
    y = np.concatenate([y_target for _, (_, y_target) in densities])
    wide = {name: np.repeat(array, len(grid), axis=0) for name, array in inputs.items()}
    log_prob = np.asarray(forecaster.model_.log_prob(wide, y))
    user = [
        windows.inverse_log_prob(log_prob[index : index + 1], [0])[0]
        for index, (windows, _) in enumerate(densities)
    ]
    assert np.trapezoid(np.exp(user), grid) == pytest.approx(1.0, abs=0.005)


def test_no_forecast_reads_what_follows(forecaster):
    values = np.random.default_rng(0).normal(size=60).cumsum()
    time = np.arange(60)
    inputs = []
    for garbage in (0.0, np.nan, 1e6):
        later = values.copy()
        later[45:] = garbage
        series = Series(time.copy(), later[:, np.newaxis], pd.Index(time))
        windows = _windows(series, WindowSpec(40, 5), 7.0)
        inputs.append(windows.forecast_inputs([5]))
    for other in inputs[1:]:
        for name, array in inputs[0].items():
            np.testing.assert_array_equal(array, other[name])


def test_no_target_is_read_before_it_is_scored(forecaster):
    """The Jacobian of mean and scale by targets is exactly zero on and above the diagonal."""
    rng = np.random.default_rng(0)
    time = np.arange(30)
    series = Series(time, rng.normal(size=(30, 1)), pd.Index(time))
    inputs, y_target = _windows(series, WindowSpec(24, 6), 7.0).batch([0])
    y = tf.constant(y_target)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(y)
        outputs = forecaster.model_({**inputs, "y_target": y}, training=False)
    for name in ("mean", "scale"):
        jacobian = tape.jacobian(outputs[name], y, experimental_use_pfor=False)
        by_row = np.abs(jacobian.numpy()[0, :, 0, 0, :, 0])
        assert (np.triu(by_row) == 0).all(), name
        assert (np.tril(by_row, -1).sum(axis=1)[1:] > 0).all(), name


@pytest.mark.parametrize("garbage", [1e6, np.nan])
def test_masked_values_change_nothing(forecaster, garbage):
    rng = np.random.default_rng(0)
    time = np.arange(30)
    series = Series(time, rng.normal(size=(30, 1)), pd.Index(time))
    inputs, y_target = _windows(series, WindowSpec(24, 6)).batch([0])
    mask = np.ones((1, 24), bool)
    mask[0, [0, 7, 23]] = False
    densities = []
    for value in (0.0, garbage):
        y_context = np.where(mask[..., np.newaxis], inputs["y_context"], np.float32(value))
        batch = {**inputs, "context_mask": mask, "y_context": y_context}
        densities.append(forecaster.model_.log_prob(batch, y_target).numpy())
    np.testing.assert_array_equal(*densities)


# Back-tests.


def test_a_backtest_has_the_seasonal_line_without_being_asked(forecaster):
    result = forecaster.backtest(monthly_table(96), num_samples=20)
    scores = result.scores.set_index("line")["free_running_crps"]
    assert list(scores.index) == ["taylorformer", "last_value", "last_difference", "seasonal"]
    assert scores["taylorformer"] < scores["seasonal"] < scores["last_value"]
    assert result.num_windows == 1 and result.num_scored_points == 12


def test_windows_of_a_backtest_do_not_read_what_they_predict(forecaster):
    table = monthly_table(60)
    one = forecaster.backtest(table, num_samples=0, horizon=3)
    changed = table.copy()
    # The last row is a target of the last window alone.
    changed.loc[59, "y"] = 1e5
    other = forecaster.backtest(changed, num_samples=0, horizon=3)
    first = one.by_window.query("line == 'taylorformer'")["teacher_forced_nll"].to_numpy()
    second = other.by_window.query("line == 'taylorformer'")["teacher_forced_nll"].to_numpy()
    np.testing.assert_allclose(first[:-1], second[:-1], rtol=1e-6)
    assert second[-1] > first[-1] + 1


def test_a_backtest_of_short_series_says_so(forecaster):
    with pytest.raises(ValueError, match=r"horizon \+ 2 = 14 rows"):
        forecaster.backtest(monthly_table(8), horizon=12)


# Files and serving.


def test_it_is_saved_and_loaded(forecaster, forecast, table, tmp_path):
    kept = PretrainedForecaster(horizon=5, seasons=["1 year"], lower=0)
    kept.save(tmp_path / "model")
    again = Forecaster.load(tmp_path / "model")
    assert isinstance(again, PretrainedForecaster)
    for name, value in kept.get_params(deep=False).items():
        assert getattr(again, name) == value or list(getattr(again, name)) == list(value)
    one, two = (each.forecast(table, num_samples=_SAMPLES) for each in (kept, again))
    np.testing.assert_allclose(one.samples, two.samples, rtol=1e-6)
    with pytest.raises(FileExistsError, match="overwrite"):
        kept.save(tmp_path / "model")


@pytest.mark.parametrize("zone", [pytest.param(None, marks=pytest.mark.slow), "Europe/Berlin"])
def test_a_served_model_gives_the_numbers_of_the_windows(forecaster, tmp_path, zone):
    """Across a leap day, a change of the clock and missing rows, with the reported periods."""
    stamps = pd.date_range("2024-02-20", periods=24 * 45, freq="h", tz=zone)
    rng = np.random.default_rng(0)
    hours = np.arange(len(stamps))
    values = 20 + 5 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=len(stamps))
    values[rng.random(len(stamps)) < 0.1] = np.nan
    table = pd.DataFrame({"ds": stamps, "y": values})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecast = forecaster.forecast(table, num_samples=2, horizon=6)
    ((seasons,),) = forecast.seasons
    assert "1 day" in seasons.describe()
    forecaster.export(tmp_path / "served", overwrite=True)
    served = tf.saved_model.load(tmp_path / "served")
    series = Series.from_frame(table, "ds", "y")
    num_context = len(forecast.context_stamps[0])
    spec = WindowSpec(num_context, 6)
    windows = ContextWindows(series, spec, lambda number, rows: seasons.padded)
    starts = np.array([len(stamps) - spec.length])
    inputs, y_target = windows.batch(starts)
    expected = forecaster.model_.log_prob(inputs, y_target)
    unit = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[series.time_unit]
    seconds = series.time[-spec.length :] / unit
    request = {
        "time_context": seconds[np.newaxis, :num_context],
        "time_target": seconds[np.newaxis, num_context:],
        "y_context": series.values[np.newaxis, -spec.length : -6],
        "periods": seasons.padded[np.newaxis] / unit,
    }
    constants = {name: tf.constant(value, tf.float64) for name, value in request.items()}
    y = tf.constant(series.values[np.newaxis, -6:])
    density = served.signatures["log_prob"](**constants, y_target=y)["log_prob"]
    np.testing.assert_allclose(density, windows.inverse_log_prob(expected, starts), rtol=1e-5)
    drawn = served.signatures["sample"](
        **constants, num_samples=tf.constant(4), seed=tf.constant(3)
    )["samples"]
    direct = forecaster.model_.sample(
        windows.forecast_inputs(starts), 4, 3, sequence_keys=np.zeros(1, np.int64)
    )
    np.testing.assert_allclose(drawn, windows.inverse(direct, starts), rtol=1e-4, atol=1e-3)


def test_bounds_that_all_targets_share_are_served_as_a_list_too(forecaster, tmp_path, monkeypatch):
    from taylorformer.training_and_evaluation.forecasting import serving

    served = []
    monkeypatch.setattr(
        serving, "export_pretrained", lambda *arguments: served.append(arguments[1])
    )
    for lower in (0, [0, 0], (0.0, 0.0)):
        clone(forecaster).set_params(lower=lower).export(tmp_path / "served")
    assert [support.lower for support in served] == [(0,)] * 3
    with pytest.raises(ValueError, match="one value, or one for each of the 1 target columns"):
        clone(forecaster).set_params(lower=[0, 1]).export(tmp_path / "served")


# Any table.


def _random_table(number):
    """A table of one or several odd series, with numbers or dates as time."""
    rng = np.random.default_rng(number)
    rows = int(np.exp(rng.uniform(np.log(1), np.log(250))))
    size = 10.0 ** rng.uniform(-8, 8)
    kind = rng.integers(6)
    steps = np.arange(rows)
    values = [
        rng.normal(size=rows).cumsum(),
        np.sin(2 * np.pi * steps / rng.uniform(3, 40)) + 0.1 * rng.normal(size=rows),
        np.full(rows, rng.normal()),
        rng.poisson(1.0, rows).astype(float),
        np.exp(rng.normal(size=rows).cumsum() / 3),
        np.where(steps < rows // 2, 0.0, 1.0),
    ][kind]
    values = size * values
    values[rng.random(rows) < rng.choice([0.0, 0.4])] = np.nan
    values[0] = size
    if rng.random() < 0.5:
        freq = rng.choice(["D", "MS", "h", "W", "QS", "B", "15min"])
        time = pd.date_range("2019-12-20", periods=rows, freq=freq)
    else:
        time = np.cumsum(rng.uniform(0.5, 1.5, rows)) if rng.random() < 0.5 else steps
    return pd.DataFrame({"t": time, "y": values})


def _check_random_table(forecaster, number):
    table = _random_table(number)
    future = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if len(table) == 1 or not isinstance(table["t"].iloc[0], pd.Timestamp):
            last = table["t"].iloc[-1]
            step = pd.Timedelta("1 day") if isinstance(last, pd.Timestamp) else 1.0
            future = pd.DataFrame({"t": [last + step * k for k in range(1, 5)]})
        forecast = forecaster.forecast(
            table, future, horizon=4, num_samples=3, time_column="t", target_columns="y"
        )
    assert forecast.samples.shape == (3, 1, 4, 1)
    assert np.isfinite(forecast.samples).all()
    size = np.nanmax(np.abs(table["y"]))
    assert np.abs(forecast.samples).max() <= 1e4 * size


@pytest.mark.parametrize("number", range(12))
def test_any_table_has_a_finite_forecast(forecaster, number):
    _check_random_table(forecaster, number)


@pytest.mark.slow
def test_three_hundred_tables_have_finite_forecasts(forecaster):
    for number in range(300):
        _check_random_table(forecaster, number)
