"""The command line: from a file to a model folder, a forecast and scores."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import one_line
from forecasting import good_panel, long_table, odd_panel, wave_table

from taylorformer.cli import main
from taylorformer.data_wrangler import read_table
from taylorformer.training_and_evaluation import ExperimentSettings
from taylorformer.training_and_evaluation.experiments.record import write_record
from taylorformer.training_and_evaluation.forecasting import presets
from taylorformer.training_and_evaluation.forecasting.presets import ForecastPreset

FIT = ("--preset", "tiny", "--context-length", "6", "--horizon", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, and a model that the command line has trained on it."""
    folder = tmp_path_factory.mktemp("cli")
    wave_table().to_csv(folder / "table.csv", index=False)
    with pytest.raises(SystemExit) as stopped:
        main(["fit", str(folder / "table.csv"), "--model", str(folder / "model"), *FIT])
    assert not stopped.value.code
    return folder


def test_fit_writes_a_model_and_says_what_to_do_next(folder, run):
    names = sorted(path.name for path in (folder / "model").iterdir())
    assert names == ["forecaster.json", "model.keras", "training.npz"]
    arguments = ("fit", folder / "table.csv", "--model", folder / "model", *FIT, "--resume")
    code, out, error = run(*arguments)
    assert code == 0, error
    assert "Trained 4 steps on 53 windows" in out
    assert f"taylorformer forecast {folder / 'table.csv'} --model {folder / 'model'}" in out


def test_nothing_is_overwritten_unasked(folder, run):
    code, out, error = run("fit", folder / "table.csv", "--model", folder / "model", *FIT)
    assert code == 2 and not out
    assert "holds a model; --resume continues it, --overwrite starts anew" in one_line(error)
    options = ("--resume", "--overwrite")
    code, _, error = run("fit", folder / "table.csv", "--model", folder / "model", *options)
    assert code == 2 and "exclude each other" in one_line(error)
    # Other settings are another training.
    options = (*FIT, "--resume", "--seed", "9")
    code, _, error = run("fit", folder / "table.csv", "--model", folder / "model", *options)
    assert code == 2 and "the data and settings it began with" in one_line(error)


def test_a_model_without_its_training_cannot_be_resumed(folder, run, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for name in ("forecaster.json", "model.keras"):
        (model / name).write_bytes((folder / "model" / name).read_bytes())
    for options in ((), ("--resume",)):
        code, _, error = run("fit", folder / "table.csv", "--model", model, *FIT, *options)
        assert code == 2 and "without its training; --overwrite replaces it" in one_line(error)
    (model / "forecaster.json").write_text("{}")
    output = ("--output", tmp_path / "f.csv")
    code, _, error = run("forecast", folder / "table.csv", "--model", model, *output)
    assert code == 2 and "that `Forecaster.save` wrote" in one_line(error)


@pytest.mark.filterwarnings("ignore:Even though the `tf.config")
def test_another_model_is_fitted_by_its_name(folder, run, tmp_path, monkeypatch, eagerly):
    plan = {"batch_size": 4, "max_steps": 1, "max_validation_windows": 2}
    sizes = {"width": 8, "num_heads": 2, "feed_forward": 8, "encoder_layers": 1}
    tiny = ForecastPreset("tiny-informer", "informer", **plan, **sizes)
    monkeypatch.setattr(presets, "PRESETS", {**presets.PRESETS, tiny.name: tiny})
    words = (folder / "table.csv", "--model", tmp_path / "model")
    settings = ("--architecture", "informer", "--preset", tiny.name, "--season", "7 days")
    code, out, error = run("fit", *words, *FIT[2:], *settings, "--interpolate")
    assert code == 0, error
    assert "Time features: the phases of seasons, 7 days (named)." in out
    saved = json.loads((tmp_path / "model" / "forecaster.json").read_text())["settings"]
    assert saved["model"] == "informer" and saved["interpolate"]
    code, out, error = run("backtest", *words, "--samples", "2", "--windows", "2")
    assert code == 0, error
    assert "informer" in out and "joint_nll" in out
    code, _, error = run("forecast", *words, "--output", tmp_path / "f.csv", "--horizon", "5")
    assert code == 2 and "`horizon` must be that of training, 4" in one_line(error)


def test_overwriting_begins_when_the_new_training_does(folder, run, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "training.npz").write_bytes((folder / "model" / "training.npz").read_bytes())
    options = ("--overwrite", "--horizon", "80")
    code, _, error = run("fit", folder / "table.csv", "--model", model, *FIT[:4], *options)
    assert code == 2 and "context_length + horizon = 86 rows" in one_line(error)
    assert (model / "training.npz").exists()


@pytest.mark.slow
def test_ids_are_text_and_float_times_keep_their_digits(run, tmp_path):
    rows = [
        f"00{shop},{0.005 * row + 1.7e9!r},{row % 7 + shop}" for shop in (1, 2) for row in range(60)
    ]
    path, model, output = (tmp_path / name for name in ("my table.csv", "model", "f.csv"))
    path.write_text("unique_id,ds,y\n" + "\n".join(rows) + "\n")
    code, out, error = run("fit", path, "--model", model, *FIT, "--max-steps", "1")
    assert code == 0, error
    assert f"taylorformer forecast '{path}'" in out
    code, _, error = run("forecast", path, "--model", model, "--output", output, "--samples", "2")
    assert code == 0, error
    table = pd.read_csv(output, dtype={"unique_id": str})
    assert list(table["unique_id"]) == ["001"] * 4 + ["002"] * 4
    assert table["ds"].nunique() == 4 and (table["ds"] > 1.7e9).all()
    path.write_text("unique_id,ds,y\n" + "\n".join(rows[:60]) + "\n")
    arguments = ("--model", model, "--output", output, "--samples", "2", "--overwrite")
    code, _, error = run("forecast", path, *arguments)
    assert code == 0 and not error.count("not there in training")


@pytest.mark.slow
def test_counts_stay_counts(run, tmp_path):
    rng = np.random.default_rng(0)
    table = wave_table().assign(y=rng.poisson(0.4, 90), z=rng.normal(size=90))
    path, model, output = (tmp_path / name for name in ("counts.csv", "model", "f.csv"))
    table.to_csv(path, index=False)
    options = ("--target", "y", "--lower", "0", "--upper", "none", "--integers")
    code, _, error = run("fit", path, "--model", model, *FIT, "--max-steps", "1", *options)
    assert code == 0, error
    code, _, error = run("forecast", path, "--model", model, "--output", output)
    assert code == 0, error
    assert (pd.read_csv(output).drop(columns="ds") >= 0).all(axis=None)
    table.loc[3, "y"] = -1
    table.to_csv(path, index=False)
    code, _, error = run("forecast", path, "--model", model, "--output", output, "--overwrite")
    assert code == 2 and "-1.0 in row 4" in one_line(error)


def test_forecast_writes_quantiles_and_a_picture(folder, run, tmp_path):
    output = tmp_path / "new" / "forecast.csv"
    options = ("--samples", "20", "--quantile", "0.1", "--quantile", "0.9", "--seed", "3")
    code, out, _ = run(
        "forecast", folder / "table.csv", "--model", folder / "model", "--output", output, *options
    )
    assert code == 0 and str(output) in out
    table = pd.read_csv(output)
    assert list(table.columns) == ["ds", "mean", "stddev", "q10", "q90"] and len(table) == 4
    assert table["ds"].iloc[0] == "2020-03-31" and (table["q10"] < table["q90"]).all()
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "again.csv"
    run("forecast", folder / "table.csv", "--model", folder / "model", "--output", again, *options)
    assert again.read_text() == output.read_text()


def test_forecast_at_the_times_of_a_table(folder, run, tmp_path):
    future = tmp_path / "future.csv"
    future.write_text("ds\n2020-03-31\n2020-04-02\n")
    output, picture = tmp_path / "forecast.csv", tmp_path / "picture.png"
    options = ("--future", future, "--samples", "3", "--plot", picture)
    code, _, _ = run(
        "forecast", folder / "table.csv", "--model", folder / "model", "--output", output, *options
    )
    assert code == 0 and picture.exists() and not output.with_suffix(".png").exists()
    assert list(pd.read_csv(output)["ds"]) == ["2020-03-31", "2020-04-02"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some series are odd:UserWarning")
def test_series_that_are_left_out_are_named(run, tmp_path):
    table, model = tmp_path / "panel.csv", tmp_path / "model"
    odd = odd_panel("one row", "all missing", "short")
    pd.concat([good_panel(3), odd]).to_csv(table, index=False)
    code, out, error = run("fit", table, "--model", model, *FIT, "--max-steps", "3")
    assert code == 0, error
    names = "one row, all missing (no value of every target in the training part), short (fewer"
    assert f"Left out of the training: {names}" in out and "Trained 3 steps" in out
    output = ("--output", tmp_path / "f.csv", "--samples", "2")
    code, out, error = run("forecast", table, "--model", model, *output)
    assert code == 0, error
    assert "Left out of the forecast: all missing (no value" in out and "one row (" in out
    assert "all missing" not in set(pd.read_csv(tmp_path / "f.csv")["unique_id"])
    output = ("--output", tmp_path / "scores", "--samples", "1")
    code, out, error = run("backtest", table, "--model", model, *output)
    assert code == 0, error
    assert "Left out of the back-test: one row, all missing (not there in training" in out
    left_out = json.loads((tmp_path / "scores" / "backtest.json").read_text())["left_out"]
    assert set(left_out) == {"one row", "all missing", "short"}


def test_backtest_shows_and_writes_scores(folder, run, tmp_path):
    options = ("--samples", "3", "--season", "19 days", "--windows", "2")
    code, out, _ = run(
        *("backtest", folder / "table.csv", "--model", folder / "model"),
        *("--output", tmp_path / "scores", *options),
    )
    assert code == 0 and "2 windows of the test part" in out
    for words in ("taylorformer", "last_value", "seasonal", "free_running_crps"):
        assert words in out
    table = pd.read_csv(tmp_path / "scores" / "scores.csv")
    assert all(
        name == "line" or name.startswith(("teacher_forced_", "free_running_"))
        for name in table.columns
    )
    assert (tmp_path / "scores" / "reliability.png").exists()
    code, out, _ = run(
        *("backtest", folder / "table.csv", "--model", folder / "model"),
        *("--units", "scaled", "--part", "validation", "--step", "3", "--samples", "2"),
    )
    assert code == 0 and "standardised" in out


def test_export_writes_a_saved_model(folder, run, tmp_path):
    arguments = ("export", "--model", folder / "model", "--output", tmp_path / "served")
    code, out, _ = run(*arguments)
    assert code == 0 and "serving_default" in out
    assert (tmp_path / "served" / "saved_model.pb").exists()
    code, _, error = run(*arguments)
    assert code == 2 and "is not empty; --overwrite replaces" in one_line(error)
    code, _, error = run("export", "--model", tmp_path, "--output", tmp_path / "other")
    assert code == 2 and "holds no trained model" in one_line(error)


def test_a_dry_run_says_what_would_be_read(folder, run, tmp_path):
    table = long_table()
    table = pd.concat([table, table.tail(1)])
    table.to_csv(tmp_path / "long.csv", index=False)
    arguments = ("fit", tmp_path / "long.csv", "--model", tmp_path / "model", *FIT, "--dry-run")
    code, out, error = run(*arguments)
    assert code == 2 and "shop 1" in out and "duplicates" in one_line(error)
    code, out, _ = run(*arguments, "--duplicates", "first")
    assert code == 0
    for words in ("unique_id", "duplicates", "gaps", "training    130 rows, 103 windows"):
        assert words in out
    # Training does not need the test part, so its being too short is no error.
    wave_table(80).to_csv(tmp_path / "short.csv", index=False)
    options = (*FIT, "--dry-run", "--fractions", "0.7", "0.27", "0.03")
    code, out, _ = run("fit", tmp_path / "short.csv", "--model", tmp_path / "model", *options)
    assert code == 0 and "horizon = 4 rows in the test part. Received: 3" in out
    assert not (tmp_path / "model").exists()


def test_a_dry_run_needs_no_tensorflow(folder):
    script = (
        "import sys\n"
        "from taylorformer.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    table = str(folder / "table.csv")
    arguments = ("fit", table, "--model", "nowhere", *FIT[2:], "--dry-run")
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_dry_run_shows_the_calendar_and_numbers_that_look_like_time(run, tmp_path):
    path = tmp_path / "table.csv"
    days = pd.bdate_range("2024-01-01", periods=80).delete(9)
    pd.DataFrame({"ds": days, "y": 1.5}).to_csv(path, index=False)
    arguments = ("fit", path, "--model", tmp_path / "model", *FIT, "--dry-run")
    code, out, _ = run(*arguments)
    assert code == 0 and "business days (Monday to Friday)" in out
    assert "2024-04-22 00:00:00, 2024-04-23 00:00:00" in out and "--time-unit" not in out
    code, out, _ = run(*arguments, "--freq", "W-FRI")
    assert code == 0 and "2024-04-26 00:00:00, 2024-05-03 00:00:00" in out
    code, _, error = run(*arguments, "--freq", "T")
    assert code == 2 and "`freq` must be a frequency" in one_line(error) and "min in" in error
    pd.DataFrame({"ds": 1_700_000_000_000 + 60_000 * np.arange(80), "y": 1.5}).to_csv(
        path, index=False
    )
    code, out, _ = run(*arguments)
    assert code == 0 and "ds holds integers that look like ms since 1970: --time-unit ms" in out
    code, out, _ = run(*arguments, "--time-unit", "ms", "--time-zone", "Europe/Berlin")
    assert code == 0 and "every minute" in out and "2023-11-14 23:13:20+01:00" in out
    code, _, error = run(*arguments, "--time-unit", "ms", "--date-format", "%Y")
    assert code == 2 and "`time_unit` must be None" in one_line(error)


@pytest.mark.filterwarnings("default:the stamps of `ds` do not all keep")
def test_frequencies_and_a_future_that_is_not_sorted(folder, run, tmp_path):
    output, future = tmp_path / "forecast.csv", tmp_path / "future.csv"
    arguments = ("forecast", folder / "table.csv", "--model", folder / "model", "--samples", "2")
    arguments = (*arguments, "--output", output, "--overwrite")
    code, _, error = run(*arguments, "--freq", "2D")
    assert code == 0 and "do not all keep the frequency '2D'" in error, error
    assert list(pd.read_csv(output)["ds"])[:2] == ["2020-04-01", "2020-04-03"]
    future.write_text("ds\n2020-04-03\n2020-04-02\n2020-03-31\n")
    code, _, error = run(*arguments, "--future", future)
    assert code == 2 and "--sort" in one_line(error)
    code, _, error = run(*arguments, "--future", future, "--sort")
    assert code == 0, error
    assert list(pd.read_csv(output)["ds"]) == ["2020-03-31", "2020-04-02", "2020-04-03"]


@pytest.mark.slow
def test_several_targets_covariates_and_other_forms_of_numbers(run, tmp_path):
    rng = np.random.default_rng(0)
    table = wave_table(60).assign(z=rng.normal(size=60), heat=rng.normal(size=60))
    table["ds"] = table["ds"].dt.strftime("%d.%m.%Y")
    path, future = tmp_path / "table.csv", tmp_path / "future.csv"
    table.to_csv(path, index=False, sep=";", decimal=",")
    pd.DataFrame({"ds": ["01.03.2020"], "heat": [0.5]}).to_csv(
        future, index=False, sep=";", decimal=","
    )
    form = ("--separator", ";", "--decimal", ",")
    code, _, error = run(
        *("fit", path, "--model", tmp_path / "model", *FIT, *form, "--date-format", "%d.%m.%Y"),
        *("--target", "y", "--target", "z", "--covariate", "heat", "--max-steps", "1"),
    )
    assert code == 0, error
    arguments = ("forecast", path, "--model", tmp_path / "model", *form)
    output = ("--output", tmp_path / "forecast.csv", "--samples", "2")
    code, _, error = run(*arguments, *output)
    assert code == 2 and "future" in one_line(error)
    code, _, error = run(*arguments, *output, "--future", future)
    assert code == 0, error
    table = pd.read_csv(tmp_path / "forecast.csv")
    assert list(table["target"]) == ["y", "z"] and list(table["ds"]) == ["2020-03-01"] * 2


@pytest.mark.parametrize(
    "text, words",
    [
        ("ds,y\n2020-01-01,1\n2020-01-02,-\n", ["`y`", "row 2", "'-'"]),
        ("ds,y\n2020-01-01,1\n31.12.2020,2\n", ["`ds`", "row 2", "'31.12.2020'"]),
        ("ds,y\n2020-01-01,1\n2020-01-01,2\n", ["`ds`", "rows 1 and 2", "2020-01-01"]),
        ("ds,y\n2020-01-02,1\n2020-01-01,2\n", ["`ds`", "row 2", "unsorted"]),
        ("ds,a,b\n2020-01-01,1,2\n", ["target", "'a'", "'b'"]),
        ("ds,y\n2020-01-01,1\n2020-01-02,2\n", ["context_length + horizon = 10 rows"]),
        ("", ["CSV"]),
    ],
    ids=["text in y", "date", "duplicate", "unsorted", "which target", "too short", "empty"],
)
def test_bad_tables_give_one_line(run, tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    code, out, error = run("fit", path, "--model", tmp_path / "model", *FIT)
    assert code == 2 and not out
    for word in words:
        assert word in one_line(error)
    assert not (tmp_path / "model").exists()


# Wrong input: where it is given, the words of the message, and what follows the command.
# {table}, {model}, {new} and {tmp} are a table, its model, a path that is free, and its folder.
WRONG = [
    ("fit nowhere.csv --model {new}", "mauna_loa_co2"),
    ("fit ETTm2 --model {new}", "ETTm2.csv"),
    ("fit {table} --model {new} --preset huge", "'huge'"),
    ("fit {table} --model {new} --architecture lstm", "'lstm' is not one of"),
    ("fit {table} --model {new} --architecture tnp --preset ett", "of the model 'tnp', such as"),
    ("fit {table} --model {new} --interpolate", "must be False for Taylorformer"),
    ("fit {table} --model {new} --season auto --season 7", "'auto' must be the only one"),
    (
        "fit {table} --model {new} --context-length 6 --horizon 4 --season 1",
        "`seasons` must be at least two steps long",
    ),
    (
        "fit {table} --model {new} --context-length 6 --horizon 4 --architecture informer",
        "`interpolate=True` (`--interpolate`). Received: no value of `y` at 2020-01-",
    ),
    ("fit {table} --model {new} --time when", "'when'"),
    ("fit {tmp} --model {new}", "must be a file that is there"),
    ("fit {table} --model {new} --horizon 0", "--horizon"),
    ("fit {table} --model {new} --horizon 4.5", "'4.5' is not a valid integer"),
    (
        "fit {table} --model {new} --start none --horizon 1000",
        "context_length + horizon = 1096 rows",
    ),
    ("fit {table} --model {new} --seed -1", "--seed"),
    ("fit {table} --model {new} --seed 99999999999999999999", "`seed` must be at most"),
    ("fit {table} --model {new} --learning-rate 0", "--learning-rate"),
    ("fit {table} --model {new} --learning-rate nan", "learning_rate"),
    ("fit {table} --model {new} --lower low", "must be a number, or 'none'. Received: low"),
    ("fit {table} --model {new} --lower nan", "`lower` must be finite"),
    ("fit {table} --model {new} --lower 3 --upper 1", "`lower` must be below `upper`"),
    ("fit {table} --model {new} --lower 0 --lower 0", "each of the 1 target columns"),
    ("fit {table} --model {new} --lower 5200", "hold values of at least 5200 (`lower`)"),
    ("fit {table} --model {new} --integers", "Column `y` must hold whole numbers"),
    ("fit {table} --model {new} --fractions 0.5 0.5 0.5", "fractions"),
    ("fit {table} --model {new} --fractions 0.5 0.5", "--fractions"),
    ("fit {table} --model {new} --separator ;;", "`separator` must be one character"),
    ("fit {table} --model {new} --separator .", "must not be the same"),
    ("fit {table} --model {new} --date-format %d.%m.%Y", "2020-01-01"),
    ("fit {table} --model {new} --target y --target y", "'y'"),
    ("fit {table} --model {new} --covariate heat", "'heat'"),
    ("fit {table} --model {new} --resume --overwrite", "exclude each other"),
    ("fit {table} --model {table}", "--model"),
    ("fit {table}", "--model"),
    ("fit", "FILE"),
    ("forecast {table} --model {tmp} --output {new}.csv", "holds no trained model"),
    ("forecast {table} --model {model}", "--output"),
    ("forecast {table} --model {model} --output {table}", "never writes over what it reads"),
    (
        "forecast {table} --model {model} --output {table} --overwrite",
        "never writes over what it reads",
    ),
    ("forecast {table} --model {model} --output {tmp}/taken.csv", "--overwrite replaces it"),
    (
        "forecast {table} --model {model} --output {new}.csv --future {tmp}/taken.csv "
        "--plot {tmp}/taken.csv --overwrite",
        "`--plot` must end in one of",
    ),
    (
        "forecast {table} --model {model} --output {tmp}/taken.csv --future {tmp}/taken.csv "
        "--overwrite",
        "never writes over what it reads",
    ),
    ("forecast {table} --model {model} --output {new}.png", "`--output` must end in one of .csv"),
    ("forecast {table} --model {model} --output {new}", "`--output` must end in one of .csv"),
    ("forecast {table} --model {model} --output {new}.csv --plot {new}.doc", "`--plot` must end"),
    ("forecast {table} --model {model} --output {table}/f.csv", "is a file, and no folder"),
    ("forecast {table} --model {model} --output {new}.csv --quantile 1.5", "--quantile"),
    ("forecast {table} --model {model} --output {new}.csv --samples 0", "--samples"),
    ("forecast {table} --model {model} --output {new}.csv --future nowhere", "--future"),
    ("forecast {tmp}/taken.csv --model {model} --output {new}.csv", "'ds'"),
    ("backtest {table} --model {model} --season 7", "span=7"),
    ("backtest {table} --model {model} --season soon", "soon"),
    ("backtest {table} --model {model} --part all", "--part"),
    ("backtest {table} --model {model} --output {table}", "--output"),
    ("backtest {table} --model {model} --output {tmp}/scores", "scores.csv is there"),
    ("backtest {table} --model {new}", "--model"),
    ("export --model {model} --output {model}", "which holds forecaster.json"),
    ("export --model {model} --output {model} --overwrite", "which holds forecaster.json"),
    ("export --model {model} --output {tmp} --overwrite", "must be a folder of its own"),
    ("export --model {model} --output {table}", "--output"),
    ("demo --output {tmp}", "is not empty; --overwrite replaces"),
    ("predict {table}", "predict"),
    ("--verbose", "--verbose"),
]


@pytest.mark.parametrize("words, message", WRONG, ids=[words for words, _ in WRONG])
def test_wrong_input_gives_one_line_and_loses_nothing(folder, run, tmp_path, words, message):
    (tmp_path / "taken.csv").write_text("time,y\n")
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "scores.csv").write_text("of a person")
    names = {"table": folder / "table.csv", "model": folder / "model", "tmp": tmp_path}

    def state():
        files = [path for root in (folder, tmp_path) for path in root.rglob("*")]
        return {path: path.read_bytes() if path.is_file() else None for path in files}

    before = state()
    arguments = words.format(**names, new=tmp_path / "new").split()
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert message in one_line(error)
    assert state() == before


def test_outputs_are_replaced_when_asked(folder, run, tmp_path):
    output = tmp_path / "forecast.csv"
    arguments = ("forecast", folder / "table.csv", "--model", folder / "model", "--samples", "2")
    assert run(*arguments, "--output", output)[0] == 0
    first = output.read_text()
    code, _, error = run(*arguments, "--output", output)
    assert code == 2 and f"{output} is there; --overwrite replaces it" in one_line(error)
    output.unlink()
    code, _, error = run(*arguments, "--output", output)
    assert code == 2 and f"{output.with_suffix('.png')} is there" in one_line(error)
    assert run(*arguments, "--output", output, "--overwrite", "--seed", "1")[0] == 0
    assert output.read_text() != first
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["forecast.csv", "forecast.png"]


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV", ".csv.zip"])
def test_the_ending_says_the_format(folder, run, tmp_path, ending):
    output, picture = tmp_path / f"my.forecast{ending}", tmp_path / "picture.svg"
    options = ("--output", output, "--plot", picture, "--samples", "2")
    code, _, error = run("forecast", folder / "table.csv", "--model", folder / "model", *options)
    assert code == 0, error
    assert len(read_table(output)) == 4 and b"<svg" in picture.read_bytes()
    assert output.read_bytes()[:2] == {".csv.gz": b"\x1f\x8b", ".csv.zip": b"PK"}.get(ending, b"ds")


def test_parquet_is_written_or_refused_at_once(folder, run, tmp_path):
    output = tmp_path / "forecast.parquet"
    options = ("--output", output, "--samples", "2")
    code, _, error = run("forecast", folder / "table.csv", "--model", folder / "model", *options)
    if code:
        assert code == 2 and "must end in .csv where neither `pyarrow`" in one_line(error)
        assert not list(tmp_path.iterdir())
    else:
        assert len(read_table(output)) == 4


def test_a_training_that_is_asked_to_resume_needs_its_checkpoint(folder, run, tmp_path):
    record = tmp_path / "gp-rbf" / "np-seed-0.json"
    settings = ExperimentSettings.of("gp-rbf", "np", iterations=7)
    write_record(record, {"settings": settings.get_config(), "scores": {}})
    before = record.read_bytes()
    words = ("experiment", "gp-rbf", "--architecture", "np", "--output", tmp_path, "--resume")
    code, _, error = run(*words, "--iterations", "9")
    assert code == 2 and "its checkpoint is not; --overwrite starts anew" in one_line(error)
    assert record.read_bytes() == before


@pytest.mark.slow
def test_no_note_of_tensorflow_reaches_the_screen(folder, tmp_path):
    """TensorFlow writes its first notes before it reads its log level."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    command = (sys.executable, "-m", "taylorformer", "forecast", folder / "table.csv")
    options = ("--model", folder / "model", "--output", tmp_path / "forecast.csv")
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith("Forecasting series: ")] == []
