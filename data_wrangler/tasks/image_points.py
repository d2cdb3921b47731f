"""The pixels of an image as points, and points laid back into images.

x is where a pixel lies, row and column, each from -1 to 1, and y its value, from -0.5 to 0.5 in
each channel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from taylorformer.data_wrangler.tasks.image_set import Images

# How far from the middle of its pixel a point may lie, in pixels: float32 is nearer than this.
_OFF_CENTRE = 0.01


class ImagePoints:
    """The pixels of images as points.

    Args:
        images: n of them.

    Raises:
        TypeError: no `Images`.
    """

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
        """Returns x `[B, N, 2]` and y `[B, N, C]` of the images `[B]` at the pixels `[B, N]`."""
        values = self._pixels[rows[:, np.newaxis], pixels]
        y = values / np.float32(self.images.max_value) - np.float32(0.5)
        return self._x[pixels], y

    def about(self) -> dict[str, Any]:
        """Returns where the images come from, as JSON can hold it."""
        return {
            "source": self.images.name,
            "split": self.images.split,
            "image_shape": list(self.images.image_shape),
            "num_images": len(self.images),
            "classes": np.unique(self.images.labels).tolist(),
        }


def picture(x: Any, values: Any, image_shape: Sequence[int], mask: Any = None) -> np.ndarray:
    """Lays the points of sequences back into images.

    Example:
        >>> from taylorformer.data_wrangler import load_images, whole_image_tasks
        >>> tasks = whole_image_tasks(load_images("digits", "test").take(2), num_context=20)
        >>> inputs, _ = tasks.batch([0, 1])
        >>> pictures = picture(inputs["x_context"], inputs["y_context"], (8, 8, 1))
        >>> pictures.shape, np.isfinite(pictures).sum(axis=(1, 2, 3)).tolist()
        ((2, 8, 8, 1), [20, 20])

    Args:
        x: `[..., N, 2]`, row and column of pixels from -1 to 1, repeated for the leading axes that
            only `values` has, such as S of samples.
        values: `[..., N, C]`: y, a mean, a scale, ... of these pixels. y + 0.5 is what plotting
            takes, from 0 (black) to 1.
        image_shape: `(H, W)` or `(H, W, C)`.
        mask: `[..., N]` bool, False at points to leave out, repeated like x. None: none.

    Returns:
        `[..., H, W, C]`, NaN where no point lies; the last one counts of several points at one
        pixel.

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
    position = (x[mask].astype(np.float64) + 1) / 2 * (size - 1)
    pixel = np.clip(np.rint(np.nan_to_num(position)), 0, size - 1).astype(np.int64)
    is_off = ~(np.abs(position - pixel) <= _OFF_CENTRE).all(axis=-1)
    if is_off.any():
        raise ValueError(
            f"`x` must be the middle of a pixel of an image of {H} rows and {W} columns. "
            f"Received: {x[mask][is_off][0].tolist()}"
        )
    dtype = np.result_type(values.dtype, np.float32)
    pictures = np.full((*shape[:-1], H, W, values.shape[-1]), np.nan, dtype)
    leading = np.nonzero(mask)[:-1]
    pictures[(*leading, pixel[:, 0], pixel[:, 1])] = values[mask]
    return pictures
