"""Labelled images of one shape, and how to load those of a named source."""

import dataclasses
from collections.abc import Iterable
from os import PathLike

import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_integer
from taylorformer.data_wrangler.tasks.image_sources import PARTS, WHOLE, find_source
from taylorformer.data_wrangler.tasks.image_stores import find_store

SPLITS = (*PARTS, WHOLE)


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """n images of one shape.

    Example:
        >>> pixels = np.zeros([5, 28, 28, 1], np.uint8)
        >>> images = Images(pixels, labels=[0, 1, 2, 3, 4], name="black")
        >>> len(images), images.image_shape, images.take(2).labels.tolist()
        (5, (28, 28, 1), [0, 1])

    Args:
        pixels: `[n, H, W, C]` uint8, row 0 at the top, C = 1 or 3; H and W at least 2.
        labels: `[n]` integers, the class of each image.
        name: where they come from.
        split: which part of it they are.
        max_value: the value of a fully bright pixel; 0 is black.

    Raises:
        TypeError: `pixels` or `labels` of another dtype.
        ValueError: shapes that do not fit, no image, or a pixel above `max_value`.
    """

    pixels: np.ndarray
    labels: np.ndarray
    name: str = "images"
    split: str = "all"
    max_value: int = 255

    def __post_init__(self) -> None:
        pixels, labels = np.asarray(self.pixels), np.asarray(self.labels)
        if pixels.dtype != np.uint8:
            raise TypeError(f"`pixels` must be uint8. Received: dtype {pixels.dtype}")
        if labels.dtype.kind not in "iu":
            raise TypeError(f"`labels` must hold integers. Received: dtype {labels.dtype}")
        shape = pixels.shape
        if pixels.ndim != 4 or not len(pixels) or min(shape[1:3]) < 2 or shape[3] not in (1, 3):
            raise ValueError(
                "`pixels` must have the shape [n, H, W, C], n at least 1, H and W at least 2, "
                f"C 1 or 3. Received: {list(shape)}"
            )
        if labels.shape != shape[:1]:
            raise ValueError(
                f"`labels` must have the shape [n] = [{shape[0]}]. Received: {list(labels.shape)}"
            )
        max_value = check_integer("max_value", self.max_value, 1, 255)
        object.__setattr__(self, "max_value", max_value)
        if pixels.max() > self.max_value:
            raise ValueError(
                f"`pixels` must be at most max_value={self.max_value}. Received: {pixels.max()}"
            )
        object.__setattr__(self, "pixels", np.ascontiguousarray(pixels))
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """`(H, W, C)`."""
        _, H, W, C = self.pixels.shape
        return H, W, C

    def take(self, count: int) -> "Images":
        """Returns the first images.

        Args:
            count: how many, at most n.
        """
        count = check_integer("count", count, 1, len(self))
        return dataclasses.replace(self, pixels=self.pixels[:count], labels=self.labels[:count])


def load_images(
    source: str,
    split: str = "train",
    classes: str | Iterable[int] | None = None,
    data_dir: str | PathLike[str] | None = None,
) -> Images:
    """Loads images by the name of their source.

    - "digits": 1,797 digits of 8 x 8 pixels with the values 0 to 16, which come with scikit-learn.
    - "mnist": digits of 28 x 28.
    - "emnist": EMNIST *Balanced*, 28 x 28, 47 classes; the paper trains on the digits, classes
      0 to 9, and tests also on the letters, classes 10 to 46.
    - "celeba": faces, 32 x 32 in three colours: the largest square in the middle of a picture,
      made small by area. (The paper does not say how it made them.)

    All but "digits" are looked for in `data_dir`, in its folders and in their folders. The first
    of these forms that is found is read, on the uppermost level that has it:

    1. `emnist*.npz`, `mnist*.npz`, `celeba*.npz`: arrays `x_train`, `y_train`, `x_test`, `y_test`
       (and `x_validation`, `y_validation` if there are any), or only `x` and `y`; images uint8
       `[n, H, W]` or `[n, H, W, C]` that stand *upright*, and integer labels `[n]`, which faces
       need not have. The `mnist.npz` of Keras is one. Files that are divided into parts come
       before those with only `x` and `y`. Where several are left, `data_dir` must be one of them;
       it may always be.
    2. idx files as published, packed with gzip or not: `train-images-idx3-ubyte`,
       `t10k-images-idx3-ubyte` and their labels for MNIST,
       `emnist-balanced-train-images-idx3-ubyte` and so on for EMNIST. EMNIST's have rows and
       columns exchanged; here they are put upright.
    3. for CelebA a folder of pictures (jpg, png), `data_dir` or one named `img_align_celeba`. The
       parts are those of `list_eval_partition.txt`, in that folder or the one above it, if it is
       there.

    If there are no such files, `tensorflow-datasets` is asked, which keeps its files in `data_dir`
    (None: its default folder) and may download them; EMNIST's are put upright as well.

    "test" is the published test part, and "validation" the published validation part (CelebA).
    Where only "train" and "test" are published, a tenth of the training images are "validation"
    and the others "train". Where no parts are published (digits, files with `x` and `y`, a folder
    of pictures without a list), a fifth of all images are "test" before that. The images of such a
    part are drawn at random, but always the same ones, and before classes are chosen. "all" is
    everything there is.

    Example:
        >>> images = load_images("digits", split="test")
        >>> images.pixels.shape, images.image_shape, images.max_value
        ((359, 8, 8, 1), (8, 8, 1), 16)

    Args:
        source: one of "digits", "mnist", "emnist", "celeba".
        split: "train", "validation", "test" or "all".
        classes: which labels to keep; "seen" (0 to 9) or "unseen" (10 to 46) for EMNIST. None: all.
        data_dir: a folder or an `.npz` file.

    Returns:
        The images, in the order of their source; labels of faces are 0.

    Raises:
        FileNotFoundError: `data_dir` is not there, or holds only a part of what is needed.
        ImportError: no files were found, and `tensorflow-datasets` is not installed.
        TypeError, ValueError: an unknown name, split or class, files that do not hold what they
            should, or no image of this split and these classes.
    """
    image_source = find_source(source)
    split = check_choice("split", split, SPLITS)
    kept_classes = image_source.find_classes(classes)
    store = find_store(image_source, data_dir)
    pixels, labels = store.read_split(split)
    if image_source.num_classes and len(labels):
        if labels.min() < 0 or labels.max() >= image_source.num_classes:
            raise ValueError(
                f"`{store.origin}` must have labels from 0 to {image_source.num_classes - 1}. "
                f"Received: labels from {labels.min()} to {labels.max()}"
            )
    if kept_classes is not None:
        is_kept = np.isin(labels, kept_classes)
        pixels, labels = pixels[is_kept], labels[is_kept]
    if not len(pixels):
        raise ValueError(
            f"`{store.origin}` must have an image of split={split!r}, classes={classes!r}. "
            "Received: none"
        )
    return Images(pixels, labels, image_source.name, split, image_source.max_value)
