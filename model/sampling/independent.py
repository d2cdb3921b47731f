"""Targets that are drawn all at once, independent of one another."""

from collections.abc import Mapping

import tensorflow as tf

from taylorformer.model.observed_density import observable
from taylorformer.model.sampling.counter_noise import normal_noise


def draw_independent(
    batch: Mapping[str, tf.Tensor],
    mean: tf.Tensor,
    scale: tf.Tensor,
    sample_numbers: tf.Tensor,
    sequence_keys: tf.Tensor,
    seed: tf.Tensor,
) -> tf.Tensor:
    """Draws `mean + scale noise`, moved to what would be observed.

    The noise is a function of (seed, key of b, s, i).

    Args:
        batch: a prepared batch, of which `target_mask` and `y_support` are read.
        mean: `[S, B, N_T, D_y]`, or `[B, N_T, D_y]` for all samples.
        scale: likewise.
        sample_numbers: `[S]`.
        sequence_keys: `[B]`.
        seed: int64 scalar.

    Returns:
        `[S, B, N_T, D_y]`; 0 at masked targets.
    """
    targets = tf.range(tf.shape(batch["target_mask"])[1])
    numbers = sample_numbers[:, tf.newaxis, tf.newaxis]
    noise = normal_noise(seed, sequence_keys[:, tf.newaxis], numbers, targets, mean.shape[-1])
    support = batch.get("y_support")
    support = None if support is None else support[:, tf.newaxis]
    drawn = observable(mean + scale * noise, support)
    return tf.where(batch["target_mask"][..., tf.newaxis], drawn, 0.0)
