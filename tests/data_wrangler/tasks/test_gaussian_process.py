"""Gaussian-process tasks: the law they are drawn from, their seeds, and held-out sets."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from other_kernels import EXAMPLES, NAMES, RANGES, sklearn_kernel

import taylorformer
from taylorformer.data_wrangler.tasks import gaussian_process as module
from taylorformer.data_wrangler.tasks.gaussian_process import (
    draw_values,
    gaussian_process_tasks,
    held_out_gaussian_process_tasks,
)
from taylorformer.data_wrangler.tasks.kernels import (
    JITTER,
    KERNELS,
    Kernel,
    cholesky_factor,
    find_kernel,
)
from taylorformer.data_wrangler.tasks.task_set import TaskSet


def arrays_of(element):
    inputs, y_target = element
    return {**{name: v.numpy() for name, v in inputs.items()}, "y_target": y_target.numpy()}


def small_set(num_sequences=7, num_points=8, seed=3, **options):
    return held_out_gaussian_process_tasks(
        "matern", num_sequences, seed, num_points=num_points, num_context=(0, 7), **options
    )


# Kernels.


@pytest.mark.parametrize(
    "name, D_x", [("rbf", 1), ("rbf", 2), ("matern", 1), ("matern", 3), ("periodic", 1)]
)
def test_covariance_is_that_of_another_library(rng, name, D_x):
    x, z = rng.uniform(-2, 2, [3, 6, D_x]), rng.uniform(-2, 2, [3, 4, D_x])
    x[:, 0] = z[:, 0]
    values = KERNELS[name].draw_hyperparameters(rng, 3)
    found = KERNELS[name].covariance(x, z, **values)
    assert found.dtype == np.float64
    for b in range(3):
        wanted = sklearn_kernel(name, **{key: v[b] for key, v in values.items()})(x[b], z[b])
        np.testing.assert_allclose(found[b], wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_covariance_of_the_kernel(name, record_property):
    grid = np.linspace(-2, 2, 20)[:, np.newaxis]
    x = np.broadcast_to(grid, [20_000, 20, 1])
    y = draw_values(np.random.default_rng(1), KERNELS[name], x, JITTER, **EXAMPLES[name])[..., 0]
    wanted = sklearn_kernel(name, **EXAMPLES[name])(grid)
    error = np.abs(y.T @ y / len(y) - wanted).max() / wanted[0, 0]
    record_property("largest_error", float(error))
    # A standard error of 0.01 on the diagonal.
    assert error < 0.04
    assert np.abs(y.mean(axis=0)).max() < 0.04 * wanted[0, 0] ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_hyperparameters_have_the_law_of_the_paper(rng, name):
    drawn = find_kernel(name).draw_hyperparameters(rng, 4000)
    assert set(drawn) == set(RANGES[name])
    for key, (low, high) in RANGES[name].items():
        place = (drawn[key] - low) / (high - low)
        assert 0 <= place.min() < 0.01 and 0.99 < place.max() <= 1
        # Standard errors of 0.0046 and 0.0012.
        assert abs(place.mean() - 0.5) < 0.02 and abs(place.var() - 1 / 12) < 0.006


def test_a_kernel_of_your_own():
    kernel = Kernel("rbf", {"length_scale": (0.2, 0.2), "scale": (3, 3)})
    assert find_kernel(kernel) is kernel
    tasks = held_out_gaussian_process_tasks(kernel, 3, 0, num_points=5, num_context=(1, 4))
    assert tasks.hyperparameters["scale"].tolist() == [3.0, 3.0, 3.0]
    assert tasks.about["ranges"] == {"scale": [3.0, 3.0], "length_scale": [0.2, 0.2]}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: find_kernel("RBF"), "`kernel` must be one of 'rbf', .* Received: kernel='RBF'"),
        (lambda: Kernel("linear", {}), "`name` must be one of .*'linear'"),
        (lambda: Kernel("matern", {}), "`ranges` of the matern kernel .*length_scale. .*none"),
        (lambda: Kernel("matern", {"length_scale": (2, 1)}), r"0 < low <= high.*\(2, 1\)"),
        (lambda: Kernel("matern", {"length_scale": (0, 1)}), "0 < low <= high"),
        (lambda: Kernel("matern", {"length_scale": 1.0}), "`length_scale` must be two numbers"),
        (lambda: Kernel("matern", {"length_scale": (1, np.inf)}), "`length_scale` must be finite"),
        (
            lambda: KERNELS["periodic"].covariance(
                np.zeros([1, 2, 2]), np.zeros([1, 2, 2]), **EXAMPLES["periodic"]
            ),
            "must have D_x = 1. Received: D_x = 2",
        ),
        (
            lambda: KERNELS["matern"].covariance(np.zeros([1, 2, 1]), np.zeros([1, 2, 2])),
            r"`x` and `z` must have the shapes .*\[1, 2, 1\] and \[1, 2, 2\]",
        ),
        (
            lambda: KERNELS["rbf"].covariance(np.zeros([1, 2, 1]), np.zeros([1, 2, 1]), scale=1),
            "`hyperparameters` of the rbf kernel must be scale, length_scale. Received: scale",
        ),
        (
            lambda: KERNELS["matern"].covariance(
                np.zeros([3, 2, 1]), np.zeros([3, 2, 1]), length_scale=np.ones(2)
            ),
            r"of the shape \[B\] = \[3\]. Received: \[2\]",
        ),
        (
            lambda: KERNELS["matern"].covariance(
                np.zeros([1, 2, 1]), np.zeros([1, 2, 1]), length_scale=-1.0
            ),
            "`length_scale` must be finite and above 0. Received: length_scale=-1.0",
        ),
        (lambda: cholesky_factor(np.ones([1, 2, 2])), "take a larger jitter. Received: 1 matrices"),
    ],
)
def test_errors_of_kernels(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Training batches.


def test_a_batch_keeps_the_contract():
    dataset = gaussian_process_tasks("rbf", batch_size=4, seed=1)
    inputs, y_target = dataset.element_spec
    for spec in (*inputs.values(), y_target):
        assert spec == tf.TensorSpec([4, None, 1], tf.float32)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    for batch in map(arrays_of, dataset.take(3)):
        N_C, N_T = batch["x_context"].shape[1], batch["x_target"].shape[1]
        assert 3 <= N_C <= 97 and N_C + N_T == 100
        assert batch["y_context"].shape == (4, N_C, 1) and batch["y_target"].shape == (4, N_T, 1)
        x = np.concatenate([batch["x_context"], batch["x_target"]], axis=1)
        assert -2 <= x.min() < -1.9 and 1.9 < x.max() <= 2
        assert all(np.isfinite(v).all() for v in batch.values())
        # Context and targets are one random order of one function.
        assert (np.diff(x[0, :, 0]) < 0).any()


def test_every_context_size_is_as_likely():
    dataset = gaussian_process_tasks("matern", 1, seed=0, num_points=6, num_context=(0, 3))
    sizes = [len(y[0]) for _, y in dataset.take(400).as_numpy_iterator()]
    counts = np.bincount(sizes)
    assert len(counts) == 7 and not counts[:3].any()
    # A standard error of 9.
    assert (np.abs(counts[3:] - 100) < 30).all()


def test_a_stopped_training_goes_on_with_the_same_batches():
    options = {"batch_size": 2, "seed": 5, "num_points": 7, "num_context": (1, 6)}
    whole = list(map(arrays_of, gaussian_process_tasks("rbf", **options, num_batches=5)))
    rest = list(
        map(arrays_of, gaussian_process_tasks("rbf", **options, first_batch=3, num_batches=2))
    )
    assert len(whole) == 5 and len(rest) == 2
    for early, late in zip(whole[3:], rest, strict=True):
        for name, value in early.items():
            np.testing.assert_array_equal(value, late[name])
    values = {float(batch["y_target"][0, -1, 0]) for batch in whole}
    assert len(values) == 5


_DIGEST = """
import hashlib
from taylorformer.data_wrangler.tasks import gaussian_process as module
law = module._Law("periodic", 100, (3, 97), (-2.0, 2.0), 1e-6)
arrays = module._training_batch(law, 8, 11, 4)
tasks = module.held_out_gaussian_process_tasks("rbf", 20, 11)
digest = hashlib.sha256(b"".join(v.tobytes() for v in [*arrays, tasks.x, tasks.y]))
print(digest.hexdigest())
"""


def test_the_same_seed_gives_the_same_numbers_in_another_process():
    run = subprocess.run([sys.executable, "-c", _DIGEST], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    dataset = gaussian_process_tasks("periodic", 8, 11, first_batch=4, num_batches=1)
    (batch,) = map(arrays_of, dataset)
    tasks = held_out_gaussian_process_tasks("rbf", 20, 11)
    names = ("x_context", "y_context", "x_target", "y_target")
    arrays = [*(batch[name] for name in names), tasks.x, tasks.y]
    digest = hashlib.sha256(b"".join(v.tobytes() for v in arrays))
    assert run.stdout.strip() == digest.hexdigest()


def test_no_graph_is_traced_anew():
    traces = []

    @tf.function
    def total(dataset):
        traces.append(1)
        result = 0.0
        for inputs, y_target in dataset:
            traces.append(1)
            result += tf.reduce_sum(inputs["y_context"]) + tf.reduce_sum(y_target)
        return result

    dataset = gaussian_process_tasks("rbf", 2, num_points=9, num_context=(1, 8), num_batches=20)
    assert len({y.shape[1] for _, y in dataset}) > 3
    assert np.isfinite(total(dataset))
    assert len(traces) == 2


def test_training_validation_and_test_share_no_sequence():
    # Seeds of several words, and of the words of other streams, among them.
    seeds = (0, 1, 2, 2**32, 2**33, 2**32 + 1, 2**63 - 1)
    drawn = []
    law = module._Law("rbf", 2, (1, 1), (-2.0, 2.0), JITTER)
    for seed in seeds:
        drawn += [module._training_batch(law, 3, seed, k)[0][0, 0, 0] for k in range(3)]
        for part in ("test", "validation"):
            tasks = held_out_gaussian_process_tasks("rbf", 300, seed, 2, (1, 1), part=part)
            drawn += np.float32(tasks.x[[0, 255, 256], 0, 0]).tolist()
    assert len(set(map(float, drawn))) == len(drawn) == 9 * len(seeds)


def test_the_public_name_is_the_function():
    assert taylorformer.gaussian_process_tasks is gaussian_process_tasks


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"kernel": "cosine"}, ValueError, "`kernel` must be one of"),
        ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0"),
        ({"seed": 0.5}, TypeError, "`seed` must be an integer"),
        ({"num_points": 0}, ValueError, "`num_points` must be at least 1. Received: num_points=0"),
        ({"num_context": (3, 100)}, ValueError, "`num_context` must be at most 99"),
        ({"num_context": (9, 8)}, ValueError, "`num_context` must be at least 9"),
        ({"num_context": 3}, ValueError, "`num_context` must be two numbers.*num_context=3"),
        ({"x_range": (1.0, 1.0)}, ValueError, "`x_range` must be finite and above 1.0"),
        ({"jitter": 0.0}, ValueError, "`jitter` must be finite and above 0.0"),
        ({"first_batch": -1}, ValueError, "`first_batch` must be at least 0"),
        ({"num_batches": 0}, ValueError, "`num_batches` must be at least 1"),
    ],
)
def test_errors_of_tasks(options, error, message):
    with pytest.raises(error, match=message):
        gaussian_process_tasks(**{"kernel": "rbf", **options})


def test_a_jitter_too_small_for_float64_is_a_clear_error():
    with pytest.raises(ValueError, match="take a larger jitter"):
        held_out_gaussian_process_tasks("rbf", 5, 0, jitter=1e-300)


# Held-out sequences.


def test_held_out_sequences_have_the_law():
    tasks = held_out_gaussian_process_tasks("rbf", 2000, seed=0)
    assert len(tasks) == 2000 and tasks.x.shape == tasks.y.shape == (2000, 100, 1)
    assert tasks.x.dtype == tasks.y.dtype == np.float64
    counts = np.bincount(tasks.num_context, minlength=98)
    assert counts[:3].sum() == 0 and len(counts) == 98 and counts[3] and counts[97]
    assert (tasks.num_context + tasks.num_target == 100).all()
    x = tasks.x.ravel()
    assert -2 <= x.min() and x.max() <= 2
    # Standard errors of 0.0026 and 0.0027.
    assert abs(x.mean()) < 0.01 and abs(x.var() - 4 / 3) < 0.012
    # y in units of the sequence's own scale: variance 1.
    y = tasks.y[..., 0] / tasks.hyperparameters["scale"][:, np.newaxis]
    assert abs(np.square(y).mean() - 1) < 0.05
    assert json.loads(json.dumps(tasks.about))["jitter"] == 1e-6


def test_a_larger_set_begins_with_a_smaller_one():
    small, large = small_set(5), small_set(300)
    for one, other in ((small, large.take(5)), (large, small_set(600).take(300))):
        for name in ("x", "y", "num_context", "num_target"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(*(s.hyperparameters["length_scale"] for s in (one, other)))


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
            found = {**inputs, "y_target": y_target}[name][b]
            assert found.dtype == np.float32
            np.testing.assert_array_equal(
                found[:length], np.float32(values[row, begin : begin + length])
            )
            assert (found[length:] == 0).all()
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
    # As with images: the number of targets does not go with the number of context points.
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
        found = list(map(arrays_of, dataset))
        assert len(found) == 3
        for batch, (_, inputs, y_target) in zip(found, tasks.batches(3), strict=True):
            assert set(batch) == {*inputs, "y_target"}
            for name, value in {**inputs, "y_target": y_target}.items():
                np.testing.assert_array_equal(batch[name], value)


def test_fit_takes_the_tasks_and_validates_on_a_set():
    model = taylorformer.Taylorformer(
        num_heads=1, head_dim=4, width=4, num_layers=1, encoding_dim=4, seed=0
    )
    model.compile(run_eagerly=True)
    tasks = small_set(4)
    training = gaussian_process_tasks("matern", 2, num_points=8, num_context=(1, 7))
    history = model.fit(
        training, steps_per_epoch=1, validation_data=tasks.dataset(4), verbose=0
    ).history
    one_by_one = model.evaluate(tasks.dataset(1), verbose=0, return_dict=True)
    assert history["val_nll"][0] == pytest.approx(one_by_one["nll"], rel=1e-5)


def test_a_file_gives_back_the_set(tmp_path):
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
    with pytest.raises(OSError, match="no space"):
        small_set(5).save(path)
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
    small_set().save(path)
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
