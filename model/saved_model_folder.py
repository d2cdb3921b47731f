"""What may be replaced by a SavedModel. It needs no TensorFlow."""

import os
from pathlib import Path

from taylorformer.data_wrangler.checks import listed
from taylorformer.data_wrangler.whole_files import refuse_existing

# What TensorFlow writes into the folder of a SavedModel.
_CONTENT = ("saved_model.pb", "fingerprint.pb", "variables", "assets", "assets.extra")


def check_export_folder(path: str | os.PathLike[str], overwrite: bool, name: str = "path") -> None:
    """Refuses a folder that cannot be replaced by a SavedModel without loss.

    Args:
        path: of the folder.
        overwrite: whether a SavedModel that is there may be replaced.
        name: of the argument, for messages.

    Raises:
        FileExistsError: a SavedModel is there and `overwrite` is False, or anything else is there.
    """
    path = Path(path)
    if path.is_dir():
        others = sorted(entry.name for entry in path.iterdir() if entry.name not in _CONTENT)
        if others:
            raise FileExistsError(
                f"`{name}` must be a folder of its own for a SavedModel. "
                f"Received: {path}, which holds {listed(others)}"
            )
    elif path.exists():
        raise FileExistsError(f"`{name}` must be a folder. Received: {path}, a file")
    refuse_existing(path, overwrite, name)
