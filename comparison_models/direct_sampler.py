"""Samples of a model that forecasts all targets at once, independent of one another."""

from typing import Any, Protocol

import tensorflow as tf

from taylorformer.model.sampling.base import (
    BYTES_PER_FLOAT,
    Memory,
    SampledModel,
    Sampler,
    lengths,
)
from taylorformer.model.sampling.independent import draw_independent

_TENSORS_HELD = 4
"""Query, key, value and output of an attention are held at once."""


class DirectModel(SampledModel, Protocol):
    """What the sampler reads of a model that forecasts all targets at once."""

    width: int
    feed_forward: int

    def __call__(self, inputs: dict[str, tf.Tensor], training: bool) -> dict[str, Any]:
        """Returns `mean` and `scale` of every target, `[B, N_T, D_y]`."""


class DirectSampler(Sampler):
    """Draws `y = mean + scale noise`; the model runs once for all samples.

    The order of the targets changes nothing, and `jit_compile` is ignored: there is no loop over
    targets to compile.

    Args:
        model: a model that has been built.
        xla: see `Sampler`; it changes nothing.
    """

    reads_order = False

    def __init__(self, model: DirectModel, xla: bool = False) -> None:
        super().__init__(model, xla)
        self._model = model

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw`."""
        num_context, num_target = lengths(batch)
        size = BYTES_PER_FLOAT * _TENSORS_HELD
        widest = max(self._model.width, self._model.feed_forward)
        return Memory(
            per_sample=size * num_target * self._model.y_dims,
            per_sequence=size * (num_context + num_target) * widest,
        )

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
        xla: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `Sampler.draw`. `order` is not read."""
        outputs = self._model(batch, training=False)
        return draw_independent(
            batch, outputs["mean"], outputs["scale"], sample_numbers, sequence_keys, seed
        )
