"""Stamps of forecasts: calendars, stated frequencies, clock changes; files are read as written."""

import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting import long_table, tiny_forecaster

from taylorformer.data_wrangler.tables.files import read_table
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

HORIZON = 4


@pytest.fixture(scope="module")
def zoned():
    """A forecaster of hours in Berlin, trained before the clock changes, and its table."""
    hours = pd.date_range("2024-10-23T06:00", periods=90, freq="h", tz="Europe/Berlin")
    table = pd.DataFrame({"ds": hours, "y": np.sin(np.arange(90) / 3)})
    return tiny_forecaster(8, max_steps=2).fit(table), table


@pytest.fixture(scope="module")
def panel():
    """A forecaster of three series with a covariate, and its table."""
    table = long_table().assign(promo=1.0)
    return tiny_forecaster(max_steps=2).fit(table, covariate_columns=["promo"]), table


def test_a_forecast_over_a_change_of_the_clock_is_read_as_it_was_written(zoned, tmp_path):
    forecaster, table = zoned
    forecaster.save(tmp_path / "model")
    forecaster = Forecaster.load(tmp_path / "model")
    assert forecaster.columns_.time_zone == "Europe/Berlin"
    # The clock goes back at 3:00 on 2024-10-27: 2:00 comes twice.
    ahead = pd.date_range(table["ds"].iloc[-1], periods=9, freq="h")[1:]
    assert [stamp.hour for stamp in ahead] == [0, 1, 2, 2, 3, 4, 5, 6]
    forecast = forecaster.forecast(table, num_samples=2)
    assert list(forecast.stamps[0]) == list(ahead)
    forecast.save(tmp_path / "forecast.csv")
    written = read_table(tmp_path / "forecast.csv")
    assert written["ds"].str[-6:].nunique() == 2
    # As a future, beside the table and beside its own CSV.
    table.to_csv(tmp_path / "past.csv", index=False)
    for before in (table, read_table(tmp_path / "past.csv")):
        again = forecaster.forecast(before, written, num_samples=2)
        assert list(again.stamps[0]) == list(ahead)
        np.testing.assert_allclose(again.samples, forecast.samples)
    # As the past, alone and after the table.
    longer = pd.concat(
        [table.assign(ds=table["ds"].astype(str)), written.rename(columns={"mean": "y"})]
    )
    for rows in (written.rename(columns={"mean": "y"}), longer):
        following = forecaster.forecast(rows[["ds", "y"]], num_samples=2).stamps[0]
        assert list(following) == list(pd.date_range(ahead[-1], periods=9, freq="h")[1:])
        assert str(following.tz) == "Europe/Berlin"


def test_a_future_is_sorted_where_the_past_is(panel, tmp_path):
    forecaster, table = panel
    last = table.groupby("unique_id")["ds"].max()
    future = pd.DataFrame(
        [
            {"unique_id": name, "ds": end + pd.Timedelta(day, "D"), "promo": float(day % 2)}
            for day in range(1, HORIZON + 1)
            for name, end in last.items()
        ]
    )
    wanted = forecaster.forecast(table, future, num_samples=2)
    backwards = future[::-1].reset_index(drop=True)
    with pytest.raises(ValueError, match=r"`ds` of `future` must be after .*--sort.* in row "):
        forecaster.forecast(table, backwards, num_samples=2)
    for past in (table, table[::-1]):
        for horizon in (None, HORIZON):
            sorted_ = forecaster.forecast(
                past, backwards, horizon=horizon, num_samples=2, unsorted="sort"
            )
            one, other = (
                forecast.to_frame().set_index(["unique_id", "ds"]) for forecast in (sorted_, wanted)
            )
            pd.testing.assert_frame_equal(one.sort_index(), other.sort_index())
            assert all(stamps.is_monotonic_increasing for stamps in sorted_.stamps)
    # The first rows in time, not those of the table.
    short = forecaster.forecast(table, backwards, horizon=2, num_samples=2, unsorted="sort")
    assert [list(stamps) for stamps in short.stamps] == [list(one[:2]) for one in wanted.stamps]
    twice = pd.concat([future, future[-1:]])
    with pytest.raises(ValueError, match="each time may come once"):
        forecaster.forecast(table, twice, num_samples=2, unsorted="sort")


def test_a_frequency_is_stated_in_fit_or_forecast(tmp_path):
    days = pd.bdate_range("2024-01-01", periods=70)
    table = pd.DataFrame({"ds": days, "y": np.sin(np.arange(70) / 3)})
    forecaster = tiny_forecaster(max_steps=2).fit(table, freq="W-FRI")
    forecaster.save(tmp_path)
    forecaster = Forecaster.load(tmp_path)
    with pytest.warns(UserWarning, match=r"do not all keep the frequency 'W-FRI'.* is off it"):
        fridays = forecaster.forecast(table, num_samples=2).stamps[0]
    assert set(fridays.day_of_week) == {4}
    business_days = forecaster.forecast(table, num_samples=2, freq="B").stamps[0]
    assert list(business_days) == list(pd.bdate_range(days[-1], periods=HORIZON + 1)[1:])
    for freq in ("H", 5):
        with pytest.raises(ValueError, match="`freq` must be a frequency of pandas"):
            forecaster.forecast(table, num_samples=2, freq=freq)
        with pytest.raises(ValueError, match="`freq` must be a frequency of pandas"):
            tiny_forecaster().fit(table, freq=freq)
    # One row has no step, but may have a frequency.
    with pytest.warns(UserWarning, match="reach over"):
        one = forecaster.forecast(table[-1:], num_samples=2, freq="B", horizon=9)
    assert one.stamps[0][0] == business_days[0]


@pytest.mark.slow
def test_guesses_of_several_series_are_one_warning():
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.Timestamp("2020-01-01")
                + pd.to_timedelta(rng.integers(1, 9, 60).cumsum(), "D"),
                "y": np.sin(np.arange(60) / 3),
            }
        )
        for name in "abcde"
    ]
    table = pd.concat(parts, ignore_index=True)
    forecaster = tiny_forecaster(max_steps=2).fit(table)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forecast = forecaster.forecast(table, num_samples=2)
    (message,) = [str(one.message) for one in caught]
    assert (
        "the stamps of `ds` keep no calendar; the next ones are by the median step: a: " in message
    )
    assert str(forecast.stamps[0][0]) in message and "and 2 more series" in message


@pytest.mark.slow
def test_numbers_that_count_time_are_dates(tmp_path):
    seconds = 1_700_000_000 + 60 * np.arange(90)
    table = pd.DataFrame({"ds": seconds * 1000, "y": np.sin(np.arange(90) / 3)})
    forecaster = tiny_forecaster(max_steps=2).fit(table, time_unit="ms")
    forecaster.save(tmp_path / "model")
    forecaster = Forecaster.load(tmp_path / "model")
    forecast = forecaster.forecast(table, num_samples=2)
    assert forecast.stamps[0][0] == pd.Timestamp(seconds[-1] + 60, unit="s", tz="UTC")
    forecast.save(tmp_path / "forecast.csv")
    written = read_table(tmp_path / "forecast.csv")
    for future in (written, pd.DataFrame({"ds": (seconds[-4:] + 240) * 1000})):
        again = forecaster.forecast(table, future, num_samples=2)
        assert list(again.stamps[0]) == list(forecast.stamps[0])
        np.testing.assert_allclose(again.samples, forecast.samples)
    after = forecaster.forecast(written.rename(columns={"mean": "y"}), num_samples=2)
    assert after.stamps[0][0] == forecast.stamps[0][-1] + pd.Timedelta("1min")


def test_quarters_in_text_are_written_as_they_were_read(tmp_path):
    quarters = pd.period_range("1985Q1", periods=90, freq="Q")
    table = pd.DataFrame({"ds": quarters.strftime("%Y-Q%q"), "y": np.sin(np.arange(90) / 3)})
    forecaster = tiny_forecaster(max_steps=2).fit(table)
    forecast = forecaster.forecast(table, num_samples=2)
    assert list(forecast.stamps[0].astype(str)) == ["2007Q3", "2007Q4", "2008Q1", "2008Q2"]
    forecast.save(tmp_path / "forecast.csv")
    written = read_table(tmp_path / "forecast.csv")
    assert forecaster.forecast(table, written, num_samples=2).stamps[0].equals(forecast.stamps[0])
    rows = pd.concat([table, written.rename(columns={"mean": "y"})])[["ds", "y"]]
    assert str(forecaster.forecast(rows, num_samples=2).stamps[0][0]) == "2008Q3"
