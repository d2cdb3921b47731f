"""What models of fixed lengths on an even grid can read of a table, and errors that name the row.

The models check their batches as well, whose rows have neither stamps nor names.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from taylorformer.comparison_models.even_grid import LARGEST_STEP_ERROR
from taylorformer.data_wrangler.tables.odd_series import OddSeries
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.season_spans import span_text_of
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.stamps import median_step
from taylorformer.training_and_evaluation.forecasting.left_out import check_some

# Steps that are equal up to the rounding of 64-bit numbers need no look at each window.
_ROUNDING = 1e-9
# Windows are looked at in pieces of about so many times.
_PIECE = 2**22


@dataclasses.dataclass(frozen=True)
class FixedWindows:
    """The windows that a model of fixed lengths can read.

    Attributes:
        class_name: of the model.
        spec: N_C and N_T.
        interpolate: whether the model interpolates uneven and missing rows.
    """

    class_name: str
    spec: WindowSpec
    interpolate: bool

    def check_horizon(self, horizon: int | None) -> None:
        """Refuses another horizon than that of training.

        Raises:
            ValueError: it is another one.
        """
        if horizon not in (None, self.spec.horizon):
            raise ValueError(
                f"`horizon` must be that of training, {self.spec.horizon}, for {self.class_name}, "
                f"which has fixed lengths. Received: horizon={horizon}"
            )

    def check(self, panel: Panel, starts: np.ndarray) -> None:
        """Checks windows of a panel.

        Args:
            panel: G series.
            starts: `[B]`, the first rows of the windows.

        Raises:
            ValueError: stamps at uneven steps, or a context row without a value; the first one is
                named.
        """
        number = panel.series_of(starts)
        for index in np.unique(number):
            series = panel.series[index]
            mine = starts[number == index] - panel.offsets[index]
            fault = self._fault(series, mine)
            if fault is not None:
                raise self._error("data", fault.text)

    def leave_out_short(self, odd: OddSeries, panel: Panel) -> None:
        """Leaves out the series with fewer rows than a context has.

        Raises:
            ValueError: no series is left.
        """
        need = f"context_length = {self.spec.context_length} rows"
        short = [one.name for one in panel.series if one.num_rows < self.spec.context_length]
        odd.leave_out(short, f"fewer than {need}, which {self.class_name} always reads")
        check_some(odd.kept(panel), odd, "can be forecast")

    def leave_out_uneven(
        self, odd: OddSeries, panel: Panel, longer: Mapping[str, Series], has_future: bool
    ) -> None:
        """Leaves out the series whose context is not on an even grid with its targets.

        Args:
            odd: series that cannot be read are added.
            panel: the table.
            longer: the series with the rows to predict, by their names.
            has_future: whether the user named the rows to predict.

        Raises:
            ValueError: rows to predict that the user named are too few or too many, or not on the
                grid; or no series is left.
        """
        for one in odd.kept(panel):
            with_targets = longer[one.name]
            if has_future and with_targets.num_rows - one.num_rows != self.spec.horizon:
                of = f" for series {one.name!r}" if one.name else ""
                raise ValueError(
                    f"`future` must have horizon = {self.spec.horizon} rows{of}, for "
                    f"{self.class_name}, which has fixed lengths. "
                    f"Received: {with_targets.num_rows - one.num_rows} rows"
                )
            start = np.array([with_targets.num_rows - self.spec.length])
            fault = self._fault(with_targets, start)
            if fault is None:
                continue
            if has_future and fault.row >= one.num_rows:
                raise self._error("future", fault.text)
            if panel.num_series == 1:
                raise self._error("data", fault.text)
            odd.leave_out([one.name], f"not what {self.class_name} reads: {fault.reason}")
        check_some(odd.kept(panel), odd, "can be forecast")

    def _error(self, name: str, received: str) -> ValueError:
        return ValueError(
            f"`{name}` must have even steps and a value in every row of a context for "
            f"{self.class_name}, unless it is trained with `interpolate=True` "
            f"(`--interpolate`). Received: {received}"
        )

    def _fault(self, series: Series, starts: np.ndarray) -> "_Fault | None":
        if self.interpolate:
            return None
        return min(
            (one for one in (self._uneven(series, starts), self._missing(series, starts)) if one),
            key=lambda fault: fault.row,
            default=None,
        )

    def _missing(self, series: Series, starts: np.ndarray) -> "_Fault | None":
        rows = _covered(series.num_rows, starts, self.spec.context_length) & ~series.observed
        if not rows.any():
            return None
        row = int(rows.argmax())
        absent = np.isnan(series.values[row])
        column = series.target_columns[int(absent.argmax())]
        return _Fault(series, row, f"no value of `{column}` at {series.stamps[row]}")

    def _uneven(self, series: Series, starts: np.ndarray) -> "_Fault | None":
        pairs = np.flatnonzero(_covered(series.num_rows, starts, self.spec.length - 1)[:-1])
        steps = (series.time[pairs + 1] - series.time[pairs]).astype(np.float64)
        step = float(median_step(steps))
        errors = np.abs(steps / step - 1)
        if errors.max() > LARGEST_STEP_ERROR:
            row = int(pairs[(errors > LARGEST_STEP_ERROR).argmax()]) + 1
        elif errors.max() > _ROUNDING:
            off_grid = self._off_grid(series, starts)
            if off_grid is None:
                return None
            row = off_grid
        else:
            return None
        spans = float(series.time[row] - series.time[row - 1]), step
        here, usual = (span_text_of(span, series.time_unit) for span in spans)
        text = (
            f"{series.stamps[row]}, {here} after the row before it, where a usual step is {usual}"
        )
        return _Fault(series, row, text)

    def _off_grid(self, series: Series, starts: np.ndarray) -> int | None:
        """Returns the first row that is too far from the even grid of its window."""
        length = self.spec.length
        shares = np.arange(length) / (length - 1)
        piece = max(_PIECE // length, 1)
        for first in range(0, len(starts), piece):
            some = np.sort(starts)[first : first + piece]
            time = series.time[some[:, np.newaxis] + np.arange(length)]
            elapsed = (time - time[:, :1]).astype(np.float64)
            span = elapsed[:, -1:]
            errors = np.abs(elapsed - span * shares) * (length - 1) / span
            far = errors.max(axis=1) > LARGEST_STEP_ERROR
            if far.any():
                window = int(far.argmax())
                return int(some[window] + errors[window].argmax())
        return None


@dataclasses.dataclass(frozen=True)
class _Fault:
    """A row that cannot be read.

    Attributes:
        series: its series.
        row: its number in the series.
        reason: what is wrong with it.
    """

    series: Series
    row: int
    reason: str

    @property
    def text(self) -> str:
        """The reason, with the name of the series if it has one."""
        return f"{self.reason} in series {self.series.name!r}" if self.series.name else self.reason


def _covered(num_rows: int, starts: np.ndarray, length: int) -> np.ndarray:
    """Returns which rows `[T]` are among the first `length` ones of a window."""
    change = np.zeros(num_rows + 1, np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, np.asarray(starts) + length, -1)
    return np.cumsum(change[:-1]) > 0
