"""The nearest seen points of each point (paper, section "LocalTaylor": n(i)).

For point i the *seen* points are the observed ones among the other context points if i is a
context point, and among all context points and the earlier targets if i is a target. Points are
numbered 0 .. N - 1, context first.
"""

from collections.abc import Mapping

import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_sequences

_LARGEST = tf.float32.max


def _sort_by(order: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Reorders `order` `[B, N]` by `key` `[B, N]`, keeping the order of equal keys."""
    key = tf.gather(key, order, batch_dims=1)
    return tf.gather(order, tf.argsort(key, axis=-1, stable=True), batch_dims=1)


def _sort_by_columns(order: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Reorders lexicographically by the columns of `keys` `[B, N, D]`, the first one foremost."""
    for column in reversed(range(keys.shape[-1])):
        order = _sort_by(order, keys[..., column])
    return order


def canonical_order(
    x_context: tf.Tensor, y_context: tf.Tensor, x_target: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Orders the points so that the first of several equally near ones is the one to take.

    The smallest x comes first (lexicographic); at equal x context before targets; among context
    points the smallest y (lexicographic), among targets the earlier one. It depends on x, on
    y_context and on the order of the targets only, never on a target's y.

    Args:
        x_context: `[B, N_C, D_x]`.
        y_context: `[B, N_C, D_y]`.
        x_target: `[B, N_T, D_x]`.

    Returns:
        Two integer permutations, of the context points `[B, N_C]` and of all points `[B, N]`.
    """
    context_order = _sort_by_columns(_counting(x_context), y_context)
    context_order = _sort_by_columns(context_order, x_context)
    num_context = tf.shape(x_context)[1]
    every = tf.concat([context_order, num_context + _counting(x_target)], axis=1)
    x = tf.concat([x_context, x_target], axis=1)
    return context_order, _sort_by_columns(every, x)


def shuffled_order(
    x_context: tf.Tensor, x_target: tf.Tensor, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Like `canonical_order`, but at random, so that ties are broken at random.

    Args:
        x_context: `[B, N_C, D_x]`.
        x_target: `[B, N_T, D_x]`.
        seed: two integers for stateless random numbers.
    """
    batch_size, num_context = tf.shape(x_context)[0], tf.shape(x_context)[1]
    num_points = num_context + tf.shape(x_target)[1]
    noise = tf.random.stateless_uniform([batch_size, num_points], seed)
    return tf.argsort(noise[:, :num_context], axis=-1), tf.argsort(noise, axis=-1)


def split_where_ties_differ(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Gives each sequence its own points where the neighbours of shared points depend on y.

    They do where two observed context points have the same x: `canonical_order` then takes the one
    with the smallest y.

    Args:
        batch: a prepared batch, with `target_seen`, as the other masks.

    Returns:
        `x_context`, `x_target`, `context_mask`, `target_seen` and `y_context`, all with the same
        number of rows: B, or 1 where one search serves all sequences.
    """
    x, mask, y = batch["x_context"], batch["context_mask"], batch["y_context"]
    names = ("x_context", "x_target", "context_mask", "target_seen")
    rows = {name: batch[name] for name in (*names, "y_context")}
    if x.shape[0] is not None and x.shape[0] == y.shape[0]:
        return rows
    mask = mask[:1]
    same = mask[:, :, tf.newaxis] & mask[:, tf.newaxis, :]
    for d in range(x.shape[-1]):
        same &= x[:1, :, tf.newaxis, d] == x[:1, tf.newaxis, :, d]
    # A point has the same x as itself.
    num_same, num_observed = (tf.reduce_sum(tf.cast(some, tf.int32)) for some in (same, mask))
    size = tf.where(num_same > num_observed, tf.shape(y)[0], tf.shape(x)[0])
    for name in names:
        rows[name] = tile_sequences(batch[name], size)
    y = y[:size]
    rows["y_context"] = tf.pad(y, [[0, size - tf.shape(y)[0]], [0, 0], [0, 0]])
    return rows


def _counting(x: tf.Tensor) -> tf.Tensor:
    """Returns 0, 1, .. for each sequence of `[B, N, D]`, as `[B, N]`."""
    shape = tf.shape(x)[:2]
    return tf.broadcast_to(tf.range(shape[1]), shape)


def _distances(x_rows: tf.Tensor, x_columns: tf.Tensor) -> tf.Tensor:
    """Euclidean distances `[B, R, C]`, squared where there is more than one dimension.

    From direct differences, one dimension at a time: no tensor of `[B, R, C, D]` is made.
    """
    dimensions = x_rows.shape[-1]
    total = None
    for d in range(dimensions):
        difference = x_rows[:, :, tf.newaxis, d] - x_columns[:, tf.newaxis, :, d]
        if dimensions == 1:
            return tf.abs(difference)
        square = tf.square(difference)
        total = square if total is None else total + square
    return total


def _nearest(
    x_rows: tf.Tensor, x: tf.Tensor, order: tf.Tensor, visible: tf.Tensor, num_neighbours: int
) -> tuple[tf.Tensor, tf.Tensor]:
    x_columns = tf.gather(x, order, batch_dims=1)
    # Far points stay nearer than unseen ones, also where a distance overflows.
    distances = tf.minimum(_distances(x_rows, x_columns), _LARGEST)
    distances = tf.where(visible, distances, float("inf"))
    num_found = tf.minimum(num_neighbours, tf.shape(order)[1])
    # top_k takes the lowest column among equal ones, and works without any column.
    negative, columns = tf.math.top_k(-distances, num_found)
    padding = [[0, 0], [0, 0], [0, num_neighbours - num_found]]
    seen = tf.pad(negative >= -_LARGEST, padding)
    shape = tf.shape(columns)
    flat = tf.reshape(columns, [shape[0], shape[1] * shape[2]])
    points = tf.reshape(tf.gather(order, flat, batch_dims=1), shape)
    points = tf.pad(points, padding)
    points.set_shape([*points.shape[:2], num_neighbours])
    seen.set_shape([*seen.shape[:2], num_neighbours])
    return tf.where(seen, points, 0), seen


def nearest_seen_points(
    x_context: tf.Tensor,
    x_target: tf.Tensor,
    context_mask: tf.Tensor,
    target_seen: tf.Tensor,
    orders: tuple[tf.Tensor, tf.Tensor],
    num_neighbours: int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the K nearest seen points of every point.

    Args:
        x_context: `[B, N_C, D]`, the dimensions that define the distance.
        x_target: `[B, N_T, D]`.
        context_mask: `[B, N_C]` bool, True where the point was observed.
        target_seen: `[B, N_T]` bool, True where later targets may see the point.
        orders: permutations `[B, N_C]` and `[B, N]`; of equally near points the first one there
            is taken.
        num_neighbours: K.

    Returns:
        `points` `[B, N, K]`, numbers of points, nearest first, 0 where there is none, and `seen`
        `[B, N, K]` bool, False where fewer than K points are seen.
    """
    context_order, order = orders
    num_context = tf.shape(x_context)[1]
    num_target = tf.shape(x_target)[1]
    x = tf.concat([x_context, x_target], axis=1)
    observed = tf.concat([context_mask, target_seen], axis=1)

    rows = tf.range(num_context)[tf.newaxis, :, tf.newaxis]
    others = context_order[:, tf.newaxis, :] != rows
    visible = tf.gather(context_mask, context_order, batch_dims=1)[:, tf.newaxis, :] & others
    found_context = _nearest(x_context, x_context, context_order, visible, num_neighbours)

    rows = num_context + tf.range(num_target)[tf.newaxis, :, tf.newaxis]
    earlier = order[:, tf.newaxis, :] < rows
    visible = tf.gather(observed, order, batch_dims=1)[:, tf.newaxis, :] & earlier
    found_target = _nearest(x_target, x, order, visible, num_neighbours)
    return (
        tf.concat([found_context[0], found_target[0]], axis=1),
        tf.concat([found_context[1], found_target[1]], axis=1),
    )
