"""Frequencies that the user states."""

import pandas as pd
import pytest
from tables import check_follows, series_of

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import continue_stamps
from taylorformer.data_wrangler.tables.frequencies import saved_frequency


@pytest.mark.parametrize(
    "times, freq, wanted",
    [
        (["2024-03-07", "2024-03-08"], "B", ["2024-03-11", "2024-03-12"]),
        (["2024-03-06", "2024-03-08"], pd.offsets.BusinessDay(2), ["2024-03-12", "2024-03-14"]),
        (["2024-03-08T09:30"], "30min", ["2024-03-08T10:00", "2024-03-08T10:30"]),
        (["2024-03-08T09:30"], "W-FRI", ["2024-03-15T09:30", "2024-03-22T09:30"]),
        (["2024-01-31"], "BME", ["2024-02-29", "2024-03-29"]),
        (["2024-01-31"], pd.DateOffset(months=1), ["2024-02-29", "2024-03-29"]),
    ],
)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_follow_by_a_frequency(times, freq, wanted, zone):
    series = series_of(pd.DatetimeIndex(times, tz=zone))
    stamps = continue_stamps(series, 2, freq)
    assert list(stamps) == [pd.Timestamp(date, tz=zone) for date in wanted]
    check_follows(series, stamps, 2)


@pytest.mark.parametrize(
    "times, freq, wanted",
    [
        ([1, 2], 5, [7, 12]),
        ([1, 2], "5", [7, 12]),
        ([0.5, 1.0], 0.25, [1.25, 1.5]),
        (pd.period_range("2024-01", periods=2, freq="M"), "3M", ["2024-05", "2024-08"]),
        (pd.period_range("2024-01", periods=2, freq="M"), "ME", ["2024-03", "2024-04"]),
        (pd.period_range("2024Q1", periods=1, freq="Q"), "QE", ["2024Q2", "2024Q3"]),
        (
            pd.period_range("2024-01-01", periods=2, freq="15min"),
            "h",
            ["2024-01-01 01:15", "2024-01-01 02:15"],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:the stamps of `t` do not all keep the frequency")
def test_numbers_and_periods_follow_by_a_frequency(times, freq, wanted):
    series = series_of(times)
    stamps = continue_stamps(series, 2, freq)
    assert [str(one) for one in stamps] == [str(one) for one in wanted]
    check_follows(series, stamps, 2)


def test_a_frequency_over_a_change_of_the_clock():
    nights = pd.DatetimeIndex(["2024-03-29T02:30", "2024-03-30T02:30"], tz="Europe/Berlin")
    days = continue_stamps(series_of(nights), 2, "D")
    assert [stamp.isoformat()[8:16] for stamp in days] == ["31T03:00", "01T02:30"]
    hours = continue_stamps(series_of(nights), 2, "24h")
    assert [stamp.isoformat()[8:16] for stamp in hours] == ["31T03:30", "01T03:30"]


@pytest.mark.parametrize(
    "times, freq, message",
    [
        (["2024-03-08", "2024-03-09", "2024-03-11"], "B", r"'B'; .*: 2024-03-09 .* is off it \(2"),
        (["2024-01-01T00:00", "2024-01-01T00:20"], "30min", r"'30min'; .*: 2024-01-01 00:20:00 is"),
        (["2024-01-30", "2024-02-29", "2024-03-31"], "ME", r"'ME'; .*: 2024-01-30 .* is off it"),
        ([1, 2, 4], 2, r"2; .*: 2 is off it \(6, 8, 10, \.\.\.\)"),
    ],
)
def test_stamps_that_do_not_keep_the_frequency_are_named(times, freq, message):
    series = series_of(times)
    with pytest.warns(UserWarning, match=rf"`t` do not all keep the frequency {message}"):
        check_follows(series, continue_stamps(series, 5, freq), 5)


DATES, NUMBERS = ["2024-01-01", "2024-01-02"], [1, 2]


@pytest.mark.parametrize(
    "times, freq, message",
    [
        (DATES, "H", r"such as 'h', .* Received: freq='H' \(h in pandas today\)$"),
        (DATES, "15T", r"Received: freq='15T' \(15min in pandas today\)$"),
        (DATES, "M", r"Received: freq='M' \(ME in pandas today\)$"),
        (DATES, "Q-MAR", r"Received: freq='Q-MAR' \(QE-MAR in pandas today\)$"),
        (DATES, "Y", r"Received: freq='Y' \(YE in pandas today\)$"),
        (DATES, "fortnight", r"Received: freq='fortnight'$"),
        (DATES, "-1D", r"Received: freq='-1D'$"),
        (DATES, "", r"Received: freq=''$"),
        (DATES, 5, r"a frequency of pandas for dates.* Received: freq=5$"),
        (NUMBERS, "D", r"a whole number above 0 .*--time-unit.* Received: freq='D'$"),
        (NUMBERS, 0.5, r"a whole number above 0 .* Received: freq=0\.5$"),
        ([1.0, 2.0], -1, r"a number above 0 .* Received: freq=-1$"),
        (
            pd.period_range("2024-01", periods=2, freq="M"),
            "W",
            r"a multiple of 'M' .* Received: freq='W'$",
        ),
        (pd.date_range("2024", periods=2, unit="s"), "5ms", r"whole s for times .*freq='5ms'$"),
        (DATES, True, r"Received: freq=True$"),
        (DATES, [1], r"Received: freq=\[1\]$"),
    ],
)
def test_what_is_no_frequency(times, freq, message):
    with pytest.raises((TypeError, ValueError), match=f"`freq` must be .*{message}"):
        continue_stamps(series_of(times), 2, freq)


def test_a_frequency_is_saved_as_text():
    assert Columns("t", ("y",), freq=pd.offsets.MonthEnd(3)).freq == "3ME"
    columns = Columns("t", ("y",), time_unit="ms", time_zone="UTC", freq=0.5)
    assert Columns.from_config(columns.get_config()) == columns
    # Older files have none of these.
    config = Columns("t", ("y",)).get_config()
    assert not {"time_unit", "time_zone", "period", "freq"} & set(config)
    assert Columns.from_config(config) == Columns("t", ("y",))
    holidays = pd.offsets.CustomBusinessDay(holidays=["2024-01-01"])
    with pytest.raises(ValueError, match="text can say"):
        saved_frequency(holidays)
    stamps = continue_stamps(series_of(["2023-12-28", "2023-12-29"]), 1, holidays)
    assert stamps[0] == pd.Timestamp("2024-01-02")
