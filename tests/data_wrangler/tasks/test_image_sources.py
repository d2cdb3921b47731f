"""Where images come from: the forms of files, the parts and classes of each source."""

import gzip
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.tasks.image_set import load_images
from taylorformer.data_wrangler.tasks.image_sources import image_source_names

SPLITS = ("train", "validation", "test")


def digest_of(images):
    return {
        (image.tobytes(), int(label))
        for image, label in zip(images.pixels, images.labels, strict=True)
    }


def test_digits_are_divided_once_and_for_all():
    parts = {split: load_images("digits", split) for split in SPLITS}
    assert [len(part) for part in parts.values()] == [1294, 144, 359]
    whole = load_images("Digits", "all")
    assert len(whole) == 1797 and whole.image_shape == (8, 8, 1)
    assert (whole.name, whole.split, parts["test"].split) == ("digits", "all", "test")
    digests = [digest_of(part) for part in parts.values()]
    assert set.union(*digests) == digest_of(whole)
    assert sum(map(len, digests)) == len(digest_of(whole))
    assert parts["test"].labels[:12].tolist() == load_images("digits", "test").labels[:12].tolist()
    assert all(set(part.labels) == set(range(10)) for part in parts.values())
    some = load_images("digits", "test", classes=(3, 7))
    assert set(some.labels) == {3, 7} and digest_of(some) < digests[2]


def letters(count, first=0):
    """Images of which no two are alike, with a bright top row, and all 47 labels."""
    pixels = np.zeros([count, 28, 28], np.uint8)
    pixels[:, 0] = 255
    pixels[:, 9, 0], pixels[:, 9, 1] = np.divmod(np.arange(first, first + count), 256)
    return pixels, (np.arange(count) % 47).astype(np.uint8)


def write_idx(path, values):
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    content = header + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_parts(folder, form):
    """Writes EMNIST in one form, and returns what `data_dir` may be for it."""
    train, test = letters(470), letters(94, first=1000)
    below = folder / "below"
    below.mkdir()
    if form == "npz":
        path = below / "emnist_some.npz"
        np.savez(path, x_train=train[0], y_train=train[1], x_test=test[0], y_test=test[1])
        # Files that are divided into parts come first.
        np.savez(below / "emnist_pool.npz", x=test[0], y=test[1])
        return [folder, path]
    for part, (pixels, labels) in {"train": train, "test": test}.items():
        ending = ".gz" if form == "idx.gz" else ""
        name = f"emnist-balanced-{part}"
        write_idx(below / f"{name}-images-idx3-ubyte{ending}", pixels.transpose(0, 2, 1))
        write_idx(below / f"{name}-labels-idx1-ubyte{ending}", labels)
    return [folder]


class FakeDatasets(types.ModuleType):
    """What `load_images` uses of TensorFlow Datasets."""

    def __init__(self, **parts):
        super().__init__("tensorflow_datasets")
        self.parts, self.calls = parts, []

    def load(self, name, *, split, data_dir, shuffle_files):
        assert shuffle_files is False
        self.calls.append((name, split, data_dir))
        images, labels = self.parts[split]
        columns = {"image": images, "label": labels}
        return tf.data.Dataset.from_tensor_slices(columns)


@pytest.mark.parametrize("form", ["npz", "idx", "idx.gz", "tfds"])
def test_emnist_has_its_parts_and_classes_and_stands_upright(form, tmp_path, monkeypatch):
    if form == "tfds":
        parts = {
            part: (pixels.transpose(0, 2, 1)[..., np.newaxis], labels.astype(np.int64))
            for part, (pixels, labels) in {"train": letters(470), "test": letters(94, 1000)}.items()
        }
        fake = FakeDatasets(**parts)
        monkeypatch.setitem(sys.modules, "tensorflow_datasets", fake)
        data_dirs = [None, tmp_path]
    else:
        monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
        data_dirs = write_parts(tmp_path, form)
    for data_dir in data_dirs:
        parts = {split: load_images("emnist", split, data_dir=data_dir) for split in SPLITS}
        assert [len(images) for images in parts.values()] == [423, 47, 94]
        for images in parts.values():
            assert images.image_shape == (28, 28, 1) and images.labels.dtype == np.int64
            assert (images.pixels[:, 0] == 255).all() and not images.pixels[:, 10:].any()
        seen = {split: load_images("emnist", split, "seen", data_dir) for split in (*SPLITS, "all")}
        unseen = load_images("emnist", "test", "unseen", data_dir)
        assert set(unseen.labels) == set(range(10, 47)) and set(seen["test"].labels) == {*range(10)}
        assert digest_of(unseen) | digest_of(seen["test"]) == digest_of(parts["test"])
        digests = [digest_of(images) for images in parts.values()]
        assert len(set.union(*digests)) == 564
        expected = {
            (image.tobytes(), int(label))
            for pixels, labels in (letters(470), letters(94, 1000))
            for image, label in zip(pixels, labels, strict=True)
        }
        assert set.union(*digests) == expected
        assert len(digest_of(seen["all"])) == sum(len(digest_of(seen[s])) for s in SPLITS)
    if form == "tfds":
        assert set(fake.calls) == {
            ("emnist/balanced", part, data_dir)
            for part in ("train", "test")
            for data_dir in (None, str(tmp_path))
        }


def test_a_pool_of_images_is_divided_here(tmp_path):
    pixels, labels = letters(470)
    path = tmp_path / "emnist_pool.npz"
    np.savez(path, x=pixels, y=labels)
    parts = [load_images("emnist", split, data_dir=tmp_path) for split in SPLITS]
    assert [len(part) for part in parts] == [338, 38, 94]
    assert len(set.union(*map(digest_of, parts))) == 470
    assert len(load_images("emnist", "all", data_dir=path)) == 470
    np.savez(tmp_path / "emnist_second.npz", x=pixels, y=labels)
    with pytest.raises(ValueError, match=r"are several. Received: .*pool.npz, .*second"):
        load_images("emnist", data_dir=tmp_path)


def test_mnist_needs_only_the_part_that_is_asked_for(tmp_path):
    pixels, labels = letters(20)
    write_idx(tmp_path / "t10k-images-idx3-ubyte", pixels)
    with pytest.raises(
        FileNotFoundError, match=r"t10k-labels-idx1-ubyte\[.gz\]. Received: only t10"
    ):
        load_images("mnist", "test", data_dir=tmp_path)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", labels % 10)
    images = load_images("mnist", "test", data_dir=tmp_path)
    np.testing.assert_array_equal(images.pixels[..., 0], pixels)
    for split in ("train", "validation", "all"):
        with pytest.raises(FileNotFoundError, match=r"must have the file train-images-idx3-ubyte"):
            load_images("mnist", split, data_dir=tmp_path)


def test_celeba_from_a_folder_and_from_tensorflow_datasets(tmp_path, monkeypatch):
    # Wider than high and higher than wide; what lies outside the square in the middle is white.
    pictures = []
    for number in range(11):
        tall = np.full([100, 64, 3], 255, np.uint8)
        tall[18:82] = [20 * number, 0, 7]
        tall[18:50, :, 1] = 100
        pictures.append(tall)
    folder = tmp_path / "celeba" / "img_align_celeba"
    folder.mkdir(parents=True)
    for number, tall in enumerate(pictures):
        image = tall
        if number == 7:
            image = np.full([64, 100, 3], 255, np.uint8)
            image[:, 18:82] = tall[18:82]
        (folder / f"{number:06}.png").write_bytes(tf.io.encode_png(image).numpy())
    (folder / "notes.txt").write_text("no picture")

    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    parts = [load_images("celeba", split, data_dir=tmp_path) for split in SPLITS]
    assert [len(part) for part in parts] == [8, 1, 2]
    assert len(set.union(*map(digest_of, parts))) == 11
    for images in parts:
        assert images.image_shape == (32, 32, 3) and set(images.labels) == {0}
        top, bottom = images.pixels[:, :16], images.pixels[:, 16:]
        assert (top[..., 1] == 100).all() and (bottom[..., 1] == 0).all()
        assert (images.pixels[..., 2] == 7).all() and (np.ptp(images.pixels[..., 0]) % 20 == 0)

    listed = "".join(f"{number:06}.png {number % 3}\n" for number in range(12))
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text(listed)
    published = [load_images("celeba", split, data_dir=tmp_path) for split in SPLITS]
    for part, images in enumerate(published):
        assert images.pixels[:, 0, 0, 0].tolist() == [20 * n for n in range(part, 11, 3)]
    # A folder with the pictures themselves, its list in the folder above.
    again = load_images("celeba", "test", data_dir=folder)
    np.testing.assert_array_equal(again.pixels, published[2].pixels)

    fake = FakeDatasets(
        **{
            part: (np.stack([pictures[n] for n in range(number, 11, 3)]), np.zeros(4 - number // 2))
            for number, part in enumerate(SPLITS)
        }
    )
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", fake)
    for part, images in zip(SPLITS, published, strict=True):
        loaded = load_images("celeba", part)
        np.testing.assert_array_equal(loaded.pixels, images.pixels)
    assert fake.calls == [("celeb_a", part, None) for part in SPLITS]

    (folder / "000004.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"000004.png` must be a jpg or png picture"):
        load_images("celeba", "validation", data_dir=tmp_path)
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text("000000.png 0\n000001.png 3\n")
    with pytest.raises(ValueError, match=r"Received: '000001.png 3' in line 2"):
        load_images("celeba", data_dir=tmp_path)


def test_files_that_do_not_hold_what_they_should(tmp_path):
    pixels, labels = letters(47)
    path = tmp_path / "emnist.npz"

    def refused(message, **arrays):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=f"emnist.npz.*{message}"):
            load_images("emnist", "all", data_dir=tmp_path)

    refused(
        r"must have the arrays x_train.*Received: x_train, y_train", x_train=pixels, y_train=labels
    )
    refused(r"must have the arrays y. Received: x", x=pixels)
    refused(r"x` must hold uint8 images .* Received: dtype float64", x=pixels / 255, y=labels)
    refused(r"Received: dtype uint8, shape \[47, 784\]", x=pixels.reshape(47, 784), y=labels)
    refused(r"integer labels of the shape \[n\] = \[47\].*\[46\]", x=pixels, y=labels[1:])
    refused(r"labels from 0 to 46. Received: labels from 1 to 47", x=pixels, y=labels + 1)
    np.savez(path, x=pixels, y=labels)
    with pytest.raises(ValueError, match=r"must have an image of split='all', classes=\(\)"):
        load_images("emnist", "all", (), tmp_path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"emnist.npz` must be an .npz file"):
        load_images("emnist", data_dir=path)
    path.unlink()

    images = tmp_path / "emnist-balanced-test-images-idx3-ubyte"
    write_idx(tmp_path / "emnist-balanced-test-labels-idx1-ubyte", labels)
    write_idx(images, pixels)
    content = images.read_bytes()
    for wrong, message in (
        (content[:-1], r"must hold 36848 values, for the shape \[47, 28, 28\].*Received: 36847"),
        (b"\x00\x00\x0d\x03" + content[4:], "beginning with 00000803. Received: .* 00000d03"),
        (content[:9], "Received: 9 bytes"),
    ):
        images.write_bytes(wrong)
        with pytest.raises(ValueError, match=message):
            load_images("emnist", "test", data_dir=tmp_path)
    images.rename(f"{images}.gz")
    with pytest.raises(ValueError, match=r"idx3-ubyte.gz` must be packed with gzip"):
        load_images("emnist", "test", data_dir=tmp_path)


@pytest.mark.parametrize("source", ["mnist", "emnist", "celeba"])
def test_without_files_and_without_tensorflow_datasets(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    for data_dir in (None, tmp_path):
        with pytest.raises(ImportError) as error:
            load_images(source, data_dir=data_dir)
        assert 'pip install "taylorformer[images]"' in str(error.value)
        assert f"{source}*.npz" in str(error.value)
        assert f"data_dir={'None' if data_dir is None else repr(str(data_dir))}" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"absent', which is not there"):
        load_images(source, data_dir=tmp_path / "absent")


def test_names_splits_and_classes():
    assert image_source_names() == ("digits", "mnist", "emnist", "celeba")
    for arguments, message in (
        (
            ("cifar",),
            "`source` must be one of digits, mnist, emnist, celeba. Received: source='cif",
        ),
        (("digits", "valid"), "`split` must be one of 'train', 'validation', 'test', 'all'"),
        (("digits", "test", "seen"), "`classes` must be integers or None for digits"),
        (("emnist", "test", "letters"), "`classes` must be 'seen', 'unseen', integers or None"),
        (("celeba", "test", [0]), "`classes` must be None for celeba"),
        (("digits", "test", [10]), "`classes` must be at most 9. Received: classes=10"),
    ):
        with pytest.raises(ValueError, match=message):
            load_images(*arguments)


def test_shared_files(shared_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    folder = shared_path("data", "emnist")
    parts = [load_images("emnist", split, "seen", folder) for split in SPLITS]
    assert [len(part) for part in parts] == [1734, 181, 60]
    assert sum(map(len, map(digest_of, parts))) == len(set.union(*map(digest_of, parts)))
    assert len(load_images("emnist", "all", data_dir=folder)) == 9120 + 304
    pool = load_images("emnist", "all", "unseen", folder / "emnist_bymerge_test_subset.npz")
    assert set(pool.labels) == set(range(10, 47)) and len(pool) > 14_000
    assert not digest_of(pool) & digest_of(load_images("emnist", "all", data_dir=folder))
    # Upright: the digit 1 is a stroke from top to bottom.
    ones = load_images("emnist", "train", [1], folder).pixels.astype(float)
    assert ones.mean(axis=(0, 3)).max(axis=1)[6:22].min() > 100
    assert (ones.sum(axis=(2, 3)) > 0).mean() > (ones.sum(axis=(1, 3)) > 0).mean() + 0.2
    mnist = load_images("mnist", "test", [1], shared_path("data", "mnist"))
    assert len(mnist) == 1135
    rows, columns = (mnist.pixels.sum(axis=axis) > 0 for axis in ((2, 3), (1, 3)))
    assert rows.mean() > columns.mean() + 0.2
