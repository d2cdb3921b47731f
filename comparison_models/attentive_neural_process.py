"""The attentive neural process, ANP (Kim et al., 2019)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from taylorformer.comparison_models.latent_model import LatentModel
from taylorformer.comparison_models.row_widths import head_width
from taylorformer.data_wrangler.checks import check_boolean, check_integer
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.sampling.base import Length, larger, lengths


@keras.saving.register_keras_serializable("taylorformer")
class AttentiveNeuralProcess(LatentModel):
    """A neural process whose deterministic path attends from each x to the context.

    The deterministic encoder is an MLP of every context point [x, y], then, with `self_attention`,
    multi-head attention among the context points. The decoder reads at x the multi-head attention
    of x to these values, the keys being the context's x; queries and keys go through one and the
    same MLP first. A sequence without any context gets 0 (Kim et al., "Attentive neural processes",
    2019; layers as in the appendix of the Taylorformer's paper, whose 1D regression is the
    default). The latent path has no attention. No attention has a skip or a normalisation.

    Example:
        >>> import tensorflow as tf
        >>> x, y = tf.zeros([1, 4, 1]), tf.ones([1, 4, 1])
        >>> inputs = {"x_context": x, "y_context": y, "x_target": x[:, :2]}
        >>> model = AttentiveNeuralProcess(width=8, latent_dim=4, num_heads=2, seed=0)
        >>> model.log_prob(inputs, y[:, :2], num_latents=3).shape
        TensorShape([1])

    Args:
        num_heads: H, of the attention of both kinds; must divide `width`.
        key_layers: Dense layers that keys and queries go through.
        self_attention: multi-head attention among the context points (image completion).
        **kwargs: all arguments of `LatentModel`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        *,
        num_heads: int = 8,
        key_layers: int = 2,
        self_attention: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.key_layers = check_integer("key_layers", key_layers, 1)
        self.self_attention = check_boolean("self_attention", self_attention)
        head_width(self.width, self.num_heads)
        self.key_encoder = self.make_mlp("key_encoder", 7, self.key_layers)
        self.cross_attention_layer = self._attention("cross_attention", 8)
        self.self_attention_layer = (
            self._attention("self_attention", 9) if self.self_attention else None
        )

    def _attention(self, name: str, child: int) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.num_heads,
            self.width // self.num_heads,
            self.width,
            seed=child_seed(self.seed, child),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Makes all weights from the shapes of a batch."""
        super().build(input_shape)
        inner = (None, None, self.width)
        self.key_encoder.build((None, None, self.x_dims))
        self.cross_attention_layer.build(inner, inner, inner)
        if self.self_attention_layer is not None:
            self.self_attention_layer.build(inner, inner, inner)

    def deterministic(self, batch: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Returns the attention of each x to the context, `[B, N, width]`."""
        values = self.encode_context(batch)
        visible = batch["context_mask"][:, tf.newaxis]
        if self.self_attention_layer is not None:
            values = self.self_attention_layer(values, values, values, visible=visible)
        keys, queries = self.key_encoder(batch["x_context"]), self.key_encoder(x)
        r = self.cross_attention_layer(queries, keys, values, visible=visible)
        return tf.where(tf.reduce_any(visible, axis=-1, keepdims=True), r, tf.zeros_like(r))

    def numbers_per_sequence(self, batch: Mapping[str, tf.Tensor]) -> Length:
        """Returns how many numbers the largest tensor of one sequence has, before any z."""
        num_context, num_rows = lengths(batch)
        if self.self_attention:
            num_rows = larger(num_rows, num_context)
        scores = self.num_heads * num_rows * num_context
        return larger(scores, super().numbers_per_sequence(batch))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_layers": self.key_layers,
            "self_attention": self.self_attention,
        }
