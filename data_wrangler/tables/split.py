"""Where windows of a training, a validation and a test part lie in one or several series."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_number,
    shortest_float,
)
from taylorformer.data_wrangler.tables.panel import Panel

PARTS = ("training", "validation", "test")
DEFAULT_FRACTIONS = (0.69, 0.11, 0.20)

# How far the sum of fractions, such as 0.1 + 0.2 + 0.7, may be from 1.
_FRACTION_TOLERANCE = 1e-9
# A border this close below a whole row is that row: 0.69 * 100 is 68.99999999999999.
_ROW_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class WindowSpec:
    """How many rows a window has.

    Example:
        >>> WindowSpec(context_length=96, horizon=24).length
        120

    Attributes:
        context_length: N_C, the number of rows that a model is given, at least 1.
        horizon: N_T, the number of rows to predict, at least 1.

    Raises:
        TypeError, ValueError: one of them is no integer, or less than 1.
    """

    context_length: int
    horizon: int

    def __post_init__(self) -> None:
        for name in ("context_length", "horizon"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 1))

    @property
    def length(self) -> int:
        """N = N_C + N_T."""
        return self.context_length + self.horizon


def check_fractions(fractions: Any) -> tuple[float, ...]:
    """Returns the shares of training, validation and test as floats.

    Args:
        fractions: three numbers, in a sequence or an array `[3]`.

    Raises:
        TypeError: no sequence of numbers.
        ValueError: fractions that are negative or do not add up to 1.
    """
    is_array = isinstance(fractions, np.ndarray) and fractions.ndim == 1
    is_sequence = isinstance(fractions, Sequence) and not isinstance(fractions, str | bytes)
    if not (is_array or is_sequence):
        raise TypeError(f"`fractions` must be three shares. Received: fractions={fractions!r}")
    for share in fractions:
        check_number("fractions", share)
    shares = tuple(shortest_float(share) for share in fractions)
    if len(shares) != len(PARTS) or min(shares) < 0 or abs(sum(shares) - 1) > _FRACTION_TOLERANCE:
        raise ValueError(
            f"`fractions` must be three shares that add up to 1. Received: fractions={shares}"
        )
    return shares


@dataclasses.dataclass(frozen=True)
class Split:
    """A chronological split of T rows into a training, a validation and a test part.

    Example:
        >>> split = Split.chronological(100, (0.6, 0.2, 0.2))
        >>> split.rows("validation")
        range(60, 80)
        >>> split.window_starts(WindowSpec(context_length=8, horizon=18), "validation").tolist()
        [52, 53, 54]

    Attributes:
        train_end: the row after the last one of the training part.
        validation_end: the row after the last one of the validation part.
        num_rows: T, the row after the last one of the test part.

    Raises:
        ValueError: the three are not in order.
    """

    train_end: int
    validation_end: int
    num_rows: int

    def __post_init__(self) -> None:
        if not 0 <= self.train_end <= self.validation_end <= self.num_rows:
            raise ValueError(
                "`train_end`, `validation_end` and `num_rows` must be in order. "
                f"Received: {self.train_end}, {self.validation_end}, {self.num_rows}"
            )
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, int(getattr(self, field.name)))

    @classmethod
    def chronological(
        cls, num_rows: int, fractions: Sequence[float] = DEFAULT_FRACTIONS
    ) -> "Split":
        """Splits by fractions; each border is rounded down to a whole row.

        Args:
            num_rows: T.
            fractions: the shares of training, validation and test. Their sum is 1.

        Raises:
            TypeError, ValueError: see `check_fractions`.
        """
        num_rows = check_integer("num_rows", num_rows, 0)
        shares = check_fractions(fractions)
        borders = np.floor(np.cumsum(shares) * num_rows + _ROW_TOLERANCE)
        return cls(int(borders[0]), min(int(borders[1]), num_rows), num_rows)

    def rows(self, part: str) -> range:
        """Returns the rows of a part, one of "training", "validation", "test"."""
        number = PARTS.index(check_choice("part", part, PARTS))
        borders = (0, self.train_end, self.validation_end, self.num_rows)
        return range(borders[number], borders[number + 1])

    def window_starts(
        self, spec: WindowSpec, part: str, context_inside: bool = False
    ) -> np.ndarray:
        """Returns the first row of every legal window of a part.

        Training windows lie wholly in the training part. Windows of validation and test have all
        their *targets* in their part; their context may reach back into earlier parts.

        Args:
            spec: N_C and N_T.
            part: one of "training", "validation", "test".
            context_inside: the context must lie in the part, too, as in the paper's test sets.

        Returns:
            `[number of windows]` int64, increasing.

        Raises:
            ValueError: the part is too short for one window.
        """
        rows = self.rows(part)
        if part == PARTS[0] or context_inside:
            need, wish = spec.length, f"context_length + horizon = {spec.length} rows"
            first = rows.start
        else:
            need, wish = spec.horizon, f"horizon = {spec.horizon} rows"
            first = rows.start - spec.context_length
        if len(rows) < need:
            raise ValueError(
                f"the series must have at least {wish} in the {part} part. Received: {len(rows)}"
            )
        starts = np.arange(max(first, 0), rows.stop - spec.length + 1, dtype=np.int64)
        if not len(starts):
            raise ValueError(
                f"the series must have at least context_length + horizon = {spec.length} rows up "
                f"to the end of the {part} part. Received: {rows.stop}"
            )
        return starts


def panel_window_starts(
    panel: Panel,
    splits: Sequence[Split],
    spec: WindowSpec,
    part: str,
    context_inside: bool = False,
) -> np.ndarray:
    """Returns the first row of every legal window of a part, over all series of a panel.

    Series that are too short for a window are skipped.

    Args:
        panel: G series.
        splits: G splits, one for each series.
        spec: N_C and N_T.
        part: one of "training", "validation", "test".
        context_inside: see `Split.window_starts`.

    Returns:
        `[number of windows]` int64, increasing.

    Raises:
        ValueError: every series is too short.
    """
    starts, errors = [], []
    for offset, split in zip(panel.offsets[:-1], splits, strict=True):
        try:
            starts.append(split.window_starts(spec, part, context_inside) + offset)
        except ValueError as error:
            errors.append((split.num_rows, error))
    if not starts:
        # That of the longest series is the one that came closest.
        raise max(errors, key=lambda pair: pair[0])[1]
    return np.concatenate(starts)


def spaced_starts(starts: np.ndarray, step: int, count: int | None = None) -> np.ndarray:
    """Chooses every `step`-th window, counted back from the last one.

    Example:
        >>> spaced_starts(np.arange(10), step=4).tolist()
        [1, 5, 9]

    Args:
        starts: first rows of windows, increasing.
        step: how many windows further the next one is; with the horizon as `step`, targets do not
            overlap.
        count: at most this many, the last ones. None: all.

    Returns:
        The chosen first rows, increasing.
    """
    chosen = starts[::-1][:: check_integer("step", step, 1)]
    if count is not None:
        chosen = chosen[: check_integer("count", count, 1)]
    return chosen[::-1]


def evenly_spaced(starts: np.ndarray, most: int) -> np.ndarray:
    """Chooses at most `most` windows, evenly spaced from the first to the last."""
    if len(starts) <= most:
        return starts
    return starts[np.linspace(0, len(starts) - 1, most).astype(np.int64)]
