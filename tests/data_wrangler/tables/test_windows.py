"""Windows: what forecasts and training read, alike in NumPy and tf.data."""

import json

import numpy as np
import pytest
from tables import SPEC, make_series

from taylorformer.data_wrangler.tables.scaler import SCALINGS, WindowScaler
from taylorformer.data_wrangler.tables.split import Split, panel_window_starts
from taylorformer.data_wrangler.tables.windows import Windows


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


def test_keys_tell_windows_and_series_apart_and_nothing_else(series, windows):
    starts = np.arange(20)
    keys = windows.sequence_keys(starts)
    assert keys.dtype == np.int64 and len(set(keys.tolist())) == 20
    np.testing.assert_array_equal(windows.sequence_keys(starts[7:9]), keys[7:9])
    other = Windows(make_series(series.values, series.time, name="other"), windows.scaler)
    assert not set(other.sequence_keys(starts).tolist()) & set(keys.tolist())


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


def test_datasets_hold_the_batches_of_numpy(windows):
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
        is_member = panel.series_of(starts) == number
        alone = Windows([panel.series[number]], scaler)
        local = starts[is_member] - panel.offsets[number]
        alone_inputs, alone_y_target = alone.batch(local)
        for key, value in alone_inputs.items():
            np.testing.assert_array_equal(inputs[key][is_member], value)
        np.testing.assert_array_equal(y_target[is_member], alone_y_target)
        np.testing.assert_array_equal(keys[is_member], alone.sequence_keys(local))
        np.testing.assert_array_equal(windows.spread(starts[is_member])[0], scaler.spread[number])
        np.testing.assert_array_equal(windows.truth(starts[is_member]), alone.truth(local))
    assert_same(take(windows.evaluation_dataset(starts, 46), -1), [(inputs, y_target)])
    training = np.concatenate(
        [one.covariates[:end] for one, end in zip(panel.series, ends, strict=True)]
    )
    rows = windows.target_rows(starts)
    scaled = (panel.covariates[rows] - training.mean()) / training.std()
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


def test_windows_without_the_covariates_of_the_scaler(panel):
    with pytest.raises(ValueError, match=r"D_c = 1 covariates, as the scaler\. Received: 0"):
        bare = make_series(np.arange(40.0))
        Windows(bare, WindowScaler.fit(panel, SPEC, [40, 6, 30]))
