"""Series and windows that the tests of splits, scalers and windows share."""

import numpy as np
import pandas as pd
import pytest
from tables import SPEC, make_series

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.windows import Windows


@pytest.fixture
def series(rng):
    """Two columns around 5000, uneven times, some values missing."""
    values = 5000 + rng.normal(size=(100, 2)).cumsum(axis=0) * [300, 1]
    values[rng.random(values.shape) < 0.1] = np.nan
    return make_series(values, 10**15 + rng.integers(1, 9, 100).cumsum())


@pytest.fixture
def windows(series):
    return Windows(series, WindowScaler.fit(series, SPEC, 69))


@pytest.fixture
def panel(rng):
    """Three series of different sizes, one too short for a window, with one covariate."""
    parts = []
    for number, (rows, size) in enumerate([(60, 1.0), (9, 50.0), (40, 1e6)]):
        values = size * rng.normal(size=(rows, 1)).cumsum(axis=0)
        values[rng.random(values.shape) < 0.1] = np.nan
        time = 1000 * number + np.arange(rows)
        covariates = 5 + 3 * rng.normal(size=(rows, 1))
        names = {"name": f"s{number}", "covariates": covariates, "covariate_columns": ("heat",)}
        parts.append(Series(time, values, pd.Index(time), "t", ("y",), **names))
    return Panel(parts)
