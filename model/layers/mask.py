"""The mask (paper, section "Training"): who may look at whom.

Context points see the observed context points, themselves too. Target i sees the observed context
and the observed targets before it, and not itself. Context queries look at context columns only,
so the part of the score matrix that is masked for everyone is never made.
"""

import tensorflow as tf


def context_visibility(context_mask: tf.Tensor) -> tf.Tensor:
    """Returns what context rows see, `[B, 1, N_C]` bool, from `context_mask` `[B, N_C]`."""
    return context_mask[:, tf.newaxis, :]


def target_visibility(context_mask: tf.Tensor, target_seen: tf.Tensor) -> tf.Tensor:
    """Returns what target rows see, `[B, N_T, N]` bool.

    Args:
        context_mask: `[B, N_C]` bool.
        target_seen: `[B, N_T]` bool, the targets that later ones may see.
    """
    num_target = tf.shape(target_seen)[1]
    numbers = tf.range(num_target)
    earlier = numbers[tf.newaxis, :] < numbers[:, tf.newaxis]
    targets = earlier[tf.newaxis] & target_seen[:, tf.newaxis, :]
    shape = [tf.shape(context_mask)[0], num_target, tf.shape(context_mask)[1]]
    context = tf.broadcast_to(context_mask[:, tf.newaxis, :], shape)
    return tf.concat([context, targets], axis=-1)
