"""The base class of all models: loss and gradient step, density, `sample`, `predict`, files."""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.data_wrangler.batch import (
    check_element_spec,
    check_finite,
    check_keys,
    check_shapes,
    has_shared_points,
    largest_absolute_x,
    prepare_batch,
    tile_points,
    tile_sequences,
    tile_shared,
    tiled_arrays,
)
from taylorformer.data_wrangler.checks import (
    check_choice,
    check_dtype_policy,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.data_wrangler.seeds import LARGEST_SEED, SMALLEST_SEED
from taylorformer.data_wrangler.user_warnings import warn_user
from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_whole
from taylorformer.model.array_batches import array_batches, batches_once, count_batches
from taylorformer.model.frozen_weights import (
    freeze_as,
    frozen_state,
    numbered_weights,
    weight_numbers,
)
from taylorformer.model.keras_private import (
    ModelBuiltBeforeTraining,
    loss_metric,
    optimized_weights,
    sublayers,
)
from taylorformer.model.observed_density import observed_log_prob
from taylorformer.model.replica_seed import next_seed
from taylorformer.model.sampling.base import Sampler, support_spec
from taylorformer.model.sampling.orders import ORDERS
from taylorformer.model.sampling.plain import PlainSampler
from taylorformer.model.sampling.shuffling import shuffle_targets
from taylorformer.model.saved_model_folder import check_export_folder
from taylorformer.model.serving import export_model

LEARNING_RATE = 3e-4
GLOBAL_CLIPNORM = 10.0
_SEED_STATE = "seed_state_"
_OPTIMIZER_WEIGHTS = "optimizer_weights"
_KERAS_BATCH_SIZE = 32
"""What `keras.Model.fit` takes for `batch_size=None`."""
_LARGEST_GRADIENT = 1e12
"""Gradients with a larger sum of absolute values are scaled down; squares must fit in float32."""


def default_optimizer() -> keras.optimizers.Optimizer:
    """Makes the optimizer that is used where none is given: Adam, clipped."""
    return keras.optimizers.Adam(LEARNING_RATE, global_clipnorm=GLOBAL_CLIPNORM)


def shrink_to_finite_squares(gradients: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
    """Makes gradients small enough that their squares do not overflow.

    Keras squares them to clip, and so does Adam: above about 1e19 in float32 one batch would make
    every weight NaN, clipped or not. A step whose gradients are not finite becomes one of zeros.
    """
    sizes = [tf.reduce_sum(tf.abs(g)) for g in gradients if g is not None]
    if not sizes:
        return gradients
    size = tf.add_n(sizes)
    factor = tf.where(size > _LARGEST_GRADIENT, _LARGEST_GRADIENT / size, 1.0)
    finite = tf.math.is_finite(size)
    return [None if g is None else tf.where(finite, g * factor, 0.0) for g in gradients]


def _own_points(inputs: Any, *others: Any) -> Any:
    """Gives each sequence of a batch of a data set its own points."""
    if isinstance(inputs, Mapping) and "y_context" in inputs:
        inputs = tile_shared(inputs)
    return (inputs, *others) if others else inputs


def _known_shape(value: Any) -> tuple[int | None, ...]:
    """Returns the static shape of an array or of a specification, () where it has none."""
    shape = getattr(value, "shape", ())
    return () if getattr(shape, "rank", 0) is None else tuple(shape)


class ProbabilisticModel(ModelBuiltBeforeTraining):
    """A joint distribution of targets given a context, with one contract for all models.

    One batch is `(inputs, y_target)`: `inputs` a dictionary as
    `taylorformer.data_wrangler.batch` says, `y_target` `[B, N_T, D_y]`. A subclass implements
    `call` (and `build`), which returns `{"mean", "scale"}`; everything else follows.

    Autoregressive models read `y_target` in `inputs`: `call` then returns the one-step conditionals
    p(y_i given context and earlier targets), teacher forcing. Their `log_prob` is exact.

    Example:
        A model for which targets are independent of one another:

        >>> import keras
        >>> import tensorflow as tf
        >>> class Straight(ProbabilisticModel):
        ...     def __init__(self, **kwargs):
        ...         super().__init__(**kwargs)
        ...         self.dense = keras.layers.Dense(2)
        ...
        ...     def call(self, inputs, training=False):
        ...         batch = self.prepare(inputs)
        ...         mean, raw = tf.split(self.dense(batch["x_target"]), 2, axis=-1)
        ...         return self.finish_outputs(mean, self.scale_from_raw(raw), batch["target_mask"])
        >>> x = tf.zeros([1, 4, 1])
        >>> inputs = {"x_context": x, "y_context": x, "x_target": x}
        >>> Straight(seed=0).log_prob(inputs, y_target=x).shape
        TensorShape([1])

    Args:
        scale: "exp": `scale = min_scale + exp(raw)`; or "bounded":
            `min_scale + (1 - min_scale) softplus(raw)`.
        min_scale: the smallest scale, in units of y.
        target_permutations: 0 keeps the given order of targets in training; m >= 1 takes m random
            orders for each sequence.
        predict_samples: S, free-running samples behind `predict`.
        seed: for the first weights and everything that is drawn in training and in `predict`.
            None: at random, and 0 in `predict`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("prepare", "finish_outputs")
    """Methods on which a loop relies that draws targets row by row; see `can_be_drawn_by_row`."""

    shares_points: ClassVar[bool] = False
    """Whether `call` takes batches whose points all sequences share, with 1 row of x and masks.

    Where it does not, `prepare` gives each sequence its own copy.
    """

    mse_name: ClassVar[str] = "teacher_forced_mse"
    """What Keras calls the squared error of the mean that `call` returns."""

    score_names: ClassVar[tuple[str, str]] = ("teacher_forced_nll", "teacher_forced_mse")
    """What the nll of the joint density and the squared error are called in records."""

    selected_by_nll: ClassVar[bool] = True
    """Whether the weights to keep are those of the least nll, or of the least squared error."""

    def __init__(
        self,
        *,
        scale: str = "exp",
        min_scale: float = 1e-3,
        target_permutations: int = 0,
        predict_samples: int = 100,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        check_dtype_policy(self.dtype_policy)
        self.scale = check_choice("scale", scale, ("exp", "bounded"))
        self.min_scale = check_number(
            "min_scale", min_scale, above=0, below=1 if scale == "bounded" else None
        )
        self.target_permutations = check_integer("target_permutations", target_permutations, 0)
        self.predict_samples = check_integer("predict_samples", predict_samples, 1)
        self.seed = check_optional_integer("seed", seed, 0, 2**31 - 1)
        self.permutation_seeds = keras.random.SeedGenerator(self.seed, name="permutation_seeds")
        self.nll_tracker = keras.metrics.Mean(name="nll", dtype="float64")
        self.mse_tracker = keras.metrics.Mean(name=self.mse_name, dtype="float64")
        self._sampler: Sampler | None = None
        self._teacher_forced: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None
        self._warned_of_far_x = False

    # What a subclass fills in.

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Checks the input shapes, remembers D_x and D_y, and builds all layers.

        Args:
            input_shape: maps `x_context`, `y_context`, `x_target` to shapes.

        Raises:
            ValueError: shapes that do not fit one another, or an unknown D_x or D_y.
        """
        self._remember_sizes(input_shape)
        if not all(layer.built for layer in sublayers(self)):
            # A subclass that writes `call` alone: its layers build themselves when they are called.
            x, y = tf.zeros([1, 1, self.x_dims]), tf.zeros([1, 1, self.y_dims])
            with tf.init_scope():
                self.call({"x_context": x, "y_context": y, "x_target": x, "y_target": y})

    def _remember_sizes(self, input_shape: Mapping[str, Any]) -> None:
        check_keys(input_shape)
        sizes = check_shapes(input_shape)
        self.x_dims, self.y_dims = sizes["D_x"] or 0, sizes["D_y"] or 0
        if not (self.x_dims and self.y_dims):
            raise ValueError(
                "D_x and D_y must be known, and at least 1, when the model is built: give shapes "
                "with last sizes, or data whose shapes have them (`output_signature`). "
                f"Received: {dict(input_shape)}"
            )

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Returns `{"mean": [B, N_T, D_y], "scale": [B, N_T, D_y]}`; see the class."""
        raise NotImplementedError(f"{type(self).__name__} must implement `call`")

    @property
    def distance_dims(self) -> int | None:
        """How many leading dimensions of x define a distance; None: all."""
        return None

    @property
    def largest_x(self) -> float | None:
        """The largest absolute x that the features are made for; None: any.

        Where x is only read by Dense layers, whose weights can scale it (NP, ANP, TNP), no x is
        too large for the features, though x of about -1 to 1 trains best.
        """
        return None

    # Distribution, density, samples.

    def scale_from_raw(self, raw: tf.Tensor) -> tf.Tensor:
        """Turns a raw output `[..]`, of any size, into the scale of the model, float32."""
        raw = tf.cast(raw, tf.float32)
        if self.scale == "exp":
            return self.min_scale + tf.exp(raw)
        return self.min_scale + (1 - self.min_scale) * tf.nn.softplus(raw)

    @staticmethod
    def finish_outputs(
        mean: tf.Tensor, scale: tf.Tensor, target_mask: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns `{"mean", "scale"}` with mean 0 and scale 1 at masked targets."""
        mask = target_mask[..., tf.newaxis]
        return {
            "mean": tf.where(mask, mean, tf.zeros_like(mean)),
            "scale": tf.where(mask, scale, tf.ones_like(scale)),
        }

    def predictive_distribution(self, inputs: Mapping[str, Any]) -> tfp.distributions.Distribution:
        """Returns the outputs of `call` as a distribution, batch `[B, N_T]`, event `[D_y]`."""
        outputs = self(self._tensors(inputs), training=False)
        normal = tfp.distributions.Normal(outputs["mean"], outputs["scale"])
        return tfp.distributions.Independent(normal, reinterpreted_batch_ndims=1)

    def log_prob(self, inputs: Mapping[str, Any], y_target: Any) -> tf.Tensor:
        """Returns the joint log density log p(Y_T given X_T, X_C, Y_C), in nats.

        Args:
            inputs: a batch of the data contract. With `y_support` in it, y in a cell counts with
                the log probability of the cell.
            y_target: `[B, N_T, D_y]`.

        Returns:
            `[B]`, float32, summed over D_y and the observed targets.
        """
        return self._score(self._batch_with_targets(inputs, y_target), training=False)[1]

    def teacher_forced(self, inputs: Mapping[str, Any], y_target: Any) -> dict[str, tf.Tensor]:
        """Scores a batch with the true values of all earlier targets, in one compiled pass.

        One graph serves every B, N_C and N_T. After `compile(run_eagerly=True)` none is made.

        Args:
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]`.

        Returns:
            `log_prob` `[B]`, as the method of that name, and `mean` and `scale` `[B, N_T, D_y]`, as
            `call` with `y_target`.
        """
        batch = self._batch_with_targets(inputs, y_target)
        if not self.built:
            self(batch, training=False)

        def one_pass(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            outputs, log_prob = self._score(batch, training=False)
            return {"log_prob": log_prob, "mean": outputs["mean"], "scale": outputs["scale"]}

        if self.run_eagerly:
            return one_pass(batch)
        if self._teacher_forced is None:
            self._teacher_forced = self._graphs_by_keys(one_pass)
        return self._teacher_forced(batch)

    @staticmethod
    def _graphs_by_keys(
        one_pass: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
    ) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
        """Compiles a function of a batch, once for each set of keys, for any B, N_C and N_T.

        Returns:
            A plain function: one that TensorFlow tracks would be saved with the model.
        """
        graphs: dict[frozenset[str], Any] = {}

        def run(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            keys = frozenset(batch)
            if keys not in graphs:
                signature = {
                    key: tf.TensorSpec([None, None, *tensor.shape[2:]], tensor.dtype)
                    for key, tensor in batch.items()
                }
                if "y_support" in batch:
                    signature["y_support"] = support_spec(batch["y_context"].shape[-1])
                graphs[keys] = tf.function(one_pass, input_signature=[signature], autograph=False)
            return dict(graphs[keys](batch))

        return run

    def _score(
        self, batch: dict[str, tf.Tensor], training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the outputs of `call` and the joint log density of each sequence `[B]`.

        (A model whose density does not follow from the outputs of `call` overrides it.)
        """
        outputs = self(batch, training=training)
        density = observed_log_prob(
            outputs["mean"], outputs["scale"], batch["y_target"], batch.get("y_support")
        )
        density = tf.where(batch["target_mask"][..., tf.newaxis], density, 0.0)
        return outputs, tf.reduce_sum(density, axis=[1, 2])

    def sample(
        self,
        inputs: Mapping[str, Any],
        num_samples: int,
        seed: int,
        sequence_keys: Any = None,
        order: str = "given",
        chunk_size: int | None = None,
        jit_compile: bool = False,
    ) -> tf.Tensor:
        """Draws joint samples, the model running free: no true target value is read.

        The noise of (sample s, sequence b, target i) is a function of (seed, key of b, s, i), so
        that sequences drawn alone, together or in chunks get the same samples. No gradient flows
        through samples.

        Args:
            inputs: a batch of the data contract; a `y_target` in it is not read. `target_mask`
                False means padding: it is not drawn. A target that is True is drawn and then seen.
                With `y_support` each y is moved to what would be observed: the middle of its cell.
            num_samples: S.
            seed: a 64-bit integer.
            sequence_keys: `[B]` integers. None: every sequence has key 0, and so the same noise.
            order: in which order targets are drawn: "given", "random" (one order a sequence, by
                seed and key) or "nearest" (nearest to the observed context first).
            chunk_size: at most this many of the S B sequences at once. None: as many as keep the
                memory bounded.
            jit_compile: compile the loop with XLA, anew for each shape, which takes seconds: for a
                shape that is met many times. The samples are the same but for rounding. Models
                without a loop that XLA compiles warn, and draw as they do without it.

        Returns:
            `[S, B, N_T, D_y]`, float32, 0 at masked targets.
        """
        num_samples = check_integer("num_samples", num_samples, 1)
        seed = check_integer("seed", seed, SMALLEST_SEED, LARGEST_SEED)
        order = check_choice("order", order, ORDERS)
        chunk_size = check_optional_integer("chunk_size", chunk_size, 1)
        batch = self._prepared_without_targets(inputs)
        sequence_keys = self._sequence_keys(sequence_keys, batch)
        if not self.built:
            self(batch, training=False)
        seed = tf.constant(seed, tf.int64)
        arguments = (batch, num_samples, seed, sequence_keys, order, chunk_size)
        if not tf.executing_eagerly():
            return self.make_sampler(xla=jit_compile).draw_all(*arguments)
        if self._sampler is None:
            self._sampler = self.make_sampler()
        if jit_compile and not self._sampler.uses_xla:
            warn_user(
                f"{type(self).__name__} has no loop over targets that XLA compiles: samples are "
                "drawn as with jit_compile=False. Received: jit_compile=True"
            )
        # Pauses tapes: what is drawn in place has no gradient.
        with tf.init_scope():
            return self._sampler(*arguments, jit_compile)

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes what draws joint samples; a model with a quicker way overrides it.

        Args:
            xla: for a graph that XLA compiles.
        """
        return PlainSampler(self, xla)

    @staticmethod
    def _sequence_keys(sequence_keys: Any, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        if sequence_keys is None:
            return tf.zeros(tf.shape(batch["y_context"])[:1], tf.int64)
        keys = tf.convert_to_tensor(sequence_keys)
        shape = batch["y_context"].shape[:1]
        if (
            not keys.dtype.is_integer
            or keys.shape.rank != 1
            or not keys.shape.is_compatible_with(shape)
        ):
            raise ValueError(
                f"`sequence_keys` must be integers of the shape [B] = {shape.as_list()}. "
                f"Received: dtype {keys.dtype.name}, shape {list(keys.shape)}"
            )
        return tf.cast(keys, tf.int64)

    @staticmethod
    def _tensors(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        check_keys(inputs)
        return {key: tf.convert_to_tensor(value) for key, value in inputs.items()}

    def _prepared_without_targets(self, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        check_keys(inputs)
        return tile_points(self.prepare({k: v for k, v in inputs.items() if k != "y_target"}))

    def prepare(self, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Prepares a batch (see `prepare_batch`) and checks it against D_x and D_y.

        Returns:
            The batch. x and masks have 1 row where all sequences share them, if `shares_points`,
            else B.

        Raises:
            ValueError: other dimensions than those the model was built for.
        """
        batch = prepare_batch(inputs)
        if tf.executing_eagerly():
            self._warn_of_far_x(batch)
        if self.built:
            x_dims, y_dims = batch["x_context"].shape[-1], batch["y_context"].shape[-1]
            if (x_dims, y_dims) != (self.x_dims, self.y_dims):
                raise ValueError(
                    f"`inputs` must have D_x = {self.x_dims} and D_y = {self.y_dims}, as the "
                    f"model was built for. Received: D_x = {x_dims}, D_y = {y_dims}"
                )
        return batch if self.shares_points else tile_points(batch)

    def _batch_with_targets(self, inputs: Mapping[str, Any], y_target: Any) -> dict[str, tf.Tensor]:
        """Prepares a batch with its targets as `y_target`, checked against each other."""
        check_keys(inputs)
        if y_target is None:
            raise ValueError("`y_target` must have the shape [B, N_T, D_y]. Received: None")
        return self.prepare({**inputs, "y_target": y_target})

    # Keras: compile, fit, evaluate, predict.

    def compile(
        self,
        optimizer: Any = None,
        *,
        metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = False,
        auto_scale_loss: bool = True,
    ) -> None:
        """Configures training; the loss is the model's own and not to be chosen.

        Args:
            optimizer: None: Adam with learning rate 3e-4 and `global_clipnorm=10` (without
                clipping one outlier batch ruins a run).
            metrics: Keras metrics of `(y_target, mean)`, weighted by `target_mask`.
            run_eagerly: as in Keras.
            steps_per_execution: as in Keras.
            jit_compile: XLA; off by default, because it compiles anew for each shape of a batch
                (B, N_C, N_T), for 5 to 25 s on two processor cores, and then may save up to a sixth
                of a step: for many steps of one shape. Numbers are the same but for rounding, and
                those of `tf.random` (noise on y, noise of latents, order of targets), which XLA
                draws otherwise.
            auto_scale_loss: as in Keras.
        """
        if optimizer is None:
            optimizer = default_optimizer()
        # Graphs of a model that has been changed since (LoRA, quantisation) are made anew.
        self._sampler = self._teacher_forced = None
        super().compile(
            optimizer=optimizer,
            weighted_metrics=metrics,
            run_eagerly=run_eagerly,
            steps_per_execution=steps_per_execution,
            jit_compile=jit_compile,
            auto_scale_loss=auto_scale_loss,
        )

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns what `compile` was given, for `.keras` files; None if it was not called."""
        if not self.compiled:
            return None
        config = dict(super().get_compile_config())
        # Of frozen weights too, if they were frozen after the optimizer was built.
        config[_OPTIMIZER_WEIGHTS] = weight_numbers(self, optimized_weights(self.optimizer))
        config["metrics"] = config.pop("weighted_metrics", None)
        for name in ("loss", "loss_weights"):
            config.pop(name, None)
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compiles a loaded model, with its optimizer's variables."""
        config = dict(config)
        numbers = config.pop(_OPTIMIZER_WEIGHTS, None)
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None and self.built:
            self._build_optimizer(self.optimizer, numbered_weights(self, numbers))

    @staticmethod
    def _build_optimizer(optimizer: keras.optimizers.Optimizer, weights: list[Any]) -> None:
        """Makes the variables of an optimizer; for no weight at all it waits for some."""
        if weights and not optimizer.built:
            optimizer.build(weights)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> keras.callbacks.History:
        """Trains, as `keras.Model.fit` does, whose arguments these are.

        The model and its optimizer are built from the shapes of `x` beforehand where these are
        known: a training step that makes its variables while it is traced is traced twice. Where
        the model has a seed, arrays are shuffled by that seed and the number of the pass over
        them, so that training that was stopped resumes with the batches it would have had. With
        `steps_per_epoch`, an epoch takes so many batches and the next one continues after them,
        pass after pass; then that holds without shuffling too. (With `validation_split` Keras
        shuffles.)

        Raises:
            ValueError: as `keras.Model.fit`, values at observed points of arrays that are not
                finite, or a data set of unknown rank, D_x or D_y.
        """
        self._check_data(x, y)
        with self.distribute_strategy.scope():
            self.build_for_training(x, getattr(self, "optimizer", None))
        if validation_split and has_shared_points(x):
            # Keras splits all arrays alike.
            x = tiled_arrays(x)
        x = self._own_points_for_replicas(x)
        validation_data = self._validation_batches(
            validation_data, validation_batch_size or batch_size
        )
        if isinstance(x, Mapping) and y is not None and not validation_split:
            seed = self.seed if shuffle else None
            shared = has_shared_points(x)
            if shared and shuffle and seed is None:
                seed = int(np.random.default_rng().integers(2**31))
            if shared or seed is not None or (steps_per_epoch is not None and not shuffle):
                parts = (dict(x), y) if sample_weight is None else (dict(x), y, sample_weight)
                x, steps_per_epoch = self._endless_batches(
                    parts, batch_size, seed, initial_epoch, steps_per_epoch
                )
                y = batch_size = sample_weight = None
        if isinstance(x, tf.data.Dataset):
            # A data set shuffles itself, and Keras warns where it is asked to.
            shuffle = False
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_split=validation_split,
            validation_data=validation_data,
            shuffle=shuffle,
            class_weight=class_weight,
            sample_weight=sample_weight,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            validation_batch_size=validation_batch_size,
            validation_freq=validation_freq,
        )

    def _endless_batches(
        self,
        parts: tuple[Any, ...],
        batch_size: int | None,
        seed: int | None,
        initial_epoch: int,
        steps_per_epoch: int | None,
    ) -> tuple[tf.data.Dataset, int]:
        """Makes the batches of arrays that are left when training resumes at an epoch.

        Returns:
            The data set, and the steps of an epoch; by default one pass over the arrays.
        """
        check_keys(parts[0])
        shapes = {
            key: _known_shape(value) for key, value in {**parts[0], "y_target": parts[1]}.items()
        }
        if all(shapes.values()):
            check_shapes(shapes)
        batch_size = check_optional_integer("batch_size", batch_size, 1) or _KERAS_BATCH_SIZE
        initial_epoch = check_integer("initial_epoch", initial_epoch, 0)
        steps = check_optional_integer("steps_per_epoch", steps_per_epoch, 1)
        steps = count_batches(parts, batch_size) if steps is None else steps
        # Keras runs whole executions of several steps, the last one of an epoch too.
        batches_per_epoch = -(-steps // self.steps_per_execution) * self.steps_per_execution
        first_batch = initial_epoch * batches_per_epoch
        return array_batches(parts, batch_size, seed, first_batch), steps

    def _own_points_for_replicas(self, x: Any) -> Any:
        """Gives each sequence its own points where a batch will be split among replicas."""
        if self.distribute_strategy.num_replicas_in_sync == 1:
            return x
        if isinstance(x, tf.data.Dataset):
            return x.map(_own_points)
        return tiled_arrays(x) if has_shared_points(x) else x

    def _validation_batches(self, data: Any, batch_size: int | None) -> Any:
        """Makes batches of arrays for validation if their points are shared."""
        if isinstance(data, tuple) and data and isinstance(data[0], Mapping):
            inputs, *others = data
            inputs, _, *others = self._batches_of_shared(inputs, batch_size, *others)
            return inputs if isinstance(inputs, tf.data.Dataset) else (inputs, *others)
        return self._own_points_for_replicas(data)

    def _batches_of_shared(self, x: Any, batch_size: int | None, *others: Any) -> tuple[Any, ...]:
        """Makes a data set of arrays whose points are shared, which Keras would not batch.

        Args:
            x: what Keras takes.
            batch_size: B. None: that of Keras.
            others: y and weights, each may be None.

        Returns:
            What to hand to Keras instead of `x`, `batch_size` and `others`.
        """
        x = self._own_points_for_replicas(x)
        if not has_shared_points(x):
            return (x, batch_size, *others)
        shapes = {key: _known_shape(value) for key, value in x.items()}
        if others and others[0] is not None:
            shapes["y_target"] = _known_shape(others[0])
        check_keys(x)
        if all(shapes.values()):
            check_shapes(shapes)
        given = [part for part in others if part is not None]
        batches = batches_once((dict(x), *given), batch_size or _KERAS_BATCH_SIZE)
        return (batches, None, *(None for _ in others))

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Scores, as `keras.Model.evaluate` does; arrays must be finite at observed points."""
        self._check_data(x, y)
        x, batch_size, y, sample_weight = self._batches_of_shared(x, batch_size, y, sample_weight)
        return super().evaluate(x, y, batch_size, verbose, sample_weight, *args, **kwargs)

    def predict(
        self, x: Any, batch_size: int | None = None, *args: Any, **kwargs: Any
    ) -> dict[str, np.ndarray]:
        """Predicts, as `keras.Model.predict` does: moments of `predict_samples` joint samples.

        Returns:
            `mean` and `stddev`, `[B, N_T, D_y]` each; 0 and 1 at masked targets.
        """
        self._check_data(x, is_scored=False)
        x, batch_size = self._batches_of_shared(x, batch_size)
        return super().predict(x, batch_size, *args, **kwargs)

    def train_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains on one batch, as `keras.Model.train_on_batch` does, whose arguments these are."""
        self._check_data(x, y)
        with self.distribute_strategy.scope():
            self.build_for_training(x, getattr(self, "optimizer", None))
        return super().train_on_batch(x, y, *args, **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Scores one batch, as `keras.Model.test_on_batch` does, whose arguments these are."""
        self._check_data(x, y)
        return super().test_on_batch(x, y, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> dict[str, np.ndarray]:
        """Predicts one batch; see `predict`."""
        self._check_data(x, is_scored=False)
        return super().predict_on_batch(x)

    def _check_data(self, x: Any, y: Any = None, is_scored: bool = True) -> None:
        """Looks at what Keras is about to be given, while a mistake can still be named.

        Args:
            x: a data set, or `inputs` of the data contract; anything else is let through.
            y: `[B, N_T, D_y]`, or None.
            is_scored: arrays must be finite at observed points.
        """
        if isinstance(x, tf.data.Dataset):
            check_element_spec(x.element_spec)
        if is_scored:
            check_finite(x, y)
        if isinstance(x, Mapping):
            self._warn_of_far_x(x)

    def _warn_of_far_x(self, inputs: Mapping[str, Any]) -> None:
        """Warns, once for each model, of x in which the features cannot tell points apart."""
        if self._warned_of_far_x or self.largest_x is None:
            return
        largest = largest_absolute_x(inputs)
        if largest > self.largest_x:
            self._warned_of_far_x = True
            warn_user(
                f"x should be about -1 to 1, and at most {self.largest_x:g} from 0, for the "
                f"positional encoding of {type(self).__name__} (`longest`): scale it, as "
                f"`Forecaster` does. Received: |x| up to {largest:g}"
            )

    def calibrate(self, validation_data: Any) -> None:
        """Fits what is fitted after training, to the weights as they are.

        Nothing here: a scale that `call` returns is trained.

        Args:
            validation_data: as `fit` takes it, or None.
        """

    def build_for_training(self, data: Any, optimizer: keras.optimizers.Optimizer | None) -> None:
        """Builds the model, and the optimizer, from a data set or a batch of inputs.

        Args:
            data: a `tf.data.Dataset` of `(inputs, y_target)`, or `inputs`. Anything else is
                left alone: the model is then built when it is first called.
            optimizer: a Keras optimizer, or None.
        """
        if not self.built:
            if isinstance(data, tf.data.Dataset):
                data = data.element_spec
                data = data[0] if isinstance(data, tuple) else data
            if not isinstance(data, Mapping):
                return
            check_keys(data)
            shapes = {key: _known_shape(value) for key, value in data.items()}
            wide = all(shapes[key] and shapes[key][-1] for key in ("x_context", "y_context"))
            if not (wide and all(shapes.values())):
                return
            self.build(shapes)
        if optimizer is not None:
            self._build_optimizer(optimizer, self.trainable_variables)

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        """One step of `fit`: maximises the mean log-likelihood per observed target."""
        inputs, y_target, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        return self.gradient_step(self.optimizer, inputs, y_target, sample_weight)

    def gradient_step(
        self,
        optimizer: keras.optimizers.Optimizer,
        inputs: Mapping[str, Any],
        y_target: Any,
        sample_weight: Any = None,
    ) -> dict[str, tf.Tensor]:
        """Changes the weights once, to be run in a `tf.function`.

        Args:
            optimizer: a Keras optimizer.
            inputs: a batch of the data contract.
            y_target: `[B, N_T, D_y]`.
            sample_weight: `[B]`, or None.

        Returns:
            The running averages `loss`, `nll`, `teacher_forced_mse`.
        """
        batch = self._batch_with_targets(inputs, y_target)
        # Nothing may move (seeds, the optimizer's counter) in a step whose data never arrive, which
        # is how a data set ends.
        with tf.control_dependencies(list(batch.values())):
            return self._gradient_step(optimizer, batch, sample_weight)

    def _gradient_step(
        self, optimizer: keras.optimizers.Optimizer, batch: dict[str, tf.Tensor], sample_weight: Any
    ) -> dict[str, tf.Tensor]:
        weights = self._sequence_weights(batch, sample_weight)
        if self.target_permutations:
            batch = {**tile_points(batch), "weights": weights}
            seed = next_seed(self.permutation_seeds)
            batch = shuffle_targets(batch, self.target_permutations, seed)
            weights = batch.pop("weights")
        outputs, nll, loss, gradients = self._gradients(optimizer, batch, weights)
        variables = self.trainable_variables
        if variables:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        else:
            # In the words of Keras, which trains on then, too.
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self._track(batch, outputs, nll, loss, weights)

    def _gradients(
        self,
        optimizer: keras.optimizers.Optimizer,
        batch: dict[str, tf.Tensor],
        weights: tf.Tensor,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor, list[tf.Tensor | None]]:
        """Returns what `_loss` does, and the gradients of the trainable weights for one step."""
        with tf.GradientTape() as tape:
            outputs, nll, loss = self._loss(batch, weights, training=True)
            scaled = optimizer.scale_loss(loss * self._share_of_replica(weights))
        gradients = tape.gradient(scaled, self.trainable_variables)
        if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            gradients = shrink_to_finite_squares(gradients)
        return outputs, nll, loss, gradients

    @staticmethod
    def _share_of_replica(weights: tf.Tensor) -> tf.Tensor | float:
        """Returns the share of this replica in a batch: gradients are summed over replicas."""
        if tf.distribute.get_strategy().num_replicas_in_sync == 1:
            return 1.0
        weight = tf.reduce_sum(weights)
        context = tf.distribute.get_replica_context()
        return tf.math.divide_no_nan(weight, context.all_reduce(tf.distribute.ReduceOp.SUM, weight))

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        """One step of `evaluate`."""
        inputs, y_target, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        batch = self._batch_with_targets(inputs, y_target)
        weights = self._sequence_weights(batch, sample_weight)
        outputs, nll, loss = self._loss(batch, weights, training=False)
        return self._track(batch, outputs, nll, loss, weights)

    def predict_step(self, data: Any) -> dict[str, tf.Tensor]:
        """One step of `predict`: mean and standard deviation of free-running samples."""
        inputs, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        batch = self._prepared_without_targets(inputs)
        if not self.built:
            self(batch, training=False)
        sampler = self.make_sampler(xla=bool(self.jit_compile))
        seed = tf.constant(self.seed or 0, tf.int64)
        keys = self._sequence_keys(None, batch)
        drawn = sampler.draw_all(batch, self.predict_samples, seed, keys)
        mask = batch["target_mask"]
        moments = self.finish_outputs(
            tf.reduce_mean(drawn, axis=0), tf.math.reduce_std(drawn, axis=0), mask
        )
        return {"mean": moments["mean"], "stddev": moments["scale"]}

    def _sequence_weights(self, batch: Mapping[str, tf.Tensor], sample_weight: Any) -> tf.Tensor:
        """Returns the weight of each sequence `[B]`: 0 if no target of it is observed."""
        weights = tf.cast(tf.reduce_any(batch["target_mask"], axis=1), tf.float32)
        weights = tile_sequences(weights, tf.shape(batch["y_target"])[0])
        if sample_weight is None:
            return weights
        sample_weight = tf.cast(sample_weight, tf.float32)
        if sample_weight.shape.rank != 1:
            raise ValueError(
                f"`sample_weight` must have the shape [B]. Received: {list(sample_weight.shape)}"
            )
        return weights * sample_weight

    def _loss(
        self, batch: dict[str, tf.Tensor], weights: tf.Tensor, training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns the outputs, the nll of each sequence `[B]` and the loss."""
        outputs, log_prob = self._score(batch, training)
        nll = -self._per_point(log_prob, batch["target_mask"])
        return outputs, nll, self._mean_loss(nll, weights)

    @staticmethod
    def _per_point(log_prob: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Divides what each sequence has, `[B]`, by its number of observed points."""
        count = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1)
        return tf.math.divide_no_nan(log_prob, count)

    def _mean_loss(self, losses: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Averages the losses of the sequences, `[B]`, and adds those of the layers."""
        loss = tf.math.divide_no_nan(tf.reduce_sum(weights * losses), tf.reduce_sum(weights))
        if self.losses:
            loss += tf.cast(tf.add_n(self.losses), tf.float32)
        return loss

    def _track(
        self,
        batch: Mapping[str, tf.Tensor],
        outputs: Mapping[str, tf.Tensor],
        nll: tf.Tensor,
        loss: tf.Tensor,
        weights: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Updates the running averages, each sequence counting the same."""
        mask = tf.cast(batch["target_mask"], tf.float32)
        mask = tile_sequences(mask, tf.shape(batch["y_target"])[0])
        squares = tf.reduce_mean(tf.square(outputs["mean"] - batch["y_target"]), axis=-1)
        mse = tf.math.divide_no_nan(
            tf.reduce_sum(mask * squares, axis=1), tf.reduce_sum(mask, axis=1)
        )
        self.nll_tracker.update_state(nll, sample_weight=weights)
        self.mse_tracker.update_state(mse, sample_weight=weights)
        average = loss_metric(self)
        if average is not None:
            average.update_state(loss, sample_weight=tf.reduce_sum(weights))
        return self.compute_metrics(None, batch["y_target"], outputs["mean"], mask)

    # Saving.

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        zipped: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Writes a `.keras` file, as `keras.Model.save` does; it appears when it is complete.

        Whenever the process ends, the file is the one of before or the new one.

        Args:
            filepath: a path that ends in `.keras`.
            overwrite: replace a file that is there; Keras' callbacks rely on it.
            zipped: as in Keras.
            kwargs: as in Keras.

        Raises:
            FileExistsError: a file is there, and `overwrite` is False.
            ValueError: another ending.
        """
        path = os.fspath(filepath)
        if "://" in path or not path.endswith(".keras"):
            # Addresses and formats that Keras knows, or refuses.
            super().save(filepath, overwrite, zipped, **kwargs)
            return
        refuse_existing(path, overwrite, "filepath")
        with replaced_whole(path) as unfinished:
            super().save(unfinished, zipped=zipped, **kwargs)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Writes a SavedModel, which serves with TensorFlow alone; no optimizer is in it.

        Endpoints, each also as `<name>_masked` with `context_mask` and `target_mask`:

        - `serving_default`: `x_context`, `y_context`, `x_target`, `num_samples` and `seed` (int32
          scalars) and `quantile_levels` `[Q]` return `mean`, `stddev` `[B, N_T, D_y]` and
          `quantiles` `[B, N_T, D_y, Q]` of free-running samples;
        - `sample`: the same without levels returns `samples` `[S, B, N_T, D_y]`;
        - `log_prob`: `x_context`, `y_context`, `x_target`, `y_target` return `log_prob` `[B]`.

        Every sequence is drawn with key 0, so that an answer does not depend on what else is in the
        request. B, N_C and N_T are free.

        Args:
            filepath: a folder, made if it is not there. It appears when it is complete.
            format: "tf_saved_model".
            verbose: as in Keras; nothing is printed.
            overwrite: replace a SavedModel that is there.

        Raises:
            FileExistsError: `filepath` holds a SavedModel and `overwrite` is not set, or it holds
                something else.
            ValueError: the model has not been built, or another format.
        """
        check_choice("format", format, ("tf_saved_model",))
        check_export_folder(filepath, overwrite, "filepath")
        if not self.built:
            raise ValueError(
                "the model must be built (fit it, call it, or `build` it) before it is exported. "
                "Received: a model without weights"
            )
        export_model(self, filepath)

    def get_build_config(self) -> dict[str, Any] | None:
        """Returns D_x and D_y, and which layers and weights are frozen."""
        if not self.built:
            return None
        return {"x_dims": self.x_dims, "y_dims": self.y_dims, **frozen_state(self)}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Makes all state of a loaded model, and freezes what was frozen."""
        if config:
            x, y = (None, None, config["x_dims"]), (None, None, config["y_dims"])
            self.build({"x_context": x, "y_context": y, "x_target": x})
            freeze_as(self, config)

    def seed_states(self) -> dict[str, keras.Variable]:
        """Returns the states of all random seeds of the model and its layers, by name."""
        states = [v for v in self.variables if v.path.endswith("/seed_generator_state")]
        return {f"{_SEED_STATE}{number}": state for number, state in enumerate(states)}

    def save_own_variables(self, store: Any) -> None:
        """Saves the states of all seeds too, which Keras leaves out of its files.

        Without them training would not resume as if it had never stopped.
        """
        super().save_own_variables(store)
        for name, state in self.seed_states().items():
            store[name] = state.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Loads what `save_own_variables` saved."""
        names = [key for key in store.keys() if not key.startswith(_SEED_STATE)]
        super().load_own_variables({key: store[key] for key in names})
        for name, state in self.seed_states().items():
            if name in store.keys():
                state.assign(store[name])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "scale": self.scale,
            "min_scale": self.min_scale,
            "target_permutations": self.target_permutations,
            "predict_samples": self.predict_samples,
            "seed": self.seed,
        }
