from .layers.attention import MultiHeadAttention
from .layers.attention_block import AttentionBlock
from .layers.local_taylor import LocalTaylor
from .layers.mha_x import MHAX
from .layers.mha_x_net import MHAXNet
from .layers.mha_xy import MHAXY
from .probabilistic_model import ProbabilisticModel
from .released_weights import load_released_weights
from .taylorformer import Taylorformer

__all__ = [
    "MHAX",
    "MHAXY",
    "AttentionBlock",
    "LocalTaylor",
    "MHAXNet",
    "MultiHeadAttention",
    "ProbabilisticModel",
    "Taylorformer",
    "load_released_weights",
]
