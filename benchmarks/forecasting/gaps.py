"""Half of each context removed: what it costs our line, and what it costs the usual remedy.

Our line reads the rows that are left with their true steps, and is told the steps of the targets.
The line beside it fills the gaps by straight lines, repeats the last value up to the forecast
origin, and forecasts by the seasonal naive line with drift. Both are scored with all rows too.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.forecasting import lines, naive
from benchmarks.forecasting.scores import score_competition
from benchmarks.forecasting.sets import Window, competition_windows

SET, FREQUENCY = "m1", "monthly"
REMEDY = "interpolation, then seasonal naive with drift"
# A line and its scale need a change.
_LEAST_ROWS = 2


def remove_rows(windows: Sequence[Window], share: float, seed: int) -> list[Window]:
    """Removes a share of the rows of each context at random, and keeps at least two.

    What is removed from a context depends on the seed and its index alone.
    """
    removed = []
    for index, window in enumerate(windows):
        rows = len(window.context)
        keep = max(rows - round(share * rows), min(_LEAST_ROWS, rows))
        rng = np.random.default_rng([seed, index])
        kept = np.sort(rng.choice(rows, keep, replace=False))
        removed.append(
            dataclasses.replace(window, context=window.context[kept], stamps=window.stamps[kept])
        )
    return removed


def remedy_line(windows: Sequence[Window]) -> lines.Made:
    """Fills the gaps by straight lines, and forecasts by the seasonal naive line with drift."""

    def forecast(window: Window) -> np.ndarray:
        steps = np.append(window.stamps.to_numpy(), window.future[0] - 1)
        context = naive.interpolated(window.context, steps)
        mean_and_deviation = naive.seasonal_naive_with_drift(context, window.horizon, window.season)
        return naive.normal_quantiles(*mean_and_deviation)

    return lines.Made({window.name: forecast(window) for window in windows}, False, {})


def measure(
    share: float, names: Sequence[str], settings: lines.Settings, made: dict[str, Any]
) -> dict[str, Any]:
    """Returns the record of both lines, with all rows and with a share of them removed."""
    windows = [one for one in competition_windows(SET) if one.frequency == FREQUENCY]
    fewer = remove_rows(windows, share, settings.seed)
    results = {}
    if lines.ZERO_SHOT[0] in names:
        results[lines.ZERO_SHOT[0]] = _both(
            windows,
            lines.zero_shot_line(windows, settings, bare=False, one_by_one=False),
            lines.zero_shot_line(fewer, settings, bare=False, one_by_one=False, named_stamps=True),
        )
    results[REMEDY] = _both(windows, remedy_line(windows), remedy_line(fewer))
    about = f"{SET} {FREQUENCY}, {100 * share:g} % of each context removed at random"
    return {
        "set": f"{SET}-{FREQUENCY}-without-{100 * share:g}-percent",
        "kind": "gaps",
        "report_only": False,
        "about": {"about": about, "share": share, "seed": settings.seed},
        "lines": {name: {**line, "made": made} for name, line in results.items()},
    }


def _both(windows: Sequence[Window], whole: lines.Made, removed: lines.Made) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    stand_ins = 0
    for state, line in (("whole", whole), ("removed", removed)):
        # The scale is that of the whole context: it is not the line's.
        by_frequency, count = score_competition(SET, windows, line, subset=True)
        figures[state] = by_frequency[FREQUENCY]
        stand_ins += count
    figures["growth"] = {
        key: figures["removed"][key] / figures["whole"][key] - 1
        for key in ("rel_mase", "rel_scrps", "mase", "scrps")
    }
    return {"figures": figures, "stand_ins": stand_ins}
