"""What joint samples cost, against one teacher-forced pass of the same batch.

    python -m benchmarks.sampling

The model is that of ETT-96, 92K parameters, as the paper has it. Both sides are warm, in float32
and inference mode, with two threads, their output fetched; medians of at least three runs. The
teacher-forced pass is a plain graph.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from taylorformer import Taylorformer
from taylorformer.data_wrangler.provenance import processor_name, versions
from taylorformer.model.sampling.plain import PlainSampler
from taylorformer.training_and_evaluation.forecasting.presets import PRESETS

# Series, samples of each, context and targets.
CASES = [
    (1, 100, 96, 24),
    (1, 100, 96, 96),
    (8, 1, 96, 96),
    (1, 100, 96, 192),
    (1, 50, 96, 720),
]
THREADS = 2


def series(num_series: int, num_context: int, num_target: int) -> tuple[dict[str, Any], Any]:
    """Makes smooth series on an even grid."""
    x = np.linspace(-1, 1, num_context + num_target, dtype="float32")
    x = np.tile(x[np.newaxis, :, np.newaxis], [num_series, 1, 1])
    y = np.sin(5 * x + np.arange(num_series, dtype="float32")[:, np.newaxis, np.newaxis])
    inputs = {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
    }
    return inputs, y[:, num_context:]


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """Returns the median time of a run that is warm."""
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def once(run: Callable[[], Any]) -> float:
    """Returns the time of one run, whatever it compiles."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def measure(
    model: Taylorformer, sizes: tuple[int, int, int, int], options: argparse.Namespace
) -> list[str]:
    """Measures one case; returns the cells of its row."""
    num_series, num_samples, num_context, num_target = sizes
    inputs, _ = series(num_series, num_context, num_target)
    many = series(num_series * num_samples, num_context, num_target)
    forced = seconds(lambda: model.teacher_forced(*many)["mean"].numpy(), options.repeats)

    def draw(jit: bool = False) -> Any:
        return model.sample(inputs, num_samples, seed=0, jit_compile=jit).numpy()

    first = once(draw)
    ratio = seconds(draw, options.repeats) / forced
    cells = [f"{forced:.3f} s", f"{ratio:.2f}", f"{first:.1f} s"]
    if options.no_xla:
        cells += ["", ""]
    else:
        compiled = once(lambda: draw(jit=True))
        ratio = seconds(lambda: draw(jit=True), options.repeats) / forced
        cells += [f"{ratio:.2f}", f"{compiled:.1f} s"]
    if options.no_plain_loop or num_target > 96:
        cells.append("")
    else:
        plain = PlainSampler(model)
        keys, seed = tf.zeros([num_series], tf.int64), tf.constant(0, tf.int64)
        arguments = (model.prepare(inputs), num_samples, seed, keys, "given", None)
        cells.append(f"{seconds(lambda: plain(*arguments).numpy(), 3) / forced:.1f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*cells, f"{peak:.0f}"]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-plain-loop", action="store_true", help="leave the slow loop out")
    parser.add_argument("--no-xla", action="store_true", help="leave XLA out")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    model = Taylorformer(**PRESETS["ett"].model_arguments, seed=0)
    model(series(1, 4, 4)[0])
    # An untrained model lets samples grow without bound; a small head keeps them tame.
    head = model.local_taylor.network
    for dense in (head.mean_dense, head.scale_dense):
        dense.kernel.assign(0.1 * dense.kernel)
    head.scale_dense.bias.assign(0 * head.scale_dense.bias - 3.0)
    print(", ".join(f"{name} {version}" for name, version in versions().items()))
    print(f"{processor_name()}, {THREADS} threads")
    print("ratios to one teacher-forced pass of [B S, N]; first = first call for a new shape\n")
    columns = (
        "B",
        "S",
        "N_C",
        "N_T",
        "pass",
        "graph",
        "first",
        "XLA",
        "compile",
        "plain loop",
        "MB",
    )
    print(" ".join(f"{name:>10}" for name in columns))
    for sizes in CASES:
        cells = [*map(str, sizes), *measure(model, sizes, options)]
        print(" ".join(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
