"""The second anchor: the nearest seen point at the same phase of a season."""

import numpy as np
import pytest

from taylorformer import RepresentationExtractor, Taylorformer

PERIOD = 6
SETTINGS = {"encoding_dim": 2, "neighbour_dims": 1, "anchors": ("nearest", "season")}


def batch_of(times, y, num_context, step=1 / 64):
    """Time in steps, and the phase of a season of six of them."""
    times, y = np.asarray(times, float), np.asarray(y, float)
    angle = 2 * np.pi * times / PERIOD
    x = np.stack([times * step, np.cos(angle), np.sin(angle)], axis=-1).astype("float32")[None]
    y = y.astype("float32")[None, :, None]
    return {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
        "y_target": y[:, num_context:],
    }


def test_the_anchor_is_the_last_point_of_the_same_phase():
    times = np.arange(20)
    y = np.random.default_rng(0).normal(size=20)
    features = RepresentationExtractor(**SETTINGS)(batch_of(times, y, 8))
    # Of target 8 that of row 2; of target 14 that of target 8, which was seen before.
    terms = features["gated_terms"].numpy()[0, :, 0, 0]
    np.testing.assert_allclose(terms, y[2:14] - y[7:19], rtol=1e-5, atol=1e-6)
    x_fe, y_fe, y_seen = (features[name].numpy()[0] for name in ("x_fe", "y_fe", "y_seen"))
    np.testing.assert_allclose(x_fe[8:, -1], PERIOD / 64, rtol=1e-5)
    np.testing.assert_allclose(y_fe[8:, -1], y[8:] - y[2:14], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y_seen[8:, -1], terms, rtol=1e-6)


def test_a_point_of_almost_the_same_phase_is_taken_where_none_has_it():
    """Rows 0.3 steps off the grid: time alone would choose the last row."""
    times = np.array([0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    y = np.arange(7.0)
    terms = RepresentationExtractor(**SETTINGS)(batch_of(times, y, 6))["gated_terms"]
    assert terms.numpy().ravel().tolist() == [y[0] - y[5]]


def test_without_a_season_both_anchors_are_the_same():
    batch = batch_of(np.arange(9), np.arange(9.0) ** 2, 6)
    for name in ("x_context", "x_target"):
        batch[name][..., 1:] = 0.0
    terms = RepresentationExtractor(**SETTINGS)(batch)["gated_terms"].numpy()
    np.testing.assert_array_equal(terms, np.zeros([1, 3, 1, 1]))


def test_without_a_seen_point_the_term_is_zero():
    terms = RepresentationExtractor(**SETTINGS)(batch_of([0, 6], [5.0, 7.0], 0))["gated_terms"]
    assert terms.numpy().ravel().tolist() == [0.0, 0.0]


def test_fitted_terms_come_after_that_of_the_season():
    batch = batch_of(np.arange(12), np.arange(12.0) ** 2, 9)
    both = RepresentationExtractor(**SETTINGS, fitted_order=2)(batch)
    season = RepresentationExtractor(**SETTINGS)(batch)
    fitted = RepresentationExtractor(encoding_dim=2, neighbour_dims=1, fitted_order=2)(batch)
    np.testing.assert_array_equal(both["gated_terms"][:, :, :1], season["gated_terms"])
    np.testing.assert_array_equal(both["gated_terms"][:, :, 1:], fitted["gated_terms"])


def test_the_mean_begins_between_both_anchors():
    settings = {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1, "dropout": 0.0}
    model = Taylorformer(**settings, **SETTINGS, fitted_order=1, seed=0)
    batch = batch_of(np.arange(12), np.arange(12.0), 9)
    model.build({name: values.shape for name, values in batch.items()})
    assert model.local_taylor.representation_extractor.first_gates == [0.0, 4.0]
    assert model.local_taylor.network.gate_dense.bias.numpy().tolist() == [0.0, 0.0]
    again = Taylorformer.from_config(model.get_config())
    assert again.get_config()["anchors"] == ["nearest", "season"]


@pytest.mark.parametrize(
    ("settings", "x_dims", "message"),
    [
        ({"anchors": ("season",)}, 3, r"`anchors` must be .*Received: anchors=\('season',\)"),
        ({"anchors": "nearest"}, 3, "`anchors` must be"),
        ({"season_dims": (1,)}, 3, "`season_dims` must be two columns"),
        ({"season_dims": (1, 3)}, 3, "`season_dims` must be columns of x.*D_x = 3"),
        ({"neighbour_dims": None}, 3, "need one dimension that defines neighbours"),
        ({"taylor_order": 1}, 3, "`taylor_order` must be 0"),
    ],
)
def test_bad_settings(settings, x_dims, message):
    with pytest.raises(ValueError, match=message):
        RepresentationExtractor(**{**SETTINGS, **settings}).build(
            {"x_context": (None, None, x_dims), "y_context": (None, None, 1)}
        )
