"""Scores of samples against closed forms, the naive lines, and the pictures."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scoringrules
from scipy import stats

from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.data_wrangler.tables.windows import Windows
from taylorformer.training_and_evaluation.forecasting.naive import (
    last_difference,
    last_value,
    seasonal,
)
from taylorformer.training_and_evaluation.metrics import (
    RELIABILITY_LEVELS,
    average,
    average_by_step,
    average_by_window,
    average_reliability,
    free_running_energy_score,
    free_running_point_scores,
    free_running_reliability,
    gaussian_nll,
    point_forecast_scores,
    sample_quantiles,
    teacher_forced_mse,
    teacher_forced_nll,
)
from taylorformer.training_and_evaluation.plots import (
    plot_by_step,
    plot_forecast,
    plot_reliability,
)

# Scores.


def gaussian_crps(mean, scale, y):
    z = (y - mean) / scale
    return scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)


def test_crps_of_gaussian_samples_is_the_closed_form():
    # Samples at the quantiles, so that nothing is random: the error falls with 1/S.
    levels = (np.arange(2000) + 0.5) / 2000
    mean, scale = np.array([5000.0, 0.0, -3.0]), np.array([300.0, 1.0, 0.01])
    y = mean + scale * np.array([0.3, -2.5, 0.0])
    samples = mean + scale * stats.norm.ppf(levels)[:, np.newaxis]
    scores = free_running_point_scores(
        samples[:, :, np.newaxis, np.newaxis], y[:, np.newaxis, np.newaxis], np.full((3, 1), True)
    )
    wanted = gaussian_crps(mean, scale, y)
    np.testing.assert_allclose(scores["free_running_crps"][:, 0], wanted, rtol=1e-3)
    np.testing.assert_allclose(scores["free_running_mae"][:, 0], np.abs(y - mean), atol=1e-9)
    np.testing.assert_allclose(scores["free_running_mse"][:, 0], (y - mean) ** 2, atol=1e-9)
    for percent in (50, 90):
        width = 2 * stats.norm.ppf(0.5 + percent / 200) * scale
        np.testing.assert_allclose(scores[f"free_running_width_{percent}"][:, 0], width, rtol=2e-3)


def test_crps_of_random_gaussian_samples_is_the_closed_form_on_average(rng):
    y = rng.normal(size=(100, 1, 1))
    samples = rng.normal(size=(10_000, 100, 1, 1))
    scores = average(free_running_point_scores(samples, y, np.full((100, 1), True)))
    wanted = gaussian_crps(0.0, 1.0, y).mean()
    assert scores["free_running_crps"] == pytest.approx(wanted, rel=0.01)


def test_coverage_of_the_true_distribution_is_the_named_share(rng):
    mean = rng.normal(size=(200, 25, 2))
    scale = np.exp(rng.normal(size=mean.shape))
    samples = mean + scale * rng.normal(size=(400, *mean.shape))
    y = mean + scale * rng.normal(size=mean.shape)
    scores = average(free_running_point_scores(samples, y, np.full((200, 25), True)))
    # 10,000 points: a standard error of 0.005 and 0.003.
    assert abs(scores["free_running_coverage_50"] - 0.5) < 0.015
    assert abs(scores["free_running_coverage_90"] - 0.9) < 0.01
    assert abs(scores["free_running_crps"] - np.mean(scale) * np.pi**-0.5) < 0.05


def test_reliability_of_the_true_distribution_is_the_diagonal(rng):
    mean = rng.normal(size=(200, 50, 1))
    samples, y = mean + rng.normal(size=(400, *mean.shape)), mean + rng.normal(size=mean.shape)
    mask = np.full((200, 50), True)
    table = average_reliability(free_running_reliability(samples, y, mask))
    assert table["level"].tolist() == [number / 20 for number in range(1, 20)]
    # 10,000 points: a standard error of 0.005 in the middle.
    np.testing.assert_allclose(table["share"], table["level"], rtol=0, atol=0.015)
    wide = average_reliability(free_running_reliability(3 * (samples - mean) + mean, y, mask))
    np.testing.assert_allclose(
        wide["share"], stats.norm.cdf(3 * stats.norm.ppf(wide["level"])), rtol=0, atol=0.015
    )


def test_reliability_says_what_the_intervals_say(scored):
    samples, y, mask = scored
    points = free_running_reliability(samples, y, mask)
    assert points.shape == (9, 5, 19)
    assert np.array_equal(np.isnan(points).any(axis=-1), ~mask)
    shares = average_reliability(points).set_index("level")["share"]
    scores = average(free_running_point_scores(samples, y, mask))
    # Central intervals lie between these quantiles, and no truth is equal to a quantile here.
    for percent, low, high in ((50, 0.25, 0.75), (90, 0.05, 0.95)):
        inside = shares[high] - shares[low]
        assert scores[f"free_running_coverage_{percent}"] == pytest.approx(inside, abs=1e-12)
    by_window = average_by_window({"share": points})["share"]
    np.testing.assert_allclose(average_reliability(by_window)["share"], shares, rtol=1e-12)
    with pytest.raises(ValueError, match=r"with Q = 19\. Received: \[9, 5, 18\]"):
        average_reliability(points[..., 1:])
    for levels in ([], [0.1, 1.5], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="`levels` must be a level from 0 to 1"):
            free_running_reliability(samples, y, mask, levels)


def test_quantiles_never_cross(rng):
    levels = rng.random(50)
    size = 10.0 ** rng.integers(-300, 300, (7, 500))
    samples = np.concatenate([rng.normal(size=(7, 500)) * size, np.full((7, 1), 0.1)], axis=1)
    quantiles = sample_quantiles(samples, levels)
    assert quantiles.shape == (50, 501)
    assert np.all(np.diff(quantiles[np.argsort(levels)], axis=0) >= 0)
    np.testing.assert_allclose(quantiles, np.quantile(samples, levels, axis=0), rtol=1e-12)
    assert sample_quantiles([3.0, 1.0, 2.0], [1.0, 0.0, 0.5]).tolist() == [3.0, 1.0, 2.0]
    with pytest.raises(ValueError, match=r"S at least 1\. Received: \[0, 3\]"):
        sample_quantiles(np.empty((0, 3)), levels)


def test_energy_score_is_the_direct_formula(scored):
    samples, y, mask = scored
    scores = free_running_energy_score(samples, y, mask)
    for window in range(9):
        drawn = samples[:, window, mask[window]].reshape(20, -1)
        true = y[window, mask[window]].ravel()
        if window == 4:
            assert np.isnan(scores[window])
            continue
        pairs = np.linalg.norm(drawn[:, np.newaxis] - drawn, axis=-1)
        wanted = np.linalg.norm(drawn - true, axis=-1).mean() - pairs.mean() / 2
        assert scores[window] == pytest.approx(wanted, rel=1e-12)
        library = scoringrules.es_ensemble(true, drawn, estimator="nrg", backend="numpy")
        assert scores[window] == pytest.approx(library, rel=1e-12)
    one = free_running_energy_score(samples[:1], y, mask)
    error = np.where(mask[..., np.newaxis], samples[0] - y, 0)
    wanted = np.linalg.norm(error.reshape(9, -1), axis=-1)
    np.testing.assert_allclose(np.delete(one, 4), np.delete(wanted, 4), rtol=1e-12)


def test_energy_score_of_one_value_is_the_crps(scored):
    samples, y, mask = scored
    samples, y, mask = samples[:, :, :1, :1], y[:, :1, :1], mask[:, :1]
    scores = free_running_point_scores(samples, y, mask)
    np.testing.assert_allclose(
        free_running_energy_score(samples, y, mask), scores["free_running_crps"][:, 0], rtol=1e-12
    )


def test_energy_score_of_many_samples_needs_little_memory(rng):
    samples, y = rng.normal(size=(1000, 1, 192, 1)), rng.normal(size=(1, 192, 1))
    tracemalloc.start()
    score = free_running_energy_score(samples, y, np.full((1, 192), True))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 5 < score[0] < 15
    assert peak < 20 * 2**20


@pytest.fixture
def scored(rng):
    samples = rng.normal(size=(20, 9, 5, 2))
    y = rng.normal(size=(9, 5, 2))
    mask = rng.random((9, 5)) < 0.7
    mask[4] = False
    mask[:, 3] = False
    return samples, y, mask


def test_averages_run_over_scored_windows_and_points_only(scored):
    samples, y, mask = scored
    points = free_running_point_scores(samples, y, mask)
    for name, values in points.items():
        assert name.startswith("free_running_")
        assert np.array_equal(np.isnan(values), ~mask)
    error = ((samples.mean(axis=0) - y) ** 2).mean(axis=-1)
    windows = [error[b, mask[b]].mean() for b in range(9) if b != 4]
    assert average(points)["free_running_mse"] == pytest.approx(np.mean(windows), rel=1e-12)
    by_window = average_by_window(points)["free_running_mse"]
    np.testing.assert_allclose(np.delete(by_window, 4), windows)
    assert np.isnan(by_window[4])
    by_step = average_by_step(points)["free_running_mse"]
    steps = [error[mask[:, i], i].mean() for i in (0, 1, 2, 4)]
    np.testing.assert_allclose(np.delete(by_step, 3), steps)
    assert np.isnan(by_step[3])


def test_what_stands_at_unscored_points_is_not_read(scored):
    samples, y, mask = scored
    wanted = free_running_point_scores(samples, y, mask)
    samples[:, ~mask], y[~mask] = np.nan, 1e30
    for name, values in free_running_point_scores(samples, y, mask).items():
        np.testing.assert_array_equal(values, wanted[name])


@pytest.mark.parametrize("batch_size", [1, 4])
def test_scores_do_not_depend_on_the_batch_size(scored, batch_size):
    samples, y, mask = scored
    parts = [
        free_running_point_scores(samples[:, rows], y[rows], mask[rows])
        for rows in np.split(np.arange(9), range(batch_size, 9, batch_size))
    ]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    wanted = average(free_running_point_scores(samples, y, mask))
    assert average(joined) == wanted


def test_crps_of_a_point_forecast_is_its_absolute_error(scored):
    samples, y, mask = scored
    scores = point_forecast_scores(samples[0], y, mask)
    assert sorted(scores) == ["free_running_crps", "free_running_mae", "free_running_mse"]
    np.testing.assert_allclose(scores["free_running_crps"], scores["free_running_mae"])
    error = np.abs(samples[0] - y).mean(axis=-1)
    np.testing.assert_allclose(scores["free_running_mae"][mask], error[mask])


def test_bad_scores(scored):
    samples, y, mask = scored
    with pytest.raises(ValueError, match=r"\[S, B, N_T, D_y\].*Received: \[20, 9, 5, 2\], \[8"):
        free_running_point_scores(samples, y[1:], mask)
    with pytest.raises(ValueError, match="int64"):
        free_running_point_scores(samples, y, mask.astype(np.int64))
    samples[3][mask] = np.nan
    with pytest.raises(ValueError, match="`samples` must be finite"):
        free_running_point_scores(samples, y, mask)
    with pytest.raises(ValueError, match="`y_target` must be finite"):
        free_running_point_scores(samples[:2], y * np.inf, mask)
    nothing = free_running_point_scores(samples[:2], y, np.zeros_like(mask))
    with pytest.raises(ValueError, match="at least one scored point"):
        average(nothing)
    with pytest.raises(ValueError, match="at least one scored point"):
        average_reliability(free_running_reliability(samples[:2], y, np.zeros_like(mask)))
    with pytest.raises(
        ValueError, match=r"`forecast`, .* must be \[B, N_T, D_y\].*: \[20, 9, 5, 2\]"
    ):
        point_forecast_scores(samples, y, mask)


def test_scores_of_windows_have_averages_and_no_steps(scored):
    samples, y, mask = scored
    energy = free_running_energy_score(samples, y, mask)
    scores = {**free_running_point_scores(samples, y, mask), "free_running_energy_score": energy}
    assert average(scores)["free_running_energy_score"] == pytest.approx(np.nanmean(energy))
    np.testing.assert_array_equal(average_by_window(scores)["free_running_energy_score"], energy)
    assert "free_running_energy_score" not in average_by_step(scores)


def test_teacher_forced_scores(scored):
    samples, y, mask = scored
    scale = np.array([0.5, 2.0])
    density = stats.norm.logpdf(y, samples[0], scale).sum(axis=-1)
    nll = teacher_forced_nll(np.where(mask, density, 0).sum(axis=1), mask)
    points = gaussian_nll(samples[0], scale, y, mask)
    np.testing.assert_allclose(points[mask], -density[mask])
    np.testing.assert_allclose(average_by_window({"nll": points})["nll"], nll)
    assert np.isnan(nll[4]) and np.isnan(points[~mask]).all()
    squares = teacher_forced_mse(samples[0], y, mask)
    np.testing.assert_allclose(squares[mask], np.square(samples[0] - y).mean(axis=-1)[mask])
    assert np.isnan(squares[~mask]).all()
    # Far out in the tail the density itself is 0 in floating point.
    far = gaussian_nll(np.zeros((1, 1, 1)), 1.0, np.full((1, 1, 1), 1e3), np.full((1, 1), True))
    assert far[0, 0] == pytest.approx(5e5 + 0.5 * np.log(2 * np.pi))
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="`scale` must be positive and finite"):
            gaussian_nll(samples[0], wrong, y, mask)
    with pytest.raises(ValueError, match=r"`log_prob` and `mask` must be.*Received: \[3\]"):
        teacher_forced_nll(np.zeros(3), mask)
    with pytest.raises(ValueError, match="`mean` must be finite"):
        teacher_forced_mse(samples[0] * np.nan, y, mask)


# Naive lines.

LINES = {
    "last_value": last_value,
    "last_difference": last_difference,
    "seasonal": lambda *args, **kwargs: seasonal(*args, 5, **kwargs),
}


def make_series(values, time=None, name=""):
    values = np.array(values, float)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    time = np.arange(len(values)) if time is None else np.asarray(time)
    columns = tuple(f"y{column}" for column in range(values.shape[1]))
    return Series(time, values, pd.Index(time), target_columns=columns, name=name)


def make_windows(values, time=None, spec=None):
    series = make_series(values, time)
    return Windows(series, WindowScaler.fit(series, spec or WindowSpec(4, 6), len(values)))


def test_last_value_reaches_over_gaps_and_before_the_context():
    values = np.arange(20.0)
    values[[0, 3, 5, 6, 7, 8, 9]] = np.nan
    windows = make_windows(values)
    forecast = last_value(windows, [0, 1, 6])
    assert forecast.shape == (3, 6, 1)
    assert forecast[:, :, 0].tolist() == [[2.0] * 6, [4.0] * 6, [4.0] * 6]
    forced = last_value(windows, [0, 6], teacher_forced=True)
    assert forced[:, :, 0].tolist() == [[2, 4, 4, 4, 4, 4], [4, 10, 11, 12, 13, 14]]
    values[:10] = np.nan
    windows = make_windows(values)
    assert np.isnan(last_value(windows, [0])).all()
    forced = last_value(windows, [4], teacher_forced=True)[0, :, 0]
    np.testing.assert_array_equal(forced, [np.nan, np.nan, np.nan, 10, 11, 12])


def test_last_difference_continues_along_the_slope():
    time = np.array([0, 1, 2, 3, 5, 6, 10, 11, 13, 14, 15, 16])
    windows = make_windows(2.0 * time + 5, time)
    for teacher_forced in (False, True):
        forecast = last_difference(windows, [0, 2], teacher_forced=teacher_forced)
        np.testing.assert_allclose(forecast, windows.truth([0, 2]), rtol=1e-12)
    rng = np.random.default_rng(3)
    values = rng.normal(size=30)
    rows = np.arange(8, 14)
    windows = make_windows(values)
    forced = last_difference(windows, [4], teacher_forced=True)[0, :, 0]
    np.testing.assert_array_equal(forced, values[rows - 1] + (values[rows - 1] - values[rows - 2]))
    free = last_difference(windows, [4])[0, :, 0]
    np.testing.assert_allclose(free, values[7] + (values[7] - values[6]) * np.arange(1, 7))


def test_last_difference_skips_missing_values_and_needs_two():
    values = np.full(20, np.nan)
    values[[3, 5, 9]] = 1.0, 5.0, -3.0
    windows = make_windows(values)
    # Two a row after row 5; one value alone has no slope.
    assert last_difference(windows, [2])[0, :, 0].tolist() == [7, 9, 11, 13, 15, 17]
    forced = last_difference(windows, [0, 4], teacher_forced=True)[:, :, 0]
    np.testing.assert_array_equal(forced[0], [1, 1, 7, 9, 11, 13])
    np.testing.assert_array_equal(forced[1], [11, 13, -5, -7, -9, -11])
    values[:4] = np.nan
    forced = last_difference(make_windows(values), [0], teacher_forced=True)[0, :, 0]
    np.testing.assert_array_equal(forced, [np.nan, np.nan, 5, 5, 5, 5])


def test_seasonal_repeats_the_season_before():
    time = np.arange(40)
    windows = make_windows(time % 5 * 10.0, time)
    # Five rows a season and six targets: the last one goes back two seasons.
    np.testing.assert_array_equal(seasonal(windows, [7, 20], 5), windows.truth([7, 20]))
    rising = make_windows(time * 1.0, time)
    assert seasonal(rising, [10], 5)[0, :, 0].tolist() == [9, 10, 11, 12, 13, 9]
    forced = seasonal(rising, [10], 5, teacher_forced=True)
    assert forced[0, :, 0].tolist() == [9, 10, 11, 12, 13, 14]


def test_seasonal_takes_the_nearest_observed_and_nothing_later_than_the_origin():
    values = np.arange(40.0)
    values[[10, 13]] = np.nan
    windows = make_windows(values)
    # The origin is row 13: rows 10 and 13 are missing, 9 stands in for 10 (a tie), 12 for 13.
    assert seasonal(windows, [10], 5)[0, :, 0].tolist() == [9, 9, 11, 12, 12, 9]
    # Row 18 reads row 13, and by then row 14 is known; but 12 is as near, and earlier.
    forced = seasonal(windows, [10], 5, teacher_forced=True)
    assert forced[0, :, 0].tolist() == [9, 9, 11, 12, 12, 14]
    # Without row 12, the nearest to row 13 is row 14, which is later than the origin.
    values[12] = np.nan
    assert seasonal(make_windows(values), [10], 5)[0, 4, 0] == 11
    values[:14] = np.nan
    assert np.isnan(seasonal(make_windows(values), [10], 5)).all()
    # A season longer than the series: the first value, however long.
    values = np.arange(40.0)
    for length in (100, 1e300):
        assert np.all(seasonal(make_windows(values), [10], length) == 0)


def test_seasonal_on_uneven_stamps():
    # One season is 10; the origin is 26.
    time = [0, 3, 9, 14, 16, 21, 26, 30, 35, 36]
    for numbers in (time, np.array(time) + 0.25, 10**18 + np.array(time)):
        windows = make_windows(np.asarray(time) * 1.0, numbers, WindowSpec(2, 3))
        # Wanted: 20, 25 and 26.
        assert seasonal(windows, [5], 10)[0, :, 0].tolist() == [21, 26, 26]


def test_the_slope_of_one_value_does_not_reach_into_the_series_before():
    values = np.full(12, np.nan)
    values[0] = 7.0
    series = [make_series(np.arange(12.0), name="a"), make_series(values, name="b")]
    windows = Windows(series, WindowScaler.fit(series, WindowSpec(4, 6), 12))
    for teacher_forced in (False, True):
        assert np.all(last_difference(windows, [12], teacher_forced=teacher_forced) == 7)


@pytest.mark.parametrize("name", LINES)
def test_one_step_lines_are_those_of_a_plain_loop(name, rng):
    values = rng.normal(size=(40, 2))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:3] = np.nan
    time = rng.integers(1, 4, 40).cumsum()
    windows = make_windows(values, time)
    starts = [0, 7, 30]
    forecast = LINES[name](windows, starts, teacher_forced=True)
    for window, start in enumerate(starts):
        for i, row in enumerate(range(start + 4, start + 10)):
            # The forecast from an origin right before it, over all that lies before.
            cut = make_windows(values, time, WindowSpec(row, 1))
            np.testing.assert_array_equal(forecast[window, i], LINES[name](cut, [0])[0, 0])


@pytest.mark.parametrize("teacher_forced", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_naive_lines_read_nothing_later_and_nothing_of_other_series(name, teacher_forced, rng):
    values = [rng.normal(size=(25, 2)) for _ in range(3)]
    values[1][:2] = np.nan
    values[1][rng.random((25, 2)) < 0.2] = np.nan

    def forecast(parts, starts):
        series = [make_series(part, name=str(number)) for number, part in enumerate(parts)]
        windows = Windows(series, WindowScaler.fit(series, WindowSpec(4, 6), 25))
        return LINES[name](windows, starts, teacher_forced=teacher_forced)

    starts = np.array([25, 30, 40])
    wanted = forecast(values, starts)
    alone = [make_series(values[1], name="1")]
    windows = Windows(alone, WindowScaler.fit(alone, WindowSpec(4, 6), 25))
    np.testing.assert_array_equal(
        wanted, LINES[name](windows, starts - 25, teacher_forced=teacher_forced)
    )
    others = [values[0] * 1e6, values[1], values[2] - 1e6]
    np.testing.assert_array_equal(forecast(others, starts), wanted)
    for step in range(6):
        garbage = values[1].copy()
        garbage[5 + 4 + step :] = -1e9
        after = forecast([values[0], garbage, values[2]], [30])[0]
        kept = step + 1 if teacher_forced else 6
        np.testing.assert_array_equal(after[:kept], wanted[1, :kept])


def test_a_year_of_dates_is_the_same_week_last_year():
    series = load_mauna_loa_co2()
    windows = Windows(series, WindowScaler.fit(series, WindowSpec(104, 52), 1575))
    forecast = seasonal(windows, [2128], "365.25 days")[0, :, 0]
    np.testing.assert_array_equal(forecast, series.values[2180:2232, 0])
    with pytest.raises(ValueError, match="`span` must be positive"):
        seasonal(windows, [2128], "-1 day")


# The pictures.


@pytest.mark.parametrize(
    "stamps",
    [
        pd.date_range("2024-01-01", periods=14),
        pd.date_range("2024-01-01", periods=14, tz="Asia/Tokyo"),
        pd.period_range("2024-01", periods=14, freq="M"),
        np.arange(14) * 0.5,
    ],
    ids=["dates", "time zone", "periods", "numbers"],
)
def test_picture_of_a_forecast(stamps, rng, tmp_path):
    samples = rng.normal(size=(30, 4)) + 5000
    truth = np.array([5000.0, np.nan, 5001.0, 5000.0])
    figure = plot_forecast(
        stamps[:10], rng.normal(size=10) + 5000, stamps[10:], samples, truth,
        title="Load", y_label="load (kW)",
    )  # fmt: skip
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(labels) == sorted(
        ["context", "90 % interval", "50 % interval", "sample paths", "median", "truth"]
    )
    assert axes.get_title(loc="left") == "Load" and axes.get_ylabel() == "load (kW)"
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["median"].get_ydata(), np.median(samples, axis=0))
    np.testing.assert_array_equal(lines["truth"].get_ydata(), truth)
    figure.savefig(tmp_path / "forecast.png")
    assert (tmp_path / "forecast.png").read_bytes().startswith(b"\x89PNG")


def test_picture_without_truth_or_of_one_target(rng):
    figure = plot_forecast([1, 2], [1.0, 2.0], [3], rng.normal(size=(5, 1)), num_paths=0)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "truth" not in labels and "sample paths" not in labels
    with pytest.raises(ValueError, match=r"Received: \[2\], None, \[2\], \[5, 1\]"):
        plot_forecast([1, 2], [1.0, 2.0], [3, 4], rng.normal(size=(5, 1)))


def test_reliability_diagram(tmp_path):
    shares = np.square(RELIABILITY_LEVELS)
    figure = plot_reliability(RELIABILITY_LEVELS, shares, title="Load")
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["observed"].get_xdata(), RELIABILITY_LEVELS)
    np.testing.assert_array_equal(lines["observed"].get_ydata(), shares)
    np.testing.assert_array_equal(lines["perfect"].get_xdata(), lines["perfect"].get_ydata())
    assert "quantile" in axes.get_xlabel() and "share" in axes.get_ylabel()
    assert axes.get_xlim() == axes.get_ylim() == (0, 1)
    figure.savefig(tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"Received: \[19\] and \[18\]"):
        plot_reliability(RELIABILITY_LEVELS, shares[1:])


@pytest.mark.parametrize("num_steps", [1, 5, 96])
def test_picture_of_scores_by_step(num_steps, rng, tmp_path):
    lines = {"taylorformer": rng.random(num_steps), "last_value": rng.random(num_steps) + 1}
    figure = plot_by_step(lines, title="Load", y_label="CRPS (kW)")
    (axes,) = figure.axes
    drawn = {line.get_label(): line for line in axes.lines}
    assert list(drawn) == ["taylorformer", "last value"]
    np.testing.assert_array_equal(drawn["taylorformer"].get_ydata(), lines["taylorformer"])
    np.testing.assert_array_equal(drawn["last value"].get_xdata(), np.arange(num_steps) + 1)
    assert len({line.get_color() for line in axes.lines}) == 2
    assert axes.get_ylabel() == "CRPS (kW)" and "steps" in axes.get_xlabel()
    assert axes.get_ylim()[0] == 0
    figure.savefig(tmp_path / "by_step.png")
    assert (tmp_path / "by_step.png").read_bytes().startswith(b"\x89PNG")
    for wrong in ({}, {"a": [1.0], "b": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="`lines` must hold at least one line"):
            plot_by_step(wrong)


def test_one_line_far_above_the_others_leaves_the_picture():
    lines = {"ours": np.full(5, 1.0), "last_value": np.full(5, 2.0), "far": np.arange(5) * 10.0}
    for names, legend, top in (
        (lines, ["ours", "last value", "far, off the scale"], 3),
        (["ours", "far"], ["ours", "far"], 42),
        (["far", "ours", "last_value"], ["far", "ours", "last value"], 42),
    ):
        (axes,) = plot_by_step({name: lines[name] for name in names}).axes
        assert [text.get_text() for text in axes.get_legend().get_texts()] == legend
        assert axes.get_ylim() == pytest.approx((0, top))
    (axes,) = plot_by_step({"ours": np.full(5, 0.8), "empty": np.full(5, np.nan)}, wanted=0.9).axes
    assert [line.get_label() for line in axes.lines] == ["ours", "empty", "wanted"]
