"""The demonstration, tiny: it runs, writes its four files, and looks at test windows last."""

import contextlib
import io
import json

import keras
import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.series import load_mauna_loa_co2
from taylorformer.data_wrangler.windows import Split, Windows, WindowScaler
from taylorformer.training_and_evaluation import demo

TINY = demo.DemoSettings(
    context_length=6,
    horizon=3,
    num_heads=2,
    head_dim=2,
    width=4,
    num_layers=1,
    batch_size=4,
    steps_per_epoch=1,
    validation_step=60,
    num_test_windows=5,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs the demonstration once; gives its folder and what it showed."""
    output = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as shown:
        patch.setenv("COLUMNS", "120")
        demo.run_demo(output, seed=3, steps=2, num_samples=4, settings=TINY)
    return output, shown.getvalue()


@pytest.fixture(scope="module")
def ran(run):
    return run[0]


@pytest.fixture(scope="module")
def report(ran):
    return json.loads((ran / "metrics.json").read_text())


def test_files(ran):
    assert sorted(path.name for path in ran.iterdir()) == [
        "forecast.csv",
        "forecast.png",
        "metrics.json",
        "model.keras",
    ]
    assert (ran / "forecast.png").read_bytes().startswith(b"\x89PNG")


def test_forecast_table_is_the_last_test_window(ran):
    table = pd.read_csv(ran / "forecast.csv", parse_dates=["date"])
    assert list(table.columns) == ["date", "mean", "q05", "q50", "q95", "truth"]
    series = load_mauna_loa_co2()
    assert list(table["date"]) == list(series.stamps[-3:])
    np.testing.assert_array_equal(table["truth"], series.values[-3:, 0])
    assert (table["q05"] <= table["q50"]).all() and (table["q50"] <= table["q95"]).all()
    assert np.isfinite(table["mean"]).all()


def test_report(report):
    names = {"mse", "mae", "crps"}
    naive = {f"free_running_{name}" for name in names}
    intervals = {
        f"free_running_{kind}_{percent}" for kind in ("coverage", "width") for percent in (50, 90)
    }
    assert set(report["taylorformer"]) == naive | intervals
    for line in ("last_value", "same_week_last_year"):
        assert set(report[line]) == naive
        assert report[line]["free_running_crps"] == pytest.approx(report[line]["free_running_mae"])
    assert {"teacher_forced_nll", "teacher_forced_mse"} < set(report)
    assert len(report["windows"]) == 5 and report["num_scored_points"] == 15
    mean = np.mean([one["taylorformer"]["free_running_crps"] for one in report["windows"]])
    assert report["taylorformer"]["free_running_crps"] == pytest.approx(mean)
    steps = report["by_step"]["taylorformer"]["free_running_crps"]
    assert len(steps) == 3 and np.mean(steps) == pytest.approx(mean)
    assert report["seed"] == 3 and report["num_samples"] == 4
    assert report["settings"]["width"] == 4
    assert report["validation"]["training_steps"] == 2
    assert report["validation"]["best_step"] in (1, 2)
    assert report["series"]["missing"] == {"co2": 59}
    assert {"training", "sampling", "total"} < set(report["seconds"])
    assert {"tensorflow", "keras", "python"} < set(report["versions"])


def test_test_windows_lie_in_the_last_fifth_and_do_not_overlap(report):
    split = Split(**report["split"])
    stamps = load_mauna_loa_co2().stamps
    first = [stamps.get_loc(pd.Timestamp(one["first_target"])) for one in report["windows"]]
    assert first[0] >= split.validation_end >= 0.79 * split.num_rows
    assert set(np.diff(first)) == {3} and first[-1] + 3 == split.num_rows


def test_saved_model_gives_the_scores_of_the_report(ran, report):
    model = keras.saving.load_model(ran / "model.keras")
    scaler = WindowScaler.from_config(report["scaler"])
    windows = Windows(load_mauna_loa_co2(), scaler)
    split = Split(**report["split"])
    starts = split.window_starts(scaler.spec, "test")[::-1][: 5 * 3 : 3]
    inputs, y_target = windows.batch(starts)
    count = inputs["target_mask"].sum(axis=1)
    log_prob = scaler.inverse_log_prob(model.log_prob(inputs, y_target), count)
    assert report["teacher_forced_nll"] == pytest.approx(np.mean(-log_prob / count), rel=1e-5)
    mean = scaler.inverse(
        model({**inputs, "y_target": y_target})["mean"], windows.reference(starts)
    )
    error = np.square(mean - windows.truth(starts))
    assert report["teacher_forced_mse"] == pytest.approx(error.mean(), rel=1e-4)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_forecast(ran, tmp_path):
    demo.run_demo(tmp_path, seed=3, steps=2, num_samples=4, settings=TINY)
    again = (tmp_path / "forecast.csv").read_text()
    assert again == (ran / "forecast.csv").read_text()


def test_what_the_user_sees(run):
    output, shown = run
    for words in ("Taylorformer", "repeat the last value", "same week last year", "CRPS"):
        assert words in shown
    for name in ("forecast.png", "forecast.csv", "metrics.json", "model.keras"):
        assert str(output / name) in shown
    again = output.with_name("folder_seed_4")
    assert f"-m taylorformer demo --seed 4 --steps 4 --output {again}\n" in shown


@pytest.mark.parametrize(
    "options, name", [({"steps": 0}, "steps"), ({"num_samples": 0}, "num_samples")]
)
def test_bad_options_are_named_before_anything_runs(tmp_path, options, name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
        demo.run_demo(tmp_path / "demo", **options)
    assert not (tmp_path / "demo").exists()
