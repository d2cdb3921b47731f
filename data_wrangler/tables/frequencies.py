"""Frequencies that a user states: those of pandas for dates and periods, steps for numbers."""

import math
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.stamps import NANOSECONDS, exact_time
from taylorformer.data_wrangler.tables.wall_time import from_wall_time, wall_time

Offset = pd.tseries.offsets.BaseOffset
Frequency = str | int | float | Offset

# What is compared with a frequency, at the end of a series.
_ROWS_TO_VERIFY = 1000
# Aliases of earlier versions of pandas, most of which are no frequencies any more.
_OLD_ALIASES = {
    "H": "h",
    "T": "min",
    "S": "s",
    "L": "ms",
    "U": "us",
    "N": "ns",
    "M": "ME",
    "Q": "QE",
    "Y": "YE",
    "A": "YE",
    "BM": "BME",
    "BQ": "BQE",
    "BY": "BYE",
    "BA": "BYE",
    "SM": "SME",
    "BH": "bh",
}
_EXPECTED = "a frequency of pandas for dates, such as 'h', '30min', 'B', 'W-FRI', 'ME' or 'QE'"


def saved_frequency(freq: Any) -> str | int | float | None:
    """Returns a frequency as text or a number, ready for a file.

    Example:
        >>> saved_frequency("B"), saved_frequency(pd.offsets.MonthEnd(3)), saved_frequency(0.5)
        ('B', '3ME', 0.5)

    Raises:
        TypeError: it is neither text nor a number nor an offset of pandas.
        ValueError: an offset that text cannot say, such as one with its own holidays.
    """
    if freq is None or (isinstance(freq, str) and freq.strip()):
        return freq
    if isinstance(freq, Offset):
        try:
            same = pd.tseries.frequencies.to_offset(freq.freqstr) == freq
        except ValueError:
            same = False
        if not same:
            raise ValueError(
                "`freq` must be a frequency that text can say, to be saved; `forecast` takes any "
                f"offset of pandas. Received: freq={freq!r}"
            )
        return str(freq.freqstr)
    if isinstance(freq, int | float | np.integer | np.floating) and not isinstance(freq, bool):
        return freq.item() if isinstance(freq, np.generic) else freq
    raise TypeError(
        f"`freq` must be {_EXPECTED}, or a number for times that are numbers. "
        f"Received: freq={freq!r}"
    )


def read_frequency(freq: Frequency, stamps: pd.Index) -> Offset | int | float:
    """Reads a frequency for stamps.

    Example:
        >>> read_frequency("B", pd.date_range("2024-01-01", periods=2))
        <BusinessDay>
        >>> read_frequency("15", pd.Index([0, 15])), read_frequency(0.5, pd.Index([0.0, 0.5]))
        (15, 0.5)

    Args:
        freq: text or an offset for dates and periods, a number (also as text) for numbers.
        stamps: of a series.

    Returns:
        An offset for dates; for periods and integers a number of steps; else a step.

    Raises:
        TypeError: `freq` is neither text nor a number nor an offset.
        ValueError: no frequency, one that is not positive, or one of another kind of stamps.
    """
    if not isinstance(freq, Offset):
        saved_frequency(freq)
    if isinstance(stamps, pd.PeriodIndex):
        return _periods(freq, stamps)
    if isinstance(stamps, pd.DatetimeIndex):
        return _offset(freq)
    return _number(freq, stamps)


def _offset(freq: Frequency) -> Offset:
    offset: Offset | None = None
    if isinstance(freq, str | Offset):
        try:
            with warnings.catch_warnings():
                # pandas 2 only warns of aliases that are gone in pandas 3.
                warnings.simplefilter("error")
                offset = pd.tseries.frequencies.to_offset(freq)
        except (ValueError, FutureWarning, DeprecationWarning):
            offset = None
    if offset is None or offset.n <= 0:
        raise ValueError(f"`freq` must be {_EXPECTED}. Received: freq={freq!r}{_hint(freq)}")
    return offset


def _hint(freq: Frequency) -> str:
    """Says what an alias of an earlier pandas is called."""
    match = re.fullmatch(r"(\d*)([A-Za-z]+)((?:-\w+)?)", freq) if isinstance(freq, str) else None
    if match is None or match[2].upper() not in _OLD_ALIASES:
        return ""
    new = _OLD_ALIASES[match[2].upper()]
    return f" ({match[1]}{new}{match[3]!s} in pandas today)" if new != match[2] else ""


def _periods(freq: Frequency, stamps: pd.PeriodIndex) -> int:
    dtype: Any = stamps.dtype
    base = dtype.freq
    try:
        offset: Any = freq if isinstance(freq, Offset) else pd.PeriodDtype(str(freq)).freq
    except (ValueError, TypeError):
        offset = _offset(freq)
    ratio: float = math.nan
    if offset.base == base.base:
        ratio = offset.n / base.n
    elif all(isinstance(one, pd.tseries.offsets.Tick) for one in (offset, base)):
        ratio = offset.nanos / base.nanos
    if not (ratio >= 1 and float(ratio).is_integer()):
        raise ValueError(
            f"`freq` must be a multiple of {stamps.freqstr!r} for periods of it. "
            f"Received: freq={freq!r}"
        )
    # Ordinals of periods count in the base frequency.
    return int(ratio) * int(base.n)


def _number(freq: Frequency, stamps: pd.Index) -> int | float:
    number: float | None = None
    try:
        number = float(freq)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = None
    whole = stamps.dtype.kind in "iu"
    if number is None or not (0 < number < math.inf) or (whole and not number.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise ValueError(
            f"`freq` must be {kind} above 0 for times that are numbers (`time_unit`, --time-unit, "
            f"reads integers as dates). Received: freq={freq!r}"
        )
    return int(number) if whole else number


def continue_by(freq: Any, stamps: pd.Index, num_rows: int) -> pd.Index:
    """Returns the stamps that follow by a frequency.

    Args:
        freq: returned by `read_frequency`.
        stamps: `[T]`, T at least 1.
        num_rows: how many.

    Raises:
        OverflowError: their dtype cannot hold them.
        ValueError: the resolution of the stamps cannot hold the frequency.
    """
    if isinstance(stamps, pd.DatetimeIndex):
        return _continue_dates(freq, stamps, num_rows)
    ahead = np.arange(1, num_rows + 1)
    if isinstance(stamps, pd.PeriodIndex):
        dtype: Any = stamps.dtype
        ordinals = stamps.asi8[-1] + int(freq) * ahead
        return pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=dtype))
    last = stamps[-1]
    if stamps.dtype.kind in "iu" and int(last) + int(freq) * num_rows > np.iinfo(np.int64).max:
        raise OverflowError
    with np.errstate(over="ignore"):
        return pd.Index((last + freq * ahead).astype(stamps.dtype))


def _continue_dates(freq: Any, stamps: pd.DatetimeIndex, num_rows: int) -> pd.DatetimeIndex:
    if _is_elapsed(freq):
        step = _elapsed_steps(freq, stamps)
        time = exact_time(stamps)[0]
        if int(time[-1]) + step * num_rows > np.iinfo(np.int64).max:
            raise OverflowError
        ahead = time[-1] + step * np.arange(1, num_rows + 1)
        return dates_of(ahead, stamps)
    wall = pd.DatetimeIndex(wall_time(stamps)[-1:].astype(f"datetime64[{stamps.unit}]"))
    count = num_rows
    while True:
        # One more for the last stamp itself, and more where the clock skips some.
        count = count * 2 + 1
        every = pd.date_range(wall[0], periods=count, freq=freq).as_unit(stamps.unit)
        dates = from_wall_time(every[every > wall[0]].asi8, stamps)
        if len(dates) >= num_rows:
            return dates[:num_rows]


def dates_of(time: np.ndarray, stamps: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Converts instants, counted in the unit of stamps, to dates in their time zone."""
    utc = pd.DatetimeIndex(time.astype(f"datetime64[{stamps.unit}]"))
    return utc if stamps.tz is None else utc.tz_localize("UTC").tz_convert(stamps.tz)


def _is_elapsed(freq: Any) -> bool:
    return isinstance(freq, pd.tseries.offsets.Tick) and not isinstance(freq, pd.offsets.Day)


def _elapsed_steps(freq: Any, stamps: pd.DatetimeIndex) -> int:
    step, rest = divmod(int(pd.Timedelta(freq).value), NANOSECONDS[stamps.unit])
    if rest:
        raise ValueError(
            f"`freq` must be whole {stamps.unit} for times of {stamps.dtype}. "
            f"Received: freq={freq.freqstr!r}"
        )
    return step


def first_off(freq: Any, stamps: pd.Index) -> int | None:
    """Returns the first of the last thousand rows that does not keep a frequency, or None.

    Args:
        freq: returned by `read_frequency`.
        stamps: `[T]`, strictly increasing.
    """
    first = max(len(stamps) - _ROWS_TO_VERIFY, 0)
    latest = stamps[first:]
    if isinstance(stamps, pd.DatetimeIndex) and not _is_elapsed(freq):
        wall = pd.DatetimeIndex(wall_time(stamps)[first:].astype(f"datetime64[{stamps.unit}]"))
        every = pd.date_range(wall[0], wall[-1], freq=freq).as_unit(wall.unit)
        off = ~wall.isin(every)
    elif isinstance(latest, pd.DatetimeIndex):
        time = exact_time(latest)[0]
        off = (time - time[0]) % _elapsed_steps(freq, latest) != 0
    elif isinstance(latest, pd.PeriodIndex):
        off = (latest.asi8 - latest.asi8[0]) % freq != 0
    else:
        off = ~is_multiple(latest.to_numpy() - latest[0], freq, latest.to_numpy())
    return first + int(off.argmax()) if off.any() else None


# Rounding of a float time, in units of its last digit: times are sums, and rounded once each.
_ROUNDING = 4
_RELATIVE = 1e-6


def is_multiple(spans: np.ndarray, step: Any, time: np.ndarray) -> np.ndarray:
    """Returns which spans are multiples of a step, but for the rounding of floats.

    Args:
        spans: differences of times.
        step: positive.
        time: the times, whose size says how they are rounded.
    """
    if spans.dtype.kind in "iu":
        return np.asarray(spans % step == 0)
    tolerance = _ROUNDING * np.spacing(np.abs(time).max()) + _RELATIVE * step
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.abs(spans - np.rint(spans / step) * step) <= tolerance)
