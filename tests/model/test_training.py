"""The loss, the training step, and what users trip over in training."""

import subprocess
import sys
import warnings
from pathlib import Path

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.data_wrangler import batch as batch_module
from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.array_batches import array_batches
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.replica_seed import next_seed
from taylorformer.model.sampling.shuffling import shuffle_targets
from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.training.training_step import TrainingStep


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
        # Each conditional from another batch, in which the later targets do not exist.
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


@pytest.mark.slow
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


@pytest.mark.slow
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

    options = {"batch_size": 3, "verbose": 0}  # shuffled, with a smaller last batch
    through = compiled()
    through.fit(inputs, y_target, epochs=4, **options)
    stopped = compiled()
    stopped.fit(inputs, y_target, epochs=2, **options)
    stopped.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    again.fit(inputs, y_target, initial_epoch=2, epochs=4, **options)
    for a, b in zip(through.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def _call_only(steps_per_execution=1, seed=5):
    keras.utils.set_random_seed(0)
    model = CallOnly(seed=seed)
    model.compile(
        keras.optimizers.SGD(1e-2, momentum=0.9),
        run_eagerly=True,
        steps_per_execution=steps_per_execution,
    )
    return model


# One pass over eight sequences has three batches.
@pytest.mark.parametrize(
    "steps, settings",
    [
        *((steps, {}) for steps in (np.int64(1), 2, 3, 7, None)),
        *((steps, {"shuffle": False}) for steps in (2, 5)),
        *((steps, {"steps_per_execution": 2}) for steps in (2, 5, None)),
        (2, {"seed": None, "shuffle": False}),
    ],
)
def test_epochs_of_any_steps_resume_to_the_last_bit(tmp_path, steps, settings):
    inputs, y_target = conformance.points(batch_size=8)
    settings = dict(settings)
    made = {key: settings.pop(key) for key in ("steps_per_execution", "seed") if key in settings}
    options = {"batch_size": 3, "verbose": 0, "steps_per_epoch": steps, **settings}
    through, stopped = _call_only(**made), _call_only(**made)
    through.fit(inputs, y_target, epochs=4, **options)
    stopped.fit(inputs, y_target, epochs=1, **options)
    stopped.save(tmp_path / "model.keras")
    for resumed in (stopped, keras.models.load_model(tmp_path / "model.keras")):
        if made.get("steps_per_execution"):
            resumed.steps_per_execution = 2
        resumed.fit(inputs, y_target, initial_epoch=1, epochs=np.int64(3), **options)
        resumed.fit(inputs, y_target, initial_epoch=np.int64(3), epochs=4, **options)
        for a, b in zip(through.weights, resumed.weights, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("seed", [7, None])
def test_batches_of_arrays_are_the_same_from_any_batch_on(seed):
    values = np.arange(8)

    def batches(first, count):
        parts = {"y_context": values, "x_context": np.zeros(1)}, 10 * values
        rows = []
        for inputs, y_target in array_batches(parts, 3, seed, first).take(count):
            # What all sequences share is in every batch.
            assert inputs["x_context"].shape == (1,)
            rows.append(inputs["y_context"].numpy().tolist())
            assert y_target.numpy().tolist() == [10 * row for row in rows[-1]]
        return rows

    everything = batches(0, 12)
    assert [len(batch) for batch in everything] == [3, 3, 2] * 4
    for first in range(11):
        assert batches(first, 12 - first) == everything[first:]
    passes = [[*a, *b, *c] for a, b, c in zip(*[iter(everything)] * 3, strict=True)]
    assert all(sorted(one) == values.tolist() for one in passes)
    assert (passes[0] == passes[1]) == (seed is None)


def test_impossible_steps_are_refused():
    inputs, y_target = conformance.points(batch_size=8)
    for name in ("steps_per_epoch", "batch_size"):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1. Received: {name}=0"):
            _call_only().fit(inputs, y_target, verbose=0, **{name: 0})
    with pytest.raises(ValueError, match="`initial_epoch` must be at least 0"):
        _call_only().fit(inputs, y_target, verbose=0, initial_epoch=-1)
    nothing = {key: value[:0] for key, value in inputs.items()}
    with pytest.raises(ValueError, match="`x` must hold at least one sequence"):
        _call_only().fit(nothing, y_target[:0], verbose=0)


def test_arguments_may_stand_where_keras_has_them():
    """Each call with its arguments by position does what it does with them by name."""
    inputs, y_target = conformance.points(batch_size=8)
    weight = np.linspace(0.5, 2.0, 8)
    validation = (inputs, y_target)
    outcomes = []
    for by_name in (False, True):
        model = _call_only()

        def call(name, names, *values, by_name=by_name, model=model):
            method = getattr(model, name)
            return method(**dict(zip(names, values, strict=True))) if by_name else method(*values)

        fit = (
            "x y batch_size epochs verbose callbacks validation_split validation_data shuffle "
            "class_weight sample_weight initial_epoch steps_per_epoch validation_steps "
            "validation_batch_size validation_freq"
        ).split()
        values = (inputs, y_target, 3, 4, 0, None, 0.0, validation, True, None, weight, 1, 2)
        history = call("fit", fit, *values, None, 4, 2).history
        train = ["x", "y", "sample_weight", "class_weight", "return_dict"]
        test = ["x", "y", "sample_weight", "return_dict"]
        evaluate = ["x", "y", "batch_size", "verbose", "sample_weight", "steps"]
        evaluate += ["callbacks", "return_dict"]
        predict = ["x", "batch_size", "verbose", "steps", "callbacks"]
        outcomes.append(
            [
                history,
                call("train_on_batch", train, inputs, y_target, weight, None, True),
                call("test_on_batch", test, inputs, y_target, weight, True),
                call("evaluate", evaluate, inputs, y_target, 4, 0, weight, None, None, True),
                call("predict", predict, inputs, 4, 0, None, None),
                call("predict_on_batch", ["x"], inputs),
            ]
        )
    assert set(outcomes[0][0]) >= {"loss", "val_loss"}
    for a, b in zip(*map(tf.nest.flatten, outcomes), strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_of_sequences_by_position_count():
    inputs, y_target = conformance.points(batch_size=8)
    weight = np.linspace(0.5, 2.0, 8)
    model = _call_only()
    weighted = model.test_on_batch(inputs, y_target, weight, return_dict=True)["loss"]
    assert weighted != model.test_on_batch(inputs, y_target, return_dict=True)["loss"]
    assert weighted == model.train_on_batch(inputs, y_target, weight, None, True)["loss"]


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
    with warnings.catch_warnings():
        if scale > model.largest_x:
            warnings.filterwarnings("ignore", "x should be about -1 to 1", UserWarning)
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


@pytest.mark.slow
def test_xla_gives_the_same_loss():
    inputs, y_target = conformance.points()
    losses = []
    for jit_compile in (False, True, "auto"):
        model = _model(num_layers=1)
        model.compile(keras.optimizers.SGD(0.0), jit_compile=jit_compile)
        scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
        history = model.fit(inputs, y_target, verbose=0).history
        losses.append([scores["loss"], history["loss"][0]])
    np.testing.assert_allclose(losses, [losses[0]] * 3, rtol=1e-4)


@pytest.mark.slow
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


@pytest.mark.slow
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
    from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor

    extractor = RepresentationExtractor(encoding_dim=8)
    with pytest.raises(ValueError, match=r"`encoding_dim` must be set on"):
        Taylorformer(encoding_dim=16, representation_extractor=extractor)
    with pytest.raises(ValueError, match="must have the same `taylor_order`"):
        Taylorformer(taylor_order=1, representation_extractor=extractor)
    assert Taylorformer(representation_extractor=extractor).representation_extractor is extractor


def test_training_without_compile_says_so():
    inputs, y_target = conformance.points()
    with pytest.raises(ValueError, match="call `compile\\(\\)`"):
        _model().fit(inputs, y_target, verbose=0)


def test_arrays_are_shuffled_anew_each_epoch():
    seen = []

    class Watching(Taylorformer):
        def train_step(self, data):
            seen.append(data[0]["x_context"].numpy()[:, 0, 0])
            return super().train_step(data)

    model = _eager(Watching(**conformance.TINY, encoding_dim=2, seed=4))
    inputs, y_target = conformance.points(batch_size=7)
    model.fit(inputs, y_target, batch_size=3, epochs=2, verbose=0, sample_weight=np.ones(7))
    assert [len(batch) for batch in seen] == [3, 3, 1] * 2
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    np.testing.assert_array_equal(np.sort(first), np.sort(inputs["x_context"][:, 0, 0]))
    np.testing.assert_array_equal(np.sort(second), np.sort(first))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("outlier", [1e7, 1e15, 1e25])
def test_no_outlier_makes_weights_that_are_not_finite(outlier):
    """Keras squares gradients to clip them; those of a trained, small scale overflow sooner."""
    model = _model()
    inputs, y_target = conformance.points()
    model({**inputs, "y_target": y_target})
    model.local_taylor.network.scale_dense.bias.assign([-7.0])
    model.compile(run_eagerly=True)
    before = [weight.numpy() for weight in model.trainable_variables]
    model.fit(inputs, y_target * np.float32(outlier), verbose=0)
    after = [weight.numpy() for weight in model.trainable_variables]
    assert all(np.all(np.isfinite(weight)) for weight in after)
    model.fit(inputs, y_target, epochs=2, verbose=0)
    assert any(np.any(a != b) for a, b in zip(after, before, strict=True)) or outlier > 1e10


@keras.saving.register_keras_serializable("test_training")
class CallOnly(ProbabilisticModel):
    """A user's model that writes `call` and nothing else."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(2)

    def call(self, inputs, training=False):
        batch = self.prepare(inputs)
        mean, raw = tf.split(self.dense(batch["x_target"]), 2, axis=-1)
        return self.finish_outputs(mean, self.scale_from_raw(raw), batch["target_mask"])


def test_a_model_that_writes_call_alone_trains_and_reloads(tmp_path):
    inputs, y_target = conformance.points()
    model = CallOnly(seed=0)
    model.compile()
    model.fit(inputs, y_target, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        again.log_prob(inputs, y_target), model.log_prob(inputs, y_target)
    )
    step = TrainingStep(CallOnly())
    assert np.isfinite(step(inputs, y_target)["nll"])


def test_values_that_are_not_finite_are_refused_before_the_first_step():
    inputs, y_target = conformance.points()
    y_target[1, 2] = np.nan
    model = _eager(_model())
    message = (
        r"`y_target` must be finite where it is observed; .* 1 values that are not, "
        r"the first one at \[B, N_T, D_y\] = \[1, 2, 0\]"
    )
    for run in (model.fit, model.evaluate, model.train_on_batch, TrainingStep(model)):
        with pytest.raises(ValueError, match=message):
            run(inputs, y_target)
    mask = np.isfinite(y_target[..., 0])
    model.fit({**inputs, "target_mask": mask}, y_target, verbose=0)
    with pytest.raises(ValueError, match=r"`y_target` must have the shape \[B, N_T, D_y\]"):
        model.evaluate(inputs)


def test_arrays_that_do_not_fit_are_refused():
    inputs, y_target = conformance.points(batch_size=5)
    with pytest.raises(ValueError, match=r"`y_target` must have the shape .* with B = 5"):
        _eager(_model()).fit(inputs, y_target[:4], verbose=0)


def test_a_batch_of_other_dimensions_is_refused():
    model = _model()
    model(conformance.points()[0])
    with pytest.raises(ValueError, match=r"D_x = 1 and D_y = 1, as the model was built for"):
        model(conformance.points(y_dims=2)[0])


# Where a script that runs in another process finds `conformance`.
TESTS = Path(conformance.__file__).parent

_TWO_REPLICAS = """
import sys
import numpy as np
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
import keras

sys.path.insert(0, sys.argv[1])
import conformance

inputs, y_target = conformance.points(batch_size=4)
inputs["target_mask"] = np.array([[True] * 4, [False] * 4, [True] * 4, [True, False] * 2])
weights = []
for devices in (["CPU:0", "CPU:1"], ["CPU:0"]):
    with tf.distribute.MirroredStrategy(devices).scope():
        model = conformance.MODELS[0].make(feature_order=0)
        model.compile(keras.optimizers.SGD(0.1))
    history = model.fit(inputs, y_target, batch_size=4, shuffle=False, verbose=0)
    scores = model.evaluate(inputs, y_target, batch_size=4, verbose=0, return_dict=True)
    weights.append([*model.get_weights(), history.history["nll"][0], scores["nll"]])
for two, one in zip(*weights, strict=True):
    np.testing.assert_allclose(two, one, atol=1e-5)
"""


@pytest.mark.slow
def test_two_replicas_with_uneven_masks_equal_one(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(_TWO_REPLICAS)
    subprocess.run([sys.executable, script, TESTS], check=True, timeout=500)


_PREDICT_WITH_TWO_REPLICAS = """
import sys
import numpy as np
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
import keras

sys.path.insert(0, sys.argv[1])
import conformance
from taylorformer.model.layers.dropout import Dropout
from taylorformer.model.replica_seed import next_seed

cases = {case.name: case for case in conformance.MODELS}
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def replicas(function):
    return [value.numpy() for value in two.experimental_local_results(two.run(function))]


# Of five sequences the last batch has one: nothing is left for the second replica.
inputs, _ = conformance.points(batch_size=5)
for name, settings in (("tnp", {"num_layers": 1}), ("np", {})):
    alone = cases[name].make(**settings)
    with two.scope():
        shared = cases[name].make(**settings)
    wanted, outputs = (
        model.predict(inputs, batch_size=4, verbose=0) for model in (alone, shared)
    )
    assert wanted["mean"].shape == (5, 4, 1)
    for key in ("mean", "stddev"):
        size = max(1.0, np.abs(wanted[key]).max())
        np.testing.assert_allclose(outputs[key], wanted[key], atol=1e-4 * size)

drawn = []
for _ in range(2):
    with two.scope():
        generator = keras.random.SeedGenerator(7)
    drawn.append([replicas(lambda: next_seed(generator)) for _ in range(3)])
assert np.array_equal(*drawn)
assert np.shape(drawn[0]) == (3, 2, 2)
assert len({tuple(seed) for step in drawn[0] for seed in step}) == 6

# The noise of training: the same sequence on both replicas.
inputs, y_target = conformance.points(batch_size=1)
batch = {**inputs, "y_target": y_target}
for name, settings in (("np", {}), ("tnp", {"y_noise": 0.1})):
    with two.scope():
        model = cases[name].make(**settings)
        model(batch)
    calm = replicas(lambda: model(batch)["mean"])
    np.testing.assert_array_equal(*calm)
    first, second = replicas(lambda: model(batch, training=True)["mean"][:, 1:])
    assert np.all(first != second)

with two.scope():
    layer = Dropout(0.5, seed=0)
masks = [mask for _ in range(2) for mask in replicas(lambda: layer(tf.ones([64]), training=True))]
assert len({tuple(mask) for mask in masks}) == 4
"""


@pytest.mark.slow
def test_two_replicas_predict_what_one_does_with_noise_of_their_own(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(_PREDICT_WITH_TWO_REPLICAS)
    subprocess.run([sys.executable, script, TESTS], check=True, timeout=500)


def test_the_seed_of_one_replica_is_that_of_the_generator():
    first, second = (keras.random.SeedGenerator(7) for _ in range(2))
    for _ in range(3):
        np.testing.assert_array_equal(next_seed(first), second.next())


@pytest.mark.parametrize("name", ["taylorformer", "taylorformer_covariates", "np", "tnp"])
@pytest.mark.parametrize("run_eagerly", [False, True], ids=["graph", "eager"])
def test_a_batch_is_prepared_once_a_step(monkeypatch, name, run_eagerly):
    """Not by the model and by each of its layers; a shuffled batch is not prepared again."""
    shapes = []
    original = batch_module.zero_where_masked
    monkeypatch.setattr(
        batch_module,
        "zero_where_masked",
        lambda values, mask: shapes.append(values.shape) or original(values, mask),
    )
    case = next(case for case in conformance.MODELS if case.name == name)
    model = case.make(num_layers=1) if name != "np" else case.make()
    model.compile(keras.optimizers.SGD(1e-3), run_eagerly=run_eagerly)
    inputs, y_target = case.data()
    model.build({key: value.shape for key, value in inputs.items()})
    shapes.clear()
    model.train_on_batch(inputs, y_target)
    # x and y of context and targets.
    assert len(shapes) == 4
    shapes.clear()
    model.log_prob(inputs, y_target)
    assert len(shapes) == 4


def test_a_model_of_which_everything_is_frozen_trains_as_with_keras():
    inputs, y_target = conformance.points()
    model = _eager(_model(num_layers=1))
    model.fit(inputs, y_target, verbose=0)
    model.trainable = False
    before = model.get_weights()
    with pytest.warns(UserWarning, match="The model does not have any trainable weights"):
        history = model.fit(inputs, y_target, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    moving = [weight.path.split("/")[-1].startswith("moving") for weight in model.weights]
    for ours, old, moves in zip(model.get_weights(), before, moving, strict=True):
        assert moves or np.array_equal(ours, old)
    # Thawed, it trains on; an optimizer that was made of nothing would know no weight.
    other = _eager(_model(num_layers=1, trainable=False))
    with pytest.warns(UserWarning, match="The model does not have any trainable weights"):
        other.train_on_batch(inputs, y_target)
    other.trainable = True
    other.train_on_batch(inputs, y_target)
    assert int(other.optimizer.iterations) == 1


def _unknown(key, shape):
    """The types and, but for one key, the shapes of a data set."""
    inputs, y_target = conformance.points()

    def generator():
        yield inputs, y_target

    specs = {name: tf.TensorSpec([None, None, 1]) for name in (*inputs, "y_target")}
    for name in specs if key == "all" else [key]:
        specs[name] = tf.TensorSpec(shape)
    y_spec = specs.pop("y_target")
    dataset = tf.data.Dataset.from_generator(generator, output_signature=(specs, y_spec))
    return dataset.apply(tf.data.experimental.assert_cardinality(1))


def _call_spec(inputs):
    return {key: tf.TensorSpec([None, None, 1], value.dtype) for key, value in inputs.items()}


@pytest.mark.parametrize("key", ["all", "x_context", "x_target", "y_target"])
@pytest.mark.parametrize("built", [False, True], ids=["new", "built"])
def test_a_data_set_of_unknown_rank_is_told_what_to_give(key, built):
    model = _call_only()
    if built:
        model(conformance.points()[0])
    named = "x_context" if key == "all" else key
    message = (
        rf"`{named}` must have the shape \[B, .*Received: a tensor of unknown shape. Where a data "
        r"set does not know its shapes, give .*`output_signature`, or .*`tf.ensure_shape`"
    )
    dataset = _unknown(key, None)
    for run in (model.fit, model.evaluate, model.predict):
        with pytest.raises(ValueError, match=message):
            run(dataset, verbose=0)

    @tf.function(autograph=False)
    def call(inputs):
        return model(inputs)

    if built and key == "x_context":
        inputs, _ = next(iter(dataset))
        signature = {**_call_spec(inputs), "x_context": tf.TensorSpec(None)}
        with pytest.raises(ValueError, match=message):
            call.get_concrete_function(signature)


@pytest.mark.parametrize("built", [False, True], ids=["new", "built"])
def test_a_data_set_needs_known_dimensions(built):
    model = _call_only()
    if built:
        model(conformance.points()[0])
    message = r"`x_context` must have a known last size D_x. Received: .*`output_signature`"
    for run in (model.fit, model.evaluate, model.predict):
        with pytest.raises(ValueError, match=message):
            run(_unknown("all", [None, None, None]), verbose=0)
    # What one key leaves open another one says.
    for key in ("x_target", "y_target"):
        history = _call_only().fit(_unknown(key, [None, None, None]), verbose=0)
        assert np.isfinite(history.history["loss"][0])


def _far(points, factor=500.0):
    inputs, y_target = points
    return {k: v * factor if k.startswith("x") else v for k, v in inputs.items()}, y_target


_FAR = r"x should be about -1 to 1, and at most 50 from 0.*Taylorformer.*Received: \|x\| up to"


@pytest.mark.parametrize(
    "use",
    [
        lambda model, x, y: model.fit(x, y, verbose=0),
        lambda model, x, y: model.train_on_batch(x, y),
        lambda model, x, y: model.evaluate(x, y, verbose=0),
        lambda model, x, y: model.test_on_batch(x, y),
        lambda model, x, y: model.predict(x, verbose=0),
        lambda model, x, y: model.predict_on_batch(x),
        lambda model, x, y: model(x),
        lambda model, x, y: model.log_prob(x, y),
        lambda model, x, y: model.sample(x, 1, seed=0),
        lambda model, x, y: model.teacher_forced(x, y),
    ],
    ids="fit train_on_batch evaluate test_on_batch predict predict_on_batch call log_prob sample "
    "teacher_forced".split(),
)
def test_x_that_the_encoding_is_not_made_for_is_warned_of_once(use):
    model = _eager(_model(num_layers=1, predict_samples=1))
    data = conformance.points()
    use(model, *data)
    use(model, *_far(data, 10.0))
    with pytest.warns(UserWarning, match=_FAR) as caught:
        use(model, *_far(data))
        use(model, *_far(data, 1e9))
    assert len(caught) == 1


def test_far_x_counts_where_it_is_observed_and_read():
    inputs, y_target = conformance.points()
    far, _ = _far((inputs, y_target))
    hidden = {**far, "x_context": inputs["x_context"], "target_mask": np.zeros((3, 4), bool)}
    model = _eager(_model(num_layers=1))
    model.log_prob(hidden, y_target)
    model.evaluate(hidden, y_target, verbose=0)
    # In units of `longest`; and not in a graph, which knows no values.
    _model(num_layers=1, longest=100.0)(far)
    tf.function(model, autograph=False)(far)
    with pytest.warns(UserWarning, match=_FAR):
        model.log_prob({**hidden, "target_mask": np.eye(3, 4) > 0}, y_target)
    # Models that read x by Dense layers alone have no such limit.
    for case in conformance.MODELS:
        model = case.make()
        assert (model.largest_x is None) != isinstance(model, Taylorformer)
        if case.name in ("np", "tnp"):
            model(far)
