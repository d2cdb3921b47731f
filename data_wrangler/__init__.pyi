from .features.masked_normalization import MaskedBatchNormalization
from .features.positional_encoding import PositionalEncoding
from .features.representation_extractor import RepresentationExtractor
from .tables.columns import Columns
from .tables.continued_stamps import continue_stamps
from .tables.csv_dialect import CsvDialect
from .tables.datasets import load_dataset
from .tables.files import load_mauna_loa_co2, read_series, read_table, write_table
from .tables.future import extend_series
from .tables.long_table import split_table
from .tables.panel import Panel
from .tables.report import inspect_table
from .tables.scaler import WindowScaler
from .tables.series import Series
from .tables.split import Split, WindowSpec, spaced_starts
from .tables.windows import Windows
from .tasks.gaussian_process import held_out_gaussian_process_tasks
from .tasks.image_points import picture
from .tasks.image_set import Images, load_images
from .tasks.image_sources import image_source_names
from .tasks.images import held_out_image_completion_tasks, whole_image_tasks
from .tasks.kernels import Kernel, find_kernel
from .tasks.series_prior import SeriesPrior, draw_family
from .tasks.task_set import TaskSet

__all__ = [
    "Columns",
    "CsvDialect",
    "Images",
    "Kernel",
    "MaskedBatchNormalization",
    "Panel",
    "PositionalEncoding",
    "RepresentationExtractor",
    "Series",
    "SeriesPrior",
    "Split",
    "TaskSet",
    "WindowScaler",
    "WindowSpec",
    "Windows",
    "continue_stamps",
    "draw_family",
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
    "write_table",
]
