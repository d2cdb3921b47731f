"""The few array functions that scaling and batches need, of NumPy or of TensorFlow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr


class ArrayOps(NamedTuple):
    """Array functions, so that one formula serves NumPy, `tf.data` and a SavedModel.

    Attributes:
        take: selects rows of the first axis by their indices.
        where: chooses by a condition.
        cast: converts to a dtype.
        join: puts two arrays together along the last axis.
        clip: limits values to an interval.
        larger: the larger of two.
        smaller: the smaller of two.
        round: to whole numbers.
        log: the natural logarithm.
        expm1: `exp(x) - 1`, exact near 0.
        softplus: `log(1 + exp(x))`.
        log_normal_cdf: the logarithm of the cumulative standard normal distribution.
        total: the sum over the last axis.
        stack: puts arrays of one shape side by side along a new last axis.
        floor: the largest whole number that is not larger.
        cos: the cosine of an angle.
        sin: the sine of an angle.
        greatest: the maximum over the last axis.
        sort: in increasing order along the last axis.
        pick: selects one number of each row of the last axis by its index.
    """

    take: Callable[[Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    cast: Callable[[Any, str], Any]
    join: Callable[[Any, Any], Any]
    clip: Callable[[Any, float, float], Any]
    larger: Callable[[Any, Any], Any]
    smaller: Callable[[Any, Any], Any]
    round: Callable[[Any], Any]
    log: Callable[[Any], Any]
    expm1: Callable[[Any], Any]
    softplus: Callable[[Any], Any]
    log_normal_cdf: Callable[[Any], Any]
    total: Callable[[Any], Any]
    stack: Callable[[list[Any]], Any]
    floor: Callable[[Any], Any]
    cos: Callable[[Any], Any]
    sin: Callable[[Any], Any]
    greatest: Callable[[Any], Any]
    sort: Callable[[Any], Any]
    pick: Callable[[Any, Any], Any]


NUMPY_OPS = ArrayOps(
    take=lambda values, rows: np.take(values, rows, axis=0),
    where=np.where,
    cast=np.asarray,
    join=lambda first, second: np.concatenate([first, second], axis=-1),
    clip=np.clip,
    larger=np.maximum,
    smaller=np.minimum,
    round=np.round,
    log=np.log,
    expm1=np.expm1,
    softplus=lambda values: np.logaddexp(0.0, values),
    log_normal_cdf=log_ndtr,
    total=lambda values: np.sum(values, axis=-1),
    stack=lambda parts: np.stack(parts, axis=-1),
    floor=np.floor,
    cos=np.cos,
    sin=np.sin,
    greatest=lambda values: np.max(values, axis=-1),
    sort=lambda values: np.sort(values, axis=-1),
    pick=lambda values, index: np.take_along_axis(values, index[:, np.newaxis], axis=-1)[:, 0],
)


def tensorflow_ops() -> ArrayOps:
    """Returns the functions of TensorFlow, which is imported only here: tables need none."""
    import tensorflow as tf

    def log_normal_cdf(values: tf.Tensor) -> tf.Tensor:
        # Only where whole numbers and bounds are scored: the import takes half a second.
        import tensorflow_probability as tfp

        return tfp.distributions.Normal(tf.zeros([], values.dtype), 1.0).log_cdf(values)

    return ArrayOps(
        take=tf.gather,
        where=tf.where,
        cast=tf.cast,
        join=lambda first, second: tf.concat([first, second], axis=-1),
        clip=tf.clip_by_value,
        larger=tf.maximum,
        smaller=tf.minimum,
        round=tf.round,
        log=tf.math.log,
        expm1=tf.math.expm1,
        softplus=tf.nn.softplus,
        log_normal_cdf=log_normal_cdf,
        total=lambda values: tf.reduce_sum(values, axis=-1),
        stack=lambda parts: tf.stack(parts, axis=-1),
        floor=tf.floor,
        cos=tf.cos,
        sin=tf.sin,
        greatest=lambda values: tf.reduce_max(values, axis=-1),
        sort=lambda values: tf.sort(values, axis=-1),
        pick=lambda values, index: tf.gather(values, index, batch_dims=1),
    )
