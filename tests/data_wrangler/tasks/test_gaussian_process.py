"""Gaussian-process tasks: their distribution, their seeds, and held-out sets."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from small_tasks import arrays_of, small_set

import taylorformer
from taylorformer.comparison_models.gaussian_process import GaussianProcess
from taylorformer.data_wrangler.tasks import gaussian_process as module
from taylorformer.data_wrangler.tasks.gaussian_process import (
    gaussian_process_tasks,
    held_out_gaussian_process_tasks,
)
from taylorformer.data_wrangler.tasks.kernels import JITTER

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


def test_a_stopped_training_continues_with_the_same_batches():
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
distribution = module._Distribution("periodic", 100, (3, 97), (-2.0, 2.0), 1e-6)
batch = module._training_batch(distribution, 8, 11, 4)
tasks = module.held_out_gaussian_process_tasks("rbf", 20, 11)
digest = hashlib.sha256(b"".join(v.tobytes() for v in [*batch.values(), tasks.x, tasks.y]))
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
    distribution = module._Distribution("rbf", 2, (1, 1), (-2.0, 2.0), JITTER)
    for seed in seeds:
        for number in range(3):
            batch = module._training_batch(distribution, 3, seed, number)
            drawn.append(batch["x_context"][0, 0, 0])
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


def test_held_out_sequences_have_the_distribution_of_the_paper():
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


def test_numbers_may_be_numpys():
    plain = gaussian_process_tasks("rbf", batch_size=2, seed=3, num_points=6, num_context=(2, 4))
    numbers = {"batch_size": np.int16(2), "seed": np.uint8(3), "num_points": np.int64(6)}
    numbers["num_context"] = tuple(np.array([2, 4]))
    batches = gaussian_process_tasks(np.str_("rbf"), **numbers, num_batches=np.int32(2))
    for ours, theirs in zip(map(arrays_of, batches), map(arrays_of, plain.take(2)), strict=True):
        for key, value in theirs.items():
            np.testing.assert_array_equal(ours[key], value)
    held_out = held_out_gaussian_process_tasks(
        "rbf", np.int64(3), np.uint32(1), part=np.str_("validation"), jitter=np.float32(1e-3)
    )
    assert json.loads(json.dumps(held_out.about))["seed"] == 1
    process = GaussianProcess("rbf", jitter=np.float64(JITTER))
    inputs, _ = held_out.batch(np.arange(3))
    parameters = held_out.hyperparameters
    plain = process.sample(inputs, parameters, 2, 7)
    drawn = process.sample(inputs, parameters, np.int64(2), np.uint64(7))
    np.testing.assert_array_equal(drawn, plain)
