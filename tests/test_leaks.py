"""No target's y reaches its own prediction, or an earlier one (DESIGN: the two leak tests).

The Jacobian d(mean_i, scale_i) / d(y_j) is exactly 0 for j >= i; and putting 1e6 or -1e6 into every
y_j, j >= i, leaves (mean_i, scale_i) the same to the last bit. The second one also sees flags and
choices among ties, which have no gradient.
"""

import itertools
from typing import NamedTuple

import conformance
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model.taylorformer import Taylorformer

# Points far from one another are one of the layouts; the warning of them is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:x should be about -1 to 1:UserWarning")

NUM_TARGET = 4


class Setting(NamedTuple):
    """The settings of one model."""

    feature_order: int
    taylor_order: int | None
    num_neighbours: int
    x_dims: int
    y_dims: int
    fitted_order: int | None = None

    @property
    def legal(self) -> bool:
        second = self.feature_order == 2 or self.taylor_order == 2
        if self.fitted_order and (self.taylor_order != 0 or self.x_dims > 1):
            return False
        return self.num_neighbours >= self.x_dims and not (second and self.x_dims > 1)

    def model(self) -> Taylorformer:
        return Taylorformer(
            **conformance.TINY,
            encoding_dim=2,
            dropout=0.0,
            seed=0,
            feature_order=self.feature_order,
            taylor_order=self.taylor_order,
            num_neighbours=self.num_neighbours,
            fitted_order=self.fitted_order,
        )


class Check(NamedTuple):
    """One model with the data it is fed."""

    setting: Setting
    num_context: int
    layout: str  # of x
    training: bool  # which is also the tie rule: at random in training, the first at inference


SETTINGS = [
    Setting(*values)
    for values in itertools.product((0, 1, 2), (None, 0, 1, 2), (1, 2, 3), (1, 2, 3), (1, 2))
]
SETTINGS += [
    Setting(q, 0, num_neighbours, 1, y_dims, fitted_order)
    for q, num_neighbours, y_dims, fitted_order in itertools.product(
        (0, 1, 2), (1, 3), (1, 2), (1, 3)
    )
]
SETTINGS += [Setting(1, 1, 1, 1, 1, 2), Setting(1, 0, 2, 2, 1, 2)]
LEGAL = [setting for setting in SETTINGS if setting.legal]
LAYOUTS = ("apart", "equal", "far")
CHECKS = [Check(*values) for values in itertools.product(LEGAL, (0, 1, 5), LAYOUTS, (False, True))]


def covering_sample(checks, size, seed=0):
    """Chooses checks until all values, or all pairs of values, that occur at all are covered.

    Args:
        checks: to choose from.
        size: 1 covers each value, 2 each pair.
        seed: of the order of checks that are as good.
    """

    def parts(check):
        values = enumerate([*check.setting, *check[1:]])
        return set(itertools.combinations(values, size))

    by_check = {check: parts(check) for check in checks}
    order = np.random.default_rng(seed).permutation(len(checks))
    missing = set().union(*by_check.values())
    chosen = []
    while missing:
        best = max(order, key=lambda k: len(by_check[checks[k]] & missing))
        chosen.append(checks[best])
        missing -= by_check[checks[best]]
    return chosen


QUICK = covering_sample(CHECKS, 1)
PAIRS = [check for check in covering_sample(CHECKS, 2) if check not in QUICK]
SAMPLE = [*QUICK, *(pytest.param(check, marks=pytest.mark.slow) for check in PAIRS)]


def data(check):
    """Makes a batch with the layout of x that is asked for."""
    setting = check.setting
    inputs, y_target = conformance.points(
        check.num_context, NUM_TARGET, setting.x_dims, setting.y_dims, batch_size=2, seed=1
    )
    if check.layout == "equal":
        # Among targets, and between target and context.
        inputs["x_target"][:, 1] = inputs["x_target"][:, 0]
        inputs["x_target"][:, 3] = inputs["x_target"][:, 2]
        if check.num_context:
            inputs["x_target"][:, 2:] = inputs["x_context"][:, :1]
            inputs["x_context"][:, -1] = inputs["x_context"][:, 0]
    elif check.layout == "far":
        for key in ("x_context", "x_target"):
            inputs[key] *= 1e4
    return inputs, y_target


class Probe:
    """Runs one model again and again on batches that differ in `y_target` only."""

    def __init__(self, model, training, compiled=False):
        self.model = model
        self.training = training
        self._gradients, self._outputs = self._gradients_of, self._outputs_of
        if compiled:  # pays off where several batches go through one model
            self._gradients = tf.function(self._gradients_of, autograph=False)
            self._outputs = tf.function(self._outputs_of, autograph=False)

    def _rewind(self):
        for generator in conformance.seed_generators(self.model):
            generator.state.assign([5, 0])

    def _outputs_of(self, inputs, y_target):
        outputs = self.model({**inputs, "y_target": y_target}, training=self.training)
        return tf.stack([outputs["mean"], outputs["scale"]])

    def _gradients_of(self, inputs, y_target, weights):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(y_target)
            outputs = self._outputs_of(inputs, y_target)
            totals = [tf.reduce_sum(one * outputs) for one in tf.unstack(weights)]
        zero = tf.UnconnectedGradients.ZERO
        return [tape.gradient(total, y_target, unconnected_gradients=zero) for total in totals]

    def outputs(self, inputs, y_target):
        self._rewind()
        return self._outputs(inputs, tf.constant(y_target)).numpy()

    def gradients(self, inputs, y_target, weights):
        """Returns the gradient of each sum of the outputs with some weights."""
        self._rewind()
        weights = tf.constant(weights.astype("float32"))
        gradients = self._gradients(inputs, tf.constant(y_target), weights)
        return [gradient.numpy() for gradient in gradients]


def assert_no_leak(probe, inputs, y_target):
    """Runs both tests on one batch."""
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    outputs = probe.outputs(inputs, y_target)
    assert np.all(np.isfinite(outputs))
    rng = np.random.default_rng(2)
    # Random weights, so that no two parts of the Jacobian cancel.
    weights = np.zeros([NUM_TARGET, *outputs.shape])
    for i in range(NUM_TARGET):
        weights[i, :, :, i] = rng.normal(size=outputs[:, :, i].shape)
    reached = False
    for i, gradient in enumerate(probe.gradients(inputs, y_target, weights)):
        assert np.all(gradient[:, i:] == 0)
        reached = reached or np.any(gradient[:, :i] != 0)
        garbage = y_target.copy()
        garbage[:, i:] = 1e6 * rng.choice([-1, 1], garbage[:, i:].shape)
        changed = probe.outputs(inputs, garbage)
        np.testing.assert_array_equal(changed[:, :, : i + 1], outputs[:, :, : i + 1])
    # The test itself can see something: earlier targets do matter.
    assert reached


def test_the_samples_are_small():
    assert len(QUICK) <= 10
    assert len(SAMPLE) <= 45


@pytest.mark.parametrize("check", SAMPLE, ids=lambda check: f"{[*check.setting, *check[1:]]}")
def test_no_leak(check):
    model = check.setting.model()
    probe = Probe(model, check.training)
    inputs, y_target = data(check)
    model({**inputs, "y_target": y_target})
    assert_no_leak(probe, inputs, y_target)


@pytest.mark.slow
@pytest.mark.parametrize("setting", LEGAL, ids=lambda setting: f"{list(setting)}")
def test_no_leak_in_any_legal_combination(setting):
    model = setting.model()
    checks = [check for check in CHECKS if check.setting == setting]
    assert len(checks) == 18
    probes = {training: Probe(model, training, compiled=True) for training in (False, True)}
    for check in checks:
        inputs, y_target = data(check)
        model({**inputs, "y_target": y_target})
        assert_no_leak(probes[check.training], inputs, y_target)


@pytest.mark.parametrize(
    "setting",
    [setting for setting in SETTINGS if not setting.legal],
    ids=lambda setting: f"{list(setting)}",
)
def test_illegal_combinations_are_refused(setting):
    shape = (None, None, setting.x_dims)
    y_shape = (None, None, setting.y_dims)
    with pytest.raises(
        ValueError, match=r"`(num_neighbours|feature_order|fitted_order)`.*Received"
    ):
        setting.model().build({"x_context": shape, "y_context": y_shape, "x_target": shape})


@conformance.every_autoregressive_model
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_leak_with_masks(case, training):
    model = case.make()
    inputs, y_target = case.data(num_context=4, num_target=NUM_TARGET, batch_size=2)
    inputs["context_mask"] = np.array([[True, False, True, True], [False] * 4])
    inputs["target_mask"] = np.array([[True, True, False, True], [False, True, True, True]])
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, training), inputs, y_target)


@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_leak_in_mixed_precision(policy, training):
    """float16 ends at 65504: a y of 1e6 at a hidden point must not become inf, and 0 x inf NaN."""
    case = conformance.MODELS[0]
    model = case.make(dtype=policy)
    inputs, y_target = case.data(num_context=4, num_target=NUM_TARGET, batch_size=2)
    model({**inputs, "y_target": y_target})
    assert_no_leak(Probe(model, training), inputs, y_target)


@conformance.every_model
def test_without_y_target_only_the_context_is_read(case):
    model = case.make()
    inputs, y_target = case.data()
    alone = model(inputs)
    first = model({**inputs, "y_target": y_target})
    np.testing.assert_allclose(alone["mean"][:, 0], first["mean"][:, 0], atol=1e-5)
    case.needs("free lengths")
    for i in range(y_target.shape[1]):
        one = model({**inputs, "x_target": inputs["x_target"][:, i : i + 1]})
        np.testing.assert_allclose(alone["mean"][:, i], one["mean"][:, 0], atol=1e-5)
        np.testing.assert_allclose(alone["scale"][:, i], one["scale"][:, 0], rtol=1e-4)
