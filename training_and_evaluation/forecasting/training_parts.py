"""The parts of a table that pretrained weights are trained and validated on, column by column."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, evenly_spaced


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


@dataclasses.dataclass(frozen=True, eq=False)
class ValidationWindows:
    """The windows whose forecasts say which weights to keep.

    Attributes:
        windows: of the parts, of some length.
        starts: the first rows of those that are forecast.
        first_rows: `[G]`, the first row of the validation part of each series; what comes before is
            not scored.
    """

    windows: ContextWindows
    starts: np.ndarray
    first_rows: np.ndarray

    @classmethod
    def of(
        cls, parts: Sequence[TrainingPart], windows: ContextWindows, most: int
    ) -> "ValidationWindows":
        """Chooses windows, of each series about as many.

        A validation part that is shorter than the horizon has one window, which begins before it.

        Args:
            parts: of a table.
            windows: of their series.
            most: at most so many.
        """
        horizon = windows.spec.horizon
        with_rows = [part for part in parts if part.num_validation and part.num_training]
        each = -(-most // max(len(with_rows), 1))
        chosen = [np.empty(0, np.int64)]
        offsets = windows.panel.offsets[:-1]
        for part, offset in zip(parts, offsets, strict=True):
            last = part.series.num_rows - horizon
            if part in with_rows and last > 0:
                first = np.arange(min(part.num_training, last), last + 1)
                # The last one is among them: it is most like the forecast that users ask for.
                chosen.append(offset + np.sort(evenly_spaced(first[::-1], each)))
        starts = np.concatenate(chosen).astype(np.int64) - windows.spec.context_length
        first_rows = np.array([part.num_training for part in parts]) + offsets
        return cls(windows, evenly_spaced(starts, most), first_rows)

    @property
    def scored(self) -> np.ndarray:
        """Which targets are scored: `[n, N_T]` bool."""
        spec = self.windows.spec
        rows = self.starts[:, np.newaxis] + spec.context_length + np.arange(spec.horizon)
        first = self.first_rows[self.windows.panel.series_of(rows[:, 0])]
        return self.windows.scored(self.starts) & (rows >= first[:, np.newaxis])

    def teacher_forced(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Returns inputs and y of the targets, where the mask leaves those that are scored."""
        inputs, y_target = self.windows.batch(self.starts)
        return {**inputs, "target_mask": inputs["target_mask"] & self.scored}, y_target

    def __len__(self) -> int:
        return len(self.starts)
