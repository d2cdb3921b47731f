"""Everything that the package uses of Keras and TensorFlow and that may change without notice.

Each private name stands behind one small function or class here, and nowhere else, so that a new
version of Keras or TensorFlow that lacks it is adapted to in one file. What is missing is named.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


def _private(owner: Any, name: str, library: Any) -> Any:
    """Returns a private attribute, or says which library no longer has it."""
    try:
        return getattr(owner, name)
    except AttributeError:
        raise RuntimeError(
            f"{library.__name__} must have the private name `{name}`, which this version of "
            f"taylorformer uses. Received: {library.__name__} {library.__version__}, without it"
        ) from None


def sublayers(layer: keras.Layer) -> list[keras.Layer]:
    """Returns all layers inside a layer or model, at any depth, without itself."""
    return list(_private(layer, "_flatten_layers", keras)(include_self=False))


def loss_metric(model: keras.Model) -> keras.metrics.Metric | None:
    """Returns the metric in which `fit` averages the loss; None before `compile`."""
    return _private(model, "_loss_tracker", keras)


def has_unbuilt_metrics(model: keras.Model) -> bool:
    """Tells whether `compile` was given metrics whose variables do not exist yet."""
    metrics = _private(model, "_compile_metrics", keras)
    return metrics is not None and not metrics.built


def set_trainable_alone(layer: keras.Layer, trainable: bool) -> None:
    """Sets `trainable` of one layer and of nothing inside it, as the public attribute would."""
    _private(layer, "_trainable", keras)
    layer._trainable = trainable


def optimized_weights(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """Returns the weights for which an optimizer has been built; none before that."""
    while isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer = optimizer.inner_optimizer
    return list(_private(optimizer, "_trainable_variables", keras))


class ModelBuiltBeforeTraining(keras.Model):
    """A Keras model that builds itself, so that `fit` need not build it by a symbolic call.

    Under several replicas Keras calls the model on placeholders before the first step. That call
    cannot take boolean masks, and has nothing to do where all variables exist.
    """

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        if not self.built or has_unbuilt_metrics(self):
            build = _private(super(), "_maybe_symbolic_build", keras)
            build(iterator=iterator, data_batch=data_batch)


def empty_tensor(shape: Sequence[tf.Tensor | int], dtype: str) -> tf.Tensor:
    """Makes a tensor of zeros for `write_row`, which shares its memory with no other tensor.

    (`tf.zeros` may become a constant that all calls of a graph share.)

    Args:
        shape: the sizes; integers become part of the static shape.
        dtype: name of the dtype.
    """
    make = _private(tf.raw_ops, "Empty", tf)
    tensor = make(shape=tf.stack(shape), dtype=dtype, init=True)
    tensor.set_shape([size if isinstance(size, int) else None for size in shape])
    return tensor


def sum_of_rows(values: tf.Tensor) -> tf.Tensor:
    """Sums `[.., F]` over all axes but the last, as the gradient of a bias does.

    It is quicker than `tf.reduce_sum`.
    """
    add = _private(tf.raw_ops, "BiasAddGrad", tf)
    return add(out_backprop=values)


def write_row(tensor: tf.Tensor, index: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
    """Writes one row into the memory of a tensor, whoever else holds that tensor.

    No operation may still be reading `tensor`: order the writing after them with
    `tf.control_dependencies`. XLA does not compile it.

    Args:
        tensor: `[N, ..]`, made by `empty_tensor`.
        index: int32 scalar, which of the N rows is written.
        row: `[..]`.

    Returns:
        The same memory as a new tensor, to be read from now on.
    """
    write = _private(tf.raw_ops, "InplaceUpdate", tf)
    return write(x=tensor, i=index[tf.newaxis], v=row[tf.newaxis])
