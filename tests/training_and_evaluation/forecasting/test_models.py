"""The Forecaster with every model: the same tables, parts, back-test, files and export."""

import dataclasses
import functools
import json
import warnings

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from forecasting import TINY
from matplotlib.figure import Figure

from taylorformer.comparison_models.direct_forecaster import DirectForecaster
from taylorformer.data_wrangler.tables.common_seasons import common_seasons
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.forecasting.presets import PRESETS, ForecastPreset
from taylorformer.training_and_evaluation.forecasting.serving import _Requests, export_forecaster
from taylorformer.training_and_evaluation.forecasting.settings import ForecasterSettings
from taylorformer.training_and_evaluation.model_classes import MODELS
from taylorformer.training_and_evaluation.model_kinds import MODEL_KINDS

# Data sets stay graphs where everything else runs op by op, and TensorFlow says so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config")

HORIZON, CONTEXT = 4, 12
_PLAN = {
    "batch_size": 4,
    "max_steps": 2,
    "steps_per_epoch": 2,
    "learning_rate": 3e-3,
    "max_validation_windows": 3,
}
_DIRECT = {"width": 8, "num_heads": 2, "feed_forward": 8, "encoder_layers": 1}
_LATENT = {
    "width": 8,
    "latent_dim": 4,
    "latent_layers": (1, 1),
    "deterministic_layers": 1,
    "decoder_layers": 2,
    "num_latents": 2,
    "log_prob_latents": 3,
}
TINY_PRESETS = {
    "taylorformer": dataclasses.replace(TINY, **_PLAN),
    "tnp": ForecastPreset(
        "tiny", "tnp", num_heads=2, width=8, num_layers=1, feed_forward=8, **_PLAN
    ),
    "anp": ForecastPreset("tiny", "anp", num_heads=2, **_LATENT, **_PLAN),
    "np": ForecastPreset("tiny", "np", **_LATENT, **_PLAN),
    "autoformer": ForecastPreset("tiny", "autoformer", moving_average=3, **_DIRECT, **_PLAN),
    "informer": ForecastPreset("tiny", "informer", **_DIRECT, **_PLAN),
}
DIRECT = [name for name, kind in MODEL_KINDS.items() if kind.reads_even_grid]
SCORES = {
    **dict.fromkeys(("taylorformer", "tnp"), ("teacher_forced_nll", "teacher_forced_mse")),
    **dict.fromkeys(("anp", "np"), ("joint_nll", "mean_latent_mse")),
    **dict.fromkeys(DIRECT, ("joint_nll", "mse")),
}


def week_table(rows=70):
    """A daily series with a season of a week, no value missing."""
    days = pd.date_range("2020-01-01", periods=rows)
    rng = np.random.default_rng(0)
    values = 50 + 9 * np.sin(2 * np.pi * np.arange(rows) / 7) + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"ds": days, "y": values})


def tiny(model, **settings):
    settings = {"preset": TINY_PRESETS[model], "run_eagerly": True, **settings}
    return Forecaster(HORIZON, CONTEXT, model=model, **settings)


@functools.cache
def fitted_on_weeks(model):
    return tiny(model).fit(week_table())


@pytest.fixture(scope="module")
def table():
    return week_table()


@pytest.fixture(scope="module", params=list(MODEL_KINDS))
def fitted(request):
    return fitted_on_weeks(request.param)


# Every model.


def test_every_model_forecasts(fitted, table):
    kind = MODEL_KINDS[fitted.model]
    assert type(fitted.model_) is MODELS[kind.class_name]
    forecast = fitted.forecast(table, num_samples=20, seed=3)
    assert forecast.samples.shape == (20, 1, HORIZON, 1)
    assert np.abs(forecast.mean - 50).max() < 60 and (forecast.stddev > 0).all()
    assert list(forecast.stamps[0]) == list(pd.date_range("2020-03-11", periods=HORIZON))
    again = fitted.forecast(table, num_samples=20, seed=3)
    np.testing.assert_array_equal(again.samples, forecast.samples)
    assert isinstance(forecast.plot(), Figure)
    # The week is found in the training part, and only read where times are read no other way.
    assert fitted.report_.get("seasons") == ("7 days" if kind.reads_even_grid else None)
    assert fitted.model_.x_dims == (3 if kind.reads_even_grid else 1)


def test_every_model_is_scored_beside_the_naive_lines(fitted, table, tmp_path):
    result = fitted.backtest(table, num_samples=5, num_windows=2, season="7 days")
    scores = result.scores.set_index("line")
    lines = ["last_value", "last_difference", "seasonal"]
    assert list(scores.index) == [fitted.model, *lines]
    nll, mse = SCORES[fitted.model]
    assert np.isfinite(scores.loc[fitted.model, [nll, mse, "free_running_crps"]]).all()
    others = {"joint_nll", "mse", "mean_latent_mse", "teacher_forced_nll"} & set(scores)
    assert scores.loc[fitted.model, sorted(others - {nll, mse})].isna().all()
    assert np.isfinite(scores.loc[lines, "teacher_forced_mse"]).all()
    assert result.by_step[mse].notna().any()
    result.save(tmp_path)
    assert (tmp_path / "by_step.png").exists()
    assert isinstance(result.plot_by_step(mse), Figure)
    assert fitted.model in result.plot_reliability().axes[0].get_title("left")


def test_every_model_is_saved(fitted, table, tmp_path):
    fitted.save(tmp_path)
    saved = json.loads((tmp_path / "forecaster.json").read_text())
    assert saved["settings"]["preset"]["model"] == fitted.model
    again = Forecaster.load(tmp_path)
    assert again.get_params() == fitted.get_params()
    samples = fitted.forecast(table, num_samples=3).samples
    np.testing.assert_array_equal(again.forecast(table, num_samples=3).samples, samples)


def request_of(table, last=None):
    """A request for the rows after the first `last` ones; of dates, in seconds since 1970."""
    seconds = (table["ds"] - pd.Timestamp("1970")).dt.total_seconds().to_numpy()
    rows = slice(len(table) if last is None else last)
    past, values = seconds[rows][-CONTEXT:], table["y"].to_numpy()[rows][-CONTEXT:]
    return {
        "time_context": tf.constant(past[np.newaxis]),
        "y_context": tf.constant(values[np.newaxis, :, np.newaxis]),
        "time_target": tf.constant(past[-1] + 86_400.0 * np.arange(1, HORIZON + 1)[np.newaxis]),
    }


DRAWN = {"num_samples": tf.constant(5), "seed": tf.constant(1)}


@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.slow] * (name != "np")) for name in MODEL_KINDS]
)
def test_every_model_is_served(model, table, tmp_path):
    fitted = fitted_on_weeks(model)
    fitted.export(tmp_path)
    served = tf.saved_model.load(str(tmp_path)).signatures
    drawn = served["sample"](**request_of(table), **DRAWN)["samples"].numpy()
    assert drawn.shape == (5, 1, HORIZON, 1) and np.isfinite(drawn).all()
    windows = Windows(fitted._panel(table, "error", "error")[0], fitted.scaler_)
    starts = windows.panel.offsets[1:] - windows.spec.length
    y_target = windows.truth(starts)
    request = {**request_of(table, -HORIZON), "y_target": tf.constant(y_target)}
    answer = served["log_prob"](**request)["log_prob"].numpy()
    expected = windows.inverse_log_prob(fitted.model_.log_prob(*windows.batch(starts)), starts)
    np.testing.assert_allclose(answer, expected, rtol=1e-4)


@keras.saving.register_keras_serializable("taylorformer_tests_of_forecasts")
class LinearForecaster(DirectForecaster):
    """The forecast of each target is a weighted sum of values and features."""

    def build_layers(self, num_features):
        self.dense = keras.layers.Dense(self.num_target * self.y_dims)
        self.dense.build((None, self.num_context * (self.y_dims + num_features)))

    def forecast_rows(self, values, context_features, target_features, training):
        rows = tf.concat([values, context_features], axis=-1)
        flat = tf.reshape(rows, [-1, rows.shape[1] * rows.shape[2]])
        return tf.reshape(self.dense(flat), [-1, self.num_target, self.y_dims])


def test_a_served_model_of_fixed_lengths_says_so(table, tmp_path):
    series = Series.from_frame(table, "ds", "y")
    spec, week = WindowSpec(CONTEXT, HORIZON), series.duration("7 days")
    windows = Windows(series, WindowScaler.fit(series, spec, 50, periods=[week]))
    starts = np.array([50])
    inputs, y_target = windows.batch(starts)
    model = LinearForecaster(seed=0, **{**_DIRECT, "encoder_layers": 2})
    density = windows.inverse_log_prob(model.log_prob(inputs, y_target), starts)
    export_forecaster(model, windows.scaler, tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    request = request_of(table, 50 + CONTEXT)
    scored = {**request, "y_target": tf.constant(windows.truth(starts))}
    np.testing.assert_allclose(served["log_prob"](**scored)["log_prob"], density, rtol=1e-5)
    assert served["sample"](**request, **DRAWN)["samples"].shape == (5, 1, HORIZON, 1)
    shorter = {name: one[:, 1:] if "context" in name else one for name, one in request.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="fixed lengths: N_C = 12 and N_T = 4"):
        served["sample"](**shorter, **DRAWN)
    uneven = {**request, "time_target": request["time_target"] + 86_400.0}
    with pytest.raises(tf.errors.InvalidArgumentError, match="reads an even grid"):
        served["sample"](**uneven, **DRAWN)


def test_training_resumes_to_the_last_bit(table, tmp_path):
    model = "informer"
    preset = dataclasses.replace(TINY_PRESETS[model], steps_per_epoch=1)
    whole = tiny(model, preset=preset).fit(table)
    path = tmp_path / "training.npz"
    tiny(model, preset=preset, max_steps=1).fit(table, checkpoint=path)
    resumed = tiny(model, preset=preset).fit(table, checkpoint=path, resume=True)
    for ours, theirs in zip(resumed.model_.get_weights(), whole.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert "validation_mse" in whole.history_ and resumed.report_ == whole.report_
    with pytest.raises(ValueError, match="the data and settings it began with"):
        tiny(model, preset=preset, interpolate=True).fit(table, checkpoint=path, resume=True)


# Which model.


def test_the_small_preset_of_a_model_is_its_default():
    for name in MODEL_KINDS:
        preset = Forecaster(model=name).plan()[1]
        assert (
            preset.model == name and preset is not PRESETS[preset.name] and preset.max_steps < 5000
        )
        assert preset.name in ("compact", "tnp-compact", f"{name}-small")
    assert Forecaster().plan() == Forecaster(preset="compact").plan()
    assert Forecaster(preset="tnp-ett").plan()[1].kind.class_name == "TransformerNeuralProcess"
    assert Forecaster.from_preset("informer", horizon=24).plan()[1].max_steps == 15_000
    for settings in ({"preset": "ett"}, {"preset": TINY}):
        with pytest.raises(
            ValueError, match="`preset` must be one of the model 'tnp', such as tnp-"
        ):
            Forecaster(model="tnp", **settings).plan()
    with pytest.raises(ValueError, match="`model` must be one of 'taylorformer', 'tnp'"):
        Forecaster(model="lstm").plan()


def test_presets_hold_arguments_of_their_model_alone():
    preset = ForecastPreset("mine", "np", latent_layers=[2, 2], width=np.int64(8))
    assert preset.model_arguments == {"width": 8, "latent_layers": (2, 2)}
    assert dataclasses.replace(preset, width=9).model_arguments["width"] == 9
    assert hash(preset) == hash(dataclasses.replace(preset))
    with pytest.raises(TypeError, match="Received: taylor_order"):
        ForecastPreset("mine", "np", taylor_order=1)
    with pytest.raises(ValueError, match="`model` must be one of"):
        ForecastPreset("mine", "lstm")


def test_another_model_is_a_change_of_settings():
    settings = ForecasterSettings.of(tiny("tnp").get_params())
    assert settings.changes(tiny("tnp").get_params()) == []
    others = {"model": "np", "preset": None, "seasons": (7, "year"), "interpolate": False}
    changed = settings.changes({**tiny("tnp").get_params(), **others})
    assert changed == ["model", "preset", "seasons"]


# Seasons.


def test_seasons_are_phases_of_absolute_time(rng):
    table = week_table(60)
    series = Series.from_frame(table.assign(k=rng.random(60)), "ds", "y", covariate_columns="k")
    spec, week = WindowSpec(5, 3), float(series.duration("7 days"))
    scaler = WindowScaler.fit(series, spec, 40, periods=[week])
    plain = WindowScaler.fit(series, spec, 40)
    windows, starts = Windows(series, scaler), np.array([0, 7, 11, 40])
    inputs, _ = windows.batch(starts)
    expected, _ = Windows(series, plain).batch(starts)
    assert inputs["x_context"].shape == (4, 5, 4)
    np.testing.assert_array_equal(inputs["x_context"][..., :2], expected["x_context"])
    # 1970 began on a Thursday, and 2020 on a Wednesday, six days later in the week.
    angle = 2 * np.pi * (6 + starts[:, np.newaxis] + np.arange(5)) / 7
    phases = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    np.testing.assert_allclose(inputs["x_context"][..., 2:], phases, atol=1e-6)
    ((batch, _),) = windows.evaluation_dataset(starts, 4)
    raw = {"y_context": windows.panel.values[windows.context_rows(starts)]}
    for part, rows in (("context", windows.context_rows), ("target", windows.target_rows)):
        times = series.stamps[rows(starts).ravel()] - pd.Timestamp("1970")
        raw[f"time_{part}"] = times.total_seconds().to_numpy().reshape(4, -1)
        raw[f"covariates_{part}"] = windows.panel.covariates[rows(starts)]
    served, _ = _Requests(scaler).batch({key: tf.constant(one) for key, one in raw.items()})
    for part in ("x_context", "x_target"):
        np.testing.assert_allclose(batch[part], inputs[part], atol=1e-7)
        np.testing.assert_allclose(served[part], inputs[part], atol=1e-6)
    again = WindowScaler.from_config(json.loads(json.dumps(scaler.get_config())))
    assert again.periods == scaler.periods == (week,) and "periods" not in plain.get_config()


def test_seasons_of_a_panel_are_those_that_half_of_it_shows(rng):
    days = pd.date_range("2020-01-01", periods=140)
    row = np.arange(140)

    def series(name, *periods):
        values = sum(np.sin(2 * np.pi * row / period + 1) for period in periods)
        values = values + 0.1 * rng.normal(size=140)
        frame = pd.DataFrame({"ds": days, "y": values})
        return Series.from_frame(frame, "ds", "y", name=name)

    panel = Panel([series("a", 7), series("b", 7, 31), series("c", 7), series("d", 31.2)])
    assert common_seasons(panel, [140] * 4).describe() == "7 days, 31 days"
    fewer = Panel([series("a", 7), series("b", 7), series("c", 31)])
    assert common_seasons(fewer, [140] * 3).describe() == "7 days"
    assert common_seasons(fewer, [140] * 3, None).periods == ()
    # Of 31 days there are fewer than three cycles.
    assert common_seasons(panel, [80] * 4).describe() == "7 days"
    assert common_seasons(fewer, [100] * 3, (14, "year")).describe().endswith("(named)")


def test_seasons_are_chosen_by_the_user(table):
    forecaster = tiny("informer", seasons=None).fit(table)
    assert forecaster.model_.x_dims == 1 and "seasons" not in forecaster.report_
    forecaster = tiny("np", seasons=["7 days", 30]).fit(table)
    assert forecaster.model_.x_dims == 5
    assert forecaster.report_["seasons"] == "7 days, 30 days (named)"
    assert forecaster.forecast(table, num_samples=2).samples.shape == (2, 1, HORIZON, 1)
    settings = ForecasterSettings.of(tiny("taylorformer").get_params())
    # Phases do not bring times together.
    assert Forecaster._new_model(settings, 2).neighbour_dims == 1
    assert Forecaster._new_model(settings, 0).neighbour_dims is None
    with pytest.raises(ValueError, match="`seasons` must be at least two steps long"):
        tiny("autoformer", seasons="1 day").fit(table)
    with pytest.raises(TypeError, match="`seasons` must be"):
        tiny("autoformer", seasons=object()).fit(table)


# Even grids of fixed lengths.


@pytest.fixture(scope="module")
def direct():
    return fitted_on_weeks("informer")


def test_uneven_and_missing_rows_are_named(table):
    with pytest.raises(
        ValueError,
        match=r"for Autoformer, unless it is trained with `interpolate=True` .`--interpolate`.. "
        "Received: 2020-01-21 00:00:00, 2 days after the row before it, where a usual step is 1",
    ):
        tiny("autoformer").fit(table.drop(index=19))
    without = table.assign(y=table["y"].where(~table.index.isin([30, 33])))
    with pytest.raises(ValueError, match=r"Received: no value of `y` at 2020-01-31 00:00:00$"):
        tiny("informer").fit(without)
    panel = pd.concat([table.assign(unique_id="a"), without.assign(unique_id="b")])
    with pytest.raises(ValueError, match="no value of `y` at 2020-01-31 00:00:00 in series 'b'"):
        tiny("informer").fit(panel)
    # Steps that grow by 0.1 % each: no step is far from the usual one, but windows are not even.
    numbers = np.cumsum(1 + 1e-3 * np.minimum(np.arange(70), 9))
    with pytest.raises(ValueError, match=r"Received: .* after the row before it"):
        tiny("informer").fit(table.assign(ds=numbers), "ds", "y")
    with pytest.raises(ValueError, match="`interpolate` must be False for Taylorformer"):
        tiny("taylorformer", interpolate=True).fit(table)


def test_uneven_and_missing_rows_are_interpolated(table):
    without = table.assign(y=table["y"].where(~table.index.isin([30, 68]))).drop(index=[19, 66])
    forecaster = tiny("informer", interpolate=True).fit(without)
    assert forecaster.model_.interpolate
    assert np.isfinite(forecaster.forecast(without, num_samples=2).samples).all()
    scores = forecaster.backtest(without, num_samples=2).scores
    assert np.isfinite(scores.loc[0, ["joint_nll", "mse"]].astype(float)).all()


def test_lengths_are_those_of_training(direct, table):
    for method in (direct.forecast, direct.backtest):
        with pytest.raises(ValueError, match="`horizon` must be that of training, 4, for Informer"):
            method(table, horizon=5)
    with pytest.raises(ValueError, match="fewer than context_length = 12 rows, which Informer"):
        direct.forecast(table[-11:])
    future = pd.DataFrame({"ds": pd.date_range("2020-03-11", periods=3)})
    with pytest.raises(ValueError, match=r"`future` must have horizon = 4 rows.* Received: 3 rows"):
        direct.forecast(table, future)


def test_a_future_must_lie_on_the_grid(direct, table):
    days = pd.date_range("2020-03-11", periods=HORIZON)
    on_grid = direct.forecast(table, pd.DataFrame({"ds": days}), num_samples=3).samples
    np.testing.assert_array_equal(on_grid, direct.forecast(table, num_samples=3).samples)
    for stamps, where in (
        (days + pd.Timedelta(days=1), "2020-03-12 00:00:00, 2 days"),
        (days.where(days != days[2], days[2] + pd.Timedelta("6h")), "2020-03-13 06:00:00, 1.25"),
    ):
        with pytest.raises(ValueError, match=f"`future` must have even steps.* Received: {where}"):
            direct.forecast(table, pd.DataFrame({"ds": stamps}))
    with pytest.raises(
        ValueError, match=r"`data` must have even steps.*2020-03-11 00:00:00, 2 days"
    ):
        direct.forecast(table[:-1], freq="2D")


def test_series_that_cannot_be_read_are_left_out_of_forecasts(table):
    names = ("even", "short", "gap", "other")
    panel = pd.concat([table.assign(unique_id=name) for name in names])
    forecaster = tiny("autoformer").fit(panel)
    kept = panel["unique_id"].isin(["even", "other"])
    last = panel[kept | ((panel["unique_id"] == "short") & (panel.index >= 60))]
    gap = panel[(panel["unique_id"] == "gap")].drop(index=65)
    with pytest.warns(UserWarning, match="Left out of the forecast: short .*fewer than"):
        forecast = forecaster.forecast(pd.concat([last, gap]), num_samples=2)
    assert forecast.names == ("even", "other")
    assert forecast.left_out["gap"].startswith("not what Autoformer reads: 2020-03-07 00:00:00")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        alone = forecaster.forecast(panel[kept], num_samples=2)
    np.testing.assert_array_equal(alone.samples, forecast.samples)
    with pytest.raises(ValueError, match=r"2020-03-07 00:00:00, 2 days .* in series 'gap'"):
        forecaster.backtest(pd.concat([panel[panel["unique_id"] != "gap"], gap]))


def test_values_stay_inside_their_bounds(table):
    forecaster = tiny("informer", lower=0, integers=True).fit(table.assign(y=table["y"].round()))
    samples = forecaster.forecast(table.assign(y=table["y"].round()), num_samples=10).samples
    assert (samples >= 0).all() and (samples == np.round(samples)).all()


def test_forecasts_read_dates_in_any_unit(direct, table):
    """Seasons are in the unit of the training."""
    other = table.assign(ds=table["ds"].astype("datetime64[ms]"))
    expected = direct.forecast(table, num_samples=3).samples
    np.testing.assert_allclose(direct.forecast(other, num_samples=3).samples, expected, rtol=1e-5)
