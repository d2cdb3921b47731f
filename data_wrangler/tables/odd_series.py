"""Series of a panel that are not like the others: which are left out, which are used, and why."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from taylorformer.data_wrangler.checks import listed
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.stamps import median_step

# Names of one kind in a warning; the mappings hold all of them.
_MOST_NAMES = 20
# From this share on, series are most of a panel, and the rest are the odd ones.
_MOST = 0.5


@dataclasses.dataclass
class OddSeries:
    """The odd series of a panel, by their names.

    Example:
        >>> odd = OddSeries(left_out={"a": "one row", "b": "one row"}, notes={"c": "constant"})
        >>> odd.describe("the forecast")
        'some series are odd. Left out of the forecast: a, b (one row). Used: c (constant)'

    Attributes:
        left_out: why a series is not used.
        notes: what is odd about a series that is used. A series is in one of the two at most.
    """

    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: dict[str, str] = dataclasses.field(default_factory=dict)

    def leave_out(self, names: Iterable[str], reason: str) -> None:
        """Adds series that are left out, unless they are so for another reason already."""
        for name in names:
            self.left_out.setdefault(name, reason)
            self.notes.pop(name, None)

    def note(self, names: Iterable[str], what: str) -> None:
        """Adds series that are used though they are odd."""
        for name in names:
            if name not in self.left_out:
                self.notes[name] = f"{self.notes[name]}; {what}" if name in self.notes else what

    def kept(self, panel: Panel) -> list[Series]:
        """Returns the series of a panel that are not left out."""
        return [one for one in panel.series if one.name not in self.left_out]

    def describe(self, work: str) -> str:
        """Names all of them in one sentence for each of the two, those of one reason together.

        Args:
            work: what they are left out of, such as "the forecast".

        Returns:
            "" where no series is odd.
        """
        parts = []
        for heading, reasons in ((f"Left out of {work}", self.left_out), ("Used", self.notes)):
            if reasons:
                parts.append(f"{heading}: {by_reason(reasons)}")
        return ". ".join(["some series are odd", *parts]) if parts else ""


def by_reason(reasons: Mapping[str, str]) -> str:
    """Writes names with their reasons, those of one reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    # A table without a column of ids has one series, whose name is empty.
    return ", ".join(
        f"{listed([name or 'the series' for name in group], _MOST_NAMES)} ({reason})"
        for reason, group in names.items()
    )


def names_of_few_values(
    series: Sequence[Series], least: int = 1, ends: Sequence[int] | None = None
) -> list[str]:
    """Names the series in which a target column has fewer values than `least`.

    Args:
        series: G series.
        least: the number of values that is enough.
        ends: how many of the first rows of each count. None: all.
    """
    ends = [one.num_rows for one in series] if ends is None else ends
    return [
        one.name
        for one, end in zip(series, ends, strict=True)
        if ((~np.isnan(one.values[:end])).sum(axis=0) < least).any()
    ]


def names_of_constants(series: Sequence[Series]) -> list[str]:
    """Names the series with several values, all of which are the same in some target column."""
    return [one.name for one in series if _is_constant(one)]


def _is_constant(series: Series) -> bool:
    counts = (~np.isnan(series.values)).sum(axis=0)
    if (counts < 2).any():
        return False
    return bool((np.nanmax(series.values, axis=0) == np.nanmin(series.values, axis=0)).any())


def names_of_stopped(series: Sequence[Series], spec: WindowSpec) -> list[str]:
    """Names the series that end long before most others.

    Most series must end together: at least half of them within one horizon of the latest stamp. A
    series has stopped if from its last stamp to that one it is further than a whole window. Both
    are counted in steps, the median of the median steps of all series.
    """
    last = np.array([one.time[-1] for one in series])
    steps = [median_step(np.diff(one.time)) for one in series if one.num_rows > 1]
    if len(series) < 2 or not steps:
        return []
    step = float(np.median(np.array(steps, np.float64)))
    behind = (last.max() - last).astype(np.float64) / step
    if (behind <= spec.horizon).mean() < _MOST:
        return []
    return [one.name for one, steps in zip(series, behind, strict=True) if steps > spec.length]


def names_of_absent(names: Sequence[str], trained: Sequence[str]) -> list[str]:
    """Names the series of training that a table lacks, where it has most of them.

    A table of few of them is one that was chosen, and lacks nothing.
    """
    there = set(names)
    absent = [name for name in trained if name not in there]
    return absent if len(absent) < _MOST * len(trained) else []


def note_what_is_odd(odd: OddSeries, series: Sequence[Series], spec: WindowSpec) -> None:
    """Notes constant and stopped series, where there are several to compare."""
    if len(series) > 1:
        odd.note(names_of_constants(series), "constant: a target has one value in all rows")
        odd.note(names_of_stopped(series, spec), "stopped: it ends long before the others")
