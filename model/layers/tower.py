"""What the two attention towers have in common."""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import check_integer, check_optional_integer, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.layers.rows import split_rows


class AttentionTower(keras.layers.Layer):
    """A stack of L attention blocks over context and target rows; see `MHAX` and `MHAXY`.

    The last block computes target rows only: nothing reads its context rows.

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of every block.
        num_layers: L.
        dropout: rate of the dropout in the feed-forward parts.
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("_run", "_hidden")

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        num_layers: int,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads = plain_number(num_heads)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = plain_number(width)
        self.num_layers = num_layers = check_integer("num_layers", num_layers, 1)
        self.dropout = dropout = plain_number(dropout)
        self.seed = seed = check_optional_integer("seed", seed, 0)
        self.blocks = [
            AttentionBlock(
                num_heads,
                head_dim,
                width,
                dropout=dropout,
                project_skip=layer == 0,
                seed=child_seed(seed, layer),
                dtype=self.dtype_policy,
                name=f"block_{layer}",
            )
            for layer in range(num_layers)
        ]

    def _build_blocks(self, features: int, last_value_features: int | None = None) -> None:
        """Builds every block; the last one may read values of another width."""
        for layer, block in enumerate(self.blocks):
            shape = (None, None, features if layer == 0 else self.width)
            value_shape = shape
            if layer == self.num_layers - 1 and last_value_features is not None:
                value_shape = (None, None, last_value_features)
            block.build(shape, shape, value_shape)
        self.built = True

    def _run(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        last_value: tf.Tensor | None,
        visible: tf.Tensor,
        context_visible: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Runs the blocks on `[B, N, F]` rows; returns target rows `[B, N_T, width]`."""
        num_context = tf.shape(context_visible)[-1]
        if self.num_layers > 1:
            query = key = self._hidden(query, key, visible, context_visible, training)
        value = key if last_value is None else last_value
        of_targets = split_rows(query, num_context, axis=1)[1]
        return self.blocks[-1](of_targets, key, value, visible=visible, training=training)

    def _hidden(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        visible: tf.Tensor,
        context_visible: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Runs all blocks but the last one, on all rows; a tower of one block returns the query."""
        for block in self.blocks[:-1]:
            query = block(
                query,
                key,
                key,
                visible=visible,
                context_visible=context_visible,
                training=training,
            )
            key = query
        return query

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "num_layers": self.num_layers,
            "dropout": self.dropout,
            "seed": self.seed,
        }
