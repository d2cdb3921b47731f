"""Calendars of dates: which one all days of a series keep, and the days that follow by it.

A rule numbers the days of a calendar, so that gaps are steps of more than one. Of the rules that
all days keep, the best one is the shortest description in bits: those of the rule, more for a
rarer one, and those of the days that are missing from it.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator

import numpy as np

from taylorformer.data_wrangler.tables.stamps import median_step
from taylorformer.data_wrangler.tables.weeks import WEEK, monday_of, weekday_of

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_ORDINALS = ("first", "second", "third", "fourth")
BUSINESS_DAYS = (0, 1, 2, 3, 4)
_LONGEST_MONTH = 31
# More weeks or more days of a month than these are no calendar that people make.
_MOST_WEEKS = 4
_MOST_DAYS_OF_MONTH = 4
# Fewer dates than these are no evidence for a rule that is not `simple`.
_FEWEST_DATES = 4


@dataclasses.dataclass(frozen=True)
class Rule(abc.ABC):
    """A calendar as an increasing sequence of integers, such as days, each with its index.

    Attributes:
        words: the rule in words.
        bits: how rare the rule is among calendars.
        simple: whether two dates are evidence enough.
    """

    words: str
    bits: float
    simple: bool

    @abc.abstractmethod
    def index(self, values: np.ndarray) -> np.ndarray | None:
        """Returns the indices `[T]` of values, or None where one is not in the calendar."""

    @abc.abstractmethod
    def at(self, index: np.ndarray) -> np.ndarray:
        """Returns the values at indices."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """A rule that all values of a series keep; made by `fit_rule`.

    Attributes:
        rule: the rule.
        bits: of the rule and of what is missing.
        last: the index of the last value.
        gaps: how many values of the calendar are missing between the first and the last.
        is_elapsed: whether the values are instants, not local time.
    """

    rule: Rule
    bits: float
    last: int
    gaps: int
    is_elapsed: bool = False

    def ahead(self, count: int) -> np.ndarray:
        """Returns the next values `[count]`."""
        return self.rule.at(self.last + np.arange(1, count + 1))


def fit_rule(rule: Rule, values: np.ndarray) -> Fit | None:
    """Checks that all values keep a rule, most of them one after the other.

    Args:
        rule: the rule.
        values: `[T]` int64, strictly increasing, T at least 2.

    Returns:
        None where one does not, or where fewer than half of the steps are to the very next value
        of the calendar: it says little of such values.
    """
    index = rule.index(values)
    if index is None:
        return None
    steps = np.diff(index)
    if median_step(steps) != 1:
        return None
    total = int(index[-1] - index[0]) + 1
    bits = rule.bits + _bits_of_gaps(steps, total)
    return Fit(rule, bits, int(index[-1]), total - len(values))


def _bits_of_gaps(steps: np.ndarray, total: int) -> float:
    """Returns the bits that say which of `total` values are missing: each, or each run of them."""
    runs = steps[steps > 1] - 1
    if not len(runs):
        return 0.0
    in_runs = float((math.log2(total) + 2 * np.log2(runs) + 1).sum())
    return min(in_runs, bits_of_choice(total, len(steps) + 1))


def bits_of_choice(total: int, count: int) -> float:
    """Returns the bits that say which `count` of `total` are chosen."""
    parts = (math.lgamma(number + 1) for number in (total, count, total - count))
    whole, *rest = parts
    return (whole - sum(rest)) / math.log(2)


def is_evident(fit: Fit, values: np.ndarray, unit: int = 1) -> bool:
    """Returns whether values speak for a rule rather than for steps of any length.

    Args:
        fit: of the rule.
        values: `[T]`, as for `fit_rule`.
        unit: the length that all steps are multiples of.
    """
    if fit.rule.simple:
        return True
    mean = float(values[-1] - values[0]) / unit / (len(values) - 1)
    return len(values) >= _FEWEST_DATES and fit.bits < (len(values) - 1) * math.log2(math.e * mean)


def positions_in(choices: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """Returns at which index of `choices` each value is; None where one is none of them.

    Args:
        choices: `[K]`, increasing.
        values: `[T]`.
    """
    position = np.searchsorted(choices, values)
    position[position == len(choices)] = 0
    return None if (choices[position] != values).any() else position


@dataclasses.dataclass(frozen=True)
class Cycle(Rule):
    """What comes again after a period: every k days, some days of the week.

    Attributes:
        words: see `Rule`, as the next ones.
        bits: see `Rule`.
        simple: see `Rule`.
        period: its length.
        offsets: `[K]` int64, increasing from 0 to `period`.
        origin: where a period begins, at or before the first value.
    """

    period: int
    offsets: np.ndarray
    origin: int

    def index(self, values: np.ndarray) -> np.ndarray | None:
        """Returns the indices of values; see `Rule`."""
        cycle, offset = np.divmod(values - self.origin, self.period)
        if len(self.offsets) == 1:
            return cycle if (offset == self.offsets[0]).all() else None
        position = positions_in(self.offsets, offset)
        return None if position is None else cycle * len(self.offsets) + position

    def at(self, index: np.ndarray) -> np.ndarray:
        """Returns the values at indices; see `Rule`."""
        cycle, position = np.divmod(index, len(self.offsets))
        return self.origin + cycle * self.period + self.offsets[position]


@dataclasses.dataclass(frozen=True)
class Months(Rule):
    """One or several days of every m-th month.

    Attributes:
        words: see `Rule`, as the next ones.
        bits: see `Rule`.
        simple: see `Rule`.
        step: m.
        first: the first month, counted from January 1970.
        days_of: returns for months `[T]` (datetime64[M]) their days `[T, K]` (datetime64[D]).
    """

    step: int
    first: int
    days_of: Callable[[np.ndarray], np.ndarray]

    def index(self, values: np.ndarray) -> np.ndarray | None:
        """Returns the indices of days; see `Rule`."""
        dates = values.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        days = self.days_of(months)
        same = days == dates[:, np.newaxis]
        number, rest = np.divmod(months.astype(np.int64) - self.first, self.step)
        if rest.any() or not same.any(axis=1).all():
            return None
        return number * days.shape[1] + same.argmax(axis=1)

    def at(self, index: np.ndarray) -> np.ndarray:
        """Returns the days at indices; see `Rule`."""
        count = self.days_of(np.zeros(1, "datetime64[M]")).shape[1]
        number, position = np.divmod(index, count)
        months = (self.first + number * self.step).astype("datetime64[M]")
        return self.days_of(months)[np.arange(len(index)), position].astype(np.int64)


def day_rules(days: np.ndarray) -> list[Fit]:
    """Returns the calendars that all days keep, the best one first.

    Example:
        >>> days = np.array(["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30"])
        >>> best = day_rules(days.astype("datetime64[D]").astype(np.int64))[0]
        >>> best.rule.words, best.ahead(2).astype("datetime64[D]").astype(str).tolist()
        ('last business day of the month', ['2024-05-31', '2024-06-28'])

    Args:
        days: `[T]` int64, counted from 1970-01-01, strictly increasing, T at least 2.
    """
    fits = [fit_rule(rule, days) for rule in _rules(days)]
    return sorted((fit for fit in fits if fit is not None), key=lambda fit: fit.bits)


def _rules(days: np.ndarray) -> Iterator[Rule]:
    steps = np.diff(days)
    step = int(steps.min())
    if not (steps % step).any():
        yield _every_days(step, int(days[0]))
    if step < WEEK:
        yield from _week_rules(days)
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    month_numbers = np.unique(months.astype(np.int64))
    if len(days) <= _MOST_DAYS_OF_MONTH * len(month_numbers) and len(month_numbers) > 1:
        month_step = int(np.diff(month_numbers).min())
        if not ((month_numbers - month_numbers[0]) % month_step).any():
            yield from _month_rules(dates, months, int(month_numbers[0]), month_step)


def _every_days(step: int, first: int) -> Cycle:
    words, bits = f"every {step} days", 3 + 2 * math.log2(step)
    if step == 1:
        words, bits = "every day", 0.0
    elif step % WEEK == 0:
        weeks = step // WEEK
        how_often = "every week" if weeks == 1 else f"every {weeks} weeks"
        words = f"{how_often}, on {WEEKDAYS[weekday_of(first)]}"
        bits = 1 + 2 * math.log2(weeks)
    return Cycle(words, bits, True, step, np.zeros(1, np.int64), first)


def _week_rules(days: np.ndarray) -> Iterator[Cycle]:
    """Yields sets of days of one week, and of several weeks that repeat."""
    monday = monday_of(int(days[0]))
    for weeks in range(1, _MOST_WEEKS + 1):
        period = weeks * WEEK
        counts = np.bincount((days - monday) % period, minlength=period)
        offsets = np.flatnonzero(counts)
        weekdays = tuple(offsets.tolist())
        if weeks == 1:
            # Days of these that are missing may be holidays.
            for likely in (BUSINESS_DAYS, (*BUSINESS_DAYS, 5)):
                if set(weekdays) < set(likely):
                    yield _of_week(likely, monday)
            if 1 < len(weekdays) < WEEK:
                yield _of_week(weekdays, monday)
        elif (
            1 < len(offsets) < period
            and days[-1] - days[0] >= 2 * period - WEEK
            and _is_shortest(weekdays, period)
        ):
            words = f"{len(offsets)} days of every {weeks} weeks"
            bits = 8 + bits_of_choice(period, len(offsets))
            yield Cycle(words, bits, False, period, offsets, monday)


def _is_shortest(offsets: tuple[int, ...], period: int) -> bool:
    """Returns whether a pattern does not repeat within its period."""
    whole = set(offsets)
    return all(
        {(offset + shift) % period for offset in whole} != whole
        for shift in range(WEEK, period, WEEK)
    )


def _of_week(weekdays: tuple[int, ...], monday: int) -> Cycle:
    names = [WEEKDAYS[day] for day in weekdays]
    in_a_row = weekdays == tuple(range(weekdays[0], weekdays[-1] + 1))
    words = " and ".join([", ".join(names[:-1]), names[-1]])
    bits = 9.0
    if weekdays == BUSINESS_DAYS:
        words, bits = "business days (Monday to Friday)", 1.0
    elif in_a_row and len(names) > 2:
        words = f"{names[0]} to {names[-1]}"
        bits = 5.0 if len(names) > 4 else bits
    elif weekdays == (0, 1, 2, 3, 6):
        # The week of several countries begins on Sunday.
        words, bits = "Sunday to Thursday", 5.0
    return Cycle(words, bits, False, WEEK, np.array(weekdays), monday)


def _month_rules(dates: np.ndarray, months: np.ndarray, first: int, step: int) -> Iterator[Months]:
    """Yields rules for days of every `step`-th month."""
    bits = {1: 0.0, 3: 1.0, 6: 1.0, 12: 1.0}.get(step, 2 + math.log2(step))
    of = functools.partial(_of_months, first, step)
    number = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
    length = _lengths(months)
    kept = _kept_days(number, length)
    if len(kept) == 1:
        is_usual = kept[0] in (1, _LONGEST_MONTH)
        name = {1: "first day", _LONGEST_MONTH: "last day"}.get(kept[0], f"day {kept[0]}")
        words = f"{name}{of(name)}"
        yield Months(words, bits + (4 if is_usual else 6), True, step, first, _FixedDays(kept))
    elif len(kept) <= _MOST_DAYS_OF_MONTH:
        names = ["last" if day == _LONGEST_MONTH else str(day) for day in kept]
        words = f"days {', '.join(names[:-1])} and {names[-1]}{of()}"
        more = 2 + bits_of_choice(_LONGEST_MONTH, len(kept))
        yield Months(words, bits + more, False, step, first, _FixedDays(kept))
    if len(np.unique(months)) < len(months):
        return
    for day, forward in {(1, True), (int(number.min()), True), (_LONGEST_MONTH, False)} | {
        (int(number.max()), False)
    }:
        name, more = "first business day" if forward else "last business day", 5
        words = f"{name}{of(name)}"
        if (day, forward) not in {(1, True), (_LONGEST_MONTH, False)}:
            next_to = "after" if forward else "before"
            words, more = f"day {day}{of()}, or the business day {next_to} it", 10
        yield Months(words, bits + more, False, step, first, _BusinessDay(day, forward))
    weekday = weekday_of(int(dates[0].astype(np.int64)))
    for nth in {int(number[0] - 1) // WEEK, -1} - {len(_ORDINALS)}:
        words = f"{'last' if nth < 0 else _ORDINALS[nth]} {WEEKDAYS[weekday]}"
        yield Months(words + of(), bits + 8, False, step, first, _NthWeekday(weekday, nth))


def _of_months(first: int, step: int, name: str = "") -> str:
    """Says of which months a rule is, for a `name` such as "last day"."""
    if step == 1:
        return " of the month"
    month = first % 12
    if step == 12:
        return f" of {_MONTHS[month]}"
    end_of_quarter = {0: "first", 1: None, 2: "last"}[month % 3]
    if step == 3 and name.split(" ")[0] == end_of_quarter:
        return " of the quarter"
    return f" of every {step} months, such as {_MONTHS[month]}"


def _kept_days(number: np.ndarray, length: np.ndarray) -> tuple[int, ...]:
    """Returns the days of the month that dates keep: 31 for the last, whichever that is."""
    is_last = number == length
    others = np.unique(number[~is_last])
    # The last day of a month may be a day that a longer month has.
    highest = int(others.max(initial=0))
    is_cut = bool((number[is_last] == np.minimum(highest, length[is_last])).all())
    if is_last.any() and not is_cut:
        others = np.append(others, _LONGEST_MONTH)
    return tuple(others.tolist())


def _lengths(months: np.ndarray) -> np.ndarray:
    """Returns how many days months have."""
    following, first = (month.astype("datetime64[D]") for month in (months + 1, months))
    return (following - first).astype(np.int64)


@dataclasses.dataclass(frozen=True)
class _FixedDays:
    """Days of the month by their numbers; one that a month does not have is its last."""

    days: tuple[int, ...]

    def __call__(self, months: np.ndarray) -> np.ndarray:
        numbers = np.minimum(self.days, _lengths(months)[:, np.newaxis])
        return months.astype("datetime64[D]")[:, np.newaxis] + (numbers - 1)


@dataclasses.dataclass(frozen=True)
class _BusinessDay:
    """A day of the month; at a weekend the business day after or before it."""

    day: int
    forward: bool

    def __call__(self, months: np.ndarray) -> np.ndarray:
        days = _FixedDays((self.day,))(months)
        if self.forward:
            return np.asarray(np.busday_offset(days, 0, "forward"))
        return np.asarray(np.busday_offset(days, 0, "backward"))


@dataclasses.dataclass(frozen=True)
class _NthWeekday:
    """A weekday (0 is Monday) of the month, counted from 0, or the last one (-1)."""

    weekday: int
    nth: int

    def __call__(self, months: np.ndarray) -> np.ndarray:
        mask = np.arange(WEEK) == self.weekday
        if self.nth < 0:
            ends = months + 1
            return np.busday_offset(ends.astype("datetime64[D]"), -1, "forward", mask)[:, None]
        starts = months.astype("datetime64[D]")
        return np.busday_offset(starts, self.nth, "forward", mask)[:, None]
