from . import comparison_models, data_wrangler, model, training_and_evaluation
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
    "Forecast",
    "Forecaster",
    "LocalTaylor",
    "MultiHeadAttention",
    "ProbabilisticModel",
    "RepresentationExtractor",
    "Taylorformer",
    "comparison_models",
    "data_wrangler",
    "load_released_weights",
    "model",
    "training_and_evaluation",
]

__version__: str
