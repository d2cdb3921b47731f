"""Scaling of x and y in windows: what is measured on the training part, every formula."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from taylorformer.data_wrangler.checks import check_choice, listed
from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.scaled_support import FURTHEST
from taylorformer.data_wrangler.tables.seasons import NUM_PERIODS, season_phases
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, WindowSpec, panel_window_starts
from taylorformer.data_wrangler.tables.stamps import NANOSECONDS
from taylorformer.data_wrangler.tables.training_statistics import (
    measure_covariates,
    measure_panel,
    standardized_covariates,
)
from taylorformer.data_wrangler.tables.value_support import SupportTransform, ValueSupport
from taylorformer.data_wrangler.user_warnings import warn_user

SCALINGS = ("window", "standard")

# The middles of 400 equal parts of a standard normal distribution.
_QUANTILES = ndtri((np.arange(400) + 0.5) / 400)


@dataclasses.dataclass(frozen=True, eq=False)
class ValueScaling:
    """How the values of B windows become y, and y becomes values; made by `WindowScaler`.

    Attributes:
        reference: `[B, D_y]` float64, what y is relative to: in user units, or as z of the
            transform.
        spread: `[B, D_y]` float64, what y is divided by.
        ops: the array functions for what these are, arrays of NumPy or tensors.
        transform: of values to z, where the support of a column is not all real numbers; its
            softness is `[B, 1, D_y]`. None: z is the value.
    """

    reference: Any
    spread: Any
    ops: ArrayOps
    transform: SupportTransform | None = None

    def scale(self, values: Any) -> Any:
        """Returns y `[..., B, N, D_y]` of values in user units; NaN stays NaN."""
        if self.transform is not None:
            values = self.transform.to_real(values)
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
        """Returns values `[..., B, N, D_y]` float64, in user units, of samples of y."""
        y = self.ops.cast(y, "float64") * self.spread[:, np.newaxis]
        y = y + self.reference[:, np.newaxis]
        return y if self.transform is None else self.transform.to_values(y)

    def inverse_moments(self, mean: Any, scale: Any) -> tuple[Any, Any]:
        """Returns mean and standard deviation, in user units, of normal distributions of y.

        Args:
            mean: `[B, N, D_y]`.
            scale: `[B, N, D_y]`, standard deviations.

        Returns:
            `[B, N, D_y]` float64 both. With a support they are those of the transformed
            distribution, averaged over 400 of its quantiles (arrays of NumPy only).
        """
        mean, scale = (self.ops.cast(one, "float64") for one in (mean, scale))
        if self.transform is None:
            return self.inverse(mean), scale * self.spread[:, np.newaxis]
        middle = self.inverse(mean)
        first, second = np.zeros_like(middle), np.zeros_like(middle)
        # One quantile after the other, to hold few of them.
        for quantile in _QUANTILES:
            distance = self.inverse(mean + scale * quantile) - middle
            first += distance / len(_QUANTILES)
            second += np.square(distance) / len(_QUANTILES)
        return middle + first, np.sqrt(np.maximum(second - np.square(first), 0.0))

    @property
    def parts(self) -> Any:
        """The support of y as a batch carries it, `[B, D_y, 6]` float64; see `ScaledSupport`.

        Raises:
            ValueError: the support is all real numbers.
        """
        if self.transform is None:
            raise ValueError("`transform` must be there for a support. Received: None")
        transform, nothing = self.transform, 0.0 * self.spread
        parts = (
            self.reference,
            self.spread,
            transform.softness[:, 0],
            transform.lower,
            transform.upper,
            np.where(transform.integer, 1.0, 0.0),
        )
        return self.ops.stack([part + nothing for part in parts])

    def inverse_log_prob(self, log_prob: Any, values: Any, observed: Any) -> Any:
        """Returns log densities of values in user units.

        Args:
            log_prob: `[B]`, of y, in nats, summed over D_y and the observed targets.
            values: `[B, N_T, D_y]`, the true values in user units.
            observed: `[B, N_T]` bool, which of them are scored.

        Returns:
            `[B]` float64: with the logarithm of the Jacobian, which without a support is the number
            of observed targets times the sum of `-log(spread)`. Of whole numbers log probabilities
            are returned, which have no unit and no Jacobian.
        """
        log_prob = self.ops.cast(log_prob, "float64")
        log_spread = self.ops.log(self.spread)
        if self.transform is None:
            num_targets = self.ops.total(self.ops.cast(observed, "float64"))
            return log_prob - num_targets * self.ops.total(log_spread)
        factor = self.transform.log_density_factor(values, log_spread[:, np.newaxis])
        factor = self.ops.total(factor)
        # What is not scored may be missing, and must not make the sum NaN.
        return log_prob + self.ops.total(self.ops.where(observed, factor, np.float64(0)))

    def inverse_nll(self, nll: Any, values: Any, observed: Any) -> Any:
        """Returns the same for negative log densities for each observed target, `[B]`."""
        if self.transform is None:
            return self.ops.cast(nll, "float64") + self.ops.total(self.ops.log(self.spread))
        count = self.ops.total(self.ops.cast(observed, "float64"))
        return -self.inverse_log_prob(-nll * count, values, observed) / count


@dataclasses.dataclass(frozen=True, eq=False)
class WindowScaler:
    """Scales time, covariates and values of windows to what a model reads, and back.

    `x = (t - t_last) / half_span + 2 (N_C - 1) / (N - 1) - 1` with t_last the time of the last
    context row: uneven spacing is kept, and an even grid becomes the even grid on [-1, 1].
    Covariates are standardised. Seasons add cos and sin of where in each of them a row is, see
    `season_phases`, counted from the time 0 of `Series` (1970 for dates). `y = (value - reference)
    / spread`; the reference is

    - scaling "window": for each window and column the last value observed in the context, or
      `center` where the context has none; for series that drift;
    - scaling "standard": `center`.

    Where the support of a column is not all real numbers, all of that is measured on z of the
    values, see `value_support`, and `y = (z - reference) / spread`.

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
            square. Of a series that is constant in training 1e-9 of its value; where all values are
            0 the median of the spreads of the other series, or 1. At least 1/2 for whole numbers.
        covariate_center: `[D_c]`, the mean over all training parts.
        covariate_spread: `[D_c]`, the standard deviation; for a covariate that does not change, its
            size, or 1 where it is 0.
        softness: `[G, D_y]`, s of the support, in user units: the spread of the values, at least 1
            for whole numbers and at most the distance of the bounds. Not read without a support.
        time_unit: the unit of `half_span` and `periods`, see `Series`.
        support: which values the columns can have. None: all real numbers.
        periods: the lengths of up to 3 seasons; empty: x has no time features.
    """

    spec: WindowSpec
    scaling: str
    half_span: float
    names: tuple[str, ...]
    center: np.ndarray
    spread: np.ndarray
    covariate_center: np.ndarray
    covariate_spread: np.ndarray
    softness: np.ndarray
    time_unit: str | None = None
    support: ValueSupport | None = None
    periods: tuple[float, ...] = ()

    @classmethod
    def fit(
        cls,
        data: Panel | Series | Iterable[Series],
        spec: WindowSpec,
        num_train_rows: int | Sequence[int],
        scaling: str = "window",
        support: ValueSupport | None = None,
        periods: Sequence[float] = (),
    ) -> "WindowScaler":
        """Measures the training part; later rows are not read.

        A warning names the series whose values move less than 64-bit numbers of their size can
        tell apart.

        Args:
            data: G series.
            spec: N_C and N_T.
            num_train_rows: how many of the first rows are the training part; a number for each
                series, or one for all.
            scaling: "window" or "standard".
            support: which values the columns can have. None: all real numbers.
            periods: the lengths of the seasons in x, in the unit of time; up to 3.

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
        if support is not None and support.is_everything:
            support = None
        nothing = np.empty([0, panel.num_columns])
        blank = cls(
            spec,
            scaling,
            float(np.median(spans)) / 2,
            names=(),
            center=nothing,
            spread=nothing,
            covariate_center=covariate_center,
            covariate_spread=covariate_spread,
            softness=nothing,
            time_unit=panel.time_unit,
            support=support,
            periods=tuple(periods),
        )
        return blank._with(panel.series, [int(end) for end in ends])

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
        return self._with(new, ends)

    def _with(self, series: Sequence[Series], ends: Sequence[int]) -> "WindowScaler":
        support = self.support or ValueSupport.everything(self.num_columns)
        new = measure_panel(series, ends, self.spec, self.scaling, support, self.softness)
        _warn_of_rounding(series, new.is_rounding)
        return dataclasses.replace(
            self,
            names=(*self.names, *(one.name for one in series)),
            center=np.concatenate([self.center, new.center]),
            spread=np.concatenate([self.spread, new.spread]),
            softness=np.concatenate([self.softness, new.softness]),
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
        return dataclasses.replace(
            self,
            half_span=self.half_span * factor,
            periods=tuple(period * factor for period in self.periods),
            time_unit=time_unit,
        )

    @property
    def num_columns(self) -> int:
        """D_y, the number of target columns."""
        return self.spread.shape[1]

    @property
    def num_covariates(self) -> int:
        """D_c, the number of covariates."""
        return len(self.covariate_center)

    @property
    def num_x(self) -> int:
        """D_x: the time, D_c covariates, and cos and sin of each season."""
        return 1 + self.num_covariates + 2 * len(self.periods)

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
            `[B, N, D_x]` float32: the time, the covariates, and for each of P seasons cos and sin,
            so D_x = 1 + D_c + 2 P. Times are subtracted in 64 bits first.
        """
        elapsed = ops.cast(time - origin[:, np.newaxis], "float64")
        x = elapsed / self.half_span + self.x_of_last_context
        x = ops.cast(x, "float32")[..., np.newaxis]
        if self.num_covariates:
            covariates = standardized_covariates(
                covariates, self.covariate_center, self.covariate_spread
            )
            x = ops.join(x, ops.cast(covariates, "float32"))
        if self.periods:
            padded = np.array([[*self.periods, *[0.0] * (NUM_PERIODS - len(self.periods))]])
            phases = season_phases(ops.cast(time, "float64"), padded, ops)
            x = ops.join(x, phases[..., : 2 * len(self.periods)])
        return x

    def value_scaling(
        self,
        center: Any,
        spread: Any,
        softness: Any,
        last_value: Any,
        has_value: Any,
        ops: ArrayOps = NUMPY_OPS,
    ) -> ValueScaling:
        """Returns the scaling of the values of B windows.

        Args:
            center: `[B, D_y]`, the rows of `center` for the series of each window.
            spread: `[B, D_y]`, those of `spread`.
            softness: `[B, D_y]`, those of `softness`; not read without a support.
            last_value: `[B, D_y]`, the last value observed in each context, in user units.
            has_value: `[B, D_y]` bool, False where a context has no observed value.
            ops: the array functions for what the arguments are.
        """
        transform = None
        if self.support is not None:
            transform = SupportTransform.of(self.support, softness[:, np.newaxis], ops)
            last_value = transform.to_real(last_value[:, np.newaxis])[:, 0]
        reference = center
        if self.scaling == "window":
            reference = ops.where(has_value, last_value, center)
        return ValueScaling(reference, spread, ops, transform)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this scaler, ready for JSON."""
        config = {
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
        if self.support is not None:
            config["support"] = self.support.get_config()
            config["softness"] = self.softness.tolist()
        if self.periods:
            config["periods"] = list(self.periods)
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "WindowScaler":
        """Makes a scaler from the dictionary returned by `get_config`."""
        support = config.get("support")
        return cls(
            WindowSpec(config["context_length"], config["horizon"]),
            config["scaling"],
            float(config["half_span"]),
            tuple(config["names"]),
            np.asarray(config["center"], np.float64),
            np.asarray(config["spread"], np.float64),
            np.asarray(config["covariate_center"], np.float64),
            np.asarray(config["covariate_spread"], np.float64),
            # Without a support it is the spread, and not in the file.
            np.asarray(config.get("softness", config["spread"]), np.float64),
            config["time_unit"],
            None if support is None else ValueSupport.from_config(support),
            tuple(config.get("periods", ())),
        )


def _warn_of_rounding(series: Sequence[Series], is_rounding: np.ndarray) -> None:
    names = [
        f"`{column}` of {one.name!r}" if one.name else f"`{column}`"
        for one, row in zip(series, is_rounding, strict=True)
        for column, rounds in zip(one.target_columns, row, strict=True)
        if rounds
    ]
    if names:
        warn_user(
            f"values move less than 64-bit numbers of their size can tell apart: {listed(names)}. "
            "What is forecast there is rounding; subtract the level from the table first"
        )
