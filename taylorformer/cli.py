"""The command line, `taylorformer`.

Commands import what they need when they run, so that `--help` is quick and needs no TensorFlow.
Bad input gives one line on standard error and the exit code 2. Any other error is a fault of this
package: it gives a traceback and the exit code 1.
"""

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

import click

from taylorformer.commands.demo import demo
from taylorformer.commands.experiment import experiment
from taylorformer.commands.forecast import backtest, export, fit, forecast
from taylorformer.commands.options import BAD_INPUT, FAULT, STOPPED


class _BadInput(click.ClickException):
    exit_code = BAD_INPUT


class _Group(click.Group):
    """Turns the errors that the package raises on bad input into messages for the command line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ImportError, OSError, ValueError) as error:
            if ctx.params["debug"]:
                click.echo(traceback.format_exc(), err=True)
            raise _BadInput(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _show_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Shows the version of this package and of those that its numbers depend on, and stops."""
    if not asked or context.resilient_parsing:
        return
    from taylorformer.data_wrangler.provenance import versions

    numbers = versions()
    click.echo(f"taylorformer {numbers.pop('taylorformer')}")
    for name, number in numbers.items():
        click.echo(f"{name} {number}")
    context.exit()


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    invoke_without_command=True,
)
@click.option(
    "--debug",
    is_flag=True,
    envvar="TAYLORFORMER_DEBUG",
    show_envvar=True,
    show_default=False,
    help="Show the traceback of an error, and the notes of TensorFlow on starting.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    show_default=False,
    callback=_show_version,
    help="Show the versions of this package and of what it builds on.",
)
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Taylorformer: joint predictive distributions of time series and other random processes.

    Exit codes: 0 done, 1 a fault of taylorformer, 2 bad input, 130 stopped. Bad input is one line.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (demo, fit, forecast, backtest, export, experiment):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line.

    Args:
        arguments: What follows the name of the program; by default the arguments of the process.

    Raises:
        SystemExit: Always, with 0 (done), 1 (a fault of this package), 2 (bad input) or 130
            (stopped by the user).
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        sys.exit(_exit_code(arguments))


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        return cli.main(arguments, prog_name="taylorformer", standalone_mode=False) or 0
    except click.ClickException as error:
        click.echo(f"Error: {' '.join(error.format_message().split())}", err=True)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return STOPPED
    except Exception:
        click.echo(traceback.format_exc(), err=True)
        click.echo(
            "This is a fault of taylorformer, and not of what it was given. Please report it, with "
            "the lines above and those of `taylorformer --version`.",
            err=True,
        )
        return FAULT


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Shows a warning as one line, without the line of source that raised it."""
    click.echo(f"Warning: {' '.join(str(message).split())}", err=True)
