"""MHA-X-Net: both attention towers and the head (paper, figure 1a)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.dense import (
    JoinedDense,
    apply_dense,
    apply_joined,
    seeded_dense,
)
from taylorformer.model.layers.mask import context_visibility, target_visibility
from taylorformer.model.layers.mha_x import MHAX
from taylorformer.model.layers.mha_xy import MHAXY

TOWERS = ("x", "xy")

# Of the Dense layers of a row, in their order.
_OUTPUTS = ("mean", "raw_scale", "gates")


@keras.saving.register_keras_serializable("taylorformer")
class MHAXNet(keras.layers.Layer):
    """The layer that LocalTaylor wraps: MHA-X and MHA-XY side by side, then the head.

    `z = Dense(concat(O_X, O_XY))`, the adjustment `A = Dense(z)`, the raw scale `Dense(z)`.

    Example:
        >>> import tensorflow as tf
        >>> from taylorformer import RepresentationExtractor
        >>> x = tf.constant([[[0.0], [1.0], [2.0], [0.5], [2.5]]])
        >>> batch = {"x_context": x[:, :3], "y_context": tf.sin(x[:, :3]), "x_target": x[:, 3:]}
        >>> features = RepresentationExtractor(encoding_dim=4)(batch)
        >>> outputs = MHAXNet(num_heads=2, head_dim=4, width=8, num_layers=1, seed=0)(features)
        >>> outputs["mean"].shape, outputs["raw_scale"].shape
        (TensorShape([1, 2, 1]), TensorShape([1, 2, 1]))

    Args:
        num_heads: H.
        head_dim: width of one head.
        width: width of the towers and of z.
        num_layers: L, layers of each tower.
        dropout: rate of the dropout in the feed-forward parts.
        towers: which towers to use, of "x" (MHA-X) and "xy" (MHA-XY).
        seed: for the first weights and the dropout. None: at random.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "head", "row_head")
    shares_points = True

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        width: int,
        num_layers: int,
        dropout: float = 0.0,
        towers: Sequence[str] = TOWERS,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        legal = isinstance(towers, (list, tuple)) and all(tower in TOWERS for tower in towers)
        if not legal or not towers or len(set(towers)) != len(towers):
            raise ValueError(
                '`towers` must name one or both of "x" and "xy", each once. '
                f"Received: towers={towers!r}"
            )
        self.num_heads = num_heads = plain_number(num_heads)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = plain_number(width)
        self.num_layers = num_layers = plain_number(num_layers)
        self.dropout = dropout = plain_number(dropout)
        self.towers = towers
        self.seed = seed = plain_number(seed)
        shared = {
            "num_heads": num_heads,
            "head_dim": head_dim,
            "width": width,
            "num_layers": num_layers,
            "dropout": dropout,
            "dtype": self.dtype_policy,
        }
        self.mha_x = self.mha_xy = None
        if "x" in towers:
            self.mha_x = MHAX(seed=child_seed(seed, 0), name="mha_x", **shared)
        if "xy" in towers:
            self.mha_xy = MHAXY(seed=child_seed(seed, 1), name="mha_xy", **shared)

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Builds the towers and the head from the widths of the features."""
        y_dims = input_shape["y"][-1]
        if self.mha_x is not None:
            self.mha_x.build(input_shape["x_fe"], input_shape["y"])
        if self.mha_xy is not None:
            self.mha_xy.build(input_shape["x_fe"], input_shape["y_fe"], input_shape["y_seen"])
        policy = self.dtype_policy
        self.join_dense = seeded_dense(self.width, self.seed, 2, policy, "join")
        self.mean_dense = seeded_dense(y_dims, self.seed, 3, policy, "mean")
        self.scale_dense = seeded_dense(y_dims, self.seed, 4, policy, "scale")
        self.gate_dense = None
        # Features of callers may lack what is not in the paper.
        num_gates = input_shape["gated_terms"][-2] if "gated_terms" in input_shape else 0
        denses = [self.join_dense, self.mean_dense, self.scale_dense]
        if num_gates:
            self.gate_dense = seeded_dense(num_gates, self.seed, 5, policy, "gates")
            denses.append(self.gate_dense)
        for dense in denses:
            dense.trainable = self.trainable
        self.join_dense.build((None, None, self.width * len(self.towers)))
        for dense in denses[1:]:
            dense.build((None, None, self.width))
        self.built = True

    def call(self, features: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, Any]:
        """Runs the towers and the head.

        Args:
            features: returned by `RepresentationExtractor`.
            training: use dropout.

        Returns:
            `{"mean": A [B, N_T, D_y], "raw_scale": [B, N_T, D_y]}`, float32; for gated terms
            also `gates` `[B, N_T, G]`, see `LocalTaylor`.
        """
        context_visible = context_visibility(features["context_mask"])
        visible = target_visibility(features["context_mask"], features["target_seen"])
        joined = []
        if self.mha_x is not None:
            joined.append(
                self.mha_x(
                    features["x_fe"],
                    features["y"],
                    visible=visible,
                    context_visible=context_visible,
                    training=training,
                )
            )
        if self.mha_xy is not None:
            joined.append(
                self.mha_xy(
                    features["x_fe"],
                    features["y_fe"],
                    features["y_seen"],
                    visible=visible,
                    context_visible=context_visible,
                    training=training,
                )
            )
        return self.head(joined)

    @property
    def row_denses(self) -> list[keras.layers.Dense]:
        """The Dense layers whose weights are read where rows are drawn one by one."""
        denses = [self.mean_dense, self.scale_dense]
        return denses if self.gate_dense is None else [*denses, self.gate_dense]

    def head(self, joined: list[tf.Tensor]) -> dict[str, tf.Tensor]:
        """Turns O_X and O_XY, `[B, R, width]` each, into what `call` returns."""
        z = apply_dense(self.join_dense, tf.concat(joined, axis=-1))
        return {
            name: tf.cast(apply_dense(dense, z), tf.float32)
            for name, dense in zip(_OUTPUTS, self.row_denses, strict=False)
        }

    def row_head(self, joined: list[tf.Tensor], denses: JoinedDense) -> dict[str, tf.Tensor]:
        """Does what `head` does for one row of every sample, the last Dense layers joined.

        Args:
            joined: O_X and O_XY, `[B, S, width]` each.
            denses: `row_denses`, joined.

        Returns:
            What `head` returns, with S instead of R.
        """
        z = apply_dense(self.join_dense, tf.concat(joined, axis=-1))
        widths = [dense.units for dense in self.row_denses]
        parts = tf.split(apply_joined(denses, z), widths, axis=-1)
        return {
            name: tf.cast(part, tf.float32) for name, part in zip(_OUTPUTS, parts, strict=False)
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "width": self.width,
            "num_layers": self.num_layers,
            "dropout": self.dropout,
            "towers": [str(tower) for tower in self.towers],
            "seed": self.seed,
        }
