"""Finds where the images of a source are stored, and reads the part of them that is asked for.

A store is a file, a folder, scikit-learn, or TensorFlow Datasets.
"""

import dataclasses
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from taylorformer.data_wrangler.checks import listed
from taylorformer.data_wrangler.tasks import image_files
from taylorformer.data_wrangler.tasks.image_sources import PARTS, WHOLE, ImageSource

# The parts that are made here; another number would divide all images anew.
_DIVISION_SEED = 20230531
# One in so many images of an undivided store is for testing, and of the others for validation.
_TEST_ONE_IN = 5
_VALIDATION_ONE_IN = 10
# A folder, its folders, and theirs.
_LEVELS = ("", "*/", "*/*/")
# Of TensorFlow Datasets that are put into one array at a time.
_IMAGES_AT_ONCE = 1024
_INSTALL = 'pip install "taylorformer[images]"'

_PixelsAndLabels = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class ImageStore:
    """Images that can be read part by part.

    Attributes:
        origin: what errors call it.
        parts: those it is divided into: "train" and "test", with or without "validation", or only
            "all".
        read_part: returns the pixels and labels of one of them.
    """

    origin: str
    parts: tuple[str, ...]
    read_part: Callable[[str], _PixelsAndLabels]

    def read_split(self, split: str) -> _PixelsAndLabels:
        """Returns the pixels and labels of a split; parts that are not there are made."""
        if split == WHOLE:
            arrays = [self.read_part(part) for part in self.parts]
            pixels, labels = (np.concatenate(columns) for columns in zip(*arrays, strict=True))
            return pixels, labels
        is_divided = self.parts != (WHOLE,)
        if is_divided and (split == "test" or "validation" in self.parts):
            return self.read_part(split)
        pixels, labels = self.read_part("train" if is_divided else WHOLE)
        rows = _divide(len(pixels), with_test=not is_divided)[split]
        return pixels[rows], labels[rows]


def find_store(source: ImageSource, data_dir: str | PathLike[str] | None) -> ImageStore:
    """Finds the store of a source.

    Args:
        source: of the images.
        data_dir: a folder, an `.npz` file, or None.

    Raises:
        FileNotFoundError: `data_dir` is not there.
        ImportError: There are no files, and TensorFlow Datasets is not installed.
        ValueError: An `.npz` file without the arrays that it should have, or several of them.
    """
    if source.bundled:
        return ImageStore("scikit-learn's digits", (WHOLE,), lambda part: _read_digits())
    if data_dir is not None:
        path = Path(data_dir)
        if path.is_file():
            return _npz_store(source, path)
        if not path.is_dir():
            raise FileNotFoundError(
                "`data_dir` must be a folder or an .npz file. "
                f"Received: '{data_dir}', which is not there"
            )
        for find in (_find_npz, _find_idx, _find_pictures):
            store = find(source, path)
            if store is not None:
                return store
    return _tfds_store(source, data_dir)


def _divide(count: int, with_test: bool) -> dict[str, np.ndarray]:
    """Divides rows into parts at random, but always in the same way; each in increasing order."""
    # Alone among NumPy's generators this one never changes its numbers from version to version.
    order = np.random.RandomState(_DIVISION_SEED).permutation(count)
    num_test = count // _TEST_ONE_IN if with_test else 0
    # Rounded up, so that the part is not empty.
    num_validation = -(-(count - num_test) // _VALIDATION_ONE_IN)
    test, validation, train = np.split(order, [num_test, num_test + num_validation])
    return {"train": np.sort(train), "validation": np.sort(validation), "test": np.sort(test)}


def _uppermost(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Returns what fits the patterns on the uppermost level that has any, sorted."""
    for level in _LEVELS:
        paths = {path for pattern in patterns for path in folder.glob(f"{level}{pattern}")}
        if paths:
            return sorted(paths)
    return []


def _read_digits() -> _PixelsAndLabels:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images.astype(np.uint8)[..., np.newaxis], digits.target.astype(np.int64)


def _find_npz(source: ImageSource, folder: Path) -> ImageStore | None:
    stores = [_npz_store(source, path) for path in _uppermost(folder, [f"{source.name}*.npz"])]
    stores = [store for store in stores if store.parts != (WHOLE,)] or stores
    if len(stores) > 1:
        names = listed([store.origin for store in stores])
        raise ValueError(
            f"`data_dir` must be the file to read where there are several. Received: {names}"
        )
    return stores[0] if stores else None


def _npz_store(source: ImageSource, path: Path) -> ImageStore:
    names = image_files.npz_names(path)
    parts = tuple(part for part in PARTS if f"x_{part}" in names)
    if "x" in names and not parts:
        parts = (WHOLE,)
    suffix = {part: "" if part == WHOLE else f"_{part}" for part in parts}
    needed = [f"y{suffix[part]}" for part in parts if source.num_classes]
    if not parts or (parts != (WHOLE,) and not {"train", "test"} <= set(parts)):
        needed = ["x_train", "y_train", "x_test", "y_test (or only x, y)"]
    if not set(needed) <= set(names):
        raise ValueError(
            f"`{path}` must have the arrays {', '.join(needed)}. Received: {', '.join(names)}"
        )

    def read_part(part: str) -> _PixelsAndLabels:
        x, y = f"x{suffix[part]}", f"y{suffix[part]}"
        return image_files.read_npz(path, x, y if y in names else None)

    return ImageStore(str(path), parts, read_part)


def _find_idx(source: ImageSource, folder: Path) -> ImageStore | None:
    images = {
        part: path
        for part, prefix in source.idx_prefixes.items()
        if (path := _find_idx_file(folder, f"{prefix}-images-idx3-ubyte")) is not None
    }
    if not images:
        return None

    def read_part(part: str) -> _PixelsAndLabels:
        prefix = source.idx_prefixes[part]
        if part not in images:
            raise _lacks(folder, f"{prefix}-images-idx3-ubyte", next(iter(images.values())))
        path = images[part]
        labels = _find_idx_file(path.parent, f"{prefix}-labels-idx1-ubyte")
        if labels is None:
            raise _lacks(path.parent, f"{prefix}-labels-idx1-ubyte", path)
        return _upright(source, *image_files.read_idx(path, labels))

    # All published parts: to ask for one whose file is absent is an error, also within "all".
    return ImageStore(str(folder), tuple(source.idx_prefixes), read_part)


def _find_idx_file(folder: Path, name: str) -> Path | None:
    # Unpacked comes before packed: the longer name sorts last.
    return next(iter(_uppermost(folder, [name, f"{name}.gz"])), None)


def _lacks(folder: Path, name: str, present: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"`{folder}` must have the file {name}[.gz]. Received: only {present.name}"
    )


def _upright(source: ImageSource, pixels: np.ndarray, labels: np.ndarray) -> _PixelsAndLabels:
    return pixels.transpose(0, 2, 1, 3) if source.transposed else pixels, labels


def _find_pictures(source: ImageSource, folder: Path) -> ImageStore | None:
    name = source.picture_folder
    if name is None:
        return None
    # Some copies have a folder of the same name inside, which sorts last.
    inner = reversed(_uppermost(folder, [name, f"{name}/{name}"]))
    for candidate in (*inner, folder):
        names = image_files.picture_names(candidate)
        if names:
            return _picture_store(source, candidate, names)
    return None


def _picture_store(source: ImageSource, folder: Path, names: list[str]) -> ImageStore:
    lists = [candidate / source.partition_list for candidate in (folder, folder.parent)]
    partition = next((path for path in lists if path.is_file()), None)
    if partition is not None:
        members = image_files.read_partition(partition, names, PARTS)
    else:
        rows = _divide(len(names), with_test=True)
        members = {part: [names[row] for row in rows[part]] for part in PARTS}

    def read_part(part: str) -> _PixelsAndLabels:
        return image_files.read_pictures([str(folder / name) for name in members[part]])

    return ImageStore(str(folder), PARTS, read_part)


def _tfds_store(source: ImageSource, data_dir: str | PathLike[str] | None) -> ImageStore:
    folder = None if data_dir is None else str(data_dir)
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            f"`load_images` needs tensorflow-datasets for {source.name}: {_INSTALL}; or pass "
            f"`data_dir`, a folder with {' or '.join(source.file_forms)}. "
            f"Received: data_dir={folder!r}"
        ) from error

    def read_part(part: str) -> _PixelsAndLabels:
        # The order of the files, so that rows and parts are always the same.
        examples = tfds.load(source.tfds_name, split=part, data_dir=folder, shuffle_files=False)
        if source.picture_folder is not None:
            return image_files.small_squares(examples.map(lambda example: example["image"]))
        pairs = examples.map(lambda example: (example["image"], example["label"]))
        batches = pairs.batch(_IMAGES_AT_ONCE).as_numpy_iterator()
        pixels, labels = (np.concatenate(columns) for columns in zip(*batches, strict=True))
        pixels = image_files.check_pixels(pixels, str(source.tfds_name))
        return _upright(source, pixels, labels)

    return ImageStore(f"tensorflow-datasets: {source.tfds_name}", source.tfds_parts, read_part)
