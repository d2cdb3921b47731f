"""The command line without `fit`: forecasts and back-tests of a file by the pretrained model."""

import numpy as np
import pandas as pd
import pytest
from command_line import one_line
from forecasting import tiny_prior


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A CSV file of six years of months."""
    months = np.arange(72)
    noise = np.random.default_rng(0).normal(size=72)
    values = (200 + 2 * months) * (1 + 0.2 * np.sin(2 * np.pi * months / 12) + 0.01 * noise)
    table = pd.DataFrame(
        {"month": pd.date_range("2018-01-01", periods=72, freq="MS"), "sales": values.round(1)}
    )
    path = tmp_path_factory.mktemp("pretrained") / "sales.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_prior(tmp_path_factory.mktemp("weights") / "tiny.keras")


def test_a_first_forecast_takes_two_arguments(run, path, tmp_path):
    output = tmp_path / "forecast.csv"
    code, out, error = run("forecast", path, "--output", output)
    assert code == 0, error
    assert "Forecast of 12 rows by the pretrained model; seasons: 365.2425 days." in out
    table = pd.read_csv(output)
    assert len(table) == 12 and table["month"].iloc[0].startswith("2024-01-01")
    assert (tmp_path / "forecast.png").exists()


def test_the_dry_run_says_which_season(run, path):
    code, out, error = run("forecast", path, "--dry-run")
    assert code == 0, error
    assert "season      365.2425 days" in out and "Nothing was forecast." in out
    code, out, _ = run("forecast", path, "--dry-run", "--season", "6")
    assert "(named)" in out
    code, out, _ = run("forecast", path, "--dry-run", "--season", "none")
    assert "season      none" in out


@pytest.mark.filterwarnings("ignore:one-step forecasts")
def test_what_a_training_says(run, path, weights, tmp_path):
    options = ("--start", weights, "--model", tmp_path / "model", "--horizon", "3")
    code, out, error = run("fit", path, *options, "--max-steps", "2")
    assert code == 0, error
    # Two steps of a tiny model change nothing, or little.
    kept = "the pretrained ones: no others forecast", "of the way from the pretrained", "of step 2"
    said = " ".join(out.split())
    assert any(words in said for words in kept) and "Trained 2 steps" in said
    code, out, error = run(
        "forecast", path, "--model", tmp_path / "model", "--output", tmp_path / "forecast.csv"
    )
    assert code == 0, error
    assert "Forecast of 3 rows by the trained model" in out


def test_the_dry_run_of_a_training_refuses_what_the_training_refuses(run, tmp_path):
    path = tmp_path / "two.csv"
    days = pd.date_range("2020-01-01", periods=2)
    pd.DataFrame({"day": days, "y": [1.0, 2.0]}).to_csv(path, index=False)
    for options in ((), ("--dry-run",)):
        code, _, error = run("fit", path, "--model", tmp_path / "model", *options)
        expected = "at least 3 values in its training part. Received: 1 values"
        assert code == 2 and expected in one_line(error)
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_options_of_the_table_and_of_the_model(run, path, tmp_path):
    output = tmp_path / "forecast.csv"
    options = ("--season", "1 year", "--horizon", "3", "--samples", "2", "--context-length", "48")
    code, out, error = run(
        *("forecast", path, "--output", output, "--time", "month", "--target", "sales"),
        *("--lower", "0", *options),
    )
    assert code == 0, error
    assert "365.2425 days (named)" in out and len(pd.read_csv(output)) == 3


def test_a_backtest_needs_no_model(run, path, tmp_path):
    code, out, error = run("backtest", path, "--samples", "4", "--output", tmp_path / "scores")
    assert code == 0, error
    assert "seasonal" in out and (tmp_path / "scores" / "backtest.json").exists()


# A tiny model understands nothing, and a forecaster says so.
@pytest.mark.filterwarnings("ignore:one-step forecasts")
def test_the_pretrained_model_is_trained_on_a_table_with_a_covariate(run, path, weights, tmp_path):
    table = pd.read_csv(path).assign(promotion=(np.arange(72) % 5 == 0).astype(int))
    past, future = tmp_path / "past.csv", tmp_path / "future.csv"
    table[:69].to_csv(past, index=False)
    table[69:].drop(columns="sales").to_csv(future, index=False)
    folder, output = tmp_path / "model", tmp_path / "forecast.csv"
    words = ("fit", past, "--model", folder, "--start", weights, "--max-steps", "2")
    words = (*words, "--horizon", "3", "--season", "12", "--target", "sales")
    words = (*words, "--covariate", "promotion")
    code, out, error = run(*words, "--dry-run")
    assert code == 0, error
    assert "covariates  promotion" in out and not folder.exists()
    assert "training    47 rows, 2018-01-01" in out and "Nothing was trained." in out
    code, out, error = run(*words)
    assert code == 0, error
    assert "Trained 2 steps" in out
    code, out, error = run("backtest", past, "--model", folder, "--samples", "2", "--windows", "1")
    assert code == 0, error
    assert "1 windows of the test part, 3 points" in out
    code, out, error = run("forecast", past, "--model", folder, "--samples", "2", "--dry-run")
    assert code == 0, error
    assert "sales" in out
    words = ("forecast", past, "--model", folder, "--samples", "2", "--output", output)
    code, _, error = run(*words)
    assert code == 2 and "promotion" in error and not output.exists()
    code, _, error = run(*words, "--future", future)
    assert code == 0, error
    assert list(pd.read_csv(output)["month"].str[:10]) == ["2023-10-01", "2023-11-01", "2023-12-01"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--start", "other"), "`start` must be one of 'auto', 'prior'"),
        (("--start", "prior", "--preset", "ett"), "--start and --preset exclude each other."),
        (("--start", "prior", "--covariate", "x"), "'x'"),
    ],
)
def test_what_does_not_go_with_pretrained_weights(run, path, tmp_path, words, message):
    code, _, error = run("fit", path, "--model", tmp_path / "model", *words)
    assert code == 2 and message in error and not (tmp_path / "model").exists()


@pytest.mark.slow
def test_the_pretrained_model_is_exported(run, tmp_path):
    code, out, error = run("export", "--output", tmp_path / "served")
    assert code == 0, error
    assert "`periods`" in out and (tmp_path / "served" / "saved_model.pb").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("forecast", "{path}"), "Missing option '--output'"),
        (("forecast", "{path}", "--output", "{new}.csv", "--season", "x"), "`seasons`"),
        (("forecast", "{path}", "--output", "{new}.csv", "--season", "1"), "two steps"),
        (("forecast", "{path}", "--output", "{new}.csv", *("--season", "12") * 4), "1 to 3"),
        (
            ("forecast", "{path}", "--output", "{new}.csv", "--season", "none", "--season", "12"),
            "must be the only one",
        ),
        (
            ("forecast", "{path}", "--output", "{new}.csv", "--covariate", "month", "--time", "x"),
            "x",
        ),
        (("backtest", "{path}", "--part", "test"), "--part"),
        (("backtest", "{path}", "--horizon", "71"), "horizon"),
    ],
)
def test_bad_input_is_one_line(run, path, tmp_path, arguments, message):
    arguments = [part.format(path=path, new=tmp_path / "new") for part in arguments]
    code, _, error = run(*arguments)
    assert code == 2 and message in error
    assert not list(tmp_path.iterdir())
