"""Dropout whose mask is a function of a seed and of the position of each number.

The masks of `keras.layers.Dropout` come from `tf.random.stateless_uniform`, which takes more time
under XLA on a CPU than the rest of a training step, and differ between XLA and plain graphs. Here
a counter is hashed by 32-bit integer operations that wrap around, which vectorise and are the same
everywhere. Each hashed word decides about two numbers, by 16 bits each.
"""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_number, plain_number
from taylorformer.model.replica_seed import replica_number

_STEPS = 2**16
"""Rates are rounded to multiples of 1 / 65536, so that 16 bits decide about one number."""
_LANES = (0x9E3779B9, 0xBB67AE85)
"""What the two words of a key start from; the key steps of Philox (see `counter_noise`)."""
_FOLD = 0x85EBCA6B


def _constant(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint32)


def _xor_shifted(words: tf.Tensor, bits: int) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(words, tf.bitwise.right_shift(words, _constant(bits)))


def _hash(words: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Mixes all bits of uint32 words; `key`, which broadcasts, enters between the two halves.

    For each key it is a permutation of the words, the hash `lowbias32` of Wellons ("Prospecting for
    hash functions", 2018), whose form is that of the last step of MurmurHash3 (Appleby, 2011).
    """
    words = _xor_shifted(_xor_shifted(words, 16) * _constant(0x7FEB352D), 15)
    words = tf.bitwise.bitwise_xor(words, key) * _constant(0x846CA68B)
    return _xor_shifted(words, 16)


def _key(seed: tf.Tensor) -> tf.Tensor:
    """Turns the seed of one call, `[2]`, into a key: two words that all bits of it reach."""
    # The low and the high words of two integers: [2, 2], or [2] where they have 32 bits.
    words = tf.bitcast(seed, tf.uint32)
    if words.shape.rank == 2:
        words = tf.bitwise.bitwise_xor(words[:, 0], words[:, 1] * _constant(_FOLD))
    key = _hash(tf.constant(_LANES, tf.uint32) + words[0], words[1])
    number = replica_number()
    if number is not None:
        key = _hash(key, tf.cast(number, tf.uint32))
    # Once more, so that neighbouring steps have keys that differ in every bit.
    return _hash(key, tf.constant(_LANES[::-1], tf.uint32))


def keep_mask(seed: tf.Tensor, shape: tf.Tensor, drop_steps: int) -> tf.Tensor:
    """Draws which numbers are kept, the same in plain graphs, in XLA and without a graph.

    Args:
        seed: `[2]`, integers, as `keras.random.SeedGenerator.next` returns.
        shape: int32, the sizes of the mask, at most 2^32 numbers.
        drop_steps: the rate of dropout in units of 1 / 65536.

    Returns:
        Booleans of that shape.
    """
    key = _key(seed)
    count = tf.reduce_prod(shape)
    counter = tf.bitcast(tf.range(count // 2 + count % 2), tf.uint32)
    halves = tf.bitcast(_hash(counter + key[0], key[1]), tf.uint16)
    bits = tf.reshape(tf.reshape(halves, [-1])[:count], shape)
    return bits >= tf.constant(drop_steps, tf.uint16)


@keras.saving.register_keras_serializable("taylorformer")
class Dropout(keras.layers.Dropout):
    """Sets random numbers to 0 in training, and divides the others by the share that is kept.

    It stands in for `keras.layers.Dropout`, of which it keeps the state (its seed, which moves by
    one at each call in training), and is quicker, most of all under XLA. The rate is rounded to a
    multiple of 1 / 65536, and so is the share by which numbers are divided, so that means are kept
    exactly. The mask is a function of the seed, of how often the layer was called in training and
    of the position of a number in the input. Under `tf.distribute` replicas draw different masks.

    Example:
        >>> import tensorflow as tf
        >>> layer = Dropout(0.25, seed=0)
        >>> dropped = layer(tf.ones([4, 100]), training=True)
        >>> [f"{number:.3f}" for number in sorted(set(dropped.numpy().ravel()))]
        ['0.000', '1.333']
        >>> bool(tf.reduce_all(layer(tf.ones([4, 100])) == 1))
        True

    Args:
        rate: the share of numbers that become 0, in [0, 1). With a rate that rounds to 0 the
            layer returns its input.
        seed: of the masks. None: at random.

    Raises:
        TypeError, ValueError: a rate outside its range.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        rate = check_number("rate", rate, minimum=0, below=1)
        super().__init__(rate, seed=plain_number(seed), **kwargs)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the input, in training with dropout: the same shape and dtype.

        Args:
            inputs: `[..]`, floating point, any shape.
            training: use dropout.
        """
        drop_steps = min(round(self.rate * _STEPS), _STEPS - 1)
        if not training or self.rate == 0:
            return inputs
        seed = self.seed_generator.next()
        if drop_steps == 0:
            return inputs
        inputs = tf.convert_to_tensor(inputs)
        mask = keep_mask(seed, tf.shape(inputs), drop_steps)
        scale = tf.constant(_STEPS / (_STEPS - drop_steps), inputs.dtype)

        # Of the mask and not of numbers, so that a tape keeps one byte a number.
        @tf.custom_gradient
        def dropped(values: tf.Tensor) -> Any:
            def times_mask(numbers: tf.Tensor) -> tf.Tensor:
                return numbers * (tf.cast(mask, numbers.dtype) * scale)

            return times_mask(values), times_mask

        return dropped(inputs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["noise_shape"]
        return config
