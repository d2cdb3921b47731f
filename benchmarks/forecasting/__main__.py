"""Forecasts of series that nothing was trained on, beside naive lines and classical models.

    python -m benchmarks.forecasting
    python -m benchmarks.forecasting --sets m1 "a*" --lines zero-shot naive --num-samples 200
    python -m benchmarks.forecasting --sets singles --lines peers --fit
    python -m benchmarks.forecasting --report-only
    python -m benchmarks.forecasting --remove 0.5
    python -m benchmarks.forecasting --processes
    python -m benchmarks.forecasting --cold

A set is a competition set, one forecast a series, or a single series with rolling windows, see
`sets.py`. By default all sets for development are run: nothing may be chosen by the scores of the
others, which need `--report-only`. Every set has one JSON record in the folder of `--output`; lines
that are not run again stay in it. `table.md` there shows all records.

The lines are `zero-shot`, the pretrained model that is told the stamps and the season;
`zero-shot-bare`, the same with the steps 0, 1, 2, ... and no season; `zero-shot-mirrored`, only
where it is named: the mixture of the model and its mirror image; naive lines (`naive`, see
`naive.py`); classical models (`peers`: see `benchmarks/peers/run.py` for their environment); and,
with `--fit`, the compact preset, fitted to each single series, which takes minutes each. Where it
is named, `fit-prior` trains the pretrained model on each single series, and on all series of a
frequency of a competition set.
In competition sets the naive and classical lines are the baselines that come with the data, which
are always there.

`--remove` measures what removed rows cost (`gaps.py`), `--processes` compares with distributions
that are computed (`processes.py`), `--cold` measures what a forecast costs from a cold start
(`cold.py`).
"""

import argparse
import fnmatch
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.forecasting import cold, gaps, lines, processes, records
from benchmarks.forecasting.scores import (
    competition_baselines,
    score_competition,
    score_windows,
)
from benchmarks.forecasting.sets import (
    COMPETITIONS,
    DEVELOPMENT,
    GROUPS,
    REPORT_ONLY,
    SINGLES,
    competition_windows,
    single_windows,
)
from benchmarks.pairs import say

_DEFAULT_LINES = (*lines.ZERO_SHOT, *lines.NAIVE, *lines.PEERS)


def competition_record(
    name: str, names: Sequence[str], settings: lines.Settings, command: str
) -> dict[str, Any]:
    """Forecasts and scores a competition set."""
    windows = competition_windows(name)
    results = {}
    for line, made in lines.competition_lines(windows, names, settings, say).items():
        figures, stand_ins = score_competition(name, windows, made)
        results[line] = _line(figures, stand_ins, made, command, settings)
        say(f"{name}: {line}: rel. scaled CRPS {records.number(figures['all']['rel_scrps'])}")
    source = {"source": "baselines.csv.gz, which comes with the set"}
    for baseline, figures in competition_baselines(name).items():
        results[baseline] = {"figures": figures, "made": source}
    about = {"about": COMPETITIONS[name], "series": len(windows)}
    return _record(name, "competition", False, about, results)


def single_record(
    name: str, names: Sequence[str], settings: lines.Settings, command: str
) -> dict[str, Any]:
    """Forecasts and scores the windows of a single series."""
    single = SINGLES[name]
    windows = single_windows(single)
    results = {}
    for line, made in lines.single_lines(single, windows, names, settings, say).items():
        figures, stand_ins = score_windows(windows, made)
        results[line] = _line(figures, stand_ins, made, command, settings)
        say(f"{name}: {line}: CRPS {records.number(figures['crps'])}")
    return _record(name, "single", single.report_only, single.description(), results)


def cold_record(settings: lines.Settings, command: str) -> dict[str, Any]:
    """Measures what a forecast costs from a cold start."""
    results = {}
    for what in (cold.ONE, cold.M1, cold.MANY):
        figures = cold.run(what, settings.num_samples, settings.seed, settings.model, say)
        if figures is not None:
            results[what] = {"figures": figures, "made": records.made_by(command, settings)}
            say(f"{what}: {figures['seconds']:.1f} s")
    about = {"about": cold.ABOUT, "columns": list(cold.COLUMNS)}
    return _record("cold", "cold", False, about, results)


def _line(
    figures: Any, stand_ins: int, made: lines.Made, command: str, settings: lines.Settings
) -> dict[str, Any]:
    about = dict(made.about)
    how = records.made_by(command, settings if made.are_samples else None)
    how["versions"] = about.pop("versions", how["versions"])
    return {"figures": figures, "stand_ins": stand_ins, **about, "made": how}


def _record(
    name: str, kind: str, report_only: bool, about: dict[str, Any], results: dict[str, Any]
) -> dict[str, Any]:
    return {
        "set": name,
        "kind": kind,
        "report_only": report_only,
        "about": about,
        "lines": results,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasting",
        description=__doc__.splitlines()[0],
        epilog=f"Sets: {', '.join(DEVELOPMENT)}; or {' and '.join(GROUPS)}. "
        f"Report only: {', '.join(REPORT_ONLY)}.",
    )
    parser.add_argument("--sets", nargs="+", default=["*"], help="names, with * as a wildcard")
    parser.add_argument(
        "--lines",
        nargs="+",
        default=[],
        help=f"among {', '.join((*_DEFAULT_LINES, *lines.GROUPS))}; default: all",
    )
    parser.add_argument("--fit", action="store_true", help="fit a model to each single series too")
    parser.add_argument(
        "--report-only",
        action="store_true",
        help="run the sets that are only reported; without --sets those alone",
    )
    parser.add_argument("--num-samples", type=int, default=100, help="of our lines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--model", metavar="FOLDER_OR_FILE", help="other weights than those that are shipped"
    )
    parser.add_argument(
        "--remove", type=float, metavar="SHARE", help="remove this share of the rows of M1 monthly"
    )
    parser.add_argument(
        "--processes", action="store_true", help="forecast draws of Gaussian and ARMA processes"
    )
    parser.add_argument("--cold", action="store_true", help="measure a cold start and many series")
    parser.add_argument("--output", type=Path, default=Path("results/forecasting"))
    return parser


def _chosen_sets(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    everything = [*DEVELOPMENT, *REPORT_ONLY]
    if options.sets == ["*"]:
        return list(REPORT_ONLY if options.report_only else DEVELOPMENT)
    allowed = everything if options.report_only else list(DEVELOPMENT)
    patterns = [one for name in options.sets for one in GROUPS.get(name, (name,))]
    for pattern in patterns:
        if not fnmatch.filter(everything, pattern):
            parser.error(f"--sets must be among {', '.join(everything)}. Received: {pattern}")
        if not fnmatch.filter(allowed, pattern):
            parser.error(
                f"--sets {pattern} needs --report-only: nothing may be chosen by its scores"
            )
    return [name for name in allowed if any(fnmatch.fnmatch(name, p) for p in patterns)]


def _chosen_lines(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    if not options.lines:
        names = list(_DEFAULT_LINES)
    else:
        names = [one for name in options.lines for one in lines.GROUPS.get(name, (name,))]
    every = (*_DEFAULT_LINES, lines.MIRRORED, lines.FIT_PRIOR, lines.FIT)
    unknown = [name for name in names if name not in every]
    if unknown:
        parser.error(
            f"--lines must be among {', '.join((*every, *lines.GROUPS))}. "
            f"Received: {', '.join(unknown)}"
        )
    return [*dict.fromkeys(names), *([lines.FIT] if options.fit and lines.FIT not in names else [])]


def _command(options: argparse.Namespace, defaults: argparse.Namespace) -> str:
    """Writes the command without folders of this machine."""
    words = ["python -m benchmarks.forecasting"]
    for name, value in vars(options).items():
        if name != "output" and value != getattr(defaults, name):
            words.append(f"--{name.replace('_', '-')}")
            if name == "model":
                words.append(Path(value).name)
            elif isinstance(value, list):
                words += [f'"{one}"' if "*" in one else one for one in value]
            elif value is not True:
                words.append(str(value))
    return " ".join(words)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the sets and lines that were asked for, and writes their records."""
    parser = _parser()
    options = parser.parse_args(arguments)
    sets, names = _chosen_sets(parser, options), _chosen_lines(parser, options)
    if options.num_samples < 1:
        parser.error(f"--num-samples must be at least 1. Received: {options.num_samples}")
    if options.remove is not None and not 0 < options.remove < 1:
        parser.error(f"--remove must be between 0 and 1. Received: {options.remove}")
    settings = lines.Settings(options.num_samples, options.seed, options.model)
    command = _command(options, parser.parse_args([]))
    options.output.mkdir(parents=True, exist_ok=True)
    if options.cold:
        records.write(options.output, cold_record(settings, command))
    elif options.remove is not None:
        made = records.made_by(command, settings)
        records.write(options.output, gaps.measure(options.remove, names, settings, made, say))
    elif options.processes:
        made = records.made_by(command, settings)
        records.write(options.output, processes.measure(names, settings, made))
    else:
        for name in sets:
            make = competition_record if name in COMPETITIONS else single_record
            try:
                record = make(name, names, settings, command)
            except FileNotFoundError as error:
                say(f"{name} is left out: {error}")
                continue
            if record["lines"]:
                records.write(options.output, record)
    sys.stdout.write(records.write_table(options.output))


if __name__ == "__main__":
    # TensorFlow's notes on starting, as in the Makefile; it is imported later.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
