"""The few array functions that scaling and batches need, of NumPy or of TensorFlow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class ArrayOps(NamedTuple):
    """Array functions, so that one formula serves NumPy, `tf.data` and a SavedModel.

    Attributes:
        take: selects rows of the first axis by their indices.
        where: chooses by a condition.
        cast: converts to a dtype.
        join: puts two arrays together along the last axis.
        clip: limits values to an interval.
        log: the natural logarithm.
        total: the sum over the last axis.
    """

    take: Callable[[Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    cast: Callable[[Any, str], Any]
    join: Callable[[Any, Any], Any]
    clip: Callable[[Any, float, float], Any]
    log: Callable[[Any], Any]
    total: Callable[[Any], Any]


NUMPY_OPS = ArrayOps(
    take=lambda values, rows: np.take(values, rows, axis=0),
    where=np.where,
    cast=np.asarray,
    join=lambda first, second: np.concatenate([first, second], axis=-1),
    clip=np.clip,
    log=np.log,
    total=lambda values: np.sum(values, axis=-1),
)


def tensorflow_ops() -> ArrayOps:
    """Returns the functions of TensorFlow, which is imported only here: tables need none."""
    import tensorflow as tf

    return ArrayOps(
        take=tf.gather,
        where=tf.where,
        cast=tf.cast,
        join=lambda first, second: tf.concat([first, second], axis=-1),
        clip=tf.clip_by_value,
        log=tf.math.log,
        total=lambda values: tf.reduce_sum(values, axis=-1),
    )
