"""MHA-XY: the attention tower over x and y (paper, section "Training")."""

from typing import Any

import keras
import tensorflow as tf

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
        label = tf.ones_like(x_fe[..., :1])
        own = tf.concat([y_fe, label], axis=-1)
        # Zeros are put in place, not multiplied with, so that no own y can shine through.
        shown = own[:, :num_context]
        masked = tf.concat([shown, tf.zeros_like(own[:, num_context:])], axis=1)
        key = tf.concat([x_fe, y_seen, own], axis=-1)
        query = tf.concat([x_fe, y_seen, masked], axis=-1)
        return self._run(query, key, None, visible, context_visible, training)
