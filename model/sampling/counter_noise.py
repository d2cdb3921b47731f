"""Counter-based random numbers: a function of seed, key, sample, sequence and target.

The noise of (sample s, sequence b, target i) depends on (seed, key of b, s, i) only, never on how
many samples, sequences or targets are drawn together. `tf.random.stateless_normal` does not do
that: its numbers depend on the shape asked for, and differ between XLA and plain graphs. Here the
generator Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) runs
in integer operations, which are the same everywhere.
"""

import math

import tensorflow as tf

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_STREAM_BITS = 24  # the stream is the high byte of a word whose rest is the number of a target
_ORDER_STREAM = 0xFF
_MOST_NUMBERS = 4 * _ORDER_STREAM
_LATENT_TARGET = (1 << _STREAM_BITS) - 1  # the noise of a latent takes a number of no target


def _multiply(factor: int, word: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the high and the low word of a 32 x 32 bit product, without overflow in int64."""
    low = factor * tf.bitwise.bitwise_and(word, 0xFFFF)
    high = factor * _shift_right(word, 16)
    upper = _shift_right(high + _shift_right(low, 16), 16)
    lower = low + 0x10000 * tf.bitwise.bitwise_and(high, 0xFFFF)
    return upper, tf.bitwise.bitwise_and(lower, _MASK)


def _shift_right(word: tf.Tensor, bits: int) -> tf.Tensor:
    return tf.bitwise.right_shift(word, tf.constant(bits, word.dtype))


def philox(
    counter: tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor], key: tuple[tf.Tensor, tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Philox-4x32-10 on int64 tensors that hold 32-bit words; shapes broadcast.

    Returns:
        Four int64 tensors of 32-bit words.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    xor = tf.bitwise.bitwise_xor
    for _ in range(_ROUNDS):
        high0, low0 = _multiply(_MULTIPLIERS[0], c0)
        high1, low1 = _multiply(_MULTIPLIERS[1], c2)
        c0, c1, c2, c3 = xor(xor(high1, c1), k0), low1, xor(xor(high0, c3), k1), low0
        k0 = tf.bitwise.bitwise_and(k0 + _KEY_STEPS[0], _MASK)
        k1 = tf.bitwise.bitwise_and(k1 + _KEY_STEPS[1], _MASK)
    return c0, c1, c2, c3


def _words(value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits int64 into its low and its high 32-bit word."""
    high = _shift_right(value, 32)
    return tf.bitwise.bitwise_and(value, _MASK), tf.bitwise.bitwise_and(high, _MASK)


def _draw(
    seed: tf.Tensor, key: tf.Tensor, sample: tf.Tensor, target: tf.Tensor, stream: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    seed, key, sample, target = (tf.cast(part, tf.int64) for part in (seed, key, sample, target))
    shape = tf.broadcast_dynamic_shape(
        tf.shape(key), tf.broadcast_dynamic_shape(tf.shape(sample), tf.shape(target))
    )
    key, sample, target = (tf.broadcast_to(part, shape) for part in (key, sample, target))
    return philox((sample, target + (stream << _STREAM_BITS), *_words(key)), _words(seed))


def normal_noise(
    seed: tf.Tensor, key: tf.Tensor, sample: tf.Tensor, target: tf.Tensor, size: int
) -> tf.Tensor:
    """Standard normal noise for (sample, sequence, target).

    Args:
        seed: int64 scalar.
        key: integers, the key of each sequence.
        sample: integers, the number of each sample.
        target: integers, the number of each target. The shapes of `key`, `sample` and `target`
            broadcast to one shape.
        size: D_y, how many numbers each target gets, at most 1020.

    Returns:
        float32, the broadcast shape with `size` appended.

    Raises:
        ValueError: D_y below 1 or above 1020.
    """
    if not 1 <= size <= _MOST_NUMBERS:
        raise ValueError(f"D_y must be from 1 to {_MOST_NUMBERS} to draw. Received: D_y = {size}")
    numbers: list[tf.Tensor] = []
    for stream in range((size + 3) // 4):
        numbers += _normals(_draw(seed, key, sample, target, stream))
    return tf.stack(numbers[:size], axis=-1)


def _normals(words: tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]) -> list[tf.Tensor]:
    """Turns four 32-bit words into four normal numbers (Box and Muller)."""
    # 24 bits and a half step: in (0, 1], so that the logarithm stays finite.
    uniform = [(tf.cast(_shift_right(word, 8), tf.float32) + 0.5) * 2.0**-24 for word in words]
    numbers: list[tf.Tensor] = []
    for first, second in (uniform[:2], uniform[2:]):
        radius = tf.sqrt(-2.0 * tf.math.log(first))
        angle = 2.0 * math.pi * second
        numbers += [radius * tf.cos(angle), radius * tf.sin(angle)]
    return numbers


def latent_noise(seed: tf.Tensor, key: tf.Tensor, sample: tf.Tensor, size: int) -> tf.Tensor:
    """Standard normal noise for the latent variable of (sample, sequence).

    It shares no number with `normal_noise` of the same seed, key and sample: it takes the numbers
    that a target with the number 2^24 - 1 would have.

    Args:
        seed: int64 scalar.
        key: integers, the key of each sequence.
        sample: integers, the number of each sample. The shapes of `key` and `sample` broadcast.
        size: how many numbers each latent variable has, at most 1020.

    Returns:
        float32, the broadcast shape with `size` appended.

    Raises:
        ValueError: `size` below 1 or above 1020.
    """
    if not 1 <= size <= _MOST_NUMBERS:
        raise ValueError(f"`size` must be from 1 to {_MOST_NUMBERS} to draw. Received: size={size}")
    # All streams at once, as one more axis: there are many, and a loop would repeat the graph.
    streams = tf.range((size + 3) // 4, dtype=tf.int64)
    target = _LATENT_TARGET + tf.bitwise.left_shift(streams, tf.constant(_STREAM_BITS, tf.int64))
    words = _draw(seed, key[..., tf.newaxis], sample[..., tf.newaxis], target, 0)
    numbers = tf.stack(_normals(words), axis=-1)
    shape = tf.shape(numbers)
    flat = tf.reshape(numbers, tf.concat([shape[:-2], [4 * ((size + 3) // 4)]], axis=0))
    return flat[..., :size]


def order_noise(seed: tf.Tensor, key: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Random integers by which to order targets; shapes of `key` and `target` broadcast."""
    return _draw(seed, key, tf.zeros_like(target), target, _ORDER_STREAM)[0]
