"""Windows of one or several series, as batches for training, evaluation and forecasts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from taylorformer.data_wrangler.checks import check_integer, listed
from taylorformer.data_wrangler.tables.array_ops import NUMPY_OPS, ArrayOps, tensorflow_ops
from taylorformer.data_wrangler.tables.panel import Panel, as_panel
from taylorformer.data_wrangler.tables.panel_windows import PanelWindows
from taylorformer.data_wrangler.tables.scaler import ValueScaling, WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec

if TYPE_CHECKING:
    import tensorflow as tf

# Steps of numbers are even up to rounding; those of dates are whole numbers.
_UNEVEN = 1e-9


class _Table(NamedTuple):
    """The R rows that batches are gathered from: arrays of NumPy or tensors.

    Attributes:
        time: see `Panel`, as the next ones.
        values: `[R, D_y]`.
        covariates: `[R, D_c]`.
        observed: `[R]`.
        last_observed_row: `[R, D_y]`.
        series_number: `[R]`, the number of each row's series in the panel.
        center: `[G, D_y]`, see `WindowScaler`; here for the G series of the panel.
        spread: `[G, D_y]`.
        softness: `[G, D_y]`.
        last_value: `[R, D_y]`, the values in `last_observed_row`; 0 where there are none.
    """

    time: Any
    values: Any
    covariates: Any
    observed: Any
    last_observed_row: Any
    series_number: Any
    center: Any
    spread: Any
    softness: Any
    last_value: Any


class Windows(PanelWindows):
    """The windows of one or several series, as batches of the data contract.

    A window is identified by its first row in the panel, and made when it is asked for: nothing is
    copied ahead of time. All public methods take these rows as `starts`, `[B]` integers.

    Where all steps of time are even and there are neither covariates nor seasons, all windows have
    the same x, and batches hold it once, in 1 row (see `taylorformer.data_wrangler.batch`); masks
    too where no value is missing.

    Example:
        >>> from taylorformer.data_wrangler import Split, load_mauna_loa_co2
        >>> co2 = load_mauna_loa_co2()
        >>> spec = WindowSpec(context_length=104, horizon=52)
        >>> split = Split.chronological(co2.num_rows)
        >>> windows = Windows(co2, WindowScaler.fit(co2, spec, split.train_end))
        >>> inputs, y_target = windows.batch(split.window_starts(spec, "test")[:5])
        >>> inputs["x_context"].shape, y_target.shape
        ((1, 104, 1), (5, 52, 1))

    Args:
        data: G series.
        scaler: what was measured on the training part. Series are found in it by their names; a
            scaler of one series also serves one series of another name.
        spec: N_C and N_T, if they differ from those of training. None: those of the scaler. x is
            scaled as in training.

    Raises:
        ValueError: the scaler has another number of columns or covariates, times of another kind
            (dates or numbers), or lacks a series.
    """

    def __init__(
        self,
        data: Panel | Series | Iterable[Series],
        scaler: WindowScaler,
        spec: WindowSpec | None = None,
    ) -> None:
        panel = as_panel(data)
        for text, expected, received in (
            ("D_y = {} columns", scaler.num_columns, panel.num_columns),
            ("D_c = {} covariates", scaler.num_covariates, panel.num_covariates),
        ):
            if expected != received:
                raise ValueError(
                    f"`series` must have {text.format(expected)}, as the scaler. "
                    f"Received: {received}"
                )
        super().__init__(panel, scaler.spec if spec is None else spec, scaler.support)
        self.scaler = scaler = scaler.in_unit(panel.time_unit)
        numbers = self._numbers_in_scaler()
        columns = np.arange(panel.num_columns)
        last = panel.last_observed_row
        self._table = _Table(
            panel.time,
            panel.values,
            panel.covariates,
            panel.observed,
            last,
            np.repeat(np.arange(panel.num_series), np.diff(panel.offsets)),
            scaler.center[numbers],
            scaler.spread[numbers],
            scaler.softness[numbers],
            np.where(last < 0, 0.0, panel.values[last, columns]),
        )
        self._shared_x = self._x_of_all_windows()
        self._shared_mask = np.ones((1, self.spec.length), bool) if panel.observed.all() else None

    def _x_of_all_windows(self) -> np.ndarray | None:
        """Returns the x of any window, `[1, L, 1]`, or None if they are not all the same."""
        panel, length = self.panel, self.spec.length
        longest = int(np.argmax(np.diff(panel.offsets)))
        start = int(panel.offsets[longest])
        differs = self.scaler.num_covariates or self.scaler.periods
        if differs or panel.offsets[longest + 1] - start < length:
            return None
        # Steps from one series to the next are none.
        steps = np.delete(np.diff(panel.time), panel.offsets[1:-1] - 1)
        uneven = abs(steps - steps[0]) > _UNEVEN * abs(steps[0])
        if uneven.any():
            return None
        time = panel.time[np.newaxis, start : start + length]
        origin = time[:, self.spec.context_length - 1]
        return self.scaler.scale_x(time, origin, np.zeros((*time.shape, 0)))

    def _numbers_in_scaler(self) -> list[int]:
        names, scaler_names = self.panel.names, self.scaler.names
        if len(names) == len(scaler_names) == 1:
            return [0]
        numbers = {name: number for number, name in enumerate(scaler_names)}
        strange = [name for name in names if name not in numbers]
        if strange:
            raise ValueError(
                f"`series` must be among those of the scaler. Received: {strange[0]!r}; the scaler "
                f"has {listed([repr(name) for name in scaler_names])}"
            )
        return [numbers[name] for name in names]

    def _scaling(self, starts: Any) -> ValueScaling:
        return self._value_scaling(self._check_starts(starts), self._table, NUMPY_OPS)

    def batch(self, starts: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes one batch, see `PanelWindows`."""
        return self._batch(self._check_starts(starts), self._table, NUMPY_OPS)

    def training_dataset(
        self, starts: Any, batch_size: int, seed: int, first_batch: int = 0
    ) -> "tf.data.Dataset":
        """Makes an endless, shuffled data set for `fit`.

        Each pass over the windows has another order, and holds every window once. The windows of a
        batch depend on `seed` and the number of the batch alone, so a run that was stopped resumes
        with `first_batch`.

        Args:
            starts: first rows of the training windows.
            batch_size: B, the same for every batch.
            seed: determines the orders.
            first_batch: how many batches to leave out at the start.

        Returns:
            A `tf.data.Dataset` of `(inputs, y_target)`.
        """
        import tensorflow as tf

        starts = self._check_starts(starts)
        batch_size = check_integer("batch_size", batch_size, 1)
        seed = check_integer("seed", seed, 0)
        first_batch = check_integer("first_batch", first_batch, 0)
        seed_word = int(np.random.SeedSequence(seed).generate_state(1)[0])
        count = len(starts)
        all_starts = tf.constant(starts)

        def start_at(position: tf.Tensor) -> tf.Tensor:
            pass_seed = tf.stack([seed_word, position // count])
            index = tf.random.experimental.index_shuffle(position % count, pass_seed, count - 1)
            return tf.gather(all_starts, index)

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

        batch_size = check_integer("batch_size", batch_size, 1)
        batches = tf.data.Dataset.from_tensor_slices(self._check_starts(starts)).batch(batch_size)
        return self._gathered(batches)

    def _gathered(self, batches: "tf.data.Dataset") -> "tf.data.Dataset":
        import tensorflow as tf

        ops = tensorflow_ops()
        # A graph holds tensors by reference. Arrays would be written into it, and it is limited to
        # 2 GB.
        with tf.device("cpu:0"):
            table = _Table(*map(tf.constant, self._table))
        batches = batches.map(lambda starts: self._batch(starts, table, ops), tf.data.AUTOTUNE)
        return batches.prefetch(tf.data.AUTOTUNE)

    def _value_scaling(self, starts: Any, table: _Table, ops: ArrayOps) -> ValueScaling:
        number = ops.take(table.series_number, starts)
        last_context_row = starts + (self.spec.context_length - 1)
        return self.scaler.value_scaling(
            ops.take(table.center, number),
            ops.take(table.spread, number),
            ops.take(table.softness, number),
            ops.take(table.last_value, last_context_row),
            ops.take(table.last_observed_row, last_context_row) >= starts[:, np.newaxis],
            ops,
        )

    def _batch(self, starts: Any, table: _Table, ops: ArrayOps) -> tuple[dict[str, Any], Any]:
        rows = starts[:, np.newaxis] + np.arange(self.spec.length)
        observed = ops.take(table.observed, rows)
        context, target = slice(self.spec.context_length), slice(self.spec.context_length, None)
        x = self._shared_x
        if x is None:
            time = ops.take(table.time, rows)
            origin = time[:, self.spec.context_length - 1]
            x = self.scaler.scale_x(time, origin, ops.take(table.covariates, rows), ops)
        scaling = self._value_scaling(starts, table, ops)
        y = scaling.model_input(ops.take(table.values, rows), observed)
        mask = observed if self._shared_mask is None else self._shared_mask
        inputs = {
            "x_context": x[:, context],
            "y_context": y[:, context],
            "x_target": x[:, target],
            "context_mask": mask[:, context],
            "target_mask": mask[:, target],
        }
        if scaling.transform is not None:
            inputs["y_support"] = scaling.parts
        return inputs, y[:, target]
