from .masked_normalization import MaskedBatchNormalization
from .positional_encoding import PositionalEncoding
from .representation_extractor import RepresentationExtractor
from .series import Series, load_mauna_loa_co2, read_series
from .windows import Split, Windows, WindowScaler, WindowSpec, spaced_starts

__all__ = [
    "MaskedBatchNormalization",
    "PositionalEncoding",
    "RepresentationExtractor",
    "Series",
    "Split",
    "WindowScaler",
    "WindowSpec",
    "Windows",
    "load_mauna_loa_co2",
    "read_series",
    "spaced_starts",
]
