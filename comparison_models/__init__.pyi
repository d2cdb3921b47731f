from .attentive_neural_process import AttentiveNeuralProcess
from .auto_correlation import AutoCorrelation
from .autoformer import Autoformer
from .autoformer_decoder_layer import AutoformerDecoderLayer
from .autoformer_encoder_layer import AutoformerEncoderLayer
from .circular_convolution import CircularConvolution
from .direct_forecaster import DirectForecaster
from .distilling import Distilling
from .feed_forward import FeedForward
from .gaussian_process import GaussianProcess
from .informer import Informer
from .informer_decoder_layer import InformerDecoderLayer
from .informer_encoder_layer import InformerEncoderLayer
from .latent_model import LatentModel
from .mlp import MLP
from .neural_process import NeuralProcess
from .prob_sparse_attention import ProbSparseAttention
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
    "Distilling",
    "FeedForward",
    "GaussianProcess",
    "Informer",
    "InformerDecoderLayer",
    "InformerEncoderLayer",
    "LatentModel",
    "NeuralProcess",
    "ProbSparseAttention",
    "SeasonalLayerNorm",
    "SeriesDecomposition",
    "TransformerBlock",
    "TransformerNeuralProcess",
    "ValueEmbedding",
]
