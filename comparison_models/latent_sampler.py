"""Joint samples of a model with one latent variable: z first, then all targets at once."""

from collections.abc import Mapping
from typing import Protocol

import tensorflow as tf

from taylorformer.model.sampling.base import (
    BYTES_PER_FLOAT,
    Length,
    Memory,
    SampledModel,
    Sampler,
    lengths,
)
from taylorformer.model.sampling.counter_noise import latent_noise
from taylorformer.model.sampling.independent import draw_independent

TENSORS_HELD = 2
"""A Dense layer reads one tensor and makes another of the same size."""


class SampledLatentModel(SampledModel, Protocol):
    """What the sampler reads of a model with one latent variable."""

    width: int
    latent_dim: int

    def numbers_per_sequence(self, batch: Mapping[str, tf.Tensor]) -> Length:
        """Returns how many numbers the largest tensor of one sequence has before any z."""

    def decode_samples(
        self, batch: Mapping[str, tf.Tensor], latents: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and scale of every target for some z, `[S, B, N_T, D_y]` each."""


class LatentSampler(Sampler):
    """Draws `y = mean(z) + scale(z) noise`, with z drawn from q(z given C).

    The noise of z is a function of (seed, key of b, s), that of y one of (seed, key of b, s, i).
    The order of the targets changes nothing, and `jit_compile` is ignored: there is no loop over
    targets to compile.

    Args:
        model: a latent model that has been built.
        xla: see `Sampler`; it changes nothing.
    """

    reads_order = False

    def __init__(self, model: SampledLatentModel, xla: bool = False) -> None:
        super().__init__(model, xla)
        self._model = model

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw`: what a Dense layer reads and makes."""
        _, num_target = lengths(batch)
        size = BYTES_PER_FLOAT * TENSORS_HELD
        return Memory(
            per_sample=size * num_target * self._model.width,
            per_sequence=size * self._model.numbers_per_sequence(batch),
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
        numbers = sample_numbers[:, tf.newaxis]
        mean, scale = self._model.decode_samples(
            batch, latent_noise(seed, sequence_keys, numbers, self._model.latent_dim)
        )
        return draw_independent(batch, mean, scale, sample_numbers, sequence_keys, seed)
