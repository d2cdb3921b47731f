"""Image completion tasks: some pixels of an image are the context, others the targets.

Source: section "Image completion" of the paper's appendix.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_optional_integer,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, numbered_generator
from taylorformer.data_wrangler.tasks.drawn_batches import drawn_batches, split_points
from taylorformer.data_wrangler.tasks.image_points import ImagePoints
from taylorformer.data_wrangler.tasks.image_set import Images
from taylorformer.data_wrangler.tasks.lengths import check_lengths, draw_lengths
from taylorformer.data_wrangler.tasks.task_set import TaskSet

if TYPE_CHECKING:
    import tensorflow as tf

# The ends of N_C and N_T in the paper.
NUM_CONTEXT = (6, 200)
NUM_TARGET = (3, 197)

# Streams of random numbers: what is drawn from one never comes from another.
_TRAINING, _TRAINING_ORDER, _HELD_OUT, _HELD_OUT_ORDER, _WHOLE = range(5)
# Passes over the images whose orders stay in memory: batches that are made at the same time lie in
# neighbouring passes.
_KEPT_PASSES = 4


def image_completion_tasks(
    images: Images,
    batch_size: int = 64,
    seed: int = 0,
    num_context: tuple[int, int] | None = None,
    num_target: tuple[int, int] | None = None,
    first_batch: int = 0,
    num_batches: int | None = None,
) -> "tf.data.Dataset":
    """Makes an endless data set of training batches, drawn on the fly.

    All sequences of a batch have the same N_C and the same N_T. Context and targets of a sequence
    are different pixels of one image, drawn at random. Every image comes once in each pass over
    them, and each pass has another random order. Batch k is a function of `seed` and k alone, so a
    run that was stopped continues with `first_batch`.

    Example:
        >>> from taylorformer.data_wrangler import load_images
        >>> dataset = image_completion_tasks(load_images("digits"), 4, num_context=(20, 20))
        >>> inputs, y_target = next(iter(dataset))
        >>> inputs["x_context"].shape.as_list(), inputs["y_context"].shape.as_list()
        ([4, 20, 2], [4, 20, 1])

    Args:
        images: what to complete.
        batch_size: B.
        seed: of everything that is drawn, 0 to 2^63 - 1.
        num_context: the smallest and the largest N_C; each number between is as likely. None: the
            paper's 6 to 200. An image of less than 397 pixels is too small for that: there the
            largest N_C and N_T are 200 / 397 of its pixels, rounded down, and the rest, and the
            smallest ones at most that.
        num_target: the same for N_T. None: the paper's 3 to 197, cut in the same way, or to what a
            `num_context` that you pass leaves.
        first_batch: how many batches of the endless row to leave out.
        num_batches: how many batches to draw. None: no end.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)` of the data contract, float32, D_x = 2,
        D_y = C, without masks: `x_context` `[B, N_C, 2]`, `y_context` `[B, N_C, C]`, `x_target`
        `[B, N_T, 2]`, `y_target` `[B, N_T, C]`. N_C and N_T are None in its `element_spec`, so
        that no graph is traced anew.

    Raises:
        TypeError: no `Images`, or a number of the wrong kind.
        ValueError: numbers that are out of range, or more points than an image has.
    """
    points = ImagePoints(images)
    lengths = _Lengths(points.num_pixels, num_context, num_target)
    batch_size = check_integer("batch_size", batch_size, 1)
    seed = check_integer("seed", seed, 0, LARGEST_SEED)
    order = _Order(seed, _TRAINING_ORDER, len(images))

    def draw(number: int) -> dict[str, np.ndarray]:
        rng = numbered_generator(seed, _TRAINING, number)
        (N_C,), (N_T,) = lengths.draw(rng, 1)
        rows = order.rows(number * batch_size, batch_size)
        x, y = points.at(rows, _draw_pixels(rng, batch_size, points.num_pixels)[:, : N_C + N_T])
        return split_points(x, y, N_C)

    return drawn_batches(draw, batch_size, 2, points.num_channels, first_batch, num_batches)


def held_out_image_completion_tasks(
    images: Images,
    num_sequences: int | None = None,
    seed: int = 0,
    num_context: tuple[int, int] | None = None,
    num_target: tuple[int, int] | None = None,
) -> TaskSet:
    """Draws held-out sequences, with an N_C and an N_T drawn for each of them.

    Example:
        >>> from taylorformer.data_wrangler import load_images
        >>> tasks = held_out_image_completion_tasks(load_images("digits", "test"), 20, seed=0)
        >>> tasks.x.shape[2], tasks.y.shape[2], tasks.about["image_shape"]
        (2, 1, [8, 8, 1])

    Args:
        images: of a test or validation part, which training does not see.
        num_sequences: n. A larger set begins with the smaller ones of the same seed; no image comes
            twice before all have come. None: one of each image.
        seed: of everything that is drawn, 0 to 2^63 - 1.
        num_context: as in `image_completion_tasks`.
        num_target: as in `image_completion_tasks`.

    Returns:
        The sequences in float32; N is the largest N_C + N_T among them. `about` holds the
        arguments, where the images come from, and in "image_rows" which of them each sequence
        shows.

    Raises:
        TypeError: no `Images`, or a number of the wrong kind.
        ValueError: numbers that are out of range, or more points than an image has.
    """
    points = ImagePoints(images)
    lengths = _Lengths(points.num_pixels, num_context, num_target)
    count = check_optional_integer("num_sequences", num_sequences, 1) or len(images)
    seed = check_integer("seed", seed, 0, LARGEST_SEED)
    rows = _Order(seed, _HELD_OUT_ORDER, len(images)).rows(0, count)
    largest = lengths.context[1] + lengths.target[1]
    drawn = []
    for number in range(count):
        rng = numbered_generator(seed, _HELD_OUT, number)
        N_C, N_T = lengths.draw(rng, 1)
        pixels = _draw_pixels(rng, 1, points.num_pixels)[:, :largest]
        drawn.append((N_C, N_T, pixels.astype(np.int32)))
    num_contexts, num_targets, pixels = (
        np.concatenate(column) for column in zip(*drawn, strict=True)
    )
    x, y = points.at(rows, pixels[:, : (num_contexts + num_targets).max()])
    return TaskSet(
        x,
        y,
        num_contexts,
        num_targets,
        about={
            **points.about(),
            "kind": "image_completion",
            "num_sequences": count,
            "seed": seed,
            **lengths.about(),
            "image_rows": rows.tolist(),
        },
    )


def whole_image_tasks(
    images: Images,
    num_context: int | None = None,
    observed: Any = None,
    targets: str = "unobserved",
    seed: int = 0,
) -> TaskSet:
    """Makes sequences of which each is one whole image, some of its pixels the context.

    `picture` lays predictions of their targets back into images.

    Example:
        >>> from taylorformer.data_wrangler import load_images
        >>> tasks = whole_image_tasks(load_images("digits", "test").take(2), num_context=20)
        >>> inputs, y_target = tasks.batch([0, 1])
        >>> inputs["x_context"].shape, y_target.shape
        ((2, 20, 2), (2, 44, 1))

    Args:
        images: what to complete, n of them.
        num_context: N_C, how many pixels of each image are given, drawn at random.
        observed: `[H, W]` or `[n, H, W]` bool, True where a pixel is given; instead of
            `num_context`.
        targets: "unobserved": the pixels that are not given; "all": every pixel, also those that
            are given, so that a picture is made of predictions alone. Row after row, from the top
            left.
        seed: of the pixels that are drawn, 0 to 2^63 - 1. Those of image k depend on `seed` and k
            alone.

    Returns:
        One sequence an image, in their order, float32.

    Raises:
        TypeError: no `Images`, or `num_context` that is no integer.
        ValueError: both or none of `num_context` and `observed`, a mask of another shape, or one
            that leaves no target.
    """
    points = ImagePoints(images)
    targets = check_choice("targets", targets, ("unobserved", "all"))
    seed = check_integer("seed", seed, 0, LARGEST_SEED)
    if (num_context is None) == (observed is None):
        raise ValueError(
            "one of `num_context` and `observed` must be given. Received: "
            f"{'none' if observed is None else 'both'}"
        )
    count, num_pixels = len(images), points.num_pixels
    largest = num_pixels - (targets == "unobserved")
    if num_context is not None:
        num_context = check_integer("num_context", num_context, 0, largest)
        is_context = np.zeros([count, num_pixels], bool)
        for number in range(count):
            drawn = _draw_pixels(numbered_generator(seed, _WHOLE, number), 1, num_pixels)[0]
            is_context[number, drawn[:num_context]] = True
    else:
        is_context = _check_observed(observed, images)
    N_C = is_context.sum(axis=1)
    if N_C.max() > largest:
        raise ValueError(
            f"`observed` must leave a pixel to predict. Received: none in image {int(N_C.argmax())}"
        )
    # The context first, then the other pixels, each in the order of the image.
    pixels = np.argsort(~is_context, axis=1, kind="stable")
    N_T = num_pixels - N_C
    if targets == "all":
        # All pixels after the context; sequences with a smaller context end with unused points.
        N_T = np.full(count, num_pixels)
        column = np.arange(N_C.max() + num_pixels)
        target = column - N_C[:, np.newaxis]
        context = pixels[:, np.minimum(column, num_pixels - 1)]
        pixels = np.where(target < 0, context, np.minimum(target, num_pixels - 1))
    x, y = points.at(np.arange(count), pixels)
    about = {**points.about(), "kind": "whole_image", "targets": targets, "seed": seed}
    if num_context is not None:
        about["num_context"] = num_context
    return TaskSet(x, y, N_C, N_T, about=about)


def _check_observed(observed: Any, images: Images) -> np.ndarray:
    """Returns a mask of pixels as `[n, H W]`; raises if it is none."""
    observed = np.asarray(observed)
    count, (H, W, _) = len(images), images.image_shape
    if observed.dtype != bool or observed.shape not in ((H, W), (count, H, W)):
        raise ValueError(
            f"`observed` must be bool of the shape [H, W] or [n, H, W] = {[count, H, W]}. "
            f"Received: dtype {observed.dtype}, shape {list(observed.shape)}"
        )
    return np.broadcast_to(observed, (count, H, W)).reshape(count, H * W)


def _draw_pixels(rng: np.random.Generator, size: int, num_pixels: int) -> np.ndarray:
    """Draws orders of all pixels, `[size, num_pixels]`."""
    return np.argsort(rng.random((size, num_pixels)), axis=1)


class _Order:
    """An endless row of images: each once in a pass, and every pass in another random order."""

    def __init__(self, seed: int, stream: int, count: int) -> None:
        self.count = count

        @functools.lru_cache(maxsize=_KEPT_PASSES)
        def permutation(number: int) -> np.ndarray:
            return numbered_generator(seed, stream, number).permutation(count)

        self._permutation = permutation

    def rows(self, start: int, size: int) -> np.ndarray:
        """Returns the images at the positions `start` to `start + size - 1`, `[size]`."""
        passes, positions = np.divmod(np.arange(start, start + size), self.count)
        rows = np.empty(size, np.int64)
        for number in np.unique(passes):
            in_pass = passes == number
            rows[in_pass] = self._permutation(int(number))[positions[in_pass]]
        return rows


def _cut(ends: tuple[int, int], maximum: int) -> tuple[int, int]:
    smallest, largest = ends
    return min(smallest, maximum), min(largest, maximum)


class _Lengths:
    """The ends of N_C and of N_T."""

    def __init__(
        self,
        num_pixels: int,
        num_context: tuple[int, int] | None,
        num_target: tuple[int, int] | None,
    ) -> None:
        context = target = None
        if num_context is not None:
            context = check_lengths("num_context", num_context, 0, num_pixels - 1)
        if num_target is not None:
            target = check_lengths("num_target", num_target, 1, num_pixels)
        if context is None:
            # The paper's share of the context, where an image is smaller than the paper's.
            share = num_pixels * NUM_CONTEXT[1] // (NUM_CONTEXT[1] + NUM_TARGET[1])
            context = _cut(NUM_CONTEXT, share if target is None else num_pixels - target[1])
        if target is None:
            target = _cut(NUM_TARGET, num_pixels - context[1])
        if context[1] + target[1] > num_pixels:
            raise ValueError(
                "the largest `num_context` and `num_target` must be together at most the "
                f"H W = {num_pixels} pixels of an image. Received: {context[1]} and {target[1]}"
            )
        self.context, self.target = context, target

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws N_C and N_T, `[size]` each."""
        return draw_lengths(rng, self.context, size), draw_lengths(rng, self.target, size)

    def about(self) -> dict[str, Any]:
        """Returns what JSON can hold of them."""
        return {"num_context": list(self.context), "num_target": list(self.target)}
