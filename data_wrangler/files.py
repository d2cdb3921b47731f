"""Files that are replaced whole, or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replaced_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file to write that takes the place of `path` when it is complete.

    Whenever the process ends, `path` is the old file or the new one. Its folder is made.

    Args:
        path: of the file, used as it is.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
