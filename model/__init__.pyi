from .attention import MultiHeadAttention
from .attention_block import AttentionBlock
from .local_taylor import LocalTaylor
from .mha_x import MHAX
from .mha_x_net import MHAXNet
from .mha_xy import MHAXY
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
