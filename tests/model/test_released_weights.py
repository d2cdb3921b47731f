"""The authors' trained models: their outputs, and their scores on ETTm2."""

import re

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from taylorformer import load_released_weights

RUNS = range(5)
CASES = ("ett_test", "irregular_2_5", "irregular_5_1", "irregular_20_80", "irregular_50_33")


def _prefix(folder):
    return str(next(folder.glob("*.index")).with_suffix(""))


@pytest.fixture(scope="module")
def models():
    return {}


def _load(models, shared_path, run):
    if run not in models:
        models[run] = load_released_weights(
            _prefix(shared_path("released_weights", "ett_96", f"run_{run}"))
        )
    return models[run]


@pytest.mark.parametrize("run", RUNS)
def test_golden_cases(run, models, shared_path):
    model = _load(models, shared_path, run)
    golden = np.load(shared_path("released_weights", "ett_96", f"run_{run}", "golden.npz"))
    assert {key.split("/")[0] for key in golden} == set(CASES)
    for case in CASES:
        x, y = golden[f"{case}/x"], golden[f"{case}/y"]
        count = int(golden[f"{case}/n_context"])
        outputs = model(
            {
                "x_context": x[:, :count],
                "y_context": y[:, :count],
                "x_target": x[:, count:],
                "y_target": y[:, count:],
            }
        )
        np.testing.assert_allclose(outputs["mean"], golden[f"{case}/mean"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(
            np.log(outputs["scale"] - 1e-3), golden[f"{case}/log_sigma"], rtol=0, atol=1e-3
        )


def test_parameter_count(models, shared_path):
    model = _load(models, shared_path, 0)
    assert sum(int(np.prod(weight.shape)) for weight in model.trainable_weights) == 91_858


def _published_scores(shared_path):
    text = shared_path("released_weights", "SOURCE.txt").read_text()
    rows = {}
    for name in ("NLL", "MSE"):
        line = re.search(rf"^\s*{name}\s+(.*)$", text, re.MULTILINE)
        rows[name] = [float(word) for word in line.group(1).split()[:5]]
    return rows


@pytest.fixture(scope="module")
def ett_windows():
    """The 640 windows of the ETTm2 test part, standardised as the authors did."""
    from conftest import shared_path

    frame = pd.read_csv(shared_path("data", "ett", "ETTm2.csv.gz"))
    values = frame["OT"].to_numpy()
    n = len(values)
    training = values[: int(0.69 * n)]
    test = (values[int(0.8 * n) :] - training.mean()) / training.std()
    starts = np.random.default_rng(0).choice(len(test) - 192, 640, replace=False)
    y = np.stack([test[start : start + 192] for start in starts])[..., None].astype("float32")
    x = np.linspace(-1, 1, 192, dtype="float32")[None, :, None].repeat(640, 0)
    inputs = {"x_context": x[:, :96], "y_context": y[:, :96], "x_target": x[:, 96:]}
    return tf.data.Dataset.from_tensor_slices((inputs, y[:, 96:])).batch(64)


@pytest.mark.parametrize(
    "run", [RUNS[0], *(pytest.param(run, marks=pytest.mark.slow) for run in RUNS[1:])]
)
def test_scores_on_ettm2(run, models, shared_path, ett_windows):
    published = _published_scores(shared_path)
    model = _load(models, shared_path, run)
    model.compile()
    scores = model.evaluate(ett_windows, verbose=0, return_dict=True)
    assert scores["nll"] == pytest.approx(published["NLL"][run], rel=2e-3)
    assert scores["teacher_forced_mse"] == pytest.approx(published["MSE"][run], rel=2e-3)


def _rewrite(shared_path, tmp_path, change):
    """Writes the checkpoint anew, with some names changed."""
    prefix = _prefix(shared_path("released_weights", "ett_96", "run_0"))
    reader = tf.train.load_checkpoint(prefix)
    names, values = [], []
    for name in reader.get_variable_to_shape_map():
        if name.startswith("net/"):
            for new, value in change(name, reader.get_tensor(name)):
                names.append(new)
                values.append(value)
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "ckpt"),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=values,
    )
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "ckpt")], destination_prefix=str(tmp_path / "whole")
    )
    return tmp_path / "whole"


_KERNEL = "net/_atp/mha_xy_b/1/ffn/dense_b/kernel"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda name, value: [], "must hold the weight"),
        (lambda name, value: [(name.replace("dense_b", "dense_q"), value)], "must hold the weight"),
        (lambda name, value: [(name, value[:, :-1])], "must have the shape"),
        (
            lambda name, value: [(name, value), (name.replace("kernel", "kernel_2"), value)],
            "in which the model has no",
        ),
    ],
    ids=["missing", "misnamed", "misshaped", "left over"],
)
def test_a_wrong_checkpoint_is_refused(change, message, shared_path, tmp_path):
    def change_one(name, value):
        return change(name, value) if name.startswith(_KERNEL) else [(name, value)]

    prefix = _rewrite(shared_path, tmp_path, change_one)
    with pytest.raises(ValueError, match=message):
        load_released_weights(prefix)


def test_an_absent_checkpoint_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"without its `\.index` ending"):
        load_released_weights(tmp_path / "nothing")
