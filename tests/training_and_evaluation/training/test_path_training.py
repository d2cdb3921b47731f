"""Training on free-running samples: the score, its gradient, and that a step lowers it."""

import numpy as np
import pytest
import tensorflow as tf

from taylorformer import Taylorformer
from taylorformer.training_and_evaluation.training import path_training
from taylorformer.training_and_evaluation.training.path_training import PathTrainedTaylorformer

_SIZES = {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1, "encoding_dim": 4, "seed": 0}


def _batch(num_sequences=3, shared=False):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.standard_normal((num_sequences, 12, 1)), axis=1).astype("float32")
    x = np.tile(np.linspace(-1, 1, 12, dtype="float32").reshape(1, 12, 1), (num_sequences, 1, 1))
    x = x[:1] if shared else x
    mask = np.ones((len(x), 5), bool)
    mask[-1, 3] = False
    return {
        "x_context": x[:, :7],
        "y_context": y[:, :7],
        "x_target": x[:, 7:],
        "target_mask": mask,
        "y_target": y[:, 7:],
    }


def _model(**arguments):
    model = PathTrainedTaylorformer(**{"path_weight": 1.0, **arguments}, **_SIZES)
    model.build({name: (None, None, 1) for name in ("x_context", "y_context", "x_target")})
    return model


def _score(model, batch, seed=4):
    return model.path_score(model.prepare(batch), tf.constant(seed, tf.int64))


@pytest.mark.parametrize("shared", [False, True])
def test_the_score_is_the_fair_crps_of_samples_relative_to_their_spread(shared):
    model, batch = _model(num_paths=3), _batch(shared=shared)
    inputs = {name: values for name, values in batch.items() if name != "y_target"}
    samples = model.sample(inputs, 3, seed=4, sequence_keys=np.arange(3)).numpy()
    expected = []
    for number in range(3):
        some = batch["target_mask"][0 if shared else number]
        drawn, y = samples[:, number, some, 0], batch["y_target"][number, some, 0]
        pairs = np.mean([abs(drawn[i] - drawn[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
        expected.append((np.mean(abs(drawn - y)) - pairs / 2) / (pairs + 0.02))
    assert float(_score(model, batch)) == pytest.approx(np.mean(expected), rel=1e-4)


def test_later_targets_and_sequences_are_left_out():
    batch = _batch()
    first = {name: values[:2] for name, values in batch.items()}
    for name in ("x_target", "y_target", "target_mask"):
        first[name] = first[name][:, :3]
    few = _model(path_targets=3, path_sequences=2)
    np.testing.assert_allclose(_score(few, batch), _score(_model(), first), rtol=1e-5)


def test_the_gradient_goes_through_all_steps(monkeypatch):
    # So that the spread that scores are divided by, which counts as a constant, is one.
    monkeypatch.setattr(path_training, "_LEAST_SPREAD", 1e4)
    model, batch = _model(num_paths=2), _batch()
    with tf.GradientTape() as tape:
        score = 1e4 * _score(model, batch)
    gradients = tape.gradient(score, model.trainable_variables, unconnected_gradients="zero")
    # Every weight has a part in the samples.
    assert all(np.any(gradient.numpy() != 0) for gradient in gradients)
    rng = np.random.default_rng(3)
    ways = [rng.standard_normal(one.shape).astype("float32") for one in gradients]
    slope = sum(float(tf.reduce_sum(one * way)) for one, way in zip(gradients, ways, strict=True))
    # New weights make hidden values nearly equal, and their normalisation bends soon.
    step, scores = 5e-6, []
    variables = list(model.trainable_variables)
    kept = [variable.numpy() for variable in variables]
    for sign in (1, -1):
        for variable, value, way in zip(variables, kept, ways, strict=True):
            variable.assign(value + sign * step * way)
        scores.append(1e4 * float(_score(model, batch)))
    assert (scores[0] - scores[1]) / (2 * step) == pytest.approx(slope, rel=0.02)


def test_training_lowers_the_score_of_samples():
    batch = _batch(16)
    inputs = {name: values for name, values in batch.items() if name != "y_target"}
    model = _model(path_sequences=16)
    model.compile("adam")
    before = float(_score(model, batch))
    history = model.fit(inputs, batch["y_target"], epochs=20, verbose=0).history
    assert float(_score(model, batch)) < before - 0.05
    assert history["nll"][-1] < history["nll"][0]


def test_its_weights_are_those_of_a_taylorformer():
    model, plain = _model(), Taylorformer(**_SIZES)
    plain.build({name: (None, None, 1) for name in ("x_context", "y_context", "x_target")})
    for one, other in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("arguments", [{"path_weight": 0.0}, {"num_paths": 1}, {"path_targets": 0}])
def test_bad_arguments_are_named(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        PathTrainedTaylorformer(**{"path_weight": 1.0, **arguments})
