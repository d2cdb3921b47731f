"""Kernels: their covariances, the distributions of their hyper-parameters, their errors."""

import numpy as np
import pytest
from other_kernels import EXAMPLES, NAMES, RANGES, sklearn_kernel

from taylorformer.data_wrangler.tasks.gaussian_process import (
    draw_values,
    held_out_gaussian_process_tasks,
)
from taylorformer.data_wrangler.tasks.kernels import (
    JITTER,
    KERNELS,
    Kernel,
    cholesky_factor,
    find_kernel,
)


@pytest.mark.parametrize(
    "name, D_x", [("rbf", 1), ("rbf", 2), ("matern", 1), ("matern", 3), ("periodic", 1)]
)
def test_covariance_is_that_of_another_library(rng, name, D_x):
    x, z = rng.uniform(-2, 2, [3, 6, D_x]), rng.uniform(-2, 2, [3, 4, D_x])
    x[:, 0] = z[:, 0]
    values = KERNELS[name].draw_hyperparameters(rng, 3)
    covariance = KERNELS[name].covariance(x, z, **values)
    assert covariance.dtype == np.float64
    for b in range(3):
        wanted = sklearn_kernel(name, **{key: v[b] for key, v in values.items()})(x[b], z[b])
        np.testing.assert_allclose(covariance[b], wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_covariance_of_the_kernel(name, record_property):
    grid = np.linspace(-2, 2, 20)[:, np.newaxis]
    x = np.broadcast_to(grid, [20_000, 20, 1])
    y = draw_values(np.random.default_rng(1), KERNELS[name], x, JITTER, **EXAMPLES[name])[..., 0]
    wanted = sklearn_kernel(name, **EXAMPLES[name])(grid)
    error = np.abs(y.T @ y / len(y) - wanted).max() / wanted[0, 0]
    record_property("largest_error", float(error))
    # A standard error of 0.01 on the diagonal.
    assert error < 0.04
    assert np.abs(y.mean(axis=0)).max() < 0.04 * wanted[0, 0] ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_hyperparameters_have_the_distribution_of_the_paper(rng, name):
    drawn = find_kernel(name).draw_hyperparameters(rng, 4000)
    assert set(drawn) == set(RANGES[name])
    for key, (low, high) in RANGES[name].items():
        share = (drawn[key] - low) / (high - low)
        assert 0 <= share.min() < 0.01 and 0.99 < share.max() <= 1
        # Standard errors of 0.0046 and 0.0012.
        assert abs(share.mean() - 0.5) < 0.02 and abs(share.var() - 1 / 12) < 0.006


def test_a_kernel_with_other_ranges():
    kernel = Kernel("rbf", {"length_scale": (0.2, 0.2), "scale": (3, 3)})
    assert find_kernel(kernel) is kernel
    tasks = held_out_gaussian_process_tasks(kernel, 3, 0, num_points=5, num_context=(1, 4))
    assert tasks.hyperparameters["scale"].tolist() == [3.0, 3.0, 3.0]
    assert tasks.about["ranges"] == {"scale": [3.0, 3.0], "length_scale": [0.2, 0.2]}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: find_kernel("RBF"), "`kernel` must be one of 'rbf', .* Received: kernel='RBF'"),
        (lambda: Kernel("linear", {}), "`name` must be one of .*'linear'"),
        (lambda: Kernel("matern", {}), "`ranges` of the matern kernel .*length_scale. .*none"),
        (lambda: Kernel("matern", {"length_scale": (2, 1)}), r"0 < low <= high.*\(2, 1\)"),
        (lambda: Kernel("matern", {"length_scale": (0, 1)}), "0 < low <= high"),
        (lambda: Kernel("matern", {"length_scale": 1.0}), "`length_scale` must be two numbers"),
        (lambda: Kernel("matern", {"length_scale": (1, np.inf)}), "`length_scale` must be finite"),
        (
            lambda: KERNELS["periodic"].covariance(
                np.zeros([1, 2, 2]), np.zeros([1, 2, 2]), **EXAMPLES["periodic"]
            ),
            "must have D_x = 1. Received: D_x = 2",
        ),
        (
            lambda: KERNELS["matern"].covariance(np.zeros([1, 2, 1]), np.zeros([1, 2, 2])),
            r"`x` and `z` must have the shapes .*\[1, 2, 1\] and \[1, 2, 2\]",
        ),
        (
            lambda: KERNELS["rbf"].covariance(np.zeros([1, 2, 1]), np.zeros([1, 2, 1]), scale=1),
            "`hyperparameters` of the rbf kernel must be scale, length_scale. Received: scale",
        ),
        (
            lambda: KERNELS["matern"].covariance(
                np.zeros([3, 2, 1]), np.zeros([3, 2, 1]), length_scale=np.ones(2)
            ),
            r"of the shape \[B\] = \[3\]. Received: \[2\]",
        ),
        (
            lambda: KERNELS["matern"].covariance(
                np.zeros([1, 2, 1]), np.zeros([1, 2, 1]), length_scale=-1.0
            ),
            "`length_scale` must be finite and above 0. Received: length_scale=-1.0",
        ),
        (lambda: cholesky_factor(np.ones([1, 2, 2])), "take a larger jitter. Received: 1 matrices"),
    ],
)
def test_errors_of_kernels(make, message):
    with pytest.raises(ValueError, match=message):
        make()
