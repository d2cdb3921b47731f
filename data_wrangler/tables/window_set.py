"""Held-out windows of a series, as experiments score them."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tables.split import evenly_spaced
from taylorformer.data_wrangler.tables.windows import Windows

if TYPE_CHECKING:
    import tensorflow as tf


@dataclasses.dataclass(frozen=True, eq=False)
class WindowSet:
    """n windows of one length.

    Example:
        >>> from taylorformer.data_wrangler import Split, WindowSpec, load_mauna_loa_co2
        >>> from taylorformer.data_wrangler import WindowScaler
        >>> co2 = load_mauna_loa_co2()
        >>> spec = WindowSpec(context_length=104, horizon=52)
        >>> split = Split.chronological(co2.num_rows)
        >>> windows = Windows(co2, WindowScaler.fit(co2, spec, split.train_end))
        >>> held_out = WindowSet(windows, split.window_starts(spec, "test"))
        >>> len(held_out.spread_out(5))
        5

    Attributes:
        windows: the windows of one or several series.
        starts: `[n]` int64, their first rows.
        about: where they come from; what JSON can hold.
    """

    windows: Windows
    starts: np.ndarray
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def spread_out(self, count: int) -> "WindowSet":
        """Returns at most `count` windows, evenly spaced, the first and the last among them."""
        count = check_integer("count", count, 1)
        return dataclasses.replace(self, starts=evenly_spaced(self.starts, count))

    def dataset(self, batch_size: int) -> "tf.data.Dataset":
        """Makes a data set for `evaluate`, or for `fit` as `validation_data`."""
        return self.windows.evaluation_dataset(self.starts, batch_size)
