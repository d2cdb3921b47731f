"""A model and its mirror image: half the weight for what it makes of y, half for that of -y."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from taylorformer.model.observed_density import observed_log_prob
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.sampling.base import Memory, Sampler
from taylorformer.model.sampling.cached import CachedSampler
from taylorformer.model.sampling.plain import PlainSampler
from taylorformer.model.sampling.taylorformer_loop import TaylorformerLoop
from taylorformer.model.taylorformer import Taylorformer


class MirroredModel(ProbabilisticModel):
    """The mixture `1/2 p(Y_T given Y_C) + 1/2 p(-Y_T given -Y_C)` of an autoregressive model.

    A model that was trained on series of either sign alike errs on -y in other ways than on y: the
    mixture of both is a joint distribution, whose density is exact, that errs less and is less
    sure of itself. It has no weights beside those of the model, and costs two passes.

    `call` returns the mean and the standard deviation of each one-step conditional, which is a
    mixture of two normal distributions; `log_prob` is that of the mixture and not of these moments.
    Samples come in pairs, one from each part, the second with the negative of the noise of the
    first: their mean and median vary less than those of independent samples.

    Example:
        >>> import numpy as np
        >>> plain = Taylorformer(num_heads=2, head_dim=4, width=8, num_layers=1, seed=0)
        >>> x = np.linspace(-1.0, 1.0, 12).reshape(1, 12, 1)
        >>> inputs = {"x_context": x[:, :8], "y_context": x[:, :8], "x_target": x[:, 8:]}
        >>> flipped = {**inputs, "y_context": -x[:, :8]}
        >>> model = MirroredModel(plain)
        >>> one, other = model.log_prob(inputs, x[:, 8:]), model.log_prob(flipped, -x[:, 8:])
        >>> np.allclose(one, other)
        True

    Args:
        model: an autoregressive model whose `log_prob` follows from the outputs of `call`.
    """

    shares_points = True

    def __init__(self, model: ProbabilisticModel, **kwargs: Any) -> None:
        super().__init__(
            scale=model.scale,
            min_scale=model.min_scale,
            predict_samples=model.predict_samples,
            seed=model.seed,
            **{"dtype": model.dtype_policy, **kwargs},
        )
        self.model = model

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Builds the model."""
        self._remember_sizes(input_shape)
        if not self.model.built:
            self.model.build(input_shape)
        self.built = True

    @property
    def distance_dims(self) -> int | None:
        """That of the model."""
        return self.model.distance_dims

    @property
    def largest_x(self) -> float | None:
        """That of the model."""
        return self.model.largest_x

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Returns the moments of the one-step conditionals; see the class."""
        return self._mixture(self.prepare(inputs), training)[0]

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes what draws from both parts.

        Args:
            xla: for a graph that XLA compiles.
        """
        return _MirroredSampler(self.model, xla)

    def _score(
        self, batch: dict[str, tf.Tensor], training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        return self._mixture(batch, training)

    def _mixture(
        self, batch: dict[str, tf.Tensor], training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the outputs of `call` and the joint log density `[B]`, 0 without `y_target`."""
        parts = [self.model(batch, training=training), _Negated(self.model)(batch, training)]
        means = tf.stack([part["mean"] for part in parts])
        variances = tf.square(tf.stack([part["scale"] for part in parts]))
        densities = tf.zeros(tf.shape(means)[:3])
        if "y_target" in batch:
            densities = observed_log_prob(
                means, tf.sqrt(variances), batch["y_target"], batch.get("y_support")
            )
            mask = batch["target_mask"][..., tf.newaxis]
            densities = tf.reduce_sum(tf.where(mask, densities, 0.0), axis=-1)
        # How likely each part has become by the earlier targets.
        weights = tf.nn.softmax(tf.cumsum(densities, axis=-1, exclusive=True), axis=0)
        weights = weights[..., tf.newaxis]
        mean = tf.reduce_sum(weights * means, axis=0)
        variance = tf.reduce_sum(weights * (variances + tf.square(means - mean)), axis=0)
        outputs = self.finish_outputs(mean, tf.sqrt(variance), batch["target_mask"])
        log_prob = tf.reduce_logsumexp(tf.reduce_sum(densities, axis=-1), axis=0) - math.log(2.0)
        return outputs, log_prob


class _Negated:
    """A model that reads -y and predicts its negative: the mirror image, for y itself.

    Args:
        model: a model that has been built.
        noise: what the scale is multiplied by: -1 for samples from the negative of their noise.
    """

    def __init__(self, model: ProbabilisticModel, noise: float = 1.0) -> None:
        self._model, self._noise = model, noise
        self.x_dims, self.y_dims = model.x_dims, model.y_dims
        self.distance_dims = model.distance_dims

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        negated = {
            name: -values if name in ("y_context", "y_target") else values
            for name, values in inputs.items()
            # Of y, not of -y; the outputs do not depend on it.
            if name != "y_support"
        }
        outputs = self._model(negated, training=training)
        return {"mean": -outputs["mean"], "scale": self._noise * outputs["scale"]}


class _MirroredSampler(Sampler):
    """Draws pairs of samples: even ones from a model, odd ones from its mirror image."""

    def __init__(self, model: ProbabilisticModel, xla: bool = False) -> None:
        super().__init__(model, xla)
        self._parts: list[Sampler] = [model.make_sampler(xla)]
        if isinstance(model, Taylorformer) and isinstance(self._parts[0], CachedSampler):
            loop = functools.partial(TaylorformerLoop, negated=True)
            self._parts.append(CachedSampler(model, loop, xla))
        else:
            self._parts.append(PlainSampler(_Negated(model, noise=-1.0), xla))

    def memory(self, batch: dict[str, tf.Tensor]) -> Memory:
        """Returns the bound of what draws from the mirror image, never the smaller one."""
        return self._parts[1].memory(batch)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        order: tf.Tensor,
        sample_numbers: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
        xla: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`; see `Sampler.draw`."""
        is_even, pairs = sample_numbers % 2 == 0, sample_numbers // 2
        if xla or self._xla:
            # XLA knows no lengths that depend on values: each part draws all, and half is read.
            even, odd = (
                part.draw(batch, order, pairs, sequence_keys, seed, xla) for part in self._parts
            )
            return tf.where(is_even[:, tf.newaxis, tf.newaxis, tf.newaxis], even, odd)
        rows = [tf.where(is_even)[:, 0], tf.where(~is_even)[:, 0]]
        nothing = tf.zeros([0, *tf.unstack(tf.shape(batch["x_target"])[:2]), self._y_dims])

        def drawn(part: Sampler, some: tf.Tensor) -> tf.Tensor:
            numbers = tf.gather(pairs, some)
            # No loop draws no sample at all.
            return tf.cond(
                tf.size(numbers) > 0,
                lambda: part.draw(batch, order, numbers, sequence_keys, seed),
                lambda: nothing,
            )

        both = [drawn(part, some) for part, some in zip(self._parts, rows, strict=True)]
        return tf.gather(tf.concat(both, axis=0), tf.argsort(tf.concat(rows, axis=0)))
