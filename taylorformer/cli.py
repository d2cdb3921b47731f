"""The command line, `taylorformer`.

Commands import what they need when they run, so that `--help` is quick and needs no TensorFlow.
Bad input gives one line on standard error and the exit code 2.
"""

import sys
from collections.abc import Sequence
from typing import Any

import click

from taylorformer.commands.demo import demo
from taylorformer.commands.experiment import experiment
from taylorformer.commands.forecast import backtest, export, fit, forecast
from taylorformer.commands.options import BAD_INPUT, STOPPED


class _BadInput(click.ClickException):
    exit_code = BAD_INPUT


class _Group(click.Group):
    """Turns the errors that the package raises on bad input into messages for the command line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ImportError, OSError, TypeError, ValueError) as error:
            if ctx.params["debug"]:
                raise
            message = str(error) or type(error).__name__
            raise _BadInput(message) from error


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
    help="Show the traceback of an error.",
)
@click.version_option(package_name="taylorformer")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Taylorformer: joint predictive distributions of time series and other random processes."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (demo, fit, forecast, backtest, export, experiment):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line.

    Args:
        arguments: What follows the name of the program; by default the arguments of the process.

    Raises:
        SystemExit: Always, with 0 (done), 1 (stopped by the user) or 2 (bad input).
    """
    try:
        code = cli.main(arguments, prog_name="taylorformer", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"Error: {' '.join(error.format_message().split())}", err=True)
        sys.exit(BAD_INPUT)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(STOPPED)
    sys.exit(code or 0)
