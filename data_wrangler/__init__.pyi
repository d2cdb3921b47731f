from .datasets import load_dataset
from .future import continue_stamps, extend_series
from .masked_normalization import MaskedBatchNormalization
from .panel import Panel
from .positional_encoding import PositionalEncoding
from .representation_extractor import RepresentationExtractor
from .series import Series, load_mauna_loa_co2, read_series, read_table
from .table import Columns, inspect_table, split_table
from .windows import Split, Windows, WindowScaler, WindowSpec, spaced_starts

__all__ = [
    "Columns",
    "MaskedBatchNormalization",
    "Panel",
    "PositionalEncoding",
    "RepresentationExtractor",
    "Series",
    "Split",
    "WindowScaler",
    "WindowSpec",
    "Windows",
    "continue_stamps",
    "extend_series",
    "inspect_table",
    "load_dataset",
    "load_mauna_loa_co2",
    "read_series",
    "read_table",
    "spaced_starts",
    "split_table",
]
