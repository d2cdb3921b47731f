"""Training and sampling of two checkouts of this package, in alternating pairs.

    python -m benchmarks.checkouts BEFORE AFTER --pairs 9

BEFORE and AFTER are folders with a checkout each, its `.venv` made by `make install`. Every
measurement is a process that is started anew, first BEFORE, then AFTER, then again, so that a
machine that becomes slower slows both. Shown are the medians in seconds and, what counts, the
median over pairs of the ratio AFTER / BEFORE.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.pairs import compare_pairs, measure_script, pairs_table, say

# Only public faces are imported, so that any layout of the package can be measured.
_MEASURE = """
import json, time
start = time.perf_counter()
import taylorformer
seconds = {"import taylorformer": time.perf_counter() - start}

import keras, numpy as np, statistics
from taylorformer import Taylorformer, TransformerNeuralProcess, NeuralProcess
from taylorformer.training_and_evaluation import TrainingStep

BATCH, NUM_POINTS, NUM_CONTEXT = 32, 192, 96
rng = np.random.default_rng(0)
x = np.broadcast_to(np.linspace(-1, 1, NUM_POINTS)[None, :, None], (BATCH, NUM_POINTS, 1))
y = np.sin(rng.uniform(2, 6, (BATCH, 1, 1)) * x + rng.uniform(0, 6, (BATCH, 1, 1)))
x, y = x.astype("float32"), y.astype("float32")
inputs = {"x_context": x[:, :NUM_CONTEXT], "y_context": y[:, :NUM_CONTEXT]}
inputs["x_target"], y_target = x[:, NUM_CONTEXT:], y[:, NUM_CONTEXT:]

def median(function, repeats):
    function()  # traces
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)

def some(count):
    return {name: value[:count] for name, value in inputs.items()}

# The preset of the paper for ETT, 96 context and 96 target points.
model = Taylorformer(seed=0)
step = TrainingStep(model, keras.optimizers.Adam(3e-4, global_clipnorm=10.0))
start = time.perf_counter()
step(inputs, y_target)
seconds["first training step, with tracing"] = time.perf_counter() - start
seconds["training step, B = 32"] = median(lambda: step(inputs, y_target), 7)
seconds["log_prob, B = 32"] = median(lambda: model.teacher_forced(inputs, y_target), 5)
seconds["sample 1 x 100 x 96"] = median(lambda: model.sample(some(1), 100, 0).numpy(), 5)
seconds["sample 8 x 1 x 96"] = median(lambda: model.sample(some(8), 1, 0).numpy(), 7)
tnp = TransformerNeuralProcess(seed=0)
tnp(some(1))
seconds["TNP: sample 1 x 50 x 96"] = median(lambda: tnp.sample(some(1), 50, 0).numpy(), 3)
latent = NeuralProcess(seed=0)
latent(inputs)
seconds["NP: sample 8 x 50 x 96"] = median(lambda: latent.sample(some(8), 50, 0).numpy(), 7)
print(json.dumps(seconds))
"""


def measure(checkout: Path) -> dict[str, float]:
    """Measures one checkout in a process that is started anew: seconds by what was done."""
    return measure_script(_MEASURE, checkout.resolve() / ".venv" / "bin" / "python")


def main() -> None:
    """Runs the pairs and shows the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    arguments = parser.parse_args()
    pairs = []
    for number in range(arguments.pairs):
        pairs.append((measure(arguments.before), measure(arguments.after)))
        say(f"pair {number + 1} of {arguments.pairs}")
    sys.stdout.write(pairs_table(compare_pairs(pairs), "before, s", "after, s"))


if __name__ == "__main__":
    main()
