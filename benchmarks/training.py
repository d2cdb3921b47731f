"""What one training step costs: time, memory, what compiling takes, plain and with XLA.

    python -m benchmarks.training
    python -m benchmarks.training --rows "ett*" --against REVISION --pairs 5 --output FILE

A row is a model with the sizes of its batches; `/xla` compiles its step with XLA, `/shared` gives
all sequences the same points (x of the shape [1, N, D_x]). Every row is measured in a new
process. Shown are the median time of a step that is warm, the time of the first step beyond that
(tracing and compiling), the peak of the memory above that after the imports, and the matrix
products of a step, by the count in this script, in 1e9 operations a second. A checkout that does
not know shared points gets them tiled, [B, N, D_x].

With `--against REVISION` that revision of the repository is measured too, in alternation, from a
copy in a temporary folder, and the medians over pairs of the ratios after / before are shown.
"""

import argparse
import dataclasses
import fnmatch
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.pairs import compare_pairs, markdown_table, measure_script, pairs_table, say
from taylorformer.data_wrangler.provenance import machine, processor_name, versions

REPOSITORY = Path(__file__).parents[1]

# Only public faces are imported, so that any layout of the package can be measured.
_MEASURE = """
import json, resource, statistics, sys, time

import keras
import numpy as np
import tensorflow as tf

import taylorformer
from taylorformer.training_and_evaluation import TrainingStep

row, repeats = json.loads(sys.argv[1]), int(sys.argv[2])
model = getattr(taylorformer, row["model"])(seed=0, **row["settings"])
optimizer = keras.optimizers.Adam(3e-4, global_clipnorm=10.0)
step = TrainingStep(model, optimizer, jit_compile=row["xla"])

batch, context, points = row["batch"], row["context"], row["context"] + row["target"]
rng = np.random.default_rng(0)
if row["grid"]:
    x = np.linspace(-1, 1, points)[np.newaxis, :, np.newaxis]
else:
    x = rng.uniform(-1, 1, (batch, points, row["x_dims"]))
y = np.sin(rng.uniform(2, 6, (batch, 1, 1)) * x[..., :1] + rng.uniform(0, 6, (batch, 1, 1)))
if row["grid"] and not row["shared"]:
    x = np.tile(x, [batch, 1, 1])
x, y = x.astype("float32"), y.astype("float32")

def arrays(x):
    parts = {"x_context": x[:, :context], "y_context": y[:, :context], "x_target": x[:, context:]}
    return {name: np.ascontiguousarray(part) for name, part in parts.items()}

def peak():
    # In bytes on macOS, in KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20

inputs, y_target = arrays(x), np.ascontiguousarray(y[:, context:])
imported = peak()
started = time.perf_counter()
tiled = False
try:
    step(inputs, y_target)
except ValueError:
    if not row["shared"]:
        raise
    tiled, inputs = True, arrays(np.tile(x, [batch, 1, 1]))
    started = time.perf_counter()
    step(inputs, y_target)
first = time.perf_counter() - started
seconds = []
for number in range(repeats + 1):
    started = time.perf_counter()
    step(inputs, y_target)["nll"].numpy()
    seconds.append(time.perf_counter() - started)
median = statistics.median(seconds[1:])
print(json.dumps(
    {"step, s": median, "first step, s": first, "peak, MiB": peak() - imported, "tiled": tiled}
))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        name: what it is called.
        model: the name of a model in `taylorformer`.
        batch: B.
        context: N_C.
        target: N_T.
        settings: arguments of the model, beside its defaults.
        x_dims: D_x.
        grid: x are the same even steps in all sequences, as in windows of a table.
        shared: x is given once for all sequences.
        xla: XLA compiles the step.
    """

    name: str
    model: str
    batch: int
    context: int
    target: int
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    x_dims: int = 1
    grid: bool = True
    shared: bool = False
    xla: bool = False


_TASK = {"dropout": 0.0, "target_permutations": 1}
_CASES = (
    Row("ett-96+96", "Taylorformer", 32, 96, 96),
    Row("ett-96+720", "Taylorformer", 16, 96, 720),
    Row("gp-50+50", "Taylorformer", 32, 50, 50, _TASK, grid=False),
    Row(
        "emnist-100+100",
        "Taylorformer",
        64,
        100,
        100,
        {**_TASK, "scale": "bounded", "min_scale": 0.01},
        x_dims=2,
        grid=False,
    ),
    Row("tnp-ett-96+96", "TransformerNeuralProcess", 32, 96, 96),
)


def _kinds(case: Row) -> Iterator[Row]:
    for shared in (False, True) if case.grid else (False,):
        for xla in (False, True):
            name = f"{case.name}{'/shared' * shared}{'/xla' * xla}"
            yield dataclasses.replace(case, name=name, shared=shared, xla=xla)


ROWS = {row.name: row for case in _CASES for row in _kinds(case)}


def _dense(rows: int, *widths: int) -> int:
    """Multiplications and additions of Dense layers, one after the other, on so many rows."""
    return sum(2 * rows * a * b for a, b in itertools.pairwise(widths))


def _attention(pairs: int, projection: int) -> int:
    """Scores and weighted values of so many pairs of query and key, all heads together."""
    return 2 * 2 * pairs * projection


def _taylorformer(context: int, target: int, x_dims: int) -> int:
    """Matrix products of one sequence: the default sizes, D_y = 1, features of order 1."""
    layers, projection, width = 4, 6 * 11, 32
    points = context + target
    x_features = 32 * x_dims + 2 * x_dims
    total = 0
    for features, last_value in ((x_features, 1), (x_features + 6 + 2 * x_dims, width)):
        for layer in range(layers):
            is_last = layer == layers - 1
            inputs = features if layer == 0 else width
            queries = target if is_last else points
            total += _dense(queries, inputs, projection) + _dense(points, inputs, projection)
            total += _dense(points, last_value if is_last else inputs, projection)
            # Context rows read the context alone.
            pairs = target * points + (0 if is_last else context**2)
            total += _attention(pairs, projection)
            total += _dense(queries, projection, width, width, width)
            total += _dense(queries, inputs, width) if layer == 0 else 0
    return total + _dense(target, 2 * width, width, 2)


def _transformer(context: int, target: int, x_dims: int) -> int:
    """Matrix products of one sequence of the TNP-A: the default sizes, D_y = 1."""
    layers, width, feed_forward = 6, 64, 128
    points = context + target
    total = _dense(points + target, x_dims + 1, width, width, width, width)
    for layer in range(layers):
        is_last = layer == layers - 1
        queries = target if is_last else points + target
        total += _dense(queries, width, width) + 2 * _dense(points, width, width)
        pairs = target * points + (0 if is_last else target * points + context**2)
        total += _attention(pairs, width)
        total += _dense(queries, width, width, feed_forward, width)
    return total + _dense(target, width, feed_forward, 2)


def operations(row: Row) -> int:
    """Returns the operations in the matrix products of one step.

    A gradient takes two products for each one of the pass. Hidden pairs count, and shared points
    count for each sequence, whatever a model leaves out: it is what the step is worth.
    """
    count = {"Taylorformer": _taylorformer, "TransformerNeuralProcess": _transformer}[row.model]
    return 3 * row.batch * count(row.context, row.target, row.x_dims)


def measure(row: Row, repeats: int, packages: Path | None = None) -> dict[str, Any]:
    """Measures one row in a process that is started anew.

    Returns:
        `step, ms`, `compile, s`, `peak, MiB`, `GFLOP/s`, and `tiled`: shared points were tiled.
    """
    arguments = (json.dumps(dataclasses.asdict(row)), str(repeats))
    measured = measure_script(_MEASURE, sys.executable, *arguments, packages=packages)
    seconds = measured.pop("step, s")
    return {
        "step, ms": 1e3 * seconds,
        "compile, s": measured.pop("first step, s") - seconds,
        "peak, MiB": measured["peak, MiB"],
        "GFLOP/s": operations(row) / seconds / 1e9,
        "tiled": measured["tiled"],
    }


@contextmanager
def installed(revision: str) -> Iterator[Path]:
    """Installs a revision of the repository, without what it depends on, in a temporary folder.

    Yields:
        The folder, to be put first on the path of an interpreter.
    """
    with tempfile.TemporaryDirectory() as folder:
        worktree, site = Path(folder, "worktree"), Path(folder, "site")
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(worktree), revision],
            check=True,
        )
        try:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
            subprocess.run(
                [*pip, "--no-build-isolation", "--target", str(site), str(worktree)], check=True
            )
            yield site
        finally:
            subprocess.run([*git, "remove", "--force", str(worktree)], check=True)


def show(rows: list[Row], repeats: int) -> dict[str, Any]:
    """Measures the rows of this checkout and shows them."""
    results = {}
    for row in rows:
        results[row.name] = measure(row, repeats)
        say(f"{row.name}: {results[row.name]['step, ms']:.0f} ms")
    columns = ["step, ms", "compile, s", "peak, MiB", "GFLOP/s"]
    cells = [
        [name + " (tiled)" * result["tiled"], *(f"{result[column]:.1f}" for column in columns)]
        for name, result in results.items()
    ]
    sys.stdout.write(markdown_table(["row", *columns], cells))
    return results


def show_against(revision: str, rows: list[Row], repeats: int, pairs: int) -> dict[str, Any]:
    """Measures the rows of a revision and of this checkout in alternation, and shows them."""
    measured: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    with installed(revision) as site:
        for number in range(pairs):
            for row in rows:
                pair = (measure(row, repeats, site), measure(row, repeats))
                measured.setdefault(row.name, []).append(pair)
                say(f"pair {number + 1} of {pairs}, {row.name}")
    results = {}
    for name, row_pairs in measured.items():
        tiled = row_pairs[0][1]["tiled"]
        compared = compare_pairs(row_pairs)
        for what in ("step, ms", "compile, s", "peak, MiB"):
            results[f"{name}{' (tiled)' * tiled}: {what}"] = compared[what]
    sys.stdout.write(pairs_table(results, f"before ({revision})", "after"))
    return results


def main() -> None:
    """Measures the rows that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=f"Rows: {', '.join(ROWS)}"
    )
    parser.add_argument("--rows", nargs="+", default=["*"], help="names, with * as a wildcard")
    parser.add_argument("--repeats", type=int, default=7, help="steps of one measurement")
    parser.add_argument("--against", metavar="REVISION", help="a revision to compare with")
    parser.add_argument("--pairs", type=int, default=5, help="measurements of each revision")
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    patterns = options.rows
    unknown = [p for p in patterns if not fnmatch.filter(ROWS, p)]
    if unknown:
        parser.error(f"--rows must be among {', '.join(ROWS)}. Received: {', '.join(unknown)}")
    rows = [row for name, row in ROWS.items() if any(fnmatch.fnmatch(name, p) for p in patterns)]
    sys.stdout.write(", ".join(f"{name} {version}" for name, version in versions().items()))
    sys.stdout.write(f"; {processor_name()}\n\n")
    if options.against:
        results = show_against(options.against, rows, options.repeats, options.pairs)
    else:
        results = show(rows, options.repeats)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        content = {
            **({"against": options.against, "pairs": options.pairs} if options.against else {}),
            "repeats": options.repeats,
            "versions": versions(),
            "machine": machine(),
            "results": results,
        }
        options.output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
