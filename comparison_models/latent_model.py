"""What the latent neural processes have in common: one random z for a whole sequence."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.comparison_models.latent_sampler import TENSORS_HELD, LatentSampler
from taylorformer.comparison_models.mlp import MLP
from taylorformer.data_wrangler.checks import check_integer, check_optional_integer
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED, child_seed
from taylorformer.model.layers.dense import apply_dense, seeded_dense, within_range
from taylorformer.model.observed_density import observed_log_prob
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.replica_seed import next_seed
from taylorformer.model.sampling.base import (
    BYTES_PER_FLOAT,
    MOST_BYTES,
    Length,
    Sampler,
    lengths,
)
from taylorformer.model.sampling.counter_noise import latent_noise

_LARGEST_LATENT_DIM = 1020
"""More numbers `latent_noise` cannot draw for one key."""
_LEAST_LATENT_SCALE = 0.1
"""The standard deviation of z lies between this and 1, so that q is never a point."""


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Averages the observed points of `[B, N, F]`, in float32; over no points the mean is 0.

    Args:
        values: `[B, N, F]`.
        mask: `[B, N]` bool.

    Returns:
        `[B, F]`, float32.
    """
    observed = tf.where(mask[..., tf.newaxis], tf.cast(values, tf.float32), 0.0)
    count = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1, keepdims=True)
    return tf.reduce_sum(observed, axis=1) / tf.maximum(count, 1.0)


def log_mean_exp(values: tf.Tensor) -> tf.Tensor:
    """Takes the logarithm of the mean of the exponentials along the first axis."""
    count = tf.cast(tf.shape(values)[0], values.dtype)
    return tf.reduce_logsumexp(values, axis=0) - tf.math.log(count)


def _latent_scale(raw: tf.Tensor) -> tf.Tensor:
    return _LEAST_LATENT_SCALE + (1 - _LEAST_LATENT_SCALE) * tf.sigmoid(raw)


class LatentModel(ProbabilisticModel):
    """Targets that are independent of one another given one latent z for the whole sequence.

    A latent encoder makes `q(z given points) = Normal(mean, 0.1 + 0.9 sigmoid(raw))`: an MLP of
    every point [x, y], the mean over the observed points (0 over none), and a second MLP. A
    deterministic encoder is an MLP of every context point, and `deterministic`, which a subclass
    implements, makes of it what the decoder reads of the context at x. The decoder makes mean and
    scale of y at x from x, that, and z (Garnelo et al., "Neural processes", 2018).

    `call` takes the mean of q(z given C) for z, and does not read `y_target`; in training it draws
    one z from q(z given C, T). Neither the order of the context nor that of the targets matters, so
    `target_permutations` only repeats sequences.

    Training, with N the observed points of a sequence and p(y given z) the density of all of them,
    context and targets: one z maximises `(log p(y given z) - KL(q(z given C, T), q(z given C))) /
    N`; several z the importance-weighted `log mean exp(log p(y given z) + log q(z given C) - log
    q(z given C, T)) / N`, the mean over z from q(z given C, T). That is `loss` in `fit`.

    `nll` is always -log p(Y_T given X_T, X_C, Y_C) / N_T by importance weighting, an upper bound in
    expectation: with `num_latents` z in `fit`, with `log_prob_latents` z in `evaluate`, where it is
    the loss too. There its noise is seeded, and the same for every sequence, so that a score does
    not depend on batches; `log_prob` with `sequence_keys` draws other noise for
    each sequence.
    `teacher_forced_mse` is the squared error of the mean that `call` returns, in training with one
    random z.

    ReLU stands between the Dense layers of one stack, and none after its last: not before a mean,
    an attention or an outcome. (The paper does not say where it ends.)

    Args:
        width: width of every Dense layer, but for the two with outputs: `2 latent_dim` at
            the end of the latent encoder, `2 D_y` at the end of the decoder.
        latent_dim: size of z, at most 1020.
        latent_layers: Dense layers of the latent encoder before and after the mean; the last one
            returns mean and raw scale of z.
        deterministic_layers: Dense layers of the deterministic encoder.
        decoder_layers: Dense layers of the decoder, at least 2; the last one returns mean and
            raw scale of y.
        num_latents: z of a sequence in one training step.
        log_prob_latents: z of a sequence in `log_prob` and `evaluate`.
        scale: "exp" or "bounded"; see `ProbabilisticModel`.
        min_scale: the smallest scale, in units of y.
        predict_samples: S, samples behind `predict`.
        seed: for the first weights and everything that is drawn in training, in `predict` and in
            `log_prob`. None: at random, and 0 in `predict` and `log_prob`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    score_names: ClassVar[tuple[str, str]] = ("joint_nll", "mean_latent_mse")

    def __init__(
        self,
        *,
        width: int = 128,
        latent_dim: int = 128,
        latent_layers: Sequence[int] = (3, 2),
        deterministic_layers: int = 4,
        decoder_layers: int = 4,
        num_latents: int = 4,
        log_prob_latents: int = 50,
        scale: str = "bounded",
        min_scale: float = 0.1,
        predict_samples: int = 100,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            scale=scale,
            min_scale=min_scale,
            predict_samples=predict_samples,
            seed=seed,
            **kwargs,
        )
        self.width = check_integer("width", width, 1)
        self.latent_dim = check_integer("latent_dim", latent_dim, 1, _LARGEST_LATENT_DIM)
        if not isinstance(latent_layers, (list, tuple)) or len(latent_layers) != 2:
            raise ValueError(
                "`latent_layers` must be two integers, before and after the mean. "
                f"Received: latent_layers={latent_layers!r}"
            )
        self.latent_layers = before, after = tuple(
            check_integer("latent_layers", layers, 1) for layers in latent_layers
        )
        self.deterministic_layers = check_integer("deterministic_layers", deterministic_layers, 1)
        self.decoder_layers = check_integer("decoder_layers", decoder_layers, 2)
        self.num_latents = check_integer("num_latents", num_latents, 1)
        self.log_prob_latents = check_integer("log_prob_latents", log_prob_latents, 1)
        width, latent_dim, seed = self.width, self.latent_dim, self.seed
        self.latent_seeds = keras.random.SeedGenerator(child_seed(seed, 0), name="latent_seeds")
        self.point_encoder = self.make_mlp("point_encoder", 1, before)
        self.latent_encoder = self.make_mlp("latent_encoder", 2, after, 2 * latent_dim)
        self.deterministic_encoder = self.make_mlp(
            "deterministic_encoder", 6, self.deterministic_layers
        )
        # One Dense layer of [x, r, z] in two parts: the part of x and r is the same for every z.
        # (Names of attributes and layers are part of the format of `.keras` files.)
        self.place_dense = seeded_dense(width, child_seed(seed, 3), 0, self.dtype_policy, "place")
        self.latent_dense = keras.layers.Dense(
            width,
            use_bias=False,
            kernel_initializer=keras.initializers.GlorotUniform(child_seed(seed, 4)),
            dtype=self.dtype_policy,
            name="latent",
        )

    def make_mlp(
        self, name: str, child: int, num_layers: int, output_width: int | None = None
    ) -> MLP:
        """Makes an MLP of the model's width whose first weights follow from its seed.

        Args:
            name: name of the layer.
            child: the child number of its seed; 0 to 6 are taken.
            num_layers: how many Dense layers.
            output_width: width of the last one. None: `width`.
        """
        return MLP(
            self.width,
            num_layers,
            output_width,
            seed=child_seed(self.seed, child),
            dtype=self.dtype_policy,
            name=name,
        )

    # What a subclass fills in.

    def deterministic(self, batch: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Returns r, what the decoder reads of the context at some x.

        Args:
            batch: a prepared batch, of which only the context may be read; `encode_context` is
                what the deterministic encoder makes of it.
            x: `[B, N, D_x]`.

        Returns:
            `[B, N, width]`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `deterministic`")

    def numbers_per_sequence(self, batch: Mapping[str, tf.Tensor]) -> Length:
        """Returns how many numbers the largest tensor of one sequence has, before any z."""
        num_context, num_target = lengths(batch)
        return (num_context + num_target) * self.width

    # Encoder and decoder.

    def encode_context(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Runs the deterministic encoder on every context point, `[B, N_C, width]`."""
        points = tf.concat([batch["x_context"], batch["y_context"]], axis=-1)
        return self.deterministic_encoder(points)

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Makes all weights from the shapes of a batch."""
        self._remember_sizes(input_shape)
        point, inner = (None, None, self.x_dims + self.y_dims), (None, None, self.width)
        self.point_encoder.build(point)
        self.latent_encoder.build(inner)
        self.deterministic_encoder.build(point)
        self.place_dense.build((None, None, self.x_dims + self.width))
        self.latent_dense.build((None, None, self.latent_dim))
        self.decoder = self.make_mlp("decoder", 5, self.decoder_layers - 1, 2 * self.y_dims)
        self.decoder.trainable = self.trainable
        self.decoder.build(inner)
        self.built = True

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Predicts the targets from one z.

        Args:
            inputs: a batch of the data contract; `y_target` is read in training only.
            training: z is drawn from q(z given C, T), instead of being the mean of q(z given C).

        Returns:
            `{"mean": [B, N_T, D_y], "scale": [B, N_T, D_y]}`, float32.

        Raises:
            ValueError: in training without `y_target`.
        """
        batch = self.prepare(inputs)
        if training:
            _, posterior = self._prior_and_posterior(batch)
            z = self._training_latents(posterior, 1)
        else:
            z = self._prior(batch).mean()[tf.newaxis]
        return self._outputs(
            self._decoder_inputs(batch, batch["x_target"]), z, batch["target_mask"]
        )

    def latent_distribution(
        self, inputs: Mapping[str, Any], y_target: Any = None
    ) -> tfp.distributions.Distribution:
        """Returns q(z given C), or q(z given C, T), with batch `[B]` and event `[latent_dim]`.

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]` for q(z given C, T). None: q(z given C).
        """
        if y_target is None:
            return self._prior(self._built_for(self._prepared_without_targets(inputs)))
        batch = self._built_for(self._batch_with_targets(inputs, y_target))
        return self._prior_and_posterior(batch)[1]

    def _built_for(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Builds the model, if it is not yet, for what does not go through `call`."""
        if not self.built:
            self.build({key: value.shape for key, value in batch.items()})
        return batch

    def _encode(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.cast(self.point_encoder(tf.concat([x, y], axis=-1)), tf.float32)

    def _latent(self, encoded: tf.Tensor, mask: tf.Tensor) -> tfp.distributions.Distribution:
        """Makes q(z) of encoded points `[B, N, width]`."""
        pooled = masked_mean(encoded, mask)[:, tf.newaxis]
        mean, raw = tf.split(tf.cast(self.latent_encoder(pooled), tf.float32), 2, axis=-1)
        normal = tfp.distributions.Normal(mean[:, 0], _latent_scale(raw[:, 0]))
        return tfp.distributions.Independent(normal, reinterpreted_batch_ndims=1)

    def _prior(self, batch: Mapping[str, tf.Tensor]) -> tfp.distributions.Distribution:
        """Makes q(z given C)."""
        context = self._encode(batch["x_context"], batch["y_context"])
        return self._latent(context, batch["context_mask"])

    def _prior_and_posterior(
        self, batch: Mapping[str, tf.Tensor]
    ) -> tuple[tfp.distributions.Distribution, tfp.distributions.Distribution]:
        """Makes q(z given C) and q(z given C, T)."""
        if "y_target" not in batch:
            raise ValueError(
                "`inputs` must have the key y_target in training. "
                f"Received: {', '.join(sorted(batch))}"
            )
        encoded = self._encode(*self._all_points(batch))
        num_context = tf.shape(batch["context_mask"])[1]
        prior = self._latent(encoded[:, :num_context], batch["context_mask"])
        return prior, self._latent(encoded, self._all_masks(batch))

    @staticmethod
    def _all_points(batch: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        x = tf.concat([batch["x_context"], batch["x_target"]], axis=1)
        return x, tf.concat([batch["y_context"], batch["y_target"]], axis=1)

    @staticmethod
    def _all_masks(batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return tf.concat([batch["context_mask"], batch["target_mask"]], axis=1)

    def _decoder_inputs(self, batch: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """Returns what x and the context add to the decoder's first layer, `[B, N, width]`."""
        r = tf.cast(self.deterministic(batch, x), tf.float32)
        rows = within_range(tf.concat([x, r], axis=-1), self.compute_dtype)
        return apply_dense(self.place_dense, rows)

    def _decode(self, decoder_inputs: tf.Tensor, z: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Decodes S latents of every sequence.

        Args:
            decoder_inputs: `[B, N, width]`, returned by `_decoder_inputs`.
            z: `[S, B, latent_dim]`.

        Returns:
            Mean and scale, `[S, B, N, D_y]` each, float32.
        """
        latents = apply_dense(self.latent_dense, within_range(z, self.compute_dtype))
        hidden = tf.nn.relu(decoder_inputs + latents[:, :, tf.newaxis])
        shape = tf.shape(hidden)
        rows = self.decoder(tf.reshape(hidden, [shape[0] * shape[1], shape[2], self.width]))
        raw = tf.reshape(rows, [shape[0], shape[1], shape[2], 2 * self.y_dims])
        mean, raw_scale = tf.split(tf.cast(raw, tf.float32), 2, axis=-1)
        return mean, self.scale_from_raw(raw_scale)

    def _outputs(
        self, decoder_inputs: tf.Tensor, z: tf.Tensor, target_mask: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of `call` for one z `[1, B, latent_dim]`."""
        mean, scale = self._decode(decoder_inputs, z)
        return self.finish_outputs(mean[0], scale[0], target_mask)

    # Density.

    def log_prob(
        self,
        inputs: Mapping[str, Any],
        y_target: Any,
        num_latents: int | None = None,
        seed: int | None = None,
        sequence_keys: Any = None,
        return_error: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Estimates the joint log density log p(Y_T given X_T, X_C, Y_C), in nats.

        `log mean exp(log w)` over z from q(z given C, T), with `log w = log p(Y_T given z) + log
        q(z given C) - log q(z given C, T)`. In expectation it lies below the true value, and
        rises to it with the number of z. The noise of z is a function of (seed, key, number of z).

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]`.
            num_latents: S. None: `log_prob_latents`.
            seed: a 64-bit integer. None: the seed of the model, or 0.
            sequence_keys: `[B]` integers. None: every sequence has key 0, and so the same noise.
            return_error: return the Monte-Carlo error too.

        Returns:
            `[B]`, float32, summed over D_y and the observed targets; with `return_error` also its
            standard error `[B]` by the delta method: that of the mean weight, over the mean weight.

        Raises:
            TypeError, ValueError: an argument outside its range; an error of less than two z.
        """
        check_integer("num_latents", self._count(num_latents), 2 if return_error else 1)
        batch = self._built_for(self._batch_with_targets(inputs, y_target))
        noise = self._seeded_noise(batch, num_latents, seed, sequence_keys)
        decoder_inputs = self._decoder_inputs(batch, batch["x_target"])
        log_weights = self._log_weights(
            batch, decoder_inputs, *self._prior_and_posterior(batch), noise
        )
        log_prob = log_mean_exp(log_weights)
        if not return_error:
            return log_prob
        relative = tf.exp(log_weights - log_prob)
        count = tf.cast(tf.shape(relative)[0], tf.float32)
        variance = tf.reduce_sum(tf.square(relative - 1), axis=0) / (count - 1)
        return log_prob, tf.sqrt(variance / count)

    def marginal_log_prob(
        self,
        inputs: Mapping[str, Any],
        y_target: Any,
        num_latents: int | None = None,
        seed: int | None = None,
        sequence_keys: Any = None,
    ) -> tf.Tensor:
        """Estimates the sum over targets of log p(y_i given x_i, X_C, Y_C), in nats.

        Each is `log mean exp(log p(y_i given z))` over z from q(z given C). What one target says
        about another is not in it.

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]`.
            num_latents: S. None: `log_prob_latents`.
            seed: a 64-bit integer. None: the seed of the model, or 0.
            sequence_keys: `[B]` integers. None: every sequence has key 0, and so the same noise.

        Returns:
            `[B]`, float32, summed over the observed targets.
        """
        batch = self._built_for(self._batch_with_targets(inputs, y_target))
        noise = self._seeded_noise(batch, num_latents, seed, sequence_keys)
        z = self._reparametrise(self._prior(batch), noise)
        density = self._density(self._decoder_inputs(batch, batch["x_target"]), z, batch)
        return tf.reduce_sum(log_mean_exp(density), axis=-1)

    def _count(self, num_latents: int | None) -> int:
        return self.log_prob_latents if num_latents is None else num_latents

    def _seeded_noise(
        self,
        batch: Mapping[str, tf.Tensor],
        num_latents: int | None = None,
        seed: int | None = None,
        sequence_keys: Any = None,
    ) -> tf.Tensor:
        """Draws the noise of z, `[S, B, latent_dim]`."""
        count = check_integer("num_latents", self._count(num_latents), 1)
        seed = check_optional_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
        seed = (self.seed or 0) if seed is None else seed
        keys = self._sequence_keys(sequence_keys, batch)
        numbers = tf.range(count, dtype=tf.int64)[:, tf.newaxis]
        return latent_noise(tf.constant(seed, tf.int64), keys, numbers, self.latent_dim)

    @staticmethod
    def _reparametrise(distribution: tfp.distributions.Distribution, noise: tf.Tensor) -> tf.Tensor:
        normal = distribution.distribution
        return normal.loc + normal.scale * noise

    def _log_weights(
        self,
        batch: Mapping[str, tf.Tensor],
        decoder_inputs: tf.Tensor,
        prior: tfp.distributions.Distribution,
        posterior: tfp.distributions.Distribution,
        noise: tf.Tensor,
    ) -> tf.Tensor:
        """Returns log w of every z, `[S, B]`."""
        z = self._reparametrise(posterior, noise)
        density = tf.reduce_sum(self._density(decoder_inputs, z, batch), axis=-1)
        return density + prior.log_prob(z) - posterior.log_prob(z)

    def _density(
        self, decoder_inputs: tf.Tensor, z: tf.Tensor, batch: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Returns log p(y_i given z), `[S, B, N_T]`, some z at once; 0 at masked targets."""
        y, mask = batch["y_target"], batch["target_mask"]
        count = tf.shape(z)[0]
        most = MOST_BYTES // (BYTES_PER_FLOAT * TENSORS_HELD)
        most = tf.maximum(most // tf.maximum(tf.size(decoder_inputs), 1), 1)
        # Chunks of one size: the last z may come again, and are cut off.
        num_chunks = -(-count // most)
        at_once = -(-count // num_chunks)

        def some(first: tf.Tensor) -> tf.Tensor:
            rows = tf.minimum(first + tf.range(at_once), count - 1)
            mean, scale = self._decode(decoder_inputs, tf.gather(z, rows))
            return self._log_normal(mean, scale, y, mask, batch.get("y_support"))

        density = tf.map_fn(
            some,
            at_once * tf.range(num_chunks),
            fn_output_signature=tf.TensorSpec([None, None, None]),
            parallel_iterations=1,
        )
        return tf.reshape(density, tf.concat([[-1], tf.shape(mask)], axis=0))[:count]

    @staticmethod
    def _log_normal(
        mean: tf.Tensor,
        scale: tf.Tensor,
        y: tf.Tensor,
        mask: tf.Tensor,
        y_support: tf.Tensor | None,
    ) -> tf.Tensor:
        density = observed_log_prob(mean, scale, y, y_support)
        return tf.where(mask, tf.reduce_sum(density, axis=-1), 0.0)

    def _score(
        self, batch: dict[str, tf.Tensor], training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the outputs of `call` at inference and the estimate of `log_prob`.

        (What training needs is made by `_loss`.)
        """
        decoder_inputs = self._decoder_inputs(self._built_for(batch), batch["x_target"])
        prior, posterior = self._prior_and_posterior(batch)
        outputs = self._outputs(decoder_inputs, prior.mean()[tf.newaxis], batch["target_mask"])
        noise = self._seeded_noise(batch)
        return outputs, log_mean_exp(
            self._log_weights(batch, decoder_inputs, prior, posterior, noise)
        )

    # Training.

    def _training_latents(
        self, posterior: tfp.distributions.Distribution, num_latents: int
    ) -> tf.Tensor:
        shape = tf.concat([[num_latents], tf.shape(posterior.mean())], axis=0)
        noise = tf.random.stateless_normal(shape, next_seed(self.latent_seeds))
        return self._reparametrise(posterior, noise)

    def _loss(
        self, batch: dict[str, tf.Tensor], weights: tf.Tensor, training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        if not training:
            return super()._loss(batch, weights, training)
        x, y = self._all_points(self._built_for(batch))
        mask, target_mask = self._all_masks(batch), batch["target_mask"]
        prior, posterior = self._prior_and_posterior(batch)
        z = self._training_latents(posterior, self.num_latents)
        mean, scale = self._decode(self._decoder_inputs(batch, x), z)
        density = self._log_normal(mean, scale, y, mask, batch.get("y_support"))
        log_ratio = prior.log_prob(z) - posterior.log_prob(z)
        if self.num_latents == 1:
            bound = tf.reduce_sum(density[0], axis=-1) - posterior.kl_divergence(prior)
        else:
            bound = log_mean_exp(tf.reduce_sum(density, axis=-1) + log_ratio)
        num_context = tf.shape(batch["x_context"])[1]
        of_targets = tf.reduce_sum(density[:, :, num_context:], axis=-1)
        nll = -self._per_point(log_mean_exp(of_targets + log_ratio), target_mask)
        outputs = self.finish_outputs(
            mean[0, :, num_context:], scale[0, :, num_context:], target_mask
        )
        return outputs, nll, self._mean_loss(-self._per_point(bound, mask), weights)

    # Samples.

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes what draws joint samples: one z for a sample of a sequence, then all its targets.

        `order` in `sample` has no effect: given z, the targets are independent of one another.
        """
        return LatentSampler(self, xla)

    def decode_samples(
        self, batch: Mapping[str, tf.Tensor], latents: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and scale of every target for some z from q(z given C).

        Args:
            batch: a prepared batch.
            latents: `[S, B, latent_dim]`, the standard normal noise of z.

        Returns:
            Mean and scale, `[S, B, N_T, D_y]` each, float32.
        """
        z = self._reparametrise(self._prior(batch), latents)
        return self._decode(self._decoder_inputs(batch, batch["x_target"]), z)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "width",
            "latent_dim",
            "deterministic_layers",
            "decoder_layers",
            "num_latents",
            "log_prob_latents",
        ):
            config[name] = getattr(self, name)
        config["latent_layers"] = list(self.latent_layers)
        return config
