"""Images for completion tasks: named sources, read from files or from TensorFlow Datasets."""

import dataclasses
import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from taylorformer.data_wrangler.checks import check_choice, check_integer, listed

PARTS = ("train", "validation", "test")
SPLITS = (*PARTS, "all")
CELEBA_SIZE = 32

_SPLIT_SEED = 20230531
_PICTURES = (".jpg", ".jpeg", ".png")
_CELEBA_FOLDER = "img_align_celeba"
_CELEBA_PARTITION = "list_eval_partition.txt"
_INSTALL = 'pip install "taylorformer[images]"'


@dataclasses.dataclass(frozen=True)
class ImageSource:
    """Where images with a name come from.

    Attributes:
        name: what `load_images` knows it by; `.npz` files that hold it begin with it.
        num_classes: labels are 0 to `num_classes - 1`. 0: the images have no classes.
        seen: how many classes, from 0 on, are "seen" in training; the others are "unseen". None:
            the classes are not divided so.
        idx_prefixes: by part, what the names of its idx files begin with.
        transposed: idx files and TensorFlow Datasets have rows and columns exchanged.
        tfds_name: in TensorFlow Datasets, or None.
        tfds_parts: the parts it has there, and in a folder of pictures.
    """

    name: str
    num_classes: int
    seen: int | None = None
    idx_prefixes: tuple[tuple[str, str], ...] = ()
    transposed: bool = False
    tfds_name: str | None = None
    tfds_parts: tuple[str, ...] = ("train", "test")


SOURCES = {
    source.name: source
    for source in (
        ImageSource("digits", 10),
        ImageSource(
            "mnist",
            10,
            idx_prefixes=(("train", "train"), ("test", "t10k")),
            tfds_name="mnist",
        ),
        ImageSource(
            "emnist",
            47,
            seen=10,
            idx_prefixes=(("train", "emnist-balanced-train"), ("test", "emnist-balanced-test")),
            transposed=True,
            tfds_name="emnist/balanced",
        ),
        ImageSource("celeba", 0, tfds_name="celeb_a", tfds_parts=PARTS),
    )
}


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """n images of one shape.

    Example:
        >>> images = load_images("digits", split="test")
        >>> images.pixels.shape, images.image_shape, images.max_value
        ((359, 8, 8, 1), (8, 8, 1), 16)

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
        check_integer("max_value", self.max_value, 1, 255)
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
        """Gives the first images.

        Args:
            count: how many, at most n.
        """
        count = check_integer("count", count, 1, len(self))
        return dataclasses.replace(self, pixels=self.pixels[:count], labels=self.labels[:count])


def image_source_names() -> tuple[str, ...]:
    """Gives the names that `load_images` knows."""
    return tuple(SOURCES)


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

    All but "digits" are looked for in `data_dir`, and in folders and folders of folders below; the
    first of these forms that is found is read, of several levels of folders the uppermost:

    1. `emnist*.npz`, `mnist*.npz`, `celeba*.npz`: arrays `x_train`, `y_train`, `x_test`, `y_test`
       (and `x_validation`, `y_validation` if there are any), or only `x` and `y`; images uint8
       `[n, H, W]` or `[n, H, W, C]` that stand *upright*, and integer labels `[n]`, which faces
       need not have. `data_dir` may be such a file itself, and has to be where a folder has
       several. Those with parts of their own come before those with only `x` and `y`. The
       `mnist.npz` of Keras is one.
    2. idx files as published, packed with gzip or not: `train-images-idx3-ubyte`,
       `t10k-images-idx3-ubyte` and their labels for MNIST,
       `emnist-balanced-train-images-idx3-ubyte` and so on for EMNIST. EMNIST's have rows and
       columns exchanged; here they are put upright.
    3. for CelebA a folder of pictures (jpg, png), `data_dir` or one named `img_align_celeba`. The
       parts are those of `list_eval_partition.txt`, in that folder or the one above it, if it is
       there.

    If nothing is found, `tensorflow-datasets` is asked, which keeps its files in `data_dir` (None:
    its own folder) and may download them; EMNIST's are put upright as well.

    "test" is the published test part. "validation" is the published one (CelebA), else every tenth
    image, drawn at random but always the same, of the published training part, and "train" the
    others. Where no parts are published (digits, files with `x` and `y`, a folder of pictures
    without a list), a fifth is "test", drawn in the same way. "all" is everything there is. The
    parts are made before classes are chosen.

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
            should, or no image that is left.
    """
    known = _find_source(source)
    check_choice("split", split, SPLITS)
    wanted = _wanted_classes(known, classes)
    store = _find_store(known, data_dir)
    pixels, labels = _read_split(store, split)
    if known.num_classes and len(labels):
        if labels.min() < 0 or labels.max() >= known.num_classes:
            raise ValueError(
                f"`{store.place}` must have labels from 0 to {known.num_classes - 1}. "
                f"Received: labels from {labels.min()} to {labels.max()}"
            )
    if wanted is not None:
        kept = np.isin(labels, wanted)
        pixels, labels = pixels[kept], labels[kept]
    if not len(pixels):
        raise ValueError(
            f"`{store.place}` must have an image of split={split!r}, classes={classes!r}. "
            "Received: none"
        )
    return Images(pixels, labels, known.name, split, max_value=store.max_value)


_Labelled = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class _Store:
    """Something that holds images: `read` gives one of its `parts`, pixels and labels."""

    place: str
    parts: tuple[str, ...]
    read: Callable[[str], _Labelled]
    max_value: int = 255


def _find_source(name: str) -> ImageSource:
    if isinstance(name, str) and name.lower() in SOURCES:
        return SOURCES[name.lower()]
    raise ValueError(f"`source` must be one of {', '.join(SOURCES)}. Received: source={name!r}")


def _wanted_classes(source: ImageSource, classes: str | Iterable[int] | None) -> list[int] | None:
    if classes is None:
        return None
    groups = {}
    if source.seen is not None:
        groups["seen"] = list(range(source.seen))
        groups["unseen"] = list(range(source.seen, source.num_classes))
    if isinstance(classes, str) and classes in groups:
        return groups[classes]
    if isinstance(classes, str) or not isinstance(classes, Iterable) or not source.num_classes:
        wish = "".join(f"{group!r}, " for group in groups)
        numbers = f"{wish}integers or None" if source.num_classes else "None"
        raise ValueError(
            f"`classes` must be {numbers} for {source.name}. Received: classes={classes!r}"
        )
    return [check_integer("classes", label, 0, source.num_classes - 1) for label in classes]


def _read_split(store: _Store, split: str) -> _Labelled:
    if split == "all":
        read = [store.read(part) for part in store.parts]
        pixels, labels = (np.concatenate(arrays) for arrays in zip(*read, strict=True))
        return pixels, labels
    if split in store.parts and (split != "train" or "validation" in store.parts):
        return store.read(split)
    pixels, labels = store.read("all" if store.parts == ("all",) else "train")
    rows = _parts_of(len(pixels), with_test=store.parts == ("all",))[split]
    return pixels[rows], labels[rows]


def _parts_of(count: int, with_test: bool) -> dict[str, np.ndarray]:
    """Divides rows into parts, each in increasing order."""
    # Alone among NumPy's generators this one never changes its numbers from version to version.
    order = np.random.RandomState(_SPLIT_SEED).permutation(count)
    num_test = count // 5 if with_test else 0
    num_held_out = num_test - (num_test - count) // 10  # rounded up, so that it is not empty
    test, validation, train = np.split(order, [num_test, num_held_out])
    return {"train": np.sort(train), "validation": np.sort(validation), "test": np.sort(test)}


def _find_store(source: ImageSource, data_dir: str | PathLike[str] | None) -> _Store:
    if source.name == "digits":
        return _Store("scikit-learn's digits", ("all",), lambda part: _digits(), max_value=16)
    if data_dir is not None:
        path = Path(data_dir)
        if path.is_file():
            return _npz_store(source, path)
        if not path.is_dir():
            raise FileNotFoundError(
                "`data_dir` must be a folder or an .npz file. "
                f"Received: '{data_dir}', which is not there"
            )
        for find in (_npz_in_folder, _idx_in_folder, _pictures_in_folder):
            store = find(source, path)
            if store is not None:
                return store
    return _tfds_store(source, data_dir)


def _digits() -> _Labelled:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.images.astype(np.uint8)[..., np.newaxis], found.target.astype(np.int64)


def _uppermost(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Gives what fits the patterns on the uppermost level that has any, sorted."""
    for below in ("", "*/", "*/*/"):
        found = {path for pattern in patterns for path in folder.glob(f"{below}{pattern}")}
        if found:
            return sorted(found)
    return []


def _with_channels(pixels: np.ndarray, place: str) -> np.ndarray:
    pixels = pixels[..., np.newaxis] if pixels.ndim == 3 else pixels
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] not in (1, 3):
        raise ValueError(
            f"`{place}` must hold uint8 images of the shape [n, H, W] or [n, H, W, C], C 1 or 3. "
            f"Received: dtype {pixels.dtype}, shape {list(pixels.shape)}"
        )
    return pixels


def _check_labels(pixels: np.ndarray, labels: np.ndarray, place: str) -> np.ndarray:
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(
            f"`{place}` must hold integer labels of the shape [n] = [{len(pixels)}]. "
            f"Received: dtype {labels.dtype}, shape {list(labels.shape)}"
        )
    return labels.astype(np.int64)


# Files of NumPy.


def _npz_in_folder(source: ImageSource, folder: Path) -> _Store | None:
    stores = [_npz_store(source, path) for path in _uppermost(folder, [f"{source.name}*.npz"])]
    divided = [store for store in stores if store.parts != ("all",)]
    found = divided or stores
    if len(found) > 1:
        names = listed([store.place for store in found])
        raise ValueError(
            f"`data_dir` must be the file to read where there are several. Received: {names}"
        )
    return found[0] if found else None


def _npz_store(source: ImageSource, path: Path) -> _Store:
    names = _from_npz(path, None)
    parts = tuple(part for part in PARTS if f"x_{part}" in names)
    if "x" in names and not parts:
        parts = ("all",)
    suffix = {part: "" if part == "all" else f"_{part}" for part in parts}
    needed = [f"y{suffix[part]}" for part in parts if source.num_classes]
    if not parts or (parts != ("all",) and not {"train", "test"} <= set(parts)):
        needed = ["x_train", "y_train", "x_test", "y_test (or only x, y)"]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(
            f"`{path}` must have the arrays {', '.join(needed)}. Received: {', '.join(names)}"
        )

    def read(part: str) -> _Labelled:
        x, y = f"x{suffix[part]}", f"y{suffix[part]}"
        arrays = _from_npz(path, [name for name in (x, y) if name in names])
        pixels = _with_channels(arrays[x], f"{path}: {x}")
        labels = arrays.get(y, np.zeros(len(pixels), np.int64))
        return pixels, _check_labels(pixels, labels, f"{path}: {y}")

    return _Store(str(path), parts, read)


def _from_npz(path: Path, names: Sequence[str] | None) -> dict[str, Any]:
    """Reads arrays of a file, or for None only their names."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            if names is None:
                return dict.fromkeys(file.files)
            return {name: file[name] for name in names}
    except (
        AttributeError,
        EOFError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        # A lone array is no mapping, and has no `files`.
        raise ValueError(f"`{path}` must be an .npz file of arrays. Received: {error}") from error


# idx files, as MNIST and EMNIST are published.


def _idx_in_folder(source: ImageSource, folder: Path) -> _Store | None:
    found = {
        part: path
        for part, prefix in source.idx_prefixes
        if (path := _idx_file(folder, f"{prefix}-images-idx3-ubyte")) is not None
    }
    if not found:
        return None
    prefixes = dict(source.idx_prefixes)

    def read(part: str) -> _Labelled:
        if part not in found:
            raise _lacks(
                folder, f"{prefixes[part]}-images-idx3-ubyte[.gz]", next(iter(found.values()))
            )
        path = found[part]
        name = f"{prefixes[part]}-labels-idx1-ubyte"
        beside = [path.with_name(f"{name}{suffix}") for suffix in ("", ".gz")]
        label_path = next((path for path in beside if path.is_file()), None)
        if label_path is None:
            raise _lacks(path.parent, f"{name}[.gz]", path)
        pixels = _with_channels(_read_idx(path, 3), str(path))
        if source.transposed:
            pixels = pixels.transpose(0, 2, 1, 3)
        return pixels, _check_labels(pixels, _read_idx(label_path, 1), str(label_path))

    # All published parts: to ask for one whose file is absent is an error, also within "all".
    return _Store(str(folder), tuple(prefixes), read)


def _idx_file(folder: Path, name: str) -> Path | None:
    # Unpacked comes before packed: the longer name sorts last.
    return next(iter(_uppermost(folder, [name, f"{name}.gz"])), None)


def _lacks(folder: Path, name: str, found: Path) -> FileNotFoundError:
    return FileNotFoundError(f"`{folder}` must have the file {name}. Received: only {found.name}")


def _read_idx(path: Path, rank: int) -> np.ndarray:
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"`{path}` must be packed with gzip. Received: {error}") from error
    # Two zeros, the code of uint8, the number of axes; then their lengths, most significant first.
    start = bytes([0, 0, 8, rank])
    if content[:4] != start or len(content) < 4 + 4 * rank:
        raise ValueError(
            f"`{path}` must be an idx file of {rank} axes of uint8, beginning with "
            f"{start.hex()}. Received: {len(content)} bytes, beginning with {content[:4].hex()}"
        )
    shape = [int(size) for size in np.frombuffer(content, ">u4", rank, offset=4)]
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * rank)
    expected = int(np.prod(shape, dtype=np.int64))
    if values.size != expected:
        raise ValueError(
            f"`{path}` must hold {expected} values, for the shape {shape} that it states. "
            f"Received: {values.size}"
        )
    return values.reshape(shape)


# A folder of pictures, as CelebA is published.


def _pictures_in_folder(source: ImageSource, folder: Path) -> _Store | None:
    if source.name != "celeba":
        return None
    # Some copies have a folder of the same name inside.
    folders = _uppermost(folder, [_CELEBA_FOLDER, f"{_CELEBA_FOLDER}/{_CELEBA_FOLDER}"])
    for place in (*reversed(folders), folder):
        names = sorted(path.name for path in place.glob("*.*") if _is_picture(path.name))
        if names:
            return _picture_store(place, names)
    return None


def _is_picture(name: str) -> bool:
    return name.lower().endswith(_PICTURES)


def _picture_store(folder: Path, names: list[str]) -> _Store:
    lists = [place / _CELEBA_PARTITION for place in (folder, folder.parent)]
    partition = next((path for path in lists if path.is_file()), None)
    if partition is None:
        rows = _parts_of(len(names), with_test=True)
        members = {part: [names[row] for row in rows[part]] for part in PARTS}
    else:
        members = _read_partition(partition, names)

    def read(part: str) -> _Labelled:
        return _read_pictures([str(folder / name) for name in members[part]])

    return _Store(str(folder), PARTS, read)


def _read_partition(path: Path, names: list[str]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {part: [] for part in PARTS}
    there = set(names)
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or fields[1] not in ("0", "1", "2"):
            raise ValueError(
                f"`{path}` must have a name and 0, 1 or 2 in each line. "
                f"Received: {line!r} in line {number}"
            )
        if fields[0] in there:
            members[PARTS[int(fields[1])]].append(fields[0])
    return members


def _read_pictures(paths: list[str]) -> _Labelled:
    import tensorflow as tf

    def decode(path: tf.Tensor) -> tf.Tensor:
        content = tf.io.read_file(path)
        return tf.io.decode_image(content, channels=3, expand_animations=False)

    pictures = tf.data.Dataset.from_tensor_slices(np.array(paths, str))
    try:
        return _small_faces(pictures.map(decode, tf.data.AUTOTUNE))
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


def _small_faces(pictures: Any) -> _Labelled:
    """Makes the pictures of a `tf.data.Dataset`, each `[H, W, 3]` uint8, small and square."""
    import tensorflow as tf

    def shrink(picture: tf.Tensor) -> tf.Tensor:
        height, width = tf.shape(picture)[0], tf.shape(picture)[1]
        side = tf.minimum(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = picture[top : top + side, left : left + side]
        small = tf.image.resize(square, [CELEBA_SIZE, CELEBA_SIZE], method="area")
        return tf.cast(tf.round(small), tf.uint8)

    shrunk = pictures.map(shrink, tf.data.AUTOTUNE).batch(256).prefetch(tf.data.AUTOTUNE)
    empty = np.zeros([0, CELEBA_SIZE, CELEBA_SIZE, 3], np.uint8)
    pixels = np.concatenate([empty, *shrunk.as_numpy_iterator()])
    return pixels, np.zeros(len(pixels), np.int64)


# TensorFlow Datasets.


def _tfds_store(source: ImageSource, data_dir: str | PathLike[str] | None) -> _Store:
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        files = [f"{source.name}*.npz"]
        files += [f"{prefix}-images-idx3-ubyte[.gz]" for _, prefix in source.idx_prefixes]
        files += [f"a folder {_CELEBA_FOLDER} of pictures"] * (source.name == "celeba")
        where = "None" if data_dir is None else f"'{data_dir}'"
        raise ImportError(
            f"`load_images` needs tensorflow-datasets for {source.name}: {_INSTALL}; or pass "
            f"`data_dir`, a folder with {' or '.join(files)}. Received: data_dir={where}"
        ) from error
    place = None if data_dir is None else str(data_dir)

    def read(part: str) -> _Labelled:
        # The order of the files, so that rows and parts are always the same.
        examples = tfds.load(source.tfds_name, split=part, data_dir=place, shuffle_files=False)
        if source.name == "celeba":
            return _small_faces(examples.map(lambda example: example["image"]))
        pairs = examples.map(lambda example: (example["image"], example["label"])).batch(1024)
        pixels, labels = (
            np.concatenate(arrays) for arrays in zip(*pairs.as_numpy_iterator(), strict=True)
        )
        pixels = _with_channels(pixels, str(source.tfds_name))
        return pixels.transpose(0, 2, 1, 3) if source.transposed else pixels, labels

    return _Store(f"tensorflow-datasets: {source.tfds_name}", source.tfds_parts, read)
