"""How near explicit Taylor terms alone come to the targets of Gaussian-process tasks.

    python -m benchmarks.taylor_terms

No model is trained. For each kernel and kind of term it prints the median and the 90 % quantile of
the distance from the sum of the terms to the target, on validation sequences, and what is gained
over `Y^n` alone in nats per target: the mean of log |y - Y^n| less that of the distance, the gain
in log-likelihood of a model whose scale follows the size of its errors. The noise of the targets
has a standard deviation of 0.001.
"""

import argparse

import numpy as np

from taylorformer import RepresentationExtractor
from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.tasks.kernels import KERNELS

# Far below the noise, so that a chance hit does not count as much as it would.
_SMALLEST = 1e-5
_BATCH = 50

KINDS = {
    "p = 0": {"taylor_order": 0},
    "p = 1": {"taylor_order": 1},
    "p = 1, K = 2": {"taylor_order": 1, "num_neighbours": 2},
    "p = 1, K = 3": {"taylor_order": 1, "num_neighbours": 3},
    "p = 2, q = 2": {"taylor_order": 2, "feature_order": 2},
    **{f"fitted, r = {order}": {"fitted_order": order} for order in range(1, 6)},
}


def distances(kernel: str, num_sequences: int, **settings: int) -> np.ndarray:
    """Returns |y - the sum of the explicit terms| of all targets."""
    extractor = RepresentationExtractor(encoding_dim=2, **settings)
    tasks = held_out_gaussian_process_tasks(kernel, num_sequences, 0, part="validation")
    parts = []
    for _, inputs, y_target in tasks.batches(_BATCH):
        features = extractor({**inputs, "y_target": y_target})
        terms = features["taylor_terms"].numpy() + features["gated_terms"].numpy().sum(axis=2)
        parts.append(np.abs(y_target - terms)[inputs["target_mask"]].ravel())
    return np.concatenate(parts)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=256)
    options = parser.parse_args()
    print("| kernel | explicit terms | median distance | 90 % | nats above p = 0 |")
    print("|---|---|---:|---:|---:|")
    for kernel in KERNELS:
        first = None
        for name, settings in KINDS.items():
            away = distances(kernel, options.sequences, **settings)
            size = float(np.mean(np.log(np.maximum(away, _SMALLEST))))
            first = size if first is None else first
            middle, far = np.quantile(away, [0.5, 0.9])
            print(f"| {kernel} | {name} | {middle:.4f} | {far:.3f} | {first - size:.2f} |")


if __name__ == "__main__":
    main()
