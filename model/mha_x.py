"""MHA-X: the attention tower whose weights see only x (paper, section "MHA-X block")."""

from typing import Any

import keras
import tensorflow as tf

from taylorformer.model.tower import AttentionTower


@keras.saving.register_keras_serializable("taylorformer")
class MHAX(AttentionTower):
    """The MHA-X tower: its output is a weighting of Y in which the weights see only x.

    Queries, keys and values are `X^fe`; in the last layer the values are Y itself, queries and
    keys the output of the layer before. With one layer, that layer is also the last: queries and
    keys are `X^fe`, values Y. The arguments are those of `AttentionTower`: `num_heads`,
    `head_dim`, `width`, `num_layers`, `dropout`, `seed`.
    """

    def build(self, x_fe_shape: Any, y_shape: Any) -> None:
        """Builds the blocks from the widths of `X^fe` and Y."""
        self._build_blocks(x_fe_shape[-1], y_shape[-1])

    def call(
        self,
        x_fe: tf.Tensor,
        y: tf.Tensor,
        visible: tf.Tensor,
        context_visible: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Runs the tower.

        Args:
            x_fe: `[B, N, F_x]`, features of x, context rows first.
            y: `[B, N, D_y]`.
            visible: `[B, N_T, N]` bool, what target rows see.
            context_visible: `[B, 1, N_C]` bool, what context rows see.
            training: use dropout.

        Returns:
            O_X `[B, N_T, width]`, float32.
        """
        return self._run(x_fe, x_fe, y, visible, context_visible, training)
