"""Levels of quantiles: checked in one way wherever a function takes them."""

import numbers
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import shortest_float


def check_levels(name: str, levels: Any, minimum: int = 1) -> np.ndarray:
    """Returns levels of quantiles as an array.

    Example:
        >>> check_levels("q", 0.5).tolist(), check_levels("q", [0.9, 0.1]).tolist()
        ([0.5], [0.9, 0.1])

    Args:
        name: of the argument, for messages.
        levels: a number from 0 to 1, or Q different ones.
        minimum: how many there must be.

    Returns:
        `[Q]` float64, in the order given. A level in float32 becomes its decimal: 0.05 for 0.05.

    Raises:
        TypeError: `levels` holds something other than numbers, such as text or None.
        ValueError: too few levels, one that comes twice, is outside 0 to 1 or NaN, or an array of
            two or more dimensions.
    """
    wish = f"`{name}` must be a level from 0 to 1, or a list of them, none twice"
    received = f"Received: {name}={levels!r}"
    try:
        is_number = isinstance(levels, numbers.Real)
        # An array as it is; sets, ranges and generators are lists, too. Text is no list of them.
        is_array = hasattr(levels, "__array__") or isinstance(levels, str | bytes)
        given = np.asarray(levels if is_number or is_array else list(levels))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{wish}. {received}") from error
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{wish}. {received}")
    if given.ndim > 1 or given.size < minimum:
        raise ValueError(f"{wish}. {received}")
    checked = np.array([shortest_float(level) for level in np.atleast_1d(given)], np.float64)
    if not ((checked >= 0) & (checked <= 1)).all() or len(np.unique(checked)) < len(checked):
        raise ValueError(f"{wish}. {received}")
    return checked
