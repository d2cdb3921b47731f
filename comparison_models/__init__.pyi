from .attentive_neural_process import AttentiveNeuralProcess
from .auto_correlation import AutoCorrelation
from .autoformer import Autoformer
from .autoformer_decoder_layer import AutoformerDecoderLayer
from .autoformer_encoder_layer import AutoformerEncoderLayer
from .circular_convolution import CircularConvolution
from .direct_forecaster import DirectForecaster
from .feed_forward import FeedForward
from .gaussian_process import GaussianProcess
from .latent_model import LatentModel
from .mlp import MLP
from .neural_process import NeuralProcess
from .seasonal_layer_norm import SeasonalLayerNorm
from .series_decomposition import SeriesDecomposition
from .transformer_block import TransformerBlock
from .transformer_neural_process import TransformerNeuralProcess
from .value_embedding import ValueEmbedding

__all__ = [
    "MLP",
    "AttentiveNeuralProcess",
    "AutoCorrelation",
    "Autoformer",
    "AutoformerDecoderLayer",
    "AutoformerEncoderLayer",
    "CircularConvolution",
    "DirectForecaster",
    "FeedForward",
    "GaussianProcess",
    "LatentModel",
    "NeuralProcess",
    "SeasonalLayerNorm",
    "SeriesDecomposition",
    "TransformerBlock",
    "TransformerNeuralProcess",
    "ValueEmbedding",
]
