"""The base of all samplers: how many samples at once fit in memory, seeds, keys, graphs."""

import abc
import functools
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from taylorformer.data_wrangler.tables.scaled_support import NUM_PARTS
from taylorformer.model.sampling.chunks import draw_in_chunks
from taylorformer.model.sampling.orders import sampling_order

MOST_BYTES = 2**28
"""What may be held at once, 256 MB, unless `chunk_size` says otherwise.

Little enough for a laptop beside TensorFlow's own gigabyte, and so much that 100 samples of one
series with hundreds of targets are drawn in one piece.
"""

BYTES_PER_FLOAT = 4
"""float32; what is held in float16 is counted twice as large."""


class SampledModel(Protocol):
    """What every sampler reads of a model that has been built."""

    x_dims: int
    y_dims: int

    @property
    def distance_dims(self) -> int | None:
        """How many leading dimensions of x define a distance. None: all."""


Length: TypeAlias = int | tf.Tensor
"""A length or a size: an int where the shape is known, an int64 scalar where it is not.

What is known is worked out in Python, not by an operation of TensorFlow for each product.
"""


class Memory(NamedTuple):
    """An upper bound, in bytes, on what a sampler holds while it draws.

    Attributes:
        per_sample: for each sample of one sequence.
        per_sequence: for each sequence before its samples are drawn, shared by all of them.
    """

    per_sample: Length
    per_sequence: Length


def batch_spec(x_dims: int, y_dims: int) -> dict[str, tf.TensorSpec]:
    """Describes a prepared batch without `y_target`, with free B, N_C and N_T."""
    return {
        "x_context": tf.TensorSpec([None, None, x_dims], tf.float32),
        "y_context": tf.TensorSpec([None, None, y_dims], tf.float32),
        "x_target": tf.TensorSpec([None, None, x_dims], tf.float32),
        "context_mask": tf.TensorSpec([None, None], tf.bool),
        "target_mask": tf.TensorSpec([None, None], tf.bool),
    }


def support_spec(y_dims: int) -> tf.TensorSpec:
    """Describes `y_support` of the data contract."""
    return tf.TensorSpec([None, y_dims, NUM_PARTS], tf.float64)


class Sampler(abc.ABC):
    """Draws joint samples of a model.

    A kind of sampler says how some samples of some sequences are drawn (`draw`) and how much memory
    that takes (`memory`); the rest is here. One compiled graph serves all lengths. (A plain object
    and no trackable one, so that graphs do not become part of a saved model.)

    Args:
        model: a model that has been built.
        xla: `draw_all` is to be part of a graph that XLA compiles.
    """

    uses_xla: ClassVar[bool] = False
    """Whether `jit_compile` compiles a graph with XLA for each shape; otherwise it is ignored."""

    reads_order: ClassVar[bool] = True
    """Whether `draw` reads `order`; otherwise no order is worked out, and it is all zeros."""

    def __init__(self, model: SampledModel, xla: bool = False) -> None:
        self._distance_dims, self._y_dims = model.distance_dims, model.y_dims
        self._xla = xla
        vector = tf.TensorSpec([None], tf.int64)
        points = batch_spec(model.x_dims, model.y_dims)
        seed = tf.TensorSpec([], tf.int64)
        rest = [tf.TensorSpec([None, None], tf.int32), vector, vector, seed]
        self._graph, self._graph_with_support = (
            tf.function(
                functools.partial(self.draw, xla=False),
                input_signature=[batch, *rest],
                autograph=False,
            )
            for batch in (points, {**points, "y_support": support_spec(model.y_dims)})
        )
        self._xla_graph = tf.function(
            functools.partial(self.draw, xla=True), jit_compile=True, autograph=False
        )

    # What a kind of sampler fills in.

    @abc.abstractmethod
    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
        xla: bool = False,
    ) -> tf.Tensor:
        """Draws S samples of each of B sequences, in a graph of any lengths.

        The noise of (sample s, sequence b, target i) must be a function of (seed, key of b, number
        of s, i) alone.

        Args:
            batch: a prepared batch.
            order: `[B, N_T]`, the order in which targets are drawn.
            sample_numbers: `[S]`, the number of each sample.
            sequence_keys: `[B]`.
            seed: int64 scalar.
            xla: with operations that XLA compiles.

        Returns:
            `[S, B, N_T, D_y]`, in the order of the batch; 0 at masked targets.
        """

    @abc.abstractmethod
    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw` for the lengths of a batch."""

    # What all kinds share.

    def __call__(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int,
        seed: tf.Tensor,
        sequence_keys: tf.Tensor,
        order: str,
        chunk_size: int | None,
        jit_compile: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]` outside of graphs; see `ProbabilisticModel.sample`.

        It loops in Python over a compiled graph: memory that one call has held is free before the
        next, and the graph is traced once for all sizes.

        Args:
            batch: a prepared batch.
            num_samples: S.
            seed: int64 scalar.
            sequence_keys: `[B]` int64.
            order: one of `ORDERS`.
            chunk_size: at most this many of the S B sequences at once. None: as many as keep the
                memory bounded.
            jit_compile: with a graph that XLA compiles for each shape, where `uses_xla`.
        """
        batch_size, num_target = (int(size) for size in tf.shape(batch["x_target"])[:2])
        orders = self._orders(order, batch, seed, sequence_keys)
        if chunk_size is None:
            at_once, most_sequences = (int(number) for number in self.at_once(batch))
        else:
            at_once = most_sequences = chunk_size
        sequences = max(1, min(at_once // num_samples, most_sequences, batch_size))
        samples = max(1, min(at_once // sequences, num_samples))
        draw = self._graph_with_support if "y_support" in batch else self._graph
        if jit_compile and self.uses_xla:
            draw = self._xla_graph
        parts = []
        for first in range(0, batch_size, sequences):
            arguments = batch, orders, sequence_keys
            if sequences < batch_size:
                some = slice(first, first + sequences)
                arguments = tf.nest.map_structure(lambda values, some=some: values[some], arguments)
            chunk, order_of_chunk, keys = arguments
            drawn = []
            for start in range(0, num_samples, samples):
                numbers = tf.range(start, min(start + samples, num_samples), dtype=tf.int64)
                drawn.append(draw(chunk, order_of_chunk, numbers, keys, seed))
            parts.append(_joined(drawn, axis=0))
        if not parts:
            return tf.zeros([num_samples, 0, num_target, self._y_dims])
        return _joined(parts, axis=1)

    def draw_all(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int | tf.Tensor,
        seed: tf.Tensor,
        sequence_keys: tf.Tensor,
        order: str = "given",
        chunk_size: int | None = None,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]` as part of a graph, whose sizes may be unknown.

        The arguments are those of `__call__`.
        """

        def draw(
            batch: dict[str, tf.Tensor], order: tf.Tensor, keys: tf.Tensor, numbers: tf.Tensor
        ) -> tf.Tensor:
            return self.draw(batch, order, numbers, keys, seed, xla=self._xla)

        orders = self._orders(order, batch, seed, sequence_keys)
        at_once = self.at_once(batch) if chunk_size is None else (chunk_size, chunk_size)
        samples, sequences = (tf.cast(number, tf.int64) for number in at_once)
        return draw_in_chunks(draw, batch, orders, sequence_keys, num_samples, samples, sequences)

    def _orders(
        self, order: str, batch: dict[str, tf.Tensor], seed: tf.Tensor, sequence_keys: tf.Tensor
    ) -> tf.Tensor:
        if not self.reads_order:
            return tf.zeros(tf.shape(batch["target_mask"]), tf.int32)
        return sampling_order(order, batch, seed, sequence_keys, self._distance_dims)

    def at_once(self, batch: dict[str, tf.Tensor]) -> tuple[Length, Length]:
        """Returns how many samples, of all sequences together, and how many sequences to draw.

        So many at once, at least 1, hold at most `MOST_BYTES` each.
        """
        samples, sequences = (
            larger(MOST_BYTES // larger(need, 1), 1) for need in self.memory(batch)
        )
        return samples, sequences


def _joined(parts: list[tf.Tensor], axis: int) -> tf.Tensor:
    """Joins parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=axis)


def lengths(batch: Mapping[str, tf.Tensor]) -> tuple[Length, Length]:
    """Returns N_C and N_T."""
    num_context, num_target = (_length(batch[f"x_{side}"]) for side in ("context", "target"))
    return num_context, num_target


def larger(first: Length, second: Length) -> Length:
    """Returns the larger of two lengths."""
    if isinstance(first, int) and isinstance(second, int):
        return max(first, second)
    return tf.maximum(first, second)


def _length(points: tf.Tensor) -> Length:
    length = points.shape[1]
    return tf.shape(points, tf.int64)[1] if length is None else length
