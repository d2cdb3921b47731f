"""Covariates of a table, read by pretrained weights that were trained on it."""

import json

import numpy as np
import pandas as pd
import pytest
from forecasting import StopAfterFirstEpoch, tiny_prior

from taylorformer import Forecaster, PretrainedForecaster
from taylorformer.data_wrangler import Series
from taylorformer.training_and_evaluation.forecasting import fine_tuning
from taylorformer.training_and_evaluation.forecasting.fine_tuning import FineTuning
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import find_pretrained

# A tiny model understands nothing, and a forecaster says so.
pytestmark = pytest.mark.filterwarnings("ignore:(the rows do not show|one-step forecasts)")

_ROWS, _HORIZON = 80, 3
_ROLES = {"target_columns": "y", "covariate_columns": ["price", "promotion"]}


def _whole(seed=0):
    """Returns a table with the rows to forecast."""
    rng = np.random.default_rng(seed)
    days = np.arange(_ROWS + _HORIZON)
    table = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=len(days))})
    table["promotion"] = rng.random(len(days)) < 0.2
    table["price"] = 1e3 + days % 5
    table["y"] = 50 + 10 * np.sin(2 * np.pi * days / 7) + 8 * table["promotion"]
    return table


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return str(tiny_prior(tmp_path_factory.mktemp("weights") / "tiny.keras"))


@pytest.fixture(scope="module")
def table():
    return _whole()[:_ROWS]


@pytest.fixture(scope="module")
def future():
    return _whole()[_ROWS:].drop(columns="y")


def _forecaster(weights, **settings):
    """Two steps cost less than tracing one."""
    arguments = {"horizon": _HORIZON, "seasons": 7, "max_steps": 4, "learning_rate": 1e-2}
    return Forecaster(start=weights, batch_size=4, run_eagerly=True, **{**arguments, **settings})


@pytest.fixture(scope="module")
def fitted(weights, table):
    # No validation part: the last weights are kept.
    return _forecaster(weights, fractions=(0.8, 0.0, 0.2)).fit(table, **_ROLES)


def _samples(forecaster, table, future, **arguments):
    return forecaster.forecast(table, future, num_samples=8, **arguments).samples


def test_what_is_trained_reads_covariates_of_the_rows_to_forecast(fitted, table, future, weights):
    before = find_pretrained(weights).load()
    assert fitted.model_.x_dims == before.x_dims + 2
    samples = _samples(fitted, table, future)
    assert samples.shape == (8, 1, _HORIZON, 1)
    other = _samples(fitted, table, future.assign(promotion=~future["promotion"]))
    assert np.abs(other - samples).min() > 0
    # Units of a covariate do not matter, but for rounding.
    rescaled = _forecaster(weights, fractions=(0.8, 0.0, 0.2)).fit(
        table.assign(price=table["price"] * 4 - 100), **_ROLES
    )
    np.testing.assert_allclose(
        _samples(
            rescaled,
            table.assign(price=table["price"] * 4 - 100),
            future.assign(price=future["price"] * 4 - 100),
        ),
        samples,
        rtol=1e-3,
    )


@pytest.mark.slow
def test_without_covariates_that_help_the_start_is_kept(weights, table, future):
    with pytest.warns(UserWarning, match="no score of the validation part is finite"):
        forecaster = _forecaster(weights, learning_rate=1e3).fit(table, **_ROLES)
    assert forecaster.report_["share"] == 0
    plain = Forecaster.from_preset(weights, horizon=_HORIZON, seasons=7)
    expected = _samples(plain, table[["ds", "y"]], future[["ds"]])
    np.testing.assert_allclose(_samples(forecaster, table, future), expected, rtol=1e-4)


def test_rows_to_forecast_need_their_covariates(fitted, table, future):
    with pytest.raises(ValueError, match="`future`"):
        fitted.forecast(table)
    with pytest.raises(ValueError, match="promotion"):
        fitted.forecast(table, future.drop(columns="promotion"))
    with pytest.raises(ValueError, match="price"):
        fitted.forecast(table.drop(columns="price"), future)
    message = r"`covariate_columns` must be \('price', 'promotion'\), as in `fit`"
    with pytest.raises(ValueError, match=message):
        fitted.pretrained_.forecast(table, future, target_columns="y")


def test_back_tests_read_them(fitted, table):
    def scores(data):
        return fitted.backtest(data, num_samples=4).scores.iloc[0].drop("line").to_numpy(float)

    expected = scores(table)
    assert np.isfinite(expected[~np.isnan(expected)]).all()
    assert not np.allclose(
        scores(table.assign(promotion=~table["promotion"])), expected, equal_nan=True
    )


def test_several_series_and_targets_and_missing_values(weights, table):
    tables = []
    for seed, name in enumerate(("north", "south")):
        whole = _whole(seed).assign(shop=name)
        whole["z"] = whole["y"] ** 2
        whole.loc[10:12, "y"] = np.nan
        tables.append(whole)
    past = pd.concat([one[:_ROWS] for one in tables])
    later = pd.concat([one[_ROWS:].drop(columns=["y", "z"]) for one in tables])
    forecaster = _forecaster(weights)
    forecaster.fit(past, id_column="shop", **{**_ROLES, "target_columns": ["y", "z"]})
    with pytest.warns(UserWarning, match="one by one"):
        samples = _samples(forecaster, past, later)
    assert samples.shape == (8, 2, _HORIZON, 2) and np.isfinite(samples).all()
    # Series name their covariates themselves.
    series = Series.from_frame(table, "ds", "y", covariate_columns=["price", "promotion"])
    again = _forecaster(weights, max_steps=1).fit(series)
    assert again.columns_.covariate_columns == ("price", "promotion")


def test_they_are_saved_loaded_and_served(fitted, table, future, tmp_path):
    import tensorflow as tf

    fitted.save(tmp_path / "model")
    again = Forecaster.load(tmp_path / "model")
    np.testing.assert_array_equal(_samples(again, table, future), _samples(fitted, table, future))
    fitted.export(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served")
    request = {
        "time_context": np.arange(20.0)[np.newaxis],
        "time_target": np.arange(20.0, 23.0)[np.newaxis],
        "y_context": table["y"].to_numpy()[-20:].reshape(1, 20, 1),
        "periods": np.array([[7.0, 0.0, 0.0]]),
        "covariates_context": table[["price", "promotion"]].to_numpy(float)[np.newaxis, -20:],
        "covariates_target": future[["price", "promotion"]].to_numpy(float)[np.newaxis],
        "num_samples": np.int32(4),
        "seed": np.int32(0),
    }
    sample = served.signatures["sample"]
    drawn = sample(**{name: tf.constant(value) for name, value in request.items()})["samples"]
    assert drawn.shape == (4, 1, _HORIZON, 1)
    request["covariates_target"] = request["covariates_target"] * [1, 0] + [0, 1]
    other = sample(**{name: tf.constant(value) for name, value in request.items()})["samples"]
    assert not np.allclose(other, drawn)


@pytest.mark.slow
def test_a_stopped_training_continues_and_other_covariates_are_another_one(
    weights, table, tmp_path, monkeypatch
):
    usual = FineTuning(steps_per_epoch=2)
    monkeypatch.setattr(fine_tuning, "_SHORT", usual)
    straight = _forecaster(weights).fit(table, **_ROLES)
    stopped, arguments = _forecaster(weights), {**_ROLES, "checkpoint": tmp_path / "training.npz"}
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(table, callbacks=[StopAfterFirstEpoch()], **arguments)
    other = table.assign(price=1.0 * np.arange(_ROWS))
    with pytest.raises(ValueError, match="training can only resume with the data"):
        stopped.fit(other, resume=True, **arguments)
    stopped.fit(table, resume=True, **arguments)
    for one, two in zip(stopped.model_.get_weights(), straight.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_mirrored_forecasts_of_counts_and_files_of_before(weights, table, future, tmp_path):
    pretrained = PretrainedForecaster(
        weights, horizon=_HORIZON, seasons=7, lower=0, integers=True, mirrored=True
    )
    counts = table.assign(y=table["y"].round())
    pretrained.fit(counts, tuning=FineTuning(max_steps=2, batch_size=4), run_eagerly=True, **_ROLES)
    samples = _samples(pretrained, counts, future)
    assert (samples == samples.round()).all() and samples.min() >= 0
    plain = PretrainedForecaster(weights, horizon=_HORIZON, seasons=7)
    bare = table[["ds", "y"]]
    plain.fit(bare, tuning=FineTuning(max_steps=1, batch_size=4), run_eagerly=True)
    plain.save(tmp_path)
    path = tmp_path / "forecaster.json"
    content = json.loads(path.read_text())
    del content["pretrained"]["training"]["covariates"]
    path.write_text(json.dumps(content))
    np.testing.assert_array_equal(
        _samples(Forecaster.load(tmp_path), bare, None), _samples(plain, bare, None)
    )
