from .experiments.consistency import Consistency, measure_consistency
from .experiments.pictures import (
    plot_completions,
    plot_consistency,
    plot_samples,
    plot_validation_curves,
)
from .experiments.presets import ExperimentTask, NetworkPreset
from .experiments.recipes import Recipe
from .experiments.record import read_records
from .experiments.run import ExperimentRun, run_experiment
from .experiments.scores import score_tasks
from .experiments.settings import ExperimentSettings
from .forecasting.backtest import Backtest
from .forecasting.demo import DemoSettings, run_demo
from .forecasting.fine_tuning import FineTuning
from .forecasting.forecast import Forecast
from .forecasting.forecaster import Forecaster
from .forecasting.naive import last_difference, last_value, seasonal
from .forecasting.presets import ForecastPreset
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
from .plot_style import save_figure
from .plots import plot_by_step, plot_forecast, plot_reliability
from .training.training_step import TrainingStep

__all__ = [
    "Backtest",
    "Consistency",
    "DemoSettings",
    "ExperimentRun",
    "ExperimentSettings",
    "ExperimentTask",
    "FineTuning",
    "Forecast",
    "ForecastPreset",
    "Forecaster",
    "NetworkPreset",
    "Recipe",
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
    "save_figure",
    "score_tasks",
    "seasonal",
    "teacher_forced_mse",
    "teacher_forced_nll",
]
