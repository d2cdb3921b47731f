"""The training on synthetic series: on record, stable at the start, resumed to the last bit."""

import dataclasses
import hashlib
import json
import shlex

import keras
import numpy as np
import pytest
import tensorflow as tf

import taylorformer
from taylorformer.data_wrangler import SeriesPrior
from taylorformer.training_and_evaluation.experiments.prior import PriorSettings, train_prior
from taylorformer.training_and_evaluation.training.gradient_norms import NormAdamW

_TINY = {
    "iterations": 6,
    "batch_size": 4,
    "warm_up": 2,
    "validate_every": 2,
    "validation_batches": 2,
    "num_heads": 2,
    "head_dim": 4,
    "width": 8,
    "num_layers": 2,
    "encoding_dim": 4,
}


def _settings(**changes):
    prior = SeriesPrior(max_context=16, max_targets=6)
    return PriorSettings(prior=prior, **{**_TINY, **changes})


class _StopAfter(keras.callbacks.Callback):
    def __init__(self, epochs):
        super().__init__()
        self._left = epochs

    def on_epoch_end(self, epoch, logs=None):
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


def test_settings_can_be_changed_by_name():
    changes = {
        "width": 24,
        "anchors": ["nearest", "season"],
        "average": 0.99,
        "prior.gaps": 0.0,
        "prior.shares": {"seasonal_arima": 1.0},
    }
    settings = PriorSettings.of(changes, seed=2, iterations=8, validate_every=4)
    assert settings.model_arguments["anchors"] == ("nearest", "season")
    assert settings.plan.average == 0.99
    assert settings.prior.shares == {"seasonal_arima": 1.0}
    words = shlex.split(settings.command)
    given = [words[i + 1].partition("=") for i, word in enumerate(words) if word == "--set"]
    again = {name: json.loads(value) for name, _, value in given}
    assert again == changes
    assert "--set" not in PriorSettings().command
    for name in ("prior.gap", "seed", "prior"):
        with pytest.raises(ValueError, match="`changes` must be one of 'warm_up'"):
            PriorSettings.of({name: 1})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, train_prior(_settings(), folder, show_progress=False)


def test_the_record_says_what_was_done(whole):
    folder, record = whole
    assert record == json.loads((folder / "prior" / "prior.json").read_text())
    assert record["iterations"] == 6 and len(record["curve"]) == 3
    assert record["command"].startswith("taylorformer experiment prior --seed 0 --iterations 6")
    for point in record["curve"]:
        assert point["gradient_norm"] > 0
        assert np.isfinite([point["training_nll"], point["validation_nll"]]).all()
    assert record["settings"]["prior"]["max_context"] == 16


def test_the_model_is_written_without_its_optimizer(whole):
    folder, record = whole
    model = taylorformer.load_model(folder / "prior" / "prior.keras")
    assert getattr(model, "optimizer", None) is None
    assert model.neighbour_dims == 1 and model.dropout == 0
    assert record["parameters"] == sum(weight.numpy().size for weight in model.trainable_weights)


def test_the_last_weights_are_kept(whole):
    folder, _ = whole
    model = taylorformer.load_model(folder / "prior" / "prior.keras")
    with np.load(folder / "prior" / "training.npz") as checkpoint:
        for index, weight in enumerate(model.weights):
            np.testing.assert_array_equal(weight.numpy(), checkpoint[f"model_{index}"])


@pytest.mark.slow
def test_a_training_begins_with_the_weights_of_another(whole, tmp_path):
    folder, _ = whole
    start = folder / "prior" / "prior.keras"
    settings = _settings(start=str(start), seed=1, iterations=2, learning_rate=1e-9)
    record = train_prior(settings, tmp_path, show_progress=False)
    assert record["settings"]["start"] == "prior.keras" and str(folder) not in record["command"]
    assert record["start_sha256"] == hashlib.sha256(start.read_bytes()).hexdigest()
    one, two = (taylorformer.load_model(path) for path in (start, tmp_path / "prior/prior.keras"))
    # The statistics of the normalisers move without the learning rate.
    for first, second in zip(one.trainable_weights, two.trainable_weights, strict=True):
        np.testing.assert_allclose(first.numpy(), second.numpy(), atol=1e-6)
    # A checkpoint has the same weights as the model that was written last.
    settings = dataclasses.replace(settings, start=str(folder / "prior" / "training.npz"))
    train_prior(settings, tmp_path / "again", show_progress=False)
    again = taylorformer.load_model(tmp_path / "again/prior/prior.keras")
    for first, second in zip(two.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)
    assert PriorSettings(start="prior-1").command.endswith("--set 'start=\"prior-1\"'")


def test_a_start_of_another_size_is_refused(whole, tmp_path):
    folder, _ = whole
    start = str(folder / "prior" / "prior.keras")
    with pytest.raises(ValueError, match=r"arguments .* Received: width=8, not 12"):
        train_prior(_settings(start=start, width=12), tmp_path, show_progress=False)
    checkpoint = str(folder / "prior" / "training.npz")
    with pytest.raises(ValueError, match=r"`start` must have the \d+ weights"):
        train_prior(_settings(start=checkpoint, width=12), tmp_path, show_progress=False)
    with pytest.raises(ValueError, match="`start` must be one of 'prior'"):
        train_prior(_settings(start="posterior"), tmp_path, show_progress=False)


@pytest.mark.slow
def test_a_training_that_was_stopped_resumes_to_the_same_weights(whole, tmp_path):
    folder, record = whole
    # The keeper comes after this callback: the second epoch is not in the checkpoint.
    with pytest.raises(KeyboardInterrupt):
        train_prior(_settings(), tmp_path, show_progress=False, callbacks=[_StopAfter(2)])
    resumed = train_prior(_settings(), tmp_path, resume=True, show_progress=False)
    one, two = (
        taylorformer.load_model(path / "prior" / "prior.keras") for path in (folder, tmp_path)
    )
    for first, second in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)
    for first, second in zip(record["curve"], resumed["curve"], strict=True):
        assert first["validation_nll"] == second["validation_nll"]


@pytest.mark.slow
@pytest.mark.parametrize("path_weight", [0.0, 1.0])
def test_a_training_at_a_constant_learning_rate_can_be_made_longer(tmp_path, path_weight):
    weights = []
    for folder, lengths in (("whole", (6,)), ("pieces", (4, 6))):
        for iterations in lengths:
            settings = _settings(
                schedule="constant", iterations=iterations, path_weight=path_weight
            )
            train_prior(settings, tmp_path / folder, resume=True, show_progress=False)
        weights.append(taylorformer.load_model(tmp_path / folder / "prior/prior.keras").weights)
    for first, second in zip(*weights, strict=True):
        np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert "--schedule constant" in settings.command


def test_only_a_cosine_needs_to_know_its_end():
    constant, cosine = (
        [_settings(schedule=schedule, iterations=iterations).fingerprint for iterations in (6, 8)]
        for schedule in ("constant", "cosine")
    )
    assert constant[0] == constant[1] and cosine[0] != cosine[1]


def test_nothing_is_replaced_unasked(whole):
    folder, _ = whole
    with pytest.raises(FileExistsError, match="overwrite"):
        train_prior(_settings(), folder, show_progress=False)
    with pytest.raises(ValueError, match="training can only resume"):
        train_prior(_settings(seed=1), folder, resume=True, show_progress=False)


def test_the_norm_is_that_of_the_gradients_before_they_are_clipped():
    weights = [keras.Variable([1.0, 2.0]), keras.Variable([[3.0]])]
    optimizer = NormAdamW(0.1, global_clipnorm=1e-3)
    for scale in (1.0, 3.0):
        optimizer.apply([tf.constant([3.0, 0.0]) * scale, tf.constant([[4.0]]) * scale], weights)
    assert optimizer.average_norm() == pytest.approx(10.0)
    assert np.isnan(optimizer.average_norm())


def test_it_steps_like_adamw():
    plain, measured = (keras.Variable([1.0, -2.0]) for _ in range(2))
    gradients = [tf.constant([0.5, 0.1]), tf.constant([-0.2, 0.4])]
    for variable, kind in ((plain, keras.optimizers.AdamW), (measured, NormAdamW)):
        optimizer = kind(0.1, weight_decay=0.01, beta_2=0.9, global_clipnorm=0.3)
        for gradient in gradients:
            optimizer.apply([gradient], [variable])
    np.testing.assert_array_equal(plain.numpy(), measured.numpy())
