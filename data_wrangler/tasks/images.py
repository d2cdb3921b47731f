"""Image completion tasks: a few pixels of an image are given, others are to be predicted.

The pixels of an image are its points: x is where a pixel lies, row and column, each from -1 to 1,
and y its value, from -0.5 to 0.5 in each channel. Source: section "Image completion" of the paper's
appendix.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.checks import (
    check_choice,
    check_ends,
    check_integer,
    check_optional_integer,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, numbered_generator
from taylorformer.data_wrangler.tasks.drawn_batches import drawn_batches
from taylorformer.data_wrangler.tasks.image_set import Images
from taylorformer.data_wrangler.tasks.task_set import TaskSet

if TYPE_CHECKING:
    import tensorflow as tf

NUM_CONTEXT = (6, 200)
NUM_TARGET = (3, 197)

# Streams of random numbers: what is drawn from one never comes from another.
_TRAINING, _TRAINING_ORDER, _HELD_OUT, _HELD_OUT_ORDER, _WHOLE = range(5)
# How far from the middle of its pixel a point may lie, in pixels: float32 is nearer than this.
_OFF_CENTRE = 0.01


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
    them, in an order of its own for each pass. Batch k is a function of `seed` and k alone, so a
    run that was stopped goes on with `first_batch`.

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
        num_batches: how many batches to give. None: no end.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)` of the data contract, float32, D_x = 2,
        D_y = C, without masks: `x_context` `[B, N_C, 2]`, `y_context` `[B, N_C, C]`, `x_target`
        `[B, N_T, 2]`, `y_target` `[B, N_T, C]`. N_C and N_T are None in its `element_spec`, so
        that no graph is traced anew.

    Raises:
        TypeError: no `Images`, or a number of the wrong kind.
        ValueError: numbers that are out of range, or more points than an image has.
    """
    points = _Points(images)
    lengths = _Lengths(points.num_pixels, num_context, num_target)
    check_integer("batch_size", batch_size, 1)
    check_integer("seed", seed, 0, LARGEST_SEED)
    order = _Order(seed, _TRAINING_ORDER, len(images))

    def draw(number: int) -> list[np.ndarray]:
        rng = numbered_generator(seed, _TRAINING, number)
        (N_C,), (N_T,) = lengths.draw(rng, 1)
        rows = order.rows(number * batch_size, batch_size)
        x, y = points.at(rows, _draw_pixels(rng, batch_size, points.num_pixels)[:, : N_C + N_T])
        return [x[:, :N_C], y[:, :N_C], x[:, N_C:], y[:, N_C:]]

    return drawn_batches(draw, batch_size, 2, points.num_channels, first_batch, num_batches)


def held_out_image_completion_tasks(
    images: Images,
    num_sequences: int | None = None,
    seed: int = 0,
    num_context: tuple[int, int] | None = None,
    num_target: tuple[int, int] | None = None,
) -> TaskSet:
    """Draws held-out sequences, each with its own N_C and N_T.

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
    points = _Points(images)
    lengths = _Lengths(points.num_pixels, num_context, num_target)
    count = check_optional_integer("num_sequences", num_sequences, 1) or len(images)
    check_integer("seed", seed, 0, LARGEST_SEED)
    rows = _Order(seed, _HELD_OUT_ORDER, len(images)).rows(0, count)
    most = lengths.context[1] + lengths.target[1]
    drawn = []
    for number in range(count):
        rng = numbered_generator(seed, _HELD_OUT, number)
        N_C, N_T = lengths.draw(rng, 1)
        pixels = _draw_pixels(rng, 1, points.num_pixels)[:, :most]
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
    """Makes the task "complete the whole image" of each image.

    `whole_image_tasks(...).batch([0, 1])` is a batch of the first two; `picture` lays what a model
    says about it back into images.

    Args:
        images: what to complete, n of them.
        num_context: N_C, how many pixels of each image are given, drawn at random.
        observed: `[H, W]` or `[n, H, W]` bool, True where a pixel is given; instead of
            `num_context`.
        targets: "unobserved": the pixels that are not given; "all": every pixel, also those that
            are given, so that a picture is made of predictions alone. Row after row, from the top
            left.
        seed: of what is drawn, 0 to 2^63 - 1; a function of it and of an image's number.

    Returns:
        One sequence an image, in their order, float32.

    Raises:
        TypeError: no `Images`, or `num_context` that is no integer.
        ValueError: both or none of `num_context` and `observed`, a mask of another shape, or one
            that leaves no target.
    """
    points = _Points(images)
    check_choice("targets", targets, ("unobserved", "all"))
    check_integer("seed", seed, 0, LARGEST_SEED)
    if (num_context is None) == (observed is None):
        raise ValueError(
            "one of `num_context` and `observed` must be given. Received: "
            f"{'none' if observed is None else 'both'}"
        )
    count, num_pixels = len(images), points.num_pixels
    most = num_pixels - (targets == "unobserved")
    if num_context is not None:
        num_context = check_integer("num_context", num_context, 0, most)
        given = np.zeros([count, num_pixels], bool)
        for number in range(count):
            drawn = _draw_pixels(numbered_generator(seed, _WHOLE, number), 1, num_pixels)[0]
            given[number, drawn[:num_context]] = True
    else:
        given = _given(observed, images)
    N_C = given.sum(axis=1)
    if N_C.max() > most:
        raise ValueError(
            f"`observed` must leave a pixel to predict. Received: none in image {int(N_C.argmax())}"
        )
    # The given pixels first, then the others, each in the order of the image.
    pixels = np.argsort(~given, axis=1, kind="stable")
    N_T = num_pixels - N_C
    if targets == "all":
        N_T = np.full(count, num_pixels)
        column = np.arange(N_C.max() + num_pixels)
        place = column - N_C[:, np.newaxis]
        context = pixels[:, np.minimum(column, num_pixels - 1)]
        pixels = np.where(place < 0, context, np.minimum(place, num_pixels - 1))
    x, y = points.at(np.arange(count), pixels)
    about = {**points.about(), "kind": "whole_image", "targets": targets, "seed": seed}
    if num_context is not None:
        about["num_context"] = num_context
    return TaskSet(x, y, N_C, N_T, about=about)


def picture(x: Any, values: Any, image_shape: Sequence[int], mask: Any = None) -> np.ndarray:
    """Lays the points of sequences back into images.

    Example:
        >>> from taylorformer.data_wrangler import load_images
        >>> tasks = whole_image_tasks(load_images("digits", "test").take(2), num_context=20)
        >>> inputs, _ = tasks.batch([0, 1])
        >>> pictures = picture(inputs["x_context"], inputs["y_context"], (8, 8, 1))
        >>> pictures.shape, np.isfinite(pictures).sum(axis=(1, 2, 3)).tolist()
        ((2, 8, 8, 1), [20, 20])

    Args:
        x: `[..., N, 2]`, row and column of pixels from -1 to 1, repeated for the leading axes that
            only `values` has, such as S of samples.
        values: `[..., N, C]`: y, a mean, a scale, ... of these pixels. y + 0.5 is what plotting
            takes, from 0 = black to 1.
        image_shape: `(H, W)` or `(H, W, C)`.
        mask: `[..., N]` bool, False at points to leave out, repeated like x. None: none.

    Returns:
        `[..., H, W, C]`, NaN where no point lies; of several points in one place the last one
        counts.

    Raises:
        ValueError: shapes that do not fit, or an x that is not the middle of a pixel.
    """
    x, values = np.asarray(x), np.asarray(values)
    mask = np.ones(x.shape[:-1], bool) if mask is None else np.asarray(mask, bool)
    shape, C = values.shape[:-1], values.shape[-1:]
    try:
        x, mask = np.broadcast_to(x, (*shape, 2)), np.broadcast_to(mask, shape)
        H, W, *channels = image_shape
        fits = len(shape) > 0 and tuple(channels) in ((), C)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "`x`, `values` and `mask` must have the shapes [..., N, 2], [..., N, C] and [..., N], "
            f"and `image_shape` be (H, W) or (H, W, C). Received: {list(x.shape)}, "
            f"{list(values.shape)}, {list(mask.shape)} and image_shape={tuple(image_shape)}"
        )
    size = np.array([H, W])
    place = (x[mask].astype(np.float64) + 1) / 2 * (size - 1)
    nearest = np.clip(np.rint(np.nan_to_num(place)), 0, size - 1).astype(np.int64)
    off = ~(np.abs(place - nearest) <= _OFF_CENTRE).all(axis=-1)
    if off.any():
        raise ValueError(
            f"`x` must be the middle of a pixel of an image of {H} rows and {W} columns. "
            f"Received: {x[mask][off][0].tolist()}"
        )
    dtype = np.result_type(values.dtype, np.float32)
    pictures = np.full((*shape[:-1], H, W, values.shape[-1]), np.nan, dtype)
    leading = np.nonzero(mask)[:-1]
    pictures[(*leading, nearest[:, 0], nearest[:, 1])] = values[mask]
    return pictures


def _given(observed: Any, images: Images) -> np.ndarray:
    observed = np.asarray(observed)
    count, (H, W, _) = len(images), images.image_shape
    if observed.dtype != bool or observed.shape not in ((H, W), (count, H, W)):
        raise ValueError(
            f"`observed` must be bool of the shape [H, W] or [n, H, W] = {[count, H, W]}. "
            f"Received: dtype {observed.dtype}, shape {list(observed.shape)}"
        )
    return np.broadcast_to(observed, (count, H, W)).reshape(count, H * W)


def _range(name: str, value: Any, minimum: int, maximum: int) -> tuple[int, int]:
    low, high = check_ends(name, value)
    low = check_integer(name, low, minimum)
    return low, check_integer(name, high, low, maximum)


def _cut(ends: tuple[int, int], most: int) -> tuple[int, int]:
    low, high = ends
    return min(low, most), min(high, most)


def _draw_pixels(rng: np.random.Generator, size: int, num_pixels: int) -> np.ndarray:
    """Draws orders of all pixels, `[size, num_pixels]`."""
    return np.argsort(rng.random((size, num_pixels)), axis=1)


class _Points:
    """The pixels of images as points."""

    def __init__(self, images: Images) -> None:
        if not isinstance(images, Images):
            raise TypeError(f"`images` must be Images. Received: {type(images).__name__}")
        H, W, C = images.image_shape
        self.images = images
        self.num_pixels, self.num_channels = H * W, C
        grid = np.meshgrid(np.linspace(-1, 1, H), np.linspace(-1, 1, W), indexing="ij")
        self._x = np.stack(grid, axis=-1).reshape(H * W, 2).astype(np.float32)
        self._pixels = images.pixels.reshape(len(images), H * W, C)

    def at(self, rows: np.ndarray, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gives x `[B, N, 2]` and y `[B, N, C]` of the images `[B]` at the pixels `[B, N]`."""
        values = self._pixels[rows[:, np.newaxis], pixels]
        y = values / np.float32(self.images.max_value) - np.float32(0.5)
        return self._x[pixels], y

    def about(self) -> dict[str, Any]:
        return {
            "source": self.images.name,
            "split": self.images.split,
            "image_shape": list(self.images.image_shape),
            "num_images": len(self.images),
            "classes": np.unique(self.images.labels).tolist(),
        }


class _Order:
    """An endless row of images: each once in a pass, every pass in an order of its own."""

    def __init__(self, seed: int, stream: int, count: int) -> None:
        self.count = count

        @functools.lru_cache(maxsize=4)
        def permutation(number: int) -> np.ndarray:
            return numbered_generator(seed, stream, number).permutation(count)

        self._permutation = permutation

    def rows(self, start: int, size: int) -> np.ndarray:
        """Gives the images at the places `start` to `start + size - 1`, `[size]`."""
        passes, places = np.divmod(np.arange(start, start + size), self.count)
        rows = np.empty(size, np.int64)
        for number in np.unique(passes):
            inside = passes == number
            rows[inside] = self._permutation(int(number))[places[inside]]
        return rows


class _Lengths:
    """How many points are given and asked for."""

    def __init__(
        self,
        num_pixels: int,
        num_context: tuple[int, int] | None,
        num_target: tuple[int, int] | None,
    ) -> None:
        context = target = None
        if num_context is not None:
            context = _range("num_context", num_context, 0, num_pixels - 1)
        if num_target is not None:
            target = _range("num_target", num_target, 1, num_pixels)
        if context is None:
            whole = NUM_CONTEXT[1] + NUM_TARGET[1]
            share = num_pixels * NUM_CONTEXT[1] // whole
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
        N_C = rng.integers(*self.context, size=size, endpoint=True)
        return N_C, rng.integers(*self.target, size=size, endpoint=True)

    def about(self) -> dict[str, Any]:
        return {"num_context": list(self.context), "num_target": list(self.target)}
