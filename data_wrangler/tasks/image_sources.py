"""The named sources of images: what each holds, and in which files and parts it is published."""

import dataclasses
from collections.abc import Iterable, Mapping

from taylorformer.data_wrangler.checks import check_integer

PARTS = ("train", "validation", "test")
WHOLE = "all"


@dataclasses.dataclass(frozen=True)
class ImageSource:
    """A named source of images.

    Attributes:
        name: what `load_images` knows it by; `.npz` files that hold it begin with it.
        num_classes: labels are 0 to `num_classes - 1`. 0: the images have no classes.
        num_seen: how many classes, from 0 on, are "seen" in training; the others are "unseen".
            None: the classes are not divided so.
        max_value: the value of a fully bright pixel.
        bundled: the images come with scikit-learn, and are not divided into parts.
        idx_prefixes: for each part what the names of its idx files begin with.
        transposed: idx files and TensorFlow Datasets have rows and columns exchanged.
        picture_folder: the name of the folder of jpg or png files, or None.
        partition_list: the name of the file that tells the part of each of these pictures.
        tfds_name: the name in TensorFlow Datasets, or None.
        tfds_parts: the parts there.
    """

    name: str
    num_classes: int
    num_seen: int | None = None
    max_value: int = 255
    bundled: bool = False
    idx_prefixes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    transposed: bool = False
    picture_folder: str | None = None
    partition_list: str = ""
    tfds_name: str | None = None
    tfds_parts: tuple[str, ...] = ("train", "test")

    @property
    def file_forms(self) -> list[str]:
        """The files that may hold it, in words."""
        forms = [f"{self.name}*.npz"]
        forms += [f"{prefix}-images-idx3-ubyte[.gz]" for prefix in self.idx_prefixes.values()]
        if self.picture_folder is not None:
            forms.append(f"a folder {self.picture_folder} of pictures")
        return forms

    def find_classes(self, classes: str | Iterable[int] | None) -> list[int] | None:
        """Returns the labels of the classes to keep; None for all.

        Args:
            classes: labels, "seen", "unseen", or None.

        Raises:
            TypeError: A label that is no integer.
            ValueError: An unknown word or label, or labels where the images have no classes.
        """
        if classes is None:
            return None
        groups = {}
        if self.num_seen is not None:
            groups["seen"] = list(range(self.num_seen))
            groups["unseen"] = list(range(self.num_seen, self.num_classes))
        if isinstance(classes, str) and classes in groups:
            return groups[classes]
        if isinstance(classes, str) or not isinstance(classes, Iterable) or not self.num_classes:
            choices = [repr(group) for group in groups]
            choices += ["integers or None" if self.num_classes else "None"]
            raise ValueError(
                f"`classes` must be {', '.join(choices)} for {self.name}. "
                f"Received: classes={classes!r}"
            )
        return [check_integer("classes", label, 0, self.num_classes - 1) for label in classes]


SOURCES = {
    source.name: source
    for source in (
        ImageSource("digits", num_classes=10, max_value=16, bundled=True),
        ImageSource(
            "mnist",
            num_classes=10,
            idx_prefixes={"train": "train", "test": "t10k"},
            tfds_name="mnist",
        ),
        ImageSource(
            "emnist",
            num_classes=47,
            num_seen=10,
            idx_prefixes={"train": "emnist-balanced-train", "test": "emnist-balanced-test"},
            transposed=True,
            tfds_name="emnist/balanced",
        ),
        ImageSource(
            "celeba",
            num_classes=0,
            picture_folder="img_align_celeba",
            partition_list="list_eval_partition.txt",
            tfds_name="celeb_a",
            tfds_parts=PARTS,
        ),
    )
}
"""All sources by name."""


def image_source_names() -> tuple[str, ...]:
    """Returns the names that `load_images` knows.

    Example:
        >>> image_source_names()
        ('digits', 'mnist', 'emnist', 'celeba')
    """
    return tuple(SOURCES)


def find_source(name: str) -> ImageSource:
    """Returns the source of a name, in capitals or not.

    Raises:
        ValueError: No source has this name.
    """
    if isinstance(name, str) and name.lower() in SOURCES:
        return SOURCES[name.lower()]
    raise ValueError(f"`source` must be one of {', '.join(SOURCES)}. Received: source={name!r}")
