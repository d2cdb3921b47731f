"""Files and folders that are replaced whole: whenever a process ends, it is the old or the new one.

What is written goes to a hidden folder beside its destination first, and is moved when it is
complete.
"""

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_UNFINISHED = ".unfinished"
_COMPLETE = ".complete"
# No write takes a day: an unfinished folder that is older was left by a process that was killed.
_SECONDS_TO_KEEP = 24 * 3600.0
# Of a name that is part of a hidden one: both must fit into the 255 bytes of a file system.
_LETTERS_OF_NAME = 40
# The flags of `renameat2` (Linux) and `renamex_np` (macOS) that exchange two paths in one step.
_RENAME_EXCHANGE = _RENAME_SWAP = 2
# Linux: relative paths start from the working directory.
_AT_FDCWD = -100


def refuse_existing(path: str | os.PathLike[str], overwrite: bool, name: str = "path") -> None:
    """Refuses a path that holds something already, unless it may be replaced.

    An empty folder holds nothing.

    Args:
        path: of a file or folder that is to be written.
        overwrite: whether what is there may be replaced.
        name: of the argument, for the message.

    Raises:
        FileExistsError: something is there, and `overwrite` is False.
    """
    path = Path(path)
    if overwrite or not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return
    what = "a folder that is not empty" if path.is_dir() else "which is there"
    raise FileExistsError(
        f"`{name}` must not be there yet, unless overwrite=True. Received: {path}, {what}"
    )


@contextlib.contextmanager
def replaced_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a path to write to, which is moved to `path` when the block ends.

    Whenever the process ends, `path` is what it was before, or complete. If the block raises an
    error, `path` is what it was. (Where the file system cannot exchange two folders in one step,
    there is a moment in which `path` is no folder.) The folder around `path` is made, a link is
    followed, and the permissions of what is replaced are kept. A device or a pipe is written to
    directly.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with replaced_whole(folder / "notes.txt") as unfinished:
        ...     _ = unfinished.write_text("complete")
        >>> (folder / "notes.txt").read_text(), len(list(folder.iterdir()))
        ('complete', 1)

    Args:
        path: of a file or folder.

    Yields:
        A path with the same name, where nothing is yet; the block makes a file or folder there.

    Raises:
        OSError: it cannot be written, or a file is to replace a folder or a folder a file.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        with tempfile.TemporaryDirectory() as folder:
            content = Path(folder) / path.name
            yield content
            with content.open("rb") as file, path.open("wb") as device:
                shutil.copyfileobj(file, device)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _unfinished_folder(path.parent, path.name) as folder:
        new = folder / path.name
        yield new
        _check_alike(new, path)
        _write_through(folder)
        if path.exists():
            shutil.copymode(path, new)
        if new.is_dir() and path.exists():
            _exchange(new, path, folder)
        else:
            os.replace(new, path)
        _write_through(path.parent, deep=False)


@contextlib.contextmanager
def open_replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file to write bytes, which is moved to `path` when the block ends.

    See `replaced_whole`.
    """
    with replaced_whole(path) as unfinished, unfinished.open("wb") as file:
        yield file


@contextlib.contextmanager
def replaced_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a folder to write files to, which replace those of the same names in `folder` together.

    Other files in `folder` stay. Whenever the process ends, `find_file` finds all files of before,
    or all new ones. (The new files become valid when their folder gets another name, which is one
    step; they are moved afterwards, and what a killed process has left to move, the next one
    moves.)

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with replaced_together(folder) as unfinished:
        ...     for name in ("weights", "settings"):
        ...         _ = (unfinished / name).write_text("new")
        >>> sorted(path.name for path in folder.iterdir()), find_file(folder, "weights").read_text()
        (['settings', 'weights'], 'new')

    Args:
        folder: made if it is not there.

    Yields:
        An empty folder, for files only.

    Raises:
        OSError: it cannot be written.
    """
    folder = Path(os.path.realpath(folder))
    folder.mkdir(parents=True, exist_ok=True)
    with _unfinished_folder(folder, "files") as unfinished:
        new = unfinished / "files"
        new.mkdir()
        yield new
        _write_through(unfinished)
        complete = folder / _COMPLETE
        # Of a process that was killed while it moved its files.
        _move_all(complete, folder)
        os.rename(new, complete)
        _write_through(folder, deep=False)
        _move_all(complete, folder)


def find_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Returns where a file of a folder is that `replaced_together` writes; it may not exist."""
    moving = Path(folder) / _COMPLETE / name
    return moving if moving.exists() else Path(folder) / name


@contextlib.contextmanager
def _unfinished_folder(parent: Path, name: str) -> Iterator[Path]:
    """Makes a folder for what is not complete, with a name that no other process has."""
    name = name[:_LETTERS_OF_NAME]
    for entry in os.scandir(parent):
        if entry.name.startswith(f".{name}.") and entry.name.endswith(_UNFINISHED):
            with contextlib.suppress(OSError):  # where another process was quicker
                if time.time() - entry.stat().st_mtime > _SECONDS_TO_KEEP:
                    shutil.rmtree(entry.path)
    try:
        folder = tempfile.mkdtemp(prefix=f".{name}.", suffix=_UNFINISHED, dir=parent)
    except OSError as error:
        # The hidden name would mean nothing to a reader.
        raise OSError(error.errno, error.strerror, str(parent)) from error
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_alike(new: Path, old: Path) -> None:
    if old.is_dir() and not new.is_dir():
        raise IsADirectoryError(f"`path` must be a file. Received: {old}, a folder")
    if old.is_file() and new.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received: {old}, a file")


def _write_through(path: Path, deep: bool = True) -> None:
    """Sees to it that a folder is on the disk; with `deep`, also all that is in it."""
    for folder, _, names in os.walk(path):
        for name in names if deep else ():
            with (Path(folder) / name).open("rb+") as file:
                os.fsync(file.fileno())
        if os.name == "posix":
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if not deep:
            return


def _move_all(source: Path, destination: Path) -> None:
    """Moves the files of a folder, and removes it; a folder that is not there has none."""
    if source.is_dir():
        for path in sorted(source.iterdir()):
            os.replace(path, destination / path.name)
        source.rmdir()


def _exchange(new: Path, old: Path, unfinished: Path) -> None:
    """Exchanges two folders, in one step where the system can do that."""
    if _exchanged_at_once(os.fsencode(new), os.fsencode(old)):
        return
    kept = unfinished / "replaced"
    os.rename(old, kept)
    try:
        os.rename(new, old)
    except OSError:
        os.rename(kept, old)
        raise


def _exchanged_at_once(first: bytes, second: bytes) -> bool:
    """Exchanges two paths, or returns False where the system or its file system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return library.renamex_np(first, second, _RENAME_SWAP) == 0
        return library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE) == 0
    except (AttributeError, OSError, TypeError):
        return False
