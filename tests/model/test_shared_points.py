"""Points that all sequences share: the same numbers as with a copy for each sequence."""

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.batch import (
    SHARED_KEYS,
    check_finite,
    check_shapes,
    largest_absolute_x,
    prepare_batch,
    tile_points,
    tiled_arrays,
)
from taylorformer.training_and_evaluation.training.training_step import TrainingStep

B, N_C, N_T = 4, 6, 5
QUICK = ("taylorformer", "np", "tnp")
models = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case.name in QUICK else pytest.mark.slow)
        for case in conformance.MODELS
    ],
)
ties = pytest.mark.parametrize(
    "equal_x",
    [pytest.param(False, id="no ties", marks=pytest.mark.slow), pytest.param(True, id="ties")],
)


def shared_batch(case, equal_x=False, masked=True, num_context=N_C, num_target=N_T, batch_size=B):
    """A batch whose x and masks have one row; with ties, three context points have the same x."""
    if masked or equal_x:
        case.needs("missing context rows")
    inputs, y_target = case.data(
        num_context=num_context, num_target=num_target, batch_size=batch_size
    )
    inputs = {**inputs}
    for side in ("context", "target"):
        inputs[f"x_{side}"] = inputs[f"x_{side}"][:1].copy()
        mask = np.ones((1, inputs[f"x_{side}"].shape[1]), bool)
        if masked:
            mask[0, 1] = False
        inputs[f"{side}_mask"] = mask
    if equal_x:
        inputs["x_context"][0, [0, 3, 4]] = inputs["x_context"][0, 0]
    if masked:
        inputs["x_context"][0, 1] = np.nan
        inputs["y_context"] = inputs["y_context"].copy()
        inputs["y_context"][:, 1] = 1e6
        y_target = y_target.copy()
        y_target[:, 1] = np.nan
    return inputs, y_target


def numpy_outputs(outputs):
    return {key: np.asarray(value) for key, value in outputs.items()}


def assert_close(left, right, tolerance=2e-5):
    for a, b in zip(tf.nest.flatten(left), tf.nest.flatten(right), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@models
@ties
def test_outputs_density_and_samples_are_those_of_copies(case, equal_x):
    inputs, y_target = shared_batch(case, equal_x)
    copies = tiled_arrays(inputs)
    model = case.make()
    for each in ({**inputs, "y_target": y_target}, inputs):
        outputs = model(each, training=False)
        assert outputs["mean"].shape == y_target.shape
        assert_close(outputs, model(tiled_arrays(each), training=False))
    density = model.log_prob(inputs, y_target)
    assert density.shape == (B,)
    assert_close(density, model.log_prob(copies, y_target))
    assert_close(model.teacher_forced(inputs, y_target), model.teacher_forced(copies, y_target))
    for order in ("given", "random"):
        options = {"num_samples": 3, "seed": 5, "sequence_keys": np.arange(B), "order": order}
        samples = model.sample(inputs, **options)
        assert samples.shape == (3, B, N_T, case.y_dims)
        assert_close(samples, model.sample(copies, **options), 1e-4)
    assert_close(model.predict(inputs, verbose=0), model.predict(copies, verbose=0), 1e-4)


@models
def test_training_is_that_of_copies(case):
    inputs, y_target = shared_batch(case)
    runs = []
    for batch in (inputs, tiled_arrays(inputs)):
        model = case.make()
        step = TrainingStep(model, keras.optimizers.SGD(1e-2))
        averages = [step(batch, y_target) for _ in range(3)]
        runs.append((averages, [weight.numpy() for weight in model.weights]))
    assert_close(runs[0], runs[1], 1e-4)


@models
def test_gradients_are_those_of_copies(case):
    inputs, y_target = shared_batch(case)
    model = case.make()
    gradients = []
    for batch in (inputs, tiled_arrays(inputs)):
        if not model.built:
            model(batch, training=False)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(model.log_prob(batch, y_target))
        gradients.append(tape.gradient(loss, model.trainable_weights))
    assert [g is None for g in gradients[0]] == [g is None for g in gradients[1]]
    shared, copied = ([g for g in some if g is not None] for some in gradients)
    largest = max(float(tf.reduce_max(tf.abs(gradient))) for gradient in copied)
    assert_close([g / largest for g in shared], [g / largest for g in copied], 1e-5)


def test_training_ties_are_broken_alike_in_all_sequences():
    # Both context points are as near; one of them is taken, for all sequences.
    case = conformance.MODELS[0]
    model = case.make()
    x = np.array([[[-1.0], [1.0]]], "float32")
    y = np.tile(np.array([[[2.0], [3.0]]], "float32"), [8, 1, 1])
    inputs = {"x_context": x, "y_context": y, "x_target": np.zeros([1, 1, 1], "float32")}
    model(inputs, training=False)
    extractor = model.local_taylor.representation_extractor
    taken = {tuple(np.unique(extractor(inputs, training=True)["taylor_terms"])) for _ in range(20)}
    assert taken == {(2.0,), (3.0,)}


@pytest.mark.parametrize("name", SHARED_KEYS)
def test_each_of_the_four_may_be_shared_by_itself(name):
    case = conformance.MODELS[0]
    inputs, y_target = shared_batch(case)
    copies = tiled_arrays(inputs)
    model = case.make()
    some = {**copies, name: inputs[name]}
    assert_close(model.log_prob(some, y_target), model.log_prob(copies, y_target))
    prepared = prepare_batch(some)
    assert {prepared[key].shape[0] for key in SHARED_KEYS} == {B}
    # Masks of their own beside points that are shared.
    mask = np.arange(B * N_T).reshape(B, N_T) % 3 > 0
    some = {**inputs, "target_mask": mask}
    copies = {**copies, "target_mask": mask}
    y_target = np.where(mask[..., np.newaxis], 1.0, np.nan).astype("float32")
    assert_close(model.log_prob(some, y_target), model.log_prob(copies, y_target))


def test_the_tower_of_x_runs_once_for_all_sequences():
    case = conformance.MODELS[0]
    inputs, y_target = shared_batch(case)
    model = case.make()
    batch = model.prepare({**inputs, "y_target": y_target})
    assert {batch[key].shape[0] for key in SHARED_KEYS} == {1}
    extractor = model.local_taylor.representation_extractor
    model(batch)
    features = extractor(batch)
    assert features["x_fe"].shape[0] == 1 and features["y_fe"].shape[0] == B
    tower = model.local_taylor.network.mha_x
    hidden = tower.blocks[0](
        features["x_fe"],
        features["x_fe"],
        features["x_fe"],
        visible=tf.ones([1, 1, 1], tf.bool),
    )
    assert hidden.shape[0] == 1
    assert tile_points(batch)["x_context"].shape[0] == B


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [conformance.MODELS[0], conformance.MODELS[9]], ids=["taylorformer", "tnp"]
)
def test_one_graph_serves_shared_points_and_others(case):
    model = case.make()
    step = TrainingStep(model)
    rng = np.random.default_rng(0)
    for number in range(12):
        sizes = {
            "num_context": int(rng.integers(2, 9)),
            "num_target": int(rng.integers(1, 9)),
            "batch_size": int(rng.integers(1, 6)),
        }
        batch, y_target = shared_batch(case, **sizes, masked=False)
        step(batch if number % 2 else tiled_arrays(batch), y_target)
        assert model.teacher_forced(batch, y_target)["log_prob"].shape == (sizes["batch_size"],)
    assert step.num_traces == 1


def test_no_target_changes_an_earlier_one_or_another_sequence():
    case = conformance.MODELS[0]
    inputs, y_target = shared_batch(case, masked=False)
    model = case.make()
    for training in (False, True):
        before = numpy_outputs(model({**inputs, "y_target": y_target}, training=training))
        for j in range(N_T):
            changed = y_target.copy()
            changed[1, j] += 1e3
            after = numpy_outputs(model({**inputs, "y_target": changed}, training=training))
            for key in before:
                np.testing.assert_array_equal(after[key][1, : j + 1], before[key][1, : j + 1])
                np.testing.assert_array_equal(after[key][[0, 2, 3]], before[key][[0, 2, 3]])


@pytest.mark.parametrize(
    ("seed", "validation"),
    [
        (3, None),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in ((3, "arrays"), (3, "split"), (None, None), (None, "split"))
        ),
    ],
)
def test_arrays_are_trained_on_sequence_by_sequence(seed, validation):
    case = conformance.MODELS[0]
    inputs, y_target = shared_batch(case, batch_size=10)
    options = {"batch_size": 4, "epochs": 2, "shuffle": seed is not None, "verbose": 0}
    histories, weights = [], None
    for batch in (inputs, tiled_arrays(inputs)):
        model = case.make(seed=seed)
        model.build({key: value.shape for key, value in batch.items()})
        weights = weights or model.get_weights()
        model.set_weights(weights)
        model.compile()
        if validation == "split":
            options["validation_split"] = 0.3
            options["shuffle"] = False
        elif validation == "arrays":
            options["validation_data"] = (batch, y_target)
        history = model.fit(batch, y_target, **options)
        histories.append({name: np.array(values) for name, values in history.history.items()})
        assert model.optimizer.iterations.numpy() == 2 * (2 if validation == "split" else 3)
    assert histories[0].keys() == histories[1].keys()
    for name, values in histories[0].items():
        np.testing.assert_allclose(values, histories[1][name], rtol=1e-4)


@pytest.mark.slow
def test_arrays_are_scored_sequence_by_sequence():
    case = conformance.MODELS[0]
    inputs, y_target = shared_batch(case, batch_size=10)
    copies = tiled_arrays(inputs)
    model = case.make()
    model.compile(metrics=[keras.metrics.MeanAbsoluteError(name="mae")])
    weights = np.arange(10.0)
    options = {"batch_size": 4, "verbose": 0, "return_dict": True}
    for sample_weight in (None, weights):
        shared = model.evaluate(inputs, y_target, sample_weight=sample_weight, **options)
        copied = model.evaluate(copies, y_target, sample_weight=sample_weight, **options)
        assert shared.keys() == copied.keys()
        for name, value in shared.items():
            np.testing.assert_allclose(value, copied[name], rtol=1e-5)
    predicted = model.predict(inputs, batch_size=4, verbose=0)
    assert predicted["mean"].shape == (10, N_T, 1)
    assert_close(predicted, model.predict(copies, batch_size=4, verbose=0), 1e-4)
    scores = [
        model.test_on_batch(batch, y_target, return_dict=True)["nll"] for batch in (inputs, copies)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


@pytest.mark.slow
def test_a_served_model_takes_shared_points(tmp_path):
    inputs, y_target = shared_batch(conformance.MODELS[0], masked=False)
    inputs = {key: value for key, value in inputs.items() if not key.endswith("_mask")}
    model = conformance.MODELS[0].make()
    model(inputs, training=False)
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    answers = []
    for batch in (inputs, tiled_arrays(inputs)):
        tensors = {key: tf.constant(value) for key, value in batch.items()}
        answers.append(
            (
                served["log_prob"](**tensors, y_target=tf.constant(y_target))["log_prob"],
                served["sample"](**tensors, num_samples=tf.constant(2), seed=tf.constant(1)),
            )
        )
    assert answers[0][0].shape == (B,)
    assert_close(*answers)
    wrong = {**inputs, "y_context": inputs["y_context"][:3], "x_target": np.zeros([2, N_T, 1])}
    wrong = {key: tf.constant(value, tf.float32) for key, value in wrong.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`x_target` must have the batch"):
        served["sample"](**wrong, num_samples=tf.constant(2), seed=tf.constant(1))


def test_sizes_that_do_not_fit_are_named():
    shapes = {"x_context": (3, 6, 1), "y_context": (4, 6, 1), "x_target": (1, 5, 1)}
    with pytest.raises(ValueError, match=r"B = 3. Received: x_context: \[3, 6, 1\]"):
        check_shapes(shapes)
    shapes = {"y_context": (4, 6, 1), "x_context": (3, 6, 1), "x_target": (1, 5, 1)}
    with pytest.raises(ValueError, match=r"`x_context` .* with B = 4 or 1\. Received"):
        check_shapes(shapes)
    with pytest.raises(ValueError, match=r"`y_target` .* with B = 4\. Received"):
        check_shapes({"y_context": (4, 6, 1), "x_context": (1, 6, 1), "y_target": (1, 5, 1)})
    assert check_shapes({"y_context": (4, 6, 1), "x_context": (1, 6, 1)})["B"] == 4


def test_checks_of_values_know_shared_points():
    inputs, y_target = shared_batch(conformance.MODELS[0])
    check_finite(inputs, y_target)
    y_target[2, 3] = np.inf
    with pytest.raises(ValueError, match=r"\[B, N_T, D_y\] = \[2, 3, 0\]"):
        check_finite(inputs, y_target)
    inputs["x_context"][0, 1] = 1e9
    assert largest_absolute_x(inputs) < 2
    # A point that one sequence observes counts.
    inputs["context_mask"] = np.tile(inputs["context_mask"], [B, 1])
    assert largest_absolute_x(inputs) < 2
    inputs["context_mask"][2, 1] = True
    assert largest_absolute_x(inputs) == 1e9
    inputs["x_context"][0, 1] = np.nan
    with pytest.raises(ValueError, match="`x_context` must be finite"):
        check_finite(inputs)
