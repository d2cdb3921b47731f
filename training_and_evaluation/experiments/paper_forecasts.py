"""The forecasting figures of the paper, of which the experiments' tables quote each beside ours.

Nivron et al. (2023): the table of squared errors in section "Forecasting", and the table of
negative log-likelihoods in the appendix "Further results". Each is the mean and the standard
deviation of five runs on the test part, in standardised units. Those of Taylorformer and TNP are
teacher-forced, those of Autoformer and Informer are of forecasts of the whole horizon at once.
"""

from collections.abc import Mapping

Figure = tuple[float, float]
"""Mean and standard deviation over runs."""

_PRESETS = ("taylorformer", "tnp", "autoformer", "informer")
_HORIZONS = (96, 192, 336, 720)

_NLL = {
    "ett": (
        ((-2.69, 0.02), (-2.47, 0.05), (0.65, 0.16), (0.61, 0.16)),
        ((-2.68, 0.01), (-2.42, 0.14), (0.87, 0.13), (0.92, 0.14)),
        ((-2.64, 0.01), (-2.48, 0.02), (0.88, 0.15), (0.87, 0.14)),
        ((-2.56, 0.01), (-2.38, 0.03), (1.38, 0.07), (1.01, 0.13)),
    ),
    "exchange": (
        ((-1.31, 0.04), (0.27, 1.11), (0.65, 0.15), (0.86, 0.11)),
        ((-1.21, 0.03), (0.38, 0.40), (0.87, 0.13), (1.33, 0.15)),
        ((-1.05, 0.04), (1.21, 0.47), (1.19, 0.09), (1.80, 0.07)),
        ((-0.68, 0.02), (0.94, 0.55), (1.05, 0.13), (1.52, 0.06)),
    ),
    "electricity": (
        ((-0.53, 0.01), (-0.42, 0.03), (0.38, 0.13), (0.41, 0.02)),
        ((-0.50, 0.00), (-0.40, 0.02), (0.35, 0.01), (0.46, 0.04)),
        ((-0.41, 0.03), (-0.28, 0.08), (0.44, 0.04), (0.47, 0.05)),
        ((-0.44, 0.03), (-0.25, 0.13), (0.64, 0.09), (0.39, 0.05)),
    ),
}
_MSE = {
    "ett": (
        ((0.00030, 0.00001), (0.00041, 0.00004), (0.43, 0.21), (0.40, 0.20)),
        ((0.00029, 0.00000), (0.00044, 0.00008), (0.57, 0.26), (0.65, 0.30)),
        ((0.00030, 0.00001), (0.00038, 0.00001), (0.67, 0.32), (0.72, 0.34)),
        ((0.00029, 0.00000), (0.00039, 0.00004), (0.87, 0.42), (0.85, 0.40)),
    ),
    "exchange": (
        ((0.002, 0.000), (0.040, 0.030), (0.41, 0.20), (0.57, 0.26)),
        ((0.002, 0.000), (0.079, 0.035), (0.59, 0.28), (1.53, 0.80)),
        ((0.002, 0.000), (0.067, 0.025), (0.96, 0.46), (3.28, 1.4)),
        ((0.001, 0.000), (0.152, 0.091), (1.08, 0.51), (1.47, 0.76)),
    ),
    "electricity": (
        ((0.036, 0.000), (0.042, 0.002), (0.130, 0.039), (0.133, 0.005)),
        ((0.037, 0.000), (0.045, 0.001), (0.117, 0.001), (0.148, 0.011)),
        ((0.040, 0.001), (0.048, 0.002), (0.143, 0.011), (0.150, 0.013)),
        ((0.039, 0.001), (0.048, 0.003), (0.216, 0.040), (0.129, 0.012)),
    ),
}


def paper_figures(data: str, horizon: int) -> Mapping[str, Mapping[str, Figure]]:
    """Returns the paper's figures for one data set and horizon.

    Example:
        >>> paper_figures("ett", 96)["nll"]["tnp"], paper_figures("ett", 96)["mse"]["tnp"]
        ((-2.47, 0.05), (0.00041, 4e-05))

    Args:
        data: "ett", "exchange" or "electricity".
        horizon: N_T, one of 96, 192, 336 and 720.

    Returns:
        `nll` and `mse`, each by the name of the model's preset.
    """
    row = _HORIZONS.index(horizon)
    return {
        name: dict(zip(_PRESETS, table[data][row], strict=True))
        for name, table in (("nll", _NLL), ("mse", _MSE))
    }
