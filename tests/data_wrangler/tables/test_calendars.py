"""Calendars that stamps keep: continued with dates missing; what is a guess is said."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from random_calendars import AHEAD, calendars
from tables import check_follows, series_of

from taylorformer.data_wrangler.tables.continued_stamps import (
    continue_stamps,
    describe_guesses,
    find_rule,
    next_stamps,
)
from taylorformer.data_wrangler.tables.wall_time import from_wall_time, wall_time


@settings(
    max_examples=500,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(calendars())
def test_a_calendar_is_continued_or_a_warning_says_that_it_is_a_guess(drawn):
    series = series_of(drawn.past)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stamps = continue_stamps(series, AHEAD)
    check_follows(series, stamps, AHEAD)
    if not caught:
        assert list(stamps) == list(drawn.following), drawn.words
    else:
        assert "keep no calendar" in str(caught[0].message) or "more than one calendar" in str(
            caught[0].message
        )


def _dates(freq, count=14, missing=(5,), start="2023-01-01"):
    return pd.date_range(start, periods=count, freq=freq).delete(list(missing))


def _on(weekdays, count=60, missing=()):
    every = pd.date_range("2024-01-01", periods=count)
    return every[every.day_of_week.isin(weekdays)].delete(list(missing))


def _hours(weekdays, begin, end, freq, count=12, missing=()):
    dates = _on(weekdays, count)
    clocks = pd.date_range(begin, end, freq=freq) - pd.Timestamp(begin).normalize()
    return pd.DatetimeIndex([date + clock for date in dates for clock in clocks]).delete(
        list(missing)
    )


@pytest.mark.parametrize(
    "times, words, wanted",
    [
        # One of the months is missing.
        (_dates("BME"), "last business day of the month", ["2024-03-29", "2024-04-30"]),
        (_dates("BMS"), "first business day of the month", ["2024-03-01", "2024-04-01"]),
        (_dates("QE"), "last day of the quarter", ["2026-09-30", "2026-12-31"]),
        (_dates("QS"), "first day of the quarter", ["2026-07-01", "2026-10-01"]),
        (
            _dates("BQE"),
            "last business day of the quarter",
            ["2026-09-30", "2026-12-31"],
        ),
        (_dates("WOM-3FRI"), "third Friday of the month", ["2024-03-15", "2024-04-19"]),
        (
            _dates(pd.offsets.LastWeekOfMonth(weekday=4)),
            "last Friday of the month",
            ["2024-03-29", "2024-04-26"],
        ),
        (_dates("ME"), "last day of the month", ["2024-03-31", "2024-04-30"]),
        (_dates("YE"), "last day of December", ["2037-12-31", "2038-12-31"]),
        (_dates("6MS"), "first day of every 6 months, such as January", ["2030-01-01"]),
        (_dates("SMS"), "days 1 and 15 of the month", ["2023-08-01", "2023-08-15"]),
        (_dates("SME"), "days 15 and last of the month", ["2023-08-15", "2023-08-31"]),
        (
            pd.DatetimeIndex(
                [
                    np.busday_offset(f"2024-{month:02}-15", 0, "backward")
                    for month in range(1, 12)
                    if month != 5
                ]
            ),
            "day 15 of the month, or the business day before it",
            ["2024-12-13", "2025-01-15"],
        ),
        # Days of the week.
        (_on(range(6)), "Monday to Saturday", ["2024-03-01", "2024-03-02", "2024-03-04"]),
        (_on((1, 3)), "Tuesday and Thursday", ["2024-03-05", "2024-03-07"]),
        (_on((0, 1, 2, 3, 6)), "Sunday to Thursday", ["2024-03-03", "2024-03-04"]),
        (
            _on(range(5), missing=(4, 14, 15)),
            "business days (Monday to Friday)",
            ["2024-03-01", "2024-03-04"],
        ),
        (
            _on((0, 2), 90)[(np.arange(26) // 2) % 2 == 0],
            "2 days of every 2 weeks",
            ["2024-04-08", "2024-04-10"],
        ),
        (_dates("W-SAT"), "every week, on Saturday", ["2023-04-15", "2023-04-22"]),
        (_dates("10D"), "every 10 days", ["2023-05-21", "2023-05-31"]),
        # Times of day.
        (
            _hours(range(5), "09:30", "16:00", "30min", missing=(7, 30, 31)),
            "9:30 to 16:00 every 30 min, business days (Monday to Friday)",
            ["2024-01-15 09:30", "2024-01-15 10:00"],
        ),
        (
            _hours(range(7), "10:00", "20:00", "h", missing=(3,)),
            "10:00 to 20:00 every hour, every day",
            ["2024-01-13 10:00", "2024-01-13 11:00"],
        ),
        (
            _hours(range(5), "00:00", "23:00", "h"),
            "0:00 to 23:00 every hour, business days (Monday to Friday)",
            ["2024-01-15 00:00"],
        ),
        (
            _hours(range(7), "08:00", "18:00", "10h"),
            "at 8:00 and 18:00, every day",
            ["2024-01-13 08:00", "2024-01-13 18:00", "2024-01-14 08:00"],
        ),
        (
            # Shorter on Saturdays.
            _hours(range(6), "09:00", "17:00", "h", 28)[
                [
                    stamp.day_of_week < 5 or stamp.hour < 13
                    for stamp in _hours(range(6), "09:00", "17:00", "h", 28)
                ]
            ],
            "49 times of the week",
            ["2024-01-29 09:00"],
        ),
        (
            pd.DatetimeIndex(
                [date + clock for date in _dates("MS") for clock in pd.to_timedelta([9, 17], "h")]
            ),
            "at 9:00 and 17:00, first day of the month",
            ["2024-03-01 09:00", "2024-03-01 17:00", "2024-04-01 09:00"],
        ),
        # Elapsed time.
        (_dates("7min"), "every 7 min", ["2023-01-01 01:38"]),
        (_dates("36h"), "every 36 h", ["2023-01-22 00:00"]),
    ],
)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_calendars_go_past_what_is_missing(times, words, wanted, zone):
    series = series_of(times if zone is None else times.tz_localize(zone))
    assert find_rule(series.stamps).words == words
    stamps = continue_stamps(series, len(wanted))
    assert list(stamps) == [pd.Timestamp(date, tz=zone) for date in wanted]
    check_follows(series, next_stamps(series, 200).stamps, 200)


@pytest.mark.parametrize("zone", [None, "America/New_York"])
@pytest.mark.parametrize(
    "times, message, wanted",
    [
        # Three dates that happen to be Fridays.
        (
            ["2024-03-01", "2024-03-15", "2024-04-19"],
            r"keep no calendar; .* median step: 14 days \(2024-05-03",
            "2024-05-03",
        ),
        # Events.
        (
            ["2024-01-01", "2024-01-04", "2024-01-05", "2024-01-19", "2024-01-26"],
            r"keep no calendar; .* median step: 3 days \(2024-01-29",
            "2024-01-29",
        ),
        (
            ["2024-01-01T01:07", "2024-01-01T01:31", "2024-01-01T04:00", "2024-01-02T11:13"],
            r"keep no calendar; .* median step: 149 min \(2024-01-02 13:42",
            "2024-01-02T13:42",
        ),
        # Two days: opening hours, or a night without a value? And what is on Saturday?
        (
            [f"2024-03-0{day} {hour}:30" for day in (7, 8) for hour in range(10, 18)],
            r"keep more than one calendar; .*: 10:30 to 17:30 every hour, .* \(2024-03-11 10:30",
            "2024-03-11T10:30",
        ),
        # A Sunday is missing: by chance, or always?
        (
            ["2024-03-20", "2024-03-21", "2024-03-22", "2024-03-23", "2024-03-25", "2024-03-26"],
            r"keep more than one calendar; .*: every day \(2024-03-27",
            "2024-03-27",
        ),
    ],
)
def test_a_guess_is_one_warning_with_the_first_stamps(times, message, wanted, zone):
    series = series_of(pd.DatetimeIndex(times, tz=zone))
    with pytest.warns(UserWarning, match=rf"^the stamps of `t` {message}.*freq.*--freq") as caught:
        stamps = continue_stamps(series, 5)
    assert len(caught) == 1 and stamps[0] == pd.Timestamp(wanted, tz=zone)
    check_follows(series, stamps, 5)


@pytest.mark.parametrize(
    "times, message, wanted",
    [
        ([0.0, 1.0, 2.5, 2.75], r"no even step; .*: 1 \(3\.75, 4\.75, 5\.75, \.\.\.\)", 3.75),
        ([0, 3, 5, 12], r"no even step; .*: 3 \(15, 18, 21", 15),
        (
            pd.PeriodIndex(["2024-01", "2024-04", "2024-06"], freq="M"),
            r"no even step; .*: 2 months \(2024-08",
            pd.Period("2024-08"),
        ),
    ],
)
def test_numbers_and_periods_without_an_even_step_are_guesses(times, message, wanted):
    with pytest.warns(UserWarning, match=message):
        assert continue_stamps(series_of(times), 5)[0] == wanted


def test_periods_of_days_and_hours_keep_calendars():
    days = _on(range(5), missing=(4,)).to_period("D")
    assert find_rule(days).words == "business days (Monday to Friday)"
    assert list(continue_stamps(series_of(days), 2).astype(str)) == ["2024-03-01", "2024-03-04"]
    hours = _hours(range(5), "09:00", "16:00", "h").to_period("h")
    stamps = continue_stamps(series_of(hours), 1)
    assert str(stamps[0]) == "2024-01-15 09:00" and stamps.dtype == hours.dtype


def test_guesses_of_several_series_are_one_text():
    dates = pd.DatetimeIndex(["2024-01-01", "2024-01-04", "2024-01-05", "2024-01-19"])
    guesses = {name: next_stamps(series_of(dates), 2) for name in "abcde"}
    guesses["f"] = next_stamps(series_of([1, 2, 3]), 2)
    text = describe_guesses("ds", guesses)
    assert text.count("3 days") == 3 and "and 2 more series" in text and "f:" not in text
    assert describe_guesses("ds", {"f": guesses["f"]}) == ""


def test_days_of_an_unstated_zone_are_a_guess_that_says_what_to_state():
    # Midnight in Berlin is 23:00, and from 2024-03-31 on 22:00, in UTC.
    written = [f"2024-03-{day}T00:00+01:00" for day in range(20, 32)]
    written += [f"2024-04-0{day}T00:00+02:00" for day in range(1, 8)]
    with pytest.warns(UserWarning, match="keep no calendar.*--time-zone"):
        continue_stamps(series_of(written), 2)
    stamps = continue_stamps(series_of(written, time_zone="Europe/Berlin"), 2)
    assert [stamp.isoformat() for stamp in stamps] == [
        "2024-04-08T00:00:00+02:00",
        "2024-04-09T00:00:00+02:00",
    ]


def test_a_time_that_the_clock_skips_is_told_from_another_time():
    # 2:30 does not exist on 2024-03-31, and 2024-10-27 has it twice.
    wall = pd.date_range("2024-03-28 02:30", periods=6)
    stamps = wall.tz_localize("Europe/Berlin", nonexistent="shift_forward")
    assert stamps[3].hour == 3
    assert (pd.DatetimeIndex(wall_time(stamps.as_unit("s")).astype("datetime64[s]")) == wall).all()
    assert continue_stamps(series_of(stamps), 1)[0].isoformat()[:16] == "2024-04-03T02:30"
    # Where the hours before and after are both usual, 3:00 is 3:00.
    hours = pd.date_range("2024-03-30", periods=48, freq="30min", tz="Europe/Berlin")
    assert (wall_time(hours) == hours.tz_localize(None).asi8).all()
    # Two skipped times become one.
    skipped = pd.DatetimeIndex(["2024-03-31T02:00", "2024-03-31T02:30", "2024-03-31T03:00"])
    before = hours[:1].as_unit(skipped.unit)
    assert len(from_wall_time(skipped.asi8, before)) == 1


def test_a_million_stamps_take_no_time():
    import time

    every = pd.date_range("2000", periods=1_000_000, freq="min")
    series = series_of(every.delete([3, 500_000]))
    begin = time.perf_counter()
    assert continue_stamps(series, 1)[0] == every[-1] + pd.Timedelta("1min")
    # It takes 0.2 s; a loop over the stamps would take minutes.
    assert time.perf_counter() - begin < 5
