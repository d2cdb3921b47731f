"""Windows: borders, scaling there and back, and what training reads."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import SCALINGS, WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import (
    PARTS,
    Split,
    WindowSpec,
    panel_window_starts,
    spaced_starts,
)
from taylorformer.data_wrangler.tables.windows import Windows

SPEC = WindowSpec(context_length=8, horizon=4)


def make_series(values, time=None, name="series"):
    values = np.asarray(values, np.float64)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    time = np.arange(len(values)) if time is None else np.asarray(time)
    columns = tuple(f"y{place}" for place in range(values.shape[1]))
    return Series(time, values.copy(), pd.Index(time), "t", columns, name=name)


@pytest.fixture
def series(rng):
    """Two columns around 5000, uneven times, some values missing."""
    values = 5000 + rng.normal(size=(100, 2)).cumsum(axis=0) * [300, 1]
    values[rng.random(values.shape) < 0.1] = np.nan
    return make_series(values, 10**15 + rng.integers(1, 9, 100).cumsum())


@pytest.fixture
def windows(series):
    return Windows(series, WindowScaler.fit(series, SPEC, 69))


# Where windows lie.


@pytest.mark.parametrize("num_rows, borders", [(100, (69, 80)), (2284, (1575, 1827)), (0, (0, 0))])
def test_split_borders(num_rows, borders):
    split = Split.chronological(num_rows)
    assert (split.train_end, split.validation_end, split.num_rows) == (*borders, num_rows)
    assert [len(split.rows(part)) for part in PARTS] == [
        borders[0],
        borders[1] - borders[0],
        num_rows - borders[1],
    ]


def test_legal_windows_are_all_there_and_no_others():
    split = Split(30, 40, 52)
    wanted = {"training": [], "validation": [], "test": []}
    for start in range(52):
        rows = range(start, start + SPEC.length)
        targets = rows[SPEC.context_length :]
        if rows[-1] < 30:
            wanted["training"].append(start)
        elif targets[0] >= 30 and targets[-1] < 40:
            wanted["validation"].append(start)
        elif targets[0] >= 40 and targets[-1] < 52:
            wanted["test"].append(start)
    for part in PARTS:
        assert split.window_starts(SPEC, part).tolist() == wanted[part]


def test_windows_may_have_to_lie_in_their_part_with_the_context_too():
    starts = Split(30, 50, 70).window_starts(SPEC, "test", context_inside=True)
    assert starts.tolist() == list(range(50, 59))
    with pytest.raises(ValueError, match=r"= 12 rows in the test part\. Received: 10"):
        Split(20, 30, 40).window_starts(SPEC, "test", context_inside=True)


def test_spaced_starts_count_back_from_the_last():
    starts = np.arange(3, 14)
    assert spaced_starts(starts, 4).tolist() == [5, 9, 13]
    assert spaced_starts(starts, 4, 2).tolist() == [9, 13]


def test_too_short_a_series_is_a_clear_error():
    with pytest.raises(
        ValueError,
        match=r"context_length \+ horizon = 192 rows in the training part\. Received: 41$",
    ):
        Split.chronological(60).window_starts(WindowSpec(96, 96), "training")
    with pytest.raises(ValueError, match=r"horizon = 4 rows in the test part\. Received: 2"):
        Split(20, 28, 30).window_starts(SPEC, "test")
    with pytest.raises(ValueError, match=r"= 12 rows up to the end of the validation part"):
        Split(2, 10, 30).window_starts(SPEC, "validation")
    with pytest.raises(ValueError, match="`part` must be one of"):
        Split(2, 10, 30).rows("train")
    for fractions in ((0.5, 0.5, 0.1), (1.2, -0.2, 0.0), (0.5, 0.5)):
        with pytest.raises(ValueError, match="`fractions` must be three shares"):
            Split.chronological(100, fractions)
    with pytest.raises(ValueError, match="must be in order"):
        Split(5, 4, 10)
    with pytest.raises(ValueError, match="`horizon` must be at least 1"):
        WindowSpec(3, 0)


# Scaling.


@pytest.mark.parametrize(
    "spec", [SPEC, WindowSpec(1, 1), WindowSpec(1, 9), WindowSpec(11, 1)], ids=str
)
def test_even_grid_becomes_the_even_grid_on_minus_one_to_one(spec):
    # Epoch nanoseconds a millisecond apart: float32 could not tell them apart.
    time = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(40)
    series = make_series(np.arange(40.0), time)
    windows = Windows(series, WindowScaler.fit(series, spec, 30))
    inputs = windows.forecast_inputs([0, 17])
    x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)
    grid = np.linspace(-1, 1, spec.length)
    np.testing.assert_allclose(x[..., 0], [grid, grid], atol=1e-7)
    assert x.dtype == np.float32


def test_uneven_spacing_is_kept(windows, series):
    spans = [series.time[start + 11] - series.time[start] for start in range(69 - 11)]
    assert windows.scaler.half_span == np.median(spans) / 2
    inputs = windows.forecast_inputs([5])
    x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)[0, :, 0]
    steps = np.diff(series.time[5:17]) / windows.scaler.half_span
    np.testing.assert_allclose(np.diff(x), steps, rtol=1e-5)
    assert x[7] == np.float32(2 * 7 / 11 - 1)


def test_y_is_relative_to_the_last_observed_context_value(windows, series):
    starts = np.arange(series.num_rows - SPEC.length + 1)
    reference = windows.reference(starts)
    inputs, y_target = windows.batch(starts)
    for start, place in itertools.product(starts, range(2)):
        context = series.values[start : start + 8, place]
        assert reference[start, place] == context[~np.isnan(context)][-1]
    observed = series.observed[windows.target_rows(starts)]
    assert np.array_equal(inputs["target_mask"], observed) and not observed.all()
    assert np.array_equal(inputs["context_mask"], series.observed[windows.context_rows(starts)])
    assert not y_target[~observed].any() and not inputs["y_context"][~inputs["context_mask"]].any()
    assert np.isfinite(y_target).all()
    truth = windows.truth(starts)
    restored = windows.inverse(y_target, starts)
    np.testing.assert_allclose(restored[observed], truth[observed], rtol=1e-6)
    scaled = windows.scale_y(truth, starts).astype(np.float32)
    np.testing.assert_array_equal(scaled[observed], y_target[observed])


def test_a_context_without_values_is_relative_to_the_training_mean():
    values = np.arange(40.0)
    values[20:28] = np.nan
    series = make_series(values)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 30))
    assert windows.reference([20, 19]).tolist() == [[np.nanmean(values[:30])], [19.0]]


def test_forecasts_draw_every_target_and_read_none(windows, series):
    starts = np.arange(60, 88)
    inputs = windows.forecast_inputs(starts)
    assert inputs["target_mask"].all() and not windows.scored(starts).all()
    for start in (60, 75, 88):
        garbage = series.values.copy()
        garbage[start + 8 :] = 1e9
        other = Windows(
            make_series(garbage, series.time), WindowScaler.fit(series, SPEC, 69)
        ).forecast_inputs([start])
        for key, value in windows.forecast_inputs([start]).items():
            np.testing.assert_array_equal(other[key], value)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_samples_scales_and_densities_go_back_to_units(series, rng, scaling):
    windows = Windows(series, WindowScaler.fit(series, SPEC, 69, scaling))
    starts = [3, 50, 70]
    reference, spread = windows.reference(starts), windows.scaler.spread[0]
    y = rng.normal(size=(5, 3, 4, 2))
    units = windows.inverse(y, starts)
    assert units.shape == y.shape and units.dtype == np.float64
    np.testing.assert_allclose((units - reference[:, np.newaxis]) / spread, y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(windows.scale_y(units, starts), y, rtol=1e-9, atol=1e-9)
    stddev = windows.inverse_scale(y.std(axis=0), starts)
    np.testing.assert_allclose(units.std(axis=0), stddev, rtol=1e-9)
    # A standard normal density in scaled y is one of scale `spread` in units.
    y_one, units_one = y[0], units[0]
    log_prob = -0.5 * (y_one**2 + np.log(2 * np.pi)).sum(axis=(1, 2))
    z = (units_one - reference[:, np.newaxis]) / spread
    log_prob_units = (-0.5 * (z**2 + np.log(2 * np.pi)) - np.log(spread)).sum(axis=(1, 2))
    restored = windows.inverse_log_prob(log_prob, 4, starts)
    np.testing.assert_allclose(restored, log_prob_units, rtol=1e-9)
    nll = windows.inverse_nll(-log_prob / 4, starts)
    np.testing.assert_allclose(nll, -log_prob_units / 4, rtol=1e-9)


def test_standard_scaling_is_that_of_the_training_part(series):
    windows = Windows(series, WindowScaler.fit(series, SPEC, 69, "standard"))
    train = series.values[:69]
    starts = np.arange(series.num_rows - SPEC.length + 1)
    np.testing.assert_allclose(windows.reference(starts), [np.nanmean(train, axis=0)] * len(starts))
    np.testing.assert_allclose(windows.spread(starts), [np.nanstd(train, axis=0)] * len(starts))
    with pytest.raises(ValueError, match="`scaling` must be one of"):
        WindowScaler.fit(series, SPEC, 69, "minmax")


def test_spread_is_the_standard_deviation_of_a_normal_law(rng):
    walk = rng.normal(scale=3.0, size=4000).cumsum()
    one_step = WindowScaler.fit(make_series(walk), WindowSpec(5, 1), 4000)
    np.testing.assert_allclose(one_step.spread, [[3.0]], rtol=0.05)
    walk[2000] = 1e7
    outlier = WindowScaler.fit(make_series(walk), WindowSpec(5, 1), 4000)
    np.testing.assert_allclose(outlier.spread, one_step.spread, rtol=0.01)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(
    "values",
    [
        np.zeros(40),
        np.full(40, 5000.0),
        np.full(40, 5000.0) + 1e-12 * np.arange(40),
        np.where(np.arange(40) == 20, 1.0, 0.0),
        np.where(np.arange(40) % 12 == 0, 7.0, np.nan),
        np.where(np.arange(40) == 3, 7.0, np.nan),
        1e300 * np.sin(np.arange(40)),
        1e-300 * np.sin(np.arange(40)),
    ],
    ids=["zero", "constant", "rounding", "one spike", "sparse", "one value", "huge", "tiny"],
)
def test_spread_is_never_zero_or_nan(values, scaling):
    series = make_series(values)
    windows = Windows(series, WindowScaler.fit(series, SPEC, 40, scaling))
    assert windows.scaler.spread[0, 0] > 0 and np.isfinite(windows.scaler.spread[0, 0])
    assert np.isfinite(windows.scaler.center[0, 0])
    inputs, y_target = windows.batch(np.arange(29))
    assert np.isfinite(inputs["y_context"]).all() and np.isfinite(y_target).all()


def test_scaler_errors_and_round_trip(series, windows):
    config = json.loads(json.dumps(windows.scaler.get_config()))
    again = WindowScaler.from_config(config)
    assert again.get_config() == windows.scaler.get_config() and again.spec == SPEC
    with pytest.raises(ValueError, match=r"12 rows in the training part\. Received: 11"):
        WindowScaler.fit(series, SPEC, 11)
    with pytest.raises(
        ValueError, match=r"Column `y0` of series .series. must have a value in the"
    ):
        WindowScaler.fit(make_series(np.where(np.arange(40) < 20, np.nan, 1.0)), SPEC, 20)
    with pytest.raises(ValueError, match=r"D_y = 2 columns"):
        Windows(make_series(np.arange(40.0)), windows.scaler)
    for starts in ([-1], [89], [0.0], [], 3):
        with pytest.raises(ValueError, match="`starts` must be"):
            windows.batch(starts)


def test_keys_tell_windows_and_series_apart_and_nothing_else(series, windows):
    starts = np.arange(20)
    keys = windows.sequence_keys(starts)
    assert keys.dtype == np.int64 and len(set(keys.tolist())) == 20
    np.testing.assert_array_equal(windows.sequence_keys(starts[7:9]), keys[7:9])
    other = Windows(make_series(series.values, series.time, name="other"), windows.scaler)
    assert not set(other.sequence_keys(starts).tolist()) & set(keys.tolist())


# What training reads.


def take(dataset, count):
    return [
        ({key: value.numpy() for key, value in inputs.items()}, y_target.numpy())
        for inputs, y_target in dataset.take(count)
    ]


def assert_same(first, second):
    assert len(first) == len(second)
    for (inputs, y_target), (other_inputs, other_y_target) in zip(first, second, strict=True):
        assert inputs.keys() == other_inputs.keys()
        for key, value in inputs.items():
            assert value.dtype == other_inputs[key].dtype
            np.testing.assert_array_equal(value, other_inputs[key])
        np.testing.assert_array_equal(y_target, other_y_target)


def test_datasets_give_what_numpy_gives(windows):
    starts = np.arange(7)
    batches = take(windows.evaluation_dataset(starts, 3), -1)
    assert_same(
        batches, [windows.batch(starts[:3]), windows.batch(starts[3:6]), windows.batch([6])]
    )


def test_training_comes_shuffled_and_repeats_and_can_be_resumed(windows):
    starts = np.arange(10, 40)
    dataset = windows.training_dataset(starts, 10, seed=3)
    batches = take(dataset, 6)
    assert_same(take(dataset, 6), batches)
    assert_same(take(windows.training_dataset(starts, 10, seed=3, first_batch=4), 2), batches[4:])
    all_windows = {y.tobytes() for y in windows.batch(starts)[1]}
    passes = [
        [y.tobytes() for _, y_target in part for y in y_target]
        for part in (batches[:3], batches[3:])
    ]
    assert set(passes[0]) == set(passes[1]) == all_windows
    assert passes[0] != passes[1]
    other = take(windows.training_dataset(starts, 10, seed=4), 3)
    assert [y.tobytes() for _, y_target in other for y in y_target] != passes[0]
    assert dataset.element_spec[0]["x_context"].shape.as_list() == [10, 8, 1]


def test_a_batch_may_be_larger_than_the_number_of_windows(windows):
    ((inputs, y_target),) = take(windows.training_dataset([0, 1], 5, seed=0), 1)
    assert y_target.shape == (5, 4, 2) and inputs["x_target"].shape == (5, 4, 1)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("change", ["scale", "garbage", "missing"])
def test_training_is_blind_to_rows_after_the_split(series, change, scaling):
    split = Split.chronological(series.num_rows)
    values = series.values.copy()
    values[split.train_end :] = {
        "scale": values[split.train_end :] * 1e6,
        "garbage": -1e30,
        "missing": np.nan,
    }[change]
    batches = []
    for one in (series, make_series(values, series.time)):
        windows = Windows(one, WindowScaler.fit(one, SPEC, split.train_end, scaling))
        starts = split.window_starts(SPEC, "training")
        batches.append(take(windows.training_dataset(starts, 16, seed=0), 8))
    assert_same(*batches)


# Several series, covariates, other lengths.


@pytest.fixture
def panel(rng):
    """Three series of different sizes, one too short for a window, with one covariate."""
    parts = []
    for number, (rows, size) in enumerate([(60, 1.0), (9, 50.0), (40, 1e6)]):
        values = size * rng.normal(size=(rows, 1)).cumsum(axis=0)
        values[rng.random(values.shape) < 0.1] = np.nan
        time = 1000 * number + np.arange(rows)
        known = 5 + 3 * rng.normal(size=(rows, 1))
        names = {"name": f"s{number}", "covariates": known, "covariate_columns": ("heat",)}
        parts.append(Series(time, values, pd.Index(time), "t", ("y",), **names))
    return Panel(parts)


def test_windows_of_a_panel_are_those_of_its_series(panel):
    splits = [Split.chronological(one.num_rows) for one in panel.series]
    ends = [split.train_end for split in splits]
    scaler = WindowScaler.fit(panel, SPEC, ends)
    windows = Windows(panel, scaler)
    starts = panel_window_starts(panel, splits, SPEC, "training")
    wanted = [
        offset + start
        for offset, split in zip(panel.offsets, splits, strict=False)
        if split.train_end >= SPEC.length
        for start in split.window_starts(SPEC, "training")
    ]
    assert starts.tolist() == wanted and len(starts) == (41 - 11) + (27 - 11)
    inputs, y_target = windows.batch(starts)
    assert inputs["x_context"].shape == (46, 8, 2)
    keys = windows.sequence_keys(starts)
    for number in (0, 2):
        own = panel.series_of(starts) == number
        alone = Windows([panel.series[number]], scaler)
        local = starts[own] - panel.offsets[number]
        own_inputs, own_y_target = alone.batch(local)
        for key, value in own_inputs.items():
            np.testing.assert_array_equal(inputs[key][own], value)
        np.testing.assert_array_equal(y_target[own], own_y_target)
        np.testing.assert_array_equal(keys[own], alone.sequence_keys(local))
        np.testing.assert_array_equal(windows.spread(starts[own])[0], scaler.spread[number])
        np.testing.assert_array_equal(windows.truth(starts[own]), alone.truth(local))
    assert_same(take(windows.evaluation_dataset(starts, 46), -1), [(inputs, y_target)])
    known = np.concatenate(
        [one.covariates[:end] for one, end in zip(panel.series, ends, strict=True)]
    )
    rows = windows.target_rows(starts)
    scaled = (panel.covariates[rows] - known.mean()) / known.std()
    np.testing.assert_allclose(inputs["x_target"][..., 1:], scaled, rtol=1e-5, atol=1e-6)
    again = WindowScaler.from_config(json.loads(json.dumps(scaler.get_config())))
    assert again.get_config() == scaler.get_config()


def test_no_window_reaches_into_the_next_series(panel):
    windows = Windows(panel, WindowScaler.fit(panel, SPEC, [40, 6, 30]))
    assert windows.batch([48])[1].shape == (1, 4, 1)
    with pytest.raises(ValueError, match=r"windows inside one series\. Received: row 49"):
        windows.batch([48, 49])
    # The first rows of a series know nothing of the one before it.
    values = [panel.values[panel.last_observed_row[row, 0], 0] for row in range(69, 75)]
    assert all(value in panel.series[2].values for value in values)


def test_series_that_are_too_short_are_an_error_only_if_all_are(panel):
    splits = [Split(6, 8, one.num_rows) for one in panel.series]
    with pytest.raises(ValueError, match=r"= 12 rows in the training part\. Received: 6"):
        panel_window_starts(panel, splits, SPEC, "training")


def test_a_strange_series_is_an_error_or_measured_on_its_own(panel):
    scaler = WindowScaler.fit(list(panel.series[:2]), SPEC, [40, 6])
    with pytest.raises(ValueError, match="Received: 's2'; the scaler has 's0', 's1'"):
        Windows(panel, scaler)
    wider = scaler.with_series(panel)
    assert wider.names == ("s0", "s1", "s2")
    np.testing.assert_array_equal(wider.spread[:2], scaler.spread)
    own = WindowScaler.fit(panel.series[2], SPEC, 40)
    np.testing.assert_array_equal(wider.spread[2], own.spread[0])
    assert wider.half_span == scaler.half_span and wider.with_series(panel) is wider
    assert Windows(panel, wider).batch([75])[1].shape == (1, 4, 1)


def test_other_lengths_keep_the_scale_of_x_and_y(series):
    scaler = WindowScaler.fit(series, SPEC, 69)
    inputs, y_target = Windows(series, scaler, WindowSpec(8, 9)).batch([20])
    short, short_y_target = Windows(series, scaler, WindowSpec(5, 2)).batch([23])
    np.testing.assert_array_equal(short["x_context"][0], inputs["x_context"][0, 3:])
    np.testing.assert_array_equal(short["x_target"][0], inputs["x_target"][0, :2])
    np.testing.assert_array_equal(short_y_target[0], y_target[0, :2])
    assert inputs["x_target"].max() > 1


def test_the_resolution_of_dates_does_not_matter(rng):
    values = rng.normal(size=40).cumsum()
    fine, coarse = (
        Series.from_frame(
            pd.DataFrame({"t": pd.date_range("2020", periods=40, unit=unit), "y": values}), "t", "y"
        )
        for unit in ("ns", "s")
    )
    scaler = WindowScaler.fit(fine, SPEC, 30)
    inputs, _ = Windows(fine, scaler).batch([20])
    other, _ = Windows(coarse, scaler).batch([20])
    np.testing.assert_array_equal(inputs["x_target"], other["x_target"])
    again = WindowScaler.from_config(json.loads(json.dumps(scaler.get_config())))
    assert again.time_unit == "ns"
    with pytest.raises(ValueError, match=r"time must be dates, as in training\. Received: numbers"):
        Windows(make_series(values), scaler)


def test_panel_errors(panel, series):
    with pytest.raises(ValueError, match="at least one series"):
        Panel([])
    with pytest.raises(ValueError, match="'s0' twice"):
        Panel([panel.series[0], panel.series[0]])
    with pytest.raises(ValueError, match="the same `target_columns`"):
        Panel([panel.series[0], series])
    with pytest.raises(ValueError, match=r"D_c = 1 covariates, as the scaler\. Received: 0"):
        bare = make_series(np.arange(40.0))
        Windows(bare, WindowScaler.fit(panel, SPEC, [40, 6, 30]))


def test_a_covariate_that_never_changes_in_training_is_finite(panel):
    one = panel.series[0]
    known = np.where(np.arange(60) < 50, 7e5, 9e5)[:, np.newaxis]
    series = Series(
        one.time, one.values.copy(), one.stamps, "t", ("y",), None, "s", known, ("heat",)
    )
    inputs, _ = Windows(series, WindowScaler.fit(series, SPEC, 40)).batch(np.arange(49))
    assert np.abs(inputs["x_target"][..., 1]).max() < 1
