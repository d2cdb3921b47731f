"""The parts of a table that pretrained weights are trained and validated on, column by column."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from taylorformer.data_wrangler.checks import listed
from taylorformer.data_wrangler.tables.context_batches import SHORTEST_CONTEXT
from taylorformer.data_wrangler.tables.context_scaler import FURTHEST_TRAINED
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, evenly_spaced

FEWEST_BEFORE = 2
"""So many values at least come before the targets of a training window."""


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
    """Returns the columns of series as they are trained on: rows without a value are left out.

    Columns without a value in the training part are not among them.

    Args:
        series: of the table.
        splits: of each, by its name.
        choose: returns the seasons of a column.
    """
    parts = []
    for one in series:
        split = splits[one.name]
        for column in range(one.num_columns):
            alone = one.column(column)
            rows = np.flatnonzero(alone.observed[: split.validation_end])
            count = int(np.searchsorted(rows, split.train_end))
            if count:
                seasons = choose(alone.take(rows[:count]), 0)
                parts.append(TrainingPart(one.name, alone.take(rows), count, seasons))
    return parts


def refuse_short_parts(counts: Sequence[int]) -> None:
    """Raises ValueError unless a training part has enough values for a window of one target.

    Args:
        counts: how many values the training part of each series has.
    """
    need = FEWEST_BEFORE + 1
    if max(counts, default=0) < need:
        raise ValueError(
            f"`data` must hold a series of at least {need} values in its training part. "
            f"Received: {listed([f'{count} values' for count in counts])}"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ValidationWindows:
    """The windows whose forecasts say which weights to keep.

    Attributes:
        windows: of the parts, of some length.
        starts: the first rows of those that are forecast.
        scored: `[n, N_T]` bool, which targets are scored: those of the validation part that have a
            value, and that do not lie far outside of the context where others do not.
    """

    windows: ContextWindows
    starts: np.ndarray
    scored: np.ndarray

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
        spec, offsets = windows.spec, windows.panel.offsets[:-1]
        possible = [
            _first_targets(part, spec.horizon) + offset
            for part, offset in zip(parts, offsets, strict=True)
        ]
        first = _shared_out([rows for rows in possible if len(rows)], most)
        starts = first - spec.context_length
        if not len(starts):
            return cls(windows, starts, np.empty((0, spec.horizon), bool))
        begins = np.array([part.num_training for part in parts]) + offsets
        rows = first[:, np.newaxis] + np.arange(spec.horizon)
        scored = windows.scored(starts) & (
            rows >= begins[windows.panel.series_of(first)][:, np.newaxis]
        )
        usual = scored & (np.abs(windows.batch(starts)[1][..., 0]) < FURTHEST_TRAINED)
        scored = usual if usual.any() else scored
        has_score = scored.any(axis=1)
        return cls(windows, starts[has_score], scored[has_score])

    @functools.cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The inputs of all windows, with `y_target`."""
        inputs, y_target = self.windows.batch(self.starts)
        return {**inputs, "y_target": y_target}

    def teacher_forced(self) -> dict[str, np.ndarray]:
        """Returns inputs and `y_target` of the windows whose likelihood is measured.

        Those that begin before the validation part are left out, unless there are no others: the
        values before a target are all seen, and targets of the training part do not count.
        """
        inside = self.scored[:, 0]
        inside = inside if inside.any() else np.ones(len(inside), bool)
        arrays = {name: array[inside] for name, array in self.arrays.items()}
        return {**arrays, "target_mask": arrays["target_mask"] & self.scored[inside]}

    def __len__(self) -> int:
        return len(self.starts)


def _first_targets(part: TrainingPart, horizon: int) -> np.ndarray:
    """Returns the rows of a part that can be the first target of a validation window."""
    last = part.series.num_rows - horizon
    # Also before a window that begins before the validation part.
    least = min(part.num_training, SHORTEST_CONTEXT)
    if not part.num_validation or last < max(least, 1):
        return np.empty(0, np.int64)
    return np.arange(min(part.num_training, last), last + 1)


def _shared_out(possible: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Chooses about as many rows of each series; what short ones leave over the others get.

    The last row of a series is the first to be chosen: its forecast is most like what users ask
    for. Of more series than `most` those that have one are evenly spaced in the table.
    """
    possible = [possible[number] for number in evenly_spaced(np.arange(len(possible)), most)]
    chosen, left = [np.empty(0, np.int64)], most
    for number, index in enumerate(np.argsort([len(rows) for rows in possible], kind="stable")):
        count = -(-left // (len(possible) - number))
        rows = evenly_spaced(possible[index][::-1], count)
        left -= len(rows)
        chosen.append(rows)
    return np.sort(np.concatenate(chosen))
