"""Some rows of a tensor, with gradients that are cheap.

The gradient of `values[:, :count]` fills a tensor with zeros and writes into it value by value: in
a training step that took as long as a third of all matrix products. The gradients of `tf.slice`
and `tf.split` are copies.
"""

from typing import Any

import tensorflow as tf


def first_rows(values: tf.Tensor, count: Any, axis: int) -> tf.Tensor:
    """Returns `values[.., :count, ..]` along an axis; `count` may be a tensor."""
    sizes = [-1] * len(values.shape)
    sizes[axis] = count
    return _with_static_shape(tf.slice(values, [0] * len(sizes), tf.stack(sizes)), values, axis)


def split_rows(values: tf.Tensor, count: Any, axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `values[.., :count, ..]` and `values[.., count:, ..]`; `count` may be a tensor."""
    sizes = tf.stack([count, tf.shape(values)[axis] - count])
    first, rest = tf.split(values, sizes, axis=axis, num=2)
    return _with_static_shape(first, values, axis), _with_static_shape(rest, values, axis)


def _with_static_shape(rows: tf.Tensor, values: tf.Tensor, axis: int) -> tf.Tensor:
    shape = values.shape.as_list()
    shape[axis] = None
    rows.set_shape(shape)
    return rows
