"""Scores of samples against closed forms, and the naive lines."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from taylorformer.data_wrangler.series import Series, load_mauna_loa_co2
from taylorformer.data_wrangler.windows import Windows, WindowScaler, WindowSpec
from taylorformer.training_and_evaluation.metrics import (
    average,
    average_by_step,
    average_by_window,
    free_running_point_scores,
    point_forecast_scores,
)
from taylorformer.training_and_evaluation.naive import last_value, seasonal
from taylorformer.training_and_evaluation.plots import plot_forecast

# Scores.


def gaussian_crps(mean, scale, y):
    z = (y - mean) / scale
    return scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)


def test_crps_of_gaussian_samples_is_the_closed_form():
    # Samples at the quantiles of the law, so that nothing is random: the error falls with 1/S.
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


def test_coverage_of_the_true_law_is_the_named_share(rng):
    mean = rng.normal(size=(200, 25, 2))
    scale = np.exp(rng.normal(size=mean.shape))
    samples = mean + scale * rng.normal(size=(400, *mean.shape))
    y = mean + scale * rng.normal(size=mean.shape)
    scores = average(free_running_point_scores(samples, y, np.full((200, 25), True)))
    # 10,000 points: a standard error of 0.005 and 0.003.
    assert abs(scores["free_running_coverage_50"] - 0.5) < 0.015
    assert abs(scores["free_running_coverage_90"] - 0.9) < 0.01
    assert abs(scores["free_running_crps"] - np.mean(scale) * np.pi**-0.5) < 0.05


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


# Naive lines.


def make_windows(values, time=None, spec=None):
    time = np.arange(len(values)) if time is None else np.asarray(time)
    series = Series(time, np.asarray(values, float)[:, np.newaxis], pd.Index(time))
    return Windows(series, WindowScaler.fit(series, spec or WindowSpec(4, 6), len(values)))


def test_last_value_reaches_over_gaps_and_before_the_context():
    values = np.arange(20.0)
    values[[0, 3, 5, 6, 7, 8, 9]] = np.nan
    forecast = last_value(make_windows(values), [0, 1, 6])
    assert forecast.shape == (3, 6, 1)
    assert forecast[:, :, 0].tolist() == [[2.0] * 6, [4.0] * 6, [4.0] * 6]
    values[:10] = np.nan
    assert np.isnan(last_value(make_windows(values), [0])).all()


def test_seasonal_repeats_the_season_before():
    time = np.arange(40)
    windows = make_windows(time % 5 * 10.0, time)
    # Five rows a season and six targets: the last one goes back two seasons.
    np.testing.assert_array_equal(seasonal(windows, [7, 20], 5), windows.truth([7, 20]))
    rising = make_windows(time * 1.0, time)
    assert seasonal(rising, [10], 5)[0, :, 0].tolist() == [9, 10, 11, 12, 13, 9]


def test_seasonal_takes_the_nearest_observed_and_nothing_later_than_the_origin():
    values = np.arange(40.0)
    values[[10, 13]] = np.nan
    # The origin is row 13: rows 10 and 13 are missing, 9 stands in for 10 (a tie), 12 for 13.
    assert seasonal(make_windows(values), [10], 5)[0, :, 0].tolist() == [9, 9, 11, 12, 12, 9]
    garbage = values.copy()
    garbage[14:] = -1e9
    for forecast in (last_value, lambda *args: seasonal(*args, 5)):
        np.testing.assert_array_equal(
            forecast(make_windows(garbage), [10]), forecast(make_windows(values), [10])
        )
    values[:14] = np.nan
    assert np.isnan(seasonal(make_windows(values), [10], 5)).all()


def test_seasonal_on_uneven_stamps():
    # One season is 10; the origin is 26.
    time = [0, 3, 9, 14, 16, 21, 26, 30, 35, 36]
    windows = make_windows(np.asarray(time) * 1.0, time, WindowSpec(2, 3))
    # Wanted: 20, 25 and 26.
    assert seasonal(windows, [5], 10)[0, :, 0].tolist() == [21, 26, 26]


def test_a_year_of_dates_is_the_same_week_last_year():
    series = load_mauna_loa_co2()
    windows = Windows(series, WindowScaler.fit(series, WindowSpec(104, 52), 1575))
    forecast = seasonal(windows, [2128], "365.25 days")[0, :, 0]
    np.testing.assert_array_equal(forecast, series.values[2180:2232, 0])
    with pytest.raises(ValueError, match="`span` must be positive"):
        seasonal(windows, [2128], "-1 day")


# The picture.


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
