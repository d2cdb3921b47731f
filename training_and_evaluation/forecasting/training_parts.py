"""The parts of a table that pretrained weights are trained and validated on, column by column."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingPart:
    """One column of one series, of which a model is trained on the first rows.

    Attributes:
        owner: the name of the series in the table.
        series: the rows of this column that have a value, up to the end of the validation part.
        num_training: how many of them are in the training part.
        seasons: those that the training part shows.
    """

    owner: str
    series: Series
    num_training: int
    seasons: Seasons

    @property
    def training(self) -> Series:
        """The rows of the training part."""
        return self.series.take(slice(self.num_training))

    @property
    def num_validation(self) -> int:
        """How many rows are in the validation part."""
        return self.series.num_rows - self.num_training


def training_parts(
    series: Sequence[Series], splits: Mapping[str, Split], choose: Callable[[Series, int], Seasons]
) -> list[TrainingPart]:
    """Returns the columns of series as they are trained on: rows without a value are left out."""
    parts = []
    for one in series:
        split = splits[one.name]
        for column in range(one.num_columns):
            alone = one.column(column)
            rows = np.flatnonzero(alone.observed[: split.validation_end])
            count = int(np.searchsorted(rows, split.train_end))
            seasons = choose(alone.take(rows[:count]), 0)
            parts.append(TrainingPart(one.name, alone.take(rows), count, seasons))
    return parts


def validation_starts(
    parts: Sequence[TrainingPart], windows: ContextWindows, num_targets: int
) -> np.ndarray:
    """Returns the first rows of all windows whose targets are in the validation part."""
    starts = [np.empty(0, np.int64)]
    for part, first in zip(parts, windows.panel.offsets[:-1], strict=True):
        if num_targets and part.num_training:
            last = part.series.num_rows - num_targets
            starts.append(first + np.arange(part.num_training, last + 1))
    return np.concatenate(starts).astype(np.int64) - windows.spec.context_length
