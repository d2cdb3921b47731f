"""Attention between delays instead of rows: what repeats itself after a period is averaged."""

import math
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.model.layers.dense import FAN_IN_VARIANCE, apply_dense, seeded_dense, within_range
from taylorformer.model.layers.rows import first_rows


def correlations(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Correlates two series at every delay, on a circle.

    `R(tau) = sum_t query_{t + tau} key_t`, t + tau modulo L, averaged over the columns: by the fast
    Fourier transform of the query and the conjugate one of the key (Wu et al., "Autoformer", 2021,
    equation 8). As in the authors' code, it is a sum over time, not a mean.

    Example:
        >>> import tensorflow as tf
        >>> query = tf.constant([[[0.0], [0.0], [1.0], [0.0]]])
        >>> key = tf.constant([[[1.0], [0.0], [0.0], [0.0]]])
        >>> [round(float(number), 5) + 0.0 for number in correlations(query, key)[0]]
        [0.0, 0.0, 1.0, 0.0]

    Args:
        query: `[B, L, C]`.
        key: `[B, L, C]`.

    Returns:
        `[B, L]`, float32, one number for each of the delays 0 .. L - 1.
    """
    product = _spectra(query) * tf.math.conj(_spectra(key))
    # The transform is linear: the mean over columns comes first, and one inverse is enough.
    return _inverse(tf.reduce_mean(product, axis=1), query)


def delay_weights(correlation: tf.Tensor, count: Any, shared: bool) -> tf.Tensor:
    """Takes the softmax of the largest correlations.

    Example:
        >>> import tensorflow as tf
        >>> correlation = tf.math.log([[2.0, 1.0, 6.0, 1.0]])
        >>> [f"{weight:.2f}" for weight in delay_weights(correlation, 2, shared=False)[0]]
        ['0.25', '0.00', '0.75', '0.00']

    Args:
        correlation: `[B, L]`.
        count: k, how many delays have a weight, 1 .. L.
        shared: the delays of the whole batch are those with the largest mean correlation over the
            batch, as in the authors' code in training; only the weights are those of a sequence.
            Otherwise each sequence has its k largest.

    Returns:
        `[B, L]`, float32: weights that add up to 1, and 0 at other delays.
    """
    ranked = tf.reduce_mean(correlation, axis=0, keepdims=True) if shared else correlation
    delays = tf.math.top_k(tf.stop_gradient(ranked), count, sorted=False).indices
    chosen = tf.one_hot(delays, tf.shape(correlation)[1], on_value=True, off_value=False)
    chosen = tf.reduce_any(tf.cast(chosen, tf.bool), axis=1)
    weights = tf.nn.softmax(tf.where(chosen, correlation, correlation.dtype.min))
    return tf.where(chosen, weights, 0.0)


def aggregate(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Averages a series over delays: `sum_tau weights_tau values_{t + tau}`, t + tau modulo L.

    It is the sum of the rolled series in equation 6 of Autoformer (Wu et al., 2021), as a
    correlation of values and weights: no copy of the series is made for each delay.

    Example:
        >>> import tensorflow as tf
        >>> rows = aggregate(tf.constant([[[1.0], [2], [3], [4]]]), tf.constant([[0.0, 1, 0, 0]]))
        >>> [round(float(row[0]), 5) for row in rows[0]]
        [2.0, 3.0, 4.0, 1.0]

    Args:
        values: `[B, L, C]`.
        weights: `[B, L]`, one for each delay.

    Returns:
        `[B, L, C]`, float32.
    """
    of_weights = _spectra(weights[..., tf.newaxis])
    rows = _inverse(_spectra(values) * tf.math.conj(of_weights), values)
    return tf.ensure_shape(tf.transpose(rows, [0, 2, 1]), values.shape)


def _spectra(rows: tf.Tensor) -> tf.Tensor:
    """Transforms `[B, L, C]` over time to `[B, C, L / 2 + 1]`, complex64."""
    return tf.signal.rfft(tf.transpose(tf.cast(rows, tf.float32), [0, 2, 1]))


def _inverse(spectra: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Transforms `[.., L / 2 + 1]` back to `[.., L]`, L that of `like`, `[B, L, C]`."""
    length = like.shape[1]
    return tf.signal.irfft(spectra, [tf.shape(like)[1] if length is None else length])


@keras.saving.register_keras_serializable("taylorformer")
class AutoCorrelation(keras.layers.Layer):
    """Finds the delays at which a query looks most like a key, and averages the values over them.

    Queries, keys and values are projected; `correlations` are averaged over heads and their
    columns, so that heads share their delays; the `floor(factor log L)` largest (at least one) get
    the softmax of their correlations as weights, and the output is a projection of `aggregate` (Wu
    et al., "Autoformer", 2021, equations 6 and 7). In training the delays are those of the mean
    over the batch, a choice of the authors for speed; otherwise those of each sequence, whose
    output is then independent of its batch. Correlations, weights and sums over delays are float32
    under every dtype policy.

    Keys and values of another length are cut to that of the query, or padded with zeros at the end.
    The query has no bias: it would add one number to the correlations at all delays, which changes
    neither the largest ones nor their softmax. So would one of the key, unless zeros follow it:
    `key_bias` is for keys of fewer rows than the query.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 5, 3], seed=(1, 2))
        >>> layer = AutoCorrelation(num_heads=2, head_dim=4, width=6, seed=0)
        >>> layer(rows, rows[:, :4], rows[:, :4]).shape
        TensorShape([2, 5, 6])

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of the output.
        factor: c of `c log L`, above 0; the paper has 1 to 3.
        use_bias: biases of the values and of the output.
        key_bias: a bias of the keys.
        seed: for the first weights. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        factor: float = 1.0,
        use_bias: bool = True,
        key_bias: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.head_dim = check_integer("head_dim", head_dim, 1)
        self.width = check_integer("width", width, 1)
        self.factor = check_number("factor", factor, above=0)
        self.use_bias = check_boolean("use_bias", use_bias)
        self.key_bias = check_boolean("key_bias", key_bias)
        self.seed = check_optional_integer("seed", seed, 0)
        projection = self.num_heads * self.head_dim
        self.query_dense, self.key_dense, self.value_dense, self.output_dense = (
            seeded_dense(
                units,
                self.seed,
                child,
                self.dtype_policy,
                name,
                use_bias=bias,
                variance=FAN_IN_VARIANCE,
            )
            for child, (name, units, bias) in enumerate(
                (
                    ("query", projection, False),
                    ("key", projection, self.key_bias),
                    ("value", projection, self.use_bias),
                    ("output", self.width, self.use_bias),
                )
            )
        )

    def build(self, query_shape: Any, key_shape: Any, value_shape: Any) -> None:
        """Builds the four projections from the last sizes of query, key and value."""
        self.query_dense.build((None, None, query_shape[-1]))
        self.key_dense.build((None, None, key_shape[-1]))
        self.value_dense.build((None, None, value_shape[-1]))
        self.output_dense.build((None, None, self.num_heads * self.head_dim))
        self.built = True

    def call(
        self, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Averages values over delays.

        Args:
            query: `[B, L, F_q]`.
            key: `[B, S, F_k]`.
            value: `[B, S, F_v]`.
            training: choose the delays for the batch, not for each sequence.

        Returns:
            `[B, L, width]` in the compute dtype.
        """
        queries = self._project(self.query_dense, query)
        keys = _with_length_of(queries, self._project(self.key_dense, key))
        values = _with_length_of(queries, self._project(self.value_dense, value))
        correlation = correlations(queries, keys)
        weights = delay_weights(correlation, self._num_delays(queries), shared=training)
        rows = aggregate(values, weights)
        return self._project(self.output_dense, rows)

    def _project(self, dense: keras.layers.Dense, rows: tf.Tensor) -> tf.Tensor:
        return apply_dense(dense, within_range(rows, self.compute_dtype))

    def _num_delays(self, rows: tf.Tensor) -> Any:
        """Returns `floor(factor log L)`, at least 1 and at most L."""
        length = rows.shape[1]
        if length is not None:
            return max(1, min(length, math.floor(self.factor * math.log(length))))
        length = tf.shape(rows)[1]
        count = tf.constant(self.factor, tf.float64) * tf.math.log(tf.cast(length, tf.float64))
        # In floating point: a huge factor ends at L before it is an integer.
        count = tf.minimum(count, tf.cast(length, tf.float64))
        return tf.maximum(tf.cast(tf.floor(count), tf.int32), 1)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "factor": self.factor,
            "use_bias": self.use_bias,
            "key_bias": self.key_bias,
            "seed": self.seed,
        }


def _with_length_of(like: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Cuts `[B, S, C]` to the length of `like`, or pads it with zeros at the end."""
    length = like.shape[1]
    if length is not None and length == rows.shape[1]:
        return rows
    wanted, given = tf.shape(like)[1], tf.shape(rows)[1]
    kept = first_rows(rows, tf.minimum(wanted, given), axis=1)
    padded = tf.pad(kept, [[0, 0], [0, tf.maximum(wanted - given, 0)], [0, 0]])
    padded.set_shape([rows.shape[0], length, rows.shape[2]])
    return padded
