"""Forecasting experiments: windows of a series, scores of two kinds, naive lines, the table."""

import dataclasses
import itertools
import json

import click.testing
import keras
import numpy as np
import pandas as pd
import pytest

from taylorformer.cli import cli
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.experiments import series_scores
from taylorformer.training_and_evaluation.experiments.data import load_task
from taylorformer.training_and_evaluation.experiments.paper_forecasts import paper_figures
from taylorformer.training_and_evaluation.experiments.pictures import plot_forecasts
from taylorformer.training_and_evaluation.experiments.presets import MODEL_PRESETS, TASKS
from taylorformer.training_and_evaluation.experiments.record import read_record
from taylorformer.training_and_evaluation.experiments.run import make_model, run_experiment
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings
from taylorformer.training_and_evaluation.experiments.table import markdown_table, series_rows

pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config")

NUM_ROWS = 1500
_SETTINGS = {
    "iterations": 2,
    "batch_size": 2,
    "validate_every": 1,
    "validation_sequences": 3,
    "test_sequences": 5,
}
_TINY = {
    "taylorformer": {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1},
    "autoformer-small": {"num_heads": 2, "width": 8, "feed_forward": 8},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Holds a file of hourly loads, under the name of the real one."""
    folder = tmp_path_factory.mktemp("data")
    hours = np.arange(NUM_ROWS)
    loads = 10 + 3 * np.sin(hours * 2 * np.pi / 24) + np.random.default_rng(0).normal(size=NUM_ROWS)
    stamps = pd.date_range("2016-07-01 02:00", periods=NUM_ROWS, freq="h")
    table = {"date": stamps, "OT": loads, "MT/2": loads[::-1]}
    pd.DataFrame(table).to_csv(folder / "electricity.csv", index=False)
    return folder


# Samples are drawn target by target, which takes long without graphs.
_NUM_TARGET = 5


@pytest.fixture
def tiny(monkeypatch, eagerly):
    task = dataclasses.replace(
        TASKS["electricity-96"], num_target=(_NUM_TARGET, _NUM_TARGET), free_running_sequences=2
    )
    monkeypatch.setitem(TASKS, task.name, task)
    monkeypatch.setattr(series_scores, "NUM_SAMPLES", 3)
    for name, settings in _TINY.items():
        preset = dataclasses.replace(MODEL_PRESETS[name], settings=settings, by_task={})
        monkeypatch.setitem(MODEL_PRESETS, name, preset)


def test_tasks_are_those_of_the_paper():
    names = [
        f"{data}-{horizon}"
        for data, horizon in itertools.product(
            ("ett", "exchange", "electricity"), (96, 192, 336, 720)
        )
    ]
    assert [name for name, task in TASKS.items() if task.kind == "series"] == [*names, "etth1-96"]
    assert not TASKS["etth1-96"].paper
    settings = ExperimentSettings.of("ett-336")
    assert (settings.iterations, settings.batch_size, settings.learning_rate) == (40_000, 32, 3e-4)
    assert settings.target_permutations == 0
    task = settings.experiment_task
    assert task.paper["test"]["tnp"] == (2.48, 0.02)
    assert task.paper_mse["test"]["informer"] == (0.72, 0.34)
    direct = ExperimentSettings.of("electricity-720", "autoformer")
    assert (direct.iterations, direct.learning_rate) == (15_000, 1e-4)
    assert direct.preset.for_task(direct.experiment_task) == {
        "width": 20,
        "num_heads": 4,
        "feed_forward": 512,
    }
    assert paper_figures("electricity", 720)["nll"]["taylorformer"] == (-0.44, 0.03)


@pytest.mark.parametrize(
    ("task", "parameters"),
    [
        (("ett-96", "taylorformer"), 92_318),
        (("exchange-96", "taylorformer"), 90_000),
        (("electricity-96", "taylorformer"), 200_000),
        (("ett-96", "tnp"), 90_000),
        (("exchange-96", "tnp"), 90_000),
        (("electricity-96", "tnp"), 200_000),
    ],
)
def test_sizes_are_about_those_of_the_paper(task, parameters):
    model = make_model(ExperimentSettings.of(*task))
    count = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    assert count == pytest.approx(parameters, rel=0.12)


@pytest.mark.parametrize(
    ("task", "preset", "message"),
    [
        ("gp-rbf", "autoformer", "`architecture` must be one of taylorformer.*for gp-rbf"),
        ("ett-96", "anp", "`architecture` must be one of .*informer.*for ett-96. Received: anp"),
    ],
)
def test_a_model_that_cannot_do_the_task_is_refused(task, preset, message):
    with pytest.raises(ValueError, match=message):
        ExperimentSettings.of(task, preset)


def test_only_a_task_of_one_column_takes_another():
    for task in ("etth1-96", "gp-rbf"):
        with pytest.raises(ValueError, match="`column` is for tasks of one column of a table"):
            ExperimentSettings.of(task, column="OT")


def test_windows_are_those_of_the_papers_code(folder):
    task = TASKS["electricity-96"]
    data = load_task(task, 7, 10_000, folder)
    train_end, test_start = int(0.69 * NUM_ROWS), int(0.8 * NUM_ROWS)
    loads = pd.read_csv(folder / "electricity.csv")["OT"].to_numpy()
    mean, spread = loads[:train_end].mean(), loads[:train_end].std()
    held = data.test["test"]
    assert len(held) == NUM_ROWS - test_start - 192 + 1
    inputs, y_target = held.windows.batch(held.starts[:1])
    scaled = (loads[test_start : test_start + 192] - mean) / spread
    np.testing.assert_allclose(inputs["y_context"][0, :, 0], scaled[:96], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y_target[0, :, 0], scaled[96:], rtol=1e-4, atol=1e-5)
    x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)[0, :, 0]
    np.testing.assert_allclose(x, np.linspace(-1, 1, 192), atol=1e-6)
    validation = data.validation
    assert len(validation) == 7
    assert train_end - 96 <= validation.starts.min()
    assert validation.starts.max() + 192 == test_start
    batch, _ = next(iter(data.training(0, 0, 4)))
    assert batch["y_context"].shape == (4, 96, 1)


def test_time_features_are_phases(folder):
    data = load_task(TASKS["electricity-96"], 3, 5, folder, time_features=True)
    assert data.x_dims == 5
    held = data.test["test"]
    assert isinstance(held.windows, Windows)
    inputs, _ = held.windows.batch(held.starts[:1])
    waves = inputs["x_context"][0, :, 1]
    np.testing.assert_allclose(waves[:-24], waves[24:], atol=1e-4)
    assert np.ptp(waves) > 1


@pytest.mark.parametrize("preset", _TINY)
def test_a_run_is_put_on_record(tiny, folder, tmp_path, preset):
    settings = ExperimentSettings.of("electricity-96", preset, **_SETTINGS)
    task = settings.experiment_task
    data = load_task(task, 3, 5, folder, time_features=settings.preset.time_features)
    run = run_experiment(settings, tmp_path, data=data, show_progress=False)
    record = read_record(settings.record_path(tmp_path))
    assert record == json.loads(json.dumps(run.record))
    direct = preset != "taylorformer"
    way = "joint" if direct else "teacher_forced"
    assert record["score"] == way
    scores = record["scores"]["test"]
    assert scores["sequences"] == 5
    assert scores["free_running_windows"] == 2
    # The scores are those of the model that was kept, window by window.
    held = data.test["test"]
    inputs, y_target = held.windows.batch(held.starts)
    model = keras.models.load_model(settings.run_folder(tmp_path) / "model.keras")
    nll = -np.float64(model.log_prob(inputs, y_target)) / _NUM_TARGET
    np.testing.assert_allclose(run.scores["test"][f"{way}_nll"], nll, rtol=1e-4)
    assert scores["model"][f"{way}_nll"]["mean"] == pytest.approx(nll.mean(), rel=1e-4)
    assert scores[f"{way}_log_likelihood"]["mean"] == pytest.approx(-nll.mean(), rel=1e-4)
    error = model({**inputs, "y_target": y_target})["mean"].numpy() - y_target
    mse = "mse" if direct else "teacher_forced_mse"
    assert scores["model"][mse]["mean"] == pytest.approx(np.mean(error**2), rel=1e-4)
    assert ("teacher_forced_mse" in scores["model"]) != direct
    naive = scores["naive"]
    assert set(naive) == {"last_value", "last_difference", "seasonal"}
    steps = np.diff(np.concatenate([inputs["y_context"][:, -1:], y_target], axis=1), axis=1)
    assert naive["last_value"]["teacher_forced_mse"]["mean"] == pytest.approx(np.mean(steps**2))
    assert np.isnan(run.scores["test"]["free_running_crps"]).sum() == 3
    assert ("validation_mse" in record["curve"][0]) == direct
    # Pictures of both models beside one another, each from the features it reads.
    held = held.spread_out(2)
    figure = plot_forecasts({"one": (model, held), "two": (model, held)}, num_samples=3)
    assert [axes.get_ylabel() for axes in figure.axes][::2] == [
        "one\nstandardised",
        "two\nstandardised",
    ]
    rows = series_rows([record])
    assert [row["model"] for row in rows] == [
        "naive: last value",
        "naive: last value and difference",
        "naive: last season",
        preset,
    ]
    assert rows[-1]["score"] == way.replace("_", "-")
    assert rows[-1]["paper's nll"] == ("0.38 +- 0.13" if direct else "-0.53 +- 0.01")
    assert "| electricity-96 | naive: last season" in markdown_table(rows)


@pytest.mark.slow
def test_the_command(tiny, folder, tmp_path):
    words = (
        "experiment electricity-96 --iterations 1 --batch-size 2 --validation-sequences 2 "
        f"--test-sequences 2 --output {tmp_path} --data-dir {folder}"
    ).split()
    runner = click.testing.CliRunner()
    for name in _TINY:
        done = runner.invoke(cli, [*words, "--architecture", name])
        assert done.exit_code == 0, done.output
    done = runner.invoke(cli, [*words, "--column", "MT/2"])
    assert done.exit_code == 0, done.output
    table = (tmp_path / "table.md").read_text()
    # The records of another column are apart from those of the usual one.
    assert table.count("| naive: last value  ") == 2
    assert table.count("| electricity-96, column MT/2 | ") == 4
    assert "autoformer-small" in table
    other = "taylorformer-column-MT%2F2-seed-0"
    for name in (
        "samples.png",
        "validation-curves.png",
        "taylorformer-seed-0-samples.png",
        "validation-curves-column-MT%2F2.png",
        f"{other}-samples.png",
    ):
        assert (tmp_path / "electricity-96" / name).stat().st_size > 500
    record = read_record(tmp_path / "electricity-96" / f"{other}.json")
    assert record["data"]["column"] == "MT/2"
    assert record["command"].endswith("--column MT/2")
    assert runner.invoke(cli, [*words, "--column", "MT/2", "--resume"]).exit_code == 0
    assert (
        "column"
        not in read_record(tmp_path / "electricity-96/taylorformer-seed-0.json")["settings"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--consistency", "--consistency is for tasks whose targets have no order"),
        ("--architecture released", "--architecture released and --weights go together"),
        ("--weights here", "--architecture released and --weights go together"),
        ("--column there", "must have one column 'there'"),
    ],
)
def test_bad_commands(folder, tmp_path, words, message):
    command = f"experiment electricity-96 --output {tmp_path} --data-dir {folder} {words}"
    done = click.testing.CliRunner().invoke(cli, command.split())
    assert done.exit_code == 2
    assert message in done.output
