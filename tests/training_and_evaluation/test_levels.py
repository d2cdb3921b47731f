"""Levels of quantiles: one check, wherever they are taken."""

import numpy as np
import pandas as pd
import pytest

from taylorformer.training_and_evaluation.forecasting.forecast import Forecast
from taylorformer.training_and_evaluation.levels import check_levels
from taylorformer.training_and_evaluation.metrics import (
    average_reliability,
    free_running_reliability,
    sample_quantiles,
)
from taylorformer.training_and_evaluation.plots import plot_reliability

BAD_TYPES = (
    "0.5",
    b"0.5",
    None,
    ["0.5"],
    [0.5, None],
    True,
    [True],
    1j,
    [[0.1], [0.2, 0.3]],
    object,
)
BAD_VALUES = (
    -0.1,
    1.1,
    np.nan,
    [0.5, np.nan],
    np.inf,
    [0.5, 0.5],
    [[0.5]],
    np.full((2, 2), 0.3),
    50,
)


@pytest.fixture(scope="module")
def forecast():
    samples = np.random.default_rng(0).normal(size=(9, 1, 2, 1))
    return Forecast(samples, (pd.Index([1, 2]),), ("",), "t", ("y",))


def users(forecast):
    """Everything that takes levels, by the name of the argument."""
    samples = forecast.samples
    y, mask = np.zeros((1, 2, 1)), np.ones((1, 2), bool)
    return [
        ("levels", lambda levels: sample_quantiles(samples, levels)),
        ("levels", lambda levels: free_running_reliability(samples, y, mask, levels)),
        ("levels", lambda levels: average_reliability(np.ones((1, 2, 1)), levels)),
        ("levels", lambda levels: plot_reliability(levels, [0.5])),
        ("q", forecast.quantile),
        ("quantiles", forecast.to_frame),
    ]


@pytest.mark.parametrize("levels", BAD_TYPES + BAD_VALUES, ids=repr)
def test_what_is_no_level_gets_one_sentence(forecast, levels):
    for name, use in users(forecast):
        error = TypeError if any(levels is bad for bad in BAD_TYPES) else ValueError
        wish = f"`{name}` must be a level from 0 to 1, or a list of them, none twice. Received: "
        with pytest.raises(error) as raised:
            use(levels)
        assert str(raised.value).startswith(wish + f"{name}=")


@pytest.mark.parametrize(
    "level", [0.5, np.float64(0.5), np.float32(0.5), np.array(0.5), np.array(0.5, "f4")], ids=repr
)
def test_a_bare_number_is_one_level(forecast, level):
    assert list(forecast.to_frame(level).columns) == ["t", "mean", "stddev", "q50"]
    assert forecast.quantile(level).shape == (1, 2, 1)
    assert sample_quantiles(forecast.samples, level).shape == (1, 1, 2, 1)
    for _, use in users(forecast):
        use(level)
    assert forecast.quantile(1).shape == (1, 2, 1) and list(forecast.to_frame(0))[-1] == "q00"


@pytest.mark.parametrize(
    "levels",
    [[0.9, 0.1], (0.9, 0.1), np.array([0.9, 0.1]), pd.Series([0.9, 0.1]), pd.Index([0.9, 0.1])],
    ids=lambda levels: type(levels).__name__,
)
def test_several_levels_keep_their_order(forecast, levels):
    assert list(forecast.to_frame(levels).columns)[-2:] == ["q90", "q10"]
    np.testing.assert_array_equal(forecast.quantile(levels)[..., 1], forecast.quantile(0.1))
    assert list(forecast.to_frame(level for level in levels))[-2:] == ["q90", "q10"]


def test_levels_of_fewer_bits_are_their_decimals(forecast):
    assert list(forecast.to_frame(np.array([0.05, 0.975], np.float32)))[-2:] == ["q05", "q97.5"]
    low, high = forecast.interval(np.float32(0.9))
    np.testing.assert_array_equal(low, forecast.quantile(0.05))
    np.testing.assert_array_equal(high, forecast.quantile(0.95))
    for bad in ("0.9", None, [0.9], True):
        with pytest.raises(TypeError, match="`share` must be a number"):
            forecast.interval(bad)
    for bad in (0, 1, np.nan, -0.5):
        with pytest.raises(ValueError, match="`share` must be finite and above 0 and below 1"):
            forecast.interval(bad)


def test_no_levels_where_none_are_needed(forecast):
    assert forecast.quantile([]).shape == (1, 2, 1, 0)
    assert list(forecast.to_frame([]).columns) == ["t", "mean", "stddev"]
    with pytest.raises(ValueError, match="`levels` must be a level"):
        sample_quantiles(forecast.samples, [])
    assert check_levels("q", range(2)).tolist() == [0.0, 1.0]
