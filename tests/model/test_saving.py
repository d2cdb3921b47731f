"""`.keras` files in a fresh process."""

import subprocess
import sys

import conformance
import keras
import numpy as np
import tensorflow as tf

from taylorformer import RepresentationExtractor, Taylorformer

_FRESH = """
import sys
import numpy as np
from taylorformer import Taylorformer
import keras

folder = sys.argv[1]
data = dict(np.load(f"{folder}/data.npz"))
y_target = data.pop("y_target")
model = keras.models.load_model(f"{folder}/model.keras")
assert type(model) is Taylorformer
model.export(f"{folder}/served")  # never called so far
outputs = model({**data, "y_target": y_target})
iterations = int(model.optimizer.iterations)
model.fit(data, y_target, initial_epoch=2, epochs=4, verbose=0, shuffle=False)
np.savez(
    f"{folder}/fresh.npz", mean=outputs["mean"], scale=outputs["scale"], iterations=iterations,
    **{f"weight_{number}": value for number, value in enumerate(model.get_weights())},
)
"""


def test_a_file_is_resumed_and_is_exported_in_a_fresh_process(tmp_path):
    inputs, y_target = conformance.points()
    np.savez(tmp_path / "data.npz", **inputs, y_target=y_target)
    extractor = RepresentationExtractor(encoding_dim=4, feature_order=2, seed=1)
    model = Taylorformer(
        **conformance.TINY, seed=0, target_permutations=1, representation_extractor=extractor
    )
    model.compile(keras.optimizers.Adam(1e-2, global_clipnorm=10.0), run_eagerly=True)
    model.fit(inputs, y_target, epochs=2, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    (tmp_path / "fresh.py").write_text(_FRESH)
    subprocess.run(
        [sys.executable, tmp_path / "fresh.py", tmp_path], check=True, cwd=tmp_path, timeout=300
    )
    fresh = np.load(tmp_path / "fresh.npz")
    outputs = model({**inputs, "y_target": y_target})
    np.testing.assert_allclose(fresh["mean"], outputs["mean"], atol=1e-6)
    np.testing.assert_allclose(fresh["scale"], outputs["scale"], atol=1e-6)
    assert fresh["iterations"] == 2
    served = tf.saved_model.load(tmp_path / "served").signatures["log_prob"]
    batch = {**inputs, "y_target": y_target}
    log_prob = served(**{key: tf.constant(value) for key, value in batch.items()})["log_prob"]
    np.testing.assert_allclose(log_prob, model.log_prob(inputs, y_target), rtol=1e-5, atol=1e-5)
    model.fit(inputs, y_target, initial_epoch=2, epochs=4, verbose=0, shuffle=False)
    for number, weight in enumerate(model.get_weights()):
        np.testing.assert_allclose(fresh[f"weight_{number}"], weight, atol=1e-6)


def test_the_file_is_about_as_large_as_its_weights(tmp_path):
    model = Taylorformer(seed=0)
    inputs, y_target = conformance.points()
    model({**inputs, "y_target": y_target})
    model.save(tmp_path / "model.keras")
    weights = sum(4 * int(np.prod(weight.shape)) for weight in model.weights)
    assert (tmp_path / "model.keras").stat().st_size < weights + 500_000


def test_a_model_that_was_loaded_and_never_called_has_all_its_weights(tmp_path):
    case = conformance.MODELS[1]
    model = case.make()
    inputs, y_target = case.data()
    expected = model({**inputs, "y_target": y_target})
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.built
    assert not again.compiled
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(again({**inputs, "y_target": y_target})["mean"], expected["mean"])


def test_default_sizes_are_the_papers():
    """About 92 thousand parameters; the features of the paper read two numbers more a point."""
    model = Taylorformer()
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})
    released_features = 91_858
    # D^n and its flag enter three projections 66 wide and a skip 32 wide.
    assert model.count_params() == released_features + 2 * (3 * 66 + 32) + 2
