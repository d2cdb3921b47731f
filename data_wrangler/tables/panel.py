"""The panel: several series with the same columns as one object, for windows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.series import Series


class Panel:
    """G series with the same columns, one below the other in one array of R rows.

    For a single series the arrays are those of the series, not copies.

    Example:
        >>> from taylorformer.data_wrangler import Columns, split_table
        >>> table = pd.DataFrame({"shop": ["a", "b", "a"], "day": [1, 1, 2], "sales": [5, 6, 7]})
        >>> columns = Columns("day", ("sales",), "shop")
        >>> panel = Panel(split_table(table, columns))
        >>> panel.names, panel.offsets.tolist(), panel.values[:, 0].tolist()
        (('a', 'b'), [0, 2, 3], [5.0, 7.0, 6.0])

    Args:
        series: one `Series`, or several with the same columns and different names.

    Attributes:
        series: the G series.
        offsets: `[G + 1]` int64; rows `offsets[g]` to `offsets[g + 1] - 1` are those of series g.
        time: `[R]`, see `Series`; increasing within each series.
        values: `[R, D_y]` float64, NaN = missing.
        covariates: `[R, D_c]` float64.
        observed: `[R]` bool, True where no column is missing.
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
        self.covariates = self._joined([one.covariate_values for one in self.series])
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
            for attribute in ("target_columns", "covariate_columns", "time_unit"):
                expected, received = getattr(first, attribute), getattr(one, attribute)
                if expected != received:
                    raise ValueError(
                        f"`series` must have the same `{attribute}`. Received: {expected!r} in "
                        f"{first.name!r} and {received!r} in {one.name!r}"
                    )

    @staticmethod
    def _joined(parts: list[np.ndarray]) -> np.ndarray:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def num_series(self) -> int:
        """G, the number of series."""
        return len(self.series)

    @property
    def num_rows(self) -> int:
        """R, the number of rows of all series together."""
        return int(self.offsets[-1])

    @property
    def num_columns(self) -> int:
        """D_y, the number of target columns."""
        return self.series[0].num_columns

    @property
    def num_covariates(self) -> int:
        """D_c, the number of covariates."""
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
        """Returns the number of the series of each row: int64 from 0 to G - 1, shaped as `rows`."""
        return np.searchsorted(self.offsets, np.asarray(rows), side="right") - 1

    def stamps(self, rows: Any) -> pd.Index:
        """Returns the stamps of rows `[n]` of one series, as they are in its table."""
        rows = np.asarray(rows)
        number = int(self.series_of(rows[0])) if len(rows) else 0
        return self.series[number].stamps[rows - self.offsets[number]]

    def time_label(self, row: int) -> str:
        """Returns a name for a row, of its series and its instant: the same in every table."""
        number = int(self.series_of(row))
        series = self.series[number]
        return f"{series.name}|{series.time_label(int(row - self.offsets[number]))}"


def as_panel(data: "Panel | Series | Iterable[Series]") -> Panel:
    """Returns `data` if it is a panel, else a panel of its series."""
    return data if isinstance(data, Panel) else Panel(data)
