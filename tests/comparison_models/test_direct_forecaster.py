"""Direct forecasters: fixed lengths, the even grid, the fitted scale, and interpolation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.comparison_models.direct_forecaster import DirectForecaster
from taylorformer.comparison_models.even_grid import even_times, interpolate_rows, step_error
from taylorformer.model.layers.dense import seeded_dense
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.resumable_fit import resumable_fit

NUM_CONTEXT, NUM_TARGET = 8, 4


@keras.saving.register_keras_serializable("taylorformer_tests")
class LinearForecaster(DirectForecaster):
    """One Dense layer from all values of the context to all targets."""

    def build_layers(self, num_features):
        self.dense = seeded_dense(
            self.num_target * self.y_dims, self.seed, 0, self.dtype_policy, "dense"
        )
        self.dense.build((None, self.num_context * (self.y_dims + num_features)))

    def forecast_rows(self, values, context_features, target_features, training):
        rows = tf.concat([values, context_features], axis=-1)
        flat = tf.reshape(rows, [-1, rows.shape[1] * rows.shape[2]])
        shape = [-1, self.num_target, self.y_dims]
        return tf.reshape(tf.cast(self.dense(flat), tf.float32), shape)


def _model(**settings):
    return LinearForecaster(width=4, num_heads=2, feed_forward=4, seed=0, **settings)


def _waves(count=32, y_dims=1):
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, NUM_CONTEXT + NUM_TARGET, dtype="float32").reshape(1, -1, 1)
    phase = rng.uniform(0, 6, (count, 1, y_dims))
    y = (np.sin(6 * x + phase) + 0.1 * rng.normal(size=(count, x.shape[1], y_dims))).astype(
        "float32"
    )
    x = np.repeat(x, count, axis=0)
    inputs = {
        "x_context": x[:, :NUM_CONTEXT],
        "y_context": y[:, :NUM_CONTEXT],
        "x_target": x[:, NUM_CONTEXT:],
    }
    return inputs, y[:, NUM_CONTEXT:]


@pytest.fixture(scope="module")
def trained():
    inputs, y_target = _waves()
    model = _model()
    model.compile(keras.optimizers.Adam(1e-2))
    history = model.fit(
        inputs, y_target, epochs=20, verbose=0, validation_data=(inputs, y_target)
    ).history
    return model, history, inputs, y_target


def test_fit_minimises_the_squared_error_and_fits_the_scale(trained):
    model, history, inputs, y_target = trained
    assert history["mse"][-1] < history["mse"][0] / 2
    np.testing.assert_allclose(history["loss"], history["mse"], rtol=1e-6)
    scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
    assert set(scores) == {"loss", "mse", "nll"}
    np.testing.assert_allclose(model.residual_scale, scores["mse"] ** 0.5, rtol=1e-5)
    # Of the Gaussian whose scale is the root of the mean squared error.
    expected = 0.5 * np.log(2 * np.pi * np.e * scores["mse"])
    np.testing.assert_allclose(scores["nll"], expected, rtol=1e-5)


def test_the_scale_is_one_for_each_output():
    inputs, y_target = _waves(y_dims=2)
    model = _model()
    scale = model.fit_scale(inputs, y_target * np.float32([1, 10]), batch_size=5)
    errors = y_target * np.float32([1, 10]) - model(inputs)["mean"].numpy()
    np.testing.assert_allclose(scale, np.sqrt(np.mean(errors**2, axis=(0, 1))), rtol=1e-5)
    np.testing.assert_allclose(model(inputs)["scale"][3, 2], scale, rtol=1e-6)


def test_the_scale_counts_observed_targets_alone():
    inputs, y_target = _waves()
    mask = np.ones(y_target.shape[:2], bool)
    mask[:, 1:] = False
    model = _model()
    garbage = np.where(mask[..., np.newaxis], y_target, np.nan)
    scale = model.fit_scale({**inputs, "target_mask": mask}, garbage)
    error = y_target[:, 0] - model(inputs)["mean"][:, 0].numpy()
    np.testing.assert_allclose(scale, np.sqrt(np.mean(error**2)), rtol=1e-5)
    with pytest.raises(ValueError, match="at least one observed target"):
        model.fit_scale({**inputs, "target_mask": np.zeros_like(mask)}, garbage)
    with pytest.raises(ValueError, match="`inputs` with `y` beside it"):
        model.fit_scale(inputs)


def test_samples_are_normal_around_the_forecast(trained):
    model, _, inputs, _ = trained
    some = {key: value[:2] for key, value in inputs.items()}
    samples = model.sample(some, 2000, seed=1, sequence_keys=[1, 2]).numpy()
    outputs = model(some)
    np.testing.assert_allclose(samples.mean(axis=0), outputs["mean"], atol=0.02)
    np.testing.assert_allclose(samples.std(axis=0), outputs["scale"], rtol=0.1)
    steps = samples[:, 0, :, 0] - samples[:, 0, :, 0].mean(axis=0)
    assert abs(np.corrcoef(steps.T)[0, 1]) < 0.1
    one = model.sample(
        {key: value[1:] for key, value in some.items()}, 3, seed=1, sequence_keys=[2]
    )
    np.testing.assert_allclose(one, samples[:3, 1:], rtol=1e-6)


def test_shared_points_are_those_of_the_tiled_batch(trained):
    model, _, inputs, y_target = trained
    shared = {**inputs, "x_context": inputs["x_context"][:1], "x_target": inputs["x_target"][:1]}
    for batch in (inputs, shared):
        batch["scores"] = model.evaluate(
            {k: v for k, v in batch.items() if k != "scores"}, y_target, verbose=0
        )
    np.testing.assert_allclose(shared.pop("scores"), inputs.pop("scores"), rtol=1e-6)
    np.testing.assert_allclose(
        model.fit_scale(shared, y_target), model.fit_scale(inputs, y_target), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: {"x_context": b["x_context"] ** 3}, "steps from the even grid"),
        (lambda b: {"x_target": b["x_target"] + 0.1}, "steps from the even grid"),
        (lambda b: {"x_context": -b["x_context"], "x_target": -b["x_target"]}, "inf steps"),
        (
            lambda b: {"context_mask": np.arange(NUM_CONTEXT)[np.newaxis].repeat(32, 0) != 2},
            "Received: 32 missing rows",
        ),
        (lambda b: {"x_target": b["x_target"][:, :3]}, "N_C = 8 and N_T = 4"),
    ],
)
def test_what_is_no_even_grid_is_refused(trained, change, message):
    model, _, inputs, y_target = trained
    bad = {**inputs, **change(inputs)}
    y_target = y_target[:, : bad["x_target"].shape[1]]
    for call in (
        lambda: model.sample(bad, 1, 0),
        lambda: model.log_prob(bad, y_target),
        lambda: model.evaluate(bad, y_target, verbose=0),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_graph_refuses_an_uneven_grid(trained):
    model, _, inputs, y_target = trained
    bad = {**inputs, "x_context": inputs["x_context"] ** 3}
    data = tf.data.Dataset.from_tensors((bad, y_target))
    with pytest.raises(tf.errors.InvalidArgumentError, match="reads an even grid"):
        model.evaluate(data, verbose=0)


def test_interpolation_changes_nothing_on_an_even_grid(trained):
    model, _, inputs, _ = trained
    interpolating = _model(interpolate=True)
    interpolating.build({key: value.shape for key, value in inputs.items()})
    interpolating.set_weights(model.get_weights())
    expected = model(inputs)["mean"]
    np.testing.assert_allclose(interpolating(inputs)["mean"], expected, atol=1e-5)
    # A straight line is read as it is, with a row missing and uneven times.
    times = np.float32([0, 1, 2.5, 3, 4, 4.4, 6, 7, 8, 9, 10, 11]).reshape(1, -1, 1)
    line = {
        "x_context": times[:, :NUM_CONTEXT],
        "y_context": 2 * times[:, :NUM_CONTEXT],
        "x_target": times[:, NUM_CONTEXT:],
        "context_mask": np.arange(NUM_CONTEXT)[np.newaxis] != 4,
    }
    even = np.arange(12, dtype="float32").reshape(1, -1, 1)
    straight = {
        "x_context": even[:, :NUM_CONTEXT],
        "y_context": 2 * even[:, :NUM_CONTEXT],
        "x_target": even[:, NUM_CONTEXT:],
    }
    line["y_context"][:, 4] = 1e6
    np.testing.assert_allclose(interpolating(line)["mean"], model(straight)["mean"], atol=1e-4)


def test_lengths_must_be_known_when_it_is_built():
    shapes = {"x_context": (None, None, 1), "y_context": (None, None, 1), "x_target": (None, 4, 1)}
    with pytest.raises(ValueError, match="N_C = None, N_T = 4"):
        _model().build(shapes)
    with pytest.raises(ValueError, match="`start_length` must be at most N_C"):
        _model(start_length=9)(_waves()[0])
    with pytest.raises(ValueError, match="multiple of `num_heads`"):
        LinearForecaster(width=5, num_heads=2)


def test_files_keep_lengths_and_scale(trained, tmp_path):
    model, _, inputs, y_target = trained
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded.log_prob(inputs, y_target), model.log_prob(inputs, y_target)
    )
    model.export(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served").signatures["log_prob"]
    tensors = {key: tf.constant(value) for key, value in inputs.items()}
    log_prob = served(**tensors, y_target=tf.constant(y_target))["log_prob"]
    np.testing.assert_allclose(log_prob, model.log_prob(inputs, y_target), rtol=1e-5)


def test_the_weights_that_are_kept_have_the_least_squared_error(tmp_path):
    inputs, y_target = _waves()
    data = tf.data.Dataset.from_tensors((inputs, y_target))
    plan = TrainingPlan(32, 1e-2, "constant", max_steps=6, steps_per_epoch=2)
    model = _model()
    model.compile(plan.make_optimizer())
    progress = resumable_fit(model, lambda first: data.repeat(), data, plan)
    errors = [row["validation_mse"] for row in progress.history]
    assert progress.best_epoch == 1 + int(np.argmin(errors))
    scores = model.evaluate(data, verbose=0, return_dict=True)
    assert scores["mse"] == pytest.approx(min(errors), rel=1e-5)
    # The scale is that of the validation data, and not of training.
    np.testing.assert_allclose(model.residual_scale, scores["mse"] ** 0.5, rtol=1e-5)


def test_step_error_and_even_times():
    times = np.float32([[9, 0, 1, 2, 5], [0, 0, 0, 0, 0], [3, 9, 2, 9, 1]])
    mask = np.array(
        [[False, True, True, True, False], [True] * 5, [True, False, True, False, True]]
    )
    errors = step_error(tf.constant(times), tf.constant(mask)).numpy()
    assert errors[0] == 0
    assert np.isinf(errors[1:]).all()
    one = step_error(tf.constant(times[:, :1]), tf.constant(mask[:, :1])).numpy()
    assert one.tolist() == [0, 0, 0]
    even = even_times(tf.constant(times[:1]), tf.constant(mask[:1])).numpy()
    np.testing.assert_allclose(even, [[0, 0.5, 1, 1.5, 2]])


def test_interpolation_is_that_of_numpy():
    rng = np.random.default_rng(0)
    times, rows = rng.normal(size=(3, 7)), rng.normal(size=(3, 7, 2))
    mask = rng.random((3, 7)) < 0.7
    mask[2] = False
    wanted = np.concatenate([rng.normal(size=(3, 9)) * 2, times[:, :2]], axis=1)
    tensors = (times, mask, rows, wanted)
    given = [tf.constant(part if part is mask else part.astype("float32")) for part in tensors]
    result = interpolate_rows(*given).numpy()
    for b in range(2):
        order = np.argsort(times[b][mask[b]])
        for f in range(2):
            expected = np.interp(wanted[b], times[b][mask[b]][order], rows[b, :, f][mask[b]][order])
            np.testing.assert_allclose(result[b, :, f], expected, atol=1e-5)
    assert not result[2].any()
