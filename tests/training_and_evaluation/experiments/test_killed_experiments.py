"""Every kind of run, killed in the middle, ends with `--resume` as if it had not been."""

import json
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from taylorformer import load_model

_STEPS = ("--iterations", "60", "--validate-every", "2", "--batch-size", "4")
_EPOCHS = 30
_FEW = ("--validation-sequences", "4", "--test-sequences", "4")
_TUNED = ("--recipe", "tuned", "--average", "0.9", "--set", "fitted_order=3", "--variant", "tuned")
# Where this version of Keras has it.
_MUON = ("--optimizer", "muon") if hasattr(keras.optimizers, "Muon") else ()
_SMALL = ("width=8", "num_heads=2", "head_dim=4", "num_layers=1")

RUNS = {
    "a recipe, a variant and an average of weights": ("gp-rbf", *_STEPS, *_FEW, *_TUNED),
    "the latent model": ("gp-matern", *_STEPS, *_FEW, "--architecture", "anp"),
    "images": ("digits", *_STEPS, *_FEW),
    "series": ("ett-96", *_STEPS, *_FEW),
    "a direct forecast of series": ("etth1-96", *_STEPS, *_FEW, "--architecture", "informer-small"),
    "several repeats": ("gp-rbf", *_STEPS, *_FEW, "--architecture", "np", "--repeats", "2"),
    "the prior": ("prior", *_STEPS, *_MUON, *(word for one in _SMALL for word in ("--set", one))),
}


def _command(folder, *words):
    return [sys.executable, "-m", "taylorformer", "experiment", *words, "--output", str(folder)]


def _finish(folder, *words):
    done = subprocess.run(_command(folder, *words), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _checkpoints(folder):
    """Returns those that are whole."""
    return [path for path in folder.glob("**/training.npz") if ".unfinished" not in str(path)]


def _kill_after_a_checkpoint(folder, *words):
    """Kills the command as soon as there is a checkpoint of a run that is not done."""
    folder.mkdir()
    with (folder / "screen.txt").open("w") as screen:
        process = subprocess.Popen(_command(folder, *words), stdout=screen, stderr=screen)
        try:
            deadline = time.monotonic() + 300
            while not _checkpoints(folder):
                assert process.poll() is None and time.monotonic() < deadline, (
                    folder / "screen.txt"
                ).read_text()
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == -signal.SIGKILL
    (checkpoint,) = _checkpoints(folder)
    with np.load(checkpoint) as file:
        assert json.loads(str(file["meta"]))["epoch"] < _EPOCHS


def _results(folder):
    """Returns records without what differs from run to run."""
    results = {}
    for path in sorted(folder.glob("**/*.json")):
        record = json.loads(path.read_text())
        for name in ("seconds", "sha256"):
            record.pop(name, None)
        for point in record.get("curve", []):
            point.pop("seconds", None)
        results[str(path.relative_to(folder))] = record
    return results


def _weights(folder):
    """Returns the weights of all models, by their paths."""
    return {
        str(path.relative_to(folder)): load_model(path).get_weights()
        for path in sorted(folder.glob("**/*.keras"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_ends_as_if_it_had_not_been(name, tmp_path, shared_path):
    words = RUNS[name]
    if words[0].startswith("ett"):
        words = (*words, "--data-dir", str(shared_path("data")))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    _finish(whole, *words)
    _kill_after_a_checkpoint(broken, *words)
    assert not list(broken.glob("**/*.json"))
    _finish(broken, *words, "--resume")
    expected = _results(whole)
    assert expected and _results(broken) == expected
    ours, theirs = _weights(broken), _weights(whole)
    assert ours and list(ours) == list(theirs)
    for name, weights in theirs.items():
        for one, other in zip(ours[name], weights, strict=True):
            np.testing.assert_array_equal(one, other)
