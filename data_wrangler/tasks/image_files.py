"""Readers of the file forms in which images are published: `.npz`, idx, and jpg or png pictures.

They return `[n, H, W, C]` uint8 pixels, C = 1 or 3, and `[n]` int64 labels, or raise a ValueError
that names the file.
"""

import contextlib
import gzip
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

PICTURE_SIZE = 32
"""The height and width to which pictures are made small, as in the paper's CelebA."""

_PICTURE_ENDINGS = (".jpg", ".jpeg", ".png")
# Of small pictures that are put into one array at a time.
_PICTURES_AT_ONCE = 256
# The code of uint8 in the header of an idx file, and the bytes of each length there.
_IDX_UINT8 = 8
_IDX_LENGTH_BYTES = 4
_WRONG_NPZ = (
    AttributeError,  # a lone array is no mapping, and has no `files`
    EOFError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def check_pixels(pixels: np.ndarray, origin: str) -> np.ndarray:
    """Returns pixels as `[n, H, W, C]`; raises if they are no images. `origin` names the file."""
    pixels = pixels[..., np.newaxis] if pixels.ndim == 3 else pixels
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] not in (1, 3):
        raise ValueError(
            f"`{origin}` must hold uint8 images of the shape [n, H, W] or [n, H, W, C], C 1 or 3. "
            f"Received: dtype {pixels.dtype}, shape {list(pixels.shape)}"
        )
    return pixels


def check_labels(labels: np.ndarray, count: int, origin: str) -> np.ndarray:
    """Returns labels as int64; raises if they are not `count` integers. `origin` names the file."""
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"`{origin}` must hold integer labels of the shape [n] = [{count}]. "
            f"Received: dtype {labels.dtype}, shape {list(labels.shape)}"
        )
    return labels.astype(np.int64)


def npz_names(path: Path) -> list[str]:
    """Returns the names of the arrays of an `.npz` file."""
    with _opened_npz(path) as file:
        return list(file.files)


def read_npz(path: Path, x: str, y: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Reads the arrays `x` and `y` of an `.npz` file; labels are 0 where `y` is None."""
    with _opened_npz(path) as file:
        pixels, labels = file[x], None if y is None else file[y]
    pixels = check_pixels(pixels, f"{path}: {x}")
    if labels is None:
        return pixels, np.zeros(len(pixels), np.int64)
    return pixels, check_labels(labels, len(pixels), f"{path}: {y}")


@contextlib.contextmanager
def _opened_npz(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            yield file
    except _WRONG_NPZ as error:
        raise ValueError(f"`{path}` must be an .npz file of arrays. Received: {error}") from error


def read_idx(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads a pair of idx files, packed with gzip or not."""
    pixels = check_pixels(_read_idx_array(images, 3), str(images))
    return pixels, check_labels(_read_idx_array(labels, 1), len(pixels), str(labels))


def _read_idx_array(path: Path, rank: int) -> np.ndarray:
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"`{path}` must be packed with gzip. Received: {error}") from error
    # Two zeros, the code of uint8, the number of axes; then their lengths, most significant first.
    start = bytes([0, 0, _IDX_UINT8, rank])
    header_size = len(start) + _IDX_LENGTH_BYTES * rank
    if not content.startswith(start) or len(content) < header_size:
        raise ValueError(
            f"`{path}` must be an idx file of {rank} axes of uint8, beginning with "
            f"{start.hex()}. Received: {len(content)} bytes, beginning with "
            f"{content[: len(start)].hex()}"
        )
    shape = [int(size) for size in np.frombuffer(content, ">u4", rank, offset=len(start))]
    values = np.frombuffer(content, np.uint8, offset=header_size)
    expected = int(np.prod(shape, dtype=np.int64))
    if values.size != expected:
        raise ValueError(
            f"`{path}` must hold {expected} values, for the shape {shape} that it states. "
            f"Received: {values.size}"
        )
    return values.reshape(shape)


def picture_names(folder: Path) -> list[str]:
    """Returns the names of the jpg and png files of a folder, sorted."""
    names = (path.name for path in folder.glob("*.*"))
    return sorted(name for name in names if name.lower().endswith(_PICTURE_ENDINGS))


def read_partition(path: Path, names: Iterable[str], parts: Sequence[str]) -> dict[str, list[str]]:
    """Reads which part each picture belongs to, from a list of names and numbers.

    Args:
        path: of the list; each of its lines is a name and the number of a part.
        names: of the pictures that are there; others of the list are left out.
        parts: the names of the parts, by their numbers.

    Returns:
        The names of the pictures of each part, in the order of the list.
    """
    members: dict[str, list[str]] = {part: [] for part in parts}
    numbers = {str(number): part for number, part in enumerate(parts)}
    present = set(names)
    for row, line in enumerate(path.read_text().splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or fields[1] not in numbers:
            raise ValueError(
                f"`{path}` must have a name and a number from 0 to {len(parts) - 1} in each line. "
                f"Received: {line!r} in line {row}"
            )
        if fields[0] in present:
            members[numbers[fields[1]]].append(fields[0])
    return members


def read_pictures(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads jpg and png files, and makes them small and square; all labels are 0."""
    import tensorflow as tf

    def decode(path: tf.Tensor) -> tf.Tensor:
        content = tf.io.read_file(path)
        return tf.io.decode_image(content, channels=3, expand_animations=False)

    pictures = tf.data.Dataset.from_tensor_slices(np.array(paths, str))
    try:
        return small_squares(pictures.map(decode, tf.data.AUTOTUNE))
    except tf.errors.InvalidArgumentError:
        # TensorFlow does not say which one it was.
        for path in paths:
            try:
                decode(path)
            except tf.errors.InvalidArgumentError as error:
                raise ValueError(
                    f"`{path}` must be a jpg or png picture. Received: {error.message}"
                ) from error
        raise


def small_squares(pictures: "tf.data.Dataset") -> tuple[np.ndarray, np.ndarray]:
    """Cuts the largest square from the middle of each picture, and makes it small by area.

    Args:
        pictures: a data set of tensors `[H, W, 3]` uint8.

    Returns:
        `[n, PICTURE_SIZE, PICTURE_SIZE, 3]` uint8, and n labels, all 0.
    """
    import tensorflow as tf

    def shrink(picture: tf.Tensor) -> tf.Tensor:
        height, width = tf.shape(picture)[0], tf.shape(picture)[1]
        side = tf.minimum(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = picture[top : top + side, left : left + side]
        small = tf.image.resize(square, [PICTURE_SIZE, PICTURE_SIZE], method="area")
        return tf.cast(tf.round(small), tf.uint8)

    shrunk: Any = pictures.map(shrink, tf.data.AUTOTUNE).batch(_PICTURES_AT_ONCE)
    batches = shrunk.prefetch(tf.data.AUTOTUNE).as_numpy_iterator()
    empty = np.zeros([0, PICTURE_SIZE, PICTURE_SIZE, 3], np.uint8)
    pixels = np.concatenate([empty, *batches])
    return pixels, np.zeros(len(pixels), np.int64)
