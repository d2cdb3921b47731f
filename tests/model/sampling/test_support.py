"""Bounds and whole numbers in samplers and densities of every model."""

import conformance
import numpy as np
import pytest
from two_samplers import assert_close, both, masked

from taylorformer.data_wrangler.tables.scaled_support import ScaledSupport

SIZES = [(5, 4), (0, 3)]


def with_support(inputs, y_dims=1):
    """Of the columns the first holds whole numbers of at least 0, the others at most 1."""
    batch_size = len(inputs["x_target"])
    whole = [0.2, 0.7, 1.0, -0.5, np.inf, 1.0]
    bounded = [-0.1, 0.5, 0.8, -np.inf, 1.0, 0.0]
    parts = np.array([whole] + [bounded] * (y_dims - 1))
    return {**inputs, "y_support": np.tile(parts, [batch_size, 1, 1])}


@pytest.mark.parametrize("case", conformance.MODELS, ids=lambda case: case.name)
def test_samples_are_what_could_be_observed(eagerly, case):
    case.needs("free lengths")
    model = case.make()
    for num_context, num_target in SIZES:
        inputs, _ = case.data(num_context=num_context, num_target=num_target)
        inputs = with_support(masked(inputs), inputs["y_context"].shape[-1])
        if case.autoregressive:
            drawn, wanted = both(model, inputs, "random", num_samples=3)
            assert_close(drawn, wanted)
        else:
            drawn = model.sample(inputs, 3, 0).numpy()
        support = ScaledSupport.from_parts(inputs["y_support"][:, np.newaxis])
        values = support.values(drawn)[:, inputs["target_mask"]]
        assert (values[..., 0] >= 0).all() and (values[..., 0] % 1 == 0).all()
        assert (values[..., 1:] <= 1).all()
        np.testing.assert_array_equal(
            support.snap(drawn)[:, inputs["target_mask"]], drawn[:, inputs["target_mask"]]
        )


@pytest.mark.parametrize("case", conformance.MODELS[:1], ids=lambda case: case.name)
def test_training_uses_the_probabilities_of_cells(eagerly, case):
    model = case.make()
    inputs, y_target = case.data(num_context=5, num_target=4)
    plain = model.teacher_forced(inputs, y_target)
    batch = with_support(inputs, y_target.shape[-1])
    support = ScaledSupport.from_parts(batch["y_support"][:, np.newaxis])
    counts = np.round(3 * np.abs(y_target))
    y = support.scale(support.transform.to_real(counts)).astype(np.float32)
    scored = model.teacher_forced(batch, y)
    wanted = support.log_prob(scored["mean"].numpy(), scored["scale"].numpy(), y)
    np.testing.assert_allclose(scored["log_prob"], wanted.sum(axis=(1, 2)), rtol=1e-5)
    assert (scored["log_prob"].numpy() <= 0).all()
    again = model.teacher_forced(inputs, y_target)
    np.testing.assert_array_equal(again["log_prob"], plain["log_prob"])
    model.compile()
    loss = -wanted.sum(axis=(1, 2)).mean() / y.shape[1]
    tested = model.test_on_batch(batch, y, return_dict=True)
    np.testing.assert_allclose(tested["nll"], loss, rtol=1e-5)
    assert np.isfinite(model.train_on_batch(batch, y, return_dict=True)["loss"])


def test_a_support_of_another_shape_is_an_error():
    model = conformance.MODELS[0].make()
    inputs, y_target = conformance.points()
    batch = with_support(inputs)
    with pytest.raises(ValueError, match=r"`y_support` must have the shape \[B, D_y, parts\]"):
        model.log_prob({**batch, "y_support": batch["y_support"][..., :5]}, y_target)
    with pytest.raises(ValueError, match="D_y = 1"):
        model.log_prob({**inputs, "y_support": np.zeros([3, 2, 6])}, y_target)
