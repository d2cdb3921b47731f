"""The stamps after a series: rules of the calendar, and exact steps."""

import numpy as np
import pandas as pd
import pytest
from tables import check_follows, series_of

from taylorformer.data_wrangler.tables.continued_stamps import continue_stamps

_PARIS = {"tz": "Europe/Paris"}


@pytest.mark.parametrize(
    "times, wanted",
    [
        # What pandas infers.
        (
            pd.date_range("2024-03-01 10:00", periods=5, freq="B"),
            ["2024-03-08 10:00", "2024-03-11 10:00"],
        ),
        (["2020-01", "2020-02", "2020-03"], ["2020-04-01", "2020-05-01"]),
        (pd.date_range("2024-01-31", periods=3, freq="ME"), ["2024-04-30", "2024-05-31"]),
        (pd.date_range("2024-01-05", periods=4, freq="W-FRI"), ["2024-02-02", "2024-02-09"]),
        (pd.date_range("2024-01-01", periods=4, freq="WOM-3FRI"), ["2024-05-17", "2024-06-21"]),
        (
            pd.date_range("2024-01-01", periods=4, freq="5ms"),
            ["2024-01-01 00:00:00.020", "2024-01-01 00:00:00.025"],
        ),
        # Rules of the calendar, with rows missing.
        (
            pd.date_range("2024-03-01 17:30", periods=20, freq="B").delete([3, 4, 11]),
            ["2024-03-29 17:30", "2024-04-01 17:30"],
        ),
        (["2020-01-01", "2020-02-01", "2020-04-01"], ["2020-05-01", "2020-06-01"]),
        (["2020-01-31", "2020-02-29", "2020-04-30"], ["2020-05-31", "2020-06-30"]),
        (["2020-01-15T06:30", "2020-02-15T06:30"], ["2020-03-15 06:30", "2020-04-15 06:30"]),
        (["2020-12-30", "2021-01-30", "2021-02-28"], ["2021-03-30", "2021-04-30"]),
        (["2021-01-01", "2021-04-01", "2021-10-01", "2022-01-01"], ["2022-04-01", "2022-07-01"]),
        (["2019-03-31", "2019-06-30", "2019-12-31", "2020-03-31"], ["2020-06-30", "2020-09-30"]),
        (["2016-02-29", "2018-02-28", "2019-02-28", "2020-02-29"], ["2021-02-28", "2022-02-28"]),
        (["1960-01-01", "1961-01-01", "1963-01-01"], ["1964-01-01", "1965-01-01"]),
        # Days stay days, with rows missing.
        (
            pd.date_range("2024-03-01", periods=15).delete([3, 5, 11]),
            ["2024-03-16", "2024-03-17"],
        ),
        (["2024-03-07", "2024-03-08"], ["2024-03-09", "2024-03-10"]),
        # Even steps with gaps.
        (
            ["2024-01-01T00:00", "2024-01-01T00:10", "2024-01-01T01:00"],
            ["2024-01-01 01:10", "2024-01-01 01:20"],
        ),
    ],
)
def test_dates_continue_by_their_rule(times, wanted):
    series = series_of(times)
    stamps = continue_stamps(series, 2)
    assert list(stamps) == [pd.Timestamp(date) for date in wanted]
    check_follows(series, continue_stamps(series, 30), 30)


@pytest.mark.parametrize(
    "times, rule, wanted",
    [
        # Business days, too, where no weekend is among them.
        (pd.date_range("2024-03-04", periods=5), "every day", "2024-03-09"),
        # Neither of the two Tuesdays is there.
        (pd.date_range("2024-03-01", periods=15).delete([3, 4, 11]), "every day", "2024-03-16"),
        # First and last business days, too, where no such day is at a weekend.
        (
            ["2020-01-01", "2020-04-01", "2020-10-01", "2021-01-01"],
            "first day of the quarter",
            "2021-04-01",
        ),
        (
            ["2020-03-31", "2020-06-30", "2020-12-31", "2021-03-31"],
            "last day of the quarter",
            "2021-06-30",
        ),
    ],
)
def test_dates_that_keep_another_calendar_by_chance_are_a_guess(times, rule, wanted):
    series = series_of(times)
    with pytest.warns(UserWarning, match=rf"more than one calendar; .*: {rule} \({wanted}"):
        stamps = continue_stamps(series, 12)
    check_follows(series, stamps, 12)
    assert stamps[0] == pd.Timestamp(wanted)


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
def test_every_resolution_stays(resolution):
    dates = pd.date_range("2024-01-01 06:00", periods=8, unit=resolution)
    for times in (dates, dates.delete(1), dates[:2], dates[[0, 1, 4]] + pd.Timedelta("1s")):
        series = series_of(times)
        stamps = continue_stamps(series, 3)
        check_follows(series, stamps, 3)
        assert list(stamps) == [times[-1] + pd.Timedelta(day, "D") for day in (1, 2, 3)]


@pytest.mark.parametrize(
    "times, wanted",
    [
        # The clock goes from 2 to 3 on 2024-03-31, and from 3 to 2 on 2024-10-27.
        (pd.date_range("2024-03-27", periods=4, **_PARIS), ["31T00:00+01:00", "01T00:00+02:00"]),
        (
            pd.date_range("2024-03-20", periods=11, **_PARIS).delete(3),
            ["31T00:00+01:00", "01T00:00+02:00"],
        ),
        (
            pd.date_range("2024-03-28 02:30", periods=3, **_PARIS),
            ["31T03:00+02:00", "01T02:30+02:00"],
        ),
        (
            pd.date_range("2024-10-24 02:30", periods=3, **_PARIS),
            ["27T02:30+02:00", "28T02:30+01:00"],
        ),
        (
            pd.date_range("2024-01-31", periods=3, freq="ME", **_PARIS),
            ["30T00:00+02:00", "31T00:00+02:00"],
        ),
        # Steps of hours are elapsed time.
        (
            pd.date_range("2024-03-31 00:00", periods=2, freq="h", **_PARIS),
            ["31T03:00+02:00", "31T04:00+02:00"],
        ),
        (
            pd.date_range("2024-10-26 14:00", periods=3, freq="6h", **_PARIS),
            ["27T07:00+01:00", "27T13:00+01:00"],
        ),
    ],
)
def test_dates_with_a_time_zone_continue_by_local_time(times, wanted):
    series = series_of(times)
    assert [
        stamp.isoformat()[8:16] + stamp.isoformat()[19:] for stamp in continue_stamps(series, 2)
    ] == wanted
    check_follows(series, continue_stamps(series, 400), 400)


@pytest.mark.parametrize(
    "freq, wanted", [("M", "2024-04"), ("Q", "2024Q4"), ("5min", "2024-01-01 00:15")]
)
def test_periods_continue_by_their_step(freq, wanted):
    periods = pd.period_range("2024-01-01", periods=3, freq=freq)
    series = series_of(periods)
    stamps = continue_stamps(series, 2)
    assert str(stamps[0]) == wanted and stamps.freq == periods.freq
    check_follows(series, stamps, 2)
    # One is enough, and some gaps do not matter.
    assert continue_stamps(series_of(periods[2:]), 2).equals(stamps)
    many = pd.period_range(end=periods[2], periods=9, freq=freq)
    assert continue_stamps(series_of(many.delete([1, 4, 5])), 2).equals(stamps)


@pytest.mark.parametrize(
    "periods, wanted",
    [
        (["2024-01", "2024-04", "2024-07"], ["2024-10", "2025-01"]),
        (["2023-10", "2024-01", "2024-07", "2024-10"], ["2025-01", "2025-04"]),
        (["2024-01", "2024-03"], ["2024-05", "2024-07"]),
    ],
)
def test_periods_that_lie_apart_stay_apart(periods, wanted):
    series = series_of(pd.PeriodIndex(periods, freq="M"))
    stamps = continue_stamps(series, 2)
    assert list(stamps.astype(str)) == wanted
    check_follows(series, stamps, 2)


def test_numbers_continue_by_the_median_step():
    # In float64 the numbers would be the same.
    series = series_of([2**62 + 1, 2**62 + 2, 2**62 + 3, 2**62 + 9])
    stamps = continue_stamps(series, 2)
    check_follows(series, stamps, 2)
    assert stamps.tolist() == [2**62 + 10, 2**62 + 11]
    milliseconds = series_of([1_700_000_000_123, 1_700_000_000_128, 1_700_000_000_133])
    assert continue_stamps(milliseconds, 1).tolist() == [1_700_000_000_138]
    # Of two in the middle: the lower one of integers, and the mean of floats.
    assert continue_stamps(series_of([0, 1, 4]), 1).tolist() == [5]
    floats = series_of([0.0, 1.0, 4.0])
    with pytest.warns(
        UserWarning, match=r"`t` have no even step; .* median step: 2 \(6\.0, 8\.0\)"
    ):
        assert continue_stamps(floats, 2).tolist() == [6.0, 8.0]
    # Sums of a step are rounded.
    tenths = series_of(np.cumsum([0.1] * 50).tolist())
    check_follows(tenths, continue_stamps(tenths, 9), 9)


@pytest.mark.parametrize("times", [[3], [3.5], ["2024-01-01"]])
def test_one_row_has_no_step(times):
    with pytest.raises(ValueError, match=r"`future` must give the stamps .* one row"):
        continue_stamps(series_of(times), 1)


@pytest.mark.parametrize(
    "times",
    [
        [2**62, 2**62 + 2**60],
        [1.7e308, 1.75e308],
        [2.0**53 - 4, 2.0**53 - 3],
        pd.date_range("2262-01-01", periods=3, freq="MS", unit="ns"),
        pd.date_range("2261-12-01", periods=3, unit="ns").delete(1),
        pd.DatetimeIndex(["2262-04-10", "2262-04-11T23:00"]).as_unit("ns"),
        pd.DatetimeIndex(["2261-12-01", "2262-01-01"]).as_unit("ns"),
        pd.PeriodIndex(
            ["2262-04-11T23:47:16.854775805", "2262-04-11T23:47:16.854775806"], freq="ns"
        ),
    ],
)
def test_stamps_stay_in_range(times):
    with pytest.raises(ValueError, match=r"`num_rows` must be so few .* Received: num_rows=500"):
        continue_stamps(series_of(times), 500)


def test_long_series_are_continued_at_once():
    series = series_of(pd.date_range("2000", periods=100_000, freq="min").delete(7))
    assert continue_stamps(series, 1)[0] == series.stamps[-1] + pd.Timedelta("1min")


@pytest.mark.parametrize("num_rows, error", [(0, ValueError), (1.0, TypeError), (True, TypeError)])
def test_bad_numbers_of_rows(num_rows, error):
    with pytest.raises(error, match="`num_rows` must be"):
        continue_stamps(series_of([1, 2]), num_rows)
