"""The command that demonstrates the package: `demo`."""

from pathlib import Path

import click
from rich.console import Console

from taylorformer.commands import options
from taylorformer.commands.outputs import check_output_folder, overwrite_option


@click.command()
@options.output_folder_option("Folder for the figures and tables.", default=Path("runs/demo"))
@options.seed_option("Seed of everything drawn.")
@click.option("--steps", type=options.POSITIVE, default=300, help="Training steps, at most.")
@click.option("--samples", type=options.POSITIVE, default=100, help="Samples of a forecast.")
@overwrite_option
def demo(output: Path, seed: int, steps: int, samples: int, overwrite: bool) -> None:
    """Forecast a real series without training, then train on it, and compare."""
    check_output_folder(output, overwrite)
    options.start_tensorflow()
    from taylorformer.training_and_evaluation.forecasting.demo import run_demo

    run_demo(
        output=output,
        seed=seed,
        steps=steps,
        num_samples=samples,
        overwrite=overwrite,
        console=Console(),
    )
