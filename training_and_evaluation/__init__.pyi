from .backtest import Backtest
from .consistency import Consistency, measure_consistency
from .demo import DemoSettings, run_demo
from .experiment import ExperimentRun, run_experiment
from .experiment_plots import (
    plot_completions,
    plot_consistency,
    plot_samples,
    plot_validation_curves,
)
from .experiment_presets import ExperimentTask, NetworkPreset
from .experiment_record import read_records
from .experiment_scores import score_tasks
from .experiment_settings import ExperimentSettings
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
    "Consistency",
    "DemoSettings",
    "ExperimentRun",
    "ExperimentSettings",
    "ExperimentTask",
    "Forecast",
    "ForecastPreset",
    "Forecaster",
    "NetworkPreset",
    "TrainingStep",
    "average_reliability",
    "free_running_energy_score",
    "free_running_point_scores",
    "free_running_reliability",
    "gaussian_nll",
    "last_difference",
    "last_value",
    "measure_consistency",
    "plot_by_step",
    "plot_completions",
    "plot_consistency",
    "plot_forecast",
    "plot_reliability",
    "plot_samples",
    "plot_validation_curves",
    "point_forecast_scores",
    "read_records",
    "run_demo",
    "run_experiment",
    "score_tasks",
    "seasonal",
    "teacher_forced_mse",
    "teacher_forced_nll",
]
