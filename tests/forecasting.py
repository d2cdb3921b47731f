"""Tiny tables and a tiny preset that the tests of the Forecaster share."""

import keras
import numpy as np
import pandas as pd

from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset

TINY = ForecastPreset(
    "tiny",
    num_heads=2,
    head_dim=4,
    width=8,
    num_layers=1,
    encoding_dim=4,
    learning_rate=3e-3,
    batch_size=4,
    max_steps=4,
    steps_per_epoch=2,
)


def tiny_forecaster(horizon=4, context_length=6, **options):
    """Trains eagerly: two steps cost less than tracing one."""
    options = {"preset": TINY, "run_eagerly": True, **options}
    return Forecaster(horizon, context_length, **options)


def wave_table(rows=90, seed=0, mean=5000.0, spread=300.0):
    """A daily series of a known mean and spread, some values missing."""
    rng = np.random.default_rng(seed)
    values = mean + spread * (np.sin(np.arange(rows) / 3 + seed) + 0.1 * rng.normal(size=rows))
    values[rng.random(rows) < 0.05] = np.nan
    return pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=rows), "y": values})


def long_table(sizes=(60, 80, 50)):
    """Several series in the long format, rows of different series interleaved."""
    parts = [
        wave_table(rows, number, 10.0**number, 10.0**number).assign(unique_id=f"shop {number}")
        for number, rows in enumerate(sizes)
    ]
    table = pd.concat(parts)[["unique_id", "ds", "y"]]
    return table.sort_values(["ds", "unique_id"], ignore_index=True)


def good_panel(count, rows=70):
    """Series of different levels that are as good as any, all of the same days."""
    parts = [
        wave_table(rows, number, 100.0 * (number + 1), 10.0 * (number + 1)).assign(
            unique_id=f"good {number:03}"
        )
        for number in range(count)
    ]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", "y"]]


def odd_panel(*kinds, rows=70):
    """One series of each odd kind, whose name is the kind."""
    days = pd.date_range("2020-01-01", periods=rows)
    wave = wave_table(rows, 1, 50.0, 5.0)
    few = wave["y"].where(np.arange(rows) < 3)
    frames = {
        "one row": wave[20:21],
        "all missing": wave.assign(y=np.nan),
        "no targets": wave.assign(y=few),
        "constant": wave.assign(y=50.0),
        "short": wave[-9:],
        "stopped": wave.assign(ds=days - pd.Timedelta(days=300)),
        "new": wave,
        "new of one row": wave[-1:],
        "absent": wave,
    }
    parts = [frames[kind].assign(unique_id=kind) for kind in kinds]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", "y"]]


def tiny_prior(path):
    """Writes a tiny model that reads what a pretrained one reads; returns the path."""
    from taylorformer import Taylorformer
    from taylorformer.data_wrangler.tables.context_scaler import input_shapes

    model = Taylorformer(
        num_heads=2,
        head_dim=4,
        width=8,
        num_layers=1,
        encoding_dim=2,
        dropout=0.0,
        neighbour_dims=1,
        towers=("xy",),
        seed=0,
    )
    model.build(input_shapes())
    model.save(path)
    return path


class StopAfterFirstEpoch(keras.callbacks.Callback):
    """Stops a training as a user does, and keeps the numbers of the epochs that began."""

    def __init__(self, stops=True):
        super().__init__()
        self.stops, self.epochs = stops, []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch)
        if self.stops and epoch == 1:
            raise KeyboardInterrupt
