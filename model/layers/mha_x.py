"""MHA-X: the attention tower whose weights see only x (paper, section "MHA-X block")."""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.model.layers.tower import AttentionTower


@keras.saving.register_keras_serializable("taylorformer")
class MHAX(AttentionTower):
    """The MHA-X tower: its output is a weighting of Y in which the weights see only x.

    Queries, keys and values are `X^fe`; in the last layer the values are Y itself, queries and
    keys the output of the layer before. With one layer, that layer is also the last: queries and
    keys are `X^fe`, values Y. The arguments are those of `AttentionTower`: `num_heads`,
    `head_dim`, `width`, `num_layers`, `dropout`, `seed`.

    Example:
        Three context points that see one another, and two targets that see them:

        >>> import tensorflow as tf
        >>> x_fe = tf.random.stateless_normal([1, 5, 4], seed=(1, 2))
        >>> tower = MHAX(num_heads=2, head_dim=4, width=6, num_layers=2, seed=0)
        >>> visible = tf.constant([[[True] * 3 + [False] * 2] * 2])
        >>> sees = {"visible": visible, "context_visible": visible[:, :1, :3]}
        >>> tower(x_fe, tf.ones([1, 5, 1]), **sees).shape
        TensorShape([1, 2, 6])
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "before_sampling", "run_row")

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
            x_fe: `[B, N, F_x]`, features of x, context rows first. With 1 instead of B, here
                and in the masks, all blocks but the last one run once for all sequences.
            y: `[B, N, D_y]`.
            visible: `[B, N_T, N]` bool, what target rows see.
            context_visible: `[B, 1, N_C]` bool, what context rows see.
            training: use dropout.

        Returns:
            O_X `[B, N_T, width]`, float32.
        """
        return self._run(x_fe, x_fe, y, visible, context_visible, training)

    def before_sampling(
        self, x_fe: tf.Tensor, visible: tf.Tensor, context_visible: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the tower up to its last attention weights, which see only x.

        Args:
            x_fe: see `call`, as the others.
            visible: `[B, N_T, N]` bool.
            context_visible: `[B, 1, N_C]` bool.

        Returns:
            The weights `[B, H, N_T, N]`, all 0 in rows that see nothing, and what the last block
            adds to its attention, `[B, N_T, width]`.
        """
        hidden = self._hidden(x_fe, x_fe, visible, context_visible, training=False)
        last, query = self.blocks[-1], hidden[:, tf.shape(context_visible)[-1] :]
        return last.attention.attention_weights(query, hidden, visible), last.skip(query)

    def run_row(self, weighted: tf.Tensor, sees: tf.Tensor, skip: tf.Tensor) -> tf.Tensor:
        """Returns O_X of one target row of every sample, `[B, S, width]`, float32.

        Args:
            weighted: `[B, H, S, D_y]`, y of what the row sees, summed by its weights.
            sees: `[B]` bool, False where it sees nothing.
            skip: `[B, 1, width]`.
        """
        last = self.blocks[-1]
        return last.finish(last.attention.weigh_values(weighted, sees), skip)
