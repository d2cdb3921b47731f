"""Training on samples of whole horizons, beside the likelihood that is given the true values.

With teacher forcing a model never reads what it drew itself. Where forecasts are judged by their
samples of a whole horizon, small errors of each step add up in a way that the likelihood hardly
sees. Here the samples are scored themselves, and the gradient goes through every step of them.
"""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_points
from taylorformer.data_wrangler.checks import check_integer, check_number
from taylorformer.model.probabilistic_model import shrink_to_finite_squares
from taylorformer.model.replica_seed import next_seed
from taylorformer.model.sampling.taylorformer_loop import TaylorformerLoop
from taylorformer.model.taylorformer import Taylorformer

# Added to the spread that scores are relative to, in units of y.
_LEAST_SPREAD = 0.02


class PathTrainedTaylorformer(Taylorformer):
    """A Taylorformer whose step adds the gradient of a score of free-running samples.

    The score of a sequence is the CRPS of its samples, without bias for few of them, averaged over
    targets and divided by how far the samples lie apart on average, which counts as a constant:
    it does not depend on y, so the score stays proper, and a sequence counts the same whatever its
    spread. Both gradients are clipped to the norm 1 before they are added.

    It has the weights of a `Taylorformer` of the same arguments, and is not saved itself.

    Example:
        >>> import numpy as np
        >>> model = PathTrainedTaylorformer(
        ...     path_weight=1.0, num_heads=2, head_dim=4, width=8, num_layers=1, seed=0
        ... )
        >>> model.compile()
        >>> x = np.linspace(-1.0, 1.0, 12).reshape(1, 12, 1)
        >>> inputs = {"x_context": x[:, :8], "y_context": x[:, :8], "x_target": x[:, 8:]}
        >>> history = model.fit(inputs, x[:, 8:], verbose=0)
        >>> sorted(history.history)
        ['loss', 'nll', 'teacher_forced_mse']

    Args:
        path_weight: what the gradient of the score is multiplied by.
        num_paths: S, samples of a sequence, at least 2.
        path_targets: at most so many targets are drawn, the first ones.
        path_sequences: of at most so many sequences of a batch, the first ones.
        kwargs: of `Taylorformer`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    def __init__(
        self,
        *,
        path_weight: float,
        num_paths: int = 4,
        path_targets: int = 24,
        path_sequences: int = 16,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.path_weight = check_number("path_weight", path_weight, above=0)
        self.num_paths = check_integer("num_paths", num_paths, 2)
        self.path_targets = check_integer("path_targets", path_targets, 1)
        self.path_sequences = check_integer("path_sequences", path_sequences, 1)
        self.path_seeds = keras.random.SeedGenerator(self.seed, name="path_seeds")

    def path_score(self, batch: Mapping[str, tf.Tensor], seed: tf.Tensor) -> tf.Tensor:
        """Returns the mean score of the free-running samples of a batch; lower is better.

        Args:
            batch: a prepared batch, with `y_target` `[B, N_T, D_y]`.
            seed: int64 scalar, of the samples.
        """
        batch = tile_points(self._first_ones(batch))
        weights = self._sequence_weights(batch, None)
        y_target = batch.pop("y_target")
        shape = tf.shape(batch["x_target"])
        order = tf.tile(tf.range(shape[1])[tf.newaxis], [shape[0], 1])
        keys = tf.range(tf.cast(shape[0], tf.int64))
        numbers = tf.range(self.num_paths, dtype=tf.int64)
        # Only what XLA can compile has a gradient: rows are never written in place there.
        samples = TaylorformerLoop(self, xla=True).draw(batch, order, numbers, keys, seed)
        error = tf.reduce_mean(tf.abs(samples - y_target), axis=0)
        apart = [
            tf.abs(samples[first] - samples[second])
            for second in range(self.num_paths)
            for first in range(second)
        ]
        spread = tf.reduce_mean(tf.stack(apart), axis=0)
        mask = batch["target_mask"]
        crps, spread = (
            self._per_point(
                tf.reduce_sum(tf.where(mask, tf.reduce_mean(values, axis=-1), 0.0), axis=1), mask
            )
            for values in (error - 0.5 * spread, spread)
        )
        scores = crps / (tf.stop_gradient(spread) + _LEAST_SPREAD)
        return tf.math.divide_no_nan(tf.reduce_sum(weights * scores), tf.reduce_sum(weights))

    def _first_ones(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Leaves out the later sequences and targets."""
        some = {name: values[: self.path_sequences] for name, values in batch.items()}
        for name in ("x_target", "y_target", "target_mask"):
            some[name] = some[name][:, : self.path_targets]
        return some

    def _gradients(
        self,
        optimizer: keras.optimizers.Optimizer,
        batch: dict[str, tf.Tensor],
        weights: tf.Tensor,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor, list[tf.Tensor | None]]:
        outputs, nll, loss, of_likelihood = super()._gradients(optimizer, batch, weights)
        numbers = tf.cast(next_seed(self.path_seeds), tf.int64)
        with tf.GradientTape() as tape:
            score = self.path_score(batch, numbers[0] * 2**32 + numbers[1])
        of_paths = shrink_to_finite_squares(
            tape.gradient(score, self.trainable_variables, unconnected_gradients="zero")
        )
        of_likelihood, of_paths = (
            tf.clip_by_global_norm(one, 1.0)[0] for one in (of_likelihood, of_paths)
        )
        gradients = [
            one + self.path_weight * other
            for one, other in zip(of_likelihood, of_paths, strict=True)
        ]
        return outputs, nll, loss, gradients
