"""The plain sampler: any autoregressive model, run once for each target.

The plain sampler runs the whole model once for every target. It is slow, and simple enough to be
believed: the reference for anything quicker.
"""

from typing import Any, Protocol

import tensorflow as tf

from taylorformer.data_wrangler.batch import as_prepared
from taylorformer.model.observed_density import observable
from taylorformer.model.sampling.base import (
    BYTES_PER_FLOAT,
    Memory,
    SampledModel,
    Sampler,
    lengths,
)
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.shuffling import permute_targets

_SCORES_HELD = 4
"""How many tensors of attention scores `[N_T, N]` of one head stand for what one pass holds."""


class CalledModel(SampledModel, Protocol):
    """What the plain sampler reads of a model."""

    def __call__(self, inputs: dict[str, tf.Tensor], training: bool) -> dict[str, Any]:
        """Returns `mean` and `scale` of the one-step conditionals, `[B, N_T, D_y]`."""


class PlainSampler(Sampler):
    """Draws joint samples by running the whole model once for every target.

    In graphs for XLA, which knows no length that changes in a loop, it runs over all targets each
    time and hides the later ones, instead of leaving them out. (`jit_compile` is ignored: XLA would
    compile every length anew.)

    Args:
        model: an autoregressive model that has been built.
        xla: see `Sampler`.
    """

    def __init__(self, model: CalledModel, xla: bool = False) -> None:
        super().__init__(model, xla)
        self._model = model

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw`: attention scores grow fastest with lengths."""
        num_context, num_target = lengths(batch)
        scores = num_target * (num_target + num_context)
        per_sample = BYTES_PER_FLOAT * _SCORES_HELD * scores
        return Memory(per_sample=per_sample, per_sequence=0)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
        xla: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `Sampler.draw`."""
        y_dims = self._model.y_dims
        num_samples, num_sequences = tf.size(sample_numbers), tf.size(sequence_keys)
        # One row for each sample of each sequence.
        copies = tf.tile(tf.range(num_sequences), [num_samples])
        rows = {name: tf.gather(values, copies) for name, values in batch.items()}
        order = tf.gather(order, copies)
        noise = normal_noise(
            seed,
            tf.gather(sequence_keys, copies)[:, tf.newaxis],
            tf.repeat(sample_numbers, num_sequences)[:, tf.newaxis],
            order,
            y_dims,
        )
        rows = permute_targets(rows, order)
        num_target = tf.shape(noise)[1]

        def step(i: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # Targets after i are not needed: nothing before them sees them.
            inputs = {**rows, "y_target": y}
            if xla:
                inputs["target_mask"] &= tf.range(num_target) <= i
            else:
                for name in ("x_target", "target_mask", "y_target"):
                    inputs[name] = inputs[name][:, : i + 1]
                as_prepared(inputs)
            outputs = self._model(inputs, training=False)
            value = outputs["mean"][:, i] + outputs["scale"][:, i] * noise[:, i]
            value = observable(value, rows.get("y_support"))
            value = tf.where(rows["target_mask"][:, i, tf.newaxis], value, 0.0)
            value = tf.ensure_shape(value, [None, y_dims])
            is_i = (tf.range(num_target) == i)[tf.newaxis, :, tf.newaxis]
            return i + 1, tf.where(is_i, value[:, tf.newaxis], y)

        _, y = tf.while_loop(
            lambda i, _: i < num_target,
            step,
            [tf.constant(0), tf.zeros_like(noise)],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None, y_dims])],
            parallel_iterations=1,
        )
        y = tf.gather(y, tf.argsort(order, axis=-1), batch_dims=1)
        return tf.reshape(y, tf.stack([num_samples, num_sequences, num_target, y_dims]))
