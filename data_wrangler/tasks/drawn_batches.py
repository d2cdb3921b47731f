"""Training batches that are drawn on the fly, each a function of its number."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer

if TYPE_CHECKING:
    import tensorflow as tf

_PARTS = ("x_context", "y_context", "x_target", "y_target")


def drawn_batches(
    draw: Callable[[int], list[np.ndarray]],
    batch_size: int,
    x_dims: int,
    y_dims: int,
    first_batch: int = 0,
    num_batches: int | None = None,
) -> "tf.data.Dataset":
    """Makes a data set of the batches that a function draws.

    Args:
        draw: given the number of a batch, gives its `x_context`, `y_context`, `x_target` and
            `y_target`, float32.
        batch_size: B.
        x_dims: D_x.
        y_dims: D_y.
        first_batch: how many batches to leave out.
        num_batches: how many batches to give. None: no end.

    Returns:
        A `tf.data.Dataset` of `(inputs, y_target)`. N_C and N_T are None in its `element_spec`, so
        that no graph is traced anew.

    Raises:
        TypeError, ValueError: a number outside its range.
    """
    import tensorflow as tf

    check_integer("batch_size", batch_size, 1)
    check_integer("first_batch", first_batch, 0)
    check_optional_integer("num_batches", num_batches, 1)

    def element(number: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        found = tf.numpy_function(lambda k: draw(int(k)), [number], [tf.float32] * len(_PARTS))
        batch = {
            name: tf.ensure_shape(part, [batch_size, None, x_dims if name[0] == "x" else y_dims])
            for name, part in zip(_PARTS, found, strict=True)
        }
        y_target = batch.pop("y_target")
        return batch, y_target

    if num_batches is None:
        numbers = tf.data.Dataset.counter(first_batch)
    else:
        numbers = tf.data.Dataset.range(first_batch, first_batch + num_batches)
    return numbers.map(element, tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)
