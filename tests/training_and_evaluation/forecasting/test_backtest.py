"""Rolling back-tests: known distributions, two ways of scoring, units, files, paper's numbers."""

import dataclasses
import json

import conformance
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

from taylorformer import load_released_weights
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, WindowSpec
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.forecasting.backtest import backtest
from taylorformer.training_and_evaluation.forecasting.naive import last_difference, last_value
from taylorformer.training_and_evaluation.metrics import average

SPEC = WindowSpec(context_length=6, horizon=4)
STEP_SCALE = 0.3


class RandomWalk(ProbabilisticModel):
    """Each value is the one observed before it, plus normal noise: all its scores are known."""

    def call(self, inputs, training=False):
        batch = self.prepare(inputs)
        num_context, num_target = (
            tf.shape(batch[f"x_{side}"])[1] for side in ("context", "target")
        )
        y, seen = batch["y_context"], batch["context_mask"]
        y_target = batch.get("y_target", tf.zeros_like(batch["x_target"][..., : y.shape[-1]]))
        target_seen = batch["target_mask"] & ("y_target" in batch)
        y, seen = tf.concat([y, y_target], axis=1), tf.concat([seen, target_seen], axis=1)
        index = tf.range(num_context + num_target)
        earlier = index < num_context + tf.range(num_target)[:, tf.newaxis]
        last = tf.reduce_max(tf.where(earlier & seen[:, tf.newaxis], index, 0), axis=-1)
        mean = tf.gather(y, last, batch_dims=1)
        return self.finish_outputs(mean, STEP_SCALE * tf.ones_like(mean), batch["target_mask"])


def make_series(values, name="a", first_time=0):
    values = np.asarray(values, np.float64)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    time = first_time + np.arange(len(values))
    columns = tuple(f"y{column}" for column in range(values.shape[1]))
    return Series(time, values.copy(), pd.Index(time), "t", columns, name=name)


def make_windows(series, scaling="standard", spec=SPEC, num_train_rows=40):
    return Windows(series, WindowScaler.fit(series, spec, num_train_rows, scaling))


def walk(rng, num_rows=90, num_columns=1):
    return 50 + rng.normal(size=(num_rows, num_columns)).cumsum(axis=0)


@pytest.fixture(scope="module")
def random_walk():
    return RandomWalk()


@pytest.fixture(scope="module")
def untrained_model():
    model = Taylorformer(**{**conformance.TINY, "num_layers": 1}, encoding_dim=4, seed=3)
    shape = (None, None, 1)
    model.build({"x_context": shape, "y_context": shape, "x_target": shape})
    # An untrained model is chaotic: the last bit of its first sample is a digit of its last one.
    head = model.local_taylor.network
    for dense in (head.mean_dense, head.scale_dense):
        dense.kernel.assign(0.1 * dense.kernel)
    return model


def values(result, table="scores", line="taylorformer"):
    """The scores of one line, without what its rows are."""
    rows = getattr(result, table)
    names = [name for name in rows.columns if "_forced_" in name or "_running_" in name]
    return rows.loc[rows["line"] == line, names]


# Known distributions.


def test_a_random_walk_has_the_scores_of_its_distribution(random_walk, rng):
    series = make_series(walk(rng))
    windows = make_windows(series)
    starts = np.arange(40, 80)
    fit_starts = np.arange(30)
    result = backtest(
        random_walk, windows, starts, fit_starts=fit_starts, num_samples=300, units="scaled",
        name="walk",
    )  # fmt: skip
    assert result.scores["line"].tolist() == ["walk", "last_value", "last_difference"]
    assert (result.num_windows, result.num_scored_points) == (40, 160)
    (ours,) = values(result, line="walk").to_dict("records")
    (naive,) = values(result, line="last_value").to_dict("records")
    truth = windows.scale_y(windows.truth(starts), starts)
    before = windows.scale_y(last_value(windows, starts, teacher_forced=True), starts)
    nll = -stats.norm.logpdf(truth, before, STEP_SCALE).mean()
    assert ours["teacher_forced_nll"] == pytest.approx(nll, rel=1e-5)
    assert ours["teacher_forced_mse"] == pytest.approx(np.square(truth - before).mean(), rel=1e-5)
    assert naive["teacher_forced_mse"] == pytest.approx(ours["teacher_forced_mse"], rel=1e-5)
    fitted = windows.truth(fit_starts) - last_value(windows, fit_starts, teacher_forced=True)
    scale = np.sqrt(np.square(fitted / windows.spread(fit_starts)[:, np.newaxis]).mean())
    nll = -stats.norm.logpdf(truth, before, scale).mean()
    assert naive["teacher_forced_nll"] == pytest.approx(nll, rel=1e-9)

    origin = windows.scale_y(last_value(windows, starts), starts)
    error = truth - origin
    assert naive["free_running_mse"] == pytest.approx(np.square(error).mean(), rel=1e-9)
    assert naive["free_running_mae"] == pytest.approx(np.abs(error).mean(), rel=1e-9)
    assert naive["free_running_crps"] == naive["free_running_mae"]
    energy = np.linalg.norm(error[..., 0], axis=1).mean()
    assert naive["free_running_energy_score"] == pytest.approx(energy, rel=1e-9)
    assert np.isnan(naive["free_running_coverage_50"]) and np.isnan(naive["free_running_width_90"])

    spread = STEP_SCALE * np.sqrt(np.arange(1, 5))
    by_step = values(result, "by_step", "walk")
    for percent in (50, 90):
        width = 2 * stats.norm.ppf((100 + percent) / 200) * spread
        np.testing.assert_allclose(by_step[f"free_running_width_{percent}"], width, rtol=0.03)
    z = error[..., 0] / spread
    crps = spread * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
    np.testing.assert_allclose(by_step["free_running_crps"], crps.mean(axis=0), rtol=0.03)
    levels = result.reliability["level"].to_numpy()
    shares = (stats.norm.cdf(z).ravel()[:, np.newaxis] <= levels).mean(axis=0)
    np.testing.assert_allclose(result.reliability["share"], shares, atol=0.03)


def test_a_target_with_nothing_known_before_it_has_no_naive_forecast(rng):
    rows = walk(rng, num_rows=60, num_columns=2)
    rows[:7, 1] = np.nan
    windows = make_windows(make_series(rows))
    result = backtest(RandomWalk(), windows, [0, 40], fit_starts=np.arange(20, 30), num_samples=3)
    first, second = (values(result, "by_window", "last_value").iloc[window] for window in (0, 1))
    assert result.by_window["num_scored"].tolist()[:2] == [3, 4]
    # From its origin the first window has no forecast; one step at a time its last two have one.
    assert np.isnan(first["free_running_mse"]) and np.isfinite(first["teacher_forced_mse"])
    assert np.isfinite(second.drop(second.index[second.index.str.contains("cov|width")])).all()
    error = rows[8:10] - rows[7:9]
    assert first["teacher_forced_mse"] == pytest.approx(np.square(error).mean())
    total = values(result, line="last_value").iloc[0]
    assert total["free_running_mse"] == second["free_running_mse"]
    assert np.isfinite(values(result, "by_window")).all(axis=None)


# Averages.


@pytest.fixture(scope="module")
def gappy():
    """Two series with gaps; the last windows of the second have nothing to score."""
    rng = np.random.default_rng(5)
    rows = [walk(rng, 60), walk(rng, 60)]
    for one in rows:
        one[rng.random(one.shape) < 0.2] = np.nan
    rows[1][51:] = np.nan
    series = [make_series(rows[0], "b", 10**12), make_series(rows[1], "a")]
    windows = make_windows(series, scaling="window")
    return windows, np.concatenate([np.arange(36, 51), 60 + np.arange(30, 51)])


@pytest.fixture(scope="module")
def at_once(untrained_model, gappy):
    return backtest(untrained_model, *gappy, num_samples=8, fit_starts=np.arange(20), season=7)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_no_score_depends_on_the_batch_size(batch_size, untrained_model, gappy, at_once):
    calls = []
    result = backtest(
        untrained_model, *gappy, num_samples=8, fit_starts=np.arange(20), season=7,
        batch_size=batch_size, progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    for name in ("scores", "by_step", "by_window", "reliability"):
        pd.testing.assert_frame_equal(getattr(result, name), getattr(at_once, name), rtol=1e-6)
    total = at_once.num_windows
    assert calls == [(min(n + batch_size, total), total) for n in range(0, total, batch_size)]


def test_averages_agree_with_one_another(gappy, at_once):
    windows, starts = gappy
    scored = windows.scored(starts)
    kept = scored.any(axis=1)
    assert (~kept).sum() == 6
    assert at_once.num_windows == kept.sum()
    assert at_once.num_scored_points == scored.sum()
    lines = ["taylorformer", "last_value", "last_difference", "seasonal"]
    assert at_once.scores["line"].tolist() == lines
    assert len(at_once.by_step) == 4 * len(lines)
    assert len(at_once.by_window) == kept.sum() * len(lines)
    for line in lines:
        by_window = at_once.by_window[at_once.by_window["line"] == line]
        assert by_window["num_scored"].tolist() == scored.sum(axis=1)[kept].tolist()
        pd.testing.assert_series_equal(
            values(at_once, "by_window", line).mean(),
            values(at_once, line=line).iloc[0],
            check_names=False,
        )
    ours = at_once.by_window[at_once.by_window["line"] == "taylorformer"]
    assert ours["series"].tolist() == ["b"] * 15 + ["a"] * (at_once.num_windows - 15)
    stamps = windows.panel.time[windows.target_rows(starts)[kept, 0]]
    assert ours["first_target"].tolist() == stamps.tolist()


def test_the_average_over_steps_is_the_total_where_all_is_observed(random_walk, rng):
    windows = make_windows(make_series(walk(rng)))
    result = backtest(random_walk, windows, np.arange(50, 61), num_samples=4, season=5)
    for line in result.scores["line"]:
        by_step = values(result, "by_step", line)
        assert len(by_step) == 4 and "free_running_energy_score" not in by_step
        pd.testing.assert_series_equal(
            by_step.mean(), values(result, line=line).iloc[0][by_step.columns], check_names=False
        )


@pytest.mark.parametrize("scaling", ["standard", "window"])
def test_units_of_the_series_and_scaled_units_say_the_same(scaling, random_walk, rng):
    windows = make_windows(make_series(1000 * walk(rng)), scaling)
    spread = windows.spread([50])[0, 0]
    user, scaled = (
        backtest(
            random_walk, windows, np.arange(50, 61), fit_starts=np.arange(20), num_samples=4,
            units=units,
        )
        for units in ("user", "scaled")
    )  # fmt: skip
    for line in user.scores["line"]:
        ours, theirs = (values(result, line=line).iloc[0] for result in (user, scaled))
        for name in ours.index:
            if "nll" in name:
                wanted = theirs[name] + np.log(spread)
            elif "coverage" in name:
                wanted = theirs[name]
            else:
                wanted = theirs[name] * (spread**2 if name.endswith("mse") else spread)
            assert ours[name] == pytest.approx(wanted, rel=1e-6, nan_ok=True), (line, name)
    pd.testing.assert_frame_equal(user.reliability, scaled.reliability)


# What is read.


def test_garbage_in_the_future_reaches_no_free_running_score_of_later_steps(untrained_model, rng):
    rows = walk(rng)

    def scores(rows):
        windows = make_windows(make_series(rows))
        return backtest(untrained_model, windows, [70], num_samples=5, season=5)

    wanted = scores(rows)
    garbage = rows.copy()
    # The first two targets; those after them are scored against the same truth.
    garbage[76:78] = 1e9
    got = scores(garbage)
    for line in ("taylorformer", "last_value", "last_difference", "seasonal"):
        before, after = (values(result, "by_step", line) for result in (wanted, got))
        free = [name for name in before.columns if name.startswith("free_running")]
        assert np.array_equal(before[free].to_numpy()[2:], after[free].to_numpy()[2:], True)
        # Teacher-forced, the step after the garbage is predicted from it (not a season later).
        forced = before["teacher_forced_mse"].iloc[2], after["teacher_forced_mse"].iloc[2]
        assert (forced[0] == forced[1]) == (line == "seasonal")
    widths = [name for name in free if "width" in name]
    for table in ("scores", "by_window", "by_step"):
        np.testing.assert_array_equal(values(wanted, table)[widths], values(got, table)[widths])
    late = rows.copy()
    late[78:] = -1e9
    before, after = (values(result, "by_step").iloc[:2] for result in (wanted, scores(late)))
    pd.testing.assert_frame_equal(before, after, rtol=1e-6)


def test_a_target_with_a_missing_truth_is_drawn_seen_and_not_scored(random_walk, rng):
    rows = walk(rng)
    whole = backtest(random_walk, make_windows(make_series(rows)), [70], num_samples=5)
    rows[77] = np.nan
    gappy = backtest(random_walk, make_windows(make_series(rows)), [70], num_samples=5)
    before, after = (values(result, "by_step") for result in (whole, gappy))
    free = [name for name in before.columns if name.startswith("free_running")]
    np.testing.assert_array_equal(before[free].iloc[[0, 2, 3]], after[free].iloc[[0, 2, 3]])
    assert after.iloc[1].isna().all() and gappy.num_scored_points == 3
    # Teacher-forced, it is not there: the target after it is predicted from the one before it.
    assert before["teacher_forced_mse"].iloc[2] != after["teacher_forced_mse"].iloc[2]


def test_windows_do_not_share_noise_and_the_seed_counts(random_walk, rng):
    windows = make_windows(make_series(walk(rng)))
    one, again, other = (
        backtest(random_walk, windows, [50, 60], num_samples=5, seed=seed) for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(one.by_window, again.by_window)
    width = values(one, "by_window")["free_running_width_50"]
    assert width.nunique() == 2
    assert not np.any(width == values(other, "by_window")["free_running_width_50"])


# One compiled pass.


@pytest.mark.parametrize("case", conformance.MODELS[1::5], ids=lambda case: case.name)
def test_one_compiled_pass_is_call_and_log_prob(case, tmp_path):
    case.needs("free lengths")
    model = case.make()
    graphs = set()
    for num_context, num_target, batch_size in ((5, 4, 3), (2, 7, 1), (0, 1, 2)):
        inputs, y_target = case.data(
            num_context=num_context, num_target=num_target, batch_size=batch_size
        )
        inputs["target_mask"] = np.arange(num_target) != np.arange(batch_size)[:, np.newaxis] + 1
        y_target[~inputs["target_mask"]] = np.nan
        forced = model.teacher_forced(inputs, y_target)
        outputs = model({**inputs, "y_target": y_target})
        assert sorted(forced) == ["log_prob", "mean", "scale"]
        np.testing.assert_allclose(forced["mean"], outputs["mean"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(forced["scale"], outputs["scale"], rtol=1e-5)
        np.testing.assert_allclose(
            forced["log_prob"], model.log_prob(inputs, y_target), rtol=1e-5, atol=1e-4
        )
        graphs.add(id(model._teacher_forced))
    assert len(graphs) == 1
    function = tf.types.experimental.PolymorphicFunction
    assert not any(isinstance(value, function) for value in vars(model).values())
    with pytest.raises(ValueError, match=r"\[B, N_T, D_y\]. Received: None"):
        model.teacher_forced(inputs, None)


def test_no_graph_is_made_of_a_model_that_runs_eagerly():
    class Eager(RandomWalk):
        def call(self, inputs, training=False):
            assert tf.executing_eagerly()
            return super().call(inputs, training)

    model, (inputs, y_target) = Eager(), conformance.points()
    model.compile(run_eagerly=True)
    forced = model.teacher_forced(inputs, y_target)
    np.testing.assert_allclose(forced["log_prob"], model.log_prob(inputs, y_target))


# Files and pictures.


def test_files(at_once, tmp_path):
    folder = tmp_path / "new" / "folder"
    at_once.save(folder)
    names = ["scores.csv", "by_step.csv", "by_window.csv", "reliability.csv"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*names, "backtest.json", "reliability.png", "by_step.png"]
    )
    report = json.loads((folder / "backtest.json").read_text())
    for name in names:
        table = getattr(at_once, name.removesuffix(".csv"))
        read = pd.read_csv(folder / name)
        pd.testing.assert_frame_equal(read, table, check_dtype=False, rtol=1e-12)
        listed = pd.DataFrame(report[name.removesuffix(".csv")])
        pd.testing.assert_frame_equal(listed, table, check_dtype=False, rtol=1e-12)
    assert report["scores"]["free_running_coverage_50"][1:] == [None, None, None]
    counts = ("units", "num_windows", "num_scored_points", "num_samples", "seed")
    assert {name: report[name] for name in counts} == {
        name: getattr(at_once, name) for name in counts
    }
    for name in ("reliability.png", "by_step.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_without_samples_nothing_is_free_running(random_walk, rng, tmp_path):
    frame = pd.DataFrame(
        {"day": pd.date_range("2024-01-30", periods=90, tz="Asia/Tokyo"), "y": walk(rng)[:, 0]}
    )
    windows = make_windows(Series.from_frame(frame, "day", "y"))
    (tmp_path / "by_step.png").touch()
    result = backtest(random_walk, windows, [50, 51], num_samples=0)
    with pytest.raises(FileExistsError, match="unless overwrite=True"):
        result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["by_step.png"]
    # A picture of another back-test would be taken for one of this.
    result.save(tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "backtest.json", "by_step.csv", "by_window.csv", "scores.csv",
    ]  # fmt: skip
    names = ["teacher_forced_nll", "teacher_forced_mse"]
    assert list(result.scores) == ["line", *names]
    assert list(result.by_step) == ["line", "step", "teacher_forced_mse"]
    # Naive lines have no density without windows to fit a scale on.
    assert result.scores["teacher_forced_nll"].isna().tolist() == [False, True, True]
    assert result.by_window["first_target"].iloc[0] == frame["day"].iloc[56]
    report = json.loads((tmp_path / "backtest.json").read_text())
    assert report["by_window"]["first_target"][0] == "2024-03-26 00:00:00+09:00"
    assert report["scores"]["teacher_forced_nll"][1] is None and "reliability" not in report
    with pytest.raises(ValueError, match="Received: num_samples=0"):
        result.plot_reliability()
    with pytest.raises(ValueError, match="`score` must be one of 'teacher_forced_mse'"):
        result.plot_by_step()
    (axes,) = result.plot_by_step("teacher_forced_mse").axes
    assert len(axes.lines) == 3


def test_pictures_say_what_they_show(at_once):
    (axes,) = at_once.plot_by_step().axes
    assert axes.get_ylabel() == "free-running CRPS (units of the series)"
    assert len(axes.lines) == 4
    (axes,) = at_once.plot_by_step("free_running_coverage_90").axes
    assert axes.get_ylabel() == "free-running coverage of the 90 % interval"
    assert [line.get_label() for line in axes.lines] == ["taylorformer", "wanted"]
    assert axes.lines[1].get_ydata()[0] == 0.9
    (axes,) = dataclasses.replace(at_once, units="scaled").plot_by_step("free_running_mse").axes
    assert axes.get_ylabel() == "free-running MSE (scaled squared units)"
    (axes,) = at_once.plot_reliability().axes
    assert f"{at_once.num_windows} windows, 8 samples each" in axes.get_title(loc="left")


def test_stamps_of_several_time_zones_stay_as_they_came(random_walk, rng):
    series = []
    for zone in ("Asia/Tokyo", "Europe/London"):
        stamps = pd.date_range("2024-01-30", periods=60, tz=zone)
        frame = pd.DataFrame({"day": stamps, "y": walk(rng, 60)[:, 0]})
        series.append(Series.from_frame(frame, "day", "y", name=zone))
    result = backtest(random_walk, make_windows(series), [110, 40, 45], num_samples=0)
    days = [one.stamps[row] for one, row in zip(reversed(series), (56, 46), strict=True)]
    assert result.by_window["first_target"].tolist()[:2] == days
    assert result.by_window["series"].tolist()[:3] == ["Europe/London", "Asia/Tokyo", "Asia/Tokyo"]


# Refusals.


def test_bad_arguments(random_walk, rng):
    rows = walk(rng)
    rows[46:52] = np.nan
    windows = make_windows(make_series(rows))
    for settings, message in (
        ({"num_samples": -1}, "`num_samples` must be at least 0"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"units": "ppm"}, "`units` must be one of 'user', 'scaled'"),
        ({"season": -1}, "`span` must be positive"),
        ({"name": "last_value"}, "`name` must be a text other than .* Received: name='last_value'"),
        ({"fit_starts": [30, 57]}, r"share no target .* 1 that do, the first one starts at row 57"),
        ({"fit_starts": [63]}, "share no target"),
        ({"fit_starts": [40]}, "`fit_starts` must hold at least one window"),
        ({"starts": [40, 41]}, "`starts` must hold at least one window .* 2 windows without any"),
        ({"starts": [90]}, "for windows inside the series"),
    ):
        with pytest.raises(ValueError, match=message):
            backtest(random_walk, windows, **{"starts": [60], "num_samples": 1, **settings})
    # Windows whose targets only touch are apart.
    result = backtest(random_walk, windows, [60], fit_starts=[56, 64], num_samples=0)
    assert result.scores["teacher_forced_nll"].notna().all()
    with pytest.raises(TypeError, match="`seed` must be an integer"):
        backtest(random_walk, windows, [60], seed=0.5)


def test_a_line_that_was_never_wrong_has_no_density(random_walk):
    windows = make_windows(make_series(np.full(60, 3.0)))
    result = backtest(random_walk, windows, [45], fit_starts=[10], num_samples=0)
    assert result.scores["teacher_forced_nll"].isna().tolist() == [False, True, True]
    assert result.scores["teacher_forced_mse"].tolist() == pytest.approx([0, 0, 0])


# The authors' numbers.


def ettm2(shared_path):
    frame = pd.read_csv(shared_path("data", "ett", "ETTm2.csv.gz"))
    return Series.from_frame(frame, "date", "OT", name="ETTm2")


def paper_windows(series):
    """Windows of 96 and 96 wholly inside the last fifth, standardised by the first 69 %."""
    spec, split = WindowSpec(96, 96), Split.chronological(series.num_rows)
    scaler = WindowScaler.fit(series, spec, split.train_end, scaling="standard")
    return Windows(series, scaler), split.window_starts(spec, "test", context_inside=True)


@pytest.mark.slow
def test_the_authors_models_on_all_windows_of_ettm2(shared_path, record_property):
    windows, starts = paper_windows(ettm2(shared_path))
    assert len(starts) == 13_745
    scores = []
    for run in range(5):
        folder = shared_path("released_weights", "ett_96", f"run_{run}")
        model = load_released_weights(next(folder.glob("*.index")).with_suffix(""))
        result = backtest(model, windows, starts, num_samples=0, batch_size=64, units="scaled")
        scores.append(values(result).iloc[0])
        record_property(f"nll_{run}", float(scores[-1]["teacher_forced_nll"]))
        record_property(f"mse_{run}", float(scores[-1]["teacher_forced_mse"]))
    nll, mse = np.mean(scores, axis=0)
    record_property("nll", float(nll))
    record_property("mse", float(mse))
    assert abs(nll + 2.73) <= 0.02
    assert abs(mse - 0.000304) <= 0.000006


@pytest.mark.parametrize(
    "data, count, line, mse",
    [
        ("ettm2", 13_745, last_value, 0.00105),
        ("ettm2", 13_745, last_difference, 0.00047),
        ("exchange", 1_327, last_value, 0.00244),
    ],
)
def test_one_step_naive_lines_of_the_papers_data(data, count, line, mse, shared_path):
    if data == "ettm2":
        series = ettm2(shared_path)
    else:
        frame = pd.read_csv(shared_path("data", "exchange_rate", "exchange_rate.csv.gz"))
        series = Series.from_frame(frame, "date", "OT", date_format="%Y/%m/%d %H:%M")
    windows, starts = paper_windows(series)
    assert len(starts) == count
    error = windows.truth(starts) - line(windows, starts, teacher_forced=True)
    points = {"mse": np.square(error / windows.spread(starts)[:, np.newaxis])[..., 0]}
    assert average(points)["mse"] == pytest.approx(mse, abs=5e-6)
