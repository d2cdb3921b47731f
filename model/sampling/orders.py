"""The orders in which targets can be drawn."""

import tensorflow as tf

from taylorformer.model.sampling.counter_noise import order_noise

ORDERS = ("given", "random", "nearest")


def sampling_order(
    name: str,
    batch: dict[str, tf.Tensor],
    seed: tf.Tensor,
    sequence_keys: tf.Tensor,
    neighbour_dims: int | None = None,
) -> tf.Tensor:
    """Returns the order in which targets are drawn, `[B, N_T]` int32.

    Target `order[b, k]` of sequence b is drawn in step k. Each sequence has one order, the same for
    all its samples; masked targets come last.

    Args:
        name: "given"; "random", a function of seed and key; or "nearest", by the distance to the
            nearest observed context point.
        batch: a prepared batch.
        seed: int64 scalar.
        sequence_keys: `[B]` int64.
        neighbour_dims: how many leading dimensions of x define the distance. None: all.
    """
    mask = batch["target_mask"]
    shape = tf.shape(mask)
    order = tf.broadcast_to(tf.range(shape[1]), shape)
    if name == "random":
        noise = order_noise(seed, sequence_keys[:, tf.newaxis], order)
        order = tf.argsort(noise, axis=-1, stable=True)
    elif name == "nearest":
        x_target = batch["x_target"][..., :neighbour_dims]
        x_context = batch["x_context"][..., :neighbour_dims]
        difference = x_target[:, :, tf.newaxis] - x_context[:, tf.newaxis]
        distance = tf.reduce_sum(tf.square(difference), axis=-1)
        distance = tf.where(batch["context_mask"][:, tf.newaxis], distance, tf.float32.max)
        # Without any context every target is equally far.
        far = tf.fill(tf.stack([shape[0], shape[1], 1]), tf.float32.max)
        nearest = tf.reduce_min(tf.concat([distance, far], axis=-1), axis=-1)
        order = tf.argsort(nearest, axis=-1, stable=True)
    hidden = tf.cast(~tf.gather(mask, order, batch_dims=1), tf.int32)
    return tf.gather(order, tf.argsort(hidden, axis=-1, stable=True), batch_dims=1)
