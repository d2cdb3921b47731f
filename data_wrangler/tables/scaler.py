"""Scaling of x and y in windows: what is measured on the training part, every formula."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_choice
from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, WindowSpec, panel_window_starts
from taylorformer.data_wrangler.tables.stamps import NANOSECONDS
from taylorformer.data_wrangler.tables.training_statistics import measure_covariates, measure_series

SCALINGS = ("window", "standard")
FURTHEST = 1e12
"""The largest scaled y: what lies further away counts as that far, so that its square still fits in
float32."""


@dataclasses.dataclass(frozen=True, eq=False)
class ValueScaling:
    """How the values of B windows become y, and y becomes values; made by `WindowScaler`.

    Attributes:
        reference: `[B, D_y]` float64, what y is relative to, in user units.
        spread: `[B, D_y]` float64, what y is divided by, in user units.
        ops: the array functions for what these are, arrays of NumPy or tensors.
    """

    reference: Any
    spread: Any
    ops: ArrayOps

    def scale(self, values: Any) -> Any:
        """Returns y `[..., B, N, D_y]` of values in user units; NaN stays NaN."""
        return (values - self.reference[:, np.newaxis]) / self.spread[:, np.newaxis]

    def model_input(self, values: Any, observed: Any) -> Any:
        """Returns y as a model reads it: float32, within `FURTHEST`, 0 in rows to be masked.

        Args:
            values: `[B, N, D_y]`, in user units.
            observed: `[B, N]` bool, False for rows with a missing value.
        """
        y = self.ops.clip(self.scale(values), -FURTHEST, FURTHEST)
        y = self.ops.cast(y, "float32")
        return self.ops.where(observed[..., np.newaxis], y, np.float32(0))

    def inverse(self, y: Any) -> Any:
        """Returns values `[..., B, N, D_y]` float64, in user units, of means or samples of y."""
        return self.inverse_scale(y) + self.reference[:, np.newaxis]

    def inverse_scale(self, scale: Any) -> Any:
        """Returns standard deviations `[..., B, N, D_y]` float64, in user units, of those of y."""
        return self.ops.cast(scale, "float64") * self.spread[:, np.newaxis]

    def inverse_log_prob(self, log_prob: Any, num_targets: Any) -> Any:
        """Returns log densities of values in user units.

        Args:
            log_prob: `[B]`, of y, in nats, summed over D_y and the observed targets.
            num_targets: `[B]`, the number of observed targets.

        Returns:
            `[B]` float64: less the logarithm of the Jacobian, which is `num_targets` times the sum
            of `log(spread)`.
        """
        log_jacobian = self.ops.cast(num_targets, "float64") * self._log_spread()
        return self.ops.cast(log_prob, "float64") - log_jacobian

    def inverse_nll(self, nll: Any) -> Any:
        """Returns the same for negative log densities for each observed target, `[B]`."""
        return self.ops.cast(nll, "float64") + self._log_spread()

    def _log_spread(self) -> Any:
        return self.ops.total(self.ops.log(self.spread))


@dataclasses.dataclass(frozen=True, eq=False)
class WindowScaler:
    """Scales time, covariates and values of windows to what a model reads, and back.

    `x = (t - t_last) / half_span + 2 (N_C - 1) / (N - 1) - 1` with t_last the time of the last
    context row: uneven spacing is kept, and an even grid becomes the even grid on [-1, 1].
    Covariates are standardised. `y = (value - reference) / spread`; the reference is

    - scaling "window": for each window and column the last value observed in the context, or
      `center` where the context has none; for series that drift;
    - scaling "standard": `center`.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"day": range(6), "load": [0.0, 10, 0, 10, 0, 10]})
        >>> series = Series.from_frame(table, "day", "load")
        >>> scaler = WindowScaler.fit(series, WindowSpec(2, 1), 6, scaling="standard")
        >>> scaler.half_span, scaler.center.tolist(), scaler.spread.tolist()
        (1.0, [[5.0]], [[5.0]])

    Attributes:
        spec: N_C and N_T of training.
        scaling: "window" or "standard".
        half_span: half the median time from the first to the last row of a training window.
        names: the names of the G series.
        center: `[G, D_y]`, the mean of the training part.
        spread: `[G, D_y]`, positive. For "standard" the standard deviation of the training part.
            For "window" how far targets lie from the reference: the 95 % quantile of the distance,
            divided by 1.96. That is the standard deviation of a normal distribution, and a few
            outliers do not change it. Where more than 95 % of the distances are 0, their root mean
            square. Never below 1e-9 of the largest training value (1 where all are 0).
        covariate_center: `[D_c]`, the mean over all training parts.
        covariate_spread: `[D_c]`, the standard deviation; for a covariate that does not change, its
            size, or 1 where it is 0.
        time_unit: the unit of `half_span`, see `Series`.
    """

    spec: WindowSpec
    scaling: str
    half_span: float
    names: tuple[str, ...]
    center: np.ndarray
    spread: np.ndarray
    covariate_center: np.ndarray
    covariate_spread: np.ndarray
    time_unit: str | None = None

    @classmethod
    def fit(
        cls,
        data: Panel | Series | Iterable[Series],
        spec: WindowSpec,
        num_train_rows: int | Sequence[int],
        scaling: str = "window",
    ) -> "WindowScaler":
        """Measures the training part; later rows are not read.

        Args:
            data: G series.
            spec: N_C and N_T.
            num_train_rows: how many of the first rows are the training part; a number for each
                series, or one for all.
            scaling: "window" or "standard".

        Raises:
            ValueError: no training part holds a window, or a column of one holds no value.
        """
        check_choice("scaling", scaling, SCALINGS)
        panel = as_panel(data)
        ends = np.broadcast_to(np.asarray(num_train_rows, np.int64), [panel.num_series])
        splits = [Split(int(end), int(end), int(end)) for end in ends]
        starts = panel_window_starts(panel, splits, spec, "training")
        spans = panel.time[starts + spec.length - 1] - panel.time[starts]
        covariates = np.concatenate(
            [one.covariate_values[:end] for one, end in zip(panel.series, ends, strict=True)]
        )
        covariate_center, covariate_spread = measure_covariates(covariates)
        measured = [
            measure_series(one, int(end), spec, scaling)
            for one, end in zip(panel.series, ends, strict=True)
        ]
        return cls(
            spec,
            scaling,
            float(np.median(spans)) / 2,
            panel.names,
            np.stack([center for center, _ in measured]),
            np.stack([spread for _, spread in measured]),
            covariate_center,
            covariate_spread,
            panel.time_unit,
        )

    def with_series(
        self,
        data: Panel | Series | Iterable[Series],
        num_train_rows: Mapping[str, int] | None = None,
    ) -> "WindowScaler":
        """Returns a scaler for further series, too.

        Series that this scaler has already are not measured again.

        Args:
            data: the series.
            num_train_rows: for their names how many of the first rows are measured. None: all that
                they have here.

        Raises:
            ValueError: a column of a further series holds no value.
        """
        names = set(self.names)
        new = [one for one in as_panel(data).series if one.name not in names]
        if not new:
            return self
        ends = [one.num_rows if num_train_rows is None else num_train_rows[one.name] for one in new]
        measured = [
            measure_series(one, end, self.spec, self.scaling)
            for one, end in zip(new, ends, strict=True)
        ]
        return dataclasses.replace(
            self,
            names=(*self.names, *(one.name for one in new)),
            center=np.concatenate([self.center, [center for center, _ in measured]]),
            spread=np.concatenate([self.spread, [spread for _, spread in measured]]),
        )

    def in_unit(self, time_unit: str | None) -> "WindowScaler":
        """Returns the same scaler for times in another unit.

        Raises:
            ValueError: dates where there were numbers, or the other way round.
        """
        if time_unit == self.time_unit:
            return self
        if time_unit is None or self.time_unit is None:
            kinds = ["numbers" if unit is None else "dates" for unit in (self.time_unit, time_unit)]
            raise ValueError(f"time must be {kinds[0]}, as in training. Received: {kinds[1]}")
        factor = NANOSECONDS[self.time_unit] / NANOSECONDS[time_unit]
        return dataclasses.replace(self, half_span=self.half_span * factor, time_unit=time_unit)

    @property
    def num_columns(self) -> int:
        """D_y, the number of target columns."""
        return self.spread.shape[1]

    @property
    def num_covariates(self) -> int:
        """D_c, the number of covariates."""
        return len(self.covariate_center)

    @property
    def x_of_last_context(self) -> float:
        """The scaled time of the last context row, between -1 and 1."""
        return 2 * (self.spec.context_length - 1) / (self.spec.length - 1) - 1

    def scale_x(self, time: Any, origin: Any, covariates: Any, ops: ArrayOps = NUMPY_OPS) -> Any:
        """Scales time and covariates.

        Args:
            time: `[B, N]`, in the units and the type of `Series.time`.
            origin: `[B]`, time of the last context row of each window.
            covariates: `[B, N, D_c]`, in user units.
            ops: the array functions for what the arguments are.

        Returns:
            `[B, N, 1 + D_c]` float32. Times are subtracted in 64 bits first.
        """
        elapsed = ops.cast(time - origin[:, np.newaxis], "float64")
        x = elapsed / self.half_span + self.x_of_last_context
        x = ops.cast(x, "float32")[..., np.newaxis]
        if not self.num_covariates:
            return x
        covariates = (covariates - self.covariate_center) / self.covariate_spread
        return ops.join(x, ops.cast(covariates, "float32"))

    def value_scaling(
        self, center: Any, spread: Any, last_value: Any, has_value: Any, ops: ArrayOps = NUMPY_OPS
    ) -> ValueScaling:
        """Returns the scaling of the values of B windows.

        Args:
            center: `[B, D_y]`, the rows of `center` for the series of each window.
            spread: `[B, D_y]`, those of `spread`.
            last_value: `[B, D_y]`, the last value observed in each context, in user units.
            has_value: `[B, D_y]` bool, False where a context has no observed value.
            ops: the array functions for what the arguments are.
        """
        reference = center
        if self.scaling == "window":
            reference = ops.where(has_value, last_value, center)
        return ValueScaling(reference, spread, ops)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this scaler, ready for JSON."""
        return {
            "context_length": self.spec.context_length,
            "horizon": self.spec.horizon,
            "scaling": self.scaling,
            "half_span": self.half_span,
            "time_unit": self.time_unit,
            "names": list(self.names),
            "center": self.center.tolist(),
            "spread": self.spread.tolist(),
            "covariate_center": self.covariate_center.tolist(),
            "covariate_spread": self.covariate_spread.tolist(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "WindowScaler":
        """Makes a scaler from the dictionary returned by `get_config`."""
        return cls(
            WindowSpec(config["context_length"], config["horizon"]),
            config["scaling"],
            float(config["half_span"]),
            tuple(config["names"]),
            np.asarray(config["center"], np.float64),
            np.asarray(config["spread"], np.float64),
            np.asarray(config["covariate_center"], np.float64),
            np.asarray(config["covariate_spread"], np.float64),
            config["time_unit"],
        )
