"""Checks of the files and folders that a command is to write, made before it does any work."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from taylorformer.commands import options

overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace files that are there already."
)


def check_output_folder(path: Path, overwrite: bool) -> None:
    """Refuses a folder `--output` that holds something, unless it may be replaced.

    Raises:
        click.BadParameter: it does, and `overwrite` is False.
    """
    if path.exists() and any(path.iterdir()) and not overwrite:
        raise options.refusal("--output", f"{path} is not empty", "replaces what is in it")


def check_output(option: str, path: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuses a file that is not to be replaced.

    Args:
        option: that names the file, for messages.
        path: of the file.
        overwrite: whether a file that is there may be replaced.
        inputs: files that the command reads, which it never replaces.

    Raises:
        click.BadParameter: `path` is an input, cannot be written, or is there already.
    """
    real = Path(os.path.realpath(path))
    if any(real == Path(os.path.realpath(read)) for read in inputs):
        raise click.BadParameter(
            f"{path} is read by this command, which never writes over what it reads.",
            param_hint=option,
        )
    parent = next(folder for folder in real.parents if folder.exists())
    if not parent.is_dir():
        raise click.BadParameter(f"{parent} is a file, and no folder.", param_hint=option)
    if path.is_dir():
        raise click.BadParameter(f"{path} is a folder.", param_hint=option)
    if not os.access(parent, os.W_OK):
        raise click.BadParameter(f"{parent} must be writable.", param_hint=option)
    if path.is_file() and not overwrite:
        raise options.refusal(option, f"{path} is there", overwrite="replaces it")
