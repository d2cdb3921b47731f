"""Random orders of the targets (paper, section "Training": the shuffling)."""

import tensorflow as tf

from taylorformer.data_wrangler.batch import as_prepared


def permute_targets(batch: dict[str, tf.Tensor], order: tf.Tensor) -> dict[str, tf.Tensor]:
    """Moves x, y and mask of the targets together.

    Args:
        batch: a prepared batch; every entry whose name ends in `_target` or is `target_mask` is
            moved.
        order: `[B, N_T]` integers; target k of the result is target `order[b, k]`.

    Returns:
        A prepared batch.
    """
    return as_prepared(
        {
            name: tf.gather(values, order, batch_dims=1)
            if name.endswith("_target") or name == "target_mask"
            else values
            for name, values in batch.items()
        }
    )


def shuffle_targets(
    batch: dict[str, tf.Tensor], num_permutations: int, seed: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Repeats every sequence with `num_permutations` random orders of its targets.

    Args:
        batch: a prepared batch of B sequences.
        num_permutations: m >= 1.
        seed: two integers for stateless random numbers.

    Returns:
        A prepared batch of m B sequences: all of the first permutation, then all of the second, ..
    """
    repeated = {
        name: tf.tile(values, [num_permutations] + [1] * (len(values.shape) - 1))
        for name, values in batch.items()
    }
    noise = tf.random.stateless_uniform(tf.shape(repeated["target_mask"]), seed)
    return permute_targets(repeated, tf.argsort(noise, axis=-1))
