"""Local time, as a clock on the wall shows it, and back to instants over changes of the clock."""

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.stamps import DAY_NANOSECONDS, NANOSECONDS


def wall_time(stamps: pd.DatetimeIndex) -> np.ndarray:
    """Returns local time, counted since 1970 in the unit of the stamps.

    A daily stamp at 2:30 is 3:00 on the day on which the clock skips that hour. It is returned as
    2:30, if no other stamp is at 3:00 and others are at 2:30.

    Example:
        >>> stamps = pd.date_range("1970-01-02", periods=1, tz="Europe/Paris", unit="s")
        >>> wall_time(stamps).tolist(), stamps.asi8.tolist()
        ([86400], [82800])

    Returns:
        `[T]` int64.
    """
    if stamps.tz is None:
        return stamps.asi8
    wall = stamps.tz_localize(None).asi8
    utc = stamps.asi8
    ahead = wall - utc
    changes = np.flatnonzero(np.diff(ahead) > 0) + 1
    if not len(changes):
        return wall
    # Only the first stamp after a change can be one that was moved.
    just_before = pd.DatetimeIndex((utc[changes] - 1).astype(f"datetime64[{stamps.unit}]"))
    before = just_before.tz_localize("UTC").tz_convert(stamps.tz).tz_localize(None).asi8
    skipped = wall[changes] - before - 1
    per_day = DAY_NANOSECONDS // NANOSECONDS[stamps.unit]
    moved = {int(row): int(size) for row, size in zip(changes, skipped, strict=True) if size > 0}
    if not moved:
        return wall
    clocks = np.unique(np.delete(wall, list(moved)) % per_day)
    wall = wall.copy()
    for row, size in moved.items():
        clock = wall[row] % per_day
        if clock in clocks:
            continue
        usual = clocks[(clocks >= clock - size) & (clocks < clock)]
        if len(usual):
            # All of these times became one stamp.
            wall[row] += usual[-1] - clock
    return wall


def from_wall_time(wall: np.ndarray, stamps: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Converts local time that follows stamps to stamps like them.

    A time that the clock skips becomes the next one; of a time that occurs twice, the first is
    taken. Times that are not later than the one before are dropped.

    Args:
        wall: `[N]` int64, strictly increasing, see `wall_time`.
        stamps: what they follow.

    Returns:
        At most N stamps, strictly increasing, later than the last one of `stamps`.

    Raises:
        OverflowError: the unit of the stamps cannot count to these times.
    """
    if (wall[1:] <= wall[:-1]).any():
        raise OverflowError
    local = pd.DatetimeIndex(wall.astype(f"datetime64[{stamps.unit}]"))
    if stamps.tz is None:
        return local
    first = np.ones(len(wall), np.bool_)
    ahead = local.tz_localize(stamps.tz, ambiguous=first, nonexistent="shift_forward")
    before = np.maximum.accumulate(np.append(stamps[-1:].asi8, ahead.asi8[:-1]))
    return ahead[ahead.asi8 > before]
