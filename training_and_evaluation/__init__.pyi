from .backtest import Backtest
from .demo import DemoSettings, run_demo
from .forecast import Forecast
from .forecaster import Forecaster
from .metrics import (
    average_reliability,
    free_running_energy_score,
    free_running_point_scores,
    free_running_reliability,
    gaussian_nll,
    point_forecast_scores,
    teacher_forced_mse,
    teacher_forced_nll,
)
from .naive import last_difference, last_value, seasonal
from .plots import plot_by_step, plot_forecast, plot_reliability
from .presets import ForecastPreset
from .training_step import TrainingStep

__all__ = [
    "Backtest",
    "DemoSettings",
    "Forecast",
    "ForecastPreset",
    "Forecaster",
    "TrainingStep",
    "average_reliability",
    "free_running_energy_score",
    "free_running_point_scores",
    "free_running_reliability",
    "gaussian_nll",
    "last_difference",
    "last_value",
    "plot_by_step",
    "plot_forecast",
    "plot_reliability",
    "point_forecast_scores",
    "run_demo",
    "seasonal",
    "teacher_forced_mse",
    "teacher_forced_nll",
]
