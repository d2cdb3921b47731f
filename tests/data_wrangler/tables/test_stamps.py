"""Stamps: what is read exactly, what is a clear error, and lengths of time."""

import datetime
import time

import numpy as np
import pandas as pd
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
def test_dates_of_any_resolution(resolution):
    times = pd.date_range("2020-01-01", periods=5, freq="h", unit=resolution)
    series = series_of(times)
    assert series.time_unit == resolution
    assert set(np.diff(series.time)) == {series.duration("1h")}
    # One instant has one name, whatever the resolution.
    assert series.time_label(2) == series_of(times.as_unit("ns")).time_label(2)


@pytest.mark.parametrize(
    "times, step",
    [
        (["2020-01-01 00:00:00.005", "2020-01-01 00:00:00.010"], "5ms"),
        (["2020-01", "2020-02"], "31 days"),
        (["2020-02-28T12:00Z", "2020-02-29T12:00Z"], "24h"),
        (["2020-02-28T12:00+01:00", "2020-02-28T13:00+01:00"], "1h"),
        (pd.period_range("2020-01", periods=2, freq="M"), "31 days"),
        (pd.date_range("2020-03-29 01:00", periods=2, freq="h", tz="Europe/Paris"), "1h"),
        (pd.Categorical(["2020-01-01", "2020-01-02"]), "1 day"),
    ],
)
def test_elapsed_time_is_true(times, step):
    series = series_of(times)
    assert np.diff(series.time) == [series.duration(step)]


def test_irregular_stamps_stay_as_they_are():
    days = pd.bdate_range("2024-03-01", periods=10)
    series = series_of(days)
    assert series.stamps.equals(days.rename("t"))
    day = series.duration("1 day")
    assert list(np.diff(series.time) / day) == [3, 1, 1, 1, 1, 3, 1, 1, 1]


def test_integers_and_floats_are_exact():
    milliseconds = 1_700_000_000_123 + 60_000 * np.arange(4)
    series = series_of(milliseconds)
    assert series.time.dtype == np.int64 and series.time_unit is None
    assert list(np.diff(series.time)) == [60_000] * 3
    # Neither number is one in float64.
    huge = series_of([2**62 + 1, 2**62 + 2])
    assert list(np.diff(huge.time)) == [1]
    floats = series_of([1.7e9, 1.7e9 + 0.005])
    assert floats.time.dtype == np.float64 and floats.time[1] - floats.time[0] > 0.0049
    assert floats.duration(2) == 2.0


@pytest.mark.parametrize(
    "times, gaps",
    [
        # Trading hours with a lunch break, over a weekend; the unit is half an hour.
        (
            [
                f"{day} {clock}"
                for day in ("2024-03-08", "2024-03-11")
                for clock in ("10:00", "10:30", "12:00")
            ],
            [1, 3, 140, 1, 3],
        ),
        (["2024-01", "2024-02", "2024-03"], [31 * 48, 29 * 48]),
    ],
)
def test_no_row_is_invented_between_stamps(times, gaps):
    series = series_of(times)
    assert series.num_rows == len(times)
    assert list(np.diff(series.time) / series.duration("30min")) == gaps


def test_long_columns_of_text_take_no_time():
    # A million rows take 1.6 s; a loop that parses row by row takes minutes.
    text = pd.Series(pd.date_range("2000", periods=200_000, freq="min").astype(str))
    text.iloc[-3] = "2000-02-30"
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=r"'2000-02-30' in row 199998$"):
        series_of(text)
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    "times, message",
    [
        (["01/02/2020", "13/02/2020"], r"`t` .*`date_format`.*'01/02/2020' in row 1$"),
        (["2020-01-01", "-"], r"Received: '-' in row 2$"),
        (["2020-01-01", "2020-02-30"], r"Received: '2020-02-30' in row 2$"),
        (["2020-01-01", None], r"a time in every row\. Received: an empty cell in row 2$"),
        (["2020-01-01", "now"], r"Received: 'now' in row 2$"),
        (["2020-01-01T00:00", "2020-01-02T00:00Z"], r"a UTC offset or none.*in row 2$"),
        (
            ["2020-01-01T00:00+01:00", "2020-06-01T00:00+02:00", "2020-06-02T00:00"],
            r"a UTC offset or none.*in row 3$",
        ),
        (["1", "2", "-"], r"Received: '-' in row 3$"),
        ([1, "2020-01-01"], r"Received: 1 in row 1$"),
        ([1.0, np.inf], r"finite times\. Received: inf in row 2$"),
        ([True, False], r"dates or numbers\. Received: .*True.* in row 1$"),
        ([-(2**62), 2**62], r"fit in 64 bits\. Received: -4611686018427387904 to"),
        ([2**62, 0, -(2**62)], r"fit in 64 bits"),
        ([1, 2, 4, 3], r"order of time; 1 rows.*Received: 4 in row 3 and 3 in row 4$"),
        ([1, 2, 3, 2], r"each time once; 1 come again .*Received: 2 in rows 2 and 4$"),
        (["2020-01-01", "2020-01-01"], r"Received: 2020-01-01 00:00:00 in rows 1 and 2$"),
    ],
)
def test_bad_times(times, message):
    with pytest.raises(ValueError, match=message):
        series_of(times)


@pytest.mark.parametrize("span", [0, -1, np.nan, "week"])
def test_bad_durations(span):
    with pytest.raises(ValueError, match="`span` must be"):
        series_of([1, 2]).duration(span)
    with pytest.raises(ValueError, match="`span` must be"):
        load_mauna_loa_co2().duration(span)


@pytest.mark.parametrize(
    "span", [7, 7.5, True, np.int64(7), np.timedelta64(7), "7", " +7.5 ", None]
)
def test_a_plain_number_is_no_length_of_time_for_dates(span):
    message = r"`span` must be a Timedelta or text such as '7 days' for dates\. Received: span="
    with pytest.raises(ValueError, match=message):
        load_mauna_loa_co2().duration(span)


@pytest.mark.parametrize(
    "span",
    [
        "7 days",
        "168:00:00",
        "P7D",
        pd.Timedelta("7 days"),
        datetime.timedelta(7),
        np.timedelta64(7, "D"),
        pd.offsets.Hour(168),
    ],
)
def test_lengths_of_time_for_dates(span):
    assert load_mauna_loa_co2().duration(span) == np.diff(load_mauna_loa_co2().time)[0]
