"""The weights that the paper's authors released, read into a `Taylorformer`.

Their model differs from the paper in details (no derivative in `Y^seen`, an unsigned
derivative, another label and another attention scale). The features are made by a small subclass
of `RepresentationExtractor`; label and attention scale fold into the weights.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from taylorformer.data_wrangler.features.derivatives import ratio
from taylorformer.data_wrangler.features.neighbours import canonical_order
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor
from taylorformer.model.layers.attention_block import AttentionBlock
from taylorformer.model.taylorformer import Taylorformer

_ROOT = "net/"
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_SOFTENING = 2e-6
_ENCODING: dict[str, Any] = {"encoding_dim": 32, "shortest": 0.1, "longest": 100.0}
_HEADS = {66: (6, 11), 96: (8, 12)}
"""Total projection width: (heads, head width), for the ETT and the exchange model."""


@keras.saving.register_keras_serializable("taylorformer")
class ReleasedRepresentationExtractor(RepresentationExtractor):
    """The features of the authors' released code; one input and one output dimension.

    `Y^seen` is `Y^n` only, the derivative is `dY / (2e-6 + |dX|)`, a flagged derivative is 0
    *before* normalisation, and ties go to the first point in every mode.
    """

    # Features of a point read that point and its neighbour only, so it can be drawn row by row.
    row_wise = True

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Builds the layer.

        Raises:
            ValueError: D_x or D_y is not 1.
        """
        x_dims, y_dims = input_shape["x_context"][-1], input_shape["y_context"][-1]
        if (x_dims, y_dims) != (1, 1):
            raise ValueError(
                "The released models need D_x = 1 and D_y = 1. "
                f"Received: D_x = {x_dims}, D_y = {y_dims}"
            )
        super().build(input_shape)

    def _orders(
        self, batch: Mapping[str, tf.Tensor], training: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return canonical_order(batch["x_context"], batch["y_context"], batch["x_target"])

    def _estimate_derivative(
        self, delta_x: tf.Tensor, delta_y: tf.Tensor, seen: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        distance = _SOFTENING + tf.abs(delta_x[..., 0, :])
        quotient, flag = ratio(delta_y[..., 0, :], distance, seen, self.max_derivative)
        return quotient[..., tf.newaxis], flag

    def _features(
        self, neighbour: Mapping[str, tf.Tensor], is_context: tf.Tensor, training: bool
    ) -> tuple[list[tf.Tensor], list[tf.Tensor], list[tf.Tensor]]:
        statistics = (neighbour["d_flag"] & is_context)[..., 0]
        derivative = tf.where(neighbour["d_flag"], neighbour["d"][..., 0], 0.0)
        normalized = self.derivative_normalization(derivative, statistics, training=training)
        flag = tf.cast(neighbour["d_flag"], tf.float32)
        return (
            [neighbour["x_n"], neighbour["dx"]],
            [neighbour["dy"], normalized, flag],
            [neighbour["y_n"]],
        )


class _Checkpoint:
    """The released variables by name, each to be taken once."""

    def __init__(self, prefix: str) -> None:
        if not Path(f"{prefix}.index").is_file():
            raise FileNotFoundError(
                "`prefix` must be the path of a TensorFlow checkpoint without its `.index` "
                f"ending. Received: {prefix}, and {prefix}.index does not exist"
            )
        reader = tf.train.load_checkpoint(prefix)
        self._prefix = prefix
        self._left = {
            name[len(_ROOT) : -len(_SUFFIX)]: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if name.startswith(_ROOT) and name.endswith(_SUFFIX) and "OPTIMIZER_SLOT" not in name
        }

    def names(self) -> list[str]:
        return sorted(self._left)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._get(name).shape

    def _get(self, name: str) -> np.ndarray:
        if name not in self._left:
            raise ValueError(
                f"The checkpoint must hold the weight {name!r}. Received: {self._prefix}, which "
                f"does not; left in it: {self.names()}"
            )
        return self._left[name]

    def take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        value = self._get(name)
        if tuple(value.shape) != tuple(shape):
            raise ValueError(
                f"The weight {name!r} must have the shape {list(shape)}. "
                f"Received: {list(value.shape)} in {self._prefix}"
            )
        return self._left.pop(name)

    def finish(self) -> None:
        if self._left:
            raise ValueError(
                "Every weight of the checkpoint must be one of the model's. Received: "
                f"{self._prefix}, in which the model has no {self.names()}"
            )


def _reorder_x(kernel: np.ndarray) -> np.ndarray:
    """Moves rows from (PE, dX, X^n) to ours (PE, X^n, dX)."""
    width = _ENCODING["encoding_dim"]
    return kernel[[*range(width), width + 1, width]]


def _reorder_xy(kernel: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moves rows from (y, dY, D, flag, Y^n, label, X) to (X, Y^n, y, dY, D, flag, 1 - label)."""
    label = kernel[5]
    rows = [_reorder_x(kernel[6:]), kernel[4:5], kernel[:4], -label[np.newaxis]]
    return np.concatenate(rows), bias + label


def _fill_dense(
    layer: keras.layers.Dense, source: _Checkpoint, name: str, kind: str = "", factor: float = 1.0
) -> None:
    kernel = source.take(f"{name}/kernel", layer.kernel.shape)
    bias = source.take(f"{name}/bias", layer.bias.shape)
    if kind == "x":
        kernel = _reorder_x(kernel)
    elif kind == "xy":
        kernel, bias = _reorder_xy(kernel, bias)
    layer.set_weights([kernel * factor, bias * factor])


def _fill_block(
    block: AttentionBlock, source: _Checkpoint, name: str, kind: str, num_heads: int
) -> None:
    """Fills one block; `kind` names the features that a first block reads, or is empty."""
    attention = block.attention
    # Their scores are scaled by the total projection width, ours by the head width.
    _fill_dense(attention.query_dense, source, f"{name}/mha/W_q", kind, num_heads**-0.5)
    _fill_dense(attention.key_dense, source, f"{name}/mha/W_k", kind)
    _fill_dense(attention.value_dense, source, f"{name}/mha/W_v", kind)
    _fill_dense(attention.output_dense, source, f"{name}/mha/W_o")
    if block.skip_dense is not None:
        _fill_dense(block.skip_dense, source, f"{name}/ffn/dense_a", kind)
    _fill_dense(block.hidden_dense, source, f"{name}/ffn/dense_b")
    _fill_dense(block.output_dense, source, f"{name}/ffn/dense_c")
    for norm, number in ((block.attention_norm, 0), (block.output_norm, 1)):
        path = f"{name}/ffn/layernorm/{number}"
        gamma = source.take(f"{path}/gamma", norm.gamma.shape)
        norm.set_weights([gamma, source.take(f"{path}/beta", norm.beta.shape)])


def _num_layers(source: _Checkpoint) -> int:
    matches = [re.match(r"_atp/mha_x_b/(\d+)/", name) for name in source.names()]
    return 2 + max((int(match.group(1)) for match in matches if match), default=-1)


def load_released_weights(prefix: str | Path, dropout: float = 0.05) -> Taylorformer:
    """Reads a checkpoint of the authors' released code into a ready `Taylorformer`.

    Args:
        prefix: the path of the checkpoint without its `.index` ending.
        dropout: the rate for further training; it does not change any prediction.

    Returns:
        A model with D_x = D_y = 1, inputs x in [-1, 1] and y standardised as the paper's.

    Raises:
        FileNotFoundError: no such checkpoint.
        ValueError: a weight is missing, left over, or of another shape.
    """
    source = _Checkpoint(str(prefix))
    projection = source.shape("_atp/mha_x_a/mha/W_q/kernel")[-1]
    if projection not in _HEADS:
        raise ValueError(
            f"The total width of the heads must be one of {sorted(_HEADS)} (the released "
            f"models). Received: {projection} in {prefix}"
        )
    num_heads, head_dim = _HEADS[projection]
    model = Taylorformer(
        num_heads=num_heads,
        head_dim=head_dim,
        width=source.shape("_atp/linear_layer/kernel")[-1],
        num_layers=_num_layers(source),
        dropout=dropout,
        representation_extractor=ReleasedRepresentationExtractor(
            name="representation_extractor", **_ENCODING
        ),
    )
    one = (None, None, 1)
    model.build({"x_context": one, "y_context": one, "x_target": one})

    network = model.local_taylor.network
    for tower, kind in ((network.mha_x, "x"), (network.mha_xy, "xy")):
        name = f"_atp/mha_{kind}"
        _fill_block(tower.blocks[0], source, f"{name}_a", kind, num_heads)
        for layer, block in enumerate(tower.blocks[1:]):
            _fill_block(block, source, f"{name}_b/{layer}", "", num_heads)
    _fill_dense(network.join_dense, source, "_atp/linear_layer")
    _fill_dense(network.mean_dense, source, "_atp/dense_last")
    _fill_dense(network.scale_dense, source, "_atp/dense_sigma")
    normalization = model.local_taylor.representation_extractor.derivative_normalization
    for part in ("gamma", "beta", "moving_mean", "moving_variance"):
        variable = getattr(normalization, part)
        variable.assign(source.take(f"_DE/batch_norm_layer/{part}", variable.shape))
    source.finish()
    return model
