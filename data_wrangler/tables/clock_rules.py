"""Rules of several times a day: even steps of elapsed time, opening hours, times of the week.

They are like those of days, see `calendar_rules`, in units of the stamps.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from taylorformer.data_wrangler.tables.calendar_rules import (
    BUSINESS_DAYS,
    Cycle,
    Fit,
    Rule,
    bits_of_choice,
    day_rules,
    fit_rule,
    is_evident,
    positions_in,
)
from taylorformer.data_wrangler.tables.stamps import DAY_NANOSECONDS, NANOSECONDS, span_text
from taylorformer.data_wrangler.tables.weeks import WEEK, monday_of

# A clock has at most so many times that are told apart, those of seconds.
_MOST_TIMES = 86_400
_MOST_TIMES_IN_WORDS = 4
# The bits of the rarest gap that opening hours could explain.
_BITS_OF_HOURS = 8.0
_HOURS_IN_BITS = 4.0
# A time of day must come on one of so many days.
_RARE = 3


def even_steps(time: np.ndarray, time_unit: str | None) -> Fit | None:
    """Returns the rule of even steps, with gaps or without; None where most steps are not so.

    Args:
        time: `[T]` int64, strictly increasing, T at least 2.
        time_unit: see `Series.time_unit`.
    """
    steps = np.diff(time)
    step = steps.min()
    if (steps % step).any():
        return None
    words = f"every {_length(step, time_unit)}"
    rule = Cycle(words, 0.0, True, int(step), np.zeros(1, np.int64), int(time[0]))
    fit = fit_rule(rule, time)
    return None if fit is None else dataclasses.replace(fit, is_elapsed=True)


def _length(span: np.integer, time_unit: str | None) -> str:
    text = str(span_text(span, time_unit))
    return {"1 day": "day", "1 h": "hour", "1 min": "minute", "1 s": "second"}.get(text, text)


def clock_text(nanoseconds: int) -> str:
    """Writes a time of day, such as 9:30; seconds only where there are some.

    Example:
        >>> clock_text(9 * 3600 * 10**9 + 30 * 60 * 10**9), clock_text(1_500_000_000)
        ('9:30', '0:00:01.5')
    """
    seconds, fraction = divmod(nanoseconds, 10**9)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60}:{minutes % 60:02}"
    if second or fraction:
        text += f":{second:02}"
    return text + (f".{fraction:09}".rstrip("0") if fraction else "")


@dataclasses.dataclass(frozen=True)
class OnDays(Rule):
    """Times of day on the days of another rule.

    Attributes:
        words: see `Rule`, as the next ones.
        bits: see `Rule`.
        simple: see `Rule`.
        days: the rule of the days.
        clocks: `[K]` int64, increasing, since midnight.
        per_day: the length of a day.
    """

    days: Rule
    clocks: np.ndarray
    per_day: int

    def index(self, values: np.ndarray) -> np.ndarray | None:
        """Returns the indices of times; see `Rule`."""
        days, clock = np.divmod(values, self.per_day)
        day_index = self.days.index(days)
        if day_index is None:
            return None
        position = positions_in(self.clocks, clock)
        return None if position is None else day_index * len(self.clocks) + position

    def at(self, index: np.ndarray) -> np.ndarray:
        """Returns the times at indices; see `Rule`."""
        day_index, position = np.divmod(index, len(self.clocks))
        return self.days.at(day_index) * self.per_day + self.clocks[position]


def clock_rules(wall: np.ndarray, time_unit: str, time: np.ndarray | None = None) -> list[Fit]:
    """Returns the calendars that all times keep, the best one first.

    Args:
        wall: `[T]` int64, strictly increasing, T at least 2: local time since 1970.
        time_unit: "s", "ms", "us" or "ns".
        time: the instants, for even steps. None: as local time.
    """
    per_day = DAY_NANOSECONDS // NANOSECONDS[time_unit]
    days, clock = np.divmod(wall, per_day)
    if (clock == clock[0]).all():
        fits = [fit for fit in day_rules(days) if is_evident(fit, days)]
        return [_at_one_clock(fit, int(clock[0]), per_day, time_unit) for fit in fits]
    even = even_steps(wall if time is None else time, time_unit)
    if even is not None and even.bits < _BITS_OF_HOURS:
        return [even]
    unit = int(np.gcd.reduce(_distinct(np.diff(wall))))
    unit = math.gcd(unit, per_day)
    fits = [] if even is None else [even]
    if per_day // unit <= _MOST_TIMES:
        for rule in _hours(days, clock, unit, per_day, time_unit):
            fit = fit_rule(rule, wall)
            if fit is not None and is_evident(fit, wall, unit):
                fits.append(fit)
    return sorted(fits, key=lambda fit: fit.bits)


def _distinct(steps: np.ndarray) -> np.ndarray:
    """Returns the different steps; those that are like the smallest one are most, and quick."""
    least = steps.min()
    return np.append(np.unique(steps[steps != least]), least)


def _at_one_clock(fit: Fit, clock: int, per_day: int, time_unit: str) -> Fit:
    words = fit.rule.words
    if clock:
        words = f"{words}, at {clock_text(clock * NANOSECONDS[time_unit])}"
    rule = OnDays(words, fit.rule.bits, fit.rule.simple, fit.rule, np.array([clock]), per_day)
    return dataclasses.replace(fit, rule=rule)


def _hours(
    days: np.ndarray, clock: np.ndarray, unit: int, per_day: int, time_unit: str
) -> Iterator[Rule]:
    """Yields times of day on days of a calendar, and times of the week."""
    different_days = days[np.diff(days, prepend=days[0] - 1) > 0]
    if len(different_days) < 2:
        return
    per_week = WEEK * per_day
    monday = monday_of(int(different_days[0]))
    in_week = (days - monday) % WEEK
    slots = per_day // unit
    first = int(clock[0] % unit)
    counts = np.bincount(in_week * slots + clock // unit, minlength=WEEK * slots)
    of_week = counts > 0
    if of_week.all():
        return
    table = of_week.reshape(WEEK, slots)
    of_day = counts.reshape(WEEK, slots).sum(axis=0)
    # A time that came once does not repeat.
    repeats = len(different_days) <= _RARE * of_day[of_day > 0].min()
    kept = np.flatnonzero(table.any(axis=0))
    clocks, bits = first + unit * kept, _HOURS_IN_BITS + _bits_of_clocks(kept, slots)
    whole_grid = np.arange(kept[0], kept[-1] + 1, np.diff(kept).min() if len(kept) > 1 else 1)
    words = _words_of_clocks(clocks, time_unit)
    for fit in _likely_days(different_days) if repeats else ():
        yield OnDays(
            f"{words}, {fit.rule.words}", bits + fit.rule.bits, False, fit.rule, clocks, per_day
        )
        if len(whole_grid) > len(kept) and whole_grid[-1] == kept[-1]:
            if np.isin(kept, whole_grid).all():
                all_clocks = first + unit * whole_grid
                yield OnDays(
                    f"{_words_of_clocks(all_clocks, time_unit)}, {fit.rule.words}",
                    _HOURS_IN_BITS + _bits_of_clocks(whole_grid, slots) + fit.rule.bits,
                    False,
                    fit.rule,
                    all_clocks,
                    per_day,
                )
    product = len(kept) * int(table.any(axis=1).sum())
    weeks = int(different_days[-1] - different_days[0]) // WEEK
    if of_week.sum() < product and 1 <= weeks <= 2 * counts[of_week].min():
        offsets = np.flatnonzero(of_week)
        more = 12 + bits_of_choice(product, len(offsets))
        yield Cycle(
            f"{len(offsets)} times of the week",
            bits + more,
            False,
            per_week,
            offsets * unit + first,
            monday * per_day,
        )


def _likely_days(days: np.ndarray) -> list[Fit]:
    """Returns calendars of days with hours: where no weekend lies among them, business days."""
    fits = day_rules(days)
    for number, fit in enumerate(fits):
        rule = fit.rule
        if isinstance(rule, Cycle) and tuple(rule.offsets.tolist()) == BUSINESS_DAYS:
            fits[number] = dataclasses.replace(fit, rule=dataclasses.replace(rule, bits=0.0))
        elif isinstance(rule, Cycle) and rule.period == 1:
            fits[number] = dataclasses.replace(fit, rule=dataclasses.replace(rule, bits=1.0))
    return fits


def _bits_of_clocks(kept: np.ndarray, slots: int) -> float:
    """Returns the bits that say which times of day are kept: a part of the day, or some of it."""
    grid = int(kept[-1] - kept[0]) // (int(np.diff(kept).min()) if len(kept) > 1 else 1) + 1
    in_part = 2 * math.log2(slots) + bits_of_choice(max(grid, len(kept)), len(kept))
    return min(in_part, bits_of_choice(slots, len(kept)))


def _words_of_clocks(clocks: np.ndarray, time_unit: str) -> str:
    texts = [clock_text(int(clock) * NANOSECONDS[time_unit]) for clock in clocks[[0, -1]]]
    steps = np.diff(clocks)
    if len(clocks) > 2 and (steps == steps[0]).all():
        return f"{texts[0]} to {texts[1]} every {_length(steps[0], time_unit)}"
    if len(clocks) <= _MOST_TIMES_IN_WORDS:
        texts = [clock_text(int(clock) * NANOSECONDS[time_unit]) for clock in clocks]
        return f"at {', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else f"at {texts[0]}"
    return f"{len(clocks)} times from {texts[0]} to {texts[1]}"
