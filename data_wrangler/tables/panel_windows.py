"""Windows of a panel: which rows they have, and all that follows from how they are scaled."""

import abc
import hashlib
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaled_support import ScaledSupport
from taylorformer.data_wrangler.tables.scaler import ValueScaling
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.value_support import ValueSupport

# Keys are 64-bit integers.
_KEY_BYTES = 8


class PanelWindows(abc.ABC):
    """The windows of one or several series; how they are scaled is left to subclasses.

    A window is identified by its first row in the panel. All public methods take these rows as
    `starts`, `[B]` integers.

    Args:
        panel: G series.
        spec: N_C and N_T.
        support: which values the columns can have. None: all real numbers.
    """

    def __init__(self, panel: Panel, spec: WindowSpec, support: ValueSupport | None) -> None:
        self.panel = panel
        self.spec = spec
        self.support = support

    @abc.abstractmethod
    def _scaling(self, starts: Any) -> ValueScaling:
        """Returns the scaling of the values of each window."""

    @abc.abstractmethod
    def batch(self, starts: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes one batch for `fit`, `evaluate` or `log_prob`.

        Returns:
            `(inputs, y_target)` of the data contract, float32 and bool. Rows with a missing value
            are False in `context_mask` and `target_mask`, and their y is 0.
        """

    def target_rows(self, starts: Any) -> np.ndarray:
        """Returns the rows of the targets, `[B, N_T]` int64."""
        starts = self._check_starts(starts)
        return starts[:, np.newaxis] + np.arange(self.spec.context_length, self.spec.length)

    def context_rows(self, starts: Any) -> np.ndarray:
        """Returns the rows of the context, `[B, N_C]` int64."""
        return self._check_starts(starts)[:, np.newaxis] + np.arange(self.spec.context_length)

    def reference(self, starts: Any) -> np.ndarray:
        """Returns what y is relative to: `[B, D_y]` float64, in units of z, see `WindowScaler`."""
        return self._scaling(starts).reference

    def spread(self, starts: Any) -> np.ndarray:
        """Returns what y is divided by: `[B, D_y]` float64, in units of z, see `WindowScaler`."""
        return self._scaling(starts).spread

    def truth(self, starts: Any) -> np.ndarray:
        """Returns the true values of the targets: `[B, N_T, D_y]` in user units, NaN = missing."""
        return self.panel.values[self.target_rows(starts)]

    def scored(self, starts: Any) -> np.ndarray:
        """Returns which targets can be scored: `[B, N_T]` bool, True where no value is missing."""
        return self.panel.observed[self.target_rows(starts)]

    def scale_y(self, values: Any, starts: Any) -> np.ndarray:
        """Scales values.

        Args:
            values: `[..., B, N, D_y]`, in user units; NaN stays NaN.
            starts: `[B]`.

        Returns:
            The same shape, float64.
        """
        return self._scaling(starts).scale(np.asarray(values))

    def inverse(self, y: Any, starts: Any) -> np.ndarray:
        """Undoes the scaling of samples.

        Args:
            y: `[..., B, N_T, D_y]`, such as samples `[S, B, N_T, D_y]`.
            starts: `[B]`.

        Returns:
            The same shape in user units, float64; with a support inside it, whole numbers whole.
        """
        return self._scaling(starts).inverse(y)

    def inverse_moments(self, mean: Any, scale: Any, starts: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and standard deviation in user units of normal distributions of y.

        Args:
            mean: `[B, N_T, D_y]`, as a model returns it.
            scale: `[B, N_T, D_y]`, as a model returns it.
            starts: `[B]`.

        Returns:
            `[B, N_T, D_y]` float64 both; with a support those of the transformed distribution.
        """
        return self._scaling(starts).inverse_moments(mean, scale)

    def inverse_log_prob(self, log_prob: Any, starts: Any) -> np.ndarray:
        """Converts joint log densities of scaled y to those of the true values in user units.

        Args:
            log_prob: `[B]`, in nats, summed over D_y and the observed targets.
            starts: `[B]`.

        Returns:
            `[B]` float64. Columns of whole numbers count with their log probability.
        """
        return self._scaling(starts).inverse_log_prob(
            log_prob, self.truth(starts), self.scored(starts)
        )

    def inverse_nll(self, nll: Any, starts: Any) -> np.ndarray:
        """Converts negative log densities for each observed target `[B]`, in nats."""
        return self._scaling(starts).inverse_nll(nll, self.truth(starts), self.scored(starts))

    def normal_log_prob(self, mean: Any, scale: Any, y: Any, starts: Any) -> np.ndarray:
        """Returns the log density of y in a support under normal distributions, as models score it.

        Args:
            mean: `[B, N_T, D_y]`, scaled.
            scale: standard deviations that broadcast to it, scaled.
            y: `[B, N_T, D_y]`, scaled.
            starts: `[B]`.

        Returns:
            `[B, N_T, D_y]` float64; of whole numbers their log probability.

        Raises:
            ValueError: the scaler has no support.
        """
        support = ScaledSupport.from_parts(self._scaling(starts).parts[:, np.newaxis])
        return support.log_prob(mean, scale, np.asarray(y, np.float32))

    def forecast_inputs(self, starts: Any) -> dict[str, np.ndarray]:
        """Makes the inputs for `sample` or `predict`; no target's y is read.

        Returns:
            `inputs` of the data contract. `target_mask` is True for all targets: one whose true
            value is missing is drawn, too, and only left out of the score.
        """
        inputs, _ = self.batch(starts)
        return {**inputs, "target_mask": np.ones_like(inputs["target_mask"])}

    def sequence_keys(self, starts: Any) -> np.ndarray:
        """Returns a key for the random numbers of each window, `[B]` int64.

        It depends on the name of the series and the time of the last context row alone. Two windows
        do not share random numbers; a window has the same ones in every batch, on every machine,
        and in a forecast from its last context row, whatever the stamps that follow.
        """
        rows = self.context_rows(starts)[:, -1]
        labels = (self.panel.time_label(int(row)) for row in rows)
        digests = [
            hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES).digest() for text in labels
        ]
        return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)

    def _check_starts(self, starts: Any) -> np.ndarray:
        starts = as_row_numbers(starts)
        latest = self.panel.num_rows - self.spec.length
        if starts.min() < 0 or starts.max() > latest:
            raise ValueError(
                f"`starts` must be rows from 0 to {latest}, for windows inside the series. "
                f"Received: rows from {starts.min()} to {starts.max()}"
            )
        ends = starts + self.spec.length - 1
        crosses = self.panel.series_of(starts) != self.panel.series_of(ends)
        if crosses.any():
            raise ValueError(
                "`starts` must be rows of windows inside one series. Received: row "
                f"{starts[crosses.argmax()]}, whose window ends in the next series"
            )
        return starts


def as_row_numbers(starts: Any) -> np.ndarray:
    """Returns `starts` as `[B]` int64.

    Raises:
        ValueError: they are no integers of the shape [B], B at least 1.
    """
    starts = np.asarray(starts)
    if starts.ndim != 1 or not len(starts) or starts.dtype.kind not in "iu":
        raise ValueError(
            "`starts` must be integers of the shape [B], B at least 1. "
            f"Received: dtype {starts.dtype}, shape {list(starts.shape)}"
        )
    return starts.astype(np.int64)
