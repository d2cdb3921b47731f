"""Seeds that differ from replica to replica."""

import keras
import tensorflow as tf


def replica_number() -> tf.Tensor | int | None:
    """Returns which replica this is under `tf.distribute`; None with one, or outside of all."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return None
    context = tf.distribute.get_replica_context()
    return None if context is None else context.replica_id_in_sync_group


def next_seed(generator: keras.random.SeedGenerator) -> tf.Tensor:
    """Draws a seed for stateless random numbers: two integers.

    Under `tf.distribute` each replica gets another seed, so that row b of one replica does not
    share its noise with row b of another. With one replica it is the next seed of the generator.
    """
    seed = generator.next()
    number = replica_number()
    if number is None:
        return seed
    return tf.random.experimental.stateless_fold_in(tf.cast(seed, tf.int32), number)
