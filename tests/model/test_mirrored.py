"""The mixture of a model and its mirror image."""

import conformance
import numpy as np
import pandas as pd
import pytest
import test_leaks
import two_samplers

from taylorformer import Forecaster, PretrainedForecaster, TransformerNeuralProcess
from taylorformer.model.mirrored import MirroredModel
from taylorformer.model.taylorformer import Taylorformer

ONE_LAYER = {**conformance.TINY, "num_layers": 1, "encoding_dim": 2, "dropout": 0.0, "seed": 0}


@pytest.fixture
def models(eagerly):
    model = Taylorformer(**ONE_LAYER)
    inputs, y_target = conformance.points(5, 4)
    model({**inputs, "y_target": y_target})
    return model, MirroredModel(model), inputs, y_target


def flipped(inputs):
    return {**inputs, "y_context": -inputs["y_context"]}


def test_the_density_is_that_of_the_mixture(models):
    model, mirrored, inputs, y = models
    inputs = {**inputs, "target_mask": np.array([[True] * 4, [True, False, True, False]] * 2)[:3]}
    parts = model.log_prob(inputs, y), model.log_prob(flipped(inputs), -y)
    assert np.abs(parts[0] - parts[1]).max() > 0.01
    wanted = np.logaddexp(*parts) - np.log(2)
    np.testing.assert_allclose(mirrored.log_prob(inputs, y), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mirrored.log_prob(flipped(inputs), -y), wanted, rtol=1e-5, atol=1e-5)


def test_moments_follow_from_the_parts_and_what_was_seen(models):
    model, mirrored, inputs, y = models
    outputs = mirrored({**inputs, "y_target": y})
    parts = [
        {name: values.numpy() for name, values in model(batch).items()}
        for batch in ({**inputs, "y_target": y}, {**flipped(inputs), "y_target": -y})
    ]
    means, scales = (
        np.stack([parts[0]["mean"], -parts[1]["mean"]]),
        np.stack([part["scale"] for part in parts]),
    )
    log_density = -0.5 * ((y - means) / scales) ** 2 - np.log(scales)
    seen = np.exp(np.cumsum(log_density, axis=2) - log_density)
    weights = seen / seen.sum(axis=0)
    mean = (weights * means).sum(axis=0)
    variance = (weights * (scales**2 + means**2)).sum(axis=0) - mean**2
    np.testing.assert_allclose(outputs["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs["scale"], np.sqrt(variance), rtol=1e-3)
    alone = mirrored(inputs)
    np.testing.assert_allclose(alone["mean"][:, 0], outputs["mean"][:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_no_leak(models, training):
    _, mirrored, inputs, y = models
    test_leaks.assert_no_leak(test_leaks.Probe(mirrored, training), inputs, y)


@pytest.mark.parametrize("num_samples", [1, 5])
def test_samples_are_pairs_of_the_model_and_its_mirror_image(models, num_samples):
    model, mirrored, inputs, _ = models
    inputs = two_samplers.masked(inputs)
    drawn = mirrored.sample(inputs, num_samples, -3, two_samplers.KEYS).numpy()
    one = model.sample(inputs, num_samples, -3, two_samplers.KEYS).numpy()
    other = -model.sample(flipped(inputs), num_samples, -3, two_samplers.KEYS).numpy()
    two_samplers.assert_close(drawn[::2], one[: (num_samples + 1) // 2])
    if num_samples > 1:
        two_samplers.assert_close(drawn[1::2], other[: num_samples // 2])
    assert np.all(drawn[:, ~inputs["target_mask"]] == 0)


def test_any_autoregressive_model_has_a_mirror_image(eagerly):
    model = TransformerNeuralProcess(
        num_heads=2, width=8, num_layers=1, feed_forward=4, embedding_layers=1, seed=0
    )
    inputs, _ = conformance.points(4, 3)
    model(inputs)
    drawn = MirroredModel(model).sample(inputs, 2, seed=1).numpy()
    wanted = -model.sample(flipped(inputs), 1, seed=1).numpy()
    np.testing.assert_allclose(drawn[1], wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:one-step forecasts inside the context:UserWarning")
def test_samples_of_whole_numbers_are_whole_on_both_sides():
    """The cells are those of y: the mirror image is moved to them too."""
    table = pd.DataFrame({"ds": range(40), "y": np.random.default_rng(0).poisson(3.0, 40)})
    forecaster = PretrainedForecaster(horizon=5, lower=0, integers=True, mirrored=True)
    samples = forecaster.forecast(table, num_samples=10).samples
    assert np.all(samples >= 0) and np.all(samples == np.round(samples))
    assert len(np.unique(samples)) > 2
    assert not np.array_equal(samples[::2], samples[1::2])


@pytest.mark.slow
def test_a_mirrored_forecaster_is_saved_without_a_second_model(tmp_path):
    table = pd.DataFrame({"ds": range(40), "y": np.sin(np.arange(40.0))})
    forecaster = PretrainedForecaster(horizon=5, mirrored=True)
    forecaster.save(tmp_path)
    wanted = forecaster.forecast(table, num_samples=4).samples
    loaded = Forecaster.load(tmp_path)
    assert loaded.mirrored is True
    np.testing.assert_array_equal(loaded.forecast(table, num_samples=4).samples, wanted)
    plain = PretrainedForecaster(horizon=5).forecast(table, num_samples=2).samples
    np.testing.assert_allclose(wanted[::2], plain, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="`mirrored` must be"):
        PretrainedForecaster(mirrored="yes").forecast(table)
