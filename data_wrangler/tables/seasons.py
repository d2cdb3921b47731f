"""Seasons of series: which are used, and where in them each row is."""

import dataclasses
import datetime
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import (
    check_integer,
    check_optional_integer,
    plain_number,
)
from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.season_search import MOST_ROWS, NUM_PERIODS, find_periods
from taylorformer.data_wrangler.tables.season_spans import (
    SHORTEST_SEASON,
    calendar_periods,
    season_length,
    span_text_of,
    usual_step,
)
from taylorformer.data_wrangler.tables.series import Series

__all__ = [
    "NUM_PERIODS",
    "SAME_PERIOD",
    "Seasons",
    "choose_seasons",
    "find_periods",
    "plain_seasons",
    "season_phases",
]

# Steps of seasons that are likely where time has no unit: quarters of a year, days of a week,
# months, hours, weeks of a year.
_LIKELY_STEPS = (4, 7, 12, 24, 52)

SAME_PERIOD = 0.015
"""A measured period this close to one of the calendar is that one, and to a named one shows it."""

_FEWEST_CYCLES = 2
# Noise that is added where nothing was shown without it, as a share of the standard deviation.
_LITTLE_NOISE = 0.003


@dataclasses.dataclass(frozen=True)
class Seasons:
    """The seasons of one column of a series; made by `choose_seasons`.

    Example:
        >>> year = Seasons((31_556_952.0,), named=True, time_unit="s", step=2_678_400.0)
        >>> year.describe(), year.padded.tolist()
        ('365.2425 days (named)', [31556952.0, 0.0, 0.0])
        >>> Seasons((12.0, 3.5)).describe(), Seasons().describe()
        ('12 steps, 3.5 steps', 'none')

    Attributes:
        periods: up to 3 lengths, in the unit of `Series.time`; measured ones from the strongest on.
        named: whether the user named them.
        not_shown: those of the named ones that the rows do not show.
        time_unit: "s", "ms", "us" or "ns" for dates, None for numbers.
        step: the usual step, in the unit of `Series.time`.
    """

    periods: tuple[float, ...] = ()
    named: bool = False
    not_shown: tuple[float, ...] = ()
    time_unit: str | None = None
    step: float = 1.0

    @property
    def steps(self) -> tuple[float, ...]:
        """The periods in usual steps."""
        return tuple(period / self.step for period in self.periods)

    @property
    def first_period(self) -> float | None:
        """The first of the periods, that of a seasonal naive line; None where there is none."""
        return self.periods[0] if self.periods else None

    @property
    def padded(self) -> np.ndarray:
        """`[3]` float64: the periods, then zeros."""
        return np.array([*self.periods, *[0.0] * (NUM_PERIODS - len(self.periods))])

    def describe(self) -> str:
        """Writes the periods for people, such as "365.2425 days (named)"; "none" for none."""
        text = ", ".join(self.text_of(period) for period in self.periods) or "none"
        return f"{text} (named)" if self.named and self.periods else text

    def text_of(self, period: float) -> str:
        """Writes one period: "7 days" for dates, "12 steps" for numbers."""
        if self.time_unit is None:
            return f"{period / self.step:.5g} steps"
        return span_text_of(period, self.time_unit)

    def get_config(self) -> dict[str, Any]:
        """Returns the attributes, ready for a file in JSON."""
        config = dataclasses.asdict(self)
        return config | {name: list(config[name]) for name in ("periods", "not_shown")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Seasons":
        """Makes seasons of what `get_config` returned."""
        lists = {name: tuple(config[name]) for name in ("periods", "not_shown")}
        return cls(**config | lists)


def plain_seasons(seasons: Any) -> Any:
    """Returns the argument `seasons` of `choose_seasons` as JSON can hold it.

    Example:
        >>> import pandas as pd
        >>> plain_seasons((12, pd.Timedelta("7 days"), "year")), plain_seasons(None)
        ([12, '604800000000000 ns', 'year'], None)

    Raises:
        TypeError: it can hold none of it.
    """
    if seasons is None or isinstance(seasons, str):
        return seasons
    if isinstance(seasons, Sequence | np.ndarray):
        return [plain_seasons(one) for one in seasons]
    if isinstance(seasons, datetime.timedelta | np.timedelta64):
        return f"{pd.Timedelta(seasons) // pd.Timedelta(1, 'ns')} ns"
    if isinstance(seasons, numbers.Real) and not isinstance(seasons, bool):
        return plain_number(seasons)
    raise TypeError(
        "`seasons` must be 'auto', None, a number, a length of time such as '7 days', or up to "
        f"three of these. Received: seasons={seasons!r}"
    )


def choose_seasons(
    series: Series, seasons: Any = "auto", column: int = 0, num_rows: int | None = None
) -> Seasons:
    """Returns the seasons of one column: those that a user names, or those that its rows show.

    Example:
        >>> import pandas as pd
        >>> days = pd.date_range("2024-01-01", periods=70).strftime("%Y-%m-%d")
        >>> sales = [5.0, 3, 3, 4, 6, 9, 8] * 10
        >>> series = Series.from_frame(pd.DataFrame({"day": days, "sales": sales}), "day", "sales")
        >>> choose_seasons(series).describe(), choose_seasons(series, "year").describe()
        ('7 days', '365.2425 days (named)')

    Args:
        series: the series.
        seasons: `"auto"`: measured, where those of the calendar (a year, a week, a day) need less
            evidence for dates, and 4, 7, 12, 24 and 52 steps for numbers. None: none. A number:
            the period in the unit of the time where times are numbers, and in steps for dates. A
            span: a Timedelta, or text such as `"7 days"` or `"year"`, for dates only. Or up to
            three numbers and spans. So many steps of dates as a year, a week or a day has are
            that: 12 months are 365.2425 days, and so are 52 weeks.
        column: which target column.
        num_rows: look only at so many rows, the last ones. None: at all.

    Returns:
        The seasons. Named ones are used in any case; `not_shown` has those of which there are fewer
        than two cycles, or that the rows do not show.

    Raises:
        TypeError: `seasons` is none of these.
        ValueError: more than three seasons; one that is not positive and finite, or is shorter than
            two steps; a span for times that are numbers; text that is no span; no such column.
    """
    column = check_integer("column", column, 0, series.num_columns - 1)
    first = series.num_rows - (check_optional_integer("num_rows", num_rows, 1) or series.num_rows)
    first = max(first, 0)
    step, unit = usual_step(series), series.time_unit
    if seasons is None:
        return Seasons((), time_unit=unit, step=step)
    # Differences of 64-bit integers, not of floats, which do not hold them.
    time = (series.time[first:] - series.time[first]).astype(np.float64)
    values = series.values[first:, column]
    if isinstance(seasons, str) and seasons == "auto":
        periods = _measured(time, values, step, _candidates(series, step))
        return Seasons(_on_calendar(periods, series), time_unit=unit, step=step)
    named = _named(seasons, series)
    measured = _measured(time, values, step, named)
    not_shown = [
        one for one in named if not any(abs(period / one - 1) <= SAME_PERIOD for period in measured)
    ]
    return Seasons(named, True, tuple(not_shown), unit, step)


def _named(seasons: Any, series: Series) -> tuple[float, ...]:
    every = seasons if isinstance(seasons, Sequence) and not isinstance(seasons, str) else [seasons]
    if not 1 <= len(every) <= NUM_PERIODS:
        raise ValueError(
            f"`seasons` must be 1 to {NUM_PERIODS} seasons, 'auto' or None. "
            f"Received: seasons={seasons!r}"
        )
    periods = tuple(season_length(one, series) for one in every)
    if len(set(periods)) < len(periods):
        raise ValueError(f"`seasons` must be of different lengths. Received: seasons={seasons!r}")
    return periods


def _candidates(series: Series, step: float) -> tuple[float, ...]:
    """Returns the periods to try first."""
    if series.time_unit is None:
        return tuple(count * step for count in _LIKELY_STEPS)
    return tuple(one for one in calendar_periods(series) if one >= SHORTEST_SEASON * step)


def _on_calendar(periods: tuple[float, ...], series: Series) -> tuple[float, ...]:
    """Replaces periods next to those of the calendar by these."""
    result = []
    for period in periods:
        similar = [one for one in calendar_periods(series) if abs(period / one - 1) <= SAME_PERIOD]
        result.append(similar[0] if similar else period)
    return tuple(dict.fromkeys(result))


def _measured(
    time: np.ndarray, values: np.ndarray, step: float, candidates: tuple[float, ...]
) -> tuple[float, ...]:
    """Returns the periods that rows show.

    Of more rows than are searched, the last ones show the fast seasons, and the means of equal
    parts of the time the slow ones.
    """
    observed = ~np.isnan(values)
    periods = list(_periods_of(time, values, observed, candidates))
    if not periods:
        # A smooth change explains a slow wave without noise as well as the wave does.
        periods = list(_periods_of(time, _with_noise(time, values), observed, candidates))
    if observed.sum() <= MOST_ROWS:
        return tuple(periods)
    fast = (time[-1] - time[observed][-MOST_ROWS]) / _FEWEST_CYCLES
    # Parts of a whole number of cycles hide the fast seasons.
    length = (time[-1] - time[0]) / MOST_ROWS
    cycle = max([one for one in periods if one <= length * MOST_ROWS / 8], default=step)
    length = np.ceil(length / cycle) * cycle
    number = ((time - time[0]) // length).astype(np.intp)
    counts = np.bincount(number[observed])
    sums = np.bincount(number[observed], values[observed])
    means = sums / np.maximum(counts, 1)
    centers = (np.arange(len(counts)) + 0.5) * length
    slow = _periods_of(centers, means, counts > 0, [one for one in candidates if one > fast])
    periods = [*periods, *(one for one in slow if one > fast)]
    angle = 2 * np.pi * (time / np.array(periods).reshape(-1, 1))
    trend = np.linspace(-1, 1, len(time))
    columns = np.concatenate([np.cos(angle), np.sin(angle), [trend**0, trend]])[:, observed]
    fit = np.linalg.lstsq(columns.T, values[observed], rcond=None)[0][:-2]
    strength = np.square(fit).reshape(2, -1).sum(axis=0)
    return tuple(periods[index] for index in np.argsort(-strength, kind="stable")[:NUM_PERIODS])


def _with_noise(time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Adds a little noise, the same for every series, relative to what a line leaves."""
    observed = ~np.isnan(values)
    size = np.abs(values[observed]).max(initial=0.0)
    if observed.sum() < 3 or not size:
        return values
    share = (time - time[0]) / max(time[-1] - time[0], 1e-300)
    line = np.stack([np.ones(len(time)), share], axis=1)
    # Relative to their size, so that no square overflows.
    scaled = values / size
    fit = np.linalg.lstsq(line[observed], scaled[observed], rcond=None)[0]
    deviation = size * np.std(scaled[observed] - line[observed] @ fit)
    noise = np.random.default_rng(0).standard_normal(len(values))
    return np.asarray(values + _LITTLE_NOISE * deviation * noise)


def _periods_of(
    time: np.ndarray, values: np.ndarray, observed: np.ndarray, candidates: Sequence[float]
) -> tuple[float, ...]:
    time, values, observed = time[np.newaxis], values[np.newaxis], observed[np.newaxis]
    periods = find_periods(time, values, observed, np.array([*candidates, 0.0]))[0]
    return tuple(periods[periods > 0].tolist())


def season_phases(elapsed: Any, periods: Any, ops: ArrayOps = NUMPY_OPS) -> Any:
    """Returns where in its seasons each row is, as points on circles.

    Example:
        >>> season_phases(np.array([[0.0, 3.0]]), np.array([[12.0, 0.0, 0.0]])).round(3).tolist()
        [[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]]

    Args:
        elapsed: `[B, N]` float64, time since any origin.
        periods: `[B, 3]` float64, in the unit of `elapsed`; 0 where there is none.
        ops: the array functions for what these are, arrays of NumPy or tensors.

    Returns:
        `[B, N, 6]` float32: cos and sin of the first, the second and the third season; both 0
        where the period is 0.
    """
    there = periods > 0
    # Not divided by zero, which would be NaN in what is left out, too.
    turns = elapsed[:, :, np.newaxis] / ops.where(there, periods, np.float64(1))[:, np.newaxis]
    # In 64 bits: a day is a small part of the seconds since 1970.
    angle = 2 * np.pi * (turns - ops.floor(turns))
    there = there[:, np.newaxis]
    parts = []
    for index in range(NUM_PERIODS):
        for wave in (ops.cos(angle[..., index]), ops.sin(angle[..., index])):
            parts.append(ops.where(there[..., index], wave, np.float64(0)))
    return ops.cast(ops.stack(parts), "float32")
