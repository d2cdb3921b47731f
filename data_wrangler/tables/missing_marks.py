"""Values that look like marks for missing ones, such as -999.99: far from all others, repeated."""

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from taylorformer.data_wrangler.tables.series import Series

# What programs and formats put where there is no value, besides nines: limits of integers, and the
# usual fill values of scientific files.
_FILL_VALUES = (-32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0, 1e20)
_FLOAT32_FILL_VALUES = (9.969209968386869e36, -3.4028234663852886e38, 3.4028234663852886e38)
_MINUS_ONE = -1.0
# Shorter marks occur as values, and have to be farther away: this many times the range of the rest.
_SURE_DIGITS = 3
_FAR, _VERY_FAR = 1.0, 3.0
# The rest must have this many distinct values, or it has no range to speak of.
_DISTINCT = 3
# So many marks are looked for at each end.
_MOST_MARKS = 3
# A mark is repeated; a value that is far away may occur once.
_REPEATED = 2


def possible_marks(values: np.ndarray) -> dict[float, int]:
    """Counts the values of one column of one series that may be marks for missing ones.

    Such a value consists of nines (-999.99, 9999), is -1, or is a usual fill value, such as the
    limits of integers; and it is farther from the rest than the rest reaches (for -1 and two
    nines: three times as far), or it is the only negative value, of three nines or more. Zero is
    none: a shop that is closed sells nothing.

    Example:
        >>> possible_marks(np.array([380.0, 380.4, -999.99, 381.2, -999.99]))
        {-999.99: 2}

    Args:
        values: `[T]`; NaN is left out.

    Returns:
        How often each occurs: once counts, too, as in many series it may.
    """
    rest = values[np.isfinite(values)]
    candidates: list[float] = []
    for end in (np.min, np.max):
        for _ in range(_MOST_MARKS):
            if not rest.size or not _is_usual(float(end(rest))):
                break
            candidates.append(float(end(rest)))
            rest = rest[rest != candidates[-1]]
    if not candidates or not rest.size:
        return {}
    low, high = float(rest.min()), float(rest.max())
    if not ((rest > low) & (rest < high)).any():
        return {}
    return {
        mark: int((values == mark).sum())
        for mark in candidates
        if _is_far(mark, low, high, candidates)
    }


def likely_marks(
    counts: Iterable[Mapping[Hashable, Mapping[float, int]]],
) -> dict[Hashable, dict[float, int]]:
    """Adds up `possible_marks` of many series, and keeps those that are repeated.

    Args:
        counts: for each series and each of its columns what `possible_marks` returned.
    """
    total: dict[Hashable, dict[float, int]] = {}
    for series in counts:
        for column, marks in series.items():
            sums = total.setdefault(column, {})
            for mark, count in marks.items():
                sums[mark] = sums.get(mark, 0) + count
    repeated = {
        column: {mark: count for mark, count in sums.items() if count >= _REPEATED}
        for column, sums in total.items()
    }
    return {column: marks for column, marks in repeated.items() if marks}


def marks_of(series: Iterable[Series]) -> dict[Hashable, dict[float, int]]:
    """Returns the values of series that look like marks for missing ones; see `likely_marks`."""
    return likely_marks(
        {
            name: possible_marks(values)
            for name, values in zip(one.target_columns, one.values.T, strict=True)
        }
        for one in series
    )


def describe_marks(marks: Mapping[Hashable, Mapping[float, int]]) -> str:
    """Says which values look like marks for missing ones; "" if there are none.

    Example:
        >>> describe_marks({"average": {-999.99: 7}})
        'marks for missing values? -999.99 (7 times in average) is far from all other values; \
`missing` (--missing -999.99) reads it as missing'
    """
    times: dict[float, list[str]] = {}
    for column, counts in marks.items():
        for mark, count in counts.items():
            times.setdefault(mark, []).append(f"{count} times in {column}")
    if not times:
        return ""
    said = ", ".join(f"{_spelled(mark)} ({', '.join(where)})" for mark, where in times.items())
    options = " ".join(f"--missing {_spelled(mark)}" for mark in times)
    verb, them = ("is", "it") if len(times) == 1 else ("are", "them")
    return (
        f"marks for missing values? {said} {verb} far from all other values; `missing` ({options}) "
        f"reads {them} as missing"
    )


def _is_far(mark: float, low: float, high: float, candidates: list[float]) -> bool:
    reach = high - low
    gap = max(low - mark, mark - high)
    short = mark == _MINUS_ONE or (_nines(mark) and _nines(mark) < _SURE_DIGITS)
    if gap > (_VERY_FAR if short else _FAR) * reach:
        return True
    only_negative = low >= 0 and all(one == mark or one >= 0 for one in candidates)
    return mark < 0 and only_negative and _nines(mark) >= _SURE_DIGITS


def _is_usual(value: float) -> bool:
    if value in _FILL_VALUES or value in _FLOAT32_FILL_VALUES or value == _MINUS_ONE:
        return True
    return _nines(value) > 1


def _nines(value: float) -> int:
    """Counts the digits of a number of nines; 0 for any other."""
    digits = _spelled(abs(value)).replace(".", "")
    return len(digits) if digits and not digits.strip("9") else 0


def _spelled(value: float) -> str:
    """Writes a number as short as it can be, also one that was rounded to 32 bits."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return f"{value:.15g}" if float(single) != value else f"{float(str(single)):.15g}"
