"""Small series and tables that the tests of tables share."""

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec

LONG = Columns("ds", ("y",), "unique_id")
SPEC = WindowSpec(context_length=8, horizon=4)


def series_of(times, values=None, **options):
    """One column `y`, read from a table with the stamps `t`."""
    values = np.arange(len(times), dtype=float) if values is None else values
    return Series.from_frame(pd.DataFrame({"t": times, "y": values}), "t", "y", **options)


def make_series(values, time=None, name="series"):
    values = np.asarray(values, np.float64)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    time = np.arange(len(values)) if time is None else np.asarray(time)
    columns = tuple(f"y{index}" for index in range(values.shape[1]))
    return Series(time, values.copy(), pd.Index(time), "t", columns, name=name)


def long_frame(**changes):
    frame = pd.DataFrame(
        {
            "unique_id": ["b", "a", "b", "a", "b"],
            "ds": ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-08", "2024-01-03"],
            "y": [1.0, 10.0, 2.0, np.nan, 3.0],
        }
    )
    return frame.assign(**changes)


def frame_of(*names):
    return pd.DataFrame({name: [1, 2] for name in names})


def check_follows(series, stamps, count):
    """Checks stamps after a series: strictly increasing, after its last row, of the same kind."""
    every = series.stamps.append(stamps)
    assert len(stamps) == count and every.is_monotonic_increasing and every.is_unique
    assert stamps.dtype == series.stamps.dtype and stamps.name == series.stamps.name
