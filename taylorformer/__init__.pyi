from . import comparison_models, data_wrangler, model, training_and_evaluation
from ._registry import load_model
from .comparison_models.attentive_neural_process import AttentiveNeuralProcess
from .comparison_models.autoformer import Autoformer
from .comparison_models.informer import Informer
from .comparison_models.neural_process import NeuralProcess
from .comparison_models.transformer_neural_process import TransformerNeuralProcess
from .data_wrangler.features.representation_extractor import RepresentationExtractor
from .data_wrangler.tasks.gaussian_process import gaussian_process_tasks
from .data_wrangler.tasks.images import image_completion_tasks
from .data_wrangler.tasks.series_prior import synthetic_series_tasks
from .model.layers.attention import MultiHeadAttention
from .model.layers.local_taylor import LocalTaylor
from .model.layers.mha_x import MHAX
from .model.layers.mha_xy import MHAXY
from .model.probabilistic_model import ProbabilisticModel
from .model.released_weights import load_released_weights
from .model.taylorformer import Taylorformer
from .training_and_evaluation.forecasting.forecast import Forecast
from .training_and_evaluation.forecasting.forecaster import Forecaster
from .training_and_evaluation.forecasting.pretrained_forecaster import PretrainedForecaster

__all__ = [
    "MHAX",
    "MHAXY",
    "AttentiveNeuralProcess",
    "Autoformer",
    "Forecast",
    "Forecaster",
    "Informer",
    "LocalTaylor",
    "MultiHeadAttention",
    "NeuralProcess",
    "PretrainedForecaster",
    "ProbabilisticModel",
    "RepresentationExtractor",
    "Taylorformer",
    "TransformerNeuralProcess",
    "comparison_models",
    "data_wrangler",
    "gaussian_process_tasks",
    "image_completion_tasks",
    "load_model",
    "load_released_weights",
    "model",
    "synthetic_series_tasks",
    "training_and_evaluation",
]

__version__: str
