"""Derivatives estimated from the nearest seen points (paper, section "LocalTaylor": D).

No random jitter is used, and no value under a flag of 0 is ever divided by something that is
not normal, so that gradients stay finite too.
"""

import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_sequences

RIDGE = 1e-4
_SMALLEST = 1.1754944e-38  # the smallest normal float32


def ratio(
    numerator: tf.Tensor, denominator: tf.Tensor, flag: tf.Tensor, largest: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Divides where the outcome is a fit derivative.

    Args:
        numerator: `[B, N, D_y]`.
        denominator: `[B, N, 1]`.
        flag: `[B, N, 1]` bool, False where there is nothing to divide.
        largest: the largest size of a fit outcome.

    Returns:
        The quotient `[B, N, D_y]`, 0 where the flag is 0, and the flag `[B, N, 1]` bool: 1 if all
        D_y entries are finite and at most `largest` in size.
    """
    small = tf.abs(numerator) <= largest * tf.abs(denominator)
    flag &= (tf.abs(denominator) >= _SMALLEST) & tf.reduce_all(small, axis=-1, keepdims=True)
    quotient = tf.where(flag, numerator, 0.0) / tf.where(flag, denominator, 1.0)
    return quotient, flag


def estimate_derivative(
    delta_x: tf.Tensor, delta_y: tf.Tensor, seen: tf.Tensor, largest: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Estimates D from the differences to K neighbours.

    With one dimension and one neighbour it is `dY / dX`, signed. In general it is the ridge
    least-squares solution of `dY_k = D dX_k` over the seen neighbours, with the ridge
    `1e-4 trace(dX^T dX) / M`: relative, so that units do not matter.

    Args:
        delta_x: `[B, N, K, M]`; 1 instead of B, here and in `seen`, stands for all.
        delta_y: `[B, N, K, D_y]`.
        seen: `[B, N, K]` bool.
        largest: `max_derivative`, the largest size of a fit entry.

    Returns:
        D `[B, N, D_y, M]`, 0 where the flag is 0, and the flag `[B, N, 1]` bool: 0 with fewer than
        M seen neighbours, where all dX are 0, or where an entry is not finite or too large.
    """
    num_neighbours, dimensions = delta_x.shape[-2], delta_x.shape[-1]
    if num_neighbours == 1 and dimensions == 1:
        quotient, flag = ratio(delta_y[..., 0, :], delta_x[..., 0, :], seen, largest)
        return quotient[..., tf.newaxis], flag
    delta_x = tf.where(seen[..., tf.newaxis], delta_x, 0.0)
    delta_y = tf.where(seen[..., tf.newaxis], delta_y, 0.0)
    # In units of the largest difference nothing under- or overflows in float32.
    unit = tf.reduce_max(tf.abs(delta_x), axis=[-2, -1], keepdims=True)
    enough = tf.reduce_sum(tf.cast(seen, tf.int32), axis=-1, keepdims=True) >= dimensions
    flag = enough & (unit[..., 0] >= _SMALLEST)
    wide = flag[..., tf.newaxis]
    delta_x = tf.where(wide, delta_x, 0.0) / tf.where(wide, unit, 1.0)
    # Sums of products, and no matrix products: those are rounded to TF32 on some devices.
    gram = _sum_of_products(delta_x, delta_x)
    trace = tf.linalg.trace(gram)[..., tf.newaxis]
    ridge = tf.where(flag, RIDGE / dimensions * trace, 1.0)
    gram += ridge[..., tf.newaxis] * tf.eye(dimensions)
    moments = _sum_of_products(delta_x, delta_y)
    solution = moments / gram if dimensions == 1 else _solve(gram, moments)
    scaled = tf.linalg.matrix_transpose(solution)
    # D = scaled / unit, divided only where the outcome is fit.
    small = tf.reduce_all(tf.abs(scaled) <= largest * unit, axis=[-2, -1])
    flag &= small[..., tf.newaxis]
    wide = flag[..., tf.newaxis]
    return tf.where(wide, scaled, 0.0) / tf.where(wide, unit, 1.0), flag


def _sum_of_products(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Sums the outer products of the rows of `[.., K, P]` and `[.., K, Q]` to `[.., P, Q]`."""
    return tf.reduce_sum(left[..., :, tf.newaxis] * right[..., tf.newaxis, :], axis=-3)


def _solve(gram: tf.Tensor, moments: tf.Tensor) -> tf.Tensor:
    """Solves `gram` D^T = `moments`; the ridge keeps `gram` positive definite."""
    factor = tile_sequences(tf.linalg.cholesky(gram), tf.shape(moments)[0])
    return tf.linalg.cholesky_solve(factor, moments)
