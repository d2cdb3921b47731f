"""The loop over targets of a Taylorformer, for `CachedSampler`.

What depends on x and y_context only is made once, before the loop, and shared by all samples:
neighbours, features of x, the tower MHA-X up to its last attention weights, and all keys and values
of the context.
"""

from typing import NamedTuple, Protocol

import tensorflow as tf

from taylorformer.data_wrangler.features.row_features import rows_first
from taylorformer.model.layers.dense import JoinedDense, joined_dense, within_range
from taylorformer.model.layers.local_taylor import LocalTaylor, gated_sum
from taylorformer.model.layers.mask import context_visibility, target_visibility
from taylorformer.model.layers.mha_xy import BlockRows
from taylorformer.model.observed_density import observable
from taylorformer.model.sampling.base import BYTES_PER_FLOAT, Memory, SampledModel, lengths
from taylorformer.model.sampling.cached import Caches
from taylorformer.model.sampling.counter_noise import normal_noise
from taylorformer.model.sampling.shuffling import permute_targets

_ROWS_IN_A_STEP = 4
"""Tensors of the size of one key that an attention of one step makes besides the caches."""
_SCORES_IN_A_STEP = 3
"""How often a step makes the attention scores of its row over the context: raw, shifted, exp."""
_STATES_HELD = 8
"""How many times D_y numbers are held for a point: its y, derivatives, flags, noise and copies."""
_SCORES_BEFORE = 4
"""How often attention scores `[N, N]` are made before the loop."""


class TaylorformerModel(SampledModel, Protocol):
    """What the loop reads of a Taylorformer that has been built."""

    num_heads: int
    local_taylor: LocalTaylor

    @property
    def compute_dtype(self) -> str:
        """The dtype of Dense layers and attention products."""

    def scale_from_raw(self, raw: tf.Tensor) -> tf.Tensor:
        """Turns the raw scale that the head returns into the scale."""


class _SharedByX(NamedTuple):
    """What all samples share of the tower MHA-X; the rows of targets are the first axis.

    Attributes:
        weights: the last attention weights of target rows on targets, `[N_T, B, H, N_T]`.
        weighted_context: y_context summed by those on the context, `[N_T, B, H, D_y]`.
        skip: what the last block adds to its attention, `[N_T, B, 1, width]`.
    """

    weights: tf.Tensor
    weighted_context: tf.Tensor
    skip: tf.Tensor


class _Shared(NamedTuple):
    """What all samples of a sequence share.

    Attributes:
        context_mask: `[B, N_C]` bool.
        target_mask: `[N_T, B]` bool, which targets are drawn, and seen by later ones.
        neighbours: what is known of the neighbours of targets, see `RowFeatures.before_sampling`.
        x_fe: features of the targets' x, `[N_T, B, 1, F_x]`.
        mha_x: of the tower MHA-X. None without it.
        blocks: of each block of the tower MHA-XY; empty without it.
        head: the last Dense layers, joined.
        y_support: which values y can have, `[B, 1, D_y, 6]`. None: any.
    """

    context_mask: tf.Tensor
    target_mask: tf.Tensor
    neighbours: dict[str, tf.Tensor]
    x_fe: tf.Tensor
    mha_x: _SharedByX | None
    blocks: list[BlockRows]
    head: JoinedDense
    y_support: tf.Tensor | None


class TaylorformerLoop:
    """Draws the targets of a Taylorformer one by one, keeping keys and values.

    Args:
        model: a `Taylorformer` that has been built and `can_be_drawn_by_row`.
        xla: with operations that XLA compiles. False: write rows in place, and read only the rows
            that are there.
        negated: draw from the mirror image of the model, which reads -y and draws its negative.
    """

    def __init__(self, model: TaylorformerModel, xla: bool = False, negated: bool = False) -> None:
        self._model = model
        self._negated = negated
        self._extractor = model.local_taylor.representation_extractor
        self._network = model.local_taylor.network
        self._adds_taylor_terms = model.local_taylor.taylor_order is not None
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
        if self._negated:
            batch = {**batch, "y_context": -batch["y_context"]}
        noise = normal_noise(
            seed,
            sequence_keys[:, tf.newaxis],
            sample_numbers,
            rows_first(order)[:, :, tf.newaxis],
            y_dims,
        )
        num_target, num_samples = tf.shape(noise)[0], tf.shape(noise)[2]
        shared, state = self._before(permute_targets(batch, order), num_samples)
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
        y = tf.gather(y, tf.argsort(order, axis=-1), batch_dims=1)
        y = tf.transpose(y, [2, 0, 1, 3])
        return tf.where(y == 0, 0.0, -y) if self._negated else y

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns a bound on the memory of `draw`.

        Each sample keeps keys and values of targets and the state of all points; before the loop
        attention scores are the largest tensors.
        """
        num_context, num_target = lengths(batch)
        num_points = num_target + num_context
        tower = self._network.mha_xy
        numbers = num_points * _STATES_HELD * self._model.y_dims
        if tower is not None:
            width = tower.num_heads * tower.head_dim
            numbers += num_target * width * (2 * tower.num_layers + _ROWS_IN_A_STEP)
            numbers += _SCORES_IN_A_STEP * tower.num_heads * num_context
        return Memory(
            per_sample=BYTES_PER_FLOAT * numbers,
            per_sequence=BYTES_PER_FLOAT * _SCORES_BEFORE * self._model.num_heads * num_points**2,
        )

    def _before(
        self, batch: dict[str, tf.Tensor], num_samples: tf.Tensor
    ) -> tuple[_Shared, tf.Tensor]:
        """Makes what is shared, and the state `[N, B, S, C]`, still 0 in target rows."""
        features, neighbours, context_state = self._extractor.before_sampling(batch)
        num_context = tf.shape(batch["x_context"])[1]
        num_target = tf.shape(batch["x_target"])[1]
        x_fe = features["x_fe"]
        network = self._network
        support = batch.get("y_support")
        shared = _Shared(
            context_mask=batch["context_mask"],
            target_mask=rows_first(features["target_seen"]),
            neighbours=neighbours,
            x_fe=rows_first(x_fe[:, num_context:])[:, :, tf.newaxis],
            mha_x=self._before_mha_x(features, batch["context_mask"]),
            blocks=self._before_mha_xy(features, batch["context_mask"]),
            head=joined_dense(network.row_denses, network.compute_dtype),
            y_support=None if support is None else support[:, tf.newaxis],
        )
        shape = tf.shape(context_state)
        of_context = tf.tile(context_state[:, :, tf.newaxis], [1, 1, num_samples, 1])
        of_targets = self._caches.new([num_target, shape[1], num_samples, context_state.shape[-1]])
        return shared, tf.concat([of_context, of_targets], axis=0)

    def _before_mha_x(
        self, features: dict[str, tf.Tensor], context_mask: tf.Tensor
    ) -> _SharedByX | None:
        tower = self._network.mha_x
        if tower is None:
            return None
        num_context = tf.shape(context_mask)[1]
        visible = target_visibility(context_mask, features["target_seen"])
        weights, skip = tower.before_sampling(
            features["x_fe"], visible, context_visibility(context_mask)
        )
        y = self._as_values(features["y"][:, :num_context])
        weighted = tf.matmul(weights[..., :num_context], y[:, tf.newaxis])
        on_targets, weighted = (
            tf.transpose(part, [2, 0, 1, 3]) for part in (weights[..., num_context:], weighted)
        )
        return _SharedByX(on_targets, weighted, rows_first(skip)[:, :, tf.newaxis])

    def _before_mha_xy(
        self, features: dict[str, tf.Tensor], context_mask: tf.Tensor
    ) -> list[BlockRows]:
        tower = self._network.mha_xy
        if tower is None:
            return []
        num_context = tf.shape(context_mask)[1]
        keys = tower.row_features(
            *(features[name][:, :num_context] for name in ("x_fe", "y_seen", "y_fe"))
        )
        return tower.before_sampling(keys, context_visibility(context_mask))

    def _step(
        self,
        shared: _Shared,
        i: tf.Tensor,
        state: tf.Tensor,
        caches: tuple[tf.Tensor, ...],
        noise: tf.Tensor,
        num_context: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Draws target i; returns its y `[B, S, D_y]`, its state and a row of every cache."""
        neighbour, y_seen, terms, gated = self._extractor.row_before_y(shared.neighbours, i, state)
        earlier, visible = self._caches.earlier(i, shared.target_mask)
        x_fe = tf.tile(shared.x_fe[i], [1, tf.shape(state)[2], 1])
        outputs: list[tf.Tensor] = []
        columns: list[tf.Tensor] = []
        mha_xy = self._network.mha_xy
        if shared.mha_x is not None:
            y_earlier = state[num_context:, ..., : self._model.y_dims][earlier]
            sees = tf.reduce_any(shared.context_mask, axis=1) | tf.reduce_any(visible, axis=0)
            outputs.append(self._step_of_mha_x(shared.mha_x, i, y_earlier, earlier, sees))
        if mha_xy is not None:
            rows = [cache[earlier] for cache in caches]
            output, columns = mha_xy.run_row(
                mha_xy.row_features(x_fe, y_seen, None),
                shared.blocks,
                list(zip(rows[::2], rows[1::2], strict=True)),
                shared.context_mask,
                visible,
            )
            outputs.append(output)
        head = self._network.row_head(outputs, shared.head)
        mean, scale = head["mean"], self._model.scale_from_raw(head["raw_scale"])
        if self._adds_taylor_terms:
            mean += terms
        if gated.shape[2]:
            mean += gated_sum(gated, head.get("gates"), self._extractor.first_gates)
        is_drawn = shared.target_mask[i][:, tf.newaxis, tf.newaxis]
        y = mean + scale * noise
        # The support is that of y, not of -y.
        y = -observable(-y, shared.y_support) if self._negated else observable(y, shared.y_support)
        y = tf.where(is_drawn, y, 0.0)
        y_fe, row = self._extractor.row_after_y(neighbour, y)
        if mha_xy is not None:
            key = mha_xy.row_features(x_fe, y_seen, y_fe)
            columns = [*shared.blocks[0].keys_and_values(key), *columns]
        return y, row, columns

    def _step_of_mha_x(
        self,
        shared: _SharedByX,
        i: tf.Tensor,
        y_earlier: tf.Tensor,
        earlier: slice,
        sees: tf.Tensor,
    ) -> tf.Tensor:
        """Runs the last block of MHA-X for target i: y is weighted before it is projected."""
        y_dims = self._model.y_dims
        y_earlier = self._as_values(y_earlier)
        shape = tf.shape(y_earlier)
        # [B, H, R] times [B, R, S D_y].
        flat = tf.reshape(y_earlier, [shape[0], shape[1], shape[2] * y_dims])
        weights = shared.weights[i][..., earlier]
        weighted = tf.matmul(weights, tf.transpose(flat, [1, 0, 2]))
        sizes = [tf.shape(weighted)[0], weighted.shape[1], shape[2], y_dims]
        weighted = tf.reshape(weighted, sizes) + shared.weighted_context[i][:, :, tf.newaxis]
        return self._network.mha_x.run_row(weighted, sees, shared.skip[i])

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
