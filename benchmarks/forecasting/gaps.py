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

from benchmarks.forecasting import lines, naive, peer_cache
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

    def forecast(window: Window) -> np.ndarray:
        context = _filled(window)
        mean_and_deviation = naive.seasonal_naive_with_drift(context, window.horizon, window.season)
        return naive.normal_quantiles(*mean_and_deviation)

    return lines.Made({window.name: forecast(window) for window in windows}, False, {})


def peer_line(windows: Sequence[Window], name: str) -> lines.Made:
    """Fills the gaps by straight lines, and forecasts by the peer.

    Args:
        windows: of one season and horizon.
        name: under which the forecasts stand in the cache.

    Raises:
        FileNotFoundError: they do not, and the peers' environment is not there.
    """
    filled = [_filled(window) for window in windows]
    length = max(map(len, filled))
    contexts = np.stack([np.r_[np.full(length - len(one), np.nan), one] for one in filled])
    first = windows[0]
    made = peer_cache.forecasts(name, contexts, first.horizon, first.seasons, [PEER])[PEER]
    values = {one.name: made["quantiles"][:, index] for index, one in enumerate(windows)}
    return lines.Made(values, False, {"versions": made["about"]})


def _filled(window: Window) -> np.ndarray:
    """Returns the context without gaps, up to the forecast origin."""
    steps = np.append(window.stamps.to_numpy(), window.future[0] - 1)
    return naive.interpolated(window.context, steps)


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
    of_line = {key: whole.about[key] for key in ("versions",) if key in whole.about}
    return {"figures": figures, "stand_ins": stand_ins, "made": of_line}
