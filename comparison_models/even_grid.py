"""Rows of a sequence on an even grid of times: a check of it, and interpolation onto one."""

import tensorflow as tf

LARGEST_STEP_ERROR = 0.01
"""How far a time may be from its grid, in steps: float32 rounds times of 1,000 steps to 0.0001."""

_NO_TIME = tf.float32.max / 4
"""A time later than all others, whose differences are finite."""


def step_error(times: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Measures how far times are from an even grid.

    The grid runs from the first observed row to the last one. Only observed rows are read.

    Example:
        >>> import tensorflow as tf
        >>> times = tf.constant([[0.0, 1.0, 2.0], [0.0, 1.5, 2.0]])
        >>> step_error(times, tf.ones([2, 3], tf.bool)).numpy().tolist()
        [0.0, 0.5]

    Args:
        times: `[B, N]`.
        mask: `[B, N]` bool, the observed rows.

    Returns:
        `[B]`: the largest distance of a time from its grid, in steps. Infinite where times do not
        rise; 0 where less than two rows are observed.
    """
    start, step, first, has_two = _grid_of(times, mask)
    numbers = tf.cast(tf.range(tf.shape(times)[1]) - first[:, tf.newaxis], tf.float32)
    expected = start[:, tf.newaxis] + step[:, tf.newaxis] * numbers
    distance = tf.where(mask, tf.abs(times - expected), 0.0)
    largest = tf.reduce_max(distance, axis=1)
    rises = step > 0
    error = tf.where(rises, largest / tf.where(rises, step, 1.0), tf.constant(float("inf")))
    return tf.where(has_two, error, 0.0)


def even_times(times: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns N even times `[B, N]` from the first observed time to the last one.

    Example:
        >>> import tensorflow as tf
        >>> times = tf.constant([[0.0, 1.5, 2.0]])
        >>> even_times(times, tf.ones([1, 3], tf.bool)).numpy().tolist()
        [[0.0, 1.0, 2.0]]

    Args:
        times: `[B, N]`, rising at observed rows.
        mask: `[B, N]` bool.
    """
    count = tf.shape(times)[1]
    start = tf.reduce_min(tf.where(mask, times, _NO_TIME), axis=1)
    end = tf.reduce_max(tf.where(mask, times, -_NO_TIME), axis=1)
    start, end = (tf.where(tf.reduce_any(mask, axis=1), time, 0.0) for time in (start, end))
    shares = tf.cast(tf.range(count), tf.float32) / tf.cast(tf.maximum(count - 1, 1), tf.float32)
    return start[:, tf.newaxis] + (end - start)[:, tf.newaxis] * shares


def interpolate_rows(
    times: tf.Tensor, mask: tf.Tensor, rows: tf.Tensor, new_times: tf.Tensor
) -> tf.Tensor:
    """Interpolates rows linearly to other times; before the first and after the last they stay.

    Example:
        >>> import tensorflow as tf
        >>> times, rows = tf.constant([[0.0, 2.0]]), tf.constant([[[1.0], [5.0]]])
        >>> new_times = tf.constant([[-1.0, 0.5, 2.0, 3.0]])
        >>> interpolate_rows(times, tf.ones([1, 2], tf.bool), rows, new_times)[0, :, 0].numpy()
        array([1., 2., 5., 5.], dtype=float32)

    Args:
        times: `[B, N]`, in any order.
        mask: `[B, N]` bool; only observed rows are read.
        rows: `[B, N, F]`, finite, also where they are masked.
        new_times: `[B, M]`.

    Returns:
        `[B, M, F]`; 0 where nothing is observed.
    """
    gaps = new_times[..., tf.newaxis] - times[:, tf.newaxis]
    hidden = ~mask[:, tf.newaxis]
    # The latest row that is not later, and the earliest one that is not earlier.
    before = tf.where(hidden | (gaps < 0), _NO_TIME, gaps)
    after = tf.where(hidden | (gaps > 0), _NO_TIME, -gaps)
    left, right = (_take_nearest(distance, rows) for distance in (before, after))
    to_left, to_right = tf.reduce_min(before, axis=-1), tf.reduce_min(after, axis=-1)
    has_left, has_right = to_left < _NO_TIME, to_right < _NO_TIME
    inside = has_left & has_right
    span = tf.where(inside & (to_left + to_right > 0), to_left + to_right, 1.0)
    share = tf.where(inside, to_left / span, tf.where(has_left, 0.0, 1.0))[..., tf.newaxis]
    between = left + share * (right - left)
    return tf.where((has_left | has_right)[..., tf.newaxis], between, 0.0)


def _take_nearest(distances: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    return tf.gather(rows, tf.argmin(distances, axis=-1, output_type=tf.int32), batch_dims=1)


def _grid_of(
    times: tf.Tensor, mask: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the start and the step of the grid, its first row, and whether there are two rows."""
    numbers = tf.range(tf.shape(times)[1])
    count = tf.shape(times)[1]
    first = tf.minimum(tf.reduce_min(tf.where(mask, numbers, count), axis=1), count - 1)
    last = tf.maximum(tf.reduce_max(tf.where(mask, numbers, -1), axis=1), 0)
    start = tf.gather(times, first, batch_dims=1)
    steps = tf.cast(tf.maximum(last - first, 1), tf.float32)
    return start, (tf.gather(times, last, batch_dims=1) - start) / steps, first, last > first
