"""Arguments of the Forecaster: NumPy's numbers, and settings that change after the training."""

import json
import warnings

import numpy as np
import pytest
from forecasting import TINY, tiny_forecaster, wave_table
from sklearn.base import clone

from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset
from taylorformer.training_and_evaluation.forecasting.settings import ForecasterSettings

NUMPY_ARGUMENTS = {
    "horizon": np.int64(4),
    "context_length": np.uint8(6),
    "max_steps": np.int32(3),
    "batch_size": np.int16(4),
    "learning_rate": np.float32(1e-3),
    "fractions": np.array([0.69, 0.11, 0.2], np.float32),
    "seed": np.int64(0),
    "run_eagerly": np.True_,
}
PLAIN_ARGUMENTS = {
    "horizon": 4,
    "context_length": 6,
    "max_steps": 3,
    "batch_size": 4,
    "learning_rate": float(np.float32(1e-3)),
    "fractions": (0.69, 0.11, 0.2),
    "seed": 0,
    "run_eagerly": True,
}


@pytest.fixture(scope="module")
def table():
    return wave_table()


@pytest.fixture(scope="module")
def fitted(table):
    return Forecaster(preset=TINY, **NUMPY_ARGUMENTS).fit(table)


def test_numbers_of_numpy_train_and_save_as_plain_ones(fitted, table, tmp_path):
    plain = Forecaster(preset=TINY, **PLAIN_ARGUMENTS).fit(table)
    for ours, theirs in zip(fitted.model_.get_weights(), plain.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    fitted.save(tmp_path)
    saved = json.loads((tmp_path / "forecaster.json").read_text())["settings"]
    for name, value in PLAIN_ARGUMENTS.items():
        assert saved[name] == (list(value) if name == "fractions" else value)
    again = Forecaster.load(tmp_path)
    assert {name: again.get_params()[name] for name in PLAIN_ARGUMENTS} == PLAIN_ARGUMENTS


def test_arguments_of_methods_may_be_numbers_of_numpy(fitted, table, tmp_path):
    plain = fitted.forecast(table, horizon=3, num_samples=5, seed=2, batch_size=1)
    forecast = fitted.forecast(
        table,
        horizon=np.int64(3),
        num_samples=np.int32(5),
        seed=np.int64(2),
        batch_size=np.uint16(1),
    )
    np.testing.assert_array_equal(forecast.samples, plain.samples)
    scores = fitted.backtest(
        table,
        horizon=np.int64(2),
        step=np.int64(1),
        num_windows=np.int64(3),
        num_samples=np.int64(2),
        seed=np.int64(1),
        batch_size=np.int64(2),
        season=np.float32(7) * np.timedelta64(1, "D"),
    )
    scores.save(tmp_path)
    report = json.loads((tmp_path / "backtest.json").read_text())
    assert (report["num_windows"], report["num_samples"], report["seed"]) == (3, 2, 1)
    assert type(scores.num_samples) is type(scores.seed) is int


@pytest.mark.parametrize("name", ["num_samples", "seed", "batch_size", "horizon"])
@pytest.mark.parametrize("value", [1.5, "2", True, np.float64(2)])
def test_what_is_no_integer_is_refused(fitted, table, name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be an integer. Received: {name}="):
        fitted.forecast(table, **{name: value})
    with pytest.raises(TypeError, match=f"`{name}` must be an integer. Received: {name}="):
        fitted.backtest(table, **{name: value})


def test_arguments_stay_what_they_are_until_they_are_used():
    """scikit-learn compares by identity."""
    forecaster = Forecaster(preset=TINY, **NUMPY_ARGUMENTS)
    for name, value in NUMPY_ARGUMENTS.items():
        assert forecaster.get_params()[name] is value
    again = clone(forecaster)
    assert again.plan() == forecaster.plan()
    spec, preset = forecaster.plan()
    assert type(spec.horizon) is type(spec.context_length) is int
    assert type(preset.max_steps) is type(preset.batch_size) is int
    assert type(preset.learning_rate) is float


def test_presets_hold_plain_numbers():
    preset = ForecastPreset(
        "mine", width=np.int64(16), dropout=np.float32(0.25), patience=np.int8(3)
    )
    assert json.loads(json.dumps(preset.get_config()))["width"] == 16
    assert preset == ForecastPreset("mine", width=16, dropout=0.25, patience=3)


@pytest.mark.parametrize(
    ("fractions", "error", "message"),
    [
        (np.eye(3), TypeError, "three shares"),
        (np.array([0.5, 0.5]), ValueError, "three shares that add up to 1"),
        (np.array([0.5, 0.6, -0.1]), ValueError, "three shares that add up to 1"),
        (np.array(["a", "b", "c"]), TypeError, "`fractions` must be a number"),
        ("abc", TypeError, "three shares"),
        (None, TypeError, "three shares"),
        (0.7, TypeError, "three shares"),
    ],
)
def test_fractions_that_are_none(fractions, error, message):
    with pytest.raises(error, match=message):
        Forecaster(fractions=fractions).plan()


# Settings that change after the training.


def changed(table, **changes):
    return tiny_forecaster(max_steps=2).fit(table).set_params(**changes)


@pytest.mark.slow
def test_what_is_saved_are_the_settings_of_the_training(table, tmp_path):
    forecaster = changed(table, horizon=9, seed=5)
    before = forecaster.forecast(table, num_samples=2).samples
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        forecaster.save(tmp_path)
    (warning,) = [str(one.message) for one in caught if one.category is UserWarning]
    assert warning.startswith("horizon, seed changed after the training")
    again = Forecaster.load(tmp_path)
    assert (again.horizon, again.seed, again.max_steps) == (4, 0, 2)
    assert again.scaler_.spec.horizon == 4 and forecaster.horizon == 9
    np.testing.assert_array_equal(again.forecast(table, num_samples=2).samples, before)
    again.save(tmp_path, overwrite=True)
    forecaster.set_params(horizon=4, seed=np.int64(0))
    forecaster.save(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"preset": "ett"},
        {"fractions": [0.5, 0.3, 0.2]},
        {"fractions": np.zeros((2, 2)), "horizon": 0},
        {"scaling": "standard", "max_steps": None},
    ],
)
def test_one_warning_names_every_setting_that_changed(table, tmp_path, changes):
    forecaster = tiny_forecaster(max_steps=2)
    settings = ForecasterSettings.of(forecaster.get_params())
    assert settings.changes(forecaster.get_params()) == []
    forecaster.set_params(**changes)
    assert sorted(settings.changes(forecaster.get_params())) == sorted(changes)


def test_the_same_values_in_other_types_are_no_change():
    settings = ForecasterSettings.of(Forecaster(4, 6, preset=TINY).get_params())
    same = Forecaster(np.int64(4), np.int8(6), preset=TINY, fractions=[0.69, 0.11, 0.20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settings.changes(same.get_params()) == []
