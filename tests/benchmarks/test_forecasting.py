"""The forecasting benchmark, with naive lines and with a forecaster that is made up."""

import dataclasses
import functools
import json
import time

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from benchmarks.forecasting import (
    cold,
    gaps,
    lines,
    naive,
    peer_cache,
    processes,
    records,
    scores,
    sets,
    zero_shot,
)
from benchmarks.forecasting.__main__ import main
from taylorformer import Forecast

SMALL = {"yearly": 3, "quarterly": 3, "monthly": 5}
SETTINGS = lines.Settings(num_samples=20, seed=1)


class FakeForecaster:
    """Repeats the last value, with noise; it leaves out the series that it is told to."""

    def __init__(self, left_out=()):
        self.left_out = left_out
        self.calls = []
        self.fitted = []

    def fit(self, table, *, fractions, seed):
        if table["unique_id"].nunique() == 1 and len(table) < 20:
            raise ValueError("too few rows")
        self.fitted.append((self.horizon, table, fractions, seed))
        self.report_ = {"training_steps": 7, "notes": {}}

    def forecast(self, table, future=None, *, horizon=None, num_samples, seed):
        self.calls.append((table, future))
        rng = np.random.default_rng(seed)
        names, samples = [], []
        for name, rows in table.groupby("unique_id", sort=False):
            count = horizon or int((future["unique_id"] == name).sum())
            if name not in self.left_out:
                names.append(name)
                noise = rng.normal(scale=rows["y"].std(), size=(num_samples, count, 1))
                samples.append(rows["y"].iloc[-1] + noise)
        return Forecast(np.stack(samples, axis=1), (), tuple(names), "ds", ("y",))


@pytest.fixture
def fake(monkeypatch):
    forecaster = FakeForecaster()
    asked = []

    def make(seasons, model=None):
        asked.append((seasons, model))
        return forecaster

    monkeypatch.setattr(zero_shot, "make_forecaster", make)
    forecaster.asked = asked
    return forecaster


@pytest.fixture
def wheels(monkeypatch):
    """Series of other wheels that are made up."""
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=500).cumsum() for name in sets.SINGLES}
    monkeypatch.setattr(peer_cache, "series", lambda: values)
    return values


@pytest.fixture
def no_peers(monkeypatch, tmp_path):
    monkeypatch.setattr(peer_cache, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(peer_cache, "PYTHON", tmp_path / "python")


@pytest.fixture
def small_m1(monkeypatch, tmp_path, shared_path):
    """A shared folder with a few series of M1, their baselines and the script that scores them."""
    with np.load(shared_path("data", "m1", "m1.npz")) as file:
        table = pd.DataFrame(dict(file))
    chosen = [
        name
        for frequency, count in SMALL.items()
        for name in table["unique_id"][table["frequency"] == frequency].unique()[:count]
    ]
    folder = tmp_path / "shared" / "data" / "m1"
    folder.mkdir(parents=True)
    rows = table[table["unique_id"].isin(chosen)]
    np.savez(
        folder / "m1.npz",
        **{key: rows[key].to_numpy().astype(table_type(rows[key])) for key in rows},
    )
    baselines = pd.read_csv(shared_path("data", "m1", "baselines.csv.gz"))
    baselines[baselines["unique_id"].isin(chosen)].to_csv(folder / "baselines.csv.gz", index=False)
    (folder.parent / "score.py").symlink_to(shared_path("data", "score.py"))
    monkeypatch.setenv("TAYLORFORMER_SHARED", str(tmp_path / "shared"))
    return chosen


def table_type(column):
    """Text as NumPy keeps it without pickle."""
    return column.dtype if column.dtype.kind in "if" else str


def window(context, truth=(0.0,), season=None, name="one"):
    context, truth = np.asarray(context, float), np.asarray(truth, float)
    steps = pd.RangeIndex(len(context) + len(truth))
    return sets.Window(name, context, truth, steps[: len(context)], steps[len(context) :], season)


# Sets.


@pytest.mark.parametrize(
    "name, counts",
    [
        ("m1", {"yearly": (181, 6, ()), "quarterly": (203, 8, (4,)), "monthly": (617, 18, (12,))}),
        ("m4_weekly", {"weekly": (359, 13, (52,))}),
    ],
)
def test_competition_sets_are_whole(shared_path, monkeypatch, name, counts):
    monkeypatch.setenv("TAYLORFORMER_SHARED", str(shared_path("data").parent))
    windows = sets.competition_windows(name)
    groups = sets.by_season_and_horizon(windows)
    assert {
        frequency: (len(group), horizon, seasons)
        for (frequency, seasons, horizon), group in groups.items()
    } == counts
    assert all(one.stamps[0] == 0 and one.future[0] == len(one.context) for one in windows)


def test_windows_of_a_single_series_are_the_last_ones_one_horizon_apart(wheels):
    single = sets.SINGLES["elnino"]
    windows = sets.single_windows(single)
    values = wheels["elnino"]
    assert len(windows) == single.num_windows == 8
    np.testing.assert_array_equal(np.concatenate([one.truth for one in windows]), values[-96:])
    np.testing.assert_array_equal(windows[0].context, values[-96 - 72 : -96])
    assert (
        windows[1].stamps[-1]
        == windows[0].future[-1]
        == pd.Timestamp("1950-01-01") + (pd.DateOffset(months=500 - 7 * 12 - 1))
    )
    assert list(windows[0].bare().future) == list(range(72, 84))


def test_a_series_that_is_too_short_for_its_windows_is_named(wheels):
    wheels["nile"] = wheels["nile"][:99]
    with pytest.raises(ValueError, match=r"nile must have 100 rows\. Received: 99"):
        sets.single_windows(sets.SINGLES["nile"])


def test_every_single_series_for_development_has_its_windows():
    path = peer_cache.CACHE / "series.npz"
    if not path.exists():
        pytest.skip(f"{path.name} not found in {path.parent.name}: see benchmarks/peers/run.py")
    for name in sets.DEVELOPMENT:
        if name not in sets.COMPETITIONS:
            single = sets.SINGLES[name]
            assert len(sets.single_windows(single)) == single.num_windows


def test_the_shipped_record_is_for_reports_only():
    weekly = ("etth1_week", "electricity_week")
    assert sets.REPORT_ONLY == ("co2", "etth1", "exchange", "electricity", *weekly)
    windows = sets.single_windows(sets.SINGLES["co2"])
    assert len(windows) == 8
    assert {(len(one.context), one.horizon) for one in windows} == {(110, 52)}
    assert windows[-1].future[-1] == pd.Timestamp("2001-12-29")


# Naive lines.


def test_naive_lines_by_hand():
    context = np.array([1.0, 5.0, 2.0, 7.0, 3.0, 9.0])
    mean, deviation = naive.seasonal_naive(context, 3, 2)
    np.testing.assert_allclose(mean, [3, 9, 3])
    size = np.sqrt((1 + 4 + 1 + 4) / 4)
    np.testing.assert_allclose(deviation, size * np.sqrt([1, 1, 2]))
    mean, deviation = naive.drift(context, 2)
    np.testing.assert_allclose(mean, [9 + 8 / 5, 9 + 16 / 5])
    missed = np.diff(context) - 8 / 5
    size = np.sqrt(np.square(missed).sum() / 4)
    np.testing.assert_allclose(deviation, size * np.sqrt([1 + 1 / 5, 2 * (1 + 2 / 5)]))
    mean, _ = naive.seasonal_naive_with_drift(context, 3, 2)
    np.testing.assert_allclose(mean, [3 + 1.5, 9 + 1.5, 3 + 3.0])


def test_without_a_season_the_seasonal_line_is_the_last_value():
    context = np.array([1.0, 5.0, 2.0])
    for season in (None, 1, 3, 12):
        for one, other in zip(
            naive.seasonal_naive(context, 4, season), naive.last_value(context, 4), strict=True
        ):
            np.testing.assert_allclose(one, other)


def test_a_context_of_one_value_has_a_naive_forecast():
    for line in naive.LINES.values():
        mean, deviation = line(np.array([4.0]), 2, 12)
        assert mean.tolist() == [4, 4] and deviation.tolist() == [0, 0]


def test_the_interval_of_the_last_value_holds_its_share_of_random_walks():
    walks = np.random.default_rng(0).normal(size=(400, 212)).cumsum(axis=1)
    windows = [window(one[:200], one[200:], name=f"{i}") for i, one in enumerate(walks)]
    figures, _ = scores.score_windows(windows, lines.naive_line(naive.last_value, windows))
    for third in ("cov80", "cov80_1", "cov80_2", "cov80_3"):
        assert figures[third] == pytest.approx(0.8, abs=0.04)


def test_quantiles_are_those_of_their_levels():
    values = naive.normal_quantiles(np.zeros(1), np.ones(1))
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(scores.quantiles_of(values, levels)[:, 0], ndtri(levels), atol=1e-3)


def test_crps_of_a_normal_line_is_near_the_closed_form():
    one = window([0.0, 1.0, 0.0, 1.0, 0.0], [0.3])
    figures, _ = scores.score_windows([one], lines.naive_line(naive.last_value, [one]))
    density, share = np.exp(-0.09 / 2) / np.sqrt(2 * np.pi), 0.6179114
    closed = 0.3 * (2 * share - 1) + 2 * density - 1 / np.sqrt(np.pi)
    assert figures["crps"] == pytest.approx(closed, rel=0.01)
    assert figures["mae"] == pytest.approx(0.3)
    assert figures["mase"] == pytest.approx(0.3)


def test_seasonal_naive_reproduces_the_baselines(small_m1):
    windows = sets.competition_windows("m1")
    assert len(windows) == sum(SMALL.values())
    made = lines.naive_line(naive.seasonal_naive, windows)
    figures, stand_ins = scores.score_competition("m1", windows, made)
    assert stand_ins == 0
    theirs = scores.competition_baselines("m1")["SeasonalNaive"]
    assert set(figures) == {*SMALL, "all"}
    for frequency, mine in figures.items():
        assert mine["rel_mase"] == pytest.approx(1, rel=1e-5)
        assert mine["mase"] == pytest.approx(theirs[frequency]["mase"], rel=1e-5)
        assert mine["scrps"] == pytest.approx(theirs[frequency]["scrps"], rel=1e-3)
        assert mine["cov80"] == pytest.approx(theirs[frequency]["cov80"], rel=1e-5)


def test_the_last_value_stands_in_and_is_counted(fake):
    windows = [window([1.0, 2.0, 4.0], [5.0], name=name) for name in "abc"]
    fake.left_out = ("b",)
    made = lines.zero_shot_line(windows, SETTINGS, bare=True, one_by_one=False)
    figures, stand_ins = scores.score_windows(windows, made)
    assert stand_ins == 1
    assert np.isfinite(figures["crps"])
    whole, _ = lines.with_stand_ins(made.values, windows)
    assert np.median(whole["b"]) == 4


# Records.


def record(**changes):
    about = {"about": "made up", "season": None, "context": 3, "horizon": 1, "num_windows": 2}
    figures = {"crps": 1.0, "mae": 2.0, "mase": float("nan"), "scrps": 1.0}
    figures |= dict.fromkeys(("cov80", "cov80_1", "cov80_2", "cov80_3"), 0.5)
    line = {"figures": figures, "stand_ins": 0, "seconds_per_forecast": 0.1}
    content = {"set": "one", "kind": "single", "report_only": False, "about": about}
    return {**content, "lines": {"drift": line}, **changes}


def test_lines_are_merged_into_a_record(tmp_path):
    first = record()
    line = first["lines"]["drift"]
    path = records.write(tmp_path, first)
    other = {**line, "stand_ins": 2}
    records.write(tmp_path, record(lines={"seasonal-naive": line, "drift": other}))
    merged = records.read(path)["lines"]
    assert list(merged) == ["drift", "seasonal-naive"]
    assert merged["drift"]["stand_ins"] == 2
    records.write(tmp_path, record(lines={"zero-shot": line}))
    merged = records.read(path)["lines"]
    assert list(merged) == ["zero-shot", "drift", "seasonal-naive"]
    assert merged["drift"]["figures"]["mase"] is None
    assert "NaN" not in path.read_text()
    text = records.write_table(tmp_path)
    assert text == (tmp_path / "table.md").read_text()
    assert "drift of one: 2" in text


def test_lines_of_other_windows_are_not_merged(tmp_path):
    records.write(tmp_path, record())
    about = {**record()["about"], "horizon": 2}
    with pytest.raises(ValueError, match="must have the `about` of the run"):
        records.write(tmp_path, record(about=about))


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "one.json").write_text("{}")
    with pytest.raises(ValueError, match=r"python -m benchmarks\.forecasting"):
        records.write(tmp_path, record())


@pytest.mark.parametrize(
    "value, text",
    [(0.01234, "0.0123"), (23.71, "23.7"), (1234.5, "1,234"), (0, "0"), (None, "")],
)
def test_numbers_have_three_digits_that_count(value, text):
    assert records.number(value) == text


# The whole command.


def test_single_series_from_end_to_end(fake, wheels, no_peers, tmp_path, capsys):
    output = tmp_path / "results"
    model = tmp_path / "private" / "weights"
    main(
        [
            "--sets",
            "nile",
            "sunsp*",
            "--output",
            str(output),
            "--num-samples",
            "20",
            "--model",
            str(model),
        ]
    )
    assert {path.name for path in output.iterdir()} == {"nile.json", "sunspots.json", "table.md"}
    content = records.read(output / "sunspots.json")
    assert list(content["lines"]) == [*lines.ZERO_SHOT, *lines.NAIVE]
    # Nothing says where anything is on this machine.
    assert str(tmp_path) not in "".join(path.read_text() for path in output.iterdir())
    made = content["lines"]["zero-shot"]["made"]
    assert made["command"] == (
        "python -m benchmarks.forecasting --sets nile sunsp* --num-samples 20 --model weights"
    ).replace("sunsp*", '"sunsp*"')
    assert made["weights"] == "weights" and made["seed"] == 0 and made["versions"]["numpy"]
    assert "seed" not in content["lines"]["drift"]["made"]
    # One call a window, with true stamps and the season; then bare ones.
    assert fake.asked == [(season, str(model)) for season in (11, "auto", None, "auto")]
    tables = [table for table, _ in fake.calls]
    assert [len(table) for table in tables] == [66] * 10 + [60] * 8
    assert tables[0]["ds"].iloc[0] == 1700 + 500 - 55 - 66 and tables[5]["ds"].iloc[0] == 0
    captured = capsys.readouterr()
    assert "no peers" in captured.err and "| sunspots |" in captured.out
    # Another run keeps what it does not make.
    main(["--sets", "nile", "--lines", "drift", "--output", str(output)])
    content = records.read(output / "nile.json")
    assert list(content["lines"]) == [*lines.ZERO_SHOT, *lines.NAIVE]
    assert content["lines"]["drift"]["made"]["command"].endswith("--sets nile --lines drift")


def test_a_series_with_two_seasons_has_a_naive_line_of_each(fake, no_peers, monkeypatch):
    single = sets.Single("hours", "made here", 4, 30, 5, 3, long_season=12)
    values = np.arange(60.0) % 12
    monkeypatch.setattr(sets, "history", lambda _: (values, pd.RangeIndex(60)))
    windows = sets.single_windows(single)
    assert single.description()["long_season"] == 12 and windows[0].seasons == (4, 12)
    asked = []

    def forecasts(name, contexts, horizon, seasons, models):
        asked.append(seasons)
        return {}

    monkeypatch.setattr(peer_cache, "forecasts", forecasts)
    names = ["zero-shot", "seasonal-naive", "MSTL"]
    made = lines.single_lines(single, windows, names, SETTINGS, print)
    assert fake.asked == [([4, 12], None)] and asked == [(4, 12)]
    long_line = made[lines.LONG_SEASON].values
    for one in windows:
        np.testing.assert_allclose(np.median(long_line[one.name], axis=0), one.truth)
        assert not np.allclose(
            np.median(made["seasonal-naive"].values[one.name], axis=0), one.truth
        )


def test_a_competition_from_end_to_end_writes_no_figure_of_one_series(fake, small_m1, tmp_path):
    output = tmp_path / "results"
    main(["--sets", "m1", "--lines", "zero-shot", "zero-shot-bare", "--output", str(output)])
    assert {path.name for path in output.iterdir()} == {"m1.json", "table.md"}
    text = "".join(path.read_text() for path in output.iterdir())
    assert not [name for name in small_m1 if name in text]
    content = records.read(output / "m1.json")
    assert list(content["lines"])[:2] == list(lines.ZERO_SHOT)
    assert {"SeasonalNaive", "AutoETS"} <= set(content["lines"])
    for line in content["lines"].values():
        figures = line["figures"]
        assert {key: one["n"] for key, one in figures.items()} == {**SMALL, "all": 11}
        assert set(figures["all"]) == set(scores._KEPT)
    # A call for each frequency, with its season; then bare ones.
    assert fake.asked == [(s, None) for s in (None, 4, 12, "auto", "auto", "auto")]
    assert [table["unique_id"].nunique() for table, _ in fake.calls] == 2 * list(SMALL.values())
    # The fake repeats the last value, with noise.
    figures = content["lines"]["zero-shot"]["figures"]["all"]
    assert figures["mase"] == pytest.approx(
        content["lines"]["Naive"]["figures"]["all"]["mase"], 0.1
    )


def test_panels_are_trained_on_by_frequency(fake, small_m1, tmp_path, capsys):
    main(["--sets", "m1", "--lines", "fit-prior", "--output", str(tmp_path), "--seed", "3"])
    line = records.read(tmp_path / "m1.json")["lines"]["fit-prior"]
    assert [one["frequency"] for one in line["trainings"]] == list(SMALL)
    assert [one["series"] for one in line["trainings"]] == list(SMALL.values())
    assert {one["training_steps"] for one in line["trainings"]} == {7}
    assert line["figures"]["all"]["n"] == 11
    assert [season for season, _ in fake.asked] == [None, 4, 12]
    # What was trained on is what was forecast: contexts alone.
    for (horizon, table, fractions, seed), (read, _) in zip(fake.fitted, fake.calls, strict=True):
        pd.testing.assert_frame_equal(table, read)
        assert horizon in (6, 8, 18) and fractions == (0.8, 0.2, 0.0) and seed == 3


def test_a_panel_that_is_too_short_is_left_out():
    steps = pd.RangeIndex(16)
    window = sets.Window("a", np.arange(10.0), np.arange(6.0), steps[:10], steps[10:], None)
    said = []

    class Short(FakeForecaster):
        horizon = None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zero_shot, "make_forecaster", lambda *_: Short())
        made = lines.panel_line([window], SETTINGS, said.append)
    assert not made.values and made.about["trainings"] == []
    assert said == [": no fit: too few rows"]


def test_sets_for_reports_need_the_option(capsys, wheels, tmp_path):
    with pytest.raises(SystemExit):
        main(["--sets", "co2", "--output", str(tmp_path)])
    assert "co2 needs --report-only" in capsys.readouterr().err
    main(["--sets", "co2", "--lines", "naive", "--report-only", "--output", str(tmp_path)])
    assert "# Report only: nothing was chosen by these" in capsys.readouterr().out
    assert records.read(tmp_path / "co2.json")["report_only"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--sets", "m5"], "--sets must be among"),
        (["--lines", "prophet"], "--lines must be among"),
        (["--remove", "1"], "--remove must be between 0 and 1"),
        (["--num-samples", "0"], "--num-samples must be at least 1"),
    ],
)
def test_options_are_checked(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


# Removed rows, cold starts, peers.


def test_rows_are_removed_at_random_and_alike_for_one_seed():
    windows = [window(np.arange(40.0) + number, name=f"{number}") for number in range(3)]
    windows.append(window([1.0, 2.0, 3.0], name="short"))
    removed, again = (gaps.remove_rows(windows, 0.5, seed=3) for _ in range(2))
    other = gaps.remove_rows(windows, 0.5, seed=4)
    assert [len(one.context) for one in removed] == [20, 20, 20, 2]
    for before, after, same in zip(windows, removed, again, strict=True):
        np.testing.assert_array_equal(after.context, before.context[after.stamps])
        np.testing.assert_array_equal(after.stamps, same.stamps)
    assert list(removed[0].stamps) != list(removed[1].stamps)
    assert list(removed[0].stamps) != list(other[0].stamps)


def test_gaps_are_filled_by_straight_lines_up_to_the_origin():
    values = naive.interpolated(np.array([1.0, 3.0, 9.0]), np.array([2, 4, 5, 7]))
    assert values.tolist() == [1, 2, 3, 9, 9, 9]


def test_a_straight_line_loses_nothing_by_gaps():
    one = window(np.arange(24.0), np.arange(24.0, 27.0), season=4)
    kept = np.array([0, 3, 4, 9, 15, 23])
    fewer = dataclasses.replace(one, context=one.context[kept], stamps=one.stamps[kept])
    made = gaps.remedy_line([fewer]).values["one"]
    np.testing.assert_allclose(np.median(made, axis=0), one.truth)


def test_the_peer_gets_filled_contexts_of_their_own_lengths(monkeypatch):
    windows = [
        window([5.0, 9.0, 7.0], np.zeros(2), season=12, name="long"),
        window([1.0, 3.0], np.zeros(2), season=12, name="short"),
    ]
    fewer = dataclasses.replace(windows[0], context=np.array([5.0, 7.0]), stamps=pd.Index([0, 2]))
    asked = []

    def forecasts(name, contexts, horizon, seasons, models):
        asked.append((name, contexts, horizon, seasons, models))
        quantiles = np.arange(8.0).reshape(2, 2, 2)
        about, seconds = {"statsforecast": "2"}, np.array([1.0, 2.0])
        return {"AutoETS": {"quantiles": quantiles, "seconds": seconds, "about": about}}

    monkeypatch.setattr(peer_cache, "forecasts", forecasts)
    made = gaps.peer_line([fewer, windows[1]], "some")
    ((name, contexts, horizon, seasons, models),) = asked
    np.testing.assert_array_equal(contexts, [[5, 6, 7], [np.nan, 1, 3]])
    assert (name, horizon, seasons, models) == ("some", 2, (12,), ["AutoETS"])
    np.testing.assert_array_equal(made.values["short"], [[2, 3], [6, 7]])
    assert made.about == {"seconds_per_forecast": 1.5, "versions": {"statsforecast": "2"}}


def test_removed_rows_from_end_to_end(fake, small_m1, tmp_path):
    output = tmp_path / "results"
    main(["--remove", "0.5", "--lines", "zero-shot", "--output", str(output)])
    content = records.read(output / "m1-monthly-without-50-percent.json")
    assert list(content["lines"]) == ["zero-shot", gaps.REMEDY]
    for line in content["lines"].values():
        whole, removed, growth = (line["figures"][key] for key in ("whole", "removed", "growth"))
        assert whole["n"] == removed["n"] == SMALL["monthly"]
        assert growth["mase"] == pytest.approx(removed["mase"] / whole["mase"] - 1)
    (all_rows, no_stamps), (some_rows, stamps) = fake.calls
    assert no_stamps is None
    assert len(some_rows) == pytest.approx(len(all_rows) / 2, abs=SMALL["monthly"])
    assert len(stamps) == 18 * SMALL["monthly"]
    text = "".join(path.read_text() for path in output.iterdir())
    assert not [name for name in small_m1 if name in text]


@pytest.fixture(scope="module")
def draws():
    return processes.draw_processes(2, seed=3)


def test_an_ar_process_is_conditioned_as_by_its_recursion(rng):
    phi, shock_sd = 0.7, 1.0
    covariance = processes.arma_covariance(np.array([phi]), np.empty(0), 10)
    lags = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    np.testing.assert_allclose(covariance, phi**lags * shock_sd**2 / (1 - phi**2))
    context = rng.normal(size=6)
    mean, deviation = processes.condition(covariance, context)
    ahead = np.arange(1, 5)
    np.testing.assert_allclose(mean, phi**ahead * context[-1])
    np.testing.assert_allclose(deviation**2, (1 - phi ** (2 * ahead)) / (1 - phi**2))


def test_a_moving_average_has_no_memory_beyond_its_order():
    covariance = processes.arma_covariance(np.empty(0), np.array([0.5]), 4)
    np.testing.assert_allclose(covariance[0], [1.25, 0.5, 0.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_autoregressions_that_are_drawn_are_stationary(order, rng):
    for _ in range(50):
        phi, theta = processes.draw_arma(order, 1, rng)
        assert np.abs(np.roots(np.append(1.0, -phi))).max() < 1
        assert len(theta) == 1 and abs(theta[0]) < 1


def test_the_true_distribution_of_a_gaussian_process_is_that_of_scikit_learn(rng):
    kernel = RBF(5.0) + WhiteKernel(0.1)
    steps = np.arange(12.0)[:, np.newaxis]
    context = rng.normal(size=8)
    regression = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
    expected = regression.fit(steps[:8], context).predict(steps[8:], return_std=True)
    made = processes.condition(kernel(steps), context)
    np.testing.assert_allclose(made, expected)


def test_draws_depend_on_their_number_alone(draws):
    more = processes.draw_processes(3, seed=3)
    for one in draws:
        same = next(each for each in more if each.window.name == one.window.name)
        np.testing.assert_array_equal(one.window.context, same.window.context)
    assert len({one.window.context[0] for one in more}) == len(more)


def test_the_true_distribution_is_as_good_as_itself_and_a_wide_one_is_worse(draws):
    line = processes.true_line(draws)
    wide = {name: values[::-1] * 3 for name, values in line.values.items()}
    for made, spread in ((line, 1.0), (lines.Made(wide, False, {}), 3.0)):
        figures = processes.score(draws, made)
        assert {"all gp", "all arma"} < set(figures)
        for each in figures.values():
            assert each["spread"] == pytest.approx(spread)
            assert each["over_true"] == pytest.approx(1.0) if spread == 1 else each["over_true"] > 1


def test_processes_from_end_to_end(fake, monkeypatch, tmp_path):
    measure = functools.partial(processes.measure, count=1)
    monkeypatch.setattr(processes, "measure", measure)
    main(["--processes", "--lines", "zero-shot", "--output", str(tmp_path)])
    content = records.read(tmp_path / "processes.json")
    assert list(content["lines"]) == ["zero-shot", processes.TRUE, processes.FITTED]
    ours, of_true, fitted = (line["figures"] for line in content["lines"].values())
    assert of_true["all gp"]["over_true"] == 1
    assert "all arma" not in fitted and fitted["all gp"]["n"] == 3
    assert ours["all arma"]["n"] == 4 and ours["all arma"]["over_true"] > 1
    assert "all arma 4" in (tmp_path / "table.md").read_text()


def test_a_cold_start_is_split_into_its_parts(fake):
    figures = cold._measure(cold.ONE, 5, 0, None, time.time())
    assert list(figures) == list(cold.COLUMNS)
    parts = figures["of these before the imports"], figures["importing TensorFlow"]
    assert figures["seconds"] == pytest.approx(sum(parts) + figures["the rest"])
    ((table, _),) = fake.calls
    assert len(table) == 200 and fake.asked == [("auto", None)]


def test_the_cache_of_the_peers_is_of_the_same_windows(no_peers, tmp_path):
    contexts = np.arange(12.0).reshape(2, 6)
    with pytest.raises(FileNotFoundError, match=r"\.venv-peers, is not there"):
        peer_cache.forecasts("one", contexts, 3, (4,), ["AutoETS"])
    assert peer_cache.models_for(()) == ["AutoETS", "AutoTheta", "AutoARIMA"]
    assert peer_cache.models_for((52,)) == ["AutoETS", "AutoTheta", "MSTL"]


def test_peers_are_read_from_the_cache(no_peers, monkeypatch):
    contexts = np.arange(12.0).reshape(2, 6)
    ran = []

    def run(command, path, folder, *models):
        """Stands for the script: writes what it was asked for."""
        ran.append(models)
        with np.load(path) as file:
            digest, horizon = file["digest"], int(file["horizon"])
        folder.mkdir(exist_ok=True)
        for model in models:
            np.savez(
                folder / f"one-{model}.npz",
                digest=digest,
                quantiles=np.ones([100, 2, horizon]),
                seconds=np.array([1.0, 2.0]),
                about=np.array(json.dumps({"python": "3"})),
            )

    monkeypatch.setattr(peer_cache, "_run", run)
    for _ in range(2):
        made = peer_cache.forecasts("one", contexts, 3, (4,), ["AutoETS", "MSTL"])
    assert ran == [("AutoETS", "MSTL")]
    assert made["MSTL"]["quantiles"].shape == (100, 2, 3)
    peer_cache.forecasts("one", contexts + 1, 3, (4,), ["MSTL"])
    assert ran[1:] == [("MSTL",)]
