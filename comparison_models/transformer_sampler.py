"""Joint samples of the Transformer neural process at about the price of one pass.

The hidden states of the context and of earlier targets never change when a target is added, so
each layer keeps its keys and values: those of the context once, shared by all samples, and those of
drawn targets, one row a step. A drawn target and the padded target after it see the same points:
one step takes both through the layers together, and so puts into the caches what the step before
has drawn.
"""

from typing import TYPE_CHECKING, NamedTuple

import keras
import tensorflow as tf

from taylorformer.comparison_models.transformer_block import TransformerBlock
from taylorformer.data_wrangler.features.representation_extractor import rows_first
from taylorformer.model.layers.attention import (
    MultiHeadAttention,
    joined_dense,
)
from taylorformer.model.layers.mask import context_visibility
from taylorformer.model.sampling.cached import ATTENTION_PARTS, Caches, are_plain, overrides
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.shuffling import permute_targets

if TYPE_CHECKING:
    from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess

# What the loop takes apart; see `taylorformer.model.sampling.cached`.
_KNOWN = {
    TransformerBlock: ("call", "finish"),
    MultiHeadAttention: ATTENTION_PARTS,
}


def can_be_cached(model: "TransformerNeuralProcess") -> bool:
    """Tells whether all parts of a model are those that the loop can take apart."""
    from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess

    names = ("call", "embed", "read_out", "finish_outputs", "prepare")
    if overrides(model, TransformerNeuralProcess, names):
        return False
    for block in model.blocks:
        for layer, known in ((block, TransformerBlock), (block.attention, MultiHeadAttention)):
            if not isinstance(layer, known) or overrides(layer, known, _KNOWN[known]):
                return False
    return are_plain([dense for block in model.blocks for dense in _projections(block)])


def _projections(block: TransformerBlock) -> list[keras.layers.Dense]:
    attention = block.attention
    return [attention.query_dense, attention.key_dense, attention.value_dense]


class _BlockRows(NamedTuple):
    """What rows of targets need of one block: keys and values of the context, projections."""

    block: TransformerBlock
    context: tuple[tf.Tensor, tf.Tensor]
    projections: tuple[tf.Tensor, tf.Tensor]


class TransformerLoop:
    """The loop over targets, as plain TensorFlow operations, for `CachedSampler`.

    Args:
        model: a `TransformerNeuralProcess` that has been built, with parts that `can_be_cached`.
        in_place: write rows into the caches in place, and read the rows that are there. False: with
            operations that XLA compiles.
    """

    def __init__(self, model: "TransformerNeuralProcess", in_place: bool = True) -> None:
        self._model = model
        self._in_place = in_place
        self._caches = Caches(in_place)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        places: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Draws S samples of every sequence.

        Args:
            batch: a prepared batch of B sequences.
            places: `[B, N_T]`, the order in which targets are drawn.
            sample_numbers: `[S]`, the number of each sample.
            sequence_keys: `[B]`.
            seed: int64 scalar.

        Returns:
            `[S, B, N_T, D_y]`, in the order of the batch; 0 at masked targets.
        """
        y_dims = self._model.y_dims
        noise = normal_noise(
            seed,
            sequence_keys[:, tf.newaxis],
            sample_numbers,
            rows_first(places)[:, :, tf.newaxis],
            y_dims,
        )
        num_target, batch_size, num_samples = tf.unstack(tf.shape(noise)[:3])
        batch = permute_targets(batch, places)
        blocks = self._before(batch)
        context_mask, seen = batch["context_mask"], rows_first(batch["target_mask"])
        x = rows_first(batch["x_target"])[:, :, tf.newaxis]
        padded = rows_first(self._model.embed(batch["x_target"], None))[:, :, tf.newaxis]
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
            rows, written = self._run(blocks, rows, caches, i, last, context_mask, seen)
            mean, scale = self._model.read_out(rows)
            y = tf.where(seen[i][:, tf.newaxis, tf.newaxis], mean + scale * noise[i], 0.0)
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
        y = tf.gather(rows_first(drawn), tf.argsort(places, axis=-1), batch_dims=1)
        return tf.transpose(y, [2, 0, 1, 3])

    def _before(self, batch: dict[str, tf.Tensor]) -> list[_BlockRows]:
        """Runs the context through the network, and keeps keys and values of every block."""
        hidden = self._model.embed(batch["x_context"], batch["y_context"])
        visible = context_visibility(batch["context_mask"])
        kept = []
        for block in self._model.blocks:
            context = block.attention.keys_and_values(hidden, hidden)
            projections = joined_dense(_projections(block), block.attention.compute_dtype)
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
        seen: tf.Tensor,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Takes the target drawn last and the padded target i through the network.

        Args:
            blocks: what `_before` gave.
            rows: `[B, 2 S, width]`, the former's rows, then the latter's.
            caches: keys and values of earlier targets, two a block.
            i: the number of the padded target.
            last: where to write the keys and values of the one drawn last.
            context_mask: `[B, N_C]` bool.
            seen: `[N_T, B]` bool.

        Returns:
            The rows of the padded target, `[B, S, width]`, and the caches as written to.
        """
        num_samples = tf.shape(rows)[1] // 2
        if self._in_place:
            earlier, seen = slice(0, i), seen[:i]
        else:
            earlier = slice(None)
            seen &= tf.range(tf.shape(seen)[0])[:, tf.newaxis] < i
        written: list[tf.Tensor] = []
        for number, kept in enumerate(blocks):
            query, *own = kept.block.attention.query_key_value(rows, kept.projections)
            pair = [
                self._caches.write(cache, last, part[..., :num_samples])
                for cache, part in zip(caches[2 * number : 2 * number + 2], own, strict=True)
            ]
            written += pair
            queries = [query[..., :num_samples], query[..., num_samples:]]
            if kept is blocks[-1]:
                # Nothing reads what would come of the target drawn last.
                queries, rows = queries[1:], rows[:, num_samples:]
            attention = kept.block.attention
            keys, values = (cache[earlier] for cache in pair)
            attended = [
                attention.attend_row(one, kept.context, (keys, values), context_mask, seen)
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

    def numbers_per_row(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the numbers that the loop keeps for one sample of one sequence, int64."""
        num_context, num_target = _lengths(batch)
        heads, width = self._sizes()
        # Two a block are kept, and some as long are made in one attention.
        kept = width * (2 * self._model.num_layers + 4) + 8 * self._model.y_dims
        # The attention scores of one row over the context are made three times.
        return num_target * kept + 3 * heads * num_context

    def numbers_per_sequence(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the numbers that are made for one sequence before the loop, int64."""
        num_context, _ = _lengths(batch)
        heads, width = self._sizes()
        return num_context * (4 * heads * num_context + 2 * self._model.num_layers * width)

    def _sizes(self) -> tuple[int, int]:
        """Gives H and H d."""
        attention = self._model.blocks[0].attention
        return attention.num_heads, attention.num_heads * attention.head_dim


def _lengths(batch: dict[str, tf.Tensor]) -> list[tf.Tensor]:
    """Gives N_C and N_T, int64."""
    return [tf.shape(batch[f"x_{part}"], tf.int64)[1] for part in ("context", "target")]
