"""How many context points and targets the sequences of a task have: checked, and drawn."""

from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_ends, check_integer


def check_lengths(name: str, ends: Any, minimum: int, maximum: int) -> tuple[int, int]:
    """Returns the smallest and the largest number of points as integers.

    Args:
        name: of the argument, for errors.
        ends: the smallest and the largest number.
        minimum: the least that the smallest may be.
        maximum: the most that the largest may be.

    Raises:
        TypeError: An end that is no integer.
        ValueError: No two ends, or ends that are out of range or in the wrong order.
    """
    smallest, largest = check_ends(name, ends)
    smallest = check_integer(name, smallest, minimum)
    return smallest, check_integer(name, largest, smallest, maximum)


def draw_lengths(rng: np.random.Generator, ends: tuple[int, int], size: int) -> np.ndarray:
    """Draws numbers of points, `[size]`; each number between the ends is as likely."""
    return rng.integers(*ends, size=size, endpoint=True)
