"""Records of the benchmark: one JSON file a set, whose lines are merged, and a table of them all.

A record holds figures of a whole set or series, never those of one series of a competition.
"""

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.forecasting import lines
from benchmarks.pairs import markdown_table
from taylorformer.data_wrangler.provenance import machine, processor_name, versions
from taylorformer.data_wrangler.versioned_files import FileKind, read_json, write_json
from taylorformer.data_wrangler.whole_files import open_replaced

KIND = FileKind(format_number=1, writer="`python -m benchmarks.forecasting`")
TABLE = "table.md"
# The line that all are compared with, and the one that is compared with all.
REFERENCE, OURS = "seasonal-naive", lines.ZERO_SHOT[0]

_TITLES = {False: "Development", True: "Report only: nothing was chosen by these"}
_KINDS = ("competition", "single", "gaps", "processes", "cold")
_LINES = (*lines.ZERO_SHOT, lines.MIRRORED, lines.FIT_PRIOR, lines.FIT, *lines.NAIVE, *lines.PEERS)


def made_by(command: str, settings: lines.Settings | None = None) -> dict[str, Any]:
    """Returns how a line was made: command, seed, date, versions and machine.

    Args:
        command: without folders of this machine.
        settings: of a line with samples. None: the line has none.
    """
    of_samples = {}
    if settings is not None:
        weights = Path(settings.model).name if settings.model else "shipped"
        of_samples = {
            "num_samples": settings.num_samples,
            "seed": settings.seed,
            "weights": weights,
        }
    return {
        "command": command,
        **of_samples,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "versions": versions(),
        "processor": processor_name(),
        "machine": machine(),
    }


def merge(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a new record with those lines of an old one that were not run again.

    Raises:
        ValueError: the two are of other series or windows, so that their lines do not compare.
    """
    merged = dict(new["lines"])
    if old is not None:
        for key in ("set", "kind", "about"):
            if old[key] != new[key]:
                raise ValueError(
                    f"a record must have the `{key}` of the run to be merged with it: remove it, "
                    f"or write to another folder. Received: {old[key]!r} and {new[key]!r}"
                )
        merged = {**old["lines"], **merged}
    names = [name for name in _LINES if name in merged]
    names += [name for name in merged if name not in names]
    return {**new, "lines": {name: merged[name] for name in names}}


def write(folder: Path, record: Mapping[str, Any]) -> Path:
    """Merges a record into the file of its set; returns the path."""
    path = folder / f"{record['set']}.json"
    merged = merge(read(path) if path.exists() else None, _without_nan(record))
    content = {key: value for key, value in merged.items() if key not in ("format", "versions")}
    write_json(KIND, path, content, indent=1, allow_nan=False)
    return path


def read(path: Path) -> dict[str, Any]:
    """Reads a record.

    Raises:
        ValueError: a file that is none.
    """
    return read_json(KIND, path, _checked)


def write_table(folder: Path) -> str:
    """Writes the table of all records in a folder; returns it."""
    records = [read(path) for path in sorted(folder.glob("*.json"))]
    text = table(records)
    with open_replaced(folder / TABLE) as file:
        file.write(text.encode())
    return text


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the Markdown of some records."""
    parts = []
    for report_only in (False, True):
        chosen = [one for one in records if one["report_only"] == report_only]
        if chosen:
            parts.append(f"# {_TITLES[report_only]}\n")
        parts += [_competition(one) for one in chosen if one["kind"] == "competition"]
        singles = [one for one in chosen if one["kind"] == "single"]
        if singles:
            parts.append(_singles(singles))
        parts += [_gaps(one) for one in chosen if one["kind"] == "gaps"]
        parts += [_processes(one) for one in chosen if one["kind"] == "processes"]
        parts += [_cold(one) for one in chosen if one["kind"] == "cold"]
    return "\n".join(parts)


def number(value: float | None) -> str:
    """Writes a number with three digits that count, without an exponent; nothing for None."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    return f"{value:,.{max(2 - math.floor(math.log10(abs(value))), 0)}f}"


def _competition(record: Mapping[str, Any]) -> str:
    header = ["series", "line", "rel. MASE", "rel. scaled CRPS", "MASE", "80 % holds", "by third"]
    header.append("seconds a series")
    frequencies = list(dict.fromkeys(f for one in record["lines"].values() for f in one["figures"]))
    if len(frequencies) == 2:
        # One frequency and `all` say the same.
        frequencies = frequencies[:1]
    rows = []
    for frequency in frequencies:
        for name, line in record["lines"].items():
            if frequency in line["figures"]:
                figures = line["figures"][frequency]
                cells = [f"{frequency} {figures['n']:,}", name]
                cells += [_fixed(figures[key]) for key in ("rel_mase", "rel_scrps", "mase")]
                seconds = line.get("seconds_per_forecast") if frequency == frequencies[-1] else None
                rows.append([*cells, *_coverage(figures), _seconds(seconds)])
    return (
        f"## {record['set']}: {record['about']['about']}\n\n"
        "Geometric means of the ratios to SeasonalNaive, by `score.py` beside the data.\n\n"
        + markdown_table(header, rows)
        + _stand_ins([record])
    )


def _singles(records: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in _LINES if any(name in one["lines"] for one in records)]
    parts = ["## Single series\n"]
    for score, title in (("crps", "Free-running CRPS, units of the series"), ("mase", "MASE")):
        rows = []
        for record in records:
            about = record["about"]
            sizes = f"{about['context']}, {about['horizon']}, {about['num_windows']}"
            cells = [number(_score(record, name, score)) for name in names]
            rows.append([record["set"], str(about["season"] or "none"), sizes, *cells])
        header = ["series", "season", "context, horizon, windows", *names]
        parts.append(f"{title}:\n\n{markdown_table(header, rows)}")
    rows = [_over_series(name, records) for name in names]
    header = ["line", "series", "rel. CRPS", "rel. MAE", f"{OURS} over it, CRPS"]
    header += ["80 % holds", "by third", "seconds"]
    parts.append(
        "Over the series that a line has: geometric means of the ratios to the seasonal naive "
        f"line, which is the last value where there is no season, and of the ratios of {OURS} to "
        "the line; shares of the truths in the 80 % interval, each series counting the same; the "
        "median of the seconds a forecast:\n\n" + markdown_table(header, rows) + _stand_ins(records)
    )
    return "\n".join(parts)


def _over_series(name: str, records: Sequence[Mapping[str, Any]]) -> list[str]:
    having = [one for one in records if name in one["lines"]]
    figures = [one["lines"][name]["figures"] for one in having]
    means = {
        key: statistics.fmean(one[key] for one in figures) for key in figures[0] if "cov" in key
    }
    seconds = statistics.median(one["lines"][name]["seconds_per_forecast"] for one in having)
    ratios = [(name, REFERENCE, "crps"), (name, REFERENCE, "mae"), (OURS, name, "crps")]
    cells = [_fixed(_mean_ratio(having, *ratio)) for ratio in ratios]
    return [name, str(len(having)), *cells, *_coverage(means), _seconds(seconds)]


def _mean_ratio(
    records: Sequence[Mapping[str, Any]], name: str, other: str, score: str
) -> float | None:
    """Returns the geometric mean of the ratios of two lines over the series that have both."""
    pairs = [[_score(record, line, score) for line in (name, other)] for record in records]
    ratios = [one / two for one, two in pairs if one and two]
    return statistics.geometric_mean(ratios) if ratios else None


def _gaps(record: Mapping[str, Any]) -> str:
    header = ["line", "", "rel. MASE", "rel. scaled CRPS", "MASE", "80 % holds", "by third"]
    rows = []
    for name, line in record["lines"].items():
        for state in ("whole", "removed"):
            figures = line["figures"][state]
            cells = [_fixed(figures[key]) for key in ("rel_mase", "rel_scrps", "mase")]
            rows.append([name, state, *cells, *_coverage(figures)])
        growth = line["figures"]["growth"]
        cells = [f"{100 * growth[key]:+.1f} %" for key in ("rel_mase", "rel_scrps", "mase")]
        rows.append([name, "growth", *cells, "", ""])
    return f"## {record['about']['about']}\n\n{markdown_table(header, rows)}{_stand_ins([record])}"


def _processes(record: Mapping[str, Any]) -> str:
    header = ["process", "line", "CRPS", "over the true one", "80 % holds", "spread at the end"]
    header.append("quartiles of it")
    kinds = dict.fromkeys(kind for line in record["lines"].values() for kind in line["figures"])
    rows = []
    for kind in kinds:
        for name, line in record["lines"].items():
            figures = line["figures"].get(kind)
            if figures is not None:
                ratio = f"{figures['over_true']:.3f} +- {_fixed(figures['over_true_error'])}"
                cells = [f"{kind} {figures['n']:,}", name, number(figures["crps"]), ratio]
                cells += [f"{figures['cov80']:.2f}", f"{figures['spread']:.3f}"]
                rows.append([*cells, f"{figures['spread_25']:.2f} {figures['spread_75']:.2f}"])
    return (
        f"## {record['about']['about']}\n\n"
        "Ratios to the true predictive distribution, with one standard error; the spread is the "
        "standard deviation at the last step, over the true one.\n\n" + markdown_table(header, rows)
    )


def _cold(record: Mapping[str, Any]) -> str:
    rows = [
        [name, *(number(line["figures"].get(key)) for key in record["about"]["columns"])]
        for name, line in record["lines"].items()
    ]
    return f"## {record['about']['about']}\n\n" + markdown_table(
        ["what", *record["about"]["columns"]], rows
    )


def _stand_ins(records: Sequence[Mapping[str, Any]]) -> str:
    """Says where the last value stands in for a line that has no forecast."""
    counts = [
        f"{name} of {one['set']}: {line['stand_ins']}"
        for one in records
        for name, line in one["lines"].items()
        if line.get("stand_ins")
    ]
    return f"\nThe last value stands in for {'; '.join(counts)}.\n" if counts else ""


def _score(record: Mapping[str, Any], name: str, score: str) -> float | None:
    return record["lines"][name]["figures"][score] if name in record["lines"] else None


def _coverage(figures: Mapping[str, float]) -> list[str]:
    keys = ("cov80", "cov80_1", "cov80_2", "cov80_3")
    overall, *thirds = (f"{figures[key]:.2f}" for key in keys)
    return [overall, " ".join(thirds)]


def _seconds(value: float | None) -> str:
    """Less than a millisecond is not told apart."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def _fixed(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    if record["kind"] not in _KINDS or not isinstance(record["lines"], Mapping):
        raise TypeError("another kind, or lines of another type")
    for line in record["lines"].values():
        if not isinstance(line["figures"], Mapping):
            raise TypeError("figures of another type")
    return record


def _without_nan(content: Any) -> Any:
    """JSON has no NaN: what does not exist is null."""
    if isinstance(content, Mapping):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
