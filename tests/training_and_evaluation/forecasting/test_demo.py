"""The demonstration, tiny: it runs, writes its files, and is a thin user of the Forecaster."""

import contextlib
import io
import json

import numpy as np
import pandas as pd
import pytest
from forecasting import tiny_prior
from rich.console import Console

from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2
from taylorformer.training_and_evaluation.forecasting import demo
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster

# A tiny model understands nothing, and a forecaster says so.
pytestmark = pytest.mark.filterwarnings("ignore:(the rows do not show|one-step forecasts)")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    weights = tiny_prior(tmp_path_factory.mktemp("weights") / "tiny.keras")
    return demo.DemoSettings(horizon=3, start=str(weights), num_test_windows=5)


@pytest.fixture(scope="module")
def run(settings, tmp_path_factory):
    """Runs the demonstration once; gives its folder and what it showed."""
    output = tmp_path_factory.mktemp("demo") / "new" / "folder"
    shown = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()) as silent:
        demo.run_demo(
            output,
            seed=3,
            steps=2,
            num_samples=4,
            settings=settings,
            console=Console(file=shown, width=120),
        )
    assert not silent.getvalue()
    return output, shown.getvalue()


@pytest.fixture(scope="module")
def ran(run):
    return run[0]


@pytest.fixture(scope="module")
def report(ran):
    return json.loads((ran / "metrics.json").read_text())


def test_files(ran):
    assert sorted(path.name for path in ran.iterdir()) == [
        "backtest",
        "forecast.csv",
        "forecast.png",
        "metrics.json",
        "model",
        "pretrained.csv",
        "pretrained.png",
    ]
    for name in ("forecast.png", "pretrained.png"):
        assert (ran / name).read_bytes().startswith(b"\x89PNG")


def test_forecast_table_is_the_last_test_window(ran):
    table = pd.read_csv(ran / "forecast.csv", parse_dates=["date"])
    assert list(table.columns) == ["date", "mean", "stddev", "q05", "q50", "q95", "truth"]
    series = load_mauna_loa_co2()
    assert list(table["date"]) == list(series.stamps[-3:])
    np.testing.assert_array_equal(table["truth"], series.values[-3:, 0])
    assert (table["q05"] <= table["q50"]).all() and (table["q50"] <= table["q95"]).all()
    assert np.isfinite(table["mean"]).all()


def test_the_pretrained_forecast_is_of_the_same_window(ran, report):
    first, second = (
        pd.read_csv(ran / f"{name}.csv", parse_dates=["date"])
        for name in ("pretrained", "forecast")
    )
    assert list(first["date"]) == list(second["date"])
    np.testing.assert_array_equal(first["truth"], second["truth"])
    (pretrained,) = report["pretrained_scores"]
    assert pretrained["line"] == report["scores"][0]["line"] == "taylorformer"
    # Where no step of training was kept, both are the same forecast.
    same = pretrained["free_running_crps"] == report["scores"][0]["free_running_crps"]
    assert same == (report["training"]["share"] == 0)


def test_report(report):
    lines = [row["line"] for row in report["scores"]]
    assert lines == ["taylorformer", "last_value", "last_difference", "seasonal"]
    for row in report["scores"]:
        scores = set(row) - {"line"}
        assert all(name.startswith(("free_running_", "teacher_forced_")) for name in scores)
        windows = [one for one in report["by_window"] if one["line"] == row["line"]]
        assert len(windows) == 5
        mean = np.mean([one["free_running_crps"] for one in windows])
        assert row["free_running_crps"] == pytest.approx(mean)
    assert report["num_scored_points"] == 15
    assert report["seed"] == 3 and report["num_samples"] == 4
    assert report["settings"]["horizon"] == 3
    assert report["training"]["training_steps"] == 2
    assert report["training"]["best_step"] in (0, 2)
    assert report["training"]["series"][""]["missing"] == {"co2": 59}
    assert {"training", "total"} == set(report["seconds"])
    assert {"tensorflow", "keras", "python"} < set(report["versions"])


def test_test_windows_lie_in_the_last_fifth_and_do_not_overlap(report):
    stamps = load_mauna_loa_co2().stamps
    windows = [one for one in report["by_window"] if one["line"] == "taylorformer"]
    first = [stamps.get_loc(pd.Timestamp(one["first_target"])) for one in windows]
    assert first[0] >= 0.79 * len(stamps)
    assert set(np.diff(first)) == {3} and first[-1] + 3 == len(stamps)


def test_the_saved_model_gives_the_forecast_and_the_scores_of_the_report(ran, report):
    forecaster = Forecaster.load(ran / "model")
    table = load_mauna_loa_co2().to_frame()
    forecast = forecaster.forecast(table[:-3], table[-3:], num_samples=4, seed=3)
    written = pd.read_csv(ran / "forecast.csv")
    np.testing.assert_allclose(forecast.mean[0, :, 0], written["mean"], atol=1e-4)
    scores = forecaster.backtest(table, num_windows=5, num_samples=0).scores
    for name in ("teacher_forced_nll", "teacher_forced_mse"):
        assert scores[name].iloc[0] == pytest.approx(report["scores"][0][name], rel=1e-5)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_forecast(settings, ran, tmp_path):
    demo.run_demo(tmp_path, seed=3, steps=2, num_samples=4, settings=settings)
    again = (tmp_path / "forecast.csv").read_text()
    assert again == (ran / "forecast.csv").read_text()


def test_what_the_user_sees(run, report):
    output, shown = run
    share = report["training"]["share"]
    kept = f"training {100 * share:.0f} % was kept" if share else "pretrained weights were kept"
    assert kept in " ".join(shown.split())
    for words in (
        "Taylorformer, pretrained",
        "trained on the record",
        "repeat the last value",
        "same week last year",
        "CRPS",
    ):
        assert words in shown
    for name in (
        "pretrained.png",
        "forecast.png",
        "forecast.csv",
        "metrics.json",
        "model",
        "backtest",
    ):
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
