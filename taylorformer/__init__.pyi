from . import comparison_models, data_wrangler, model, training_and_evaluation
from .comparison_models.attentive_neural_process import AttentiveNeuralProcess
from .comparison_models.neural_process import NeuralProcess
from .comparison_models.transformer_neural_process import TransformerNeuralProcess
from .data_wrangler.gaussian_process_tasks import gaussian_process_tasks
from .data_wrangler.image_completion_tasks import image_completion_tasks
from .data_wrangler.representation_extractor import RepresentationExtractor
from .model.attention import MultiHeadAttention
from .model.local_taylor import LocalTaylor
from .model.mha_x import MHAX
from .model.mha_xy import MHAXY
from .model.probabilistic_model import ProbabilisticModel
from .model.released_weights import load_released_weights
from .model.taylorformer import Taylorformer
from .training_and_evaluation.forecast import Forecast
from .training_and_evaluation.forecaster import Forecaster

__all__ = [
    "MHAX",
    "MHAXY",
    "AttentiveNeuralProcess",
    "Forecast",
    "Forecaster",
    "LocalTaylor",
    "MultiHeadAttention",
    "NeuralProcess",
    "ProbabilisticModel",
    "RepresentationExtractor",
    "Taylorformer",
    "TransformerNeuralProcess",
    "comparison_models",
    "data_wrangler",
    "gaussian_process_tasks",
    "image_completion_tasks",
    "load_released_weights",
    "model",
    "training_and_evaluation",
]

__version__: str
