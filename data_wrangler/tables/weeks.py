"""Days of the week, of days that are counted from 1970-01-01."""

from typing import TypeVar

import numpy as np

Days = TypeVar("Days", int, np.ndarray)

WEEK = 7
"""How many days a week has."""
# 1970-01-01, day 0, is a Thursday.
_MONDAY = -3


def weekday_of(days: Days) -> Days:
    """Returns the day of the week: 0 is Monday, 6 is Sunday.

    Example:
        >>> weekday_of(0), weekday_of(np.array([4, 10])).tolist()
        (3, [0, 6])

    Args:
        days: whole numbers, counted from 1970-01-01.
    """
    return (days - _MONDAY) % WEEK


def monday_of(day: int) -> int:
    """Returns the Monday of the week of a day.

    Example:
        >>> monday_of(0), monday_of(4)
        (-3, 4)
    """
    return day - weekday_of(day)
