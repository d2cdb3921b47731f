from .masked_normalization import MaskedBatchNormalization
from .positional_encoding import PositionalEncoding
from .representation_extractor import RepresentationExtractor

__all__ = [
    "MaskedBatchNormalization",
    "PositionalEncoding",
    "RepresentationExtractor",
]
