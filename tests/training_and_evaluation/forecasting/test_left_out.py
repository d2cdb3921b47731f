"""One odd series of a panel never stops the others, nor changes their numbers."""

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from forecasting import TINY, good_panel, odd_panel, tiny_forecaster, wave_table

from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

USELESS = ("one row", "all missing", "no targets", "short")
USEFUL = ("constant", "stopped", "absent")


def quick_forecaster():
    """Evaluates few windows, which is most of the time of a training that runs eagerly."""
    return tiny_forecaster(preset=dataclasses.replace(TINY, max_steps=3, max_validation_windows=8))


def one_warning(call, *words):
    """Calls, and checks that there is one warning, with all words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    texts = [str(one.message) for one in caught]
    assert len(texts) == 1, texts
    for word in words:
        assert word in texts[0], (word, texts[0])
    return result


def without_warnings(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def interleaved(*tables):
    """Rows of all series, mixed, in the order of time."""
    return pd.concat(tables).sort_values(["ds", "unique_id"], ignore_index=True)


def fit_panel(count):
    good = good_panel(count)
    trained = pd.concat([good, odd_panel(*USEFUL)])
    forecaster = one_warning(
        lambda: quick_forecaster().fit(interleaved(trained, odd_panel(*USELESS))),
        *USELESS,
        "constant",
        "stopped",
        "Left out of the training",
    )
    return forecaster, good, trained


def check_fit(forecaster, trained):
    wanted = without_warnings(lambda: quick_forecaster().fit(interleaved(trained)))
    for ours, theirs in zip(
        forecaster.model_.get_weights(), wanted.model_.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    pd.testing.assert_frame_equal(forecaster.history_, wanted.history_)
    report = json.loads(json.dumps(forecaster.report_))
    assert set(report["left_out"]) == set(USELESS)
    assert "context_length + horizon = 10 rows" in report["left_out"]["short"]
    assert set(report["notes"]) == {"constant", "stopped"}
    assert report["num_training_windows"] == wanted.report_["num_training_windows"]
    # A short series has a scale, and can be forecast and scored later.
    names = set(forecaster.scaler_.names)
    assert names == {*trained["unique_id"], "short", "no targets"} == set(forecaster.borders_)


def later_table(good):
    kinds = (*USELESS, "constant", "stopped", "new", "new of one row")
    return interleaved(good, odd_panel(*kinds))


def check_forecast(forecaster, good):
    wanted = without_warnings(lambda: forecaster.forecast(good, num_samples=3))
    gone = ("all missing", "one row", "new of one row", "absent")
    forecast = one_warning(
        lambda: forecaster.forecast(later_table(good), num_samples=3),
        *gone,
        *("constant", "stopped", "new"),
    )
    assert set(forecast.left_out) == set(gone) and set(forecast.notes) == {
        "constant",
        "stopped",
        "new",
    }
    assert set(forecast.names) == {*wanted.names, "short", "no targets", *forecast.notes}
    assert np.isfinite(forecast.samples).all()
    for number, name in enumerate(wanted.names):
        alone = forecast.select(name)
        np.testing.assert_array_equal(alone.samples[:, 0], wanted.samples[:, number])
        assert alone.stamps[0].equals(wanted.stamps[number])
    assert set(forecast.to_frame()["unique_id"]) == set(forecast.names)
    with pytest.raises(KeyError, match="left out: no value of every target"):
        forecast.select("all missing")


def check_backtest(forecaster, good, folder):
    def scores(table):
        return forecaster.backtest(table, num_samples=3, batch_size=64)

    wanted = without_warnings(lambda: scores(good)).by_window
    new = ("one row", "all missing", "new", "new of one row")
    scored = one_warning(
        lambda: scores(later_table(good)), *new, "short", "no targets", "absent", "stopped"
    )
    assert set(scored.left_out) == {*new, "short", "no targets", "absent"}
    assert set(scored.notes) == {"constant", "stopped"}
    ours = scored.by_window[scored.by_window["series"].str.startswith("good")]
    ours = ours.reset_index(drop=True)
    about = ["line", "series", "num_scored"]
    pd.testing.assert_frame_equal(ours[about], wanted[about])
    columns = [name for name in wanted.columns if "_running_" in name or name.endswith("_mse")]
    np.testing.assert_allclose(ours[columns], wanted[columns], rtol=1e-3)
    scored.save(folder)
    assert json.loads((folder / "backtest.json").read_text())["left_out"] == scored.left_out
    # Without series that are scored, too, the others are scored to the last bit as before.
    left_out = interleaved(good, odd_panel(*USELESS, "new", "new of one row"))
    pd.testing.assert_frame_equal(
        without_warnings(lambda: scores(left_out)).by_window, wanted, check_exact=True
    )


def check_export(forecaster, good, folder):
    forecaster.export(folder)
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    names = [name for name in forecaster.scaler_.names if name.startswith("good")][:3]
    for name in (*names, "short", "stopped"):
        answer = serve(
            time_context=tf.constant(86400.0 * np.arange(6)[np.newaxis]),
            time_target=tf.constant(86400.0 * np.arange(6, 10)[np.newaxis]),
            # Nothing is known, so that the answer lies about the mean of the series.
            y_context=tf.constant(np.full((1, 6, 1), np.nan)),
            series=tf.constant([forecaster.scaler_.names.index(name)]),
            quantile_levels=tf.constant([0.5]),
            num_samples=tf.constant(20),
            seed=tf.constant(0),
        )
        level = 50.0 if not name.startswith("good") else 100.0 * (int(name[-3:]) + 1)
        assert np.abs(answer["mean"] - level).max() < 0.5 * level, name


@pytest.fixture(scope="module")
def panel():
    return fit_panel(8)


def test_the_others_are_trained_as_without_the_odd_ones(panel):
    forecaster, _, trained = panel
    check_fit(forecaster, trained)


def test_the_others_are_forecast_as_without_the_odd_ones(panel):
    check_forecast(*panel[:2])


def test_the_others_are_scored_as_without_the_odd_ones(panel, tmp_path):
    check_backtest(*panel[:2], tmp_path)


def test_a_forecaster_that_left_out_series_is_saved(panel, tmp_path):
    forecaster, good, _ = panel
    forecaster.save(tmp_path)
    again = Forecaster.load(tmp_path)
    assert again.report_ == forecaster.report_
    check_forecast(again, good)


@pytest.mark.slow
def test_a_panel_of_200_series_with_one_of_each_odd_kind(tmp_path):
    forecaster, good, trained = fit_panel(200)
    check_fit(forecaster, trained)
    check_forecast(forecaster, good)
    check_backtest(forecaster, good, tmp_path / "scores")
    check_export(forecaster, good, tmp_path / "model")


@pytest.mark.slow
def test_indices_of_series_that_are_served_are_those_of_the_scaler(panel, tmp_path):
    check_export(*panel[:2], tmp_path)


# Single kinds.


def test_one_row_of_a_series_of_training_is_forecast(panel):
    """With the stamps of another series, or those that are given."""
    forecaster, good, _ = panel
    last = good["ds"].max()
    one_row = odd_panel("absent")[20:21]
    rest = interleaved(good, odd_panel("constant", "stopped", "short", "no targets"))
    forecast = one_warning(
        lambda: forecaster.forecast(interleaved(rest, one_row), num_samples=2),
        "one row: its next stamps are those of",
    )
    (stamps,) = forecast.select("absent").stamps
    assert list(stamps) == list(pd.date_range("2020-01-22", periods=4))
    assert np.isfinite(forecast.select("absent").samples).all()
    # Nobody else has a row at that time.
    elsewhen = one_row.assign(ds=last + pd.Timedelta("400 days 12:00:00"))
    forecast = one_warning(
        lambda: forecaster.forecast(interleaved(rest, elsewhen), num_samples=2),
        "absent (its next stamps are unknown: `future` must give the stamps",
    )
    assert "absent" in forecast.left_out
    with pytest.raises(ValueError, match="`future` must give the stamps"):
        forecaster.forecast(one_row)
    future = pd.DataFrame({"unique_id": "absent", "ds": ["2020-01-22", "2020-01-23"]})
    assert forecaster.forecast(one_row, future, num_samples=2).samples.shape == (2, 1, 2, 1)


def test_a_future_need_not_have_rows_of_series_that_are_left_out_or_stopped(panel):
    forecaster, good, _ = panel
    days = pd.date_range(good["ds"].max(), periods=3)[1:]
    names = good["unique_id"].unique()
    future = pd.concat([pd.DataFrame({"unique_id": name, "ds": days}) for name in names])
    table = interleaved(good, odd_panel("all missing", "stopped", "new of one row"))
    forecast = one_warning(
        lambda: forecaster.forecast(table, future, num_samples=2), "stopped (no rows in `future`)"
    )
    assert set(forecast.names) == set(names)
    with pytest.raises(ValueError, match=r"rows for every series\. Received: none for good 000"):
        without_warnings(lambda: forecaster.forecast(table, future[2:], num_samples=2))


def test_a_table_of_few_series_lacks_none(panel):
    forecaster, good, _ = panel
    some = good[good["unique_id"].isin(["good 000", "good 001"])]
    assert forecaster.forecast(some, num_samples=2).left_out == {}
    assert forecaster.backtest(some, num_samples=0).left_out == {}


def test_where_no_series_is_usable_the_error_has_all_reasons(panel):
    forecaster = panel[0]
    table = odd_panel("one row", "all missing", "short")
    with pytest.raises(
        ValueError,
        match=r"series that can be trained on\. Received: one row, all missing \(no value of every "
        r"target in the training part\), short \(fewer than context_length",
    ):
        quick_forecaster().fit(table)
    new = odd_panel("all missing", "new of one row")
    with pytest.raises(ValueError, match=r"can be forecast\. Received: all missing \(.*\), new of"):
        forecaster.forecast(new)
    with pytest.raises(ValueError, match=r"in the test part\. Received: .*short \(too short"):
        without_warnings(lambda: forecaster.backtest(odd_panel("short", "no targets")))
    alone = wave_table().assign(y=np.nan)
    with pytest.raises(ValueError, match="must have a value in the training part"):
        quick_forecaster().fit(alone)


def test_disorder_in_one_series_is_a_fault_of_the_table(panel):
    forecaster, good, _ = panel
    twice = pd.concat([good, good[:1]])
    with pytest.raises(ValueError, match=r"must hold each time once.*unique_id 'good 000'"):
        forecaster.forecast(twice)
    with pytest.raises(ValueError, match="must be in the order of time"):
        quick_forecaster().fit(good[::-1])
    text = good.astype({"y": object})
    text.loc[5, "y"] = "five"
    with pytest.raises(ValueError, match=r"Received: 'five' in row 6 \(unique_id 'good 000'\)"):
        forecaster.forecast(text)


@pytest.mark.slow
def test_a_column_without_values_is_odd_in_tables_of_several_columns():
    good = good_panel(3).assign(z=lambda table: table["y"] * 2)
    half = odd_panel("new").assign(unique_id="half", z=np.nan)
    apart = odd_panel("new").assign(unique_id="apart")
    apart["z"] = apart["y"].where(np.arange(len(apart)) % 2 == 0)
    apart["y"] = apart["y"].where(np.arange(len(apart)) % 2 == 1)
    columns = {"target_columns": ["y", "z"], "id_column": "unique_id"}
    forecaster = one_warning(
        lambda: quick_forecaster().fit(interleaved(good, half, apart), "ds", **columns),
        "half (no value of every target",
        "apart (no value to predict",
    )
    wanted = quick_forecaster().fit(interleaved(good), "ds", **columns)
    for ours, theirs in zip(
        forecaster.model_.get_weights(), wanted.model_.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_covariates_of_series_that_are_left_out_do_not_count():
    good = good_panel(3).assign(heat=lambda table: np.arange(len(table)) % 7.0)
    odd = odd_panel("short", "one row", "all missing").assign(heat=1e6)
    options = {"covariate_columns": ["heat"]}
    forecaster = without_warnings(lambda: quick_forecaster().fit(interleaved(good, odd), **options))
    wanted = quick_forecaster().fit(interleaved(good), **options)
    np.testing.assert_array_equal(
        forecaster.scaler_.covariate_center, wanted.scaler_.covariate_center
    )
    for ours, theirs in zip(
        forecaster.model_.get_weights(), wanted.model_.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["with_one_row.csv", "with_all_missing.csv"])
def test_tables_that_once_stopped_a_forecast(name, shared_path):
    table = pd.read_csv(shared_path("cases", name))
    forecaster = without_warnings(lambda: quick_forecaster().fit(table))
    odd = set(forecaster.report_["left_out"])
    assert odd
    forecast = without_warnings(lambda: forecaster.forecast(table, num_samples=2))
    assert set(forecast.left_out) == odd
    assert set(forecast.names) | odd == set(table["unique_id"].astype(str))
