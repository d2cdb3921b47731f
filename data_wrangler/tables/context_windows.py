"""Windows of tables for a pretrained model: everything is measured on the context of each."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.context_scaler import ContextScaler
from taylorformer.data_wrangler.tables.covariate_scaling import NO_COVARIATES, CovariateScaling
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.panel_windows import PanelWindows, as_row_numbers
from taylorformer.data_wrangler.tables.scaler import ValueScaling
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.value_support import ValueSupport

Periods = Callable[[int, int], np.ndarray]
"""Returns the periods `[3]` of a series in units of its time, 0 = none, given its number in the
panel and how many of its rows may be read."""


class ContextWindows(PanelWindows):
    """The windows of one or several series, as batches for a model that was trained on others.

    A context may begin before its series: such rows are masked. So series of any length are in one
    batch, and the first row of a window, by which it is identified, is its first target less N_C.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"day": range(6), "load": [0.0, 10, 0, 10, 0, 10]})
        >>> series = Series.from_frame(table, "day", "load")
        >>> windows = ContextWindows(series, WindowSpec(8, 2), lambda number, rows: np.zeros(3))
        >>> inputs, y_target = windows.batch([-4])
        >>> inputs["context_mask"].sum(), inputs["x_target"].shape, y_target.ravel().tolist()
        (np.int64(4), (1, 2, 7), [-1.0, 1.0])

    Args:
        data: G series of one column.
        spec: N_C and N_T.
        periods: of the seasons.
        support: which values the column can have. None: all real numbers.
        covariates: how those of the series are scaled; they are further dimensions of x.
        num_read: so many of the last context rows are read, those before are masked. None: all.

    Raises:
        ValueError: several columns, or another number of covariates.
    """

    def __init__(
        self,
        data: Panel | Series | Iterable[Series],
        spec: WindowSpec,
        periods: Periods,
        support: ValueSupport | None = None,
        covariates: CovariateScaling = NO_COVARIATES,
        num_read: int | None = None,
    ) -> None:
        panel = as_panel(data)
        if panel.num_columns != 1 or panel.num_covariates != covariates.num_covariates:
            raise ValueError(
                f"`data` must be series of one column with {covariates.num_covariates} covariates. "
                f"Received: {panel.num_columns} columns, {panel.num_covariates} covariates"
            )
        if support is not None and support.is_everything:
            support = None
        super().__init__(panel, spec, support)
        self.covariates = covariates
        self.num_read = spec.context_length if num_read is None else num_read
        self._scaler = ContextScaler(support, covariates)
        self._periods = periods
        self._periods_of: dict[tuple[int, int], np.ndarray] = {}

    def context_rows(self, starts: Any) -> np.ndarray:
        """Returns the rows of the context, `[B, N_C]` int64.

        In front of those that are read the first of them is repeated.
        """
        starts = self._check_starts(starts)
        rows = starts[:, np.newaxis] + np.arange(self.spec.context_length)
        return np.maximum(rows, self._first_rows(starts)[:, np.newaxis])

    def periods(self, starts: Any) -> np.ndarray:
        """Returns the periods of the seasons of each window, `[B, 3]`, in units of time."""
        first_targets = self._check_starts(starts) + self.spec.context_length
        numbers = self.panel.series_of(first_targets)
        counts = first_targets - self.panel.offsets[numbers]
        keys = [(int(number), int(count)) for number, count in zip(numbers, counts, strict=True)]
        for key in keys:
            if key not in self._periods_of:
                self._periods_of[key] = self._periods(*key)
        return np.stack([self._periods_of[key] for key in keys])

    def batch(self, starts: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes one batch, see `PanelWindows`."""
        starts = self._check_starts(starts)
        rows = np.concatenate([self.context_rows(starts), self.target_rows(starts)], axis=1)
        first_target = rows[:, self.spec.context_length]
        # Differences are exact before they become floating point.
        time = (self.panel.time[rows] - self.panel.time[first_target][:, np.newaxis]).astype(
            np.float64
        )
        observed = self.panel.observed[rows]
        observed[:, : self.spec.context_length] = self._observed_context(starts)
        inputs, _ = self._scaler.batch(
            time,
            self.panel.values[rows],
            observed,
            self.spec.context_length,
            self.periods(starts),
            covariates=self.panel.covariates[rows],
        )
        y_target = inputs.pop("y_target")
        return inputs, y_target

    def _scaling(self, starts: Any) -> ValueScaling:
        starts = self._check_starts(starts)
        values = self.panel.values[self.context_rows(starts)]
        return self._scaler.value_scaling(values, self._observed_context(starts))

    def _observed_context(self, starts: np.ndarray) -> np.ndarray:
        """Returns which context rows are read and have a value, `[B, N_C]`."""
        rows = self.context_rows(starts)
        is_row = starts[:, np.newaxis] + np.arange(self.spec.context_length) == rows
        observed: np.ndarray = self.panel.observed[rows] & is_row
        return observed

    def _first_rows(self, starts: np.ndarray) -> np.ndarray:
        """Returns the first row that is read of each window, `[B]`."""
        first_targets = starts + self.spec.context_length
        offsets = self.panel.offsets[self.panel.series_of(first_targets)]
        return np.maximum(offsets, first_targets - self.num_read)

    def _check_starts(self, starts: Any) -> np.ndarray:
        starts = as_row_numbers(starts)
        first = starts + self.spec.context_length
        last = starts + self.spec.length - 1
        if first.min() < 0 or last.max() >= self.panel.num_rows:
            raise ValueError(
                f"`starts` must be first rows of windows whose targets are rows 0 to "
                f"{self.panel.num_rows - 1}. Received: targets from {first.min()} to {last.max()}"
            )
        numbers = self.panel.series_of(first)
        crosses = numbers != self.panel.series_of(last)
        if crosses.any():
            raise ValueError(
                "`starts` must be first rows of windows whose targets are in one series. Received: "
                f"row {starts[crosses.argmax()]}, whose last target is in the next series"
            )
        empty = first == self.panel.offsets[numbers]
        if empty.any():
            raise ValueError(
                "`starts` must be first rows of windows with at least one context row. Received: "
                f"row {starts[empty.argmax()]}, whose first target is the first row of its series"
            )
        return starts
