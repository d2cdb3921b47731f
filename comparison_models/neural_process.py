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
        >>> import numpy as np
        >>> x, y = np.zeros((2, 5, 1), "float32"), np.ones((2, 5, 1), "float32")
        >>> inputs = {"x_context": x, "y_context": y, "x_target": x + 1}
        >>> model = NeuralProcess(width=8, latent_dim=4, seed=0)
        >>> model.sample(inputs, num_samples=3, seed=0).shape
        TensorShape([3, 2, 5, 1])
    """

    def deterministic(self, batch: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the encoded context, the same at every x, `[B, N, width]`."""
        r = masked_mean(self.encode_context(batch), batch["context_mask"])
        shape = tf.shape(x)
        return tf.broadcast_to(r[:, tf.newaxis], [shape[0], shape[1], self.width])
