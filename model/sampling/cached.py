"""The cached sampler, and which models may use it (`ROW_PARTS`): others get the plain one.

Where the hidden states of context and earlier targets stay as they are when a target is added, each
layer can keep its keys and values, and one more target costs one more row. A model that can be
drawn so supplies the loop over its targets; what all such loops share is here. `PlainSampler` runs
the whole model for every target and is what every loop is held equal to.
"""

from collections.abc import Callable
from typing import Any, Protocol

import keras
import tensorflow as tf

from taylorformer.model.keras_private import empty_tensor, sublayers, write_row
from taylorformer.model.layers.dense import is_plain_dense
from taylorformer.model.sampling.base import Memory, SampledModel, Sampler


def can_be_drawn_by_row(model: keras.Model) -> bool:
    """Tells whether a loop over rows draws a model as `call` defines it.

    Every layer class that a loop takes apart declares in `ROW_PARTS` the names of the methods on
    which the loop relies, and in `row_denses` the Dense layers whose weights it reads. A subclass
    that overrides such a method computes something that the loop may not, unless it declares
    `row_wise = True`: that each of its rows still depends on that row and on seen points alone.
    """
    return all(
        _keeps_row_parts(layer) and all(map(is_plain_dense, getattr(layer, "row_denses", ())))
        for layer in (model, *sublayers(model))
    )


def _keeps_row_parts(layer: keras.Layer) -> bool:
    classes = type(layer).__mro__
    declaring = next((kind for kind in classes if "ROW_PARTS" in vars(kind)), None)
    if declaring is None:
        return True
    names = {name for kind in declaring.__mro__ for name in vars(kind).get("ROW_PARTS", ())}
    definers = {
        next(kind for kind in classes if name in vars(kind)) for name in {*names, "__call__"}
    }
    return all(kind in declaring.__mro__ or vars(kind).get("row_wise", False) for kind in definers)


class Caches:
    """Makes the tensors into which a loop writes rows, and writes them.

    Args:
        xla: with operations that XLA compiles; it writes into memory that it holds by itself.
            False: with the operation that does so whoever else holds the tensor.
    """

    def __init__(self, xla: bool) -> None:
        self._xla = xla

    def new(self, shape: list[tf.Tensor | int], dtype: str = "float32") -> tf.Tensor:
        """Makes a tensor of zeros."""
        return tf.zeros(shape, dtype) if self._xla else empty_tensor(shape, dtype)

    def write(self, cache: tf.Tensor, index: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        """Writes a row; nobody may still be reading the tensor that is written to.

        Args:
            cache: `[N, ..]`, made by `new` or returned by `write`.
            index: int32 scalar, which of the N rows is written.
            row: `[..]`.

        Returns:
            The cache, to be read from now on.
        """
        if self._xla:
            written = tf.tensor_scatter_nd_update(cache, [[index]], row[tf.newaxis])
        else:
            written = write_row(cache, index, row)
        written.set_shape(cache.shape)
        return written

    def earlier(self, i: tf.Tensor, target_mask: tf.Tensor) -> tuple[slice, tf.Tensor]:
        """Returns which rows to read of earlier targets, and which of them may be seen.

        XLA knows no length that changes in a loop: there all rows are read, and the later ones
        hidden.

        Args:
            i: the number of a target.
            target_mask: `[N_T, B]` bool, which targets may be seen.

        Returns:
            A slice of R of the N_T rows, and `[R, B]` bool.
        """
        if self._xla:
            return slice(None), target_mask & (tf.range(tf.shape(target_mask)[0])[:, None] < i)
        return slice(0, i), target_mask[:i]


class SamplingLoop(Protocol):
    """A loop over targets that keeps keys and values, for `CachedSampler`."""

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `Sampler.draw`."""

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw` for the lengths of a batch."""


class CachedSampler(Sampler):
    """Draws joint samples with a loop that keeps keys and values.

    Args:
        model: a model that has been built.
        loop_type: makes the loop, given the model and whether XLA is to compile it.
        xla: see `Sampler`.
    """

    uses_xla = True

    def __init__(
        self,
        model: SampledModel,
        loop_type: Callable[[Any, bool], SamplingLoop],
        xla: bool = False,
    ) -> None:
        super().__init__(model, xla)
        self._loops = {for_xla: loop_type(model, for_xla) for for_xla in (False, True)}

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns the bound of the loop."""
        return self._loops[False].memory(batch)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
        xla: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]` with the loop; see `Sampler.draw`."""
        return self._loops[xla].draw(batch, order, sample_numbers, sequence_keys, seed)
