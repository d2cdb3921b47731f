"""MHA-XY: the attention tower over x and y (paper, section "Training")."""

from typing import Any, ClassVar, NamedTuple

import keras
import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_sequences
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.dense import (
    JoinedDense,
    apply_joined,
    joined_dense,
    within_range,
)
from taylorformer.model.layers.tower import AttentionTower


class BlockRows(NamedTuple):
    """What target rows need of one block, made once before a sampler's loop over targets.

    Attributes:
        block: the block.
        context: keys and values of the context, `[B, H, N_C, d]` each.
        joined: Dense layers of a row, side by side. In the first block, whose keys show the row's
            y: query and skip, key and value. In the others, which have no Dense skip: query, key
            and value.
    """

    block: AttentionBlock
    context: tuple[tf.Tensor, tf.Tensor]
    joined: tuple[JoinedDense, ...]

    @classmethod
    def of(cls, block: AttentionBlock, context: tf.Tensor) -> "BlockRows":
        """Makes it from the keys of the context, `[B, N_C, F]`."""
        attention = block.attention
        query, key_value = attention.query_dense, [attention.key_dense, attention.value_dense]
        groups = [[query, *key_value]]
        if block.skip_dense is not None:
            groups = [[query, block.skip_dense], key_value]
        joined = tuple(joined_dense(group, block.compute_dtype) for group in groups)
        return cls(block, attention.keys_and_values(context, context), joined)

    def query_and_skip(self, query: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Projects the query `[B, S, F]` of the first block to `[d, B, H, S]` and the skip."""
        projected = apply_joined(self.joined[0], within_range(query, self.block.compute_dtype))
        width = self.block.width
        return self.block.attention.columns(projected[..., :-width])[0], projected[..., -width:]

    def query_key_value(self, row: tf.Tensor) -> list[tf.Tensor]:
        """Projects a row `[B, S, width]` of a later block; returns `[d, B, H, S]` three times."""
        return self.block.attention.query_key_value(row, self.joined[0])

    def keys_and_values(self, key: tf.Tensor) -> list[tf.Tensor]:
        """Projects a key `[B, S, F]` of the first block; returns `[d, B, H, S]` twice."""
        projected = apply_joined(self.joined[1], within_range(key, self.block.compute_dtype))
        key, value = self.block.attention.columns(projected)
        return [self.block.attention.bounded(key), value]


@keras.saving.register_keras_serializable("taylorformer")
class MHAXY(AttentionTower):
    """The MHA-XY tower.

    First layer: keys = values = `[X^fe, Y^fe, Y^seen, 1]`; the queries are the same for context
    points, and `[X^fe, 0, Y^seen, 0]` for targets, so that a target can be asked for without its y
    being shown. Later layers: all three are the output of the layer before. The arguments are those
    of `AttentionTower`: `num_heads`, `head_dim`, `width`, `num_layers`, `dropout`, `seed`.

    Example:
        Three context points that see one another, and two targets that see them:

        >>> import tensorflow as tf
        >>> x_fe, y_fe = tf.ones([1, 5, 4]), tf.ones([1, 5, 2])
        >>> tower = MHAXY(num_heads=2, head_dim=4, width=6, num_layers=2, seed=0)
        >>> visible = tf.constant([[[True] * 3 + [False] * 2] * 2])
        >>> sees = {"visible": visible, "context_visible": visible[:, :1, :3]}
        >>> tower(x_fe, y_fe, y_seen=tf.ones([1, 5, 1]), **sees).shape
        TensorShape([1, 2, 6])
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "before_sampling", "row_features", "run_row")

    def build(self, x_fe_shape: Any, y_fe_shape: Any, y_seen_shape: Any) -> None:
        """Builds the blocks from the widths of the features."""
        self._y_fe_width = y_fe_shape[-1]
        self._build_blocks(x_fe_shape[-1] + y_fe_shape[-1] + y_seen_shape[-1] + 1)

    def call(
        self,
        x_fe: tf.Tensor,
        y_fe: tf.Tensor,
        y_seen: tf.Tensor,
        visible: tf.Tensor,
        context_visible: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Runs the tower.

        Args:
            x_fe: `[B, N, F_x]`, features of x, context rows first. Here and in the masks 1
                instead of B stands for all sequences.
            y_fe: `[B, N, F_y]`, features that read the y of the point itself.
            y_seen: `[B, N, F_s]`, features that read y of seen points only.
            visible: `[B, N_T, N]` bool, what target rows see.
            context_visible: `[B, 1, N_C]` bool, what context rows see.
            training: use dropout.

        Returns:
            O_XY `[B, N_T, width]`, float32.
        """
        num_context = tf.shape(context_visible)[-1]
        x_fe = tile_sequences(x_fe, tf.shape(y_fe)[0])
        key = self.row_features(x_fe, y_seen, y_fe)
        is_context = tf.range(tf.shape(key)[1])[:, tf.newaxis] < num_context
        query = tf.where(is_context, key, self.row_features(x_fe, y_seen, None))
        return self._run(query, key, None, visible, context_visible, training)

    def before_sampling(self, context: tf.Tensor, context_visible: tf.Tensor) -> list[BlockRows]:
        """Runs the tower on the context, and keeps what rows of targets need of every block.

        Args:
            context: `[B, N_C, F_x + F_s + F_y + 1]`, the keys of the context points, see
                `row_features`.
            context_visible: `[B, 1, N_C]` bool.
        """
        kept = []
        for block in self.blocks:
            kept.append(BlockRows.of(block, context))
            if block is not self.blocks[-1]:
                context = block(context, context, context, visible=context_visible)
        return kept

    def row_features(self, x_fe: tf.Tensor, y_seen: tf.Tensor, y_fe: tf.Tensor | None) -> tf.Tensor:
        """Joins the features of rows as keys, or as queries that do not show their y.

        Args:
            x_fe: `[B, R, F_x]`.
            y_seen: `[B, R, F_s]`.
            y_fe: `[B, R, F_y]`. None: a query.

        Returns:
            `[B, R, F_x + F_s + F_y + 1]`.
        """
        if y_fe is None:
            # New zeros, not a product with 0, so that no NaN in y can come through.
            shape = tf.shape(x_fe)
            of_itself = tf.zeros([shape[0], shape[1], self._y_fe_width + 1])
        else:
            of_itself = tf.concat([y_fe, tf.ones_like(y_fe[..., :1])], axis=-1)
        return tf.concat([x_fe, y_seen, of_itself], axis=-1)

    def run_row(
        self,
        query: tf.Tensor,
        rows: list[BlockRows],
        earlier: list[tuple[tf.Tensor, tf.Tensor]],
        context_mask: tf.Tensor,
        earlier_mask: tf.Tensor,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Runs the tower for one target row of every sample.

        Args:
            query: `[B, S, F]`, the row's query.
            rows: returned by `before_sampling`.
            earlier: for each block keys and values of earlier targets, `[R, d, B, H, S]`.
            context_mask: `[B, N_C]` bool.
            earlier_mask: `[R, B]` bool.

        Returns:
            O_XY `[B, S, width]`, float32, and the keys and values of the row for every block but
            the first one, which waits for y (see `BlockRows.keys_and_values`); `[d, B, H, S]` each.
        """
        columns: list[tf.Tensor] = []
        for number, (block, kept) in enumerate(zip(self.blocks, rows, strict=True)):
            if number:
                column, *keys_and_values = kept.query_key_value(query)
                columns += keys_and_values
                skip = query
            else:
                column, skip = kept.query_and_skip(query)
            attended = block.attention.attend_row(
                column, kept.context, earlier[number], context_mask, earlier_mask
            )
            query = block.finish(attended, skip)
        return query, columns
