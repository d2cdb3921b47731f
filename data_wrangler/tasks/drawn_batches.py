"""Data sets whose batches are functions of their numbers: drawn on the fly, or read from arrays."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer

if TYPE_CHECKING:
    import tensorflow as tf


def numbered_batches(
    numbers: "tf.data.Dataset",
    make_batch: Callable[[int], Mapping[str, np.ndarray]],
    specs: "Mapping[str, tf.TensorSpec]",
) -> "tf.data.Dataset":
    """Makes a data set of the batches of a function.

    Args:
        numbers: the numbers of the batches, scalars.
        make_batch: returns the arrays of a batch, given its number.
        specs: of each of these arrays; "y_target" is one of them.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)` of the data contract, in the order of `numbers`,
        which makes batches ahead.
    """
    import tensorflow as tf

    def arrays(number: np.ndarray) -> list[np.ndarray]:
        batch = make_batch(int(number))
        return [batch[name] for name in specs]

    def element(number: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        tensors = tf.numpy_function(arrays, [number], [spec.dtype for spec in specs.values()])
        inputs = {
            name: tf.ensure_shape(tensor, spec.shape)
            for tensor, (name, spec) in zip(tensors, specs.items(), strict=True)
        }
        y_target = inputs.pop("y_target")
        return inputs, y_target

    return numbers.map(element, tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def batch_numbers(first_batch: int, num_batches: int | None) -> "tf.data.Dataset":
    """Makes a data set of numbers of batches.

    Args:
        first_batch: the first number.
        num_batches: how many. None: no end.

    Raises:
        TypeError, ValueError: a number outside its range.
    """
    import tensorflow as tf

    first_batch = check_integer("first_batch", first_batch, 0)
    num_batches = check_optional_integer("num_batches", num_batches, 1)
    if num_batches is None:
        return tf.data.Dataset.counter(first_batch)
    return tf.data.Dataset.range(first_batch, first_batch + num_batches)


def masked_specs(x_dims: int, y_dims: int) -> "dict[str, tf.TensorSpec]":
    """Returns the specs of batches with masks, whose B, N_C and N_T are None: one graph for all.

    Args:
        x_dims: D_x.
        y_dims: D_y.
    """
    import tensorflow as tf

    x = tf.TensorSpec([None, None, x_dims], tf.float32)
    y = tf.TensorSpec([None, None, y_dims], tf.float32)
    mask = tf.TensorSpec([None, None], tf.bool)
    return {
        "x_context": x,
        "y_context": y,
        "x_target": x,
        "context_mask": mask,
        "target_mask": mask,
        "y_target": y,
    }


def drawn_batches(
    draw: Callable[[int], Mapping[str, np.ndarray]],
    batch_size: int,
    x_dims: int,
    y_dims: int,
    first_batch: int = 0,
    num_batches: int | None = None,
) -> "tf.data.Dataset":
    """Makes a data set of training batches that a function draws.

    Args:
        draw: returns `x_context`, `y_context`, `x_target` and `y_target`, float32, given the number
            of a batch.
        batch_size: B.
        x_dims: D_x.
        y_dims: D_y.
        first_batch: how many batches to leave out.
        num_batches: how many batches to draw. None: no end.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)`. N_C and N_T are None in its `element_spec`, so
        that no graph is traced anew.

    Raises:
        TypeError, ValueError: a number outside its range.
    """
    import tensorflow as tf

    batch_size = check_integer("batch_size", batch_size, 1)
    numbers = batch_numbers(first_batch, num_batches)
    x = tf.TensorSpec([batch_size, None, x_dims], tf.float32)
    y = tf.TensorSpec([batch_size, None, y_dims], tf.float32)
    specs = {"x_context": x, "y_context": y, "x_target": x, "y_target": y}
    return numbered_batches(numbers, draw, specs)


def split_points(x: np.ndarray, y: np.ndarray, num_context: int) -> dict[str, np.ndarray]:
    """Divides the points of sequences into context and targets.

    Args:
        x: `[B, N, D_x]`.
        y: `[B, N, D_y]`.
        num_context: N_C; the other points are the targets.

    Returns:
        The arrays of a batch.
    """
    return {
        "x_context": x[:, :num_context],
        "y_context": y[:, :num_context],
        "x_target": x[:, num_context:],
        "y_target": y[:, num_context:],
    }
