from .demo import DemoSettings, run_demo
from .metrics import free_running_point_scores, point_forecast_scores
from .plots import plot_forecast
from .training_step import TrainingStep

__all__ = [
    "DemoSettings",
    "TrainingStep",
    "free_running_point_scores",
    "plot_forecast",
    "point_forecast_scores",
    "run_demo",
]
