"""From a table to a forecast: what users of the Forecaster rely on."""

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting import TINY, long_table, tiny_forecaster, wave_table
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split
from taylorformer.training_and_evaluation.forecasting.forecast import Forecast, quantile_name
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.forecasting.presets import PRESETS, find_preset


@pytest.fixture(scope="module")
def table():
    return wave_table()


@pytest.fixture(scope="module")
def fitted(table):
    return tiny_forecaster().fit(table)


@pytest.fixture(scope="module")
def forecast(fitted, table):
    return fitted.forecast(table, num_samples=50, seed=3)


@pytest.fixture(scope="module")
def fitted_on_several():
    return tiny_forecaster().fit(long_table())


def weights(forecaster):
    return forecaster.model_.get_weights()


def assert_same_weights(first, second):
    for ours, theirs in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# One series.


def test_a_forecast_is_in_the_units_of_the_table(forecast):
    assert forecast.samples.shape == (50, 1, 4, 1)
    assert np.abs(forecast.mean - 5000).max() < 1000
    assert (forecast.stddev > 30).all() and (forecast.stddev < 1000).all()


def test_stamps_follow_the_last_row(forecast, table):
    (stamps,) = forecast.stamps
    wanted = pd.date_range(table["ds"].iloc[-1], periods=5)[1:]
    assert list(stamps) == list(wanted) and stamps.is_monotonic_increasing
    assert list(forecast.context_stamps[0]) == list(table["ds"].iloc[-6:])
    np.testing.assert_array_equal(forecast.context_values[0][:, 0], table["y"].iloc[-6:])


def test_quantiles_do_not_cross_and_intervals_are_quantiles(forecast):
    levels = np.linspace(0, 1, 21)
    quantiles = forecast.quantile(levels)
    assert quantiles.shape == (1, 4, 1, 21)
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    low, high = forecast.interval(0.9)
    np.testing.assert_array_equal(low, forecast.quantile(0.05))
    np.testing.assert_array_equal(high, forecast.quantile(0.95))
    for bad in (-0.1, 1.1, [[0.5]], np.nan):
        with pytest.raises(ValueError, match="`q` must be a level"):
            forecast.quantile(bad)
    with pytest.raises(ValueError, match="`share` must be"):
        forecast.interval(1.0)


def test_the_table_of_a_forecast(forecast):
    frame = forecast.to_frame([0.025, 0.5, 0.95])
    assert list(frame.columns) == ["ds", "mean", "stddev", "q02.5", "q50", "q95"]
    np.testing.assert_array_equal(frame["mean"], forecast.mean[0, :, 0])
    np.testing.assert_array_equal(frame["q50"], forecast.quantile(0.5)[0, :, 0])
    assert frame["ds"].equals(pd.Series(forecast.stamps[0], name="ds"))
    assert [quantile_name(q) for q in (0, 0.05, 0.975, 1)] == ["q00", "q05", "q97.5", "q100"]
    assert list(forecast.to_frame([]).columns) == ["ds", "mean", "stddev"]


def test_plot(forecast):
    figure = forecast.plot(truth=np.full(4, 5000.0))
    assert isinstance(figure, Figure) and figure.axes[0].get_ylabel() == "y"
    with pytest.raises(KeyError, match="`name` must be one of ''"):
        forecast.plot("other")
    with pytest.raises(KeyError, match="`target` must be one of 'y'"):
        forecast.plot(target="z")


def test_the_seed_makes_the_samples(fitted, forecast, table):
    again = fitted.forecast(table, num_samples=50, seed=3)
    np.testing.assert_array_equal(again.samples, forecast.samples)
    fewer = fitted.forecast(table, num_samples=7, seed=3)
    np.testing.assert_allclose(fewer.samples, forecast.samples[:7], rtol=1e-6)
    other = fitted.forecast(table, num_samples=50, seed=4)
    assert (other.samples != forecast.samples).all()


@pytest.mark.slow
def test_fitting_twice_gives_the_same_and_a_forecast_between_changes_nothing(fitted, table):
    again = tiny_forecaster().fit(table)
    again.forecast(table, num_samples=2)
    pd.testing.assert_frame_equal(again.history_, fitted.history_)
    assert_same_weights(again, fitted)
    again.fit(table)
    assert_same_weights(again, fitted)
    other = tiny_forecaster(seed=1).fit(table)
    assert any((a != b).any() for a, b in zip(weights(other), weights(fitted), strict=True))


def test_training_does_not_read_the_test_part(fitted, table):
    split = Split.chronological(len(table))
    changed = table.copy()
    changed.loc[split.validation_end :, "y"] *= 1e6
    other = tiny_forecaster().fit(changed)
    assert other.scaler_.get_config() == fitted.scaler_.get_config()
    pd.testing.assert_frame_equal(other.history_, fitted.history_)
    assert_same_weights(other, fitted)


@pytest.mark.parametrize("garbage", [np.nan, -1e30, np.inf, "text"])
def test_a_forecast_does_not_read_the_y_of_the_future(fitted, table, forecast, garbage):
    stamps = pd.date_range(table["ds"].iloc[-1], periods=5)[1:]
    future = pd.DataFrame({"ds": stamps, "y": [garbage] * 4})
    other = fitted.forecast(table, future, num_samples=50, seed=3)
    np.testing.assert_array_equal(other.samples, forecast.samples)


def test_a_window_of_the_back_test_is_a_forecast_from_there(fitted, table):
    past, truth = table[:-4], table["y"].to_numpy()[-4:]
    forecast = fitted.forecast(past, table[-4:], num_samples=20, seed=5)
    scores = fitted.backtest(table, num_windows=1, num_samples=20, seed=5)
    scored = ~np.isnan(truth)
    error = (forecast.mean[0, :, 0] - truth)[scored]
    row = scores.scores.set_index("line").loc["taylorformer"]
    assert row["free_running_mse"] == pytest.approx(np.mean(error**2), rel=1e-5)
    low, high = forecast.interval(0.9)
    width = np.mean((high - low)[0, scored, 0])
    assert row["free_running_width_90"] == pytest.approx(width, rel=1e-5)


@pytest.mark.parametrize("horizon", [1, 3, 4])
def test_a_shorter_horizon_is_the_beginning_of_the_longer_one(fitted, table, forecast, horizon):
    short = fitted.forecast(table, horizon=horizon, num_samples=50, seed=3)
    np.testing.assert_allclose(short.samples, forecast.samples[:, :, :horizon], rtol=1e-6)


def test_a_longer_horizon_works_and_says_where_training_ends(fitted, table, forecast):
    with pytest.warns(UserWarning, match=r"was -1 to 1 in training, is -1 to 1\.89"):
        long = fitted.forecast(table, horizon=8, num_samples=50, seed=3)
    assert long.samples.shape == (50, 1, 8, 1) and np.isfinite(long.samples).all()
    np.testing.assert_allclose(long.samples[:, :, :4], forecast.samples, rtol=1e-6)


def test_a_past_shorter_than_the_context_is_enough(fitted, table):
    forecast = fitted.forecast(table[-3:], num_samples=5)
    assert np.isfinite(forecast.samples).all() and len(forecast.context_stamps[0]) == 3
    one = fitted.forecast(table[-1:], future=pd.DataFrame({"ds": ["2020-03-31"]}), num_samples=5)
    assert one.samples.shape == (5, 1, 1, 1)


def test_the_resolution_of_dates_does_not_matter(fitted, table, forecast):
    for unit in ("s", "ns"):
        other = fitted.forecast(
            table.assign(ds=table["ds"].dt.as_unit(unit)), num_samples=50, seed=3
        )
        np.testing.assert_array_equal(other.samples, forecast.samples)
        np.testing.assert_array_equal(
            fitted.backtest(table.assign(ds=table["ds"].dt.as_unit(unit)), num_samples=0).scores,
            fitted.backtest(table, num_samples=0).scores,
        )


@pytest.mark.slow
def test_a_series_is_as_good_as_a_frame(fitted, table, forecast):
    series = Series.from_frame(table, "ds", "y")
    np.testing.assert_array_equal(
        fitted.forecast(series, num_samples=50, seed=3).samples, forecast.samples
    )
    assert_same_weights(tiny_forecaster().fit(series), fitted)


def test_series_with_other_columns_are_refused(fitted_on_wide):
    values = np.zeros((20, 2))
    index = pd.Index(np.arange(20))
    for columns in (("z", "y"), ("y", "w")):
        series = Series(np.arange(20), values, index, "ds", columns)
        with pytest.raises(ValueError, match="must have the `target_columns` of training"):
            fitted_on_wide.forecast(series)


def test_several_series_of_a_model_without_ids_can_be_told_apart(fitted):
    series = [
        dataclasses.replace(Series.from_frame(wave_table(40, seed), "ds", "y"), name=name)
        for seed, name in ((1, "a"), (2, "b"))
    ]
    with pytest.warns(UserWarning, match=r"Used: a, b \(not there in training"):
        frame = fitted.forecast(series, num_samples=3).to_frame()
    assert list(frame["unique_id"]) == ["a"] * 4 + ["b"] * 4


@pytest.mark.slow
def test_float_times_give_the_same_forecast_from_a_table_and_from_its_continuation():
    table = wave_table(60).assign(ds=0.1 * np.arange(60))
    forecaster = tiny_forecaster(max_steps=1).fit(table)
    for end in (40, 47, 53):
        continued = forecaster.forecast(table[:end], num_samples=3)
        given = forecaster.forecast(table[:end], table[end : end + 4], num_samples=3)
        np.testing.assert_allclose(continued.samples, given.samples, rtol=1e-5)


def test_values_far_outside_what_training_saw_are_finite():
    table = wave_table(60, mean=1.0, spread=0.0)
    table.loc[48:, "y"] = 1e29
    forecaster = tiny_forecaster(max_steps=1).fit(table)
    assert np.isfinite(forecaster.forecast(table, num_samples=2).samples).all()
    scores = forecaster.backtest(table, num_samples=2).scores
    assert np.isfinite(scores["free_running_crps"]).all()


def test_validation_windows_are_those_with_something_to_score():
    table = wave_table(90)
    table.loc[62:70, "y"] = np.nan
    preset = dataclasses.replace(TINY, max_validation_windows=2, max_steps=1)
    report = tiny_forecaster(preset=preset).fit(table).report_
    assert report["num_validation_windows"] == 1


def test_a_longer_table_is_scored_where_training_never_was(fitted, table):
    longer = pd.concat([table, wave_table(130)[90:]])
    starts = fitted.backtest(longer, num_samples=0).by_window
    first = pd.to_datetime(starts["first_target"]).min()
    assert first >= table["ds"].iloc[Split.chronological(90).validation_end]
    assert fitted.backtest(longer, num_samples=0).num_windows > 4
    assert fitted.backtest(longer, part="validation", num_samples=0).num_windows == 2


def test_report_counts_what_is_missing(fitted, table):
    report = json.loads(json.dumps(fitted.report_))
    assert report["series"][""]["missing"] == {"y": int(table["y"].isna().sum())}
    assert report["series"][""]["masked_rows"] > 0
    assert report["num_training_windows"] == 62 - 9
    assert report["training_steps"] == 4 and report["best_step"] in (2, 4)
    assert list(fitted.history_["step"]) == [2, 4]


def test_too_short_a_table_says_what_it_needs():
    with pytest.raises(
        ValueError,
        match=r"context_length \+ horizon = 192 rows in the training part\. Received: 41$",
    ):
        Forecaster(start=None).fit(wave_table(60))
    with pytest.raises(ValueError, match=r"horizon = 5 rows in the validation part\. Received: 4"):
        tiny_forecaster(5).fit(wave_table(38))


def test_bad_arguments_are_named_before_anything_is_read():
    for options, message in [
        ({"horizon": 0}, "`horizon` must be at least 1"),
        ({"preset": "huge"}, "`preset` must be one of 'compact', 'ett'"),
        ({"scaling": "log"}, "`scaling` must be one of"),
        ({"max_steps": 0}, "`max_steps` must be at least 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"fractions": (0.5, 0.6, 0.1)}, "`fractions` must be three shares"),
        ({"learning_rate": 0}, "`learning_rate` must be"),
        ({"fractions": (0.7, float("nan"), 0.2)}, "`fractions` must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            Forecaster(**options).fit(None)
    with pytest.raises(TypeError, match="`data` must be a pandas DataFrame"):
        Forecaster().fit(None)


def test_before_fit_there_is_no_forecast(table):
    for use in ("forecast", "backtest"):
        with pytest.raises(NotFittedError):
            getattr(Forecaster(), use)(table)
    with pytest.raises(NotFittedError):
        Forecaster().save("nowhere")


def test_it_is_an_estimator_of_scikit_learn():
    forecaster = tiny_forecaster(max_steps=7)
    again = clone(forecaster)
    assert again.get_params() == forecaster.get_params() and again.get_params()["max_steps"] == 7
    assert again.set_params(seed=3).seed == 3


@pytest.mark.parametrize("scaling", ["window", "standard"])
def test_a_constant_series_is_finite(scaling):
    table = wave_table().assign(y=5000.0)
    forecaster = tiny_forecaster(scaling=scaling).fit(table)
    samples = forecaster.forecast(table, num_samples=5).samples
    assert np.isfinite(samples).all() and np.abs(samples - 5000).max() < 5000
    assert np.isfinite(forecaster.history_.to_numpy()).all()


@pytest.mark.slow
def test_without_a_validation_part_the_last_weights_are_kept(table):
    forecaster = tiny_forecaster(fractions=(0.8, 0.0, 0.2)).fit(table)
    assert forecaster.report_["best_step"] == 4
    assert list(forecaster.history_.columns) == [
        "step",
        "teacher_forced_nll",
        "teacher_forced_mse",
    ]
    blank = table.copy()
    blank.loc[62:71, "y"] = np.nan
    with pytest.warns(UserWarning, match="no target of the validation part has a value"):
        assert tiny_forecaster().fit(blank).report_["num_validation_windows"] == 0


# Several series, several columns, covariates.


def test_the_long_format_needs_no_arguments(fitted_on_several):
    assert fitted_on_several.columns_.id_column == "unique_id"
    table = long_table()
    forecast = fitted_on_several.forecast(table, num_samples=9)
    assert forecast.names == ("shop 0", "shop 1", "shop 2")
    frame = forecast.to_frame()
    assert list(frame.columns[:3]) == ["unique_id", "ds", "mean"] and len(frame) == 12
    size = frame.groupby("unique_id")["mean"].apply(lambda mean: np.abs(mean).max())
    assert (size < 10.0 ** np.array([1, 2, 3])).all() and size["shop 2"] > 10
    for number, name in enumerate(forecast.names):
        one_series = table[table["unique_id"] == name]
        alone = fitted_on_several.forecast(one_series, num_samples=9)
        np.testing.assert_allclose(
            alone.samples[:, 0], forecast.samples[:, number], rtol=1e-5, atol=1e-5 * 10**number
        )
        day_after = one_series["ds"].iloc[-1] + pd.Timedelta("1 day")
        assert forecast.select(name).stamps[0][0] == day_after
    chunks = fitted_on_several.forecast(table, num_samples=9, batch_size=1)
    np.testing.assert_allclose(chunks.samples, forecast.samples, rtol=1e-5, atol=1e-3)


def test_series_may_have_futures_of_different_lengths(fitted_on_several):
    table = long_table()
    last = table.groupby("unique_id")["ds"].max()
    rows = [
        (name, last[name] + pd.Timedelta(days=day))
        for number, name in enumerate(last.index)
        for day in range(1, 3 + number)
    ]
    future = pd.DataFrame(rows, columns=["unique_id", "ds"])
    forecast = fitted_on_several.forecast(table, future, num_samples=3)
    assert [len(stamps) for stamps in forecast.stamps] == [2, 3, 4]
    assert np.isnan(forecast.samples[:, 0, 2:]).all()
    assert np.isfinite(forecast.select("shop 0").samples).all()
    frame = forecast.to_frame()
    assert len(frame) == 9 and frame["mean"].notna().all()
    with pytest.raises(ValueError, match=r"rows for every series\. Received: none for shop 2"):
        fitted_on_several.forecast(table, future[:5])
    with pytest.raises(ValueError, match="must have the column 'unique_id'"):
        fitted_on_several.forecast(table, future[["ds"]])


def test_a_new_series_can_be_forecast_but_not_back_tested(fitted_on_several):
    new = wave_table(50, 4, 70.0, 7.0).assign(unique_id="new")
    with pytest.warns(UserWarning, match=r"Used: new \(not there in training"):
        forecast = fitted_on_several.forecast(new, num_samples=9)
    assert np.abs(forecast.mean - 70).max() < 50
    with pytest.raises(ValueError, match=r"there in training\. Received: new; in training there"):
        fitted_on_several.backtest(new)
    both = pd.concat([long_table(), new])
    with pytest.warns(UserWarning, match=r"of the back-test: new \(not there in training"):
        scores = fitted_on_several.backtest(both, num_samples=0).scores
    wanted = fitted_on_several.backtest(long_table(), num_samples=0).scores
    pd.testing.assert_frame_equal(scores, wanted)


def test_one_series_with_an_id_is_not_taken_for_another():
    one = wave_table().assign(unique_id="A")
    forecaster = tiny_forecaster().fit(one)
    other = wave_table(90, 3, 1e6, 1e5).assign(unique_id="B")
    with pytest.raises(ValueError, match=r"Received: B; in training there were A"):
        forecaster.backtest(other)
    with pytest.warns(UserWarning, match=r"Used: B \(not there in training"):
        assert np.abs(forecaster.forecast(other, num_samples=3).mean - 1e6).max() < 1e6


@pytest.mark.slow
def test_ids_come_back_as_they_were():
    table = long_table().assign(unique_id=lambda t: t["unique_id"].str[-1].astype(int))
    forecaster = tiny_forecaster().fit(table)
    forecast = forecaster.forecast(table, num_samples=3)
    frame = forecast.to_frame()
    assert frame["unique_id"].dtype == table["unique_id"].dtype
    assert len(frame.merge(table[["unique_id"]].drop_duplicates(), on="unique_id")) == 12
    np.testing.assert_array_equal(forecast.select(1).samples, forecast.select("1").samples)
    # Missing values elsewhere make pandas read whole numbers as floats.
    floats = forecaster.forecast(table.assign(unique_id=table["unique_id"] * 1.0), num_samples=3)
    np.testing.assert_array_equal(floats.samples, forecast.samples)


def test_a_series_without_training_values_does_not_stop_the_others():
    late = wave_table(40).assign(unique_id="late")
    late.loc[:35, "y"] = np.nan
    one_row = wave_table(2)[1:].assign(unique_id="one row")
    with pytest.warns(UserWarning, match=r"of the training: late, one row \(no value"):
        forecaster = tiny_forecaster().fit(pd.concat([long_table(), late, one_row]))
    assert forecaster.scaler_.names == ("shop 0", "shop 1", "shop 2")


def test_each_series_is_split_and_scored_on_its_own(fitted_on_several):
    result = fitted_on_several.backtest(long_table(), num_samples=0, step=1)
    counts = result.by_window.query("line == 'taylorformer'")["series"].value_counts().to_dict()
    sizes = {"shop 0": 60, "shop 1": 80, "shop 2": 50}
    for name, rows in sizes.items():
        split = Split.chronological(rows)
        assert counts[name] == rows - split.validation_end - 3
    limited = fitted_on_several.backtest(long_table(), num_samples=0, step=1, num_windows=2)
    assert limited.num_windows == 6


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(5)
    table = wave_table(80)
    return table.assign(z=rng.normal(size=80).cumsum(), heat=rng.normal(20, 5, 80), open=True)


@pytest.fixture(scope="module")
def fitted_on_wide(wide):
    return tiny_forecaster().fit(wide, "ds", ["y", "z"], covariate_columns=["heat", "open"])


def test_covariates_are_further_dimensions_of_x(fitted_on_wide, wide):
    model = fitted_on_wide.model_
    assert model.x_dims == 3 and model.y_dims == 2
    assert model.get_config()["neighbour_dims"] == 1
    future = pd.DataFrame(
        {"ds": pd.date_range("2020-03-21", periods=4), "heat": 20.0, "open": True}
    )
    forecast = fitted_on_wide.forecast(wide, future, num_samples=5)
    assert forecast.samples.shape == (5, 1, 4, 2)
    frame = forecast.to_frame()
    assert list(frame["target"]) == ["y"] * 4 + ["z"] * 4
    warm = fitted_on_wide.forecast(wide, future.assign(heat=30.0), num_samples=5)
    assert (warm.samples != forecast.samples).any()
    assert isinstance(forecast.plot(target="z"), Figure)


def test_covariates_make_the_future_compulsory(fitted_on_wide, wide):
    with pytest.raises(ValueError, match="future"):
        fitted_on_wide.forecast(wide)
    future = pd.DataFrame({"ds": pd.date_range("2020-03-21", periods=4), "heat": 20.0})
    with pytest.raises(ValueError, match="open"):
        fitted_on_wide.forecast(wide, future)
    with pytest.raises(TypeError, match="`future` must be a pandas DataFrame"):
        fitted_on_wide.forecast(wide, [1, 2])


# Files.


def test_a_saved_forecaster_forecasts_the_same(fitted, table, forecast, tmp_path):
    fitted.save(tmp_path / "new" / "model")
    again = Forecaster.load(tmp_path / "new" / "model")
    np.testing.assert_array_equal(
        again.forecast(table, num_samples=50, seed=3).samples, forecast.samples
    )
    scores = again.backtest(table, num_samples=0).scores
    pd.testing.assert_frame_equal(scores, fitted.backtest(table, num_samples=0).scores)
    assert again.get_params() == fitted.get_params()
    assert again.report_ == fitted.report_
    pd.testing.assert_frame_equal(again.history_, fitted.history_)
    names = sorted(path.name for path in (tmp_path / "new" / "model").iterdir())
    assert names == ["forecaster.json", "model.keras"]
    content = json.loads((tmp_path / "new" / "model" / "forecaster.json").read_text())
    assert {"taylorformer", "tensorflow", "keras"} < set(content["versions"])
    assert content["settings"]["preset"]["name"] == "tiny"
    assert content["columns"]["time_column"] == "ds"


def test_several_series_and_covariates_are_saved_too(
    fitted_on_several, fitted_on_wide, wide, tmp_path
):
    fitted_on_several.save(tmp_path / "several")
    again = Forecaster.load(tmp_path / "several")
    scores = again.backtest(long_table(), num_samples=0).scores
    wanted = fitted_on_several.backtest(long_table(), num_samples=0).scores
    pd.testing.assert_frame_equal(scores, wanted)
    fitted_on_wide.save(tmp_path / "wide")
    again = Forecaster.load(tmp_path / "wide")
    pd.testing.assert_frame_equal(
        again.backtest(wide, num_samples=0).scores,
        fitted_on_wide.backtest(wide, num_samples=0).scores,
    )


def test_nothing_is_overwritten_unasked(fitted, tmp_path):
    fitted.save(tmp_path)
    before = (tmp_path / "model.keras").read_bytes()
    with pytest.raises(FileExistsError, match="unless overwrite=True"):
        fitted.save(tmp_path)
    assert (tmp_path / "model.keras").read_bytes() == before
    fitted.save(tmp_path, overwrite=True)


def test_files_that_are_no_forecaster(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"forecaster\.json, which is not there"):
        Forecaster.load(tmp_path)
    fitted.save(tmp_path)
    path = tmp_path / "forecaster.json"
    content = json.loads(path.read_text())
    content["format"], content["versions"]["taylorformer"] = 99, "7.1"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"format 99, made by taylorformer 7\.1; this is "):
        Forecaster.load(tmp_path)
    content["format"] = 1
    del content["scaler"]
    for text in ("", "{}", "[]", json.dumps(content)):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"that `Forecaster.save` wrote"):
            Forecaster.load(tmp_path)


def test_a_save_that_fails_leaves_the_old_model(fitted, table, forecast, tmp_path, monkeypatch):
    fitted.save(tmp_path)

    def fail(*_, **__):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(type(fitted.model_), "save", fail)
        with pytest.raises(OSError, match="no space left"):
            fitted.save(tmp_path, overwrite=True)
    again = Forecaster.load(tmp_path).forecast(table, num_samples=50, seed=3)
    np.testing.assert_array_equal(again.samples, forecast.samples)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forecaster.json", "model.keras"]


# Presets and forecasts as data.


def test_presets_are_data():
    for name, preset in PRESETS.items():
        assert preset.name == name and find_preset(name) is preset
        assert type(preset).from_config(json.loads(json.dumps(preset.get_config()))) == preset
    assert TINY.plan.num_epochs == 2 and TINY.plan.epoch_steps == 2
    with pytest.raises(ValueError, match="`schedule` must be one of"):
        dataclasses.replace(TINY, schedule="linear")
    with pytest.raises(ValueError, match="`patience` must be at least 1"):
        dataclasses.replace(TINY, patience=0)


def test_columns_that_are_named_like_scores_are_kept():
    stamps = pd.Index([1, 2])
    forecast = Forecast(np.zeros((3, 1, 2, 1)), (stamps,), ("",), "mean", ("y",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = forecast.to_frame([0.5])
    assert list(frame.columns) == ["mean", "mean", "stddev", "q50"]
    assert list(frame.iloc[:, 0]) == [1, 2]
