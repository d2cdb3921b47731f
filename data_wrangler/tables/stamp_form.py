"""How the stamps of a table are written, as far as they do not say it themselves."""

import dataclasses
import datetime
from typing import Any

import pandas as pd

# How many digits numbers of each unit have that count time since 1970 today: years 1990 to 2100.
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800
TIME_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""The units of numbers that count time since 1970: how many of them a second has."""


@dataclasses.dataclass(frozen=True)
class StampForm:
    """How the stamps of a table are written.

    Example:
        >>> StampForm(time_unit="ms").time_unit
        'ms'

    Attributes:
        date_format: of text that is not ISO 8601, or of numbers that spell a date.
        time_unit: "s", "ms", "us" or "ns" where numbers count time since 1970 in UTC. They are read
            as dates in UTC, and so are dates without a time zone, such as those of a forecast.
        time_zone: the name of a time zone, such as "Europe/Berlin": dates with UTC offsets, and
            those of `time_unit`, are shown in it, and their calendar is that of its clocks.
        period: a frequency of periods, such as "Q-MAR": text that says periods, or their first
            days, and years as numbers where it is one of years, are read as these.
        day_first: text is dates such as 16/12/2006, see `Series.from_frame`.

    Raises:
        ValueError: no such unit, time zone or periods, or two of `date_format`,
            `time_unit` and `day_first`.
    """

    date_format: str | None = None
    time_unit: str | None = None
    time_zone: str | None = None
    period: str | None = None
    day_first: bool = False

    def __post_init__(self) -> None:
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            raise ValueError(
                f"`time_unit` must be one of {', '.join(TIME_UNITS)} or None. "
                f"Received: time_unit={self.time_unit!r}"
            )
        if self.time_unit is not None and self.date_format is not None:
            raise ValueError(
                "`time_unit` must be None where `date_format` says how numbers spell a date. "
                f"Received: time_unit={self.time_unit!r} and date_format={self.date_format!r}"
            )
        if self.day_first and self.date_format is not None:
            raise ValueError(
                "`date_format` and `day_first` must not both be given. "
                f"Received: date_format={self.date_format!r} and day_first=True"
            )
        if self.time_zone is not None:
            try:
                if not isinstance(self.time_zone, str):
                    raise TypeError
                pd.Timestamp(0, tz=self.time_zone)
            # The packages of time zones raise different errors.
            except Exception as error:
                raise ValueError(
                    "`time_zone` must be the name of a time zone, such as 'Europe/Berlin'. "
                    f"Received: time_zone={self.time_zone!r}"
                ) from error
        if self.period is not None:
            try:
                pd.PeriodDtype(self.period)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "`period` must be a frequency of periods, such as 'M' or 'Q-DEC'. "
                    f"Received: period={self.period!r}"
                ) from error

    @property
    def period_freq(self) -> Any:
        """The frequency of `period` as an offset of pandas, or None."""
        return None if self.period is None else pd.PeriodDtype(self.period).freq


def likely_time_unit(stamps: pd.Index) -> str | None:
    """Returns the unit in which integers count time since 1970, if they look like it.

    Example:
        >>> likely_time_unit(pd.Index([1_700_000_000, 1_700_003_600]))
        's'
        >>> likely_time_unit(pd.Index([1, 2, 3])) is None
        True
    """
    if stamps.dtype.kind not in "iu" or len(stamps) < 2:
        return None
    first, last = int(stamps.min()), int(stamps.max())
    for unit, per_second in TIME_UNITS.items():
        if _EARLIEST * per_second <= first and last <= _LATEST * per_second:
            return unit
    return None


def zone_name(time_zone: datetime.tzinfo | None) -> str | None:
    """Returns the name of a time zone, such as "Europe/Berlin"; None for one that has none.

    Example:
        >>> zone_name(pd.Timestamp("2024", tz="Europe/Berlin").tz)
        'Europe/Berlin'
    """
    name = getattr(time_zone, "key", None) or getattr(time_zone, "zone", None)
    return None if name is None else str(name)


def form_of(stamps: pd.Index, form: StampForm) -> StampForm:
    """Adds to a form what typed stamps say: their periods, or the name of their time zone.

    A file has no types: with these, what is written of such stamps is read as it was.

    Example:
        >>> form_of(pd.period_range("2024Q1", periods=2, freq="Q-MAR"), StampForm()).period
        'Q-MAR'
    """
    if isinstance(stamps, pd.PeriodIndex) and form.period is None:
        return dataclasses.replace(form, period=stamps.freqstr)
    if isinstance(stamps, pd.DatetimeIndex) and form.time_zone is None and stamps.tz is not None:
        name = zone_name(stamps.tz)
        if name is not None and name != "UTC":
            return dataclasses.replace(form, time_zone=name)
    return form
