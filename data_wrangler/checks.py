"""Checks of arguments, with messages of one form: what was expected, then what was received."""

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Joins names for a message: all of them, or the first ones and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Returns `value` as an int; raises if it is no integer from `minimum` to `maximum`."""
    if not _is_integer(value):
        raise TypeError(f"`{name}` must be an integer. Received: {name}={value!r}")
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}. Received: {name}={value!r}")
    if maximum is not None and value > maximum:
        raise ValueError(f"`{name}` must be at most {maximum}. Received: {name}={value!r}")
    return int(value)


def check_optional_integer(
    name: str, value: Any, minimum: int, maximum: int | None = None
) -> int | None:
    """Returns `value` as an int, or None for None; raises as `check_integer` does."""
    return None if value is None else check_integer(name, value, minimum, maximum)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    minimum: float | None = None,
    below: float | None = None,
) -> float:
    """Returns `value` as a float; raises if it is not a finite number in the interval."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}")
    value = float(value)
    wishes = []
    if above is not None:
        wishes.append(f"above {above}")
    if minimum is not None:
        wishes.append(f"at least {minimum}")
    if below is not None:
        wishes.append(f"below {below}")
    legal = (
        math.isfinite(value)
        and (above is None or value > above)
        and (minimum is None or value >= minimum)
        and (below is None or value < below)
    )
    if not legal:
        wish = " and ".join(["finite", *wishes])
        raise ValueError(f"`{name}` must be {wish}. Received: {name}={value!r}")
    return value


def shortest_float(value: Any) -> float:
    """Returns a number as a float: one of fewer bits by its decimal, so float32 0.9 is 0.9."""
    return float(str(value)) if hasattr(value, "dtype") else float(value)


def check_ends(name: str, value: Any) -> tuple[Any, Any]:
    """Returns the two ends of a range, of any kind; raises if `value` is no pair."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be two numbers, the ends of a range. Received: {name}={value!r}"
        ) from None
    return low, high


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Returns `value`; raises if it is none of `choices`. True does not count as 1."""
    for choice in choices:
        if value is choice or (type(value) is type(choice) and value == choice):
            return value
        if _is_integer(value) and _is_integer(choice) and value == choice:
            return int(value)
    names = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"`{name}` must be one of {names}. Received: {name}={value!r}")
