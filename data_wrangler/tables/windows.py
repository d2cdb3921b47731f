"""Windows of a series: where they lie, how they are scaled, and how training reads them."""

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_integer, check_number
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.series import NANOSECONDS, Series

if TYPE_CHECKING:
    import tensorflow as tf

PARTS = ("training", "validation", "test")
DEFAULT_FRACTIONS = (0.69, 0.11, 0.20)
SCALINGS = ("window", "standard")
FURTHEST = 1e12
"""The largest scaled y: what lies further away counts as that far."""

# The spread is measured on at most this many training windows, evenly spaced.
_MAX_WINDOWS_FOR_SPREAD = 4096
# The 95 % point of |z| for a standard normal z.
_NORMAL_95 = 1.959963984540054
# A spread below this share of the size of y is rounding, not movement.
_SMALLEST_SPREAD = 1e-9


@dataclasses.dataclass(frozen=True)
class WindowSpec:
    """How many rows a window has.

    Attributes:
        context_length: N_C, rows that are given, at least 1.
        horizon: N_T, rows to predict, at least 1.

    Raises:
        TypeError, ValueError: no integer, or less than 1.
    """

    context_length: int
    horizon: int

    def __post_init__(self) -> None:
        check_integer("context_length", self.context_length, 1)
        check_integer("horizon", self.horizon, 1)

    @property
    def length(self) -> int:
        """N = N_C + N_T."""
        return self.context_length + self.horizon


@dataclasses.dataclass(frozen=True)
class Split:
    """A chronological split of T rows into a training, a validation and a test part.

    Attributes:
        train_end: the row after the last one of the training part.
        validation_end: the row after the last one of the validation part.
        num_rows: T, the row after the last one of the test part.

    Raises:
        ValueError: borders that are not in order.
    """

    train_end: int
    validation_end: int
    num_rows: int

    def __post_init__(self) -> None:
        if not 0 <= self.train_end <= self.validation_end <= self.num_rows:
            raise ValueError(
                "`train_end`, `validation_end` and `num_rows` must be in order. "
                f"Received: {self.train_end}, {self.validation_end}, {self.num_rows}"
            )

    @classmethod
    def chronological(
        cls, num_rows: int, fractions: Sequence[float] = DEFAULT_FRACTIONS
    ) -> "Split":
        """Splits by fractions; each border is rounded down to a whole row.

        Args:
            num_rows: T.
            fractions: the shares of training, validation and test. Their sum is 1.

        Raises:
            ValueError: fractions that are negative or do not add up to 1.
        """
        check_integer("num_rows", num_rows, 0)
        if isinstance(fractions, str) or not isinstance(fractions, Sequence):
            raise TypeError(f"`fractions` must be three shares. Received: fractions={fractions!r}")
        for share in fractions:
            check_number("fractions", share)
        if len(fractions) != len(PARTS) or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
            raise ValueError(
                "`fractions` must be three shares that add up to 1. "
                f"Received: fractions={tuple(fractions)}"
            )
        # 0.69 * 100 is 68.99999999999999 in floating point.
        borders = np.floor(np.cumsum(fractions) * num_rows + 1e-6)
        return cls(int(borders[0]), min(int(borders[1]), num_rows), num_rows)

    def rows(self, part: str) -> range:
        """Gives the rows of a part, one of "training", "validation", "test"."""
        if part not in PARTS:
            raise ValueError(f"`part` must be one of {', '.join(PARTS)}. Received: part={part!r}")
        borders = (0, self.train_end, self.validation_end, self.num_rows)
        place = PARTS.index(part)
        return range(borders[place], borders[place + 1])

    def window_starts(
        self, spec: WindowSpec, part: str, context_inside: bool = False
    ) -> np.ndarray:
        """Gives the first row of every legal window of a part.

        Training windows lie wholly in the training part. Windows of validation and test have all
        their *targets* in their part; their context may reach back into earlier parts.

        Args:
            spec: N_C and N_T.
            part: one of "training", "validation", "test".
            context_inside: the context must lie in the part too, as in the paper's test sets.

        Returns:
            `[number of windows]` int64, increasing.

        Raises:
            ValueError: the part is too short for one window.
        """
        rows = self.rows(part)
        if part == PARTS[0] or context_inside:
            need, wish = spec.length, f"context_length + horizon = {spec.length} rows"
            first = rows.start
        else:
            need, wish = spec.horizon, f"horizon = {spec.horizon} rows"
            first = rows.start - spec.context_length
        if len(rows) < need:
            raise ValueError(
                f"the series must have at least {wish} in the {part} part. Received: {len(rows)}"
            )
        starts = np.arange(max(first, 0), rows.stop - spec.length + 1, dtype=np.int64)
        if not len(starts):
            raise ValueError(
                f"the series must have at least context_length + horizon = {spec.length} rows up "
                f"to the end of the {part} part. Received: {rows.stop}"
            )
        return starts


def panel_window_starts(
    panel: Panel,
    splits: Sequence[Split],
    spec: WindowSpec,
    part: str,
    context_inside: bool = False,
) -> np.ndarray:
    """Gives the first row of every legal window of a part, over all series of a panel.

    A series that is too short for a window has none.

    Args:
        panel: G series.
        splits: G splits, one a series.
        spec: see `Split.window_starts`, as the others.
        part: one of "training", "validation", "test".
        context_inside: the context must lie in the part too.

    Returns:
        `[number of windows]` int64, increasing.

    Raises:
        ValueError: every series is too short.
    """
    starts, longest = [], (-1, ValueError())
    for offset, split in zip(panel.offsets[:-1], splits, strict=True):
        try:
            starts.append(split.window_starts(spec, part, context_inside) + offset)
        except ValueError as error:
            longest = max(longest, (split.num_rows, error), key=lambda pair: pair[0])
    if not starts:
        raise longest[1]
    return np.concatenate(starts)


def spaced_starts(starts: np.ndarray, step: int, count: int | None = None) -> np.ndarray:
    """Chooses every `step`-th window, counted back from the last one.

    Args:
        starts: first rows of windows, increasing.
        step: rows from one window to the next; the horizon gives windows whose targets do not
            overlap.
        count: at most this many, the last ones. None: all.

    Returns:
        The chosen first rows, increasing.
    """
    check_integer("step", step, 1)
    chosen = starts[::-1][::step]
    if count is not None:
        chosen = chosen[: check_integer("count", count, 1)]
    return chosen[::-1]


def evenly_spaced(starts: np.ndarray, most: int) -> np.ndarray:
    """Chooses at most so many of some windows, spread evenly over them, the ends among them."""
    if len(starts) <= most:
        return starts
    return starts[np.linspace(0, len(starts) - 1, most).astype(np.int64)]


class _Ops(NamedTuple):
    """The few array functions behind a batch, so that NumPy and tf.data share one formula."""

    take: Callable[[Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    cast: Callable[[Any, str], Any]
    join: Callable[[Any, Any], Any]
    clip: Callable[[Any, float, float], Any]


_NUMPY = _Ops(
    take=lambda values, rows: np.take(values, rows, axis=0),
    where=np.where,
    cast=lambda values, dtype: values.astype(dtype),
    join=lambda x, known: np.concatenate([x, known], axis=-1),
    clip=np.clip,
)


class _Table(NamedTuple):
    """What a batch is gathered from: arrays of NumPy or tensors."""

    time: Any
    values: Any
    covariates: Any
    observed: Any
    last_observed_row: Any
    series_number: Any
    center: Any
    spread: Any
    last_value: Any


@dataclasses.dataclass(frozen=True, eq=False)
class WindowScaler:
    """What turns time, covariates and values of a window into what a model reads, and back.

    `x = (t - t_last) / half_span + 2 (N_C - 1) / (N - 1) - 1` with t_last the time of the last
    context row: uneven spacing is kept, and an even grid becomes the even grid on [-1, 1].
    Covariates are standardised. `y = (value - reference) / spread`; the reference is

    - scaling "window": for each window and column the last value observed in the context, or
      `center` where the context has none; for series that drift;
    - scaling "standard": `center`.

    Attributes:
        spec: N_C and N_T of training.
        scaling: "window" or "standard".
        half_span: half the median time from the first to the last row of a training window.
        names: of the G series.
        center: `[G, D_y]`, the mean of the training part.
        spread: `[G, D_y]`, positive. For "standard" the standard deviation of the training part.
            For "window" how far targets lie from the reference: the 95 % quantile of the distance
            over 1.96, which is the standard deviation for a normal law and does not follow a few
            outliers; the root mean square where more than 95 % of the distances are 0. Never below
            1e-9 of the largest training value (1 where all are 0).
        covariate_center: `[D_c]`, the mean over all training parts.
        covariate_spread: `[D_c]`, the standard deviation; for a covariate that does not change its
            size, or 1.
        time_unit: of `half_span`, see `Series`.
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
            num_train_rows: the first so many rows are the training part; a number for each series,
                or one for all.
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
        known = np.concatenate(
            [one.known[:end] for one, end in zip(panel.series, ends, strict=True)]
        )
        covariate_center, covariate_spread = _measure_covariates(known)
        measured = [
            _measure_series(one, int(end), spec, scaling)
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

    def with_series(self, data: Panel | Series | Iterable[Series]) -> "WindowScaler":
        """Adds series that were not there in training, measured on all rows that they have here.

        Raises:
            ValueError: a column of one holds no value.
        """
        known = set(self.names)
        new = [one for one in as_panel(data).series if one.name not in known]
        if not new:
            return self
        measured = [_measure_series(one, one.num_rows, self.spec, self.scaling) for one in new]
        return dataclasses.replace(
            self,
            names=(*self.names, *(one.name for one in new)),
            center=np.concatenate([self.center, [center for center, _ in measured]]),
            spread=np.concatenate([self.spread, [spread for _, spread in measured]]),
        )

    def in_unit(self, time_unit: str | None) -> "WindowScaler":
        """Gives the same scaler for times in another unit.

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
        """D_y."""
        return self.spread.shape[1]

    @property
    def num_covariates(self) -> int:
        """D_c."""
        return len(self.covariate_center)

    @property
    def x_of_last_context(self) -> float:
        """X of the last context row, between -1 and 1."""
        return 2 * (self.spec.context_length - 1) / (self.spec.length - 1) - 1

    def scale_x(self, time: Any, origin: Any, covariates: Any, ops: _Ops) -> Any:
        """Scales time and covariates.

        Args:
            time: `[B, N]`, in the units and the type of `Series.time`.
            origin: `[B]`, time of the last context row of each window.
            covariates: `[B, N, D_c]`, in user units.
            ops: of what the arguments are.

        Returns:
            `[B, N, 1 + D_c]` float32. The difference of times is taken in 64 bits first.
        """
        elapsed = ops.cast(time - origin[:, np.newaxis], "float64")
        x = elapsed / self.half_span + self.x_of_last_context
        x = ops.cast(x, "float32")[..., np.newaxis]
        if not self.num_covariates:
            return x
        known = (covariates - self.covariate_center) / self.covariate_spread
        return ops.join(x, ops.cast(known, "float32"))

    def get_config(self) -> dict[str, Any]:
        """Returns all that makes this scaler, ready for JSON."""
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
        """Makes a scaler from what `get_config` gave."""
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


def _mean(column: np.ndarray) -> float:
    # Halved first: the sum of large numbers may leave the range of floating point.
    return float(2 * np.mean(column / 2))


def _measure_covariates(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    center, spread = np.empty(known.shape[1]), np.empty(known.shape[1])
    for place, column in enumerate(known.T):
        size = float(np.abs(column).max()) or 1.0
        center[place] = _mean(column)
        deviation = float(np.std(column / size))
        spread[place] = (deviation if deviation > _SMALLEST_SPREAD else 1.0) * size
    return center, spread


def _measure_series(
    series: Series, num_train_rows: int, spec: WindowSpec, scaling: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the center and the spread of every column, `[D_y]` each."""
    starts = np.arange(max(num_train_rows - spec.length + 1, 0), dtype=np.int64)
    center, spread = np.empty(series.num_columns), np.empty(series.num_columns)
    for place, name in enumerate(series.target_columns):
        column = series.values[:num_train_rows, place]
        observed = column[~np.isnan(column)]
        if not len(observed):
            of = f" of series {series.name!r}" if series.name else ""
            raise ValueError(
                f"Column `{name}`{of} must have a value in the training part. "
                f"Received: {num_train_rows} empty cells"
            )
        center[place] = _mean(observed)
        last = series.last_observed_row[:num_train_rows, place]
        size = float(np.abs(observed).max())
        distance = np.empty(0)
        if scaling == "window" and size:
            distance = _distances(column / size, last, starts, spec)
        spread[place] = _measure_spread(observed, distance, size)
    return center, spread


def _distances(
    column: np.ndarray, last_observed_row: np.ndarray, starts: np.ndarray, spec: WindowSpec
) -> np.ndarray:
    """Returns how far observed targets lie from the last value observed in their context."""
    starts = evenly_spaced(starts, _MAX_WINDOWS_FOR_SPREAD)
    last = last_observed_row[starts + spec.context_length - 1]
    known = last >= starts
    targets = starts[known][:, np.newaxis] + np.arange(spec.context_length, spec.length)
    distance = np.abs(column[targets] - column[last[known]][:, np.newaxis])
    return distance[~np.isnan(distance)]


def _measure_spread(observed: np.ndarray, distance: np.ndarray, size: float) -> float:
    """Measures the spread; distances are relative to the size, so that no square overflows."""
    if not size:
        return 1.0
    if not len(distance):
        spread = float(np.std(observed / size))
    else:
        spread = float(np.quantile(distance, 0.95)) / _NORMAL_95
        if spread < _SMALLEST_SPREAD:
            spread = math.sqrt(float(np.mean(np.square(distance))))
    return max(spread, _SMALLEST_SPREAD) * size


class Windows:
    """The windows of one or several series, as batches of the data contract.

    Windows are named by their first rows in the panel, and made when they are asked for: nothing
    is copied ahead of time. All public methods take `starts`, `[B]` integers.

    Example:
        >>> from taylorformer.data_wrangler.tables import series
        >>> co2 = series.load_mauna_loa_co2()
        >>> spec = WindowSpec(context_length=104, horizon=52)
        >>> split = Split.chronological(co2.num_rows)
        >>> windows = Windows(co2, WindowScaler.fit(co2, spec, split.train_end))
        >>> inputs, y_target = windows.batch(split.window_starts(spec, "test")[:5])
        >>> inputs["x_context"].shape, y_target.shape
        ((5, 104, 1), (5, 52, 1))

    Args:
        data: G series.
        scaler: what was measured on the training part. Series go by their names; a scaler of one
            series also serves one series of another name.
        spec: N_C and N_T, where they are not those of training. x is scaled as in training.

    Raises:
        ValueError: numbers of columns or covariates other than those of the scaler, dates where
            it had numbers, or a series that it does not know.
    """

    def __init__(
        self,
        data: Panel | Series | Iterable[Series],
        scaler: WindowScaler,
        spec: WindowSpec | None = None,
    ) -> None:
        panel = as_panel(data)
        for what, need, there in (
            ("D_y = {} columns", scaler.num_columns, panel.num_columns),
            ("D_c = {} covariates", scaler.num_covariates, panel.num_covariates),
        ):
            if need != there:
                raise ValueError(
                    f"`series` must have {what.format(need)}, as the scaler. Received: {there}"
                )
        self.panel = panel
        self.scaler = scaler = scaler.in_unit(panel.time_unit)
        self.spec = scaler.spec if spec is None else spec
        number = self._numbers_in_scaler()
        columns = np.arange(panel.num_columns)
        last = panel.last_observed_row
        self._table = _Table(
            panel.time,
            panel.values,
            panel.covariates,
            panel.observed,
            last,
            np.repeat(np.arange(panel.num_series), np.diff(panel.offsets)),
            scaler.center[number],
            scaler.spread[number],
            np.where(last < 0, 0.0, panel.values[last, columns]),
        )

    def _numbers_in_scaler(self) -> list[int]:
        names, known = self.panel.names, self.scaler.names
        if len(names) == len(known) == 1:
            return [0]
        numbers = {name: number for number, name in enumerate(known)}
        strange = [name for name in names if name not in numbers]
        if strange:
            raise ValueError(
                f"`series` must be among those of the scaler. Received: {strange[0]!r}; it knows "
                f"{', '.join(map(repr, known[:8]))}{' ...' if len(known) > 8 else ''}"
            )
        return [numbers[name] for name in names]

    def target_rows(self, starts: Any) -> np.ndarray:
        """Gives the rows of the targets, `[B, N_T]` int64."""
        starts = self._check_starts(starts)
        return starts[:, np.newaxis] + np.arange(self.spec.context_length, self.spec.length)

    def context_rows(self, starts: Any) -> np.ndarray:
        """Gives the rows of the context, `[B, N_C]` int64."""
        return self._check_starts(starts)[:, np.newaxis] + np.arange(self.spec.context_length)

    def reference(self, starts: Any) -> np.ndarray:
        """Gives what y is relative to: `[B, D_y]` float64, in user units."""
        return self._reference(self._check_starts(starts), self._table, _NUMPY)

    def spread(self, starts: Any) -> np.ndarray:
        """Gives what y is divided by: `[B, D_y]` float64, in user units."""
        return self._table.spread[self._table.series_number[self._check_starts(starts)]]

    def truth(self, starts: Any) -> np.ndarray:
        """Gives the true values of the targets: `[B, N_T, D_y]` in user units, NaN = missing."""
        return self.panel.values[self.target_rows(starts)]

    def scored(self, starts: Any) -> np.ndarray:
        """Tells which targets can be scored: `[B, N_T]` bool, True where no value is missing."""
        return self.panel.observed[self.target_rows(starts)]

    def scale_y(self, values: Any, starts: Any) -> np.ndarray:
        """Scales values.

        Args:
            values: `[..., B, N, D_y]`, in user units; NaN stays NaN.
            starts: `[B]`.

        Returns:
            The same shape, float64.
        """
        reference, spread = self.reference(starts), self.spread(starts)
        return (np.asarray(values) - reference[:, np.newaxis]) / spread[:, np.newaxis]

    def inverse(self, y: Any, starts: Any) -> np.ndarray:
        """Undoes the scaling of means or samples.

        Args:
            y: `[..., B, N_T, D_y]`, such as samples `[S, B, N_T, D_y]`.
            starts: `[B]`.

        Returns:
            The same shape in user units, float64.
        """
        return self.inverse_scale(y, starts) + self.reference(starts)[:, np.newaxis]

    def inverse_scale(self, scale: Any, starts: Any) -> np.ndarray:
        """Undoes the scaling of standard deviations `[..., B, N_T, D_y]`, to float64."""
        return np.asarray(scale, np.float64) * self.spread(starts)[:, np.newaxis]

    def inverse_log_prob(self, log_prob: Any, num_targets: Any, starts: Any) -> np.ndarray:
        """Turns joint log densities of scaled y into those of y in user units.

        Args:
            log_prob: `[B]`, in nats, summed over D_y and the observed targets.
            num_targets: `[B]`, the number of observed targets.
            starts: `[B]`.

        Returns:
            `[B]` float64: less the logarithm of the Jacobian, `num_targets` times the sum of
            `log(spread)`.
        """
        log_jacobian = np.asarray(num_targets) * self._log_spread(starts)
        return np.asarray(log_prob, np.float64) - log_jacobian

    def inverse_nll(self, nll: Any, starts: Any) -> np.ndarray:
        """Does the same for the negative log density per observed target `[B]`, in nats."""
        return np.asarray(nll, np.float64) + self._log_spread(starts)

    def _log_spread(self, starts: Any) -> np.ndarray:
        return np.log(self.spread(starts)).sum(axis=-1)

    def batch(self, starts: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes one batch for `fit`, `evaluate` or `log_prob`.

        Returns:
            `(inputs, y_target)` of the data contract, float32 and bool. Rows with a missing value
            are False in `context_mask` and `target_mask`, and their y is 0.
        """
        return self._batch(self._check_starts(starts), self._table, _NUMPY)

    def forecast_inputs(self, starts: Any) -> dict[str, np.ndarray]:
        """Makes the inputs for `sample` or `predict`; no target's y is read.

        Returns:
            `inputs` of the data contract. Every target is True in `target_mask`: also one whose
            true value is missing is drawn, and only left out of the score.
        """
        inputs, _ = self.batch(starts)
        return {**inputs, "target_mask": np.ones_like(inputs["target_mask"])}

    def sequence_keys(self, starts: Any) -> np.ndarray:
        """Makes a key for the random numbers of each window, `[B]` int64.

        It is a function of the name of the series and the time of the last context row, so that
        two windows do not share noise, and one window has the same in every batch, on every
        machine, and in a forecast from there, whose stamps may differ in the last bit.
        """
        rows = self.context_rows(starts)[:, -1]
        labels = (self.panel.time_label(int(row)) for row in rows)
        digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in labels]
        return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)

    def training_dataset(
        self, starts: Any, batch_size: int, seed: int, first_batch: int = 0
    ) -> "tf.data.Dataset":
        """Makes an endless, shuffled data set for `fit`.

        Every window comes once in each pass over them, in an order of its own for each pass. The
        windows of a batch are a function of `seed` and the number of the batch alone, so a run
        that was stopped goes on with `first_batch`.

        Args:
            starts: first rows of the training windows.
            batch_size: B, the same for every batch.
            seed: of the order.
            first_batch: how many batches of the endless row to leave out.

        Returns:
            A `tf.data.Dataset` of `(inputs, y_target)`.
        """
        import tensorflow as tf

        starts = self._check_starts(starts)
        check_integer("batch_size", batch_size, 1)
        check_integer("seed", seed, 0)
        check_integer("first_batch", first_batch, 0)
        word = int(np.random.SeedSequence(seed).generate_state(1)[0])
        count = len(starts)
        all_starts = tf.constant(starts)

        def start_at(position: tf.Tensor) -> tf.Tensor:
            order = tf.stack([word, position // count])
            place = tf.random.experimental.index_shuffle(position % count, order, count - 1)
            return tf.gather(all_starts, place)

        positions = tf.data.Dataset.counter(first_batch * batch_size)
        batches = positions.map(start_at).batch(batch_size, drop_remainder=True)
        return self._gathered(batches)

    def evaluation_dataset(self, starts: Any, batch_size: int) -> "tf.data.Dataset":
        """Makes a data set for `evaluate`: every window once, in the order given.

        Args:
            starts: first rows of windows.
            batch_size: B; the last batch may be smaller.

        Returns:
            A `tf.data.Dataset` of `(inputs, y_target)`.
        """
        import tensorflow as tf

        check_integer("batch_size", batch_size, 1)
        batches = tf.data.Dataset.from_tensor_slices(self._check_starts(starts)).batch(batch_size)
        return self._gathered(batches)

    def _gathered(self, batches: "tf.data.Dataset") -> "tf.data.Dataset":
        import tensorflow as tf

        ops = _Ops(
            take=tf.gather,
            where=tf.where,
            cast=tf.cast,
            join=lambda x, known: tf.concat([x, known], axis=-1),
            clip=tf.clip_by_value,
        )
        # Tensors are handed to the graph by reference. Arrays would be written into it, and a graph
        # ends at 2 GB.
        with tf.device("cpu:0"):
            table = _Table(*map(tf.constant, self._table))
        batches = batches.map(lambda starts: self._batch(starts, table, ops), tf.data.AUTOTUNE)
        return batches.prefetch(tf.data.AUTOTUNE)

    def _check_starts(self, starts: Any) -> np.ndarray:
        starts = np.asarray(starts)
        if starts.ndim != 1 or not len(starts) or starts.dtype.kind not in "iu":
            raise ValueError(
                "`starts` must be integers of the shape [B], B at least 1. "
                f"Received: dtype {starts.dtype}, shape {list(starts.shape)}"
            )
        latest = self.panel.num_rows - self.spec.length
        if starts.min() < 0 or starts.max() > latest:
            raise ValueError(
                f"`starts` must be rows from 0 to {latest}, for windows inside the series. "
                f"Received: rows from {starts.min()} to {starts.max()}"
            )
        number = self._table.series_number
        across = number[starts] != number[starts + self.spec.length - 1]
        if across.any():
            raise ValueError(
                "`starts` must be rows of windows inside one series. Received: row "
                f"{starts[across.argmax()]}, whose window ends in the next series"
            )
        return starts.astype(np.int64)

    def _reference(self, starts: Any, table: _Table, ops: _Ops) -> Any:
        center = ops.take(table.center, ops.take(table.series_number, starts))
        if self.scaler.scaling == "standard":
            return center
        origin = starts + (self.spec.context_length - 1)
        known = ops.take(table.last_observed_row, origin) >= starts[:, np.newaxis]
        return ops.where(known, ops.take(table.last_value, origin), center)

    def _batch(self, starts: Any, table: _Table, ops: _Ops) -> tuple[dict[str, Any], Any]:
        rows = starts[:, np.newaxis] + np.arange(self.spec.length)
        time = ops.take(table.time, rows)
        observed = ops.take(table.observed, rows)
        context, target = slice(self.spec.context_length), slice(self.spec.context_length, None)
        origin = time[:, self.spec.context_length - 1]
        x = self.scaler.scale_x(time, origin, ops.take(table.covariates, rows), ops)
        reference = self._reference(starts, table, ops)
        spread = ops.take(table.spread, ops.take(table.series_number, starts))
        y = (ops.take(table.values, rows) - reference[:, np.newaxis]) / spread[:, np.newaxis]
        # Further away is as far as this: a square of it still fits in float32.
        y = ops.clip(y, -FURTHEST, FURTHEST)
        y = ops.where(observed[..., np.newaxis], ops.cast(y, "float32"), np.float32(0))
        inputs = {
            "x_context": x[:, context],
            "y_context": y[:, context],
            "x_target": x[:, target],
            "context_mask": observed[:, context],
            "target_mask": observed[:, target],
        }
        return inputs, y[:, target]
