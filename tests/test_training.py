"""The loss, the training step, and what users trip over in training."""

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.shuffling import shuffle_targets
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.training_step import TrainingStep


def _model(**settings):
    return conformance.MODELS[0].make(**settings)


def _eager(model, learning_rate=1e-2):
    """Compiles without a graph: tracing one costs more than a few eager steps."""
    model.compile(keras.optimizers.SGD(learning_rate, momentum=0.9), run_eagerly=True)
    return model


def test_log_prob_is_the_sum_over_tfp_conditionals():
    model = _model()
    inputs, y_target = conformance.points()
    inputs["target_mask"] = np.array([[True] * 4, [True, False, True, True], [False] * 4])
    distribution = model.predictive_distribution({**inputs, "y_target": y_target})
    assert isinstance(distribution, tfp.distributions.Independent)
    assert distribution.batch_shape == (3, 4)
    assert distribution.event_shape == (1,)
    expected = np.sum(distribution.log_prob(y_target) * inputs["target_mask"], axis=1)
    np.testing.assert_allclose(model.log_prob(inputs, y_target), expected, rtol=1e-5)
    assert model.log_prob(inputs, y_target)[2] == 0


def test_log_prob_is_the_product_of_one_step_conditionals():
    model = _model()
    inputs, y_target = conformance.points()
    total = 0.0
    for i in range(4):
        # Each conditional from a batch of its own, in which the later targets do not exist.
        step = {
            **inputs,
            "x_target": inputs["x_target"][:, : i + 1],
            "y_target": y_target[:, : i + 1],
        }
        total += model.predictive_distribution(step).log_prob(y_target[:, : i + 1])[:, i]
    np.testing.assert_allclose(model.log_prob(inputs, y_target), total, rtol=1e-4, atol=1e-4)


def test_the_returned_scale_is_the_scale_of_the_loss():
    for scale, link in (("exp", np.exp), ("bounded", lambda raw: 0.98 * np.logaddexp(0, raw))):
        model = _model(scale=scale, min_scale=0.02)
        inputs, y_target = conformance.points()
        batch = {**inputs, "y_target": y_target}
        outputs = model(batch)
        raw = model.local_taylor(batch)["raw_scale"]
        np.testing.assert_allclose(outputs["scale"], 0.02 + link(raw), rtol=1e-5)
        z = (y_target - outputs["mean"]) / outputs["scale"]
        density = -0.5 * z**2 - np.log(outputs["scale"]) - 0.5 * np.log(2 * np.pi)
        model.compile()
        scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
        assert scores["nll"] == pytest.approx(-np.mean(density), rel=1e-5)
        assert scores["loss"] == pytest.approx(scores["nll"], rel=1e-6)
        squares = np.mean((y_target - outputs["mean"]) ** 2)
        assert scores["teacher_forced_mse"] == pytest.approx(squares, rel=1e-5)


def test_scores_count_each_sequence_once_at_any_batch_size():
    model = _model()
    model.compile()
    inputs, y_target = conformance.points(batch_size=33)
    rng = np.random.default_rng(0)
    inputs["target_mask"] = rng.random((33, 4)) < 0.4
    inputs["target_mask"][5] = False
    observed = inputs["target_mask"].sum(1)
    log_prob = model.log_prob(inputs, y_target).numpy()
    expected = np.mean(-log_prob[observed > 0] / observed[observed > 0])
    for batch_size in (1, 7, 32):
        scores = model.evaluate(
            inputs, y_target, batch_size=batch_size, verbose=0, return_dict=True
        )
        assert scores["nll"] == pytest.approx(expected, rel=1e-6)


def test_sample_weights_weigh_sequences():
    model = _model()
    model.compile()
    inputs, y_target = conformance.points(batch_size=4)
    weights = np.array([1.0, 0.0, 2.0, 0.0])
    nll = -model.log_prob(inputs, y_target).numpy() / 4
    scores = model.evaluate(inputs, y_target, sample_weight=weights, verbose=0, return_dict=True)
    assert scores["nll"] == pytest.approx((nll[0] + 2 * nll[2]) / 3, rel=1e-5)
    with pytest.raises(ValueError, match=r"`sample_weight` must have the shape \[B\]"):
        model.test_step((inputs, y_target, np.ones((4, 4, 1))))


def test_pairs_stay_pairs_when_targets_are_shuffled():
    inputs, y_target = conformance.points(num_target=50, batch_size=5)
    inputs["target_mask"] = np.random.default_rng(0).random((5, 50)) < 0.5
    batch = prepare_batch({**inputs, "y_target": y_target})
    shuffled = {k: v.numpy() for k, v in shuffle_targets(batch, 3, tf.constant([1, 2])).items()}
    assert shuffled["x_target"].shape == (15, 50, 1)
    orders = set()
    for row in range(15):
        original = {k: v.numpy()[row % 5] for k, v in batch.items()}
        np.testing.assert_array_equal(shuffled["y_context"][row], original["y_context"])

        def triples(part):
            return np.concatenate(
                [part["x_target"], part["y_target"], part["target_mask"][:, None]], axis=1
            )

        before, after = triples(original), triples({k: v[row] for k, v in shuffled.items()})
        seen = before[:, 2] == 1
        assert not np.array_equal(before, after)
        np.testing.assert_array_equal(np.sort(before[seen], 0), np.sort(after[after[:, 2] == 1], 0))
        matched = {tuple(point) for point in before} == {tuple(point) for point in after}
        assert matched
        orders.add(after.tobytes())
    assert len(orders) == 15


def _ragged_batches(num_batches=200, last=7):
    rng = np.random.default_rng(0)
    for number in range(num_batches):
        size = last if number == num_batches - 1 else 8
        yield conformance.points(
            int(rng.integers(3, 98)), int(rng.integers(3, 98)), batch_size=size, seed=number
        )


def _spec(dtype=tf.float32):
    one = tf.TensorSpec([None, None, 1], dtype)
    return {"x_context": one, "y_context": one, "x_target": one}, one


class Counted(Taylorformer):
    """Counts how often its training step is traced."""

    traces = 0

    def _gradient_step(self, *arguments):
        self.traces += 1
        return super()._gradient_step(*arguments)


def _counted():
    return Counted(**{**conformance.TINY, "num_layers": 1}, encoding_dim=4, seed=0)


def test_fit_traces_once_over_200_batches_of_random_lengths():
    model = _counted()
    model.compile(keras.optimizers.SGD(1e-3, global_clipnorm=10.0))
    dataset = tf.data.Dataset.from_generator(_ragged_batches, output_signature=_spec())
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(200))
    history = model.fit(dataset, verbose=0)
    assert int(model.optimizer.iterations) == 200
    assert np.isfinite(history.history["loss"][0])
    assert model.traces == 1


def test_training_step_traces_once_over_200_batches_of_random_lengths():
    model = _counted()
    step = TrainingStep(model, keras.optimizers.SGD(1e-3, global_clipnorm=10.0))
    for number, (inputs, y_target) in enumerate(_ragged_batches()):
        if number % 2:
            inputs = {key: value.astype("float64") for key, value in inputs.items()}
        averages = step(inputs, y_target)
    assert set(averages) == {"nll", "teacher_forced_mse"}
    assert np.isfinite(averages["nll"])
    assert int(step.optimizer.iterations) == 200
    assert step.num_traces == model.traces == 1


def test_batches_one_at_a_time_trace_at_most_three_times():
    model = _counted()
    model.compile(keras.optimizers.SGD(1e-3))
    for inputs, y_target in list(_ragged_batches(12)):
        model.train_on_batch(inputs, y_target)
    assert model.traces <= 3


def test_fit_and_training_step_change_the_weights_alike():
    inputs, y_target = conformance.points(batch_size=4)
    first, second = _model(dropout=0.1), _model(dropout=0.1)
    first.compile(keras.optimizers.SGD(1e-2))
    first.fit(inputs, y_target, epochs=3, batch_size=4, shuffle=False, verbose=0)
    step = TrainingStep(second, keras.optimizers.SGD(1e-2))
    for _ in range(3):
        step(inputs, y_target)
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)


def test_one_seed_gives_one_history_and_predicting_changes_nothing():
    inputs, y_target = conformance.points(batch_size=8)
    histories = []
    for predicts in (False, True):
        model = _eager(_model(dropout=0.2, target_permutations=1, num_layers=1))
        losses = []
        for _ in range(3):
            losses += model.fit(inputs, y_target, batch_size=4, shuffle=False, verbose=0).history[
                "loss"
            ]
            if predicts:
                model.predict(inputs, verbose=0)
                model.sample(inputs, 2, seed=1)
                model.evaluate(inputs, y_target, verbose=0)
        histories.append(losses)
    assert histories[0] == histories[1]
    assert len(set(histories[0])) == 3


def test_stopping_and_going_on_equals_going_through(tmp_path):
    inputs, y_target = conformance.points(batch_size=8)

    def compiled():
        model = _model(dropout=0.2, target_permutations=1, num_layers=1)
        schedule = keras.optimizers.schedules.CosineDecay(1e-2, 8)
        model.compile(keras.optimizers.Adam(schedule, global_clipnorm=10.0), run_eagerly=True)
        return model

    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    through = compiled()
    through.fit(inputs, y_target, epochs=4, **options)
    stopped = compiled()
    stopped.fit(inputs, y_target, epochs=2, **options)
    stopped.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    again.fit(inputs, y_target, initial_epoch=2, epochs=4, **options)
    for a, b in zip(through.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("num_context", [0, 1, 5])
def test_inputs_of_any_size_train_to_finite_weights(scale, num_context):
    model = _model()
    model.compile(run_eagerly=True)
    inputs, y_target = conformance.points(num_context=num_context, batch_size=4)
    inputs["y_context"] *= np.float32(scale)
    for key in ("x_context", "x_target"):
        inputs[key] = (inputs[key] * scale).astype("float32")
    inputs["x_target"][:2] = inputs["x_target"][:2, :1]
    history = model.fit(inputs, y_target * np.float32(scale), epochs=2, verbose=0)
    assert np.all(np.isfinite(history.history["loss"]))
    assert all(np.all(np.isfinite(weight.numpy())) for weight in model.weights)


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_a_constant_series_trains(constant):
    model = _model()
    model.compile(run_eagerly=True)
    inputs, y_target = conformance.points()
    inputs["y_context"][:] = constant
    y_target[:] = constant
    history = model.fit(inputs, y_target, epochs=2, verbose=0)
    assert np.all(np.isfinite(history.history["loss"]))


def test_xla_gives_the_same_loss():
    inputs, y_target = conformance.points()
    losses = []
    for jit_compile in (False, True, "auto"):
        model = _model(num_layers=1)
        model.compile(keras.optimizers.SGD(0.0), jit_compile=jit_compile)
        losses.append(model.evaluate(inputs, y_target, verbose=0, return_dict=True)["loss"])
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-4)


def test_user_metrics_read_the_mean_where_targets_are_observed():
    model = _model()
    model.compile(keras.optimizers.SGD(), metrics=[keras.metrics.MeanAbsoluteError(name="mae")])
    inputs, y_target = conformance.points()
    inputs["target_mask"] = np.array([[True, True, False, False]] * 3)
    mean = model({**inputs, "y_target": y_target})["mean"]
    scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
    assert scores["mae"] == pytest.approx(np.mean(np.abs(y_target - mean)[:, :2]), rel=1e-5)
    history = model.fit(inputs, y_target, verbose=0)
    assert {"loss", "nll", "teacher_forced_mse", "mae"} <= set(history.history)


def test_the_default_optimizer_clips():
    model = _model()
    model.compile()
    assert model.optimizer.global_clipnorm == 10.0
    assert float(model.optimizer.learning_rate) == pytest.approx(3e-4)
    assert not model.jit_compile


def test_fit_works_in_a_distribution_strategy():
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = _model()
        model.compile(keras.optimizers.SGD())
    inputs, y_target = conformance.points(batch_size=4)
    history = model.fit(inputs, y_target, verbose=0)
    plain = _eager(_model())
    expected = plain.fit(inputs, y_target, verbose=0)
    assert history.history["loss"] == pytest.approx(expected.history["loss"], rel=1e-5)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scale": "softplus"}, "`scale` must be one of 'exp', 'bounded'. Received"),
        ({"min_scale": 0.0}, "`min_scale` must be finite and above 0"),
        ({"target_permutations": -1}, "`target_permutations` must be at least 0"),
        ({"predict_samples": 0}, "`predict_samples` must be at least 1"),
        ({"seed": "x"}, "`seed` must be an integer"),
        ({"representation_extractor": 3}, "`representation_extractor` must be a Represent"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Taylorformer(**settings)


def test_settings_that_contradict_the_given_extractor_are_refused():
    from taylorformer.data_wrangler.representation_extractor import RepresentationExtractor

    extractor = RepresentationExtractor(encoding_dim=8)
    with pytest.raises(ValueError, match=r"`encoding_dim` must be set on"):
        Taylorformer(encoding_dim=16, representation_extractor=extractor)
    with pytest.raises(ValueError, match="must have the same `taylor_order`"):
        Taylorformer(taylor_order=1, representation_extractor=extractor)
    assert Taylorformer(representation_extractor=extractor).representation_extractor is extractor
