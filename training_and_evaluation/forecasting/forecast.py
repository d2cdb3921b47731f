"""A forecast: joint samples at stamps, their quantiles, and both as a table and a picture."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.checks import check_number, listed, shortest_float
from taylorformer.data_wrangler.tables.files import write_table
from taylorformer.data_wrangler.tables.long_table import id_text
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.training_and_evaluation.levels import check_levels
from taylorformer.training_and_evaluation.metrics import sample_quantiles
from taylorformer.training_and_evaluation.plots import plot_forecast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Levels are rounded to so many digits: finer than anyone asks for, coarser than float64.
_LEVEL_DIGITS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Forecast:
    """The forecast of one or several series, in the units of the table; B is their number.

    `Forecaster.forecast` makes it. A series with fewer targets than another has NaN after its
    last one. Each sample is a joint one: a path through all targets and columns of its series.

    Example:
        >>> samples = np.arange(5.0).reshape(5, 1, 1, 1)
        >>> forecast = Forecast(samples, (pd.Index([7]),), ("",), "hour", ("load",))
        >>> forecast.interval(0.5)[0].item(), forecast.interval(0.5)[1].item()
        (1.0, 3.0)
        >>> forecast.to_frame([0.5])
           hour  mean    stddev  q50
        0     7   2.0  1.414214  2.0

    Attributes:
        samples: `[S, B, N_T, D_y]` float64.
        stamps: for each series the stamps of its targets.
        names: of the series; in a table of several the ids as text.
        time_column: the name of the column of time.
        target_columns: the names of the D_y columns.
        id_column: the name of the column of ids, None where there is none.
        ids: of the series, with the type that they have in the table; empty: the names.
        context_stamps: for each series the stamps that were read.
        context_values: for each series the values that were read, `[N_C, D_y]`.
        left_out: the names of series that could not be forecast, with the reason.
        notes: the names of series that are forecast and odd, with what is odd about them.
        seasons: for each series and target the seasons that a pretrained model was given; empty
            for one that was trained on the table.
    """

    samples: np.ndarray
    stamps: tuple[pd.Index, ...]
    names: tuple[str, ...]
    time_column: Hashable
    target_columns: tuple[Hashable, ...]
    id_column: Hashable | None = None
    ids: tuple[Any, ...] = ()
    context_stamps: tuple[pd.Index, ...] = ()
    context_values: tuple[np.ndarray, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seasons: tuple[tuple[Seasons, ...], ...] = ()

    @property
    def mean(self) -> np.ndarray:
        """`[B, N_T, D_y]`, of the samples."""
        return self.samples.mean(axis=0)

    @property
    def stddev(self) -> np.ndarray:
        """`[B, N_T, D_y]`, of the samples."""
        return self.samples.std(axis=0)

    def quantile(self, q: Any) -> np.ndarray:
        """Returns quantiles of the samples, with linear interpolation.

        Args:
            q: a level from 0 to 1, or Q different ones.

        Returns:
            `[B, N_T, D_y]` for one level, `[B, N_T, D_y, Q]` for several.

        Raises:
            TypeError: `q` is no number and no list of numbers.
            ValueError: a level outside 0 to 1, or twice.
        """
        quantiles = self._quantiles(check_levels("q", q, minimum=0))
        is_one = np.ndim(q) == 0 and hasattr(q, "__float__")
        return quantiles[..., 0] if is_one else quantiles

    def _quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Returns the quantiles of checked levels `[Q]`, `[B, N_T, D_y, Q]`."""
        if not len(levels):
            return np.empty((*self.samples.shape[1:], 0))
        return np.moveaxis(sample_quantiles(self.samples, levels), 0, -1)

    def interval(self, share: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Returns the central interval that holds a share of the samples.

        Args:
            share: between 0 and 1; 0.9 is the interval between the 0.05 and 0.95 quantiles.

        Returns:
            The lower and the upper end, `[B, N_T, D_y]` each.

        Raises:
            TypeError: `share` is no number.
            ValueError: it is not between 0 and 1.
        """
        check_number("share", share, above=0, below=1)
        # 0.5 - 0.9 / 2 is 0.04999999999999999 in floating point.
        tail = round(0.5 - shortest_float(share) / 2, _LEVEL_DIGITS)
        return self.quantile(tail), self.quantile(1 - tail)

    def select(self, name: Any) -> "Forecast":
        """Returns the forecast of one series, by its name or its id.

        Raises:
            KeyError: no series of this name.
        """
        name = id_text(name)
        if name not in self.names:
            names = listed([repr(one) for one in self.names])
            reason = f", left out: {self.left_out[name]}" if name in self.left_out else ""
            raise KeyError(f"`name` must be one of {names}. Received: name={name!r}{reason}")
        index = self.names.index(name)
        one = slice(index, index + 1)
        return dataclasses.replace(
            self,
            samples=self.samples[:, one, : len(self.stamps[index])],
            stamps=self.stamps[one],
            names=self.names[one],
            ids=self.ids[one],
            context_stamps=self.context_stamps[one],
            context_values=self.context_values[one],
            seasons=self.seasons[one],
        )

    def to_frame(self, quantiles: Sequence[float] | float = DEFAULT_QUANTILES) -> pd.DataFrame:
        """Makes a table, one row a series, stamp and target column.

        Args:
            quantiles: levels from 0 to 1, or one; 0.05 becomes the column `q05`, 0.975 `q97.5`.

        Returns:
            A table with the id column if there is one, the time column, `target` (the name of the
            target column) if there are several, `mean`, `stddev` and the quantiles.

        Raises:
            TypeError, ValueError: levels as in `quantile`.
        """
        levels = check_levels("quantiles", quantiles, minimum=0)
        statistics = {"mean": self.mean, "stddev": self.stddev}
        quantile_values = np.moveaxis(self._quantiles(levels), -1, 0)
        for level, values in zip(levels, quantile_values, strict=True):
            statistics[quantile_name(level)] = values
        parts = []
        for number, stamps in enumerate(self.stamps):
            for column, target in enumerate(self.target_columns):
                part = pd.DataFrame(
                    {key: value[number, : len(stamps), column] for key, value in statistics.items()}
                )
                labels: list[tuple[Hashable, Any]] = []
                if self.id_column is not None:
                    labels.append((self.id_column, (self.ids or self.names)[number]))
                labels.append((self.time_column, stamps))
                if len(self.target_columns) > 1:
                    labels.append(("target", str(target)))
                for position, (label, values) in enumerate(labels):
                    part.insert(position, label, values, allow_duplicates=True)
                parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def save(
        self,
        path: str | PathLike[str],
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        *,
        overwrite: bool = False,
    ) -> None:
        """Writes the table of `to_frame` to a file, which appears when it is complete.

        Args:
            path: of the file, whose ending says the format: .csv (also .gz, .bz2, .xz, .zip),
                .parquet or .pq.
            quantiles: see `to_frame`.
            overwrite: replace a file that is there.

        Raises:
            FileExistsError: a file is there, and `overwrite` is not set.
            ValueError: another ending, or a level outside 0 to 1.
            ImportError: there is no package to write Parquet.
            OSError: the file cannot be written.
        """
        write_table(self.to_frame(quantiles), path, overwrite=overwrite)

    def plot(
        self,
        name: Any = None,
        target: Hashable | None = None,
        truth: Any = None,
        title: str = "",
        y_label: str | None = None,
    ) -> "Figure":
        """Draws one column of one series: context, median, 50 % and 90 % bands, some samples.

        Args:
            name: of the series. None: the first one.
            target: the target column. None: the first one.
            truth: `[N_T]`, drawn beside the forecast. None: no truth.
            title: of the picture.
            y_label: of the vertical axis. None: the name of the target column.

        Raises:
            KeyError: no series or column of this name.
        """
        chosen = self.select(self.names[0] if name is None else name)
        if target is None:
            target = self.target_columns[0]
        if target not in self.target_columns:
            columns = ", ".join(map(repr, self.target_columns))
            raise KeyError(f"`target` must be one of {columns}. Received: target={target!r}")
        column = self.target_columns.index(target)
        return plot_forecast(
            chosen.context_stamps[0] if chosen.context_stamps else chosen.stamps[0][:0],
            chosen.context_values[0][:, column] if chosen.context_values else np.empty(0),
            chosen.stamps[0],
            chosen.samples[:, 0, :, column],
            truth,
            title=title or chosen.names[0],
            y_label=str(target) if y_label is None else y_label,
            time_label="" if isinstance(chosen.stamps[0], _DATES) else str(self.time_column),
        )


_DATES = (pd.DatetimeIndex, pd.PeriodIndex)


def quantile_name(level: float) -> str:
    """Names the column of a quantile: `q05` for 0.05, `q97.5` for 0.975."""
    percent = round(100 * float(level), _LEVEL_DIGITS - 2)
    return f"q{percent:02.0f}" if percent == round(percent) else f"q{percent:04g}"
