"""What one batch of a Gaussian-process task costs.

    python -m benchmarks.gp_tasks

"waits" is the time, the median of the repeats, that a loop that does nothing else waits for the
next batch of the data set, which draws ahead; a longer training step waits for nothing. "CPU" is
the processor time of a batch, over all threads: what drawing takes from a training step that keeps
every core busy.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from taylorformer import gaussian_process_tasks
from taylorformer.data_wrangler.provenance import processor_name, versions
from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.tasks.kernels import KERNELS

THREADS = 2
HELD_OUT_SEQUENCES = 1000
HELD_OUT_REPEATS = 3


def milliseconds(run: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Returns the median time of a run after the first, and its processor time."""
    run()
    seconds = []
    processor = time.process_time()
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    processor = time.process_time() - processor
    return 1e3 * statistics.median(seconds), 1e3 * processor / repeats


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    print(", ".join(f"{name} {version}" for name, version in versions().items()))
    print(f"{processor_name()}, {THREADS} threads")
    print(f"{options.batch_size} x {options.points} points\n")
    num_context = (1, options.points - 1)
    columns = ("kernel", "waits, ms", "CPU, ms", f"{HELD_OUT_SEQUENCES} held out, s")
    print(" ".join(f"{name:>16}" for name in columns))
    for name in KERNELS:
        dataset = gaussian_process_tasks(
            name, options.batch_size, num_points=options.points, num_context=num_context
        )
        batches = iter(dataset)
        waits, processor = milliseconds(lambda batches=batches: next(batches), options.repeats)
        held_out, _ = milliseconds(
            lambda name=name: held_out_gaussian_process_tasks(
                name, HELD_OUT_SEQUENCES, 0, options.points, num_context
            ),
            HELD_OUT_REPEATS,
        )
        cells = (name, f"{waits:.1f}", f"{processor:.1f}", f"{held_out / 1e3:.2f}")
        print(" ".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
