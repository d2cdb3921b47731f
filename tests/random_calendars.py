"""Calendars drawn at random, by `dateutil` and pandas: stamps with gaps, and what follows them."""

import datetime
from typing import NamedTuple

import numpy as np
import pandas as pd
from dateutil import rrule
from hypothesis import strategies as st

WEEKDAYS = (rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU)
ZONES = (None, None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
AHEAD = 12


class Drawn(NamedTuple):
    """`past` with gaps, the `following` stamps, and the rule in words, for the message."""

    past: pd.DatetimeIndex
    following: pd.DatetimeIndex
    words: str


def _months(draw, start):
    """Days of every m-th month, the settings of `rrule`."""
    monthday = draw(st.sampled_from([*range(1, 29), 29, 30, -1]))
    nth = draw(st.sampled_from([1, 2, 3, 4, -1]))
    kinds = {
        # A day that a month does not have is its last one.
        "day": {
            "bymonthday": monthday if monthday < 29 else range(28, monthday + 1),
            "bysetpos": -1,
        },
        "last day": {"bymonthday": -1},
        "first business day": {"byweekday": WEEKDAYS[:5], "bysetpos": 1},
        "last business day": {"byweekday": WEEKDAYS[:5], "bysetpos": -1},
        "weekday": {"byweekday": draw(st.sampled_from(WEEKDAYS))(nth)},
        "two days": {"bymonthday": (draw(st.integers(1, 12)), draw(st.integers(15, 27)))},
        "a day and the last": {"bymonthday": (draw(st.integers(5, 20)), -1)},
    }
    kind = draw(st.sampled_from(sorted(kinds)))
    interval = draw(st.sampled_from([1, 1, 1, 2, 3, 6, 12]))
    start = start.replace(day=1)
    return rrule.rrule(rrule.MONTHLY, start, interval=interval, **kinds[kind]), f"{kind} {interval}"


def _days(draw, start):
    interval = draw(st.sampled_from([1, 1, 2, 3, 7, 10, 14, 28]))
    return rrule.rrule(rrule.DAILY, start, interval=interval), f"days {interval}"


def _weeks(draw, start):
    usual = st.sampled_from([WEEKDAYS[:5], WEEKDAYS[:6], (*WEEKDAYS[:4], WEEKDAYS[6])])
    any_of_them = st.lists(st.sampled_from(WEEKDAYS), min_size=2, max_size=5, unique=True)
    days = draw(st.one_of(usual, any_of_them))
    interval = draw(st.sampled_from([1, 1, 1, 2]))
    rule = rrule.rrule(rrule.WEEKLY, start, interval=interval, byweekday=days)
    return rule, f"weeks {interval} {days}"


@st.composite
def days(draw):
    """A calendar of days at one time of day: enough of them to tell calendars apart."""
    start = datetime.datetime(draw(st.integers(1990, 2030)), draw(st.integers(1, 12)), 3)
    kind, fewest = draw(st.sampled_from([(_days, 16), (_weeks, 24), (_months, 12)]))
    rule, words = kind(draw, start)
    count = draw(st.integers(fewest, 150))
    every = pd.DatetimeIndex(
        [date for date, _ in zip(rule, range(count + 2 * AHEAD), strict=False)]
    )
    clock = draw(st.sampled_from([0, 0, 2 * 60 + 30, 17 * 60 + 30]))
    return every + pd.Timedelta(clock, "min"), count, f"{words} {clock}"


@st.composite
def hours(draw, fewest=60, most=400):
    """Times of day on days of the week, in opening hours or not."""
    step = draw(st.sampled_from([5, 15, 30, 60]))
    first, length = draw(st.integers(0, 20)), draw(st.integers(3, 9))
    clocks = np.arange(first * 60, min(first * 60 + length * step + 1, 24 * 60), step)
    if draw(st.booleans()):
        # A break at noon, or any other times.
        clocks = np.delete(clocks, draw(st.integers(1, len(clocks) - 1)))
    weekdays = draw(st.sampled_from([range(5), range(6), range(7), (1, 3), (0, 2, 4), (5, 6)]))
    start = pd.Timestamp(draw(st.integers(1990, 2030)), draw(st.integers(1, 12)), 3)
    count = draw(st.integers(fewest, most)) + 14 * len(clocks)
    weeks = (count + 2 * AHEAD) // (len(clocks) * len(weekdays)) + 2
    dates = pd.date_range(start, periods=7 * weeks)
    dates = dates[dates.day_of_week.isin(list(weekdays))]
    every = (dates.to_numpy()[:, None] + clocks.astype("timedelta64[m]")).ravel()
    return pd.DatetimeIndex(every)[: count + 2 * AHEAD], count, f"{clocks} {weekdays}"


@st.composite
def steps(draw, fewest=4, most=300):
    """Even steps of elapsed time."""
    freq = draw(st.sampled_from(["1min", "7min", "15min", "h", "90min", "6h", "36h"]))
    count = draw(st.integers(fewest, most))
    every = pd.date_range(
        pd.Timestamp(draw(st.integers(1990, 2030)), 3, draw(st.integers(20, 31))),
        periods=count + 2 * AHEAD,
        freq=freq,
    )
    return every, count, f"elapsed {freq}"


@st.composite
def calendars(draw):
    """Stamps that keep a calendar, some of them missing, in a time zone or in none."""
    every, count, words = draw(st.one_of(days(), days(), hours(), steps()))
    zone = draw(st.sampled_from(ZONES))
    if words.startswith("elapsed"):
        every = every if zone is None else every.tz_localize("UTC").tz_convert(zone)
    elif zone is not None:
        # As documented: a time that is skipped is the next one, and the first of two is taken.
        first = np.ones(len(every), bool)
        every = every.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
        every = every[~every.duplicated()]
    share = draw(st.sampled_from([0.0, 0.05, 0.1, 0.2]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept = rng.random(count) >= share
    kept[:2] = True
    past = every[:count][kept]
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    following = every[every > past[-1]][:AHEAD]
    return Drawn(past.as_unit(unit), following.as_unit(unit), f"{words}, {zone}, gaps {share}")
