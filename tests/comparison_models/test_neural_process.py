"""NP and ANP: the latent path, its density, its loss and its samples."""

import itertools
from typing import NamedTuple

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm

from taylorformer.comparison_models import latent_model
from taylorformer.comparison_models.attentive_neural_process import AttentiveNeuralProcess
from taylorformer.comparison_models.neural_process import NeuralProcess
from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.keras_private import sublayers
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.sampling import base
from taylorformer.model.sampling.counter_noise import latent_noise, normal_noise
from taylorformer.training_and_evaluation.experiments.presets import MODEL_PRESETS, TASKS

CASES = {case.name: case for case in conformance.MODELS if case.name in ("np", "anp")}
both_kinds = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def _shapes(x_dims=1, y_dims=1):
    x, y = (None, None, x_dims), (None, None, y_dims)
    return {"x_context": x, "y_context": y, "x_target": x}


# A model whose distributions are known: z = Normal(SLOPE m, tau(m)), m the mean of y, and y = SHIFT
# + z + Normal(0, SIGMA). Both parameters of z depend on m, so that q(z given C) and q(z given C, T)
# differ in both.

SLOPE, SPREAD, SHIFT, SIGMA = 0.5, 1.5, 0.2, 0.1 + 0.9 * np.log1p(np.exp(-1.0))


def _tau(mean, spread=SPREAD):
    return 0.1 + 0.9 * expit(0.3 + spread * mean)


def _gaussian(slope=SLOPE, spread=SPREAD, **settings):
    layers = {"latent_layers": (1, 1), "deterministic_layers": 1, "decoder_layers": 2}
    model = NeuralProcess(width=2, latent_dim=1, **layers, **settings)
    model.build(_shapes())
    model.set_weights([np.zeros_like(weight) for weight in model.get_weights()])
    model.point_encoder.denses[0].kernel.assign([[0.0, 0.0], [1.0, 0.0]])
    model.latent_encoder.denses[0].kernel.assign([[slope, spread], [0.0, 0.0]])
    model.latent_encoder.denses[0].bias.assign([0.0, 0.3])
    # relu(z) - relu(-z) = z.
    model.latent_dense.kernel.assign([[1.0, -1.0]])
    model.decoder.denses[0].kernel.assign([[1.0, 0.0], [-1.0, 0.0]])
    model.decoder.denses[0].bias.assign([SHIFT, -1.0])
    return model


def _masked_points():
    inputs, y_target = conformance.points(num_context=4, num_target=3)
    inputs["context_mask"] = np.array([[True] * 4, [True, False, True, False], [False] * 4])
    inputs["target_mask"] = np.array([[True] * 3, [True, True, False], [True] * 3])
    return inputs, y_target


class _Exact(NamedTuple):
    """The exact values of what the model estimates, `[B]` each."""

    joint: np.ndarray
    marginal: np.ndarray
    mean_c: np.ndarray
    mean_ct: np.ndarray
    tau_c: np.ndarray
    tau_ct: np.ndarray


def _exact(inputs, y_target):
    """Joint and marginal log density, and mean and scale of z given C and given C, T, in numpy."""
    rows = []
    for b, y in enumerate(y_target[..., 0]):
        context = inputs["y_context"][b, inputs["context_mask"][b], 0]
        y = y[inputs["target_mask"][b]]
        of_context = context.mean() if len(context) else 0.0
        of_all = np.concatenate([context, y]).mean()
        tau_c, mean = _tau(of_context), SHIFT + SLOPE * of_context
        covariance = SIGMA**2 * np.eye(len(y)) + tau_c**2
        joint = multivariate_normal(np.full(len(y), mean), covariance).logpdf(y)
        marginal = norm(mean, np.hypot(SIGMA, tau_c)).logpdf(y).sum()
        rows.append([joint, marginal, SLOPE * of_context, SLOPE * of_all, tau_c, _tau(of_all)])
    exact = _Exact(*np.array(rows).T)
    # Taking one of two for the other must be seen.
    assert np.min(np.abs(exact.joint - exact.marginal)) > 0.05
    assert np.max(np.abs(exact.mean_c - exact.mean_ct)) > 0.2
    assert np.max(np.abs(exact.tau_c - exact.tau_ct)) > 0.2
    return exact


def test_densities_are_those_of_a_known_model():
    model = _gaussian()
    inputs, y_target = _masked_points()
    exact = _exact(inputs, y_target)
    q_context = model.latent_distribution(inputs)
    q_all = model.latent_distribution(inputs, y_target)
    np.testing.assert_allclose(q_context.mean()[:, 0], exact.mean_c, atol=1e-6)
    np.testing.assert_allclose(q_context.stddev()[:, 0], exact.tau_c, rtol=1e-6)
    np.testing.assert_allclose(q_all.mean()[:, 0], exact.mean_ct, atol=1e-6)
    np.testing.assert_allclose(q_all.stddev()[:, 0], exact.tau_ct, rtol=1e-6)
    estimate, error = model.log_prob(inputs, y_target, 20_000, return_error=True)
    assert np.all(error < 0.02)
    # Four standard errors, and noise of the same seed for all three sequences.
    assert np.all(np.abs(estimate - exact.joint) < 4 * error)
    estimate = model.marginal_log_prob(inputs, y_target, 20_000)
    np.testing.assert_allclose(estimate, exact.marginal, atol=0.03)


def test_the_error_is_the_spread_over_seeds_and_shrinks_with_more_latents():
    model = _gaussian(log_prob_latents=100)
    inputs, y_target = _masked_points()
    many = {key: np.tile(value, [200] + [1] * (value.ndim - 1)) for key, value in inputs.items()}
    values, errors = model.log_prob(
        many, np.tile(y_target, (200, 1, 1)), sequence_keys=np.arange(600), return_error=True
    )
    spread = np.reshape(values, (200, 3)).std(axis=0)
    errors = np.reshape(errors, (200, 3)).mean(axis=0)
    # The standard deviation of 200 numbers is known to about 5 %.
    np.testing.assert_allclose(spread, errors, rtol=0.2)
    _, less = model.log_prob(inputs, y_target, 10_000, return_error=True)
    np.testing.assert_allclose(less, errors / 10, rtol=0.2)
    with pytest.raises(ValueError, match="`num_latents` must be at least 2"):
        model.log_prob(inputs, y_target, 1, return_error=True)


def test_noise_of_the_density_is_a_function_of_seed_and_key():
    model = _gaussian(spread=0.0, seed=4)
    inputs, y_target = conformance.points()
    same = {key: np.repeat(value[:1], 3, 0) for key, value in inputs.items()}
    twins = np.repeat(y_target[:1], 3, 0)
    score = model.log_prob(same, twins)
    assert score[0] == score[1] == score[2]
    np.testing.assert_array_equal(model.log_prob(same, twins, seed=4), score)
    keyed = model.log_prob(same, twins, sequence_keys=[0, 7, 8])
    assert keyed[0] == score[0]
    assert len(np.unique(keyed)) == 3
    assert model.log_prob(same, twins, seed=5)[0] != score[0]
    keyed = model.marginal_log_prob(same, twins, sequence_keys=[0, 7, 7], seed=5)
    assert keyed[0] != keyed[1] == keyed[2]


@both_kinds
def test_log_prob_is_exact_where_z_says_nothing(case):
    model = case.make()
    inputs, y_target = case.data()
    inputs["target_mask"] = np.arange(4) != np.arange(3)[:, np.newaxis]
    model(inputs)
    last = model.latent_encoder.denses[-1].kernel
    last.assign(tf.zeros_like(last))
    model.latent_dense.kernel.assign(tf.zeros_like(model.latent_dense.kernel))
    distribution = model.predictive_distribution(inputs)
    expected = np.sum(distribution.log_prob(y_target) * inputs["target_mask"], axis=1)
    estimate, error = model.log_prob(inputs, y_target, return_error=True)
    np.testing.assert_allclose(estimate, expected, rtol=1e-5, atol=1e-5)
    assert np.all(error < 1e-6)
    np.testing.assert_allclose(model.marginal_log_prob(inputs, y_target), expected, rtol=1e-5)


@pytest.mark.parametrize("num_latents", [1, 3])
def test_the_loss_is_that_of_the_papers(num_latents):
    model = _gaussian(num_latents=num_latents, seed=2)
    inputs, y_target = _masked_points()
    _, _, mean_c, mean_ct, tau_c, tau_ct = _exact(inputs, y_target)
    batch = prepare_batch({**inputs, "y_target": y_target})
    weights = model._sequence_weights(batch, np.array([1.0, 2.0, 3.0]))
    state = model.latent_seeds.state.numpy()
    outputs, nll, loss = model._loss(batch, weights, training=True)
    model.latent_seeds.state.assign(state)
    noise = tf.random.stateless_normal([num_latents, 3, 1], model.latent_seeds.next())
    z = mean_ct + tau_ct * noise.numpy()[..., 0]
    log_ratio = norm(mean_c, tau_c).logpdf(z) - norm(mean_ct, tau_ct).logpdf(z)
    y = np.concatenate([inputs["y_context"], y_target], axis=1)[..., 0]
    mask = np.concatenate([inputs["context_mask"], inputs["target_mask"]], axis=1)
    density = norm(SHIFT + z[..., np.newaxis], SIGMA).logpdf(y) * mask
    if num_latents == 1:
        divergence = (tau_ct**2 + (mean_ct - mean_c) ** 2) / (2 * tau_c**2) - 1 / 2
        divergence += np.log(tau_c / tau_ct)
        bound = density[0].sum(axis=-1) - divergence
    else:
        bound = logsumexp(density.sum(axis=-1) + log_ratio, axis=0) - np.log(num_latents)
    expected = np.average(-bound / mask.sum(axis=1), weights=[1.0, 2.0, 3.0])
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    of_targets = logsumexp(density[..., 4:].sum(axis=-1) + log_ratio, axis=0) - np.log(num_latents)
    np.testing.assert_allclose(nll, -of_targets / mask[:, 4:].sum(axis=1), rtol=1e-5)
    expected = np.where(mask[:, 4:], SHIFT + z[0][:, np.newaxis], 0)
    np.testing.assert_allclose(outputs["mean"][..., 0], expected, rtol=1e-5)


@both_kinds
def test_y_target_is_read_in_training_alone(case):
    model = case.make()
    inputs, y_target = case.data()
    alone = model(inputs)
    for garbage in (y_target, 1e6 * y_target, np.full_like(y_target, np.nan)):
        with_y = model({**inputs, "y_target": garbage})
        np.testing.assert_array_equal(with_y["mean"], alone["mean"])
        np.testing.assert_array_equal(with_y["scale"], alone["scale"])
    drawn = [model({**inputs, "y_target": y_target}, training=True)["mean"] for _ in range(2)]
    assert np.all(drawn[0] != drawn[1])
    with pytest.raises(ValueError, match="must have the key y_target in training"):
        model(inputs, training=True)
    q = model.latent_distribution(inputs, y_target).mean()
    np.testing.assert_array_equal(q, model.latent_distribution(inputs, y_target).mean())
    assert np.all(q != model.latent_distribution(inputs).mean())


@both_kinds
def test_the_order_of_the_points_does_not_matter(case):
    model = case.make()
    inputs, y_target = case.data(num_context=6, num_target=5)
    joint, marginal = model.log_prob(inputs, y_target), model.marginal_log_prob(inputs, y_target)
    mean = model(inputs)["mean"].numpy()
    rng = np.random.default_rng(0)
    context, target = rng.permutation(6), rng.permutation(5)
    shuffled = {
        key: value[:, context if key.endswith("context") else target]
        for key, value in inputs.items()
    }
    moved = y_target[:, target]
    np.testing.assert_allclose(model(shuffled)["mean"], mean[:, target], atol=1e-5)
    np.testing.assert_allclose(model.log_prob(shuffled, moved), joint, rtol=1e-4)
    np.testing.assert_allclose(model.marginal_log_prob(shuffled, moved), marginal, rtol=1e-4)


@both_kinds
def test_without_context_the_mean_over_no_points_is_zero(case):
    model = case.make()
    inputs, _ = case.data(num_context=3)
    empty = {**inputs, "x_context": inputs["x_context"][:, :0]}
    empty["y_context"] = inputs["y_context"][:, :0]
    hidden = {**inputs, "context_mask": np.zeros((3, 3), bool)}
    pooled = tf.zeros([3, 1, model.width])
    model(inputs)
    loc, raw = np.split(model.latent_encoder(pooled).numpy()[:, 0], 2, axis=-1)
    for batch in (empty, hidden):
        q = model.latent_distribution(batch)
        np.testing.assert_array_equal(q.mean(), loc)
        np.testing.assert_allclose(q.stddev(), 0.1 + 0.9 * expit(raw), rtol=1e-5)
        r = model.deterministic(prepare_batch(batch), tf.constant(inputs["x_target"]))
        assert r.shape == (3, 4, model.width)
        assert np.all(r == 0)
    r = model.deterministic(prepare_batch(inputs), tf.constant(inputs["x_target"])).numpy()
    # NP reads the same at every x, ANP does not.
    assert np.all(r != 0)
    assert np.array_equal(r[:, 0], r[:, 1]) == (case.name == "np")


@both_kinds
def test_samples_are_those_drawn_by_hand(eagerly, case, monkeypatch):
    model = case.make()
    inputs, _ = case.data(num_context=3, num_target=4, batch_size=2)
    inputs["target_mask"] = np.array([[True, False, True, True], [True] * 4])
    keys = tf.constant([5, 9], tf.int64)
    samples = model.sample(inputs, 2, seed=3, sequence_keys=keys).numpy()
    q = model.latent_distribution(inputs)
    batch = prepare_batch(inputs)
    seed, numbers = tf.constant(3, tf.int64), tf.range(2, dtype=tf.int64)[:, tf.newaxis]
    z = q.mean() + q.stddev() * latent_noise(seed, keys, numbers, model.latent_dim)
    noise = normal_noise(
        seed, keys[:, tf.newaxis], numbers[..., tf.newaxis], tf.range(4), case.y_dims
    )
    decoder_inputs = model._decoder_inputs(batch, batch["x_target"])
    for s in range(2):
        mean, scale = (part[0] for part in model._decode(decoder_inputs, z[s : s + 1]))
        y = np.where(inputs["target_mask"][..., None], mean + scale * noise[s], 0)
        np.testing.assert_allclose(samples[s], y, atol=1e-5)
    for order in ("random", "nearest"):
        other = model.sample(inputs, 2, seed=3, sequence_keys=keys, order=order)
        np.testing.assert_array_equal(other, samples)
    # Little memory: one sample of one sequence at once, one latent at once.
    y_target = case.data(num_context=3, num_target=4, batch_size=2)[1]
    joint = model.log_prob(inputs, y_target)
    for module in (base, latent_model):
        monkeypatch.setattr(module, "MOST_BYTES", 2 * 8 * model.width)
    assert tuple(map(int, model.make_sampler().at_once(batch))) == (1, 1)
    little = model.sample(inputs, 2, seed=3, sequence_keys=keys)
    np.testing.assert_allclose(little, samples, atol=1e-5)
    np.testing.assert_allclose(model.log_prob(inputs, y_target), joint, rtol=1e-5)


def test_an_empty_batch_has_no_samples():
    model = CASES["np"].make()
    inputs, _ = CASES["np"].data(num_context=3, num_target=4)
    empty = {name: value[:0] for name, value in inputs.items()}
    model(inputs)
    assert model.sample(empty, 5, seed=2).shape == (5, 0, 4, 1)
    assert model.log_prob(empty, np.zeros([0, 4, 1], "float32")).shape == (0,)


def test_keys_in_a_graph_of_any_batch_size():
    model = CASES["np"].make()
    inputs, y_target = CASES["np"].data(num_context=3, num_target=4)
    keys = np.array([5, -2, 2**40])
    free = {name: tf.TensorSpec([None, *value.shape[1:]]) for name, value in inputs.items()}
    y_free = tf.TensorSpec([None, 4, 1])
    sampled, scored = (
        model.sample(inputs, 2, seed=3, sequence_keys=keys).numpy(),
        model.log_prob(inputs, y_target, sequence_keys=keys).numpy(),
    )
    # Without keys something else would come out.
    assert np.all(sampled[:, 0] != model.sample(inputs, 2, seed=3)[:, 0])
    assert np.all(scored != model.log_prob(inputs, y_target))

    @tf.function(input_signature=[free, y_free, tf.TensorSpec([None], tf.int64)], autograph=False)
    def both(inputs, y_target, keys):
        samples = model.sample(inputs, 2, seed=3, sequence_keys=keys)
        return samples, model.log_prob(inputs, y_target, sequence_keys=keys)

    for rows in (slice(0, 3), slice(1, 2)):
        some = {name: tf.constant(value[rows]) for name, value in inputs.items()}
        samples, scores = both(some, tf.constant(y_target[rows]), tf.constant(keys[rows]))
        np.testing.assert_allclose(samples, sampled[:, rows], atol=1e-5)
        np.testing.assert_allclose(scores, scored[rows], rtol=1e-5)

    def wrong(inputs):
        return model.sample(inputs, 2, seed=3, sequence_keys=tf.zeros([2], tf.int64))

    graph = tf.function(wrong, autograph=False)
    message = r"`sequence_keys` must be integers of the shape \[B\] = \[3\].*Received.*\[2\]"
    with pytest.raises(ValueError, match=message):
        graph.get_concrete_function(
            {name: tf.TensorSpec(value.shape) for name, value in inputs.items()}
        )
    # Where B is not known there is nothing to compare with, but axes and type are.
    for keys, got in ((tf.zeros([2, 1], tf.int64), r"\[2, 1\]"), (tf.zeros([2]), "float32")):
        graph = tf.function(
            lambda inputs, keys=keys: model.sample(inputs, 2, seed=3, sequence_keys=keys),
            autograph=False,
        )
        with pytest.raises(ValueError, match=rf"\[B\] = \[None\].*Received.*{got}"):
            graph.get_concrete_function(free)


def test_joint_samples_of_a_known_model(eagerly):
    model = _gaussian(slope=0.0, spread=0.0)
    inputs, _ = conformance.points(num_target=2, batch_size=1)
    samples = model.sample(inputs, 20_000, seed=1).numpy()[:, 0, :, 0]
    # About five standard errors.
    np.testing.assert_allclose(samples.mean(axis=0), SHIFT, atol=0.03)
    expected = SIGMA**2 * np.eye(2) + _tau(0.0) ** 2
    np.testing.assert_allclose(np.cov(samples.T), expected, atol=0.03)


def test_noise_of_latents_is_its_own():
    seed, keys = tf.constant(5, tf.int64), tf.constant([0, 1], tf.int64)
    numbers = tf.range(2000, dtype=tf.int64)[:, tf.newaxis]
    noise = latent_noise(seed, keys, numbers, 10).numpy()
    assert noise.shape == (2000, 2, 10)
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 1) < 0.02
    np.testing.assert_allclose(np.corrcoef(noise.reshape(2000, 20).T), np.eye(20), atol=0.1)
    part = latent_noise(seed, keys[1], numbers[7, 0], 3)
    np.testing.assert_allclose(part, noise[7, 1, :3], atol=1e-6)
    of_targets = normal_noise(seed, keys, numbers[:, :, tf.newaxis], tf.range(3)[:, None], 10)
    everything = np.concatenate([noise.ravel(), of_targets.numpy().ravel()])
    assert len(np.unique(everything)) > 0.99 * everything.size
    wide = latent_noise(seed, keys[:1], numbers[:1], 1020).numpy()
    assert len(np.unique(wide)) > 0.999 * wide.size
    with pytest.raises(ValueError, match="`size` must be from 1 to 1020"):
        latent_noise(seed, keys, numbers, 1021)


def test_evaluate_is_the_mean_of_log_prob_and_fit_improves_it():
    model = _gaussian(num_latents=2, seed=0)
    model.compile(keras.optimizers.Adam(0.1, global_clipnorm=10.0), run_eagerly=True)
    inputs, y_target = _masked_points()
    scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
    count = inputs["target_mask"].sum(axis=1)
    expected = np.mean(-model.log_prob(inputs, y_target) / count)
    assert scores["nll"] == scores["loss"] == pytest.approx(expected, rel=1e-5)
    squares = (model(inputs)["mean"] - y_target)[..., 0] ** 2 * inputs["target_mask"]
    expected = np.mean(squares.numpy().sum(axis=1) / count)
    assert scores["teacher_forced_mse"] == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(inputs, y_target, batch_size=1, verbose=0)[0] == pytest.approx(
        scores["loss"], rel=1e-5
    )
    history = model.fit(inputs, y_target, epochs=5, verbose=0).history
    assert set(history) == {"loss", "nll", "teacher_forced_mse"}
    after = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
    assert after["nll"] < scores["nll"] - 0.1


@pytest.mark.parametrize(
    "case", [CASES["np"], pytest.param(CASES["anp"], marks=pytest.mark.slow)], ids=CASES
)
def test_a_served_model_gives_the_numbers_of_the_model(case, tmp_path):
    model = case.make(log_prob_latents=3)
    inputs, y_target = case.data()
    inputs["context_mask"] = np.arange(5) < np.array([[5], [2], [0]])
    inputs["target_mask"] = np.arange(4) != 1
    inputs["target_mask"] = np.repeat(inputs["target_mask"][None], 3, 0)
    model(inputs)
    model.export(tmp_path / "served")
    signatures = tf.saved_model.load(str(tmp_path / "served")).signatures
    batch = {key: tf.constant(value) for key, value in inputs.items()}
    drawn = {**batch, "num_samples": tf.constant(6), "seed": tf.constant(2)}
    samples = model.sample(inputs, 6, seed=2)
    served = signatures["sample_masked"](**drawn)["samples"]
    np.testing.assert_allclose(served, samples, atol=1e-5)
    levels = tf.constant([0.5])
    summary = signatures["serving_default_masked"](**drawn, quantile_levels=levels)
    np.testing.assert_allclose(summary["mean"], np.mean(samples, axis=0), atol=1e-5)
    density = signatures["log_prob_masked"](**batch, y_target=tf.constant(y_target))["log_prob"]
    np.testing.assert_allclose(density, model.log_prob(inputs, y_target), rtol=1e-5)
    forced = model.teacher_forced(inputs, y_target)
    np.testing.assert_allclose(forced["log_prob"], density, rtol=1e-5)
    np.testing.assert_allclose(forced["mean"], model(inputs)["mean"], atol=1e-5)


def test_predict_gives_the_moments_of_samples_and_evaluate_builds():
    model = CASES["np"].make(predict_samples=40)
    model.compile(run_eagerly=True)
    inputs, y_target = CASES["np"].data()
    # The first thing that is done with the model: it is built by it.
    scores = model.evaluate(inputs, y_target, verbose=0, return_dict=True)
    expected = np.mean(-model.log_prob(inputs, y_target) / 4)
    assert scores["nll"] == pytest.approx(expected, rel=1e-5)
    outputs = model.predict(inputs, verbose=0)
    samples = model.sample(inputs, 40, seed=model.seed).numpy()
    np.testing.assert_allclose(outputs["mean"], samples.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(outputs["stddev"], samples.std(axis=0), atol=1e-5)


def _dense(*widths):
    """Parameters of a stack of Dense layers, from the widths that it goes through."""
    return sum((left + 1) * right for left, right in itertools.pairwise(widths))


W = 128
_ATTENTION = 4 * _dense(W, W)


def _parts_of_np(x, y, before, after, deterministic, decoder):
    return {
        "point_encoder": _dense(x + y, *[W] * before),
        "latent_encoder": _dense(*[W] * after, 2 * W),
        "deterministic_encoder": _dense(x + y, *[W] * deterministic),
        "decoder": _dense(x + W + W, *[W] * (decoder - 1), 2 * y),
    }


def _parts_of_anp(x, y, before, after, deterministic, decoder, keys, self_attention):
    return {
        **_parts_of_np(x, y, before, after, deterministic, decoder),
        "key_encoder": _dense(x, *[W] * keys),
        "cross_attention_layer": _ATTENTION,
        "self_attention_layer": _ATTENTION if self_attention else 0,
    }


# Layer counts of the paper's appendix; the last figure is the sum, to be read in tables.
_MODELS = [
    ("np", "gp-rbf", _parts_of_np(1, 1, 3, 2, 4, 4), 199_170),
    ("np", "emnist", _parts_of_np(2, 1, 5, 2, 5, 4), 249_090),
    ("np", "celeba", _parts_of_np(2, 3, 6, 3, 6, 5), 316_166),
    ("anp", "gp-rbf", _parts_of_anp(1, 1, 3, 2, 4, 4, 2, False), 281_986),
    ("anp", "emnist", _parts_of_anp(2, 1, 3, 3, 3, 4, 3, True), 365_058),
    ("anp", "celeba", _parts_of_anp(2, 3, 4, 3, 4, 4, 3, True), 399_110),
]


@pytest.mark.parametrize(
    "model_name, task, expected, total",
    _MODELS,
    ids=[f"{model_name}-{task}" for model_name, task, *_ in _MODELS],
)
def test_parameters_are_those_of_the_papers_models(model_name, task, expected, total):
    preset, task = MODEL_PRESETS[model_name], TASKS[task]
    kind = {"np": NeuralProcess, "anp": AttentiveNeuralProcess}[model_name]
    assert preset.model == kind.__name__
    model = kind(**preset.for_task(task))
    model.build(_shapes(task.x_dims, task.y_dims))

    def count(part):
        return sum(int(np.prod(w.shape)) for w in part.trainable_weights) if part else 0

    # By part: a layer that has moved from one to another does not change the sum.
    parts = {name: count(getattr(model, name)) for name in expected}
    # The first layer of the decoder is made of two.
    parts["decoder"] += count(model.place_dense) + count(model.latent_dense)
    assert parts == expected
    assert count(model) == sum(expected.values()) == total
    assert all(
        layer.num_heads == 8 and layer.head_dim == W // 8
        for layer in sublayers(model)
        if isinstance(layer, MultiHeadAttention)
    )


@pytest.mark.parametrize(
    "kind, settings, message",
    [
        (NeuralProcess, {"latent_layers": 3}, "`latent_layers` must be two integers"),
        (NeuralProcess, {"latent_layers": (3, 0)}, "`latent_layers` must be at least 1"),
        (NeuralProcess, {"decoder_layers": 1}, "`decoder_layers` must be at least 2"),
        (NeuralProcess, {"latent_dim": 1021}, "`latent_dim` must be at most 1020"),
        (NeuralProcess, {"num_latents": 0}, "`num_latents` must be at least 1"),
        (AttentiveNeuralProcess, {"num_heads": 5}, "`width` must be a multiple of `num_heads`"),
        (AttentiveNeuralProcess, {"self_attention": 1}, "`self_attention` must be True or False"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises((ValueError, TypeError), match=message + ".*Received"):
        kind(**settings)


@pytest.mark.slow
@both_kinds
@pytest.mark.slow
def test_xla_gives_the_same_numbers(case):
    inputs, y_target = case.data()
    plain, compiled = case.make(), case.make()
    for model in (plain, compiled):
        model.compile(keras.optimizers.SGD(1e-3), jit_compile=model is compiled)
    # The noise of training is drawn in the graph, and XLA draws it otherwise.
    assert np.isfinite(compiled.fit(inputs, y_target, epochs=2, verbose=0).history["loss"][1])
    plain.build({key: value.shape for key, value in inputs.items()})
    plain.set_weights(compiled.get_weights())
    scores, wanted = (model.evaluate(inputs, y_target, verbose=0) for model in (compiled, plain))
    np.testing.assert_allclose(scores, wanted, rtol=1e-4)
    predicted, wanted = (model.predict(inputs, verbose=0) for model in (compiled, plain))
    np.testing.assert_allclose(predicted["mean"], wanted["mean"], atol=1e-4)
    np.testing.assert_allclose(predicted["stddev"], wanted["stddev"], atol=1e-4)


@pytest.mark.slow
@both_kinds
def test_samples_of_a_trained_model_spread_where_there_is_no_context(case):
    """Straight lines: their slope is uncertain, so that they fan out away from the context."""
    rng = np.random.default_rng(0)

    def lines(batch_size):
        x = rng.uniform(-2, 2, (batch_size, 16, 1))
        x[:, :4] = rng.uniform(-2, -1.5, (batch_size, 4, 1))
        y = rng.normal(size=(batch_size, 1, 1)) * x + rng.normal(size=(batch_size, 1, 1))
        y += rng.normal(size=y.shape) * 0.1
        x, y = x.astype("float32"), y.astype("float32")
        inputs = {"x_context": x[:, :4], "y_context": y[:, :4], "x_target": x[:, 4:]}
        return inputs, y[:, 4:]

    kind = type(case.make())
    model = kind(width=32, latent_dim=8, seed=1, **({"num_heads": 4} if case.name == "anp" else {}))
    model.compile(keras.optimizers.Adam(2e-3, global_clipnorm=10.0))
    tests = lines(256)
    before = model.evaluate(*tests, verbose=0, return_dict=True)
    model.fit(*lines(64 * 400), batch_size=64, verbose=0)
    after = model.evaluate(*tests, verbose=0, return_dict=True)
    assert after["nll"] < before["nll"] - 0.3
    inputs, _ = tests
    x_target = np.array([-1.75, 1.75], "float32")[np.newaxis, :, np.newaxis]
    inputs["x_target"] = np.repeat(x_target, 256, axis=0)
    samples = model.sample(inputs, 100, seed=0).numpy()
    spread = samples.std(axis=0)[..., 0].mean(axis=0)
    assert spread[1] > 1.5 * spread[0]
