"""The autoregressive Transformer neural process, TNP-A (Nguyen and Grover, 2022)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.comparison_models.mlp import MLP
from taylorformer.comparison_models.transformer_block import TransformerBlock
from taylorformer.comparison_models.transformer_sampler import TransformerLoop
from taylorformer.data_wrangler.batch import tile_sequences
from taylorformer.data_wrangler.checks import check_integer, check_number, plain_number
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.layers.attention import MultiHeadAttention
from taylorformer.model.layers.mask import context_visibility, target_visibility
from taylorformer.model.layers.rows import first_rows, split_rows
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.replica_seed import next_seed
from taylorformer.model.sampling.base import Sampler
from taylorformer.model.sampling.cached import CachedSampler, can_be_drawn_by_row


@keras.saving.register_keras_serializable("taylorformer")
class TransformerNeuralProcess(ProbabilisticModel):
    """TNP-A, an autoregressive Transformer over points and padded targets.

    The sequence is the context with y, the targets with y, and the targets again, padded: with 0
    instead of y. Context sees context; a target with y sees the context and the targets with
    y up to and including itself; a padded one sees the context and the targets with y before it,
    and no padded one, not even itself. Predictions are read from the padded ones (Nguyen and
    Grover, "Transformer neural processes", 2022; layers as in the appendix of the
    Taylorformer's paper). The defaults are those of 1D regression, but for
    `target_permutations`.

    Example:
        >>> import tensorflow as tf
        >>> x, y = tf.zeros([1, 4, 1]), tf.ones([1, 4, 1])
        >>> inputs = {"x_context": x, "y_context": y, "x_target": x[:, :2]}
        >>> model = TransformerNeuralProcess(num_heads=2, width=8, num_layers=1, seed=0)
        >>> model.log_prob(inputs, y[:, :2]).shape
        TensorShape([1])

    Args:
        num_heads: H.
        head_dim: width of one head; H heads may be wider or narrower than `width` together. None:
            `width / num_heads`.
        width: width of the embedding and of every layer.
        num_layers: L.
        feed_forward: width of the feed-forward parts and of the hidden layer of the predictor.
        embedding_layers: Dense layers that embed a point [x, y], with ReLU between them.
        dropout: rate of the dropout, in [0, 1).
        y_noise: in training, normal noise of this standard deviation, in units of y, is added to
            the targets' y that are read (not to those that are scored).
        target_permutations: 0 keeps the given order of targets in training (forecasting); m >= 1
            takes m random orders for each sequence (neural-process tasks).
        scale: "exp" or "bounded"; see `ProbabilisticModel`.
        min_scale: the smallest scale, in units of y.
        predict_samples: S, free-running samples behind `predict`.
        seed: for the first weights and everything that is drawn in training and in `predict`.
            None: at random, and 0 in `predict`.

    Raises:
        TypeError, ValueError: an argument outside its range, or a `width` that `num_heads` does
            not divide where `head_dim` is None.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call", "embed", "read_out")
    shares_points = True

    def __init__(
        self,
        *,
        num_heads: int = 4,
        head_dim: int | None = None,
        width: int = 64,
        num_layers: int = 6,
        feed_forward: int = 128,
        embedding_layers: int = 4,
        dropout: float = 0.0,
        y_noise: float = 0.0,
        target_permutations: int = 0,
        scale: str = "exp",
        min_scale: float = 1e-3,
        predict_samples: int = 100,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            scale=scale,
            min_scale=min_scale,
            target_permutations=target_permutations,
            predict_samples=predict_samples,
            seed=seed,
            **kwargs,
        )
        self.num_heads = num_heads = check_integer("num_heads", num_heads, 1)
        self.head_dim = head_dim = plain_number(head_dim)
        self.width = width = check_integer("width", width, 1)
        self.num_layers = num_layers = check_integer("num_layers", num_layers, 1)
        self.feed_forward = feed_forward = check_integer("feed_forward", feed_forward, 1)
        self.embedding_layers = check_integer("embedding_layers", embedding_layers, 1)
        self.dropout = dropout = plain_number(dropout)
        self.y_noise = check_number("y_noise", y_noise, minimum=0)
        if head_dim is None and width % num_heads:
            raise ValueError(
                "`width` must be a multiple of `num_heads` where `head_dim` is None. "
                f"Received: width={width}, num_heads={num_heads}"
            )
        seed = self.seed
        self.y_noise_seeds = keras.random.SeedGenerator(child_seed(seed, 0), name="y_noise_seeds")
        policy = self.dtype_policy
        self.embedding = MLP(
            width, self.embedding_layers, seed=child_seed(seed, 1), dtype=policy, name="embedding"
        )
        self.blocks = [
            TransformerBlock(
                num_heads,
                width // num_heads if head_dim is None else head_dim,
                width,
                feed_forward,
                dropout=dropout,
                seed=child_seed(child_seed(seed, 2), layer),
                dtype=policy,
                name=f"block_{layer}",
            )
            for layer in range(num_layers)
        ]

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes the sampler that keeps keys and values, if that draws this model as it is.

        Args:
            xla: for a graph that XLA compiles.
        """
        has_rows = all(
            isinstance(block, TransformerBlock) and isinstance(block.attention, MultiHeadAttention)
            for block in self.blocks
        )
        if has_rows and can_be_drawn_by_row(self):
            return CachedSampler(self, TransformerLoop, xla)
        return super().make_sampler(xla)

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Makes all weights from the shapes of a batch."""
        self._remember_sizes(input_shape)
        inner = (None, None, self.width)
        self.embedding.build((None, None, self.x_dims + self.y_dims))
        for block in self.blocks:
            block.build(inner, inner)
        self.predictor = MLP(
            self.feed_forward,
            2,
            output_width=2 * self.y_dims,
            seed=child_seed(self.seed, 3),
            dtype=self.dtype_policy,
            name="predictor",
        )
        self.predictor.trainable = self.trainable
        self.predictor.build(inner)
        self.built = True

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Returns the one-step conditionals of the targets.

        Args:
            inputs: a batch of the data contract. With `y_target` each target is given the true
                values of the earlier ones (teacher forcing); without it, the context alone.
            training: use dropout, and noise on the targets' y that are read.

        Returns:
            `{"mean": [B, N_T, D_y], "scale": [B, N_T, D_y]}`, float32.
        """
        batch = self.prepare(inputs)
        context_mask, target_mask = batch["context_mask"], batch["target_mask"]
        # Points that all sequences share are repeated where y enters; masks stay as they are.
        batch_size = tf.shape(batch["y_context"])[0]
        rows = [self.embed(tile_sequences(batch["x_context"], batch_size), batch["y_context"])]
        # What the padded targets see, and what all targets see; here, the context alone.
        visible = all_visible = context_visibility(context_mask)
        if "y_target" in batch:
            y_target = self._noisy(batch["y_target"]) if training else batch["y_target"]
            rows.append(self.embed(tile_sequences(batch["x_target"], batch_size), y_target))
            visible = target_visibility(context_mask, target_mask)
            all_visible = tf.concat([_with_itself(visible, target_mask), visible], axis=1)
        padded = tile_sequences(self.embed(batch["x_target"], None), batch_size)
        hidden = tf.concat([*rows, padded], axis=1)
        num_keys = tf.shape(hidden)[1] - tf.shape(target_mask)[1]
        for block in self.blocks[:-1]:
            hidden = block(
                hidden,
                first_rows(hidden, num_keys, axis=1),
                visible=all_visible,
                context_visible=context_visibility(context_mask),
                training=training,
            )
        keys, padded = split_rows(hidden, num_keys, axis=1)
        hidden = self.blocks[-1](padded, keys, visible=visible, training=training)
        return self.finish_outputs(*self.read_out(hidden), target_mask)

    def embed(self, x: tf.Tensor, y: tf.Tensor | None) -> tf.Tensor:
        """Embeds points.

        Args:
            x: `[B, R, D_x]`.
            y: `[B, R, D_y]`. None: padded, with 0 instead of y.

        Returns:
            `[B, R, width]`, float32.
        """
        if y is None:
            y = tf.zeros(tf.concat([tf.shape(x)[:2], [self.y_dims]], axis=0))
        return tf.cast(self.embedding(tf.concat([x, y], axis=-1)), tf.float32)

    def read_out(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Turns padded rows `[B, R, width]` into mean and scale, `[B, R, D_y]`, float32."""
        mean, raw_scale = tf.split(self.predictor(hidden), 2, axis=-1)
        return tf.cast(mean, tf.float32), self.scale_from_raw(raw_scale)

    def _noisy(self, y: tf.Tensor) -> tf.Tensor:
        if not self.y_noise:
            return y
        noise = tf.random.stateless_normal(tf.shape(y), next_seed(self.y_noise_seeds))
        return y + self.y_noise * noise

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "num_heads",
            "head_dim",
            "width",
            "num_layers",
            "feed_forward",
            "embedding_layers",
            "dropout",
            "y_noise",
        ):
            config[name] = getattr(self, name)
        return config


def _with_itself(visible: tf.Tensor, seen: tf.Tensor) -> tf.Tensor:
    """Lets each target see itself too: `[B, N_T, N]` from `visible`, if `seen` `[B, N_T]`."""
    num_target = tf.shape(seen)[1]
    itself = tf.eye(num_target, dtype=tf.bool)[tf.newaxis] & seen[:, tf.newaxis]
    return visible | tf.pad(itself, [[0, 0], [0, 0], [tf.shape(visible)[2] - num_target, 0]])
