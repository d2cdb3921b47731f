"""A Forecaster as a SavedModel, which takes raw numbers and gives forecasts in their units."""

import os
from typing import TYPE_CHECKING

import tensorflow as tf

from taylorformer.data_wrangler.tables.series import NANOSECONDS
from taylorformer.data_wrangler.tables.windows import FURTHEST
from taylorformer.model.serving import (
    NUM_SAMPLES,
    QUANTILE_LEVELS,
    SEED,
    Drawing,
    endpoint,
    save_endpoints,
    summarize,
)

if TYPE_CHECKING:
    from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster


class _Scaling:
    """What `WindowScaler` and `Windows` do, as TensorFlow operations, in 64 bits."""

    def __init__(self, forecaster: "Forecaster") -> None:
        scaler = forecaster.scaler_
        unit = scaler.time_unit
        # Seconds for dates; for other times the numbers of the table.
        self._half_span = scaler.half_span * (1.0 if unit is None else NANOSECONDS[unit] / 1e9)
        self._x_of_last_context = scaler.x_of_last_context
        self._relative = scaler.scaling == "window"
        self._covariates = (
            tf.constant(scaler.covariate_center),
            tf.constant(scaler.covariate_spread),
        )
        self._center, self._spread = tf.constant(scaler.center), tf.constant(scaler.spread)
        self.num_series = len(scaler.names)
        self.num_covariates = scaler.num_covariates
        self.num_columns = scaler.num_columns

    def inputs(self, with_y_target: bool = False) -> list[tf.TensorSpec]:
        """Names what an endpoint takes."""
        y = [None, None, self.num_columns]
        specs = [
            tf.TensorSpec([None, None], tf.float64, "time_context"),
            tf.TensorSpec(y, tf.float64, "y_context"),
            tf.TensorSpec([None, None], tf.float64, "time_target"),
        ]
        if self.num_covariates:
            known = [None, None, self.num_covariates]
            specs.append(tf.TensorSpec(known, tf.float64, "covariates_context"))
            specs.append(tf.TensorSpec(known, tf.float64, "covariates_target"))
        if self.num_series > 1:
            specs.append(tf.TensorSpec([None], tf.int32, "series"))
        if with_y_target:
            specs.append(tf.TensorSpec(y, tf.float64, "y_target"))
        return specs

    def scale(self, raw: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Gives a batch of the data contract, and reference and spread `[B, 1, D_y]`."""
        y = raw["y_context"]
        known = tf.math.is_finite(y)
        if self.num_series > 1:
            center, spread = (
                tf.gather(part, raw["series"]) for part in (self._center, self._spread)
            )
        else:
            shape = [tf.shape(y)[0], self.num_columns]
            center, spread = (tf.broadcast_to(part, shape) for part in (self._center, self._spread))
        reference = center
        if self._relative:
            # The last row with a value, of each column; where there is none the center.
            row = tf.where(known, tf.range(tf.shape(y)[1])[:, tf.newaxis], -1)
            last = tf.reduce_max(tf.pad(row, [[0, 0], [1, 0], [0, 0]], constant_values=-1), axis=1)
            is_last = (row == last[:, tf.newaxis]) & known
            value = tf.reduce_sum(tf.where(is_last, y, 0.0), axis=1)
            reference = tf.where(last >= 0, value, center)
        reference, spread = reference[:, tf.newaxis], spread[:, tf.newaxis]

        def scaled(values: tf.Tensor) -> tf.Tensor:
            limit = tf.constant(FURTHEST, tf.float64)
            return tf.cast(
                tf.clip_by_value((values - reference) / spread, -limit, limit), tf.float32
            )

        observed = tf.reduce_all(known, axis=-1)
        num_context = tf.shape(raw["time_context"])[1]
        not_empty = tf.debugging.assert_positive(
            num_context, message="`time_context` must have at least one row"
        )
        with tf.control_dependencies([not_empty]):
            origin = raw["time_context"][:, -1:]
        finite = tf.debugging.Assert(
            tf.reduce_all(tf.math.is_finite(origin)),
            ["the last row of `time_context` is the origin and must be finite. Received:", origin],
        )
        with tf.control_dependencies([finite]):
            origin = tf.identity(origin)
        batch = {
            "y_context": scaled(tf.where(known, y, 0.0)),
            "context_mask": observed,
        }
        for part in ("context", "target"):
            elapsed = raw[f"time_{part}"] - origin
            x = (elapsed / self._half_span + self._x_of_last_context)[..., tf.newaxis]
            if self.num_covariates:
                middle, size = self._covariates
                x = tf.concat([x, (raw[f"covariates_{part}"] - middle) / size], axis=-1)
            batch[f"x_{part}"] = tf.cast(x, tf.float32)
        if "y_target" in raw:
            batch["target_mask"] = tf.reduce_all(tf.math.is_finite(raw["y_target"]), axis=-1)
            y_target = tf.where(tf.math.is_finite(raw["y_target"]), raw["y_target"], 0.0)
            batch["y_target"] = scaled(y_target)
        return batch, reference, spread


def export_forecaster(forecaster: "Forecaster", path: str | os.PathLike[str]) -> None:
    """Writes a fitted Forecaster as a SavedModel; see `Forecaster.export`."""
    drawing = Drawing(forecaster.model_)
    scaling = _Scaling(forecaster)

    def draw(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        num_samples, seed = inputs.pop("num_samples"), inputs.pop("seed")
        batch, reference, spread = scaling.scale(inputs)
        samples = drawing.sample(batch, num_samples, seed)
        return tf.cast(samples, tf.float64) * spread + reference

    def serve(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        levels = inputs.pop("quantile_levels")
        return summarize(draw(inputs), levels, None)

    def log_prob(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        batch, _, spread = scaling.scale(inputs)
        count = tf.reduce_sum(tf.cast(batch["target_mask"], tf.float64), axis=1)
        log_jacobian = tf.reduce_sum(tf.math.log(spread[:, 0]), axis=-1)
        density = tf.cast(drawing.log_prob(batch), tf.float64)
        return {"log_prob": density - count * log_jacobian}

    drawn = [*scaling.inputs(), NUM_SAMPLES, SEED]
    endpoints = {
        "serving_default": endpoint(serve, [*drawn, QUANTILE_LEVELS]),
        "sample": endpoint(lambda inputs: {"samples": draw(inputs)}, drawn),
        "log_prob": endpoint(log_prob, scaling.inputs(with_y_target=True)),
    }
    save_endpoints(forecaster.model_, endpoints, path)
