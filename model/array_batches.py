"""Batches of arrays: once, or without an end and from any batch on, for training that resumes.

Keras makes batches of arrays too, but it takes points that all sequences share for one sequence.
"""

from typing import Any

import tensorflow as tf

from taylorformer.data_wrangler.batch import SHARED_KEYS

_ENDLESS = 2**31
"""More passes over the arrays than anyone trains."""
_BATCHES_AHEAD = 2
"""Gathering a batch takes far less than a step."""


def count_batches(parts: Any, batch_size: int) -> int:
    """Returns how many batches one pass over n sequences has.

    Args:
        parts: `inputs` and `y_target` of the data contract, and maybe weights `[n]`: arrays of n
            sequences, of which `inputs` may have 1 row that all share.
        batch_size: B.

    Raises:
        ValueError: there is no sequence at all.
    """
    count = _count(parts)
    if not count:
        raise ValueError("`x` must hold at least one sequence. Received: none")
    return -(-count // batch_size)


def array_batches(
    parts: Any, batch_size: int, seed: int | None, first_batch: int
) -> tf.data.Dataset:
    """Makes batches of arrays, pass after pass; the last batch of a pass may be smaller.

    Batch i is a function of the arguments and of i alone: whatever `first_batch` is, the same
    batches follow one another.

    Args:
        parts: see `count_batches`.
        batch_size: B.
        seed: each pass is shuffled by the seed and its number. None: all are in the given order.
        first_batch: how many batches of the endless row to leave out.
    """
    parts = tf.nest.map_structure(tf.convert_to_tensor, parts)
    count = _count(parts)
    first_pass, left_out = divmod(first_batch, count_batches(parts, batch_size))

    def one_pass(number: tf.Tensor) -> tf.data.Dataset:
        start = tf.where(number == first_pass, tf.constant(left_out * batch_size, tf.int64), 0)
        indices = tf.data.Dataset.range(start, count)
        if seed is not None:
            key = tf.stack([tf.constant(seed, tf.int64), number])
            indices = indices.map(lambda i: tf.random.experimental.index_shuffle(i, key, count - 1))
        return indices.batch(batch_size).map(lambda rows: _rows_of(parts, rows, count))

    passes = tf.data.Dataset.range(first_pass, first_pass + _ENDLESS)
    # There is nothing to tune, and the end of `fit` would wait for the thread that tunes: it wakes
    # up at doubling intervals, so that the wait is up to as long as the training was.
    options = tf.data.Options()
    options.autotune.enabled = False
    return passes.flat_map(one_pass).prefetch(_BATCHES_AHEAD).with_options(options)


def batches_once(parts: Any, batch_size: int) -> tf.data.Dataset:
    """Makes the batches of one pass over arrays, in the given order; the last may be smaller.

    Args:
        parts: see `count_batches`; `y_target` may be left out.
        batch_size: B.
    """
    parts = tf.nest.map_structure(tf.convert_to_tensor, parts)
    count = _count(parts)
    rows = tf.data.Dataset.range(count).batch(batch_size)
    return rows.map(lambda rows: _rows_of(parts, rows, count)).prefetch(tf.data.AUTOTUNE)


def _rows_of(parts: Any, rows: tf.Tensor, count: int) -> Any:
    """Takes some of n sequences; what all of them share stays as it is."""
    inputs, *others = parts
    inputs = {
        key: part
        if count > 1 and key in SHARED_KEYS and part.shape[0] == 1
        else tf.gather(part, rows)
        for key, part in inputs.items()
    }
    return inputs if not others else (inputs, *(tf.gather(part, rows) for part in others))


def _count(parts: Any) -> int:
    return int(tf.shape(parts[0]["y_context"])[0])
