"""TNP-A: its mask, its likelihood against one written by hand, its noise, and its quick sampler."""

import itertools

import conformance
import numpy as np
import pytest
import tensorflow as tf
from test_leaks import NUM_TARGET, Probe, assert_no_leak
from two_samplers import KEYS, SEED, assert_close, both, masked

from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.comparison_models.transformer_sampler import TransformerLoop

TNP = next(case for case in conformance.MODELS if case.name == "tnp")
TNP_2D = next(case for case in conformance.MODELS if case.name == "tnp_2d")
SETTINGS = {"num_heads": 2, "width": 8, "num_layers": 1, "embedding_layers": 2, "seed": 3}


def dense(layer, rows):
    return rows @ layer.kernel.numpy().astype("float64") + layer.bias.numpy()


def mlp(layer, rows):
    for number, each in enumerate(layer.denses):
        rows = dense(each, np.maximum(rows, 0) if number else rows)
    return rows


def normalized(layer, rows):
    rows = rows - rows.mean(-1, keepdims=True)
    rows = rows / np.sqrt(rows.var(-1, keepdims=True) + layer.epsilon)
    return rows * layer.gamma.numpy() + layer.beta.numpy()


def conditional_by_hand(model, context, earlier, x):
    """One padded target after a context and earlier targets, row by row in float64.

    `context` and `earlier` are lists of (x, y) of observed points only. Returns mean and scale.
    """
    points = [np.concatenate(point) for point in (*context, *earlier)]
    points.append(np.concatenate([x, np.zeros(model.y_dims)]))
    count = len(context)
    sees = [range(count)] * count
    sees += [range(i + 1) for i in range(count, len(points) - 1)]
    sees.append(range(len(points) - 1))
    rows = mlp(model.embedding, np.array(points, "float64"))
    for block in model.blocks:
        attention = block.attention
        query, key, value = (
            dense(layer, rows).reshape(len(rows), attention.num_heads, attention.head_dim)
            for layer in (attention.query_dense, attention.key_dense, attention.value_dense)
        )
        attended = np.zeros_like(query)
        for i, seen in enumerate(sees):
            for head in range(attention.num_heads):
                if len(seen):
                    scores = key[seen, head] @ query[i, head] / np.sqrt(attention.head_dim)
                    weights = np.exp(scores - scores.max())
                    attended[i, head] = weights @ value[seen, head] / weights.sum()
        attended = dense(attention.output_dense, attended.reshape(len(rows), -1))
        rows = normalized(block.attention_norm, rows + attended)
        inner = dense(block.output_dense, np.maximum(dense(block.hidden_dense, rows), 0))
        rows = normalized(block.output_norm, rows + inner)
    mean, raw = np.split(mlp(model.predictor, rows[-1]), 2)
    if model.scale == "exp":
        return mean, model.min_scale + np.exp(raw)
    return mean, model.min_scale + (1 - model.min_scale) * np.log1p(np.exp(raw))


@pytest.mark.parametrize("case", [TNP, TNP_2D], ids=lambda case: case.name)
def test_likelihood_is_the_sum_of_one_by_one_conditionals(case):
    model = case.make(num_layers=2)
    for num_context in (0, 1, 5):
        inputs, y_target = case.data(num_context=num_context, num_target=4)
        inputs = masked(inputs)
        outputs = model({**inputs, "y_target": y_target})
        alone = model(inputs)
        log_prob = model.log_prob(inputs, y_target)
        for b in range(3):
            context = [
                (inputs["x_context"][b, i], inputs["y_context"][b, i])
                for i in np.flatnonzero(inputs["context_mask"][b])
            ]
            earlier, total = [], 0.0
            for i in np.flatnonzero(inputs["target_mask"][b]):
                x, y = inputs["x_target"][b, i], y_target[b, i]
                mean, scale = conditional_by_hand(model, context, earlier, x)
                np.testing.assert_allclose(outputs["mean"][b, i], mean, atol=1e-5)
                np.testing.assert_allclose(outputs["scale"][b, i], scale, rtol=1e-4)
                z = (y - mean) / scale
                total -= np.sum(0.5 * z**2 + np.log(scale) + 0.5 * np.log(2 * np.pi))
                earlier.append((x, y))
                mean, scale = conditional_by_hand(model, context, [], x)
                np.testing.assert_allclose(alone["mean"][b, i], mean, atol=1e-5)
                np.testing.assert_allclose(alone["scale"][b, i], scale, rtol=1e-4)
            np.testing.assert_allclose(log_prob[b], total, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_context", [0, 1, 5])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_leak(num_context, training):
    model = TNP.make(y_noise=0.1)
    inputs, y_target = TNP.data(num_context=num_context, num_target=NUM_TARGET, batch_size=2)
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, training), inputs, y_target)


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_leak_in_two_dimensions_with_the_bounded_scale(training):
    model = TNP_2D.make(num_layers=2)
    assert model.scale == "bounded"
    inputs, y_target = TNP_2D.data(num_context=3, num_target=NUM_TARGET, batch_size=2)
    assert inputs["x_target"].shape[-1] == y_target.shape[-1] == 2
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, training), inputs, y_target)


@pytest.mark.parametrize("num_context", [0, 5])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_leak_among_equal_x(num_context, training):
    """Padded and observed rows of equal x differ in y alone."""
    model = TNP.make(y_noise=0.1)
    inputs, y_target = TNP.data(num_context=num_context, num_target=NUM_TARGET, batch_size=2)
    # Among targets, and between targets and context.
    inputs["x_target"][:, 1] = inputs["x_target"][:, 0]
    inputs["x_target"][:, 3] = inputs["x_target"][:, 2]
    if num_context:
        inputs["x_target"][:, 2:] = inputs["x_context"][:, :1]
        inputs["x_context"][:, -1] = inputs["x_context"][:, 0]
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, training), inputs, y_target)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_no_leak_in_mixed_precision(policy):
    model = TNP.make(num_layers=2, dtype=policy)
    inputs, y_target = TNP.data(num_context=3, num_target=NUM_TARGET, batch_size=2)
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, True), inputs, y_target)


def test_default_sizes_are_those_of_1d_regression():
    model = TransformerNeuralProcess()
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})

    def count(*widths):
        return sum((first + 1) * last for first, last in itertools.pairwise(widths))

    block = 4 * count(64, 64) + count(64, 128, 64) + 2 * 2 * 64
    assert count(2, 64, 64, 64, 64) + 6 * block + count(64, 128, 2) == 222_082
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
    assert trainable == 222_082


def test_heads_may_be_wider_than_the_width():
    model = TransformerNeuralProcess(num_heads=7, head_dim=12, width=48, num_layers=1)
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})
    assert model.blocks[0].attention.query_dense.kernel.shape == (48, 84)
    assert model.blocks[0].attention.output_dense.kernel.shape == (84, 48)
    assert model.get_config()["head_dim"] == 12


def test_noise_is_added_in_training_to_what_later_targets_read():
    calm, noisy, again = (TNP.make(y_noise=noise) for noise in (0.0, 0.5, 0.5))
    inputs, y_target = TNP.data()
    batch = {**inputs, "y_target": y_target}
    expected = calm(batch)["mean"].numpy()
    np.testing.assert_array_equal(calm(batch, training=True)["mean"], expected)
    np.testing.assert_array_equal(noisy(batch)["mean"], expected)
    first, second = (noisy(batch, training=True)["mean"].numpy() for _ in range(2))
    # The first target has no earlier one, and its own y is not read.
    np.testing.assert_array_equal(first[:, 0], expected[:, 0])
    for left, right in ((first, expected), (second, expected), (first, second)):
        assert np.all(left[:, 1:] != right[:, 1:])
    np.testing.assert_array_equal(again(batch, training=True)["mean"], first)
    noise = noisy._noisy(tf.ones([100, 100, 1])).numpy() - 1
    assert abs(noise.mean()) < 4 * 0.5 / 100
    assert abs(noise.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * 100**2)


def test_dropout_is_used_in_training_only():
    model = TNP.make(dropout=0.5)
    inputs, y_target = TNP.data()
    batch = {**inputs, "y_target": y_target}
    expected = model(batch)["mean"].numpy()
    np.testing.assert_array_equal(model(batch)["mean"], expected)
    assert np.all(model(batch, training=True)["mean"] != expected)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"num_heads": 0}, "`num_heads` must be at least 1. Received: num_heads=0"),
        ({"num_heads": 3}, "`width` must be a multiple of `num_heads`.*width=64, num_heads=3"),
        ({"head_dim": 0}, "`head_dim` must be at least 1"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"feed_forward": 0}, "`feed_forward` must be at least 1"),
        ({"embedding_layers": 0}, "`embedding_layers` must be at least 1"),
        ({"y_noise": -0.1}, "`y_noise` must be finite and at least 0"),
        ({"dropout": 1.0}, "`dropout` must be finite and at least 0 and below 1"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TransformerNeuralProcess(**settings)


# The quick sampler; that it equals the plain one for every N_C is in `test_cached.py`.


@pytest.mark.slow
def test_as_one_graph_and_with_xla():
    model = TNP.make(num_layers=1)
    inputs = masked(TNP.data(num_context=5, num_target=4)[0])
    drawn, wanted = both(model, inputs, "nearest")
    assert_close(drawn, wanted)
    sample = {"num_samples": 3, "seed": -3, "sequence_keys": KEYS, "order": "nearest"}
    assert_close(model.sample(inputs, **sample, jit_compile=True).numpy(), wanted)


@pytest.mark.parametrize("policy, tolerance", [("mixed_bfloat16", 0.1), ("mixed_float16", 0.02)])
def test_mixed_precision(eagerly, policy, tolerance):
    model = TransformerNeuralProcess(**SETTINGS, dtype=policy)
    inputs = masked(TNP.data(num_context=5, num_target=3)[0])
    assert_close(*both(model, inputs), tolerance)
    huge = {**inputs, "y_context": np.where(inputs["context_mask"][..., None], 1e9, 0.0)}
    assert np.isfinite(model.sample(huge, 2, seed=0)).all()


def test_two_calls_do_not_share_memory():
    """The caches are written in place: what one call writes, another must not see."""
    model = TNP.make(num_layers=1)
    batch = model.prepare(TNP.data()[0])
    model(batch)
    draw = tf.function(TransformerLoop(model).draw, autograph=False)
    order = tf.tile(tf.range(4)[tf.newaxis], [3, 1])
    numbers = tf.range(2, dtype=tf.int64)
    first = draw(batch, order, numbers, KEYS, SEED)
    kept = first.numpy().copy()
    assert np.all(draw(batch, order, numbers, KEYS, SEED + 1).numpy() != kept)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(draw(batch, order, numbers, KEYS, SEED), kept)


def test_memory_has_a_bound():
    model = TransformerNeuralProcess(num_layers=4, num_heads=6, head_dim=11)
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})
    loop = TransformerLoop(model)
    batch = {"x_context": tf.zeros([2, 200, 1]), "x_target": tf.zeros([2, 720, 1])}
    kept = sum(int(tf.size(cache)) for cache in loop._empty_caches(720, 1, 1))
    assert kept == 4 * 2 * 66 * 720
    memory = loop.memory(batch)
    assert 4 * kept < int(memory.per_sample) < 2 * 4 * kept
    # Scores of six heads, and keys and values of four layers.
    least = 4 * 200 * (6 * 200 + 4 * 2 * 66)
    assert least < int(memory.per_sequence) < 4 * least


@pytest.mark.slow
def test_served_and_predicted_numbers_are_those_of_samples(tmp_path):
    model = TNP_2D.make()
    inputs, y_target = TNP_2D.data()
    drawn = model.sample(inputs, 4, seed=3).numpy()
    model.compile(jit_compile=True)
    predicted = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(predicted["mean"], drawn.mean(0), atol=1e-4)
    np.testing.assert_allclose(predicted["stddev"], drawn.std(0), atol=1e-4)
    model.export(tmp_path)
    served = tf.saved_model.load(tmp_path).signatures
    batch = {name: tf.constant(value) for name, value in inputs.items()}
    log_prob = served["log_prob"](**batch, y_target=tf.constant(y_target))["log_prob"]
    np.testing.assert_allclose(log_prob, model.log_prob(inputs, y_target), rtol=1e-4)
    samples = served["sample"](**batch, num_samples=tf.constant(4), seed=tf.constant(3))
    np.testing.assert_allclose(samples["samples"], drawn, atol=1e-4)
