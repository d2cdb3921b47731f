"""Muon: orthogonal steps of matrices, Adam for the rest, and a training that resumes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.training_and_evaluation.training.muon import make_muon
from taylorformer.training_and_evaluation.training.plan import TrainingPlan

pytestmark = pytest.mark.skipif(
    not hasattr(keras.optimizers, "Muon"), reason="this version of Keras has no Muon"
)


def test_a_step_of_a_matrix_is_orthogonal_and_as_large_as_one_of_adam(rng):
    weight = keras.Variable(np.zeros([16, 12], "float32"))
    gradient = tf.constant(rng.normal(size=[16, 12]) * 100, tf.float32)
    make_muon(1e-2, 0.0, 0.999, measures_norms=False).apply([gradient], [weight])
    sizes = np.linalg.svd(weight.numpy(), compute_uv=False)
    assert sizes.max() / sizes.min() < 2.5
    # Like Adam's usual 0.2 times the learning rate, however large the gradient is.
    assert np.sqrt(np.mean(np.square(weight.numpy()))) == pytest.approx(2e-3, rel=0.4)


def test_a_layer_named_embedding_is_no_exception(rng):
    weight = keras.Variable(np.zeros([16, 12], "float32"), name="embedding")
    gradient = tf.constant(rng.normal(size=[16, 1]) * np.ones([1, 12]), tf.float32)
    make_muon(1e-2, 0.0, 0.999, measures_norms=False).apply([gradient], [weight])
    # A step of Adam has the same size everywhere; an orthogonal one keeps the gradient's ratios.
    assert np.abs(weight.numpy()).max() > 1.5 * np.abs(weight.numpy()).min()


@pytest.mark.parametrize("shape", [(16,), (16, 1), (1, 16), (4, 16), ()])
def test_vectors_and_thin_matrices_are_changed_by_adam(rng, shape):
    gradient = tf.constant(rng.normal(size=shape), tf.float32)
    weights = [keras.Variable(np.zeros(shape, "float32")) for _ in range(2)]
    for weight, optimizer in zip(
        weights,
        (make_muon(1e-2, 0.0, 0.98, measures_norms=True), keras.optimizers.Adam(1e-2, beta_2=0.98)),
        strict=True,
    ):
        for _ in range(3):
            optimizer.apply([gradient], [weight])
    np.testing.assert_allclose(weights[0].numpy(), weights[1].numpy(), rtol=1e-4)


def test_a_plan_makes_it():
    plan = TrainingPlan(
        8, 1e-3, "cosine", 10, 5, clip_norm=2.0, weight_decay=0.01, optimizer="muon", average=0.9
    )
    optimizer = plan.make_optimizer()
    config = optimizer.get_config()
    assert type(optimizer).__name__ == "Muon" and config["global_clipnorm"] == 2.0
    assert config["weight_decay"] == config["adam_weight_decay"] == 0.01
    assert config["use_ema"] and config["ema_momentum"] == 0.9
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert again.get_config() == config
    with pytest.raises(ValueError, match="`optimizer` must be one of 'adam', 'muon'"):
        TrainingPlan(8, 1e-3, "cosine", 10, 5, optimizer="sgd")


def test_norms_are_measured(rng):
    weight = keras.Variable(np.zeros([8, 8], "float32"))
    optimizer = TrainingPlan(
        8, 1e-3, "cosine", 10, 5, optimizer="muon", record_norms=True
    ).make_optimizer()
    optimizer.apply([tf.fill([8, 8], 0.5)], [weight])
    assert optimizer.average_norm() == pytest.approx(4.0)


def test_without_muon_the_message_says_what_is_missing(monkeypatch):
    monkeypatch.delattr(keras.optimizers, "Muon")
    with pytest.raises(RuntimeError, match="needs a version of Keras that has"):
        make_muon(1e-3, 0.0, 0.999, measures_norms=False)
