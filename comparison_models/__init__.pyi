from .attentive_neural_process import AttentiveNeuralProcess
from .circular_convolution import CircularConvolution
from .direct_forecaster import DirectForecaster
from .gaussian_process import GaussianProcess
from .latent_model import LatentModel
from .mlp import MLP
from .neural_process import NeuralProcess
from .transformer_block import TransformerBlock
from .transformer_neural_process import TransformerNeuralProcess
from .value_embedding import ValueEmbedding

__all__ = [
    "MLP",
    "AttentiveNeuralProcess",
    "CircularConvolution",
    "DirectForecaster",
    "GaussianProcess",
    "LatentModel",
    "NeuralProcess",
    "TransformerBlock",
    "TransformerNeuralProcess",
    "ValueEmbedding",
]
