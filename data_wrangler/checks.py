"""Checks of arguments, with messages of one form: what was expected, then what was received."""

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

_DTYPES = {"float32", "float16", "bfloat16"}
"""In what weights may be held and Dense layers may compute; sums and densities are float32."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Joins names for a message: all of them, or the first ones and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def plain_number(value: Any) -> Any:
    """Returns a NumPy scalar as one of Python; anything else as it is.

    For arguments that are handed on to what checks them, and are remembered: a configuration must
    hold what JSON can.
    """
    return value.item() if isinstance(value, np.generic) else value


def check_boolean(name: str, value: Any) -> bool:
    """Returns `value` as a bool; raises if it is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False. Received: {name}={value!r}")
    return bool(value)


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


def _is_kind_of(value: Any, choice: Any) -> bool:
    """Tells whether both are integers, both are strings, or both are of one type."""
    if isinstance(choice, str):
        return isinstance(value, str)
    return _is_integer(value) if _is_integer(choice) else type(value) is type(choice)


def check_dtype_policy(policy: Any) -> None:
    """Raises if a Keras dtype policy is one in which the models are not meant to work.

    Args:
        policy: has `name`, `compute_dtype` and `variable_dtype`.

    Raises:
        ValueError: float64, or no floating-point numbers.
    """
    if not {policy.compute_dtype, policy.variable_dtype} <= _DTYPES:
        raise ValueError(
            "`dtype` must be float32, mixed_float16 or mixed_bfloat16 (inputs may be of any "
            "dtype; the default is that of `keras.config.set_dtype_policy` or `set_floatx`). "
            f"Received: dtype={policy.name!r}"
        )


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Returns the choice that `value` is; raises if it is none. True does not count as 1."""
    for choice in choices:
        if value is choice or (_is_kind_of(value, choice) and value == choice):
            return choice
    names = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"`{name}` must be one of {names}. Received: {name}={value!r}")
