"""Models learn: sine waves of random phase and frequency, a few hundred steps."""

import keras
import numpy as np
import pytest

from taylorformer.model.taylorformer import Taylorformer
from taylorformer.training_and_evaluation.training.training_step import TrainingStep

pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)
NUM_CONTEXT, NUM_TARGET = 15, 15
STEPS = 400


def waves(rng, batch_size=32):
    """Sine waves at sorted random points, the later half to be predicted."""
    x = np.sort(rng.uniform(-1, 1, (batch_size, NUM_CONTEXT + NUM_TARGET, 1)), axis=1)
    frequency = rng.uniform(2, 6, (batch_size, 1, 1))
    phase = rng.uniform(0, 2 * np.pi, (batch_size, 1, 1))
    x, y = x.astype("float32"), np.sin(frequency * x + phase).astype("float32")
    inputs = {
        "x_context": x[:, :NUM_CONTEXT],
        "y_context": y[:, :NUM_CONTEXT],
        "x_target": x[:, NUM_CONTEXT:],
    }
    return inputs, y[:, NUM_CONTEXT:]


def new_model(seed, permutations=0):
    return Taylorformer(
        num_heads=2,
        head_dim=8,
        width=16,
        num_layers=2,
        dropout=0.0,
        encoding_dim=16,
        target_permutations=permutations,
        seed=seed,
    )


def trained(seed, permutations=0):
    """Trains one model at a constant rate that is high for it."""
    model, rng = new_model(seed, permutations), np.random.default_rng(seed)
    step = TrainingStep(model, keras.optimizers.Adam(2e-3, global_clipnorm=10.0))
    for _ in range(STEPS):
        step(*waves(rng))
    return model


def losses_around_outlier(seed, clip):
    """Trains with one batch of values of 1e4 among the usual ones of 1.

    The rate is that of the default optimizer: at a higher one the loss goes up and down by more
    in 100 steps, without an outlier, than it falls.

    Returns:
        the held-out losses before that batch and after 100 more, and the training losses.
    """
    model, rng = new_model(seed), np.random.default_rng(seed)
    step = TrainingStep(model, keras.optimizers.Adam(3e-4, global_clipnorm=clip))
    losses = []

    def run(number, factor=1.0):
        for _ in range(number):
            inputs, y_target = waves(rng)
            inputs["y_context"] *= factor
            step.reset()
            losses.append(float(step(inputs, y_target * factor)["nll"]))

    run(200)
    before = held_out_nll(model, seed)
    run(1, 1e4)
    run(100)
    return before, held_out_nll(model, seed), np.array(losses)


def last_value_scores(seed):
    """The nll of "the value before", with the scale fitted on as much training data."""

    def errors(rng, batches):
        parts = []
        for _ in range(batches):
            inputs, y_target = waves(rng)
            before = np.concatenate([inputs["y_context"][:, -1:], y_target[:, :-1]], axis=1)
            parts.append(y_target - before)
        return np.concatenate(parts)

    scale = np.sqrt(np.mean(errors(np.random.default_rng(seed), STEPS) ** 2))
    held_out = errors(np.random.default_rng(1000 + seed), 8)
    return np.mean(0.5 * (held_out / scale) ** 2 + np.log(scale) + 0.5 * np.log(2 * np.pi))


def held_out_nll(model, seed):
    rng = np.random.default_rng(1000 + seed)
    parts = [-model.log_prob(*waves(rng)).numpy() / NUM_TARGET for _ in range(8)]
    return float(np.mean(parts))


def spread_over_orders(model, seed, num_orders=40):
    """The mean over sequences of the standard deviation of log p / N_T over random orders."""
    rng = np.random.default_rng(2000 + seed)
    inputs, y_target = waves(rng)
    scores = []
    for _ in range(num_orders):
        order = rng.permutation(NUM_TARGET)
        shuffled = {**inputs, "x_target": inputs["x_target"][:, order]}
        scores.append(model.log_prob(shuffled, y_target[:, order]).numpy() / NUM_TARGET)
    return float(np.mean(np.std(scores, axis=0)))


@pytest.fixture(scope="module")
def given_order():
    return {seed: trained(seed) for seed in SEEDS}


@pytest.mark.parametrize("seed", SEEDS)
def test_beats_the_last_value(seed, given_order, record_property):
    ours, line = held_out_nll(given_order[seed], seed), last_value_scores(seed)
    record_property("nll", float(ours))
    record_property("last_value_nll", float(line))
    assert ours <= line - 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_one_outlier_batch_is_survived(seed, record_property):
    before, after, losses = losses_around_outlier(seed, 10.0)
    record_property("before", before)
    record_property("after", after)
    assert np.all(np.isfinite(losses))
    assert losses[200] > 1e3
    assert after < before


def test_without_clipping_an_outlier_batch_is_not_survived(record_property):
    before, after, losses = losses_around_outlier(0, None)
    record_property("before", before)
    record_property("after", after)
    assert losses[200] > 1e3
    assert not after < before


def test_shuffling_makes_orders_agree(given_order, record_property):
    better = 0
    for seed in SEEDS:
        shuffled = trained(seed, permutations=1)
        spreads = spread_over_orders(given_order[seed], seed), spread_over_orders(shuffled, seed)
        record_property(f"spread_{seed}", [float(spread) for spread in spreads])
        better += spreads[1] < spreads[0]
    assert better >= 2
