"""MHA-XY: the attention tower over x and y (paper, section "Training")."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.model.attention_block import AttentionBlock
from taylorformer.model.tower import AttentionTower


@keras.saving.register_keras_serializable("taylorformer")
class MHAXY(AttentionTower):
    """The MHA-XY tower.

    First layer: keys = values = `[X^fe, Y^fe, Y^seen, 1]`; the queries are the same for context
    points, and `[X^fe, 0, Y^seen, 0]` for targets, so that a target can be asked for without its y
    being shown. Later layers: all three are the output of the layer before. The arguments are those
    of `AttentionTower`: `num_heads`, `head_dim`, `width`, `num_layers`, `dropout`, `seed`.
    """

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
            x_fe: `[B, N, F_x]`, features of x, context rows first.
            y_fe: `[B, N, F_y]`, features that read the point's own y.
            y_seen: `[B, N, F_s]`, features that read y of seen points only.
            visible: `[B, N_T, N]` bool, what target rows see.
            context_visible: `[B, 1, N_C]` bool, what context rows see.
            training: use dropout.

        Returns:
            O_XY `[B, N_T, width]`, float32.
        """
        num_context = tf.shape(context_visible)[-1]
        key = self.row_features(x_fe, y_seen, y_fe)
        hidden = self.row_features(x_fe[:, num_context:], y_seen[:, num_context:], None)
        query = tf.concat([key[:, :num_context], hidden], axis=1)
        return self._run(query, key, None, visible, context_visible, training)

    def before_sampling(
        self, context: tf.Tensor, context_visible: tf.Tensor
    ) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Runs the tower on the context, and keeps the keys and values of every block.

        Args:
            context: `[B, N_C, F_x + F_s + F_y + 1]`, the keys of the context points, see
                `row_features`.
            context_visible: `[B, 1, N_C]` bool.

        Returns:
            For each block keys and values `[B, H, N_C, d]`.
        """
        kept = []
        for block in self.blocks:
            kept.append(block.attention.keys_and_values(context, context))
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
            # Zeros are put in place, not multiplied with, so that no own y can shine through.
            shape = tf.shape(x_fe)
            own = tf.zeros([shape[0], shape[1], self._y_fe_width + 1])
        else:
            own = tf.concat([y_fe, tf.ones_like(y_fe[..., :1])], axis=-1)
        return tf.concat([x_fe, y_seen, own], axis=-1)

    def sample_row(
        self,
        query: tf.Tensor,
        context: list[tuple[tf.Tensor, tf.Tensor]],
        earlier: list[tuple[tf.Tensor, tf.Tensor]],
        context_mask: tf.Tensor,
        earlier_mask: tf.Tensor,
    ) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        """Gives O_XY of one target row of every sample.

        Args:
            query: `[B, S, F]`, the row's query.
            context: what `before_sampling` gave.
            earlier: for each block keys and values of earlier targets, `[R, d, B, H, S]`.
            context_mask: `[B, N_C]` bool.
            earlier_mask: `[R, B]` bool.

        Returns:
            `[B, S, width]`, float32, and the row's own keys and values for every block but the
            first one, which waits for y; `[d, B, H, S]` each.
        """
        own = []
        for layer, block in enumerate(self.blocks):
            if layer:
                own.append(self.columns(block, query))
            attended = block.attention.attend_row(
                query, context[layer], earlier[layer], context_mask, earlier_mask
            )
            query = block.finish(attended, block.skip(query))
        return query, own

    @staticmethod
    def columns(block: AttentionBlock, key: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Projects the keys of one row of every sample, `[B, S, F]`, to `[d, B, H, S]`."""
        keys, values = block.attention.keys_and_values(key, key)
        return tf.transpose(keys, [3, 0, 1, 2]), tf.transpose(values, [3, 0, 1, 2])
