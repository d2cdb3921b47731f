"""More dimensions of x for a trained model: no effect at first, and one after training."""

import numpy as np
import pytest

from taylorformer import Taylorformer
from taylorformer.model.wider_x import with_wider_x

_DIMS = 3
_SIZES = {"num_heads": 2, "head_dim": 4, "width": 8, "encoding_dim": 4, "seed": 0}


def _model(**arguments):
    model = Taylorformer(**{**_SIZES, "num_layers": 2, "neighbour_dims": 1, **arguments})
    x, y = (None, None, _DIMS), (None, None, 2)
    model.build({"x_context": x, "y_context": y, "x_target": x})
    return model


def _batch(rng, more):
    def points(count):
        x = rng.uniform(-1, 1, size=(2, count, _DIMS + more))
        # The phase of a season.
        x[..., 1], x[..., 2] = np.cos(5 * x[..., 0]), np.sin(5 * x[..., 0])
        return x.astype(np.float32)

    inputs = {"x_context": points(6), "x_target": points(4)}
    inputs["y_context"], y_target = (
        rng.normal(size=(2, count, 2)).astype(np.float32) for count in (6, 4)
    )
    return inputs, y_target


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"num_layers": 1},
        {"feature_order": 0},
        {"feature_order": 2, "taylor_order": 1},
        {"fitted_order": 2},
        {"anchors": ("nearest", "season")},
        {"towers": ("x",)},
        {"towers": ("xy",), "num_layers": 1},
        {"feature_order": 0, "taylor_order": None},
    ],
)
def test_new_dimensions_have_no_effect_at_first(rng, arguments):
    more = 2
    model = _model(**arguments)
    wider = with_wider_x(model, more)
    assert wider.x_dims == _DIMS + more
    inputs, y_target = _batch(rng, more)
    # Whatever the new dimensions are.
    for name in ("x_context", "x_target"):
        inputs[name][..., _DIMS:] *= 10
    narrow = {**inputs, **{name: inputs[name][..., :_DIMS] for name in ("x_context", "x_target")}}
    expected = model({**narrow, "y_target": y_target})
    made = wider({**inputs, "y_target": y_target})
    for name in ("mean", "scale"):
        np.testing.assert_allclose(made[name], expected[name], rtol=2e-5, atol=2e-6)


def test_new_dimensions_are_learnt(rng):
    wider = with_wider_x(_model(), 1)
    inputs, y_target = _batch(rng, 1)
    wider.compile(run_eagerly=True)
    wider.fit(inputs, y_target, epochs=1, verbose=0)
    other = {**inputs, "x_target": inputs["x_target"].copy()}
    other["x_target"][..., _DIMS] += 1
    assert np.abs(wider(inputs)["mean"] - wider(other)["mean"]).max() > 0


def test_without_new_dimensions_it_is_a_copy():
    model = _model()
    copy = with_wider_x(model, 0)
    for ours, theirs in zip(copy.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    copy.weights[0].assign(copy.weights[0] + 1)
    assert not np.array_equal(copy.get_weights()[0], model.get_weights()[0])


def test_a_model_whose_neighbours_would_change_is_refused():
    with pytest.raises(ValueError, match="Received: neighbour_dims=None"):
        with_wider_x(_model(neighbour_dims=None), 1)
    assert with_wider_x(_model(neighbour_dims=None), 0).x_dims == _DIMS
