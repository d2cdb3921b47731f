"""The kernels of the tasks as scikit-learn computes them, and the paper's hyper-parameters."""

from sklearn.gaussian_process import kernels as sklearn_kernels

# The range of each hyper-parameter, from the paper's appendix.
RANGES = {
    "rbf": {"scale": (0.1, 1.0), "length_scale": (0.1, 0.6)},
    "matern": {"length_scale": (0.3, 1.0)},
    "periodic": {"length_scale": (0.1, 0.6), "period": (0.5, 1.0)},
}
EXAMPLES = {
    "rbf": {"scale": 0.7, "length_scale": 0.4},
    "matern": {"length_scale": 0.6},
    "periodic": {"length_scale": 0.5, "period": 0.8},
}
NAMES = tuple(RANGES)


def sklearn_kernel(name, scale=1.0, length_scale=1.0, period=1.0):
    """The same covariance functions, of another library."""
    if name == "rbf":
        variance = sklearn_kernels.ConstantKernel(scale**2, "fixed")
        return variance * sklearn_kernels.RBF(length_scale, "fixed")
    if name == "matern":
        return sklearn_kernels.Matern(length_scale, "fixed", nu=2.5)
    return sklearn_kernels.ExpSineSquared(length_scale, period, "fixed", "fixed")
