"""The seasons that the series of a panel have in common."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.seasons import (
    NUM_PERIODS,
    SAME_PERIOD,
    Seasons,
    choose_seasons,
)
from taylorformer.data_wrangler.tables.series import Series

# Of a larger panel so many series, evenly spaced, say which seasons it has: a search in one takes
# about a tenth of a second.
_MOST_SERIES = 32
# A season of fewer columns than this share is not one of the panel.
_LEAST_SHARE = 0.5
# From fewer cycles a model learns the years that it saw, not the season.
_FEWEST_CYCLES = 3


def common_seasons(panel: Panel, num_train_rows: Sequence[int], seasons: Any = "auto") -> Seasons:
    """Returns the seasons that at least half of the columns of a panel show, at most three.

    Each of them shows it at least three times, unless a user names the seasons.

    Example:
        >>> import pandas as pd
        >>> from taylorformer.data_wrangler.tables.series import Series
        >>> days = pd.date_range("2024-01-01", periods=70)
        >>> table = pd.DataFrame({"day": days, "sales": [5.0, 3, 3, 4, 6, 9, 8] * 10})
        >>> panel = Panel(Series.from_frame(table, "day", "sales"))
        >>> common_seasons(panel, [70]).describe()
        '7 days'

    Args:
        panel: G series.
        num_train_rows: for each series, how many of the first rows are looked at.
        seasons: "auto", or those that a user names, see `choose_seasons`, which are read in the
            steps of the first series.

    Raises:
        TypeError, ValueError: see `choose_seasons`.
    """
    parts = [one.take(slice(end)) for one, end in zip(panel.series, num_train_rows, strict=True)]
    if not (isinstance(seasons, str) and seasons == "auto"):
        return choose_seasons(parts[0], seasons)
    count = min(len(parts), _MOST_SERIES)
    chosen = [parts[index] for index in np.linspace(0, len(parts) - 1, count).astype(np.int64)]
    every = [
        _often_seen(choose_seasons(one, "auto", column), one)
        for one in chosen
        if one.num_rows > 1
        for column in range(one.num_columns)
    ]
    counts: dict[float, int] = {}
    for period in (period for one in every for period in one.periods):
        alike = [one for one in counts if abs(period / one - 1) <= SAME_PERIOD]
        name = alike[0] if alike else period
        counts[name] = counts.get(name, 0) + 1
    # The most common first; of equally common ones that which was found first, the stronger one.
    ordered = sorted(counts, key=lambda period: -counts[period])
    common = [one for one in ordered if counts[one] >= _LEAST_SHARE * len(every)]
    first = every[0] if every else Seasons(time_unit=panel.time_unit)
    return dataclasses.replace(first, periods=tuple(common[:NUM_PERIODS]))


def _often_seen(seasons: Seasons, series: Series) -> Seasons:
    """Returns the seasons of which a series has enough cycles."""
    span = float(series.time[-1] - series.time[0]) + seasons.step
    periods = (period for period in seasons.periods if span >= _FEWEST_CYCLES * period)
    return dataclasses.replace(seasons, periods=tuple(periods))
