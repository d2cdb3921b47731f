"""Measurements, each in a new process, alternating between two checkouts, as one table."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def measure_script(
    script: str, interpreter: str | Path, *arguments: str, packages: Path | None = None
) -> dict[str, Any]:
    """Runs a script in a process that is started anew.

    Args:
        script: Python source; its last line of output is a JSON object.
        interpreter: the Python that runs it.
        arguments: `sys.argv[1:]` of the script.
        packages: a folder to import from before all others. None: what is installed.

    Returns:
        That object.

    Raises:
        RuntimeError: the script failed; with the end of what it said.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("PYTHONPATH", None)
    if packages is not None:
        environment["PYTHONPATH"] = str(packages)
    # Not in a checkout, so that only the installed package is found.
    run = subprocess.run(
        [str(interpreter), "-c", script, *arguments],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(
            f"{packages or interpreter} could not be measured:\n{run.stderr[-2000:]}"
        )
    return json.loads(run.stdout.splitlines()[-1])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table that ends in a line break."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def compare_pairs(
    pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]],
) -> dict[str, dict[str, float]]:
    """Returns, for everything measured, both medians, and median and range of after / before.

    A ratio is of one pair, so that a machine that becomes slower slows both of its sides.
    """
    result = {}
    for name in pairs[0][0]:
        before, after = ([pair[side][name] for pair in pairs] for side in (0, 1))
        # What takes no memory, say, has no ratio.
        ratios = [b / a if a else float("nan") for a, b in zip(before, after, strict=True)]
        result[name] = {
            "before": statistics.median(before),
            "after": statistics.median(after),
            "ratio": statistics.median(ratios),
            "smallest": min(ratios),
            "largest": max(ratios),
        }
    return result


def pairs_table(compared: Mapping[str, Mapping[str, float]], before: str, after: str) -> str:
    """Returns what `compare_pairs` returned as a Markdown table."""
    header = ["what", before, after, "after / before", "smallest, largest"]
    rows = [
        [
            name,
            f"{row['before']:.3f}",
            f"{row['after']:.3f}",
            f"{row['ratio']:.3f}",
            f"{row['smallest']:.2f}, {row['largest']:.2f}",
        ]
        for name, row in compared.items()
    ]
    return markdown_table(header, rows)


def say(text: str) -> None:
    """Shows progress, apart from the output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
