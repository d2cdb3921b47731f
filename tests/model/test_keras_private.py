"""What we use of Keras and TensorFlow that is private still works, and stands in one file.

Where a test fails after an update of either, `model/keras_private.py` is to be adapted.
"""

import inspect
import re
from pathlib import Path

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.model import keras_private

ROOT = Path(__file__).parents[2]
KERAS = f"Keras {keras.__version__}"
TENSORFLOW = f"TensorFlow {tf.__version__}"


def test_sublayers_are_those_at_any_depth():
    inner = keras.layers.Dense(1)
    middle = keras.Sequential([inner])
    outer = keras.Sequential([middle, keras.layers.ReLU()])
    layers = keras_private.sublayers(outer)
    assert middle in layers and inner in layers and outer not in layers, (
        f"{KERAS}: `Layer._flatten_layers` does not return all layers inside a layer"
    )


def test_the_metric_of_the_loss_is_that_of_fit():
    model = keras.Sequential([keras.layers.Dense(1)])
    assert keras_private.loss_metric(model) is None, f"{KERAS}: `Model._loss_tracker` is set"
    model.compile(loss="mse")
    metric = keras_private.loss_metric(model)
    assert isinstance(metric, keras.metrics.Mean) and metric.name == "loss", (
        f"{KERAS}: `Model._loss_tracker` is not the running mean of the loss"
    )


def test_a_layer_is_frozen_without_what_is_in_it():
    inner = keras.layers.Dense(1)
    outer = keras.Sequential([inner])
    outer.build((None, 2))
    keras_private.set_trainable_alone(outer, False)
    message = f"{KERAS}: `Layer._trainable` is not what `trainable` returns"
    assert not outer.trainable and inner.trainable, message
    assert all(weight.trainable for weight in inner.weights), message


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "loss scale"])
def test_an_optimizer_knows_the_weights_it_was_built_for(wrapped):
    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    optimizer = keras.optimizers.Adam()
    if wrapped:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    message = f"{KERAS}: `Optimizer._trainable_variables` is not what `build` was given"
    assert keras_private.optimized_weights(optimizer) == [], message
    optimizer.build([layer.bias])
    assert [id(w) for w in keras_private.optimized_weights(optimizer)] == [id(layer.bias)], message


def test_metrics_are_unbuilt_until_they_are_used():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse")
    message = f"{KERAS}: `Model._compile_metrics` does not hold the metrics of `compile`"
    assert not keras_private.has_unbuilt_metrics(model), message
    model.compile(loss="mse", metrics=["mae"])
    assert keras_private.has_unbuilt_metrics(model), message
    model.evaluate(np.zeros((2, 1)), np.zeros((2, 1)), verbose=0)
    assert not keras_private.has_unbuilt_metrics(model), message


def test_fit_asks_whether_a_model_must_be_built():
    """If Keras no longer calls the method that we override, the override does nothing."""
    method = getattr(keras.Model, "_maybe_symbolic_build", None)
    assert method is not None, f"{KERAS}: `Model._maybe_symbolic_build` does not exist"
    assert list(inspect.signature(method).parameters) == ["self", "iterator", "data_batch"], (
        f"{KERAS}: `Model._maybe_symbolic_build` takes other arguments"
    )
    called = []

    class Watched(keras_private.ModelBuiltBeforeTraining):
        def call(self, inputs):
            return inputs

        def _maybe_symbolic_build(self, iterator=None, data_batch=None):
            called.append(self.built)

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = Watched()
        model.compile(loss="mse", run_eagerly=True)
    model.evaluate(np.zeros((2, 1)), np.zeros((2, 1)), verbose=0)
    assert called, f"{KERAS}: `evaluate` does not call `Model._maybe_symbolic_build`"


def test_a_built_model_is_not_built_by_a_symbolic_call(monkeypatch):
    called = []
    monkeypatch.setattr(
        keras.Model, "_maybe_symbolic_build", lambda self, **arguments: called.append(arguments)
    )
    model = conformance.MODELS[0].make()
    assert isinstance(model, keras_private.ModelBuiltBeforeTraining)
    model._maybe_symbolic_build(data_batch=1)
    assert called == [{"iterator": None, "data_batch": 1}]
    model.built = True
    model._maybe_symbolic_build(data_batch=2)
    assert len(called) == 1


def test_rows_are_written_into_the_same_memory():
    @tf.function(autograph=False)
    def write(count):
        tensor = keras_private.empty_tensor([count, 2], "float32")
        with tf.control_dependencies([tf.identity(tensor)]):
            written = keras_private.write_row(tensor, tf.constant(1), tf.constant([5.0, 6.0]))
        with tf.control_dependencies([written]):
            return tensor.shape.as_list()[1], tf.identity(tensor), written

    for _ in range(2):
        width, tensor, written = write(tf.constant(3))
        assert width == 2
        np.testing.assert_array_equal(
            written, [[0, 0], [5, 6], [0, 0]], f"{TENSORFLOW}: `raw_ops.InplaceUpdate` or `Empty`"
        )
        np.testing.assert_array_equal(
            tensor, written, f"{TENSORFLOW}: `raw_ops.InplaceUpdate` does not write in place"
        )


@pytest.mark.parametrize(
    "owner, name, use",
    [
        (keras.Model, "_flatten_layers", keras_private.sublayers),
        (None, "_loss_tracker", keras_private.loss_metric),
        (None, "_compile_metrics", keras_private.has_unbuilt_metrics),
        (
            keras.Model,
            "_maybe_symbolic_build",
            lambda _: keras_private.ModelBuiltBeforeTraining()._maybe_symbolic_build(),
        ),
        (None, "_trainable", lambda model: keras_private.set_trainable_alone(model, False)),
        (
            None,
            "_trainable_variables",
            lambda model: keras_private.optimized_weights(model.optimizer),
        ),
        (tf.raw_ops, "BiasAddGrad", lambda _: keras_private.sum_of_rows(tf.zeros([2, 1]))),
        (tf.raw_ops, "Empty", lambda _: keras_private.empty_tensor([1], "float32")),
        (
            tf.raw_ops,
            "InplaceUpdate",
            lambda _: keras_private.write_row(tf.zeros([1]), tf.constant(0), tf.constant(0.0)),
        ),
    ],
)
def test_what_is_missing_is_named(monkeypatch, owner, name, use):
    library = "tensorflow" if owner is tf.raw_ops else "keras"
    model = keras.Sequential([keras.layers.Dense(1)])
    if name == "_trainable_variables":
        model.optimizer = keras.optimizers.SGD()
        delattr(model.optimizer, name)
    elif owner is None:
        delattr(model, name)
    else:
        for kind in getattr(owner, "__mro__", [owner]):
            if name in vars(kind):
                monkeypatch.delattr(kind, name)
    with pytest.raises(RuntimeError, match=rf"{library} must have the private name `{name}`"):
        use(model)


def test_private_names_stand_in_one_file():
    names = re.compile(
        r"keras\.src|tensorflow\.python|__internal__|raw_ops|"
        r"\._(flatten_layers|compile_metrics|loss_tracker|maybe_symbolic_build|tracker|"
        r"trainable|trainable_variables)\b"
    )
    folders = ("data_wrangler", "model", "comparison_models", "training_and_evaluation")
    files = [path for name in (*folders, "taylorformer") for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 50
    uses = {path.name for path in files if names.search(path.read_text(encoding="utf-8"))}
    assert uses == {"keras_private.py"}
