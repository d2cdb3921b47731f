"""Windows for a pretrained model: contexts may begin before their series, targets may not."""

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler import Panel, Series, WindowSpec
from taylorformer.data_wrangler.tables.context_windows import ContextWindows


def _series(num_rows, name="", start=0):
    rng = np.random.default_rng(num_rows)
    time = np.arange(start, start + num_rows, dtype=np.int64)
    return Series(time, rng.normal(0, 1, (num_rows, 1)), pd.Index(time), name=name)


def _no_seasons(number, num_rows):
    return np.zeros(3)


def test_rows_before_the_series_are_masked():
    panel = Panel([_series(30, "a"), _series(9, "b")])
    windows = ContextWindows(panel, WindowSpec(12, 3), _no_seasons)
    starts = panel.offsets[1:] - 15
    inputs, y_target = windows.batch(starts)
    assert inputs["context_mask"].sum(axis=1).tolist() == [12, 6]
    assert inputs["context_mask"][1].tolist() == [False] * 6 + [True] * 6
    assert y_target.shape == (2, 3, 1)
    alone, _ = ContextWindows(panel.series[1], WindowSpec(6, 3), _no_seasons).batch([0])
    np.testing.assert_array_equal(inputs["y_context"][1, 6:], alone["y_context"][0])
    np.testing.assert_array_equal(inputs["x_target"][1], alone["x_target"][0])


def test_rows_before_those_that_are_read_are_masked():
    panel = Panel([_series(30, "a"), _series(9, "b")])
    windows = ContextWindows(panel, WindowSpec(12, 3), _no_seasons, num_read=7)
    starts = panel.offsets[1:] - 15
    inputs, _ = windows.batch(starts)
    assert inputs["context_mask"].tolist() == [[False] * 5 + [True] * 7, [False] * 6 + [True] * 6]
    alone, _ = ContextWindows(panel.series[0], WindowSpec(7, 3), _no_seasons).batch([20])
    for name in ("x_context", "y_context"):
        np.testing.assert_array_equal(inputs[name][0, 5:], alone[name][0])
    np.testing.assert_array_equal(inputs["x_target"][0], alone["x_target"][0])


def test_periods_are_asked_for_with_the_rows_that_may_be_read():
    asked = []

    def periods(number, num_rows):
        asked.append((number, num_rows))
        return np.array([7.0, 0.0, 0.0])

    panel = Panel([_series(30, "a"), _series(20, "b")])
    windows = ContextWindows(panel, WindowSpec(10, 5), periods)
    windows.batch([3, 30])
    windows.batch([3])
    assert asked == [(0, 13), (1, 10)]


def test_nothing_later_than_the_context_is_read():
    panel = Panel([_series(30, "a")])
    values = panel.series[0].values.copy()
    values[18:] = np.nan
    other = Series(panel.series[0].time.copy(), values, panel.series[0].stamps, name="a")
    spec = WindowSpec(10, 5)
    one = ContextWindows(panel, spec, _no_seasons).forecast_inputs([8])
    two = ContextWindows(other, spec, _no_seasons).forecast_inputs([8])
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])


def test_values_and_densities_in_user_units_are_those_of_the_scaling():
    windows = ContextWindows(_series(30), WindowSpec(10, 5), _no_seasons)
    starts = np.array([0, 7])
    _, y_target = windows.batch(starts)
    np.testing.assert_allclose(windows.inverse(y_target, starts), windows.truth(starts), rtol=1e-5)
    spread = windows.spread(starts)[:, 0]
    expected = -5 * np.log(spread)
    np.testing.assert_allclose(windows.inverse_log_prob(np.zeros(2), starts), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "starts, message",
    [
        ([-10], "at least one context row"),
        ([-11], "targets are rows 0 to"),
        ([26], "targets are rows 0 to"),
        ([8.0], "must be integers"),
        ([], "must be integers"),
    ],
)
def test_windows_that_are_none_are_refused(starts, message):
    windows = ContextWindows(_series(30), WindowSpec(10, 5), _no_seasons)
    with pytest.raises(ValueError, match=message):
        windows.batch(np.array(starts))


def test_targets_of_two_series_are_refused():
    panel = Panel([_series(30, "a"), _series(20, "b")])
    windows = ContextWindows(panel, WindowSpec(10, 5), _no_seasons)
    with pytest.raises(ValueError, match="in one series"):
        windows.batch(np.array([17]))


def test_several_columns_are_refused():
    time = np.arange(9)
    series = Series(time, np.zeros((9, 2)), pd.Index(time), target_columns=("a", "b"))
    with pytest.raises(ValueError, match="2 columns"):
        ContextWindows(series, WindowSpec(4, 2), _no_seasons)
