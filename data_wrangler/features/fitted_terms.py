"""Taylor terms whose derivatives are fitted together, to the nearest seen points of a point.

This is not in the paper: there the derivative of order k at n(i) is a difference of two derivatives
of order k - 1, each from one neighbour, so that errors add up. Here the derivatives of orders 1 to
r about n(i) are one ridge least-squares fit to the r next seen points. Its weights depend on x
alone, so they are made once for all samples of a sequence.
"""

import math

import tensorflow as tf

from taylorformer.data_wrangler.features.derivatives import RIDGE

LARGEST_ORDER = 6
"""Of fitted terms: higher derivatives of data with any noise are noise."""

# Sizes of y between this and its inverse are told apart by `compress`.
_SMALLEST_SIZE = 1e-3


def fitted_weights(
    dx: tf.Tensor, x_of_points: tf.Tensor, x_nearest: tf.Tensor, seen: tf.Tensor
) -> tf.Tensor:
    """Returns the weights of fitted Taylor terms on differences of y.

    The polynomial of degree k about n(i) is the ridge fit to the k next seen points: with
    `z = (x_j - x_n) / u` and u the largest of `|dx|` and all `|x_j - x_n|`, its coefficients of
    `z^m / sqrt(m!)` are penalised by `1e-4` of their squares. The term of order k is that
    polynomial less the one of degree k - 1, at the point.

    Args:
        dx: `[B, N, 1]`, x of a point minus that of the nearest seen point, n(i).
        x_of_points: `[B, N, r]`, x of the r next seen points.
        x_nearest: `[B, N, 1]`, x of n(i).
        seen: `[B, N, 1 + r]` bool, whether n(i) and the next points are there.

    Returns:
        `[B, N, r, r]` float32: for each order the weights on `y_j - y_n` of the r points; 0 for an
        order that has too few points.
    """
    most = x_of_points.shape[-1]
    away = tf.cast(x_of_points, tf.float64) - tf.cast(x_nearest, tf.float64)
    away = tf.where(seen[..., 1:], away, 0.0)
    dx = tf.cast(dx, tf.float64)
    rows, before = [], tf.zeros_like(away)
    for order in range(1, most + 1):
        z = away[..., :order]
        unit = tf.maximum(tf.abs(dx), tf.reduce_max(tf.abs(z), axis=-1, keepdims=True))
        unit = tf.where(unit > 0, unit, 1.0)
        powers = tf.stack([_powers(z[..., j] / unit[..., 0], order) for j in range(order)], axis=-2)
        at_point = _powers(dx[..., 0] / unit[..., 0], order)
        # Sums of products, and no matrix products, which some devices round.
        gram = tf.reduce_sum(powers[..., :, tf.newaxis, :] * powers[..., tf.newaxis, :, :], axis=-1)
        gram += tf.cast(RIDGE, tf.float64) * tf.eye(order, dtype=tf.float64)
        moments = tf.reduce_sum(powers * at_point[..., tf.newaxis, :], axis=-1)
        weights = tf.linalg.cholesky_solve(tf.linalg.cholesky(gram), moments[..., tf.newaxis])
        weights = tf.pad(weights[..., 0], [[0, 0], [0, 0], [0, most - order]])
        enough = seen[..., order : order + 1]
        rows.append(tf.where(enough, weights - before, 0.0))
        before = weights
    return tf.cast(tf.stack(rows, axis=-2), tf.float32)


def _powers(z: tf.Tensor, order: int) -> tf.Tensor:
    """Returns `z^m / sqrt(m!)` for m = 1 .. order, on a new last axis."""
    powers = [z]
    for m in range(2, order + 1):
        powers.append(powers[-1] * z / math.sqrt(m))
    return tf.stack(powers, axis=-1)


def fitted_terms(weights: tf.Tensor, y_of_points: tf.Tensor, y_nearest: tf.Tensor) -> tf.Tensor:
    """Returns the fitted Taylor terms of orders 1 to r, each clipped to -1 .. 1.

    Far from all points, where terms would grow without a bound, none is then larger than the usual
    size of y.

    Args:
        weights: `[B, N, r, r]`, returned by `fitted_weights`; 1 instead of B stands for all.
        y_of_points: `[B, N, r, D_y]`, y of the r next seen points.
        y_nearest: `[B, N, D_y]`, that of n(i).

    Returns:
        `[B, N, r, D_y]`, in units of y.
    """
    differences = y_of_points - y_nearest[:, :, tf.newaxis]
    # What is not seen has the weight 0, and may be anything.
    used = tf.reduce_any(weights != 0, axis=-2)[..., tf.newaxis]
    differences = tf.where(used, differences, 0.0)
    terms = tf.reduce_sum(weights[..., tf.newaxis] * differences[:, :, tf.newaxis], axis=-2)
    return tf.clip_by_value(terms, -1.0, 1.0)


def compress(terms: tf.Tensor) -> tf.Tensor:
    """Returns `sign(t) log(1 + |t| / 1e-3) / log(1001)`: the sign and the order of size.

    A term of 1 becomes 1. How far the next term is likely to be off is a power of the size of this
    one, which a layer can read off a logarithm.
    """
    size = tf.math.log1p(tf.abs(terms) / _SMALLEST_SIZE) / math.log1p(1 / _SMALLEST_SIZE)
    return tf.sign(terms) * size
