"""Task sets: padded batches, data sets, files, and what they refuse."""

import json

import numpy as np
import pytest
import tensorflow as tf
from small_tasks import arrays_of, small_set

from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.tasks.task_set import TaskSet


def test_a_batch_is_padded_at_the_end_and_masked():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=[4, 9, 2]), rng.normal(size=[4, 9, 3])
    x[1, 5:], y[1, 5:] = np.nan, np.nan  # not used
    tasks = TaskSet(x, y, num_context=[3, 0, 8, 2], num_target=[2, 5, 1, 7])
    rows = [2, 1, 0]
    inputs, y_target = tasks.batch(rows)
    assert inputs["x_context"].shape == (3, 8, 2) and inputs["y_context"].shape == (3, 8, 3)
    assert inputs["x_target"].shape == (3, 5, 2) and y_target.shape == (3, 5, 3)
    assert inputs["context_mask"].sum(axis=1).tolist() == [8, 0, 3]
    assert inputs["target_mask"].sum(axis=1).tolist() == [1, 5, 2]
    for b, row in enumerate(rows):
        N_C, N_T = tasks.num_context[row], tasks.num_target[row]
        for name, values, begin, length in (
            ("x_context", x, 0, N_C),
            ("y_context", y, 0, N_C),
            ("x_target", x, N_C, N_T),
            ("y_target", y, N_C, N_T),
        ):
            padded = {**inputs, "y_target": y_target}[name][b]
            assert padded.dtype == np.float32
            np.testing.assert_array_equal(
                padded[:length], np.float32(values[row, begin : begin + length])
            )
            assert (padded[length:] == 0).all()
            assert inputs[f"{name[2:]}_mask"][b, :length].all()
    exact, _ = tasks.batch(rows, dtype="float64")
    np.testing.assert_array_equal(exact["x_context"][0], x[2, :8])
    no_context, _ = tasks.batch([1])
    assert no_context["x_context"].shape == (1, 0, 2)


def test_batches_hold_every_sequence_once_and_little_padding(record_property):
    tasks = held_out_gaussian_process_tasks(
        "matern", 1000, seed=0, num_points=50, num_context=(3, 47)
    )
    rng = np.random.default_rng(0)
    # As with images: the number of targets is independent of the number of context points.
    images = TaskSet(
        np.zeros([1000, 100, 1]),
        np.zeros([1000, 100, 1]),
        rng.integers(1, 51, 1000),
        rng.integers(1, 51, 1000),
    )
    for name, data, most in (("gp", tasks, 0.05), ("images", images, 0.2)):
        seen, used, size = [], 0, 0
        for rows, inputs, _ in data.batches(32):
            seen += rows.tolist()
            for mask in (inputs["context_mask"], inputs["target_mask"]):
                used, size = used + mask.sum(), size + mask.size
        assert sorted(seen) == list(range(1000))
        padding = 1 - used / size
        record_property(f"padding_{name}", float(padding))
        assert padding < most
    rows, inputs, y_target = next(tasks.batches(7))
    assert len(rows) == 7
    again, y_again = tasks.batch(rows)
    np.testing.assert_array_equal(y_target, y_again)
    np.testing.assert_array_equal(inputs["x_context"], again["x_context"])


def test_a_data_set_holds_the_batches():
    tasks = small_set()
    dataset = tasks.dataset(3)
    assert dataset.cardinality() == 3
    inputs, y_target = dataset.element_spec
    assert y_target == tf.TensorSpec([None, None, 1], tf.float32)
    assert inputs["context_mask"] == tf.TensorSpec([None, None], tf.bool)
    for _ in range(2):
        elements = list(map(arrays_of, dataset))
        assert len(elements) == 3
        for batch, (_, inputs, y_target) in zip(elements, tasks.batches(3), strict=True):
            assert set(batch) == {*inputs, "y_target"}
            for name, value in {**inputs, "y_target": y_target}.items():
                np.testing.assert_array_equal(batch[name], value)


def test_a_file_returns_the_set(tmp_path):
    tasks, path = small_set(), tmp_path / "folder" / "tasks"
    tasks.save(path)
    loaded = TaskSet.load(path)
    for name in ("x", "y", "num_context", "num_target"):
        value = getattr(loaded, name)
        np.testing.assert_array_equal(value, getattr(tasks, name))
        assert value.dtype == getattr(tasks, name).dtype
    assert loaded.about == tasks.about
    assert loaded.hyperparameters.keys() == tasks.hyperparameters.keys()
    np.testing.assert_array_equal(*(s.hyperparameters["length_scale"] for s in (tasks, loaded)))
    assert [file.name for file in path.parent.iterdir()] == ["tasks"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "tasks.npz"
    small_set(4).save(path)

    def breaks_off(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", breaks_off)
    with pytest.raises(FileExistsError, match="unless overwrite=True"):
        small_set(5).save(path)
    with pytest.raises(OSError, match="no space"):
        small_set(5).save(path, overwrite=True)
    assert len(TaskSet.load(path)) == 4
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.npz"]


def test_other_files_are_clear_errors(tmp_path):
    path = tmp_path / "tasks.npz"
    with pytest.raises(FileNotFoundError):
        TaskSet.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"that `TaskSet.save` wrote. Received: .*tasks.npz"):
        TaskSet.load(path)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match=r"that `TaskSet.save` wrote"):
        TaskSet.load(path)
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(ValueError, match=r"that `TaskSet.save` wrote"):
        TaskSet.load(path)
    small_set().save(path, overwrite=True)
    with np.load(path) as file:
        arrays = dict(file)
    meta = json.loads(str(arrays["meta"]))
    meta["versions"]["taylorformer"] = "9.9"
    np.savez(path, **{**arrays, "meta": np.array(json.dumps({**meta, "format": 2}))})
    with pytest.raises(ValueError, match=r"must have the format 1. .* format 2, .* 9\.9; this is"):
        TaskSet.load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"that `TaskSet.save` wrote"):
        TaskSet.load(path)


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"x": np.zeros([2, 5])}, ValueError, r"`x` must hold numbers of the shape \[n, N, D_x\]"),
        ({"y": np.zeros([2, 4, 1])}, ValueError, r"\[2, 5, 1\] and \[2, 4, 1\]"),
        ({"num_context": [1.0, 2.0]}, TypeError, "`num_context` must hold integers"),
        ({"num_context": [1]}, ValueError, r"`num_context` must have the shape \[n\] = \[2\]"),
        ({"num_context": [1, 5]}, ValueError, "N = 5. Received: 5 and 0 in row 1"),
        ({"num_context": [-1, 1]}, ValueError, "Received: -1 and 6 in row 0"),
        ({"num_target": [1, 5]}, ValueError, "Received: 2 and 5 in row 1"),
        ({"y": np.full([2, 5, 1], np.inf)}, ValueError, r"`y` must be finite .* point 0 of row 0"),
        ({"hyperparameters": {"scale": [1.0]}}, ValueError, r"shape \[n\] = \[2\]. .*scale"),
        ({"about": {"kernel": object()}}, TypeError, "`about` must hold what JSON can"),
    ],
)
def test_errors_of_task_sets(change, error, message):
    arguments = {"x": np.zeros([2, 5, 1]), "y": np.zeros([2, 5, 1]), "num_context": [1, 2]}
    with pytest.raises(error, match=message):
        TaskSet(**{**arguments, **change})


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda tasks: tasks.batch([7]), ValueError, "`rows` must be from 0 to 6"),
        (lambda tasks: tasks.batch([-1]), ValueError, "`rows` must be from 0 to 6"),
        (lambda tasks: tasks.batch([]), ValueError, "`rows` must be integers of the shape"),
        (lambda tasks: tasks.batch_rows(0), ValueError, "`batch_size` must be at least 1"),
        (lambda tasks: tasks.take(8), ValueError, "`count` must be at most 7"),
        (lambda tasks: small_set(part="training"), ValueError, "`part` must be one of 'test'"),
        (lambda tasks: small_set(0), ValueError, "`num_sequences` must be at least 1"),
    ],
)
def test_errors_of_rows(call, error, message):
    with pytest.raises(error, match=message):
        call(small_set())
