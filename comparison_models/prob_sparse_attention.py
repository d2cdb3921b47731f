"""Attention of the queries that need it, the ProbSparse attention of the Informer."""

import math
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_optional_integer,
)
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention_core import attend
from taylorformer.model.layers.dense import (
    LARGEST_FLOAT16,
    apply_dense,
    seeded_dense,
    within_range,
)
from taylorformer.model.replica_seed import next_seed

_FIXED_SEED = (2012, 7436)
"""Of the keys that are sampled at inference."""


@keras.saving.register_keras_serializable("taylorformer")
class ProbSparseAttention(keras.layers.Layer):
    """Multi-head attention of a few queries; the others take the mean of the values.

    Of R queries, u = min(R, ceil(factor ln R)) attend to all N keys, separately in each head and
    sequence: those with the largest sparsity measure. It is estimated from
    U = min(N, ceil(factor ln N)) keys, sampled anew for each query with replacement (all keys
    where U = N), as `M(q) = max_j q k_j - mean_j q k_j`, over the sample j. A query whose scores
    are all alike has a small M: its attention is close to the mean of the values, which is what it
    takes (Zhou et al., "Informer", 2021, section "ProbSparse self-attention", algorithm 1).

    The mean is that of algorithm 1. The authors' code divides the sum over the sample by N, as if
    the scores of all other keys were 0. Then a number that is added to all scores of a query,
    which leaves its softmax as it is, changes M, and a query can be chosen for large scores that
    are all alike.

    Where `causal`, query i attends to keys 0 .. i, and a query that is not chosen takes the mean of
    values 0 .. i (the paper's cumulative sum is a mean but for its divisor). One thing is not
    causal: *which* queries are chosen depends on all queries and keys. The choice has no gradient,
    and for a given choice the output of row i is independent of all later rows.

    In training the sampled keys are drawn from a seed. At inference they are a fixed function of R
    and N, the same for all heads, sequences and batches. All R N scores are made for M, in one
    product and without gradients: for the lengths in use here that is less work than to gather
    U keys for each query.

    Example:
        >>> import tensorflow as tf
        >>> rows = tf.random.stateless_normal([2, 50, 3], seed=(1, 2))
        >>> attention = ProbSparseAttention(num_heads=2, head_dim=4, width=6, seed=0)
        >>> attention.num_chosen(50)
        20
        >>> attention(rows, rows, rows).shape
        TensorShape([2, 50, 6])

    Args:
        num_heads: H.
        head_dim: d, width of one head.
        width: width of the output.
        factor: how many queries are chosen and how many keys sampled, in units of the logarithm of
            their number.
        causal: each row sees itself and earlier rows only; R and N must be equal.
        seed: for the first weights and the keys that are sampled in training. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        factor: int = 5,
        causal: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.head_dim = check_integer("head_dim", head_dim, 1)
        self.width = check_integer("width", width, 1)
        self.factor = check_integer("factor", factor, 1)
        self.causal = check_boolean("causal", causal)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        projection, policy = self.num_heads * self.head_dim, self.dtype_policy
        self.query_dense = seeded_dense(projection, seed, 0, policy, "query")
        self.key_dense = seeded_dense(projection, seed, 1, policy, "key")
        self.value_dense = seeded_dense(projection, seed, 2, policy, "value")
        self.output_dense = seeded_dense(self.width, seed, 3, policy, "output")
        self.key_seeds = keras.random.SeedGenerator(child_seed(seed, 4), name="key_seeds")

    def build(self, query_shape: Any, key_shape: Any, value_shape: Any) -> None:
        """Builds the four projections from the last sizes of query, key and value."""
        self.query_dense.build((None, None, query_shape[-1]))
        self.key_dense.build((None, None, key_shape[-1]))
        self.value_dense.build((None, None, value_shape[-1]))
        self.output_dense.build((None, None, self.num_heads * self.head_dim))
        self.built = True

    def num_chosen(self, length: int | tf.Tensor) -> int | tf.Tensor:
        """Returns how many of `length` queries are chosen, or keys sampled.

        `min(length, ceil(factor ln(length)))`, and at least 1; a tensor for a tensor.
        """
        if isinstance(length, int):
            return min(length, max(1, math.ceil(self.factor * math.log(max(length, 1)))))
        logarithm = tf.math.log(tf.cast(tf.maximum(length, 1), tf.float64))
        count = tf.cast(tf.math.ceil(self.factor * logarithm), tf.int32)
        return tf.minimum(length, tf.maximum(1, count))

    def sampled_keys(
        self, num_queries: int | tf.Tensor, num_keys: int | tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns the indices of the keys from which M of each query is estimated.

        Args:
            num_queries: R.
            num_keys: N.
            training: drawn anew at each call, otherwise always the same for R and N.

        Returns:
            `[R, U]`, int32, from 0 to N - 1.
        """
        count = self.num_chosen(num_keys)
        seed = next_seed(self.key_seeds) if training else tf.constant(_FIXED_SEED)
        shape = tf.stack([num_queries, count])
        # The algorithm is named: by default it depends on the device.
        drawn = tf.random.stateless_uniform(
            shape, seed, minval=0, maxval=num_keys, dtype=tf.int32, alg="philox"
        )
        every = tf.broadcast_to(tf.range(count), shape)
        return tf.where(tf.equal(count, num_keys), every, drawn)

    def call(
        self, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Attends.

        Args:
            query: `[B, R, F_q]`.
            key: `[B, N, F_k]`.
            value: `[B, N, F_v]`.
            training: draw the sampled keys.

        Returns:
            `[B, R, width]` in the compute dtype.

        Raises:
            ValueError: `causal` with R other than N (in a graph an `InvalidArgumentError`).
        """
        queries = self._bounded(self._project(self.query_dense, query) * self.head_dim**-0.5)
        keys = self._bounded(self._project(self.key_dense, key))
        values = self._project(self.value_dense, value)
        num_queries, num_keys = _length(query), _length(key)
        if self.causal:
            self._check_lengths(num_queries, num_keys)
        count = self.num_chosen(num_queries)
        if isinstance(count, int) and count == num_queries:
            attended = attend(queries, keys, values, _earlier(num_keys) if self.causal else None)
        else:
            sample = self.sampled_keys(num_queries, num_keys, training)
            chosen = _most_active(queries, keys, sample, count)
            attended = self._attend_chosen(queries, keys, values, chosen)
        return self._finish(attended)

    def _attend_chosen(
        self, queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, chosen: tf.Tensor
    ) -> tf.Tensor:
        """Attends from the queries of given indices `[B, H, u]`; returns `[B, H, R, d]`."""
        some = tf.gather(queries, chosen, axis=2, batch_dims=2)
        attended = self._attend(some, keys, values, chosen)
        shape, number = tf.shape(queries), tf.shape(chosen)[2]
        # Rows of all sequences and heads as one list.
        first = tf.range(shape[0] * shape[1])[:, tf.newaxis] * shape[2]
        index = tf.reshape(first + tf.reshape(chosen, [-1, number]), [-1, 1])
        means = tf.broadcast_to(self._means(values), shape)
        rows = tf.tensor_scatter_nd_update(
            tf.reshape(means, [-1, self.head_dim]), index, tf.reshape(attended, [-1, self.head_dim])
        )
        return tf.ensure_shape(tf.reshape(rows, shape), queries.shape)

    def _attend(
        self, some: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, chosen: tf.Tensor
    ) -> tf.Tensor:
        if not self.causal:
            return attend(some, keys, values, None)
        # Each head has chosen other rows: one sequence for each head, with its mask.
        sees = tf.range(tf.shape(keys)[2]) <= chosen[..., tf.newaxis]
        attended = attend(*map(_one_head_each, (some, keys, values, sees)))
        return tf.reshape(attended, tf.shape(some))

    def _means(self, values: tf.Tensor) -> tf.Tensor:
        """Returns what queries take that are not chosen: `[B, H, 1, d]`, or `[B, H, N, d]`."""
        exact = tf.cast(values, tf.float32)
        if self.causal:
            numbers = tf.range(1, tf.shape(values)[2] + 1)[:, tf.newaxis]
            means = tf.cumsum(exact, axis=2) / tf.cast(numbers, tf.float32)
        else:
            means = tf.reduce_mean(exact, axis=2, keepdims=True)
        return tf.cast(means, values.dtype)

    @staticmethod
    def _check_lengths(num_queries: int | tf.Tensor, num_keys: int | tf.Tensor) -> None:
        message = "where `causal`, there must be as many queries as keys"
        if isinstance(num_queries, int) and isinstance(num_keys, int):
            if num_queries != num_keys:
                raise ValueError(f"{message}. Received: {num_queries} queries, {num_keys} keys")
        else:
            tf.debugging.assert_equal(num_queries, num_keys, message=message)

    def _bounded(self, factors: tf.Tensor) -> tf.Tensor:
        """Bounds queries and keys so that their products fit in float16."""
        bound = (LARGEST_FLOAT16 / self.head_dim) ** 0.5
        return within_range(factors, self.compute_dtype, bound)

    def _project(self, dense: keras.layers.Dense, values: tf.Tensor) -> tf.Tensor:
        """Projects `[B, N, F]` and lays the heads out as `[B, H, N, d]`."""
        values = within_range(values, self.compute_dtype)
        heads = apply_dense(dense, values, (self.num_heads, self.head_dim))
        return tf.transpose(heads, [0, 2, 1, 3])

    def _finish(self, attended: tf.Tensor) -> tf.Tensor:
        """Joins the heads `[B, H, R, d]` and projects them."""
        rows = tf.transpose(attended, [0, 2, 1, 3])
        shape = tf.shape(rows)
        joined = tf.reshape(rows, [shape[0], shape[1], self.num_heads * self.head_dim])
        joined.set_shape([*rows.shape[:2], self.num_heads * self.head_dim])
        return apply_dense(self.output_dense, within_range(joined, self.compute_dtype))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "factor": self.factor,
            "causal": self.causal,
            "seed": self.seed,
        }


def _length(rows: tf.Tensor) -> int | tf.Tensor:
    """Returns N of `[B, N, F]`, as an integer where it is known."""
    length = rows.shape[1]
    return tf.shape(rows)[1] if length is None else int(length)


def _earlier(length: int) -> tf.Tensor:
    """Returns which rows each row sees, itself and those before: `[1, N, N]` bool."""
    numbers = tf.range(length)
    return (numbers <= numbers[:, tf.newaxis])[tf.newaxis]


def _one_head_each(tensor: tf.Tensor) -> tf.Tensor:
    """Makes a sequence of each head: `[B H, 1, N, F]`, or a mask `[B H, R, N]`."""
    shape = tf.shape(tensor)
    first = [shape[0] * shape[1]] if tensor.dtype == tf.bool else [shape[0] * shape[1], 1]
    heads = tf.reshape(tensor, tf.concat([first, shape[2:]], axis=0))
    heads.set_shape([None] * len(first) + tensor.shape[2:].as_list())
    return heads


def _most_active(
    queries: tf.Tensor, keys: tf.Tensor, sample: tf.Tensor, count: int | tf.Tensor
) -> tf.Tensor:
    """Returns the indices `[B, H, u]` of the queries with the largest sparsity measure.

    Args:
        queries: `[B, H, R, d]`.
        keys: `[B, H, N, d]`.
        sample: `[R, U]`, the indices of the sampled keys.
        count: u.
    """
    queries, keys = tf.stop_gradient(queries), tf.stop_gradient(keys)
    scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
    shape = tf.shape(sample)
    rows = tf.broadcast_to(tf.range(shape[0])[:, tf.newaxis], shape)
    # How often each key is in the sample of each query.
    times = tf.scatter_nd(tf.stack([rows, sample], axis=-1), tf.ones(shape), tf.shape(scores)[2:])
    largest = tf.reduce_max(tf.where(times > 0, scores, tf.float32.min), axis=-1)
    mean = tf.reduce_sum(scores * times, axis=-1) / tf.cast(shape[1], tf.float32)
    return tf.math.top_k(largest - mean, k=count, sorted=False).indices
