"""What the direct forecasters have in common: all targets at once, on an even grid."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from taylorformer.comparison_models.direct_sampler import DirectSampler
from taylorformer.comparison_models.even_grid import (
    LARGEST_STEP_ERROR,
    even_times,
    interpolate_rows,
    step_error,
)
from taylorformer.comparison_models.row_widths import head_width
from taylorformer.data_wrangler.checks import (
    check_boolean,
    check_integer,
    check_number,
    check_optional_integer,
)
from taylorformer.model.array_batches import batches_once
from taylorformer.model.frozen_weights import freeze_as
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.sampling.base import Sampler

_SCALE_MOMENTUM = 0.99
"""Of the running average of squared errors in training: about the last 100 batches."""

_UNEVEN = (
    "`{name}` reads an even grid: context and target times at equal steps, one grid for both. "
    "Set `interpolate=True` to interpolate linearly onto one"
)
_MASKED = (
    "`{name}` reads every context row: none may be missing (masked). Set `interpolate=True` to "
    "interpolate linearly over missing rows"
)


class DirectForecaster(ProbabilisticModel, abc.ABC):
    """Forecasts all targets at once from a context of fixed length on an even grid.

    A subclass implements `build_layers` and `forecast_rows`, the map from a table of values to
    one of forecasts. It is trained on the squared error. The likelihood is a Normal around the
    forecast whose scale is the same for every sequence and target, one for each output: the root of
    the mean squared error on validation data (Nivron et al., 2023, appendix), kept as the
    weight `residual_scale`. In training it is a running average over batches; `fit` with
    `validation_data`, `calibrate` and `fit_scale` fit it to other data. Targets are independent of
    one another given the context, and no `y_target` is ever read: `log_prob` is the joint density
    for this Normal, and `mse` is that of a forecast, not teacher-forced.

    The first dimension of x is time; further ones, known beforehand (phases of a day, of a
    year), are read as features of context and targets. N_C and N_T are those of the shapes that
    the model is built with; any others are an error. `loss` is `mse`, in `fit` and in `evaluate`.

    Args:
        width: width of every row in the model.
        num_heads: H.
        feed_forward: width of the feed-forward parts.
        encoder_layers: layers of the encoder.
        decoder_layers: layers of the decoder.
        dropout: rate of the dropout, in [0, 1).
        start_length: the last context rows that the decoder reads before the targets. None: half
            of the context, rounded down.
        interpolate: interpolate uneven or missing context rows linearly onto an even grid from the
            first context row to the last target, and forecasts from the grid to the targets.
            Otherwise uneven times and missing context rows are an error.
        min_scale: the smallest scale, in units of y.
        predict_samples: S, samples behind `predict`.
        seed: for the first weights and everything that is drawn in training and in `predict`.
            None: at random, and 0 in `predict`.

    Raises:
        TypeError, ValueError: an argument outside its range.
    """

    mse_name: ClassVar[str] = "mse"
    score_names: ClassVar[tuple[str, str]] = ("joint_nll", "mse")
    selected_by_nll: ClassVar[bool] = False

    def __init__(
        self,
        *,
        width: int = 512,
        num_heads: int = 8,
        feed_forward: int = 2048,
        encoder_layers: int = 2,
        decoder_layers: int = 1,
        dropout: float = 0.05,
        start_length: int | None = None,
        interpolate: bool = False,
        min_scale: float = 1e-3,
        predict_samples: int = 100,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(min_scale=min_scale, predict_samples=predict_samples, seed=seed, **kwargs)
        self.width = check_integer("width", width, 1)
        self.num_heads = check_integer("num_heads", num_heads, 1)
        self.feed_forward = check_integer("feed_forward", feed_forward, 1)
        self.encoder_layers = check_integer("encoder_layers", encoder_layers, 1)
        self.decoder_layers = check_integer("decoder_layers", decoder_layers, 1)
        self.dropout = check_number("dropout", dropout, minimum=0, below=1)
        self.start_length = check_optional_integer("start_length", start_length, 0)
        self.interpolate = check_boolean("interpolate", interpolate)
        head_width(self.width, self.num_heads)

    # What a subclass fills in.

    @abc.abstractmethod
    def build_layers(self, num_features: int) -> None:
        """Makes and builds all layers; N_C, N_T and D_y are `num_context`, `num_target`, `y_dims`.

        Args:
            num_features: dimensions of x beside time; may be 0.
        """

    @abc.abstractmethod
    def forecast_rows(
        self,
        values: tf.Tensor,
        context_features: tf.Tensor,
        target_features: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Runs the model on an even grid.

        Args:
            values: `[B, N_C, D_y]`, float32, none missing.
            context_features: `[B, N_C, D_x - 1]`, float32.
            target_features: `[B, N_T, D_x - 1]`, float32.
            training: with dropout, and with other draws of what is random.

        Returns:
            `[B, N_T, D_y]`, float32.
        """

    # Shapes, and the grid.

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Makes all weights from the shapes of a batch, whose N_C and N_T the model keeps."""
        self._remember_sizes(input_shape)
        num_context, num_target = (input_shape[f"x_{side}"][1] for side in ("context", "target"))
        if num_context is None or num_target is None or num_context < 2 or num_target < 1:
            raise ValueError(
                f"{type(self).__name__} has fixed lengths: N_C (at least 2) and N_T (at least 1) "
                "must be known when it is built; `build` it with shapes that have them. "
                f"Received: N_C = {num_context}, N_T = {num_target}"
            )
        if self.start_length is not None and self.start_length > num_context:
            raise ValueError(
                "`start_length` must be at most N_C. "
                f"Received: start_length={self.start_length}, N_C = {num_context}"
            )
        self.num_context, self.num_target = int(num_context), int(num_target)
        self.residual_scale = self.add_weight(
            shape=(self.y_dims,),
            initializer="ones",
            trainable=False,
            dtype="float32",
            autocast=False,
            aggregation="mean",
            name="residual_scale",
        )
        self.build_layers(self.x_dims - 1)
        self.built = True

    @property
    def num_start(self) -> int:
        """How many context rows the decoder reads before the targets."""
        return self.num_context // 2 if self.start_length is None else self.start_length

    @property
    def distance_dims(self) -> int | None:
        """Time alone defines a distance."""
        return 1

    def prepare(self, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Prepares a batch, and checks its lengths and its grid.

        Raises:
            ValueError: other lengths or dimensions than those the model was built for; without
                `interpolate`, uneven times or missing context rows (in a graph an
                `InvalidArgumentError`).
        """
        batch = super().prepare(inputs)
        if self.built:
            self._check_lengths(batch)
        if tf.executing_eagerly() and not self.interpolate:
            self._check_grid(batch)
        return batch

    def _check_lengths(self, batch: Mapping[str, tf.Tensor]) -> None:
        lengths = tuple(batch[f"x_{side}"].shape[1] for side in ("context", "target"))
        expected = self.num_context, self.num_target
        both = zip(lengths, expected, strict=True)
        if any(length not in (None, built) for length, built in both):
            raise ValueError(
                f"{type(self).__name__} has fixed lengths: N_C = {expected[0]} and N_T = "
                f"{expected[1]}, as it was built for. "
                f"Received: N_C = {lengths[0]}, N_T = {lengths[1]}"
            )

    def _check_grid(self, batch: Mapping[str, tf.Tensor]) -> None:
        error, missing = self._grid_faults(batch)
        if missing:
            raise ValueError(
                f"{_MASKED.format(name=type(self).__name__)}. Received: {int(missing)} missing rows"
            )
        if error > LARGEST_STEP_ERROR:
            raise ValueError(
                f"{_UNEVEN.format(name=type(self).__name__)}. Received: a time that is "
                f"{float(error):.3g} steps from the even grid"
            )

    @staticmethod
    def _grid_faults(batch: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the largest distance from an even grid, in steps, and how many rows miss."""
        x = tf.concat([batch["x_context"], batch["x_target"]], axis=1)
        mask = tf.concat([batch["context_mask"], batch["target_mask"]], axis=1)
        errors = step_error(x[..., 0], mask)
        largest = tf.reduce_max(tf.concat([errors, [0.0]], axis=0))
        return largest, tf.reduce_sum(tf.cast(~batch["context_mask"], tf.int32))

    def _checked(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Checks in a graph what `prepare` could not know, and gives the batch its lengths."""
        name = type(self).__name__
        expected = tf.constant([self.num_context, self.num_target])
        lengths = [tf.shape(batch[f"x_{side}"])[1] for side in ("context", "target")]
        message = (
            f"{name} has fixed lengths: N_C = {self.num_context} and N_T = {self.num_target}, as "
            "it was built for"
        )
        checks = [tf.debugging.assert_equal(tf.stack(lengths), expected, message=message)]
        if not self.interpolate and not tf.executing_eagerly():
            error, missing = self._grid_faults(batch)
            checks += [
                tf.debugging.assert_equal(missing, 0, message=_MASKED.format(name=name)),
                tf.debugging.assert_less_equal(
                    error, LARGEST_STEP_ERROR, message=_UNEVEN.format(name=name)
                ),
            ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            sized = {}
            for key, tensor in batch.items():
                if key != "y_support":
                    length = self.num_context if "context" in key else self.num_target
                    sized[key] = tf.ensure_shape(tensor, [None, length, *tensor.shape[2:]])
            return sized

    # Forecast and likelihood.

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Forecasts the targets.

        Args:
            inputs: a batch of the data contract; `y_target` is never read.
            training: with dropout.

        Returns:
            `{"mean": [B, N_T, D_y], "scale": [B, N_T, D_y]}`, float32.
        """
        batch = self._checked(self.prepare({k: v for k, v in inputs.items() if k != "y_target"}))
        context, target = batch["x_context"], batch["x_target"]
        features = target[..., 1:]
        if self.interpolate:
            mean = self._interpolated(batch, training)
        else:
            mean = self.forecast_rows(batch["y_context"], context[..., 1:], features, training)
        scale = tf.maximum(tf.convert_to_tensor(self.residual_scale), self.min_scale)
        return self.finish_outputs(
            mean, tf.broadcast_to(scale, tf.shape(mean)), batch["target_mask"]
        )

    def _interpolated(self, batch: Mapping[str, tf.Tensor], training: bool) -> tf.Tensor:
        """Forecasts on an even grid and returns the forecasts at the targets."""
        num_context = self.num_context
        sides = [(batch[f"x_{side}"], batch[f"{side}_mask"]) for side in ("context", "target")]
        x, mask = (tf.concat(parts, axis=1) for parts in zip(*sides, strict=True))
        grid = even_times(x[..., 0], mask)
        before, after = grid[:, :num_context], grid[:, num_context:]
        (x_context, context_mask), (x_target, target_mask) = sides
        rows = tf.concat([batch["y_context"], x_context[..., 1:]], axis=-1)
        rows = interpolate_rows(x_context[..., 0], context_mask, rows, before)
        times = x_target[..., 0]
        features = interpolate_rows(times, target_mask, x_target[..., 1:], after)
        values, context_features = rows[..., : self.y_dims], rows[..., self.y_dims :]
        forecast = self.forecast_rows(values, context_features, features, training)
        return interpolate_rows(after, tf.ones_like(after, tf.bool), forecast, times)

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes what draws independent samples around the forecast."""
        return DirectSampler(self, xla)

    # Training.

    def _check_data(self, x: Any, y: Any = None, is_scored: bool = True) -> None:
        super()._check_data(x, y, is_scored)
        if isinstance(x, Mapping):
            self.prepare({k: v for k, v in x.items() if k != "y_target"})

    def _loss(
        self, batch: dict[str, tf.Tensor], weights: tf.Tensor, training: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        outputs, nll, _ = super()._loss(batch, weights, training)
        mask = tf.cast(batch["target_mask"], tf.float32)[..., tf.newaxis]
        squares = mask * tf.square(outputs["mean"] - batch["y_target"])
        if training:
            weighted = weights[:, tf.newaxis, tf.newaxis]
            total = tf.reduce_sum(weighted * squares, axis=[0, 1])
            self._follow(total, tf.reduce_sum(weighted * mask))
        mse = self._per_point(
            tf.reduce_sum(tf.reduce_mean(squares, axis=-1), axis=1), batch["target_mask"]
        )
        return outputs, nll, self._mean_loss(mse, weights)

    def _follow(self, total: tf.Tensor, count: tf.Tensor) -> None:
        """Moves the scale towards the squared errors of a batch of training."""
        old = tf.square(tf.convert_to_tensor(self.residual_scale))
        new = tf.stop_gradient(total) / tf.maximum(count, 1e-9)
        moved = tf.sqrt(_SCALE_MOMENTUM * old + (1 - _SCALE_MOMENTUM) * new)
        usable = (count > 0) & tf.reduce_all(tf.math.is_finite(moved))
        self.residual_scale.assign(tf.where(usable, moved, tf.sqrt(old)))

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains, as `ProbabilisticModel.fit` does, and then fits the scale to `validation_data`.

        Without `validation_data` the scale is that of the last batches of training.
        """
        history = super().fit(*args, **kwargs)
        self.calibrate(kwargs.get("validation_data"))
        return history

    def calibrate(self, validation_data: Any) -> None:
        """Fits the scale to validation data as Keras takes it; None leaves it."""
        if validation_data is None:
            return
        if isinstance(validation_data, tuple):
            self.fit_scale(*validation_data[:2])
        else:
            self.fit_scale(validation_data)

    def fit_scale(self, x: Any, y: Any = None, batch_size: int = 32) -> np.ndarray:
        """Sets the scale to the root of the mean squared error, each target counting the same.

        Example:
            >>> import tensorflow as tf
            >>> from taylorformer import Autoformer
            >>> times = tf.reshape(tf.range(6.0), [1, 6, 1])
            >>> inputs = {"x_context": times[:, :4], "y_context": tf.ones([1, 4, 1]),
            ...           "x_target": times[:, 4:]}
            >>> model = Autoformer(width=8, num_heads=2, feed_forward=8, seed=0)
            >>> model.fit_scale(inputs, tf.ones([1, 2, 1])).shape
            (1,)

        Args:
            x: a data set of `(inputs, y_target)` that ends, or `inputs`.
            y: `[B, N_T, D_y]` beside `inputs`.
            batch_size: how many sequences of `inputs` at once.

        Returns:
            `[D_y]`, in units of y; at least `min_scale` is used.

        Raises:
            ValueError: no observed target.
        """
        if not isinstance(x, tf.data.Dataset):
            if not isinstance(x, Mapping) or y is None:
                raise ValueError(
                    "`x` must be a data set of (inputs, y_target), or `inputs` with `y` beside it. "
                    f"Received: {type(x).__name__}, y={type(y).__name__}"
                )
            x = batches_once((dict(x), y), check_integer("batch_size", batch_size, 1))
        total, count = np.zeros(1), 0.0
        for inputs, y_target, *_ in x:
            batch = self._batch_with_targets(inputs, y_target)
            outputs = self.teacher_forced(batch, batch["y_target"])
            mask = batch["target_mask"].numpy()[..., np.newaxis]
            squares = np.square(np.float64(outputs["mean"]) - np.float64(batch["y_target"]))
            total = total + np.sum(np.where(mask, squares, 0.0), axis=(0, 1))
            count += float(np.sum(mask))
        if not count:
            raise ValueError(
                "the scale must be fitted to at least one observed target. Received: none"
            )
        scale = np.sqrt(total / count)
        self.residual_scale.assign(scale.astype("float32"))
        return scale

    # Files.

    def get_build_config(self) -> dict[str, Any] | None:
        """Returns D_x, D_y, N_C, N_T, and which layers and weights are frozen."""
        config = super().get_build_config()
        if config is None:
            return None
        return {**config, "num_context": self.num_context, "num_target": self.num_target}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Makes all state of a loaded model, and freezes what was frozen."""
        if config:
            x_dims, y_dims = config["x_dims"], config["y_dims"]
            num_context, num_target = config["num_context"], config["num_target"]
            self.build(
                {
                    "x_context": (None, num_context, x_dims),
                    "y_context": (None, num_context, y_dims),
                    "x_target": (None, num_target, x_dims),
                }
            )
            freeze_as(self, config)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in ("scale", "target_permutations"):
            config.pop(name)
        return {
            **config,
            "width": self.width,
            "num_heads": self.num_heads,
            "feed_forward": self.feed_forward,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "dropout": self.dropout,
            "start_length": self.start_length,
            "interpolate": self.interpolate,
        }
