"""Files that earlier versions wrote load, and compute what they computed then."""

import importlib.util
from pathlib import Path

import keras
import numpy as np
import pytest

FOLDER = Path(__file__).parent / "golden"
MODELS = sorted(path.stem for path in FOLDER.glob("*.keras"))
FORECASTERS = sorted(path.name for path in FOLDER.glob("forecaster_*"))


@pytest.fixture(scope="module")
def golden():
    """Loads `tests/golden/make.py`, which wrote the files."""
    spec = importlib.util.spec_from_file_location("golden", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def masks_of_then(monkeypatch):
    """Draws the masks of dropout as `keras.layers.Dropout` does: the files were made with it.

    Everything else in training is compared, and that the seeds in the files are taken as they were.
    """
    from taylorformer.model.layers.dropout import Dropout

    def call(self, inputs, training=False):
        return keras.layers.Dropout.call(self, inputs, training=training)

    monkeypatch.setattr(Dropout, "call", call)


def _check(file, outputs):
    with np.load(FOLDER / "outputs.npz") as written:
        expected = {
            name.removeprefix(f"{file}/"): written[name]
            for name in written.files
            if name.startswith(f"{file}/")
        }
    assert set(outputs) == set(expected) and expected
    for name, values in outputs.items():
        # Of the largest value, since a sample path carries the rounding of its first points on.
        atol = 1e-5 * max(1.0, np.abs(expected[name]).max())
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=atol, err_msg=name)


def test_there_is_a_file_of_each_kind():
    assert MODELS == ["anp", "np", "taylorformer", "taylorformer_second", "tnp"]
    assert FORECASTERS == ["forecaster_standard", "forecaster_window"]


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run:UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_models_compute_and_train_as_they_did(golden, masks_of_then, eagerly, name):
    _check(name, golden.model_outputs(FOLDER / f"{name}.keras"))


@pytest.mark.parametrize("name", FORECASTERS)
def test_forecasters_forecast_and_score_as_they_did(golden, eagerly, name):
    _check(name, golden.forecaster_outputs(FOLDER / name))


def test_a_checkpoint_is_resumed(golden, masks_of_then):
    _check("checkpoint", golden.resumed_outputs(FOLDER / "checkpoint.npz"))


def test_a_task_set_is_read(golden):
    from taylorformer.data_wrangler import TaskSet

    inputs, y_target = TaskSet.load(FOLDER / "tasks.npz").batch(range(4))
    _check("tasks", {**inputs, "y_target": y_target})


@pytest.mark.parametrize("version", ["prior-1", "prior-2"])
def test_the_weights_of_the_package_compute_what_they_did(version):
    """In user units; of each series relative to its largest value."""
    spec = importlib.util.spec_from_file_location("golden_prior", FOLDER / "prior.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.load(FOLDER / f"{version}.npz") as written:
        expected = dict(written)
    outputs = module.outputs(version)
    assert outputs.keys() == expected.keys()
    np.testing.assert_allclose(outputs["log_prob"], expected["log_prob"], rtol=1e-4, atol=1e-3)
    for name in ("mean", "scale", "samples"):
        axis = tuple(axis for axis in range(expected[name].ndim) if axis != expected[name].ndim - 3)
        size = np.abs(expected[name]).max(axis=axis, keepdims=True)
        np.testing.assert_allclose(
            outputs[name] / size, expected[name] / size, rtol=0, atol=1e-4, err_msg=name
        )
