"""The command line in one process, with a tiny preset, for the tests of this folder."""

import pytest
from forecasting import TINY

from taylorformer.cli import main
from taylorformer.training_and_evaluation.forecasting import presets


@pytest.fixture(scope="module", autouse=True)
def tiny_preset():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presets, "PRESETS", {**presets.PRESETS, "tiny": TINY})
        yield


@pytest.fixture
def run(capsys):
    """Runs a command; returns its exit code, standard output and standard error."""

    def command(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return stopped.value.code or 0, *capsys.readouterr()

    return command
