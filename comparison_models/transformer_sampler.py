"""The loop over targets of a Transformer neural process, for `CachedSampler`.

Each layer keeps its keys and values: those of the context once, shared by all samples, and those of
drawn targets, one row a step. A drawn target and the padded target after it see the same points:
one step runs both through the layers together, and so writes into the caches what the step before
has drawn.
"""

from typing import NamedTuple, Protocol

import tensorflow as tf

from taylorformer.comparison_models.transformer_block import TransformerBlock
from taylorformer.data_wrangler.features.row_features import rows_first
from taylorformer.model.layers.dense import JoinedDense, joined_dense
from taylorformer.model.layers.mask import context_visibility
from taylorformer.model.observed_density import observable
from taylorformer.model.sampling.base import BYTES_PER_FLOAT, Memory, SampledModel, lengths
from taylorformer.model.sampling.cached import Caches
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.shuffling import permute_targets

_ROWS_IN_A_STEP = 4
"""Tensors of the size of one key that an attention of one step makes besides the caches."""
_SCORES_IN_A_STEP = 3
"""How often a step makes the attention scores of its row over the context: raw, shifted, exp."""
_VALUES_HELD = 8
"""How many times D_y numbers are held for a target: its y, its noise and copies of both."""
_SCORES_BEFORE = 4
"""How often attention scores `[N_C, N_C]` are made before the loop."""


class TransformerModel(SampledModel, Protocol):
    """What the loop reads of a `TransformerNeuralProcess` that has been built."""

    num_layers: int
    blocks: list[TransformerBlock]

    def embed(self, x: tf.Tensor, y: tf.Tensor | None) -> tf.Tensor:
        """Embeds points; without y as padded targets."""

    def read_out(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Turns padded rows into mean and scale."""


class _BlockRows(NamedTuple):
    """What rows of targets need of one block.

    Attributes:
        block: the block.
        context: keys and values of the context, `[B, H, N_C, d]` each.
        projections: the Dense layers of query, key and value, joined.
    """

    block: TransformerBlock
    context: tuple[tf.Tensor, tf.Tensor]
    projections: JoinedDense


class TransformerLoop:
    """Draws the targets of a Transformer neural process one by one, keeping keys and values.

    Args:
        model: a `TransformerNeuralProcess` that has been built and `can_be_drawn_by_row`.
        xla: with operations that XLA compiles. False: write rows in place, and read only the rows
            that are there.
    """

    def __init__(self, model: TransformerModel, xla: bool = False) -> None:
        self._model = model
        self._caches = Caches(xla)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `Sampler.draw`."""
        y_dims = self._model.y_dims
        noise = normal_noise(
            seed,
            sequence_keys[:, tf.newaxis],
            sample_numbers,
            rows_first(order)[:, :, tf.newaxis],
            y_dims,
        )
        num_target, batch_size, num_samples = tf.unstack(tf.shape(noise)[:3])
        batch = permute_targets(batch, order)
        blocks = self._before(batch)
        context_mask, target_mask = batch["context_mask"], rows_first(batch["target_mask"])
        x = rows_first(batch["x_target"])[:, :, tf.newaxis]
        padded = rows_first(self._model.embed(batch["x_target"], None))[:, :, tf.newaxis]
        support = batch.get("y_support")
        support = None if support is None else support[:, tf.newaxis]
        copies = [1, num_samples, 1]
        drawn = self._caches.new([num_target, batch_size, num_samples, y_dims])
        caches = self._empty_caches(num_target, batch_size, num_samples)

        def step(
            i: tf.Tensor, drawn: tf.Tensor, caches: tuple[tf.Tensor, ...]
        ) -> tuple[tf.Tensor, tf.Tensor, tuple[tf.Tensor, ...]]:
            # Before the first target there is none: a row that is not seen, and written over.
            last = tf.maximum(i - 1, 0)
            real = self._model.embed(tf.tile(x[last], copies), drawn[last])
            rows = tf.concat([real, tf.tile(padded[i], copies)], axis=1)
            rows, written = self._run(blocks, rows, caches, i, last, context_mask, target_mask)
            mean, scale = self._model.read_out(rows)
            y = observable(mean + scale * noise[i], support)
            y = tf.where(target_mask[i][:, tf.newaxis, tf.newaxis], y, 0.0)
            # Nobody may still be reading what is written to, here or in the next step.
            with tf.control_dependencies([y]):
                drawn = self._caches.write(drawn, i, y)
                return i + 1, drawn, tuple(tf.identity(cache) for cache in written)

        _, drawn, _ = tf.while_loop(
            lambda i, *_: i < num_target,
            step,
            [tf.constant(0), drawn, caches],
            parallel_iterations=1,
        )
        y = tf.gather(rows_first(drawn), tf.argsort(order, axis=-1), batch_dims=1)
        return tf.transpose(y, [2, 0, 1, 3])

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw`.

        Each sample keeps keys and values of targets; before the loop attention scores over the
        context, and its keys and values, are the largest tensors.
        """
        num_context, num_target = lengths(batch)
        attention = self._model.blocks[0].attention
        heads, width = attention.num_heads, attention.num_heads * attention.head_dim
        keys_and_values = 2 * self._model.num_layers * width
        of_target = keys_and_values + _ROWS_IN_A_STEP * width + _VALUES_HELD * self._model.y_dims
        numbers = num_target * of_target + _SCORES_IN_A_STEP * heads * num_context
        before = num_context * (_SCORES_BEFORE * heads * num_context + keys_and_values)
        return Memory(per_sample=BYTES_PER_FLOAT * numbers, per_sequence=BYTES_PER_FLOAT * before)

    def _before(self, batch: dict[str, tf.Tensor]) -> list[_BlockRows]:
        """Runs the context through all blocks, and keeps keys and values of every one."""
        hidden = self._model.embed(batch["x_context"], batch["y_context"])
        visible = context_visibility(batch["context_mask"])
        kept = []
        for block in self._model.blocks:
            attention = block.attention
            context = attention.keys_and_values(hidden, hidden)
            projections = joined_dense(attention.row_denses, attention.compute_dtype)
            kept.append(_BlockRows(block, context, projections))
            if block is not self._model.blocks[-1]:
                hidden = block(hidden, hidden, visible=visible)
        return kept

    def _run(
        self,
        blocks: list[_BlockRows],
        rows: tf.Tensor,
        caches: tuple[tf.Tensor, ...],
        i: tf.Tensor,
        last: tf.Tensor,
        context_mask: tf.Tensor,
        target_mask: tf.Tensor,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Runs the target drawn last and the padded target i through all blocks.

        Args:
            blocks: returned by `_before`.
            rows: `[B, 2 S, width]`, the former's rows, then the latter's.
            caches: keys and values of earlier targets, two a block.
            i: the number of the padded target.
            last: the number of the target drawn last, whose keys and values are written.
            context_mask: `[B, N_C]` bool.
            target_mask: `[N_T, B]` bool.

        Returns:
            The rows of the padded target, `[B, S, width]`, and the caches as written to.
        """
        num_samples = tf.shape(rows)[1] // 2
        earlier, visible = self._caches.earlier(i, target_mask)
        written: list[tf.Tensor] = []
        for number, kept in enumerate(blocks):
            attention = kept.block.attention
            query, *key_and_value = attention.query_key_value(rows, kept.projections)
            pair = [
                self._caches.write(cache, last, part[..., :num_samples])
                for cache, part in zip(
                    caches[2 * number : 2 * number + 2], key_and_value, strict=True
                )
            ]
            written += pair
            queries = [query[..., :num_samples], query[..., num_samples:]]
            if kept is blocks[-1]:
                # Nothing reads what would come of the target drawn last.
                queries, rows = queries[1:], rows[:, num_samples:]
            keys, values = (cache[earlier] for cache in pair)
            attended = [
                attention.attend_row(one, kept.context, (keys, values), context_mask, visible)
                for one in queries
            ]
            rows = kept.block.finish(tf.concat(attended, axis=1), rows)
        return rows, written

    def _empty_caches(
        self, num_target: tf.Tensor, batch_size: tf.Tensor, num_samples: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Makes room for keys and values of targets, `[N_T, d, B, H, S]`, two a block."""
        return tuple(
            self._caches.new(
                [
                    num_target,
                    block.attention.head_dim,
                    batch_size,
                    block.attention.num_heads,
                    num_samples,
                ],
                block.attention.compute_dtype,
            )
            for block in self._model.blocks
            for _ in range(2)
        )
