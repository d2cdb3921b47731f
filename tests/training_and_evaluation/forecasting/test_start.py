"""What a training begins with: pretrained weights, or new ones."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting import TINY, StopAfterFirstEpoch, tiny_prior, wave_table

from taylorformer import Forecaster, PretrainedForecaster
from taylorformer.training_and_evaluation.forecasting import fine_tuning
from taylorformer.training_and_evaluation.forecasting.fine_tuning import FineTuning
from taylorformer.training_and_evaluation.forecasting.settings import ForecasterSettings

# A tiny model understands nothing, and a forecaster says so.
pytestmark = pytest.mark.filterwarnings("ignore:(the rows do not show|one-step forecasts)")

# Two steps cost less than tracing one.
_TRAINING = {"max_steps": 2, "batch_size": 4, "learning_rate": 1e-2}
_SETTINGS = {"horizon": 3, "seasons": 7, "lower": 0.0}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return str(tiny_prior(tmp_path_factory.mktemp("weights") / "tiny.keras"))


@pytest.fixture(scope="module")
def table():
    return wave_table(70)


@pytest.fixture(scope="module")
def fitted(weights, table):
    forecaster = Forecaster(start=weights, seed=3, run_eagerly=True, **_SETTINGS, **_TRAINING)
    return forecaster.fit(table)


def _settings(**arguments):
    return ForecasterSettings.of({**Forecaster().get_params(), **arguments})


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ({}, "prior"),
        ({"start": "prior"}, "prior"),
        ({"start": None}, None),
        ({"preset": "ett"}, None),
        ({"model": "tnp"}, None),
        ({"scaling": "standard"}, None),
        ({"model": "informer", "interpolate": True}, None),
        ({"interpolate": False, "max_steps": 10}, "prior"),
    ],
)
def test_training_begins_with_the_prior_unless_a_model_is_described(arguments, start):
    settings = _settings(**arguments)
    assert settings.start == start
    rows = {name: settings.arguments[name] for name in ("horizon", "context_length")}
    assert rows == dict.fromkeys(rows, 96 if start is None else None)
    assert settings.changes({**Forecaster().get_params(), **arguments}) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": "other"}, "`start` must be one of 'auto', 'prior', 'prior-1', 'prior-2'"),
        ({"start": "prior", "preset": "ett"}, "Received: start='prior', preset='ett'"),
        ({"start": "x.keras", "model": "np"}, "Received: start='x.keras', model='np'"),
        ({"start": 3}, "`start` must be"),
    ],
)
def test_what_does_not_go_together_is_an_error(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        _settings(**arguments)


def test_bounds_of_single_targets_need_new_weights(weights, table):
    both = table.assign(other=1.0)
    for start in ("auto", weights):
        forecaster = Forecaster(3, start=start, lower=(0, None), max_steps=2)
        with pytest.raises(ValueError, match=r"new ones \(`start=None`, `--start none`\) may have"):
            forecaster.fit(both, target_columns=["y", "other"])
        assert not hasattr(forecaster, "model_")


def test_it_is_the_training_of_the_pretrained_forecaster(fitted, weights, table):
    expected = PretrainedForecaster(weights, **_SETTINGS).fit(
        table, tuning=FineTuning(**_TRAINING), seed=3, run_eagerly=True
    )
    for ours, theirs in zip(
        fitted.model_.get_weights(), expected.model_.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert fitted.report_ == expected.report_ and fitted.borders_ == expected.borders_
    for arguments in ({}, {"horizon": 5, "seed": 1, "batch_size": 1}):
        samples = [
            one.forecast(table, num_samples=4, **arguments).samples for one in (fitted, expected)
        ]
        np.testing.assert_array_equal(*samples)
    arguments = {
        "part": "validation",
        "num_samples": 3,
        "num_windows": 2,
        "step": 1,
        "season": "7 days",
    }
    scores = [one.backtest(table, **arguments).scores for one in (fitted, expected)]
    pd.testing.assert_frame_equal(*scores)
    with pytest.raises(ValueError, match="`context_inside` must be False"):
        fitted.backtest(table, context_inside=True)


def test_it_is_saved_and_loaded(fitted, table, tmp_path):
    fitted.save(tmp_path)
    again = Forecaster.load(tmp_path)
    assert type(again) is Forecaster
    assert again.get_params() == fitted.get_params()
    samples = [one.forecast(table, num_samples=4).samples for one in (fitted, again)]
    np.testing.assert_array_equal(*samples)
    assert again.report_ == fitted.report_
    saved = json.loads((tmp_path / "forecaster.json").read_text())
    assert saved["pretrained"]["forecaster"]["max_steps"] == 2
    again.set_params(horizon=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        again.save(tmp_path, overwrite=True)
    (warning,) = [str(one.message) for one in caught if one.category is UserWarning]
    assert warning.startswith("horizon changed after the training")
    with pytest.raises(FileExistsError):
        again.save(tmp_path)


@pytest.mark.slow
def test_it_is_served(fitted, table, tmp_path):
    import tensorflow as tf

    fitted.export(tmp_path / "served")
    assert "serving_default" in tf.saved_model.load(tmp_path / "served").signatures


@pytest.mark.slow
def test_a_stopped_training_continues(weights, table, tmp_path, monkeypatch):
    usual = FineTuning(steps_per_epoch=2)
    monkeypatch.setattr(fine_tuning, "_SHORT", usual)
    settings = {**_SETTINGS, **_TRAINING, "start": weights, "seed": 3, "run_eagerly": True}
    settings["max_steps"] = 4
    straight = Forecaster(**settings).fit(table)
    stopped, checkpoint = Forecaster(**settings), tmp_path / "training.npz"
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(table, checkpoint=checkpoint, callbacks=[StopAfterFirstEpoch()])
    assert stopped.report_["training_steps"] == 2
    rest = StopAfterFirstEpoch(stops=False)
    stopped.fit(table, checkpoint=checkpoint, resume=True, callbacks=[rest])
    assert rest.epochs == [1]
    assert stopped.report_ == straight.report_
    for one, two in zip(stopped.model_.get_weights(), straight.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_each_fit_replaces_the_one_before(weights, table):
    forecaster = Forecaster(4, 6, preset=TINY, run_eagerly=True).fit(table)
    assert not hasattr(forecaster, "pretrained_")
    forecaster.set_params(preset=None, start=weights, **_TRAINING).fit(table)
    assert hasattr(forecaster, "pretrained_")
    assert not hasattr(forecaster, "scaler_") and not hasattr(forecaster, "x_range_")
    assert forecaster.forecast(table, num_samples=2).samples.shape == (2, 1, 4, 1)
    forecaster.set_params(preset=TINY, start="auto").fit(table)
    assert not hasattr(forecaster, "pretrained_") and hasattr(forecaster, "scaler_")
    assert forecaster.forecast(table, num_samples=2).samples.shape == (2, 1, 4, 1)
