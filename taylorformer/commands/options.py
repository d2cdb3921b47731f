"""Options that several commands have, and what the commands do alike around their work.

Nothing here imports TensorFlow before a command asks for it.
"""

import contextlib
import faulthandler
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]

FAULT, BAD_INPUT, STOPPED = 1, 2, 130
"""The exit codes of a command in which this package has a fault, of one with bad input, and of one
that was stopped by the user, which is 128 and the number of the signal of Ctrl-C."""

POSITIVE = click.IntRange(min=1)
"""Numbers of rows, steps, samples, ..."""

POSITIVE_REAL = click.FloatRange(min=0, min_open=True)
"""Learning rates, norms, ..."""

BETWEEN_0_AND_1 = click.FloatRange(0, 1, min_open=True, max_open=True)
"""Decays."""

# Level 3 of TensorFlow's own log shows fatal errors alone.
_FATAL_ERRORS_ALONE = "3"
_STANDARD_ERROR = 2


def joined(*options: Option) -> Callable[[Command], Command]:
    """Joins options into one decorator; `--help` lists them in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def seed_option(help_text: str) -> Option:
    """The option `--seed`."""
    return click.option("--seed", type=click.IntRange(min=0), default=0, help=help_text)


def number_option(name: str, default: str, help_text: str) -> Option:
    """An option that takes a positive number; `default` says in words what holds without it."""
    return click.option(name, type=POSITIVE, show_default=default, help=help_text)


def learning_rate_option(default: str) -> Option:
    """The option `--learning-rate`; `default` says in words what holds without it."""
    return click.option(
        "--learning-rate",
        type=POSITIVE_REAL,
        show_default=default,
        help="Of Adam, at the start.",
    )


def output_folder_option(help_text: str, **settings: Any) -> Option:
    """The option `--output` of a command that writes to a folder."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--output", type=folder, help=help_text, **settings)


def data_dir_option(help_text: str, file_okay: bool = False) -> Option:
    """The option `--data-dir`: where files lie that are known by a name."""
    path = click.Path(exists=True, file_okay=file_okay, path_type=Path)
    return click.option("--data-dir", type=path, help=help_text)


def resume_options(resume_help: str, overwrite_help: str) -> Callable[[Command], Command]:
    """The options `--resume` and `--overwrite` of a command that trains."""
    return joined(
        click.option("--resume", is_flag=True, help=resume_help),
        click.option("--overwrite", is_flag=True, help=overwrite_help),
    )


def refuse_both(first: str, is_first: bool, second: str, is_second: bool) -> None:
    """Refuses two options that exclude each other, where both were given.

    Raises:
        click.UsageError: Both were.
    """
    if is_first and is_second:
        raise click.UsageError(f"{first} and {second} exclude each other.")


def refusal(option: str, obstacle: str, overwrite: str, resume: str = "") -> click.BadParameter:
    """Returns the error of a command that would replace files unasked.

    Args:
        option: that names the files.
        obstacle: what is there, as a sentence.
        overwrite: what `--overwrite` does.
        resume: what `--resume` does; empty where the command cannot resume.
    """
    ways = [f"--resume {resume}"] if resume else []
    ways.append(f"--overwrite {overwrite}")
    return click.BadParameter(f"{obstacle}; {', '.join(ways)}.", param_hint=option)


def start_tensorflow() -> None:
    """Imports TensorFlow with a word about the wait, and registers the classes of the package.

    Raises:
        ImportError: Where Keras has another backend than TensorFlow.
    """
    from taylorformer import _registry

    if sys.stderr.isatty():
        click.echo("Starting TensorFlow, which takes some seconds ...", err=True)
    # Its notes on starting are not for the users of a command; warnings of Python still show.
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _FATAL_ERRORS_ALONE)
    context = click.get_current_context(silent=True)
    debugging = context is not None and bool(context.find_root().params.get("debug"))
    quiet = level == _FATAL_ERRORS_ALONE and not debugging
    with _held_back_notes() if quiet else contextlib.nullcontext():
        _registry.check_backend()
        import tensorflow as tf

        _registry.register()
        # The first look at the devices writes more notes.
        tf.config.list_physical_devices()


@contextlib.contextmanager
def _held_back_notes() -> Iterator[None]:
    """Keeps what native code writes to standard error off the screen, unless the block fails.

    TensorFlow writes its first notes before it reads its log level.
    """
    sys.stderr.flush()
    screen = os.dup(_STANDARD_ERROR)
    # If native code ends the process, the line of Python is still shown.
    handles_faults = not faulthandler.is_enabled()
    if handles_faults:
        faulthandler.enable(file=screen)
    try:
        with tempfile.TemporaryFile() as notes:
            os.dup2(notes.fileno(), _STANDARD_ERROR)
            try:
                yield
            except Exception:
                notes.seek(0)
                os.write(screen, notes.read())
                raise
            finally:
                sys.stderr.flush()
                os.dup2(screen, _STANDARD_ERROR)
    finally:
        if handles_faults:
            faulthandler.disable()
        os.close(screen)


@contextlib.contextmanager
def stoppable(advice: Callable[[], str]) -> Iterator[None]:
    """Lets Ctrl-C and the signal SIGTERM end a training with advice and the exit code `STOPPED`.

    Args:
        advice: returns a sentence on how to continue, which may be empty; called when it stopped.

    Raises:
        SystemExit: The training was stopped.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    earlier_handler = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"Stopped. {advice()}".rstrip(), err=True)
        raise SystemExit(STOPPED) from None
    finally:
        signal.signal(signal.SIGTERM, earlier_handler)
