from .datasets import load_dataset
from .future import continue_stamps, extend_series
from .gaussian_process_tasks import held_out_gaussian_process_tasks
from .image_completion_tasks import held_out_image_completion_tasks, picture, whole_image_tasks
from .image_sources import Images, image_source_names, load_images
from .kernels import Kernel, find_kernel
from .masked_normalization import MaskedBatchNormalization
from .panel import Panel
from .positional_encoding import PositionalEncoding
from .representation_extractor import RepresentationExtractor
from .series import Series, load_mauna_loa_co2, read_series, read_table
from .table import Columns, inspect_table, split_table
from .task_set import TaskSet
from .windows import Split, Windows, WindowScaler, WindowSpec, spaced_starts

__all__ = [
    "Columns",
    "Images",
    "Kernel",
    "MaskedBatchNormalization",
    "Panel",
    "PositionalEncoding",
    "RepresentationExtractor",
    "Series",
    "Split",
    "TaskSet",
    "WindowScaler",
    "WindowSpec",
    "Windows",
    "continue_stamps",
    "extend_series",
    "find_kernel",
    "held_out_gaussian_process_tasks",
    "held_out_image_completion_tasks",
    "image_source_names",
    "inspect_table",
    "load_dataset",
    "load_images",
    "load_mauna_loa_co2",
    "picture",
    "read_series",
    "read_table",
    "spaced_starts",
    "split_table",
    "whole_image_tasks",
]
