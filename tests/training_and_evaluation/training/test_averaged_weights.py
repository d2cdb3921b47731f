"""Running averages of weights are validated and kept, and training does not notice."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer import TransformerNeuralProcess
from taylorformer.training_and_evaluation.training.averaged_weights import averaged_weights
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.resumable_fit import resumable_fit

DECAY = 0.75
PLAN = TrainingPlan(2, 1e-2, "constant", max_steps=5, steps_per_epoch=2, average=DECAY)


class EachStep(keras.callbacks.Callback):
    """Remembers the weights after each step."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def on_train_batch_end(self, batch, logs=None):
        self.weights.append([weight.numpy() for weight in self.model.trainable_variables])


def fit(plan=PLAN, **options):
    model = TransformerNeuralProcess(num_heads=1, width=4, num_layers=1, feed_forward=4, seed=0)
    model.compile(plan.make_optimizer(), run_eagerly=True)
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(1, 6, 1).repeat(2, axis=0)
    batch = {"x_context": x[:, :4], "y_context": x[:, :4], "x_target": x[:, 4:]}, x[:, 4:]
    data = tf.data.Dataset.from_tensors(batch)
    steps = EachStep()
    progress = resumable_fit(
        model, lambda first: data.repeat(), data, plan, callbacks=[steps], **options
    )
    return model, progress, steps.weights, data


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "training.npz"
    return *fit(checkpoint=path), path


def running_average(weights):
    average = weights[0]
    for values in weights[1:]:
        average = [DECAY * a + (1 - DECAY) * w for a, w in zip(average, values, strict=True)]
    return average


def test_what_is_kept_and_validated_is_the_average(done):
    model, progress, weights, data, _ = done
    assert progress.best_step == 5
    for kept, average in zip(model.trainable_variables, running_average(weights), strict=True):
        np.testing.assert_allclose(kept.numpy(), average, rtol=1e-5, atol=1e-7)
    nll = model.evaluate(data, return_dict=True, verbose=0)["nll"]
    assert nll == pytest.approx(progress.history[-1]["validation_teacher_forced_nll"], rel=1e-6)


def test_training_takes_the_steps_that_it_takes_without(done):
    plain = fit(dataclasses.replace(PLAN, average=None))
    for step, other in zip(done[2], plain[2], strict=True):
        for one, two in zip(step, other, strict=True):
            np.testing.assert_array_equal(one, two)
    assert [row["teacher_forced_nll"] for row in done[1].history] == [
        row["teacher_forced_nll"] for row in plain[1].history
    ]


def test_resumed_averages_are_the_same_to_the_last_bit(done, tmp_path):
    path = tmp_path / "training.npz"
    fit(dataclasses.replace(PLAN, max_steps=2), checkpoint=path)
    resumed, progress, *_ = fit(checkpoint=path, resume=True)
    assert progress.history == done[1].history
    for one, two in zip(resumed.get_weights(), done[0].get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_without_averages_nothing_is_put_in():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    before = model.get_weights()
    with averaged_weights(model):
        assert all(map(np.array_equal, before, model.get_weights()))
    model.compile(keras.optimizers.Adam(use_ema=True))
    model.optimizer.build(model.trainable_variables)
    # Averages are 0 before the first step.
    with averaged_weights(model):
        assert all(map(np.array_equal, before, model.get_weights()))
