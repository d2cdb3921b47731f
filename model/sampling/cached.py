"""Joint samples at about the price of one pass.

The hidden states of context and of earlier targets never change when a target is added, so each
layer keeps its keys and values, and one more target costs one more row. What depends on x and
y_context only is made once, before the loop, and shared by all samples: neighbours, features of x,
the tower MHA-X up to its last attention weights, and all keys and values of the context.
`PlainSampler` runs the whole network for every target and is what this is held equal to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import keras
import tensorflow as tf

from taylorformer.data_wrangler.features.representation_extractor import (
    RepresentationExtractor,
    rows_first,
)
from taylorformer.model.layers.attention import MultiHeadAttention, joined_dense, within_range
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.local_taylor import LocalTaylor
from taylorformer.model.layers.mask import context_visibility, target_visibility
from taylorformer.model.layers.mha_x import MHAX
from taylorformer.model.layers.mha_x_net import MHAXNet
from taylorformer.model.layers.mha_xy import MHAXY, BlockRows
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.plain import batch_spec, draw_some_at_once, sampling_order
from taylorformer.model.sampling.shuffling import permute_targets

if TYPE_CHECKING:
    from taylorformer.model.probabilistic_model import ProbabilisticModel
    from taylorformer.model.taylorformer import Taylorformer

_MOST_BYTES = 2**28
"""What the caches of all samples that are drawn at once may take, unless `chunk_size` says more."""

ATTENTION_PARTS = (
    "call",
    "_attend",
    "_project",
    "_queries",
    "_keys",
    "_finish",
    "bounded",
    "columns",
    "query_key_value",
    "attend_row",
    "keys_and_values",
    "attention_weights",
    "weigh_values",
)
"""What a loop that draws one row at a time does in its own way, or relies on."""

# What the sampler takes apart. A model whose classes override one of these is drawn by the plain
# loop, unless the class that does so declares `row_wise = True`.
_KNOWN = {
    RepresentationExtractor: (
        "call",
        "_features",
        "_features_and_neighbourhood",
        "_neighbourhood",
        "_normalized",
        "_packed",
        "_state",
        "_taylor_terms",
        "_add_own",
        "_add_own_second",
        "_add_of_nearest",
    ),
    LocalTaylor: ("call",),
    MHAXNet: ("call", "head"),
    MHAX: ("call", "_run", "_hidden"),
    MHAXY: ("call", "_run", "_hidden"),
    AttentionBlock: ("call", "finish", "skip"),
    MultiHeadAttention: ATTENTION_PARTS,
}


def can_be_cached(model: "Taylorformer") -> bool:
    """Tells whether all parts of a model are those that the sampler can take apart."""
    from taylorformer.model.taylorformer import Taylorformer

    if overrides(model, Taylorformer, ("call", "finish_outputs", "prepare")):
        return False
    denses: list[keras.layers.Dense] = []
    for layer in model._flatten_layers(include_self=False):
        for known, names in _KNOWN.items():
            if isinstance(layer, known) and overrides(layer, known, names):
                return False
        if isinstance(layer, MultiHeadAttention):
            denses += [layer.query_dense, layer.key_dense, layer.value_dense]
        elif isinstance(layer, AttentionBlock) and layer.skip_dense is not None:
            denses.append(layer.skip_dense)
        elif isinstance(layer, MHAXNet):
            denses += [layer.mean_dense, layer.scale_dense]
    return are_plain(denses) and isinstance(model.local_taylor.network, MHAXNet)


def are_plain(denses: list[keras.layers.Dense]) -> bool:
    """Tells whether the kernel and the bias of each Dense layer say all that it does."""
    return all(
        type(dense) is keras.layers.Dense
        and dense.quantization_mode is None
        and dense.use_bias
        and dense.activation is keras.activations.linear
        for dense in denses
    )


def overrides(layer: keras.Layer, known: type, names: tuple[str, ...]) -> bool:
    """Tells whether the class of a layer does something of a known class in another way."""
    for name in (*names, "__call__"):
        own = next(kind for kind in type(layer).__mro__ if name in vars(kind))
        if own not in known.__mro__ and not vars(own).get("row_wise", False):
            return True
    return False


class _Shared(NamedTuple):
    """What all samples of a sequence share; N_T rows first where there are rows.

    The last three are those of MHA-X, and None without it.
    """

    context_mask: tf.Tensor
    seen: tf.Tensor
    rows: dict[str, tf.Tensor]
    x_fe: tf.Tensor
    blocks: list[BlockRows]
    head: tuple[tf.Tensor, tf.Tensor]
    weights: tf.Tensor
    weighted_context: tf.Tensor
    skip: tf.Tensor


class SamplingLoop(Protocol):
    """A loop over targets that `CachedSampler` compiles."""

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        places: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `CachedLoop.draw`."""

    def numbers_per_row(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the numbers that the loop keeps for one sample of one sequence, int64."""

    def numbers_per_sequence(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the largest numbers that are made for one sequence before the loop, int64."""


class Caches:
    """Makes the tensors that a loop writes rows into, and writes them.

    Args:
        in_place: with the operation that writes in place whoever else holds the tensor. False: with
            operations that XLA compiles (it writes in place by itself).
    """

    def __init__(self, in_place: bool) -> None:
        self._in_place = in_place

    def new(self, shape: list[tf.Tensor | int], dtype: str = "float32") -> tf.Tensor:
        """Makes a tensor of zeros."""
        if not self._in_place:
            return tf.zeros(shape, dtype)
        # Not `zeros`, which may become a constant that all calls share.
        new = tf.raw_ops.Empty(shape=tf.stack(shape), dtype=dtype, init=True)
        new.set_shape([size if isinstance(size, int) else None for size in shape])
        return new

    def write(self, cache: tf.Tensor, place: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        """Writes a row; nobody may still be reading the tensor that is written to."""
        if self._in_place:
            written = tf.raw_ops.InplaceUpdate(x=cache, i=place[tf.newaxis], v=row[tf.newaxis])
        else:
            written = tf.tensor_scatter_nd_update(cache, [[place]], row[tf.newaxis])
        written.set_shape(cache.shape)
        return written


class CachedLoop:
    """The loop over targets, as plain TensorFlow operations.

    Args:
        model: a `Taylorformer` that has been built, with parts that `can_be_cached`.
        in_place: write rows into the caches with the operation that does so whoever else holds
            them, and read the rows that are there. False: with operations that XLA compiles (it
            writes in place by itself, and knows no length that changes in a loop).
    """

    def __init__(self, model: "Taylorformer", in_place: bool = True) -> None:
        self._model = model
        self._extractor = model.local_taylor.representation_extractor
        self._network = model.local_taylor.network
        self._taylor = model.local_taylor.taylor_order is not None
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
        num_target, num_samples = tf.shape(noise)[0], tf.shape(noise)[2]
        shared, state = self._before(permute_targets(batch, places), num_samples)
        num_context = tf.shape(batch["x_context"])[1]
        caches = self._empty_caches(tf.shape(noise)[:3])

        def step(
            i: tf.Tensor, state: tf.Tensor, caches: tuple[tf.Tensor, ...]
        ) -> tuple[tf.Tensor, tf.Tensor, tuple[tf.Tensor, ...]]:
            y, row, columns = self._step(shared, i, state, caches, noise[i], num_context)
            # Nobody may still be reading what is written to.
            with tf.control_dependencies([y, row, *columns]):
                state = self._caches.write(state, num_context + i, row)
                caches = tuple(
                    self._caches.write(cache, i, column)
                    for cache, column in zip(caches, columns, strict=True)
                )
            return i + 1, state, caches

        _, state, _ = tf.while_loop(
            lambda i, *_: i < num_target,
            step,
            [tf.constant(0), state, caches],
            parallel_iterations=1,
        )
        y = tf.transpose(state[num_context:, ..., :y_dims], [1, 0, 2, 3])
        y = tf.gather(y, tf.argsort(places, axis=-1), batch_dims=1)
        return tf.transpose(y, [2, 0, 1, 3])

    def _before(
        self, batch: dict[str, tf.Tensor], num_samples: tf.Tensor
    ) -> tuple[_Shared, tf.Tensor]:
        """Makes what is shared, and the state `[N, B, S, C]`, still 0 in target rows."""
        features, rows, context_state = self._extractor.before_sampling(batch)
        num_context = tf.shape(batch["x_context"])[1]
        num_target = tf.shape(batch["x_target"])[1]
        mask = batch["context_mask"]
        context_visible = context_visibility(mask)
        visible = target_visibility(mask, features["target_seen"])
        x_fe = features["x_fe"]
        weights = weighted = skip = None
        if self._network.mha_x is not None:
            weights, skip = self._network.mha_x.before_sampling(x_fe, visible, context_visible)
            y = self._as_values(features["y"][:, :num_context])
            weighted = tf.matmul(weights[..., :num_context], y[:, tf.newaxis])
            weights, weighted = (
                tf.transpose(part, [2, 0, 1, 3]) for part in (weights[..., num_context:], weighted)
            )
            skip = rows_first(skip)[:, :, tf.newaxis]
        blocks = []
        if self._network.mha_xy is not None:
            tower = self._network.mha_xy
            keys = tower.row_features(
                x_fe[:, :num_context],
                features["y_seen"][:, :num_context],
                features["y_fe"][:, :num_context],
            )
            blocks = tower.before_sampling(keys, context_visible)
        network = self._network
        head = joined_dense([network.mean_dense, network.scale_dense], network.compute_dtype)
        shape = tf.shape(context_state)
        known = tf.tile(context_state[:, :, tf.newaxis], [1, 1, num_samples, 1])
        unknown = self._caches.new([num_target, shape[1], num_samples, context_state.shape[-1]])
        shared = _Shared(
            context_mask=mask,
            seen=rows_first(features["target_seen"]),
            rows=rows,
            x_fe=rows_first(x_fe[:, num_context:])[:, :, tf.newaxis],
            blocks=blocks,
            head=head,
            weights=weights,
            weighted_context=weighted,
            skip=skip,
        )
        return shared, tf.concat([known, unknown], axis=0)

    def _step(
        self,
        shared: _Shared,
        i: tf.Tensor,
        state: tf.Tensor,
        caches: tuple[tf.Tensor, ...],
        noise: tf.Tensor,
        num_context: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Draws target i; gives its y `[B, S, D_y]`, its state and what the caches get."""
        near, y_seen, terms = self._extractor.sample_row(shared.rows, i, state)
        seen = shared.seen
        if self._in_place:
            earlier, seen = slice(0, i), seen[:i]
        else:
            earlier = slice(None)
            seen &= tf.range(tf.shape(seen)[0])[:, tf.newaxis] < i
        num_samples = tf.shape(state)[2]
        x_fe = tf.tile(shared.x_fe[i], [1, num_samples, 1])
        joined: list[tf.Tensor] = []
        columns: list[tf.Tensor] = []
        mha_x, mha_xy = self._network.mha_x, self._network.mha_xy
        if mha_x is not None:
            y_earlier = self._as_values(state[num_context:, ..., : self._model.y_dims][earlier])
            # [B, H, R] times [B, R, S D_y]: y is summed by the weights before it is projected.
            shape = tf.shape(y_earlier)
            flat = tf.reshape(y_earlier, [shape[0], shape[1], shape[2] * self._model.y_dims])
            weights = shared.weights[i][..., earlier]
            weighted = tf.matmul(weights, tf.transpose(flat, [1, 0, 2]))
            shape = [tf.shape(weighted)[0], weighted.shape[1], num_samples, self._model.y_dims]
            weighted = tf.reshape(weighted, shape) + shared.weighted_context[i][:, :, tf.newaxis]
            sees = tf.reduce_any(shared.context_mask, axis=1) | tf.reduce_any(seen, axis=0)
            joined.append(mha_x.sample_row(weighted, sees, shared.skip[i]))
        if mha_xy is not None:
            query = mha_xy.row_features(x_fe, y_seen, None)
            rows = [cache[earlier] for cache in caches]
            pairs = list(zip(rows[::2], rows[1::2], strict=True))
            output, columns = mha_xy.sample_row(
                query, shared.blocks, pairs, shared.context_mask, seen
            )
            joined.append(output)
        mean, raw_scale = self._network.row_head(joined, shared.head)
        scale = self._model.scale_from_raw(raw_scale)
        if self._taylor:
            mean += terms
        y = tf.where(shared.seen[i][:, tf.newaxis, tf.newaxis], mean + scale * noise, 0.0)
        y_fe, row = self._extractor.sampled_row(near, y)
        if mha_xy is not None:
            key = mha_xy.row_features(x_fe, y_seen, y_fe)
            columns = [*shared.blocks[0].keys_and_values(key), *columns]
        return y, row, columns

    def _as_values(self, y: tf.Tensor) -> tf.Tensor:
        """Bounds y as a projection of it would."""
        y = tf.ensure_shape(y, [*y.shape[:-1], self._model.y_dims])
        return tf.cast(within_range(y, self._model.compute_dtype), tf.float32)

    def _empty_caches(self, sizes: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Makes room for keys and values of targets, `[N_T, d, B, H, S]`, two a block."""
        tower = self._network.mha_xy
        if tower is None:
            return ()
        shape = [sizes[0], tower.head_dim, sizes[1], tower.num_heads, sizes[2]]
        return tuple(
            self._caches.new(shape, self._model.compute_dtype) for _ in range(2 * tower.num_layers)
        )

    def numbers_per_row(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the numbers that the loop keeps for one sample of one sequence, int64."""
        num_target = tf.shape(batch["x_target"], tf.int64)[1]
        num_points = num_target + tf.shape(batch["x_context"], tf.int64)[1]
        tower = self._network.mha_xy
        width = (
            0 if tower is None else tower.num_heads * tower.head_dim * (2 * tower.num_layers + 4)
        )
        # The attention scores of one row over the context are made three times.
        scores = 0 if tower is None else 3 * tower.num_heads * (num_points - num_target)
        return num_target * width + num_points * 8 * self._model.y_dims + scores

    def numbers_per_sequence(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Counts the attention scores of one sequence before the loop, int64."""
        sizes = [tf.shape(batch[f"x_{part}"], tf.int64)[1] for part in ("context", "target")]
        return tf.square(tf.add_n(sizes)) * 4 * self._model.num_heads


class CachedSampler:
    """Draws joint samples with the loop that keeps keys and values.

    It keeps one compiled graph for all lengths, and one more for each shape that XLA compiles. (A
    plain object and no trackable one, so that graphs do not become part of a saved model.)

    Args:
        model: a model that has been built.
        loop_type: makes the loop of the model, given the model and whether to write in place.
        xla: draw with operations that XLA compiles, for graphs around this one.
    """

    def __init__(
        self,
        model: "ProbabilisticModel",
        loop_type: "Callable[[Any, bool], SamplingLoop]",
        xla: bool = False,
    ) -> None:
        self._model = model
        plain, compiled = loop_type(model, True), loop_type(model, False)
        self._loop = compiled if xla else plain
        vector = tf.TensorSpec([None], tf.int64)
        signature = [
            batch_spec(model.x_dims, model.y_dims),
            tf.TensorSpec([None, None], tf.int32),
            vector,
            vector,
            tf.TensorSpec([], tf.int64),
        ]
        self._plain = tf.function(plain.draw, input_signature=signature, autograph=False)
        self._xla = tf.function(compiled.draw, jit_compile=True, autograph=False)

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
        """Draws `[S, B, N_T, D_y]`; see `ProbabilisticModel.sample`."""
        batch_size, num_target = (int(size) for size in tf.shape(batch["x_target"])[:2])
        places = sampling_order(order, batch, seed, sequence_keys, self._model.distance_dims)
        rows = int(self.rows_at_once(batch)) if chunk_size is None else chunk_size
        sequences = max(1, min(rows // num_samples, batch_size))
        if chunk_size is None:
            sequences = min(sequences, int(self._sequences_at_once(batch)))
        samples = max(1, min(rows // sequences, num_samples))
        draw = self._xla if jit_compile else self._plain
        parts = []
        for first in range(0, batch_size, sequences):
            some = slice(first, first + sequences)
            own = [{name: value[some] for name, value in batch.items()}, places[some]]
            drawn = []
            for start in range(0, num_samples, samples):
                numbers = tf.range(start, min(start + samples, num_samples), dtype=tf.int64)
                drawn.append(draw(*own, numbers, sequence_keys[some], seed))
            parts.append(tf.concat(drawn, axis=0))
        if not parts:
            return tf.zeros([num_samples, 0, num_target, self._model.y_dims])
        return tf.concat(parts, axis=1)

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

        def draw(
            batch: dict[str, tf.Tensor], places: tf.Tensor, keys: tf.Tensor, numbers: tf.Tensor
        ) -> tf.Tensor:
            return self._loop.draw(batch, places, numbers, keys, seed)

        places = sampling_order(order, batch, seed, keys, self._model.distance_dims)
        at_once = self.rows_at_once(batch), self._sequences_at_once(batch)
        if chunk_size is not None:
            at_once = (tf.constant(chunk_size, tf.int64),) * 2
        return draw_some_at_once(draw, batch, places, keys, num_samples, *at_once)

    def rows_at_once(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Gives how many samples, of all sequences together, keep the caches within the bound."""
        return tf.maximum(_MOST_BYTES // (4 * tf.maximum(self._loop.numbers_per_row(batch), 1)), 1)

    def _sequences_at_once(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Gives how many sequences keep what is made before the loop within the bound."""
        numbers = self._loop.numbers_per_sequence(batch)
        return tf.maximum(_MOST_BYTES // (4 * tf.maximum(numbers, 1)), 1)
