"""Joint samples of a model with one latent variable: z first, then all targets at once."""

from typing import TYPE_CHECKING

import tensorflow as tf

from taylorformer.model.sampling.counter_noise import latent_noise, normal_noise
from taylorformer.model.sampling.plain import batch_spec, draw_some_at_once

if TYPE_CHECKING:
    from taylorformer.comparison_models.latent_model import LatentModel


class LatentSampler:
    """Draws `y = mean(z) + scale(z) noise`, with z drawn from q(z given C).

    The noise of z is a function of (seed, key of b, s), that of y one of (seed, key of b, s, i).

    It keeps one compiled graph for all lengths. (A plain object and no trackable one, so that the
    graph does not become part of a saved model.)

    Args:
        model: a latent model that has been built.
    """

    def __init__(self, model: "LatentModel") -> None:
        self._model = model
        number = tf.TensorSpec([], tf.int64)
        signature = [
            batch_spec(model.x_dims, model.y_dims),
            number,
            number,
            tf.TensorSpec([None], tf.int64),
            number,
            number,
        ]
        self._draw_compiled = tf.function(self._draw, input_signature=signature, autograph=False)

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
        """Draws `[S, B, N_T, D_y]`, `chunk_size` of the S B sequences at once.

        (`order` changes nothing. XLA is not used: there is no loop over targets to compile.)
        """
        rows = self._model.rows_at_once(batch) if chunk_size is None else chunk_size
        rows = tf.cast(rows, tf.int64)
        sequences = tf.minimum(rows, self._model.sequences_at_once(batch))
        count = tf.cast(num_samples, tf.int64)
        return self._draw_compiled(batch, count, seed, sequence_keys, rows, sequences)

    def draw_all(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int | tf.Tensor,
        seed: tf.Tensor,
        keys: tf.Tensor,
        order: str = "given",
        chunk_size: int | None = None,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]` as one graph, some samples at once; sizes may be unknown."""
        rows = self._model.rows_at_once(batch)
        sequences = self._model.sequences_at_once(batch)
        if chunk_size is not None:
            rows = sequences = tf.constant(chunk_size, tf.int64)
        return self._draw(batch, num_samples, seed, keys, rows, sequences)

    def _draw(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int | tf.Tensor,
        seed: tf.Tensor,
        keys: tf.Tensor,
        rows_at_once: tf.Tensor,
        sequences_at_once: tf.Tensor,
    ) -> tf.Tensor:
        model = self._model

        def draw(
            batch: dict[str, tf.Tensor], places: tf.Tensor, keys: tf.Tensor, numbers: tf.Tensor
        ) -> tf.Tensor:
            numbers = numbers[:, tf.newaxis]
            mean, scale = model.decode_samples(
                batch, latent_noise(seed, keys, numbers, model.latent_dim)
            )
            noise = normal_noise(
                seed, keys[:, tf.newaxis], numbers[..., tf.newaxis], places, model.y_dims
            )
            mask = batch["target_mask"][..., tf.newaxis]
            return tf.where(mask, mean + scale * noise, 0.0)

        shape = tf.shape(batch["target_mask"])
        places = tf.broadcast_to(tf.range(shape[1]), shape)
        return draw_some_at_once(
            draw, batch, places, keys, num_samples, rows_at_once, sequences_at_once
        )
