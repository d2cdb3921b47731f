"""The stamps that follow the last row of a series, by a calendar that it keeps or a stated one."""

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tables.calendar_rules import Fit
from taylorformer.data_wrangler.tables.clock_rules import clock_rules, even_steps
from taylorformer.data_wrangler.tables.frequencies import (
    Frequency,
    continue_by,
    dates_of,
    first_off,
    is_multiple,
    read_frequency,
)
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.stamps import (
    DAY_NANOSECONDS,
    NANOSECONDS,
    exact_time,
    median_step,
    span_text,
)
from taylorformer.data_wrangler.tables.wall_time import from_wall_time, wall_time
from taylorformer.data_wrangler.user_warnings import warn_user

# Rules whose bits differ by less are both likely: those that leave out more dates than the best
# one, whose gaps are evidence against them, and those whose rarity alone speaks against them.
_CLOSE_BITS = 3.0
_CLOSE_BITS_WITHOUT_EVIDENCE = 6.0
# Stamps and series in a warning.
_SHOWN_STAMPS = 3
_SHOWN_SERIES = 3
_NO_CALENDAR = "keep no calendar; the next ones are by the median step"
_NO_EVEN_STEP = "have no even step; the next ones are by the median step"
_SEVERAL_CALENDARS = "keep more than one calendar; the next ones are by the likeliest"


@dataclasses.dataclass(frozen=True)
class StampRule:
    """How the stamps of a series continue; made by `find_rule`.

    Attributes:
        words: the rule in words, such as "third Friday of the month".
        ahead: returns the next stamps `[N]`, for N.
        guess: why the rule is a guess; "" where the stamps keep it.
        detail: what the guess says of these stamps, such as the length of the median step.
        rivals: what other rules return that are as likely. Where it differs, the rule is a guess.
    """

    words: str
    ahead: Callable[[int], pd.Index]
    guess: str = ""
    detail: str = ""
    rivals: tuple[Callable[[int], pd.Index], ...] = ()


@dataclasses.dataclass(frozen=True)
class NextStamps:
    """The stamps after a series.

    Attributes:
        stamps: `[N]`.
        guess: why they are a guess; "" where the series keeps the rule.
        detail: see `StampRule`.
    """

    stamps: pd.Index
    guess: str = ""
    detail: str = ""


def continue_stamps(series: Series, num_rows: int, freq: Frequency | None = None) -> pd.Index:
    """Returns the stamps that follow a series.

    With `freq` they follow by it. Else by a calendar that all stamps keep, whether some of its
    dates are missing or not, as long as most steps are to the very next date. Of those that fit it
    is the simplest one that leaves the fewest dates out:

    - even steps of elapsed time, such as every 15 minutes; every k days;
    - days of the week, such as business days, Monday to Saturday, Tuesday and Thursday, also of
      every second, third or fourth week;
    - every 1, 2, 3, ... months: the same day of the month (the last day of a month that is too
      short for it), the last day, up to four days such as the 1st and the 15th; the first or last
      business day, a day or the business day before or after it; the n-th or last weekday, such as
      the third Friday;
    - times of day on such days, such as opening hours; times of the week.

    Rules of days need four stamps, but for even steps and one day of the month, for which two are
    enough. Without a rule the next stamps are by the median step: of days, where all stamps are at
    one time of day, else of elapsed time; for dates and integers it is the lower median, which is
    a step of the series, without rounding. A warning says so, and also where two calendars that
    continue differently are about as likely.

    With a time zone days and times of day follow local time: a time that the clock skips becomes
    the next one, and of a time that occurs twice the first is taken. Periods continue by their
    steps (those of days and shorter ones as dates do), numbers by even steps.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"t": ["2024-01-31", "2024-02-29", "2024-04-30"], "y": 0.0})
        >>> series = Series.from_frame(frame, "t", "y")
        >>> list(continue_stamps(series, 2).astype(str))
        ['2024-05-31', '2024-06-30']
        >>> list(continue_stamps(series, 2, freq="ME").astype(str))
        ['2024-05-31', '2024-06-30']

    Args:
        series: T rows.
        num_rows: how many stamps, at least 1.
        freq: for dates a frequency of pandas, such as `"B"`, `"30min"` or an offset; for periods a
            multiple of theirs; for numbers a step. None: by the rules above.

    Returns:
        `[num_rows]`, strictly increasing, after the last row, of the dtype and name of
        `series.stamps`.

    Warns:
        UserWarning: the stamps are a guess, see above, or stamps of the series do not keep `freq`.
            It names the first of the next stamps.

    Raises:
        TypeError: `num_rows` is no integer, or `freq` is no frequency.
        ValueError: the series has one row and so no step, or the stamps leave the range of their
            dtype, or `freq` is no frequency, or one for another kind of times.
    """
    following = next_stamps(series, num_rows, freq)
    warn_user(describe_guesses(series.time_column, {"": following}))
    return following.stamps


def describe_guesses(time_column: Hashable, guesses: Mapping[str, NextStamps]) -> str:
    """Says in one text which next stamps are guesses, and what they are; "" where none is.

    Args:
        time_column: the name of the column of time.
        guesses: what follows each series, by its name.
    """
    groups: dict[str, list[tuple[str, NextStamps]]] = {}
    for name, one in guesses.items():
        if one.guess:
            groups.setdefault(one.guess, []).append((name, one))
    if not groups:
        return ""
    sentences = []
    for guess, members in groups.items():
        shown = []
        for name, one in members[:_SHOWN_SERIES]:
            dates = ", ".join(map(str, one.stamps[:_SHOWN_STAMPS]))
            dates += ", ..." if len(one.stamps) > _SHOWN_STAMPS else ""
            shown.append(f"{name}: {one.detail} ({dates})" if name else f"{one.detail} ({dates})")
        if len(members) > len(shown):
            shown.append(f"and {len(members) - len(shown)} more series")
        sentences.append(f"the stamps of `{time_column}` {guess}: {', '.join(shown)}")
    others = "`freq` (--freq) states another frequency, `future` (--future) the stamps"
    if any(one.guess and _is_utc(one.stamps) for one in guesses.values()):
        others += ", `time_zone` (--time-zone) whose clocks they follow"
    return f"{'; '.join(sentences)}. {others}"


def _is_utc(stamps: pd.Index) -> bool:
    return isinstance(stamps, pd.DatetimeIndex) and str(stamps.tz) == "UTC"


def next_stamps(series: Series, num_rows: int, freq: Frequency | None = None) -> NextStamps:
    """Returns what follows a series, and whether it is a guess; see `continue_stamps`."""
    num_rows = check_integer("num_rows", num_rows, 1)
    try:
        if freq is not None:
            following = _by_frequency(series.stamps, num_rows, freq)
        elif series.num_rows < 2 and not isinstance(series.stamps, pd.PeriodIndex):
            raise ValueError(
                "`future` must give the stamps to predict, or `freq` (--freq) their frequency, "
                "where the series has one row, and so no step. "
                f"Received: {series.stamps[0]} only"
            )
        else:
            following = _by_rule(find_rule(series.stamps), num_rows)
        time, unit = exact_time(following.stamps)
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        raise _beyond(series, num_rows) from error
    if unit != series.time_unit or not_after(series, time).any():
        raise _beyond(series, num_rows)
    named = following.stamps.rename(series.stamps.name)
    return dataclasses.replace(following, stamps=named)


def _beyond(series: Series, num_rows: int) -> ValueError:
    return ValueError(
        f"`num_rows` must be so few that {series.stamps.dtype} can tell the stamps after "
        f"{series.stamps[-1]} apart. Received: num_rows={num_rows}"
    )


def not_after(series: Series, time: np.ndarray) -> np.ndarray:
    """Returns which times are not later than the one before; the first follows the last row."""
    return ~(time > np.append(series.time[-1:], time[:-1]))


def _by_frequency(stamps: pd.Index, num_rows: int, freq: Frequency) -> NextStamps:
    step = read_frequency(freq, stamps)
    ahead = continue_by(step, stamps, num_rows)
    row = first_off(step, stamps)
    if row is None:
        return NextStamps(ahead)
    text = freq.freqstr if isinstance(freq, pd.tseries.offsets.BaseOffset) else freq
    guess = f"do not all keep the frequency {text!r}; the next ones do"
    return NextStamps(ahead, guess, f"{stamps[row]} is off it")


def _by_rule(rule: StampRule, num_rows: int) -> NextStamps:
    stamps = rule.ahead(num_rows)
    if rule.guess:
        return NextStamps(stamps, rule.guess, rule.detail)
    if all(other(num_rows).equals(stamps) for other in rule.rivals):
        return NextStamps(stamps)
    return NextStamps(stamps, _SEVERAL_CALENDARS, rule.words)


def find_rule(stamps: pd.Index) -> StampRule:
    """Finds how stamps continue; see `continue_stamps`.

    Args:
        stamps: `[T]`, strictly increasing, T at least 2, for periods at least 1.
    """
    if isinstance(stamps, pd.PeriodIndex):
        return _rule_of_periods(stamps)
    time, unit = exact_time(stamps)
    if not isinstance(stamps, pd.DatetimeIndex):
        return _rule_of_numbers(stamps, time)
    return _rule_of_dates(stamps, time, cast(str, unit))


def _rule_of_periods(stamps: pd.PeriodIndex) -> StampRule:
    dtype = cast(pd.PeriodDtype, stamps.dtype)
    is_short = isinstance(dtype.freq, pd.tseries.offsets.Tick | pd.offsets.Day)
    if is_short and dtype.freq.n == 1 and len(stamps) > 1:
        dates = find_rule(stamps.to_timestamp())

        def periods(ahead: Callable[[int], pd.Index]) -> Callable[[int], pd.Index]:
            return lambda count: cast(Any, ahead(count)).to_period(dtype.freq)

        rivals = tuple(periods(rival) for rival in dates.rivals)
        return dataclasses.replace(dates, ahead=periods(dates.ahead), rivals=rivals)
    steps = np.diff(stamps.asi8)
    step = int(median_step(steps)) if len(steps) else dtype.freq.n
    text = _length_of_periods(step, dtype.freq)
    is_even = not (steps % step).any()

    def ahead(count: int) -> pd.Index:
        return continue_by(step, stamps, count)

    return _even_or_not(text, ahead, is_even)


def _length_of_periods(step: int, freq: Any) -> str:
    names = (
        (pd.offsets.MonthEnd, "month"),
        (pd.offsets.QuarterEnd, "quarter"),
        (pd.offsets.YearEnd, "year"),
        (pd.offsets.Week, "week"),
        (pd.offsets.BusinessDay, "business day"),
    )
    name = next((name for kind, name in names if isinstance(freq, kind)), "")
    if not name:
        count = step // freq.n
        return str(freq.freqstr) if count == 1 else f"{count} x {freq.freqstr}"
    return name if step == 1 else f"{step} {name}s"


def _even_or_not(text: str, ahead: Callable[[int], pd.Index], is_even: bool) -> StampRule:
    """Returns the rule of a median step, which is a guess unless steps are even."""
    if is_even:
        return StampRule(f"every {text}", ahead)
    return StampRule(f"none, median step {text}", ahead, _NO_EVEN_STEP, text)


def _rule_of_numbers(stamps: pd.Index, time: np.ndarray) -> StampRule:
    steps = np.diff(time)
    step = median_step(steps)

    def ahead(count: int) -> pd.Index:
        following = continue_by(step, stamps, count)
        if following.dtype.kind == "f" and not np.isfinite(following[-1]):
            raise OverflowError
        return following

    text = f"{step:.6g}" if time.dtype.kind == "f" else str(step)
    is_even = (step > 0 and is_multiple(steps, step, time).all()) or len(steps) == 1
    return _even_or_not(text, ahead, bool(is_even))


def _rule_of_dates(stamps: pd.DatetimeIndex, time: np.ndarray, unit: str) -> StampRule:
    per_day = DAY_NANOSECONDS // NANOSECONDS[unit]
    steps = np.diff(time)
    same_clock = not (np.diff(wall_time(stamps[:2])) % per_day).any()
    if steps.min() == steps.max() and not same_clock:
        # At once, as there is nothing to choose: most long series are like that.
        even = even_steps(time, unit)
        fits = [] if even is None else [even]
        wall = time
    else:
        wall = wall_time(stamps)
        if (wall[1:] <= wall[:-1]).any():
            wall = np.unique(wall)
        fits = clock_rules(wall, unit, time)
    if not fits:
        return _median_rule(stamps, time, wall, unit)
    best = fits[0]

    def ahead(fit: Fit) -> Callable[[int], pd.Index]:
        def following(count: int) -> pd.Index:
            return _ahead(fit, stamps, count)

        return following

    rivals = tuple(ahead(fit) for fit in fits[1:] if _is_close(fit, best))
    return StampRule(best.rule.words, ahead(best), rivals=rivals)


def _is_close(fit: Fit, best: Fit) -> bool:
    close = _CLOSE_BITS if fit.gaps > best.gaps else _CLOSE_BITS_WITHOUT_EVIDENCE
    return fit.bits - best.bits < close


def _ahead(fit: Fit, stamps: pd.DatetimeIndex, count: int) -> pd.DatetimeIndex:
    if fit.is_elapsed:
        time = fit.ahead(count)
        if (np.diff(time, prepend=exact_time(stamps[-1:])[0]) <= 0).any():
            raise OverflowError
        return dates_of(time, stamps)
    number = count
    while True:
        dates = from_wall_time(fit.ahead(number), stamps)
        if len(dates) >= count:
            return dates[:count]
        number *= 2


def _median_rule(
    stamps: pd.DatetimeIndex, time: np.ndarray, wall: np.ndarray, unit: str
) -> StampRule:
    per_day = DAY_NANOSECONDS // NANOSECONDS[unit]
    at_one_clock = bool((wall % per_day == wall[0] % per_day).all())
    step: Any = median_step(np.diff(wall if at_one_clock else time))
    text = str(span_text(step, unit))

    def ahead(count: int) -> pd.Index:
        last = int(wall[-1] if at_one_clock else time[-1])
        if last + int(step) * 2 * count > np.iinfo(np.int64).max:
            raise OverflowError
        following = last + step * np.arange(1, count + 1)
        return from_wall_time(following, stamps) if at_one_clock else dates_of(following, stamps)

    return StampRule(f"none, median step {text}", ahead, _NO_CALENDAR, text)


def frequency_words(stamps: pd.Index, freq: Frequency | None = None) -> tuple[str, str] | None:
    """Returns the rule of stamps in words and the next stamps, for people; None for one stamp."""
    if freq is None and len(stamps) < 2:
        return None
    try:
        if freq is not None:
            ahead, words = continue_by(read_frequency(freq, stamps), stamps, 2), str(freq)
        else:
            rule = find_rule(stamps)
            ahead, words = rule.ahead(2), rule.words
    except (OverflowError, pd.errors.OutOfBoundsDatetime):
        return None
    return words, ", ".join(map(str, ahead))
