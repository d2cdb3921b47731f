"""Image completion tasks: what a batch of pixels holds, held-out sets, whole images, pictures."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from taylorformer import image_completion_tasks
from taylorformer.data_wrangler.batch import check_finite, prepare_batch
from taylorformer.data_wrangler.tasks.image_points import picture
from taylorformer.data_wrangler.tasks.image_set import Images, load_images
from taylorformer.data_wrangler.tasks.images import (
    held_out_image_completion_tasks,
    whole_image_tasks,
)
from taylorformer.data_wrangler.tasks.task_set import TaskSet


def numbered(count=10, height=5, width=4, channels=1):
    """Images of which every value tells the image and the pixel."""
    pixels = np.arange(count * height * width * channels).reshape(count, height, width, channels)
    assert pixels.max() < 256
    return Images(pixels.astype(np.uint8), np.arange(count) % 3)


def values_of(images, y):
    """Undoes the scaling of y."""
    return np.rint((np.asarray(y, np.float64) + 0.5) * images.max_value).astype(int)


def batches(images, **arguments):
    dataset = image_completion_tasks(images, **arguments)
    return [(*inputs.values(), y_target) for inputs, y_target in dataset.as_numpy_iterator()]


def assert_same(first, second):
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        for array, again in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, again)


# Batches.


@pytest.mark.parametrize("channels", [1, 3])
def test_a_batch_keeps_the_contract_and_shows_pixels_of_one_image(channels):
    images = numbered(4, 5, 4, channels)
    dataset = image_completion_tasks(images, 6, num_context=(0, 9), num_target=(1, 11))
    inputs_spec, y_spec = dataset.element_spec
    shapes = {name: spec.shape.as_list() for name, spec in inputs_spec.items()}
    assert shapes == {
        "x_context": [6, None, 2],
        "y_context": [6, None, channels],
        "x_target": [6, None, 2],
    }
    assert y_spec.shape.as_list() == [6, None, channels]
    assert {spec.dtype for spec in (*inputs_spec.values(), y_spec)} == {tf.float32}
    lengths = set()
    for inputs, y_target in dataset.take(20).as_numpy_iterator():
        prepare_batch({**inputs, "y_target": y_target})
        check_finite(inputs, y_target)
        x = np.concatenate([inputs["x_context"], inputs["x_target"]], axis=1)
        y = np.concatenate([inputs["y_context"], y_target], axis=1)
        assert x.dtype == y.dtype == np.float32
        assert np.abs(x).max() <= 1 and np.abs(y).max() <= 0.5
        pixel = np.rint((x + 1) / 2 * [4, 3]).astype(int)
        # Every value is the one of its pixel in one image, and no pixel is there twice.
        numbers = pixel[..., 0] * 4 + pixel[..., 1]
        expected = values_of(images, y)[..., 0] // channels
        assert (expected % 20 == numbers).all()
        assert (np.ptp(expected // 20, axis=1) == 0).all()
        assert all(len(set(row)) == len(row) for row in numbers.tolist())
        lengths.add((inputs["x_context"].shape[1], y_target.shape[1]))
    assert len(lengths) > 5


def test_coordinates_and_values_reach_their_ends():
    pixels = np.zeros([1, 3, 5, 1], np.uint8)
    pixels[0, 0, 4], pixels[0, 1, 2] = 255, 51
    images = Images(pixels, np.zeros(1, int))
    ((_, _, x, y),) = batches(
        images, batch_size=1, num_context=(0, 0), num_target=(15, 15), num_batches=1
    )
    values = {tuple(point): value for point, value in zip(x[0].tolist(), y[0, :, 0], strict=True)}
    assert set(values) == {(row, col) for row in (-1, 0, 1) for col in (-1, -0.5, 0, 0.5, 1)}
    assert values[-1, 1] == 0.5 and values[1, 1] == -0.5
    assert values[0, 0] == pytest.approx(51 / 255 - 0.5)
    digits = load_images("digits")
    assert digits.max_value == digits.pixels.max() == 16
    assert held_out_image_completion_tasks(digits.take(50)).y.max() == 0.5


def test_numbers_of_points_are_uniform_with_both_ends():
    images = numbered(1, 5, 4)
    made = batches(images, batch_size=1, num_context=(2, 5), num_target=(1, 3), num_batches=1200)
    counts = np.zeros([6, 4])
    for x_context, _, x_target, _ in made:
        counts[x_context.shape[1], x_target.shape[1]] += 1
    assert counts[2:, 1:].sum() == 1200
    # 100 are expected of each pair, with a standard deviation of 9.6.
    np.testing.assert_allclose(counts[2:, 1:], 100, atol=40)


def test_every_pixel_is_as_likely():
    images = numbered(2, 3, 3)
    made = batches(images, batch_size=500, num_context=(2, 2), num_target=(3, 3), num_batches=10)
    for y, count in ((1, 2), (3, 3)):
        seen = values_of(images, np.concatenate([batch[y] for batch in made])) % 9
        share = np.bincount(seen.ravel(), minlength=9) / 5000
        # The standard deviation of a share is at most 0.007.
        np.testing.assert_allclose(share, count / 9, atol=0.028)


def test_every_image_comes_once_in_a_pass_and_each_pass_has_another_order():
    images = numbered(10)
    made = batches(images, batch_size=4, num_batches=10)
    shown = [values_of(images, y_context)[:, 0, 0] // 20 for _, y_context, _, _ in made]
    passes = np.concatenate(shown).reshape(4, 10)
    assert (np.sort(passes, axis=1) == np.arange(10)).all()
    assert len({tuple(order) for order in passes.tolist()}) == 4
    # A batch may hold more than all images.
    (batch,) = batches(images, batch_size=25, num_batches=1)
    counts = np.bincount(values_of(images, batch[1])[:, 0, 0] // 20)
    assert counts.min() >= 2 and counts.max() <= 3


def test_a_batch_is_a_function_of_seed_and_number():
    images = numbered()
    all_of_them = batches(images, batch_size=4, seed=3, num_batches=9)
    assert_same(batches(images, batch_size=4, seed=3, num_batches=9), all_of_them)
    assert_same(
        batches(images, batch_size=4, seed=3, first_batch=5, num_batches=4), all_of_them[5:]
    )
    endless = image_completion_tasks(images, 4, seed=3, first_batch=7)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    continued = [(*i.values(), y) for i, y in endless.take(2).as_numpy_iterator()]
    assert_same(continued, all_of_them[7:])
    other = batches(images, batch_size=4, seed=4, num_batches=9)
    assert any(
        a[0].shape != b[0].shape or (a[0] != b[0]).any()
        for a, b in zip(all_of_them, other, strict=True)
    )


def printed_by_a_new_process(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_another_process_draws_the_same_held_out_sequences_and_needs_no_tensorflow():
    code = """
import hashlib, sys
from taylorformer.data_wrangler.tasks.images import held_out_image_completion_tasks
from taylorformer.data_wrangler.tasks.image_set import load_images
tasks = held_out_image_completion_tasks(load_images("digits"), 20, seed=5)
arrays = (tasks.x, tasks.y, tasks.num_context, tasks.num_target)
print(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())
"""
    tasks = held_out_image_completion_tasks(load_images("digits"), 20, seed=5)
    arrays = (tasks.x, tasks.y, tasks.num_context, tasks.num_target)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    code += "assert 'tensorflow' not in sys.modules"
    assert printed_by_a_new_process(code) == digest


@pytest.mark.slow
def test_another_process_draws_the_same_batches():
    code = """
import hashlib
from taylorformer import image_completion_tasks
from taylorformer.data_wrangler.tasks.image_set import load_images
digest, images = hashlib.sha256(), load_images("digits")
for inputs, y in image_completion_tasks(images, 8, 5, first_batch=300, num_batches=3):
    digest.update(b"".join(array.numpy().tobytes() for array in (*inputs.values(), y)))
print(digest.hexdigest())
"""
    digest = hashlib.sha256()
    images = load_images("digits")
    for batch in batches(images, batch_size=8, seed=5, first_batch=300, num_batches=3):
        digest.update(b"".join(array.tobytes() for array in batch))
    assert printed_by_a_new_process(code) == digest.hexdigest()


@pytest.mark.parametrize(
    "shape, given, expected",
    [
        ((28, 28), {}, ([6, 200], [3, 197])),
        ((8, 8), {}, ([6, 32], [3, 32])),
        ((2, 2), {}, ([2, 2], [2, 2])),
        ((8, 8), {"num_context": (0, 60)}, ([0, 60], [3, 4])),
        ((8, 8), {"num_target": (1, 10)}, ([6, 54], [1, 10])),
        ((8, 8), {"num_context": (5, 50), "num_target": (14, 14)}, ([5, 50], [14, 14])),
    ],
)
def test_ranges_that_are_not_given_fit_the_image(shape, given, expected):
    images = Images(np.zeros([1, *shape, 1], np.uint8), np.zeros(1, int))
    about = held_out_image_completion_tasks(images, 1, **given).about
    assert (about["num_context"], about["num_target"]) == expected


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"num_context": (6, 12), "num_target": (3, 9)},
            "H W = 20 pixels of an image. Received: 12",
        ),
        ({"num_context": (6, 20)}, "`num_context` must be at most 19. Received: num_context=20"),
        ({"num_context": (-1, 5)}, "`num_context` must be at least 0"),
        ({"num_context": (5, 4)}, "`num_context` must be at least 5. Received: num_context=4"),
        ({"num_target": (0, 5)}, "`num_target` must be at least 1"),
        ({"num_target": 5}, "`num_target` must be two numbers.*Received: num_target=5"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"first_batch": -1}, "`first_batch` must be at least 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        image_completion_tasks(numbered(), **arguments)
    if not {"batch_size", "first_batch"} & set(arguments):
        with pytest.raises(ValueError, match=message):
            held_out_image_completion_tasks(numbered(), **arguments)


def test_images_are_checked():
    pixels = np.zeros([2, 3, 3, 1], np.uint8)
    with pytest.raises(TypeError, match=r"`images` must be Images. Received: ndarray"):
        image_completion_tasks(pixels)
    with pytest.raises(TypeError, match=r"`pixels` must be uint8. Received: dtype float64"):
        Images(pixels / 255, [0, 0])
    with pytest.raises(TypeError, match=r"`labels` must hold integers"):
        Images(pixels, np.array(["a", "b"]))
    for wrong in (pixels[..., 0], pixels[:0], pixels[:, :1], np.repeat(pixels, 2, axis=-1)):
        with pytest.raises(ValueError, match=r"`pixels` must have the shape \[n, H, W, C\]"):
            Images(wrong, np.zeros(len(wrong), int))
    with pytest.raises(ValueError, match=r"`labels` must have the shape \[n\] = \[2\]"):
        Images(pixels, [0])
    with pytest.raises(ValueError, match=r"at most max_value=16. Received: 17"):
        Images(pixels + np.uint8(17), [0, 0], max_value=16)
    assert Images(pixels, [1, 2]).take(1).labels.tolist() == [1]


# Held-out sequences.


def test_held_out_sequences_have_their_own_numbers_of_points():
    images = dataclasses.replace(numbered(7), name="seven", split="test")
    tasks = held_out_image_completion_tasks(
        images, 60, seed=2, num_context=(0, 8), num_target=(1, 10)
    )
    assert isinstance(tasks, TaskSet) and len(tasks) == 60
    assert set(tasks.num_context) == set(range(9)) and set(tasks.num_target) == set(range(1, 11))
    assert tasks.x.shape[1] == (tasks.num_context + tasks.num_target).max()
    assert tasks.hyperparameters == {}
    about = json.loads(json.dumps(tasks.about))
    rows = about.pop("image_rows")
    assert about == {
        "kind": "image_completion",
        "source": "seven",
        "split": "test",
        "image_shape": [5, 4, 1],
        "num_images": 7,
        "classes": [0, 1, 2],
        "num_sequences": 60,
        "seed": 2,
        "num_context": [0, 8],
        "num_target": [1, 10],
    }
    for row, number in enumerate(rows):
        used = tasks.num_context[row] + tasks.num_target[row]
        values = values_of(images, tasks.y[row, :used, 0])
        assert (values // 20 == number).all() and len(set(values)) == used
        laid = picture(tasks.x[row, :used], tasks.y[row, :used], (5, 4))
        there = np.isfinite(laid)
        assert (values_of(images, laid[there]) == images.pixels[number][there]).all()
    assert all(sorted(rows[7 * i : 7 * i + 7]) == list(range(7)) for i in range(8))
    # A smaller set is the beginning of a larger one; another seed gives another set.
    small = held_out_image_completion_tasks(
        images, 9, seed=2, num_context=(0, 8), num_target=(1, 10)
    )
    width = small.x.shape[1]
    np.testing.assert_array_equal(small.x, tasks.x[:9, :width])
    np.testing.assert_array_equal(small.y, tasks.y[:9, :width])
    np.testing.assert_array_equal(small.num_target, tasks.num_target[:9])
    other = held_out_image_completion_tasks(
        images, 60, seed=3, num_context=(0, 8), num_target=(1, 10)
    )
    assert other.num_context.tolist() != tasks.num_context.tolist()
    assert sorted(held_out_image_completion_tasks(images).about["image_rows"]) == list(range(7))


# Whole images and pictures.


@pytest.mark.parametrize("targets", ["unobserved", "all"])
@pytest.mark.parametrize("channels", [1, 3])
def test_whole_images(targets, channels):
    images = numbered(4, 5, 4, channels)
    inputs, y_target = whole_image_tasks(images, num_context=6, targets=targets, seed=1).batch(
        range(4)
    )
    assert inputs["x_context"].shape == (4, 6, 2)
    assert y_target.shape == (4, 14 if targets == "unobserved" else 20, channels)
    given = picture(inputs["x_context"], inputs["y_context"], images.image_shape)
    asked = picture(inputs["x_target"], y_target, images.image_shape)
    assert given.dtype == np.float32 and given.shape == images.pixels.shape
    there = np.isfinite(given)
    assert (there.all(axis=-1).sum(axis=(1, 2)) == 6).all()
    assert len({row.tobytes() for row in there}) == 4
    if targets == "unobserved":
        assert (there ^ np.isfinite(asked)).all()
    whole = np.where(there, given, asked) if targets == "unobserved" else asked
    assert (values_of(images, whole) == images.pixels).all()
    assert (values_of(images, given[there]) == images.pixels[there]).all()
    # An image has the same context whatever comes after it.
    first = whole_image_tasks(images.take(2), num_context=6, targets=targets, seed=1)
    np.testing.assert_array_equal(first.batch([0, 1])[0]["x_context"], inputs["x_context"][:2])


@pytest.mark.parametrize("targets", ["unobserved", "all"])
def test_whole_images_from_masks_of_different_sizes(targets):
    images = numbered(3)
    observed = np.zeros([3, 5, 4], bool)
    observed[1, :2], observed[2, 2, 3] = True, True
    tasks = whole_image_tasks(images, observed=observed, targets=targets)
    assert tasks.num_context.tolist() == [0, 8, 1]
    inputs, y_target = tasks.batch([0, 1, 2])
    given = picture(inputs["x_context"], inputs["y_context"], (5, 4), mask=inputs["context_mask"])
    assert (np.isfinite(given[..., 0]) == observed).all()
    asked = picture(inputs["x_target"], y_target, (5, 4), mask=inputs["target_mask"])
    expected = ~observed if targets == "unobserved" else np.ones_like(observed)
    assert (np.isfinite(asked[..., 0]) == expected).all()
    assert (values_of(images, asked[expected]) == images.pixels[expected]).all()
    # Targets come row after row.
    order = inputs["x_target"][0] @ [100, 1]
    assert (np.diff(order) > 0).all()
    one = whole_image_tasks(images, observed=observed[1], targets=targets)
    assert one.num_context.tolist() == [8, 8, 8]


def test_everything_may_be_given_where_all_is_asked():
    images = numbered(2)
    tasks = whole_image_tasks(images, num_context=20, targets="all")
    assert (tasks.num_context.tolist(), tasks.num_target.tolist()) == ([20, 20], [20, 20])
    with pytest.raises(ValueError, match=r"`num_context` must be at most 19"):
        whole_image_tasks(images, num_context=20)
    observed = np.ones([2, 5, 4], bool)
    observed[0, 0, 0] = False
    with pytest.raises(ValueError, match=r"`observed` must leave a pixel.*none in image 1"):
        whole_image_tasks(images, observed=observed)
    with pytest.raises(ValueError, match=r"must be bool of the shape .* = .2, 5, 4."):
        whole_image_tasks(images, observed=observed[:, :4])
    with pytest.raises(ValueError, match=r"must be given. Received: none"):
        whole_image_tasks(images)
    with pytest.raises(ValueError, match=r"must be given. Received: both"):
        whole_image_tasks(images, 3, observed)


def test_pictures_of_samples_and_of_wrong_points():
    tasks = whole_image_tasks(numbered(2), num_context=5)
    inputs, _ = tasks.batch([0, 1])
    samples = np.arange(3 * 2 * 15 * 3, dtype=float).reshape(3, 2, 15, 3)
    laid = picture(inputs["x_target"], samples, (5, 4))
    assert laid.shape == (3, 2, 5, 4, 3) and laid.dtype == np.float64
    alone = picture(inputs["x_target"][1], samples[2, 1], (5, 4, 3))
    np.testing.assert_array_equal(laid[2, 1], alone)
    assert np.isfinite(laid).sum() == samples.size
    for x in (0.5, 1.5, np.nan):
        with pytest.raises(ValueError, match=r"middle of a pixel .* 5 rows and 4 columns.*\[0.0, "):
            picture([[0.0, x]], [[1.0]], (5, 4))
    assert np.isnan(picture([[0.0, np.nan]], [[1.0]], (5, 4), mask=[False])).all()
    for values, shape in ((samples[..., :4, :], (5, 4)), (samples, (5, 4, 1)), (samples, (5,))):
        with pytest.raises(ValueError, match=r"must have the shapes"):
            picture(inputs["x_target"], values, shape)


def test_numbers_may_be_numpys():
    images = numbered()
    settings = {"num_context": (2, 5), "num_target": (3, 6)}
    wanted = batches(images, batch_size=200, seed=3, first_batch=4, num_batches=1, **settings)
    numbers = {"seed": np.int8(3), "first_batch": np.int8(4), "num_batches": np.int64(1)}
    drawn = batches(images, batch_size=np.uint8(200), **numbers, **settings)
    for ours, theirs in zip(drawn[0], wanted[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    held_out = held_out_image_completion_tasks(images, np.int32(4), np.uint64(2), **settings)
    whole = whole_image_tasks(images, num_context=np.int64(3), seed=np.int32(1))
    for tasks in (held_out, whole):
        assert json.loads(json.dumps(tasks.about)) == tasks.about
    assert type(dataclasses.replace(images, max_value=np.int64(255)).max_value) is int
