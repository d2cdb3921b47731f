"""The loop in a graph over chunks of samples and sequences."""

from collections.abc import Callable

import tensorflow as tf


def draw_in_chunks(
    draw: Callable[..., tf.Tensor],
    batch: dict[str, tf.Tensor],
    order: tf.Tensor,
    sequence_keys: tf.Tensor,
    num_samples: int | tf.Tensor,
    samples_at_once: tf.Tensor,
    sequences_at_once: tf.Tensor,
) -> tf.Tensor:
    """Draws S samples of every sequence, as many at once as memory allows; sizes may be unknown.

    Args:
        draw: returns `[S', B', N_T, D_y]`, given the batch, the order and the keys of B' of the
            sequences and the numbers of S' of the samples.
        batch: a prepared batch.
        order: `[B, N_T]`, the order in which targets are drawn.
        sequence_keys: `[B]`.
        num_samples: S.
        samples_at_once: how many samples, each of one sequence, may be drawn at once, int64.
        sequences_at_once: how many sequences may be drawn at once, int64.

    Returns:
        `[S, B, N_T, D_y]`.
    """
    y_dims = batch["y_context"].shape[-1]
    num_sequences, num_target = (tf.shape(batch["x_target"], tf.int64)[axis] for axis in (0, 1))
    num_samples = tf.cast(num_samples, tf.int64)
    block = tf.minimum(samples_at_once // tf.maximum(num_samples, 1), sequences_at_once)
    block = tf.clip_by_value(block, 1, tf.maximum(num_sequences, 1))
    chunk = tf.clip_by_value(samples_at_once // block, 1, num_samples)
    spec = tf.TensorSpec([None, None, None, y_dims])

    # One sequence more, of which nothing is observed: it fills up a last block that is too short,
    # and is drawn where there is no sequence at all, as a loop over nothing has no shape.
    batch, order, sequence_keys = tf.nest.map_structure(
        _with_a_row_of_zeros, (batch, order, sequence_keys)
    )

    def some_sequences(first: tf.Tensor) -> tf.Tensor:
        rows = tf.minimum(first + tf.range(block), num_sequences)
        arguments = (
            {name: tf.gather(value, rows) for name, value in batch.items()},
            tf.gather(order, rows),
            tf.gather(sequence_keys, rows),
        )

        def some_samples(number: tf.Tensor) -> tf.Tensor:
            drawn = draw(*arguments, number + tf.range(chunk))
            return tf.reshape(drawn, tf.stack([chunk, block, num_target, y_dims]))

        numbers = tf.range(0, num_samples, chunk, dtype=tf.int64)
        drawn = tf.map_fn(some_samples, numbers, fn_output_signature=spec, parallel_iterations=1)
        drawn = tf.reshape(drawn, tf.stack([-1, block, num_target, y_dims]))
        return tf.transpose(drawn[:num_samples], [1, 0, 2, 3])

    firsts = tf.range(0, tf.maximum(num_sequences, 1), block, dtype=tf.int64)
    drawn = tf.map_fn(some_sequences, firsts, fn_output_signature=spec, parallel_iterations=1)
    blocks = tf.shape(drawn, tf.int64)[0]
    drawn = tf.reshape(drawn, tf.stack([blocks * block, num_samples, num_target, y_dims]))
    return tf.transpose(drawn[:num_sequences], [1, 0, 2, 3])


def _with_a_row_of_zeros(values: tf.Tensor) -> tf.Tensor:
    row = tf.zeros(tf.concat([[1], tf.shape(values)[1:]], axis=0), values.dtype)
    return tf.concat([values, row], axis=0)
