"""SavedModels: all endpoints give the model's numbers, in a process that has TensorFlow alone."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conformance
import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from forecasting import long_table, tiny_forecaster, wave_table

from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.model.probabilistic_model import ProbabilisticModel

SHAPES = [(1, 5, 4), (3, 2, 6), (2, 0, 1)]
LEVELS = np.array([0.1, 0.5, 0.9], "float32")

SERVE = """
import sys

for name in ("taylorformer", "keras"):
    sys.modules[name] = None
import numpy as np
import tensorflow as tf

folder, asked, answered = sys.argv[1:]
signatures = tf.saved_model.load(folder).signatures
answers = {}
with np.load(asked) as file:
    for call in sorted({name.split("|")[0] for name in file.files}):
        endpoint = call.split("@")[0]
        inputs = {
            name.split("|")[1]: tf.constant(file[name])
            for name in file.files
            if name.startswith(call + "|")
        }
        for output, value in signatures[endpoint](**inputs).items():
            answers[f"{call}|{output}"] = value.numpy()
np.savez(answered, **answers)
"""


def serve(folder, calls, tmp_path):
    """Calls endpoints in a fresh process; `calls` maps `endpoint@label` to inputs."""
    asked, answered = tmp_path / "asked.npz", tmp_path / "answered.npz"
    flat = {
        f"{call}|{name}": value
        for call, outputs in calls.items()
        for name, value in outputs.items()
    }
    np.savez(asked, **flat)
    command = [sys.executable, "-c", SERVE, str(folder), str(asked), str(answered)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = {call: {} for call in calls}
    with np.load(answered) as file:
        for name in file.files:
            call, output = name.split("|")
            answers[call][output] = file[name]
    return answers


@pytest.fixture(scope="module")
def model():
    case = conformance.MODELS[1]
    model = case.make(num_layers=1)
    model(case.data()[0])
    return model


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "1"
    model.export(folder)
    return folder


def request(batch_size, num_context, num_target, masked, seed=0):
    inputs, y_target = conformance.points(num_context, num_target, 2, 2, batch_size, seed)
    if masked:
        rng = np.random.default_rng(seed)
        inputs["context_mask"] = rng.random((batch_size, num_context)) < 0.7
        inputs["target_mask"] = rng.random((batch_size, num_target)) < 0.7
        inputs["y_context"] = np.where(
            inputs["context_mask"][..., np.newaxis], inputs["y_context"], np.nan
        ).astype("float32")
    return inputs, y_target


def close(got, wanted):
    size = max(1.0, np.abs(wanted).max())
    np.testing.assert_allclose(got, wanted, atol=1e-5 * size)


def test_a_process_with_tensorflow_alone_gives_the_numbers_of_the_model(model, exported, tmp_path):
    calls = {}
    for number, shape in enumerate(SHAPES):
        for ending in ("", "_masked"):
            inputs, y_target = request(*shape, bool(ending), number)
            drawn = {**inputs, "num_samples": np.int32(6), "seed": np.int32(number)}
            calls[f"sample{ending}@{number}"] = drawn
            calls[f"serving_default{ending}@{number}"] = {**drawn, "quantile_levels": LEVELS}
            calls[f"log_prob{ending}@{number}"] = {**inputs, "y_target": y_target}
    answers = serve(exported, calls, tmp_path)
    for number, shape in enumerate(SHAPES):
        for ending in ("", "_masked"):
            inputs, y_target = request(*shape, bool(ending), number)
            samples = model.sample(inputs, 6, seed=number).numpy()
            close(answers[f"sample{ending}@{number}"]["samples"], samples)
            summary = answers[f"serving_default{ending}@{number}"]
            assert set(summary) == {"mean", "stddev", "quantiles"}
            close(summary["mean"], samples.mean(axis=0))
            stddev = samples.std(axis=0)
            if ending:
                stddev[~inputs["target_mask"]] = 1.0
            close(summary["stddev"], stddev)
            quantiles = np.moveaxis(np.quantile(samples, LEVELS, axis=0), 0, -1)
            close(summary["quantiles"], quantiles)
            log_prob = answers[f"log_prob{ending}@{number}"]["log_prob"]
            close(log_prob, model.log_prob(inputs, y_target).numpy())
    # The same seed in another process.
    again = serve(exported, {"sample@0": calls["sample@0"]}, tmp_path)
    np.testing.assert_array_equal(again["sample@0"]["samples"], answers["sample@0"]["samples"])


def test_the_folder_holds_the_weights_and_little_else(model, exported):
    size = sum(path.stat().st_size for path in exported.rglob("*") if path.is_file())
    weights = 4 * sum(int(np.prod(weight.shape)) for weight in model.weights)
    assert size <= weights + 3 * 2**20
    names = tf.train.list_variables(str(exported / "variables" / "variables"))
    assert not [name for name, _ in names if "optimizer" in name or "seed" in name]
    stored = [shape for name, shape in names if "model_weights" in name]
    assert len(stored) == len(model.weights)


def test_signatures_have_free_lengths_and_named_inputs(exported):
    served = tf.saved_model.load(str(exported))
    signatures = served.signatures
    names = ("serving_default", "sample", "log_prob")
    assert set(signatures) == {f"{name}{ending}" for name in names for ending in ("", "_masked")}
    specs = signatures["serving_default"].structured_input_signature[1]
    assert specs["x_context"].shape.as_list() == [None, None, 2]
    assert specs["seed"].dtype == specs["num_samples"].dtype == tf.int32
    specs = signatures["log_prob_masked"].structured_input_signature[1]
    assert {"context_mask", "target_mask", "y_target"} < set(specs)
    good = {name: tf.constant(value) for name, value in request(1, 2, 2, False)[0].items()}
    drawn = {"num_samples": tf.constant(2), "seed": tf.constant(0)}
    for wrong, message in (
        ({"num_samples": tf.constant(0)}, "num_samples"),
        ({"y_context": good["y_context"][:, :1]}, "y_context"),
        ({"x_target": tf.zeros([2, 2, 2])}, "x_target"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            signatures["sample"](**{**good, **drawn, **wrong})


def test_four_threads_get_what_one_gets_alone(exported):
    served = tf.saved_model.load(str(exported))
    sample = served.signatures["sample"]

    def call(number):
        inputs, _ = request(2, 3, 5, False, number % 4)
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        drawn = sample(**tensors, num_samples=tf.constant(20), seed=tf.constant(number % 4))
        return drawn["samples"].numpy()

    alone = [call(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for number, samples in enumerate(pool.map(call, range(24))):
            np.testing.assert_array_equal(samples, alone[number % 4])


@pytest.mark.slow
def test_a_loaded_model_is_exported_without_being_called(model, exported, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    again.export(tmp_path / "served")
    inputs = {name: tf.constant(value) for name, value in request(2, 3, 4, False)[0].items()}
    y_target = tf.constant(request(2, 3, 4, False)[1])
    served = [tf.saved_model.load(str(path)) for path in (exported, tmp_path / "served")]
    results = [one.signatures["log_prob"](**inputs, y_target=y_target) for one in served]
    np.testing.assert_array_equal(results[0]["log_prob"], results[1]["log_prob"])


def test_what_cannot_be_exported_says_so(model, tmp_path):
    with pytest.raises(ValueError, match="must be built"):
        conformance.MODELS[0].make().export(tmp_path)
    with pytest.raises(ValueError, match="`format` must be one of 'tf_saved_model'"):
        model.export(tmp_path, format="onnx")
    assert type(model).export is ProbabilisticModel.export


# The Forecaster, in units of the user.


def raw_request(table, end, horizon, context_length=6):
    seconds = (table["ds"] - table["ds"].iloc[0]).dt.total_seconds().to_numpy()
    start = end - context_length
    return {
        "time_context": seconds[np.newaxis, start:end],
        "y_context": table["y"].to_numpy()[np.newaxis, start:end, np.newaxis],
        "time_target": seconds[np.newaxis, end : end + horizon],
    }


@pytest.mark.parametrize("scaling", ["window", pytest.param("standard", marks=pytest.mark.slow)])
def test_a_served_forecaster_takes_and_gives_raw_numbers(tmp_path, scaling):
    table = wave_table()
    forecaster = tiny_forecaster(scaling=scaling, max_steps=2).fit(table)
    forecaster.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    signatures = served.signatures
    windows = Windows(forecaster._panel(table, "error", "error")[0], forecaster.scaler_)
    for end in (40, 70):
        raw = {name: tf.constant(value) for name, value in raw_request(table, end, 4).items()}
        drawn = {**raw, "num_samples": tf.constant(7), "seed": tf.constant(2)}
        starts = [end - 6]
        wanted = windows.inverse(
            forecaster.model_.sample(windows.forecast_inputs(starts), 7, seed=2), starts
        )
        samples = signatures["sample"](**drawn)["samples"].numpy()
        assert samples.dtype == np.float64
        np.testing.assert_allclose(samples, wanted, rtol=1e-4)
        summary = signatures["serving_default"](**drawn, quantile_levels=tf.constant([0.5]))
        np.testing.assert_allclose(summary["mean"], wanted.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(
            summary["quantiles"][..., 0], np.quantile(wanted, 0.5, axis=0), rtol=1e-4
        )
        # A shorter past, padded at the front at any time.
        padded = {
            **drawn,
            "time_context": tf.pad(drawn["time_context"], [[0, 0], [2, 0]]),
            "y_context": tf.pad(
                drawn["y_context"], [[0, 0], [2, 0], [0, 0]], constant_values=np.nan
            ),
        }
        same = signatures["sample"](**padded)["samples"]
        np.testing.assert_allclose(same, wanted, rtol=1e-4)
        for name, value in (("time_context", raw["time_context"] * np.nan),):
            with pytest.raises(tf.errors.InvalidArgumentError, match="must be finite"):
                signatures["sample"](**{**drawn, name: value})
        nothing = {name: raw[name][:, :0] for name in ("time_context", "y_context")}
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least one row"):
            signatures["sample"](**{**drawn, **nothing})
        truth = windows.truth(starts)
        inputs, y_target = windows.batch(starts)
        log_prob = forecaster.model_.log_prob(inputs, y_target)
        np.testing.assert_allclose(
            signatures["log_prob"](**raw, y_target=tf.constant(truth))["log_prob"],
            windows.inverse_log_prob(log_prob, starts),
            rtol=1e-4,
        )


@pytest.mark.slow
def test_several_series_and_covariates_are_served(tmp_path):
    table = long_table((60, 50)).assign(heat=lambda t: t["ds"].dt.day_of_week)
    forecaster = tiny_forecaster(max_steps=2).fit(table, covariate_columns=["heat"])
    forecaster.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    sample = served.signatures["sample"]
    one_series = table[table["unique_id"] == "shop 1"].reset_index(drop=True)
    raw = raw_request(one_series, 30, 4)
    heat = one_series["heat"].to_numpy(np.float64)[np.newaxis, :, np.newaxis]
    drawn = sample(
        **{name: tf.constant(value) for name, value in raw.items()},
        covariates_context=tf.constant(heat[:, 24:30]),
        covariates_target=tf.constant(heat[:, 30:34]),
        series=tf.constant([forecaster.scaler_.names.index("shop 1")]),
        num_samples=tf.constant(3),
        seed=tf.constant(0),
    )
    windows = Windows(forecaster._panel(one_series, "error", "error")[0], forecaster.scaler_)
    wanted = forecaster.model_.sample(windows.forecast_inputs([24]), 3, seed=0)
    np.testing.assert_allclose(drawn["samples"], windows.inverse(wanted, [24]), rtol=1e-4)


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    rows = np.arange(300)
    table = pd.DataFrame(
        {"ds": pd.date_range("2024-01-01", periods=300), "y": 5000 + 300 * np.sin(rows / 5)}
    )
    tiny_forecaster(10, 50).fit(table).export(tmp_path / "served")
    script = Path(__file__).parents[2] / "examples" / "call_saved_model.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "served")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(rows) == 10 and all(low < middle < high for _, low, middle, high in rows)
