"""Widths of rows and of the heads that share them."""

from typing import Any


def head_width(width: int, num_heads: int) -> int:
    """Returns the width of one head; leaves other faults to other checks.

    Raises:
        ValueError: `width` is no multiple of `num_heads`.
    """
    if width % max(num_heads, 1):
        raise ValueError(
            "`width` must be a multiple of `num_heads`. "
            f"Received: width={width}, num_heads={num_heads}"
        )
    return width // max(num_heads, 1)


def check_width(name: str, shape: Any, width: int) -> None:
    """Raises if rows are not `width` wide."""
    if shape[-1] != width:
        raise ValueError(
            f"`{name}` must have the shape [B, N, width]. Received: {list(shape)}, width={width}"
        )
