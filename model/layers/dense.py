"""Dense layers: seeded, applied to rows as one matrix, joined side by side, and safe in float16."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.seeds import child_seed

LARGEST_FLOAT16 = 65504.0
# Weights of a trained layer are rarely larger, and a sum of F products with such weights of
# numbers within `LARGEST_FLOAT16 / (2 F)` stays finite.
_LARGEST_WEIGHT = 2

FAN_IN_VARIANCE = 1 / 3
"""First weights are within one over the root of the number of inputs, as in PyTorch."""

JoinedDense = tuple[tf.Tensor, tf.Tensor]
"""The kernel `[F, C]` and the bias `[C]` of `joined_dense`."""


def seeded_dense(
    width: int,
    seed: int | None,
    child: int,
    dtype: Any,
    name: str,
    use_bias: bool = True,
    variance: float | None = None,
) -> keras.layers.Dense:
    """Makes a Dense layer whose first weights follow from the seed of the layer that holds it.

    Args:
        width: number of units.
        seed: the seed of the layer that holds it. None: at random.
        child: the child number, different for each part of that layer.
        dtype: a dtype or a dtype policy.
        name: the name of the layer.
        use_bias: with a bias.
        variance: first weights are uniform with this variance over the number of inputs. None:
            Glorot's, twice one over the sum of the numbers of inputs and units.
    """
    first = child_seed(seed, child)
    if variance is None:
        initializer = keras.initializers.GlorotUniform(seed=first)
    else:
        initializer = keras.initializers.VarianceScaling(variance, "fan_in", "uniform", seed=first)
    return keras.layers.Dense(
        width, use_bias=use_bias, kernel_initializer=initializer, dtype=dtype, name=name
    )


def within_range(values: tf.Tensor, dtype: str, bound: float | None = None) -> tf.Tensor:
    """Clips numbers in float16, so that no sum of products overflows.

    float16 ends at 65504, and 0 times inf is NaN: a huge y that is masked in one row would reach
    that row as NaN, by way of another row that may see it. In other dtypes nothing is done.

    Args:
        values: `[.., F]`.
        dtype: the compute dtype.
        bound: the largest absolute value. None: what a Dense layer with weights up to 2 can read.
    """
    if dtype != "float16":
        return values
    if bound is None:
        bound = LARGEST_FLOAT16 / (_LARGEST_WEIGHT * values.shape[-1])
    return tf.cast(tf.clip_by_value(values, -bound, bound), tf.float16)


def apply_dense(
    dense: keras.layers.Dense, values: tf.Tensor, heads: tuple[int, int] | None = None
) -> tf.Tensor:
    """Applies a Dense layer to the rows of `[B, N, F]`, as one matrix.

    Given three axes of unknown lengths, Keras works out the shapes of each product anew, in twenty
    small operations: more than the product itself costs where rows are drawn one by one.

    Args:
        dense: the layer.
        values: `[B, N, F]`.
        heads: (H, d) to split the units into heads. None: one vector for each row.

    Returns:
        `[B, N, units]`, or `[B, N, H, d]` with `heads`.
    """
    row = (dense.units,) if heads is None else heads
    shape = tf.shape(values)
    rows = dense(tf.reshape(values, [shape[0] * shape[1], values.shape[-1]]))
    rows = tf.reshape(rows, [shape[0], shape[1], *row])
    rows.set_shape([*values.shape[:-1], *row])
    return rows


def is_plain_dense(dense: Any) -> bool:
    """Tells whether a Dense layer computes `values @ kernel + bias` and nothing else.

    Only such a layer may be joined: not one that is quantised, that has no bias or an activation,
    or of a subclass.
    """
    return (
        type(dense) is keras.layers.Dense
        and dense.quantization_mode is None
        and dense.use_bias
        and dense.activation is keras.activations.linear
    )


def joined_dense(denses: Sequence[keras.layers.Dense], dtype: str) -> JoinedDense:
    """Joins Dense layers that read the same rows, side by side.

    One product instead of several: where rows are drawn one by one, starting a product costs more
    than the product.

    Args:
        denses: layers for which `is_plain_dense` is true.
        dtype: of the kernel and the bias that are returned.

    Returns:
        One kernel `[F, C]` and one bias `[C]`, C the sum of the units of the layers.
    """
    kernel = tf.concat([tf.cast(dense.kernel, dtype) for dense in denses], axis=1)
    return kernel, tf.concat([tf.cast(dense.bias, dtype) for dense in denses], axis=0)


def apply_joined(joined: JoinedDense, values: tf.Tensor) -> tf.Tensor:
    """Applies joined Dense layers to the rows of `[B, S, F]`; returns `[B, S, C]`.

    Args:
        joined: returned by `joined_dense`.
        values: `[B, S, F]`.
    """
    kernel, bias = joined
    shape = tf.shape(values)
    rows = tf.reshape(values, [shape[0] * shape[1], kernel.shape[0]])
    rows = tf.matmul(tf.cast(rows, kernel.dtype), kernel) + bias
    return tf.reshape(rows, [shape[0], shape[1], kernel.shape[1]])
