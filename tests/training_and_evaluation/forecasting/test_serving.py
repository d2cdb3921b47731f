"""Serving: a request is scaled as the windows of training are."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import SCALINGS, WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.forecasting.serving import _Requests


@pytest.mark.parametrize("scaling", SCALINGS)
def test_requests_are_scaled_as_windows_are(scaling, rng):
    """Bit for bit, with missing values, a context without values, dates and covariates."""
    spec = WindowSpec(context_length=5, horizon=3)
    parts = []
    for number in range(3):
        values = 10.0**number * rng.normal(size=(30, 2)).cumsum(axis=0)
        values[rng.random(values.shape) < 0.2] = np.nan
        values[20:25, 0] = np.nan
        dates = pd.date_range("2024-01-01", periods=30, freq="h", unit="s")
        table = pd.DataFrame(
            {"t": dates, "a": values[:, 0], "b": values[:, 1], "k": rng.random(30)}
        )
        columns = {"target_columns": ["a", "b"], "covariate_columns": "k"}
        parts.append(Series.from_frame(table, "t", **columns, name=f"s{number}"))
    panel = Panel(parts)
    scaler = WindowScaler.fit(panel, spec, 20, scaling)
    windows = Windows(panel, scaler)
    starts = np.array([3, 20, 35, 50, 65, 82])
    context, target = windows.context_rows(starts), windows.target_rows(starts)
    raw = {"series": panel.series_of(starts).astype(np.int32)}
    for part, rows in (("context", context), ("target", target)):
        raw[f"time_{part}"] = panel.time[rows].astype(np.float64)
        raw[f"y_{part}"] = panel.values[rows]
        raw[f"covariates_{part}"] = panel.covariates[rows]
    batch, values = _Requests(scaler).batch({key: tf.constant(one) for key, one in raw.items()})
    inputs, y_target = windows.batch(starts)
    assert not inputs["context_mask"][[1, 3]].all()
    for key, one in {**inputs, "y_target": y_target}.items():
        np.testing.assert_array_equal(batch[key], one, err_msg=key)
    y = rng.normal(size=(4, 6, 3, 2))
    np.testing.assert_array_equal(values.inverse(tf.constant(y)), windows.inverse(y, starts))
    density = rng.normal(size=6)
    observed = batch["target_mask"]
    np.testing.assert_allclose(
        values.inverse_log_prob(tf.constant(density), raw["y_target"], observed),
        windows.inverse_log_prob(density, starts),
        rtol=1e-12,
    )
