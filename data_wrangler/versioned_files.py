"""Versioned files, whose format number is checked when they are read; they are replaced whole.

A versioned file is JSON text, or an `.npz` file of arrays with JSON text as the array `meta`. Its
JSON object holds, beside the content, `format`, a number that changes whenever older versions could
no longer read the file, and `versions`, of the packages that wrote it.
"""

import dataclasses
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from taylorformer.data_wrangler.provenance import versions
from taylorformer.data_wrangler.whole_files import open_replaced

_META = "meta"

# Raised while JSON, `.npz` or the content of either is read from a file that is something else.
_UNREADABLE = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)

_Content = TypeVar("_Content")


@dataclasses.dataclass(frozen=True)
class FileKind:
    """A kind of versioned file.

    Attributes:
        format_number: of the format that this version writes, the only one that it reads.
        writer: what writes such files, for messages.
        argument: the name under which users hand over the path, for messages.
    """

    format_number: int
    writer: str
    argument: str = "path"


def write_json(
    kind: FileKind,
    path: str | os.PathLike[str],
    content: Mapping[str, Any],
    *,
    indent: int = 2,
    allow_nan: bool = True,
) -> dict[str, Any]:
    """Writes a versioned file of JSON text; a file that is there is replaced whole.

    Args:
        kind: of the file.
        path: of the file, used as it is; its folder is made.
        content: what JSON can hold, without `format` and `versions`.
        indent: spaces of one level.
        allow_nan: whether numbers that are not finite may be written, which is not strict JSON.

    Returns:
        The whole object in the file, with `format` and `versions`.
    """
    whole = _with_versions(kind, content)
    text = json.dumps(whole, indent=indent, allow_nan=allow_nan) + "\n"
    with open_replaced(path) as file:
        file.write(text.encode())
    return whole


def read_json(
    kind: FileKind,
    path: str | os.PathLike[str],
    make: Callable[[dict[str, Any]], _Content],
) -> _Content:
    """Reads a versioned file of JSON text.

    Args:
        kind: of the file.
        path: of the file.
        make: makes what is returned from the object in the file. An error such as a missing key
            means that the file holds something else.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file was not written by the writer of its kind, or has a format that this
            version does not know.
    """
    path = Path(path)

    def read() -> _Content:
        content = json.loads(path.read_text(encoding="utf-8"))
        _check_format(kind, path, content)
        return make(content)

    return _read(kind, path, read)


def write_arrays(
    kind: FileKind,
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    meta: Mapping[str, Any],
) -> None:
    """Writes a versioned `.npz` file, without pickle; a file that is there is replaced whole.

    Args:
        kind: of the file.
        path: of the file, used as it is; its folder is made.
        arrays: by name; none of them may be called `meta`.
        meta: what JSON can hold, without `format` and `versions`.
    """
    text = json.dumps(_with_versions(kind, meta))
    content: dict[str, Any] = {**arrays, _META: np.array(text)}
    with open_replaced(path) as file:
        np.savez(file, **content)


def read_arrays(
    kind: FileKind,
    path: str | os.PathLike[str],
    make: Callable[[dict[str, np.ndarray], dict[str, Any]], _Content],
) -> _Content:
    """Reads a versioned `.npz` file.

    Args:
        kind: of the file.
        path: of the file.
        make: makes what is returned from the arrays by name and the JSON object. An error such as a
            missing key means that the file holds something else.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file was not written by the writer of its kind, or has a format that this
            version does not know.
    """
    path = Path(path)

    def read() -> _Content:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop(_META)))
        _check_format(kind, path, meta)
        return make(arrays, meta)

    return _read(kind, path, read)


class _UnknownFormatError(ValueError):
    """The file has the right writer and another format."""


def _with_versions(kind: FileKind, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": kind.format_number, "versions": versions(), **content}


def _read(kind: FileKind, path: Path, read: Callable[[], _Content]) -> _Content:
    """Reads a file, or says which file it was and what it should be."""
    wish = f"`{kind.argument}` must lead to a file that {kind.writer} wrote"
    if not path.exists():
        raise FileNotFoundError(f"{wish}. Received: {path}, which is not there")
    try:
        return read()
    except _UnknownFormatError:
        raise
    except _UNREADABLE as error:
        raise ValueError(f"{wish}. Received: {path} ({error!r})") from error


def _check_format(kind: FileKind, path: Path, content: dict[str, Any]) -> None:
    # Both entries are read in either case: a file without one of them is something else.
    made_by, number = content["versions"], content["format"]
    version = made_by.get("taylorformer", "of an unknown version")
    if number != kind.format_number:
        raise _UnknownFormatError(
            f"a file that {kind.writer} wrote must have the format {kind.format_number}. "
            f"Received: {path} of the format {number}, made by taylorformer {version}; this is "
            f"{versions()['taylorformer']}"
        )
