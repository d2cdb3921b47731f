"""One or several series with the same columns, as one long table."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.series import Series


class Panel:
    """G series with the same columns, laid end to end; a row of it is a row of one of them.

    For one series its arrays are those of the series, not copies.

    Args:
        series: one `Series`, or several with the same columns and different names.

    Attributes:
        series: the G series.
        offsets: `[G + 1]` int64; rows `offsets[g]` to `offsets[g + 1] - 1` are those of series g.
        time: `[R]`, see `Series`; increasing within each series.
        values: `[R, D_y]` float64, NaN = missing.
        covariates: `[R, D_c]` float64.
        observed: `[R]` bool, True where no value is missing.
        last_observed_row: `[R, D_y]` int64: the last row up to each row, of the same series, with
            a value in the column; -1 for none.

    Raises:
        ValueError: no series, names that come twice, or columns, covariates or units of time that
            differ.
    """

    def __init__(self, series: Series | Iterable[Series]) -> None:
        self.series = (series,) if isinstance(series, Series) else tuple(series)
        if not self.series:
            raise ValueError("`series` must hold at least one series. Received: none")
        self._check_alike()
        sizes = [one.num_rows for one in self.series]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.time = self._joined([one.time for one in self.series])
        self.values = self._joined([one.values for one in self.series])
        self.covariates = self._joined([one.known for one in self.series])
        self.observed = self._joined([one.observed for one in self.series])
        last = [
            one.last_observed_row
            if not start
            else np.where(one.last_observed_row < 0, -1, one.last_observed_row + start)
            for one, start in zip(self.series, self.offsets[:-1], strict=True)
        ]
        self.last_observed_row = self._joined(last)

    def _check_alike(self) -> None:
        first = self.series[0]
        names = [one.name for one in self.series]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"`series` must have different names. Received: {twice!r} twice")
        for one in self.series[1:]:
            for what in ("target_columns", "covariate_columns", "time_unit"):
                here, there = getattr(first, what), getattr(one, what)
                if here != there:
                    raise ValueError(
                        f"`series` must have the same `{what}`. Received: {here!r} in "
                        f"{first.name!r} and {there!r} in {one.name!r}"
                    )

    @staticmethod
    def _joined(parts: list[np.ndarray]) -> np.ndarray:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def num_series(self) -> int:
        """G."""
        return len(self.series)

    @property
    def num_rows(self) -> int:
        """R, of all series together."""
        return int(self.offsets[-1])

    @property
    def num_columns(self) -> int:
        """D_y."""
        return self.series[0].num_columns

    @property
    def num_covariates(self) -> int:
        """D_c."""
        return len(self.series[0].covariate_columns)

    @property
    def time_unit(self) -> str | None:
        """The unit of `time`, see `Series`."""
        return self.series[0].time_unit

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the series."""
        return tuple(one.name for one in self.series)

    def series_of(self, rows: Any) -> np.ndarray:
        """Tells which series rows belong to: int64 from 0 to G - 1, of the shape of `rows`."""
        return np.searchsorted(self.offsets, np.asarray(rows), side="right") - 1

    def stamps(self, rows: Any) -> pd.Index:
        """Gives the stamps of rows `[n]` of one series, as they came."""
        rows = np.asarray(rows)
        place = int(self.series_of(rows[0])) if len(rows) else 0
        return self.series[place].stamps[rows - self.offsets[place]]

    def time_label(self, row: int) -> str:
        """Names a row by its series and its instant, the same for every table that holds it."""
        place = int(self.series_of(row))
        one = self.series[place]
        return f"{one.name}|{one.time_label(int(row - self.offsets[place]))}"


def as_panel(data: "Panel | Series | Iterable[Series]") -> Panel:
    """Makes a panel of what may be one already."""
    return data if isinstance(data, Panel) else Panel(data)
