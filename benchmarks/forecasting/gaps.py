"""Half of each context removed: what it costs our line, and what it costs the usual remedy.

Our line reads the rows that are left with their true steps, and is told the steps of the targets.
The lines beside it fill the gaps by straight lines, repeat the last value up to the forecast
origin, and forecast by the seasonal naive line with drift or, where the peers' environment is
there, by AutoETS. All are scored with all rows too.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.forecasting import lines, naive
from benchmarks.forecasting.scores import score_competition
from benchmarks.forecasting.sets import Window, competition_windows

SET, FREQUENCY = "m1", "monthly"
REMEDY = "interpolation, then seasonal naive with drift"
PEER = "AutoETS"
PEER_REMEDY = f"interpolation, then {PEER}"
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

    return lines.naive_line(naive.seasonal_naive_with_drift, [_filled(one) for one in windows])


def peer_line(windows: Sequence[Window], name: str) -> lines.Made:
    """Fills the gaps by straight lines, and forecasts by the peer; see `lines.peer_lines`."""
    return lines.peer_lines(name, [_filled(one) for one in windows], [PEER])[PEER]


def _filled(window: Window) -> Window:
    """Returns the window with a context without gaps, up to the forecast origin."""
    first, last = window.stamps[0], window.future[0] - 1
    context = naive.interpolated(window.context, np.append(window.stamps.to_numpy(), last))
    return dataclasses.replace(window, context=context, stamps=pd.RangeIndex(first, last + 1))


def measure(
    share: float,
    names: Sequence[str],
    settings: lines.Settings,
    made: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Returns the record of all lines, with all rows and with a share of them removed.

    Args:
        share: of the rows that are removed.
        names: of lines: the zero-shot ones and the peer's are made where they are named.
        settings: see `lines.Settings`.
        made: how the record was made.
        say: told that the peer cannot be run.
    """
    windows = [one for one in competition_windows(SET) if one.frequency == FREQUENCY]
    fewer = remove_rows(windows, share, settings.seed)
    results = {}
    for name in (lines.ZERO_SHOT[0], lines.MIRRORED):
        if name in names:
            how = {"bare": False, "one_by_one": False, "mirrored": name == lines.MIRRORED}
            results[name] = _both(
                windows,
                lines.zero_shot_line(windows, settings, **how),
                lines.zero_shot_line(fewer, settings, **how, named_stamps=True),
            )
    results[REMEDY] = _both(windows, remedy_line(windows), remedy_line(fewer))
    if PEER in names:
        record = f"{SET}-{FREQUENCY}"
        try:
            whole = peer_line(windows, record)
            removed = peer_line(fewer, f"{record}-without-{100 * share:g}-percent-{settings.seed}")
            results[PEER_REMEDY] = _both(windows, whole, removed)
        except FileNotFoundError as error:
            say(f"no {PEER}: {error}")
    about = f"{SET} {FREQUENCY}, {100 * share:g} % of each context removed at random"
    return {
        "set": f"{SET}-{FREQUENCY}-without-{100 * share:g}-percent",
        "kind": "gaps",
        "report_only": False,
        "about": {"about": about, "share": share, "seed": settings.seed},
        "lines": {name: {**line, "made": made | line["made"]} for name, line in results.items()},
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
    of_peers = {"versions": whole.about["versions"]} if "versions" in whole.about else {}
    return {"figures": figures, "stand_ins": stand_ins, "made": of_peers}
