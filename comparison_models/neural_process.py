"""The neural process, NP (Garnelo et al., 2018)."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from taylorformer.comparison_models.latent_model import LatentModel, masked_mean


@keras.saving.register_keras_serializable("taylorformer")
class NeuralProcess(LatentModel):
    """A neural process with a latent and a deterministic path.

    The deterministic encoder is an MLP of every context point [x, y] and the mean over the observed
    ones: the decoder reads the same r at every x (Garnelo et al., "Neural processes", 2018;
    layers as in the appendix of the Taylorformer's paper, whose 1D regression is the default).
    Everything else, and all arguments, are those of `LatentModel`.

    Example:
        >>> import tensorflow as tf
        >>> x, y = tf.zeros([1, 4, 1]), tf.ones([1, 4, 1])
        >>> inputs = {"x_context": x, "y_context": y, "x_target": x[:, :2]}
        >>> model = NeuralProcess(width=8, latent_dim=4, seed=0)
        >>> model.log_prob(inputs, y[:, :2], num_latents=3).shape
        TensorShape([1])
    """

    def deterministic(self, batch: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the encoded context, the same at every x, `[B, N, width]`."""
        r = masked_mean(self.encode_context(batch), batch["context_mask"])
        shape = tf.shape(x)
        return tf.broadcast_to(r[:, tf.newaxis], [shape[0], shape[1], self.width])
