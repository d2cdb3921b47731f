"""RepresentationExtractor and its parts against plain numpy."""

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.features.derivatives import RIDGE, estimate_derivative
from taylorformer.data_wrangler.features.masked_normalization import MaskedBatchNormalization
from taylorformer.data_wrangler.features.neighbours import (
    canonical_order,
    nearest_seen_points,
    shuffled_order,
)
from taylorformer.data_wrangler.features.positional_encoding import PositionalEncoding
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor


def _nearest_by_hand(x, y, num_context, seen, i, num_neighbours):
    """The seen points of point i, nearest first, ties by the rule of the design."""
    candidates = [
        j
        for j in range(len(x))
        if j != i and seen[j] and (j < num_context or (i >= num_context and j < i))
    ]

    def key(j):
        tie = tuple(y[j]) if j < num_context else ()
        return (np.linalg.norm(x[i] - x[j]), tuple(x[j]), j >= num_context, tie, j)

    return sorted(candidates, key=key)[:num_neighbours]


@pytest.mark.parametrize("x_dims", [1, 2])
@pytest.mark.parametrize("num_context", [0, 1, 6])
def test_neighbours_are_those_found_by_hand(x_dims, num_context, rng):
    # On a coarse grid, so that there are many ties and equal x.
    x = rng.integers(0, 3, (4, num_context + 5, x_dims)).astype("float32")
    y = rng.integers(0, 2, (4, num_context + 5, 2)).astype("float32")
    seen = rng.random((4, num_context + 5)) < 0.8
    parts = [tf.constant(x[:, :num_context]), tf.constant(x[:, num_context:])]
    orders = canonical_order(parts[0], tf.constant(y[:, :num_context]), parts[1])
    points, is_neighbour = nearest_seen_points(
        *parts, tf.constant(seen[:, :num_context]), tf.constant(seen[:, num_context:]), orders, 3
    )
    assert points.shape == is_neighbour.shape == (4, num_context + 5, 3)
    for b in range(4):
        for i in range(num_context + 5):
            expected = _nearest_by_hand(x[b], y[b], num_context, seen[b], i, 3)
            assert is_neighbour[b, i].numpy().sum() == len(expected)
            nearest = points[b, i].numpy()[: len(expected)]
            for ours, theirs in zip(nearest, expected, strict=True):
                if theirs < num_context:
                    # Twins among the context: equal in everything that a feature can see.
                    assert ours < num_context
                    np.testing.assert_array_equal(x[b, ours], x[b, theirs])
                    np.testing.assert_array_equal(y[b, ours], y[b, theirs])
                else:
                    assert ours == theirs


def test_ties_are_broken_at_random_in_training():
    x_context = tf.constant([[[-1.0], [1.0]]] * 200)
    x_target = tf.zeros([200, 1, 1])
    orders = shuffled_order(x_context, x_target, tf.constant([1, 2]))
    masks = tf.ones([200, 2], tf.bool), tf.ones([200, 1], tf.bool)
    points, _ = nearest_seen_points(x_context, x_target, *masks, orders, 1)
    share = np.mean(points[:, 2, 0].numpy() == 0)
    assert 0.4 < share < 0.6


def test_far_points_stay_nearer_than_unseen_ones():
    x_context = tf.constant([[[-3e38], [3e38]]])
    x_target = tf.constant([[[3e38]]])
    masks = tf.constant([[True, False]]), tf.constant([[True]])
    orders = canonical_order(x_context, tf.zeros([1, 2, 1]), x_target)
    points, seen = nearest_seen_points(x_context, x_target, *masks, orders, 1)
    assert seen[0, 2, 0]
    assert points[0, 2, 0] == 0


def test_one_neighbour_in_one_dimension_gives_the_signed_secant():
    delta_x = tf.constant([[[[-0.5]], [[0.25]], [[0.0]], [[1e-3]], [[1.0]]]])
    delta_y = tf.constant([[[[1.0, 2.0]], [[1.0, 0.0]], [[1.0, 1.0]], [[1.0, 0.0]], [[3.0, 3.0]]]])
    seen = tf.constant([[[True], [True], [True], [True], [False]]])
    derivative, flag = estimate_derivative(delta_x, delta_y, seen, 200.0)
    np.testing.assert_array_equal(flag[0, :, 0], [True, True, False, False, False])
    np.testing.assert_allclose(derivative[0, :, :, 0], [[-2, -4], [4, 0], [0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("dims, num_neighbours", [(1, 3), (2, 2), (2, 4), (3, 3), (3, 5)])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_derivative_is_the_ridge_solution(dims, num_neighbours, unit, rng):
    delta_x = rng.normal(size=(2, 3, num_neighbours, dims)) * unit
    delta_y = rng.normal(size=(2, 3, num_neighbours, 2))
    count = rng.integers(dims, num_neighbours + 1, (2, 3))
    count[0, 0] = dims - 1
    seen = np.arange(num_neighbours) < count[..., None]
    derivative, flag = estimate_derivative(
        tf.constant(delta_x, tf.float32),
        tf.constant(delta_y, tf.float32),
        tf.constant(seen),
        1e12,
    )
    assert not flag[0, 0, 0]
    np.testing.assert_array_equal(derivative[0, 0], 0)
    for b, i in np.ndindex(2, 3):
        if (b, i) == (0, 0):
            continue
        a, c = delta_x[b, i, seen[b, i]], delta_y[b, i, seen[b, i]]
        gram = a.T @ a
        ridge = RIDGE * np.trace(gram) / dims
        expected = np.linalg.solve(gram + ridge * np.eye(dims), a.T @ c).T
        assert flag[b, i, 0]
        np.testing.assert_allclose(
            derivative[b, i], expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max()
        )


def test_equal_x_give_no_derivative_and_no_nan_gradient():
    delta_x = tf.zeros([1, 2, 3, 2])
    delta_y = tf.ones([1, 2, 3, 1])
    with tf.GradientTape() as tape:
        tape.watch([delta_x, delta_y])
        derivative, flag = estimate_derivative(delta_x, delta_y, tf.ones([1, 2, 3], tf.bool), 200.0)
    assert not np.any(flag)
    for gradient in tape.gradient(derivative, [delta_x, delta_y]):
        assert np.all(np.isfinite(gradient))


def test_positional_encoding_is_the_papers_formula():
    x = np.array([[[0.3, -2.0]]])
    encoded = PositionalEncoding(4, shortest=0.1, longest=10.0)(x)
    expected = []
    for value in (0.3, -2.0):
        angles = [value / 0.1 / 100 ** (2 * i / 4) for i in range(2)]
        expected += [*np.sin(angles), *np.cos(angles)]
    np.testing.assert_allclose(encoded[0, 0], expected, rtol=1e-5)


def test_normalisation_reads_the_named_points_only(rng):
    layer = MaskedBatchNormalization(momentum=0.9)
    values = rng.normal(3, 2, (4, 6, 2)).astype("float32")
    mask = rng.random((4, 6)) < 0.5
    outputs = layer(values, mask, training=True)
    mean, variance = values[mask].mean(0), values[mask].var(0)
    np.testing.assert_allclose(outputs, (values - mean) / np.sqrt(variance + 1e-3), atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean, 0.1 * mean, rtol=1e-4)
    np.testing.assert_allclose(layer.moving_variance, 0.9 + 0.1 * variance, rtol=1e-4)
    # With no point named, the moving statistics are used and stay as they are.
    moving = layer.moving_mean.numpy(), layer.moving_variance.numpy()
    outputs = layer(values, np.zeros_like(mask), training=True)
    np.testing.assert_array_equal(layer.moving_mean, moving[0])
    np.testing.assert_array_equal(layer.moving_variance, moving[1])
    np.testing.assert_array_equal(outputs, layer(values, mask, training=False))


def _extract(q, inputs, y_target, training=False, **settings):
    extractor = RepresentationExtractor(
        encoding_dim=2, feature_order=q, taylor_order=q, seed=0, **settings
    )
    return extractor({**inputs, "y_target": y_target}, training=training)


def test_features_of_first_and_second_order_on_a_line():
    # Sorted x, so that the neighbour of a target is the point before it.
    x = np.array([0.0, 1.0, 3.0, 6.0, 10.0], "float32")
    y = np.array([1.0, 3.0, 2.0, 8.0, 4.0], "float32")
    inputs = {
        "x_context": x[None, :3, None],
        "y_context": y[None, :3, None],
        "x_target": x[None, 3:, None],
    }
    features = _extract(2, inputs, y[None, 3:, None])
    np.testing.assert_allclose(features["x_fe"][0, 3:, 2:], [[3, 3, 1, 2], [6, 4, 3, 3]])
    slope = [2, 2, -0.5, 2, -1]  # of each point, towards its neighbour
    curvature_3 = (slope[3] - slope[2]) / 3
    scale = 1 / np.sqrt(1 + 1e-3)
    y_seen = np.array(features["y_seen"][0, 4])
    expected = [8, slope[3] * scale, 1, (slope[3] - slope[2]) * scale, 1, curvature_3 * scale, 1]
    np.testing.assert_allclose(y_seen, expected, rtol=1e-5)
    y_fe = np.array(features["y_fe"][0, 4])
    curvature_4 = (slope[4] - slope[3]) / 4
    expected = [
        4,
        -4,
        slope[4] * scale,
        1,
        (slope[4] - slope[3]) * scale,
        1,
        curvature_4 * scale,
        1,
    ]
    np.testing.assert_allclose(y_fe, expected, rtol=1e-5)
    # Explicit terms use the derivatives before normalisation.
    terms = 8 + slope[3] * 4 + 0.5 * curvature_3 * 4**2
    np.testing.assert_allclose(features["taylor_terms"][0, 1], [terms], rtol=1e-5)


def test_explicit_first_order_terms_are_exact_on_straight_lines(rng):
    x = rng.uniform(-1, 1, (3, 12, 1)).astype("float32")
    y = 3 * x - 1
    inputs = {"x_context": x[:, :7], "y_context": y[:, :7], "x_target": x[:, 7:]}
    features = _extract(1, inputs, y[:, 7:])
    np.testing.assert_allclose(features["taylor_terms"], y[:, 7:], atol=1e-3)


def test_a_point_with_nothing_seen_has_zero_features():
    inputs, y_target = conformance.points(num_context=1, num_target=1)
    inputs["context_mask"] = np.zeros((3, 1), bool)
    features = _extract(2, inputs, y_target)
    np.testing.assert_array_equal(features["x_fe"][..., 2:], 0)
    np.testing.assert_array_equal(features["y_seen"], 0)
    np.testing.assert_array_equal(features["taylor_terms"], 0)


def test_flagged_derivatives_are_zero_after_normalisation():
    inputs, y_target = conformance.points(num_context=4, num_target=2)
    extractor = RepresentationExtractor(encoding_dim=2, max_derivative=1e-6, seed=0)
    batch = {**inputs, "y_target": y_target}
    extractor(batch)
    extractor.derivative_normalization.beta.assign([5.0])
    np.testing.assert_array_equal(extractor(batch)["y_fe"][..., 2:], 0)
    np.testing.assert_array_equal(extractor(batch)["y_seen"][..., 1:], 0)


def test_covariates_do_not_make_neighbours(rng):
    inputs, y_target = conformance.points(num_context=6, num_target=3, x_dims=2)
    lonely = {k: v[..., :1] if k.startswith("x") else v for k, v in inputs.items()}
    both = _extract(2, inputs, y_target, neighbour_dims=1)
    time_only = _extract(2, lonely, y_target)
    np.testing.assert_array_equal(both["y_fe"], time_only["y_fe"])
    np.testing.assert_array_equal(both["taylor_terms"], time_only["taylor_terms"])
    assert both["x_fe"].shape[-1] == 2 * time_only["x_fe"].shape[-1]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"encoding_dim": 3}, "`width` must be even"),
        ({"feature_order": 3}, "`feature_order` must be one of 0, 1, 2. Received"),
        ({"taylor_order": True}, "`taylor_order` must be one of"),
        ({"num_neighbours": 0}, "`num_neighbours` must be at least 1"),
        ({"max_derivative": float("nan")}, "`max_derivative` must be finite"),
        ({"shortest": 0.0}, "`shortest` must be finite and above 0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RepresentationExtractor(**settings)


def test_neighbour_search_makes_no_tensor_of_all_pairs_and_dimensions():
    """N = 816 and B = 32: the largest tensor of the graph stays at one number a pair."""
    extractor = RepresentationExtractor(encoding_dim=2, num_neighbours=3, seed=0)
    specs = {
        key: tf.TensorSpec([32, size, 3 if key.startswith("x") else 1])
        for key, size in (
            ("x_context", 96),
            ("y_context", 96),
            ("x_target", 720),
            ("y_target", 720),
        )
    }
    extractor.build({key: spec.shape for key, spec in specs.items()})
    graph = tf.function(extractor, autograph=False).get_concrete_function(specs).graph
    sizes = [
        output.shape.num_elements()
        for op in graph.get_operations()
        for output in op.outputs
        if output.shape.is_fully_defined()
    ]
    assert max(sizes) <= 32 * 720 * 816


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_features_are_the_same_numbers_under_every_policy(policy):
    """In bfloat16 a step of x on a grid of 192 would be wrong by 25 %."""
    x = np.linspace(-1, 1, 192, dtype="float32")[None, :, None]
    y = np.sin(5 * x)
    inputs = {"x_context": x[:, :96], "y_context": y[:, :96], "x_target": x[:, 96:]}
    exact = _extract(2, inputs, y[:, 96:])
    mixed = _extract(2, inputs, y[:, 96:], dtype=policy)
    for name, values in exact.items():
        np.testing.assert_array_equal(mixed[name], values)


def test_extractor_works_in_a_functional_model():
    specs = {
        key: keras.Input((None, 1), name=key)
        for key in ("x_context", "y_context", "x_target", "y_target")
    }
    features = RepresentationExtractor(encoding_dim=2, seed=0)(specs)
    model = keras.Model(specs, keras.layers.Dense(1)(features["x_fe"]))
    inputs, y_target = conformance.points()
    assert model({**inputs, "y_target": y_target}).shape == (3, 9, 1)
