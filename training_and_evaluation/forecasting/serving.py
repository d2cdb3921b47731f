"""A fitted forecaster as a SavedModel: numbers in the units of the table come in and go out."""

import os

import numpy as np
import tensorflow as tf

from taylorformer.data_wrangler.tables.array_ops import ArrayOps, tensorflow_ops
from taylorformer.data_wrangler.tables.context_scaler import ContextScaler
from taylorformer.data_wrangler.tables.covariate_scaling import CovariateScaling
from taylorformer.data_wrangler.tables.scaler import ValueScaling, WindowScaler
from taylorformer.data_wrangler.tables.seasons import NUM_PERIODS
from taylorformer.data_wrangler.tables.value_support import ValueSupport
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.serving import (
    NUM_SAMPLES,
    QUANTILE_LEVELS,
    SEED,
    Drawing,
    endpoint,
    save_endpoints,
    summarize,
)

# The time of requests for series of dates is in seconds.
_UNIT_OF_DATES = "s"


class _Requests:
    """What a request holds, and how the scaler makes a batch of it."""

    def __init__(self, scaler: WindowScaler) -> None:
        self._scaler = scaler if scaler.time_unit is None else scaler.in_unit(_UNIT_OF_DATES)
        measured = (scaler.center, scaler.spread, scaler.softness)
        self._measured = [tf.constant(part) for part in measured]
        self._ops = tensorflow_ops()
        self._num_series = len(scaler.names)

    @property
    def with_support(self) -> bool:
        """Whether the batches of the model have `y_support`."""
        return self._scaler.support is not None

    def inputs(self, with_y_target: bool = False) -> list[tf.TensorSpec]:
        """Returns the names, shapes and dtypes of what an endpoint takes."""
        y = [None, None, self._scaler.num_columns]
        specs = [
            tf.TensorSpec([None, None], tf.float64, "time_context"),
            tf.TensorSpec(y, tf.float64, "y_context"),
            tf.TensorSpec([None, None], tf.float64, "time_target"),
        ]
        specs += _covariate_specs(self._scaler.num_covariates)
        if self._num_series > 1:
            specs.append(tf.TensorSpec([None], tf.int32, "series"))
        if with_y_target:
            specs.append(tf.TensorSpec(y, tf.float64, "y_target"))
        return specs

    def batch(self, raw: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], ValueScaling]:
        """Returns the inputs of the model, with `y_target` if `raw` has it, and their scaling."""
        scaling = self._value_scaling(raw)
        origin = _time_of_last_context(raw["time_context"])
        batch = {}
        for part in ("context", "target"):
            batch[f"x_{part}"] = self._scaler.scale_x(
                raw[f"time_{part}"], origin, raw.get(f"covariates_{part}"), self._ops
            )
            if f"y_{part}" in raw:
                y = _inside(self._scaler.support, self._ops, f"y_{part}", raw[f"y_{part}"])
                observed = tf.reduce_all(tf.math.is_finite(y), axis=-1)
                batch[f"y_{part}"] = scaling.model_input(y, observed)
                batch[f"{part}_mask"] = observed
        if self.with_support:
            batch["y_support"] = scaling.parts
        return batch, scaling

    def _value_scaling(self, raw: dict[str, tf.Tensor]) -> ValueScaling:
        y = raw["y_context"]
        if self._num_series > 1:
            measured = [tf.gather(part, raw["series"]) for part in self._measured]
        else:
            shape = [tf.shape(y)[0], self._scaler.num_columns]
            measured = [tf.broadcast_to(part, shape) for part in self._measured]
        observed = tf.math.is_finite(y)
        row = tf.where(observed, tf.range(tf.shape(y)[1])[:, tf.newaxis], -1)
        # The row in front is for contexts without rows, which have no largest one.
        last = tf.reduce_max(tf.pad(row, [[0, 0], [1, 0], [0, 0]], constant_values=-1), axis=1)
        is_last = (row == last[:, tf.newaxis]) & observed
        last_value = tf.reduce_sum(tf.where(is_last, y, 0.0), axis=1)
        center, spread, softness = measured
        has_value = last >= 0
        return self._scaler.value_scaling(
            center, spread, softness, last_value, has_value, self._ops
        )


def _inside(support: ValueSupport | None, ops: ArrayOps, name: str, y: tf.Tensor) -> tf.Tensor:
    """Returns values after a check that they are in the support."""
    if support is None:
        return y
    # What is not finite is missing in a request.
    wrong = support.outside(y, ops) & tf.math.is_finite(y)
    inside = tf.debugging.Assert(
        ~tf.reduce_any(wrong),
        [
            f"`{name}` must hold values from {support.lower} to {support.upper}, whole ones "
            f"where {support.integers} is True. Received:",
            tf.boolean_mask(y, wrong),
        ],
    )
    with tf.control_dependencies([inside]):
        return tf.identity(y)


class _PretrainedRequests:
    """What a request to a pretrained model holds, and how a batch is made of it."""

    def __init__(self, support: ValueSupport | None, covariates: CovariateScaling) -> None:
        self._support = support
        self._num_covariates = covariates.num_covariates
        self._scaler = ContextScaler(support, covariates)
        self._ops = tensorflow_ops()

    @property
    def with_support(self) -> bool:
        """Whether the batches of the model have `y_support`."""
        return self._support is not None

    def inputs(self, with_y_target: bool = False) -> list[tf.TensorSpec]:
        """Returns the names, shapes and dtypes of what an endpoint takes."""
        time, y = [None, None], [None, None, 1]
        specs = [
            tf.TensorSpec(time, tf.float64, "time_context"),
            tf.TensorSpec(y, tf.float64, "y_context"),
            tf.TensorSpec(time, tf.float64, "time_target"),
            tf.TensorSpec([None, NUM_PERIODS], tf.float64, "periods"),
            *_covariate_specs(self._num_covariates),
        ]
        if with_y_target:
            specs.append(tf.TensorSpec(y, tf.float64, "y_target"))
        return specs

    def batch(self, raw: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], ValueScaling]:
        """Returns the inputs of the model, with `y_target` if `raw` has it, and their scaling."""
        y_context = _inside(self._support, self._ops, "y_context", raw["y_context"])
        missing = tf.fill(tf.shape(raw["time_target"]), tf.constant(np.nan, tf.float64))
        y_target = raw.get("y_target", missing[..., tf.newaxis])
        y_target = _inside(self._support, self._ops, "y_target", y_target)
        values = tf.concat([y_context, y_target], axis=1)
        seen = tf.math.is_finite(y_context[..., 0])
        scored = tf.ones_like(raw["time_target"], tf.bool)
        if "y_target" in raw:
            scored = tf.math.is_finite(y_target[..., 0])
        # Only differences matter, and 64 bits hold seconds of this century to a microsecond.
        time = tf.concat([raw["time_context"], raw["time_target"]], axis=1)
        time = time - raw["time_target"][:, :1]
        observed = tf.concat([seen, scored], axis=1)
        num_context = tf.shape(y_context)[1]
        covariates = None
        if self._num_covariates:
            parts = raw["covariates_context"], raw["covariates_target"]
            covariates = tf.concat(parts, axis=1)
        batch, scaling = self._scaler.batch(
            time, values, observed, num_context, raw["periods"], self._ops, covariates
        )
        if "y_target" not in raw:
            del batch["y_target"]
        return batch, scaling


def _covariate_specs(num_covariates: int) -> list[tf.TensorSpec]:
    if not num_covariates:
        return []
    return [
        tf.TensorSpec([None, None, num_covariates], tf.float64, f"covariates_{part}")
        for part in ("context", "target")
    ]


def _time_of_last_context(time: tf.Tensor) -> tf.Tensor:
    """Returns the last of times `[B, N_C]`, `[B]`, after checks that it exists and is finite."""
    not_empty = tf.debugging.assert_positive(
        tf.shape(time)[1], message="`time_context` must have at least one row"
    )
    with tf.control_dependencies([not_empty]):
        origin = time[:, -1]
    finite = tf.debugging.Assert(
        tf.reduce_all(tf.math.is_finite(origin)),
        ["the last row of `time_context` is the origin and must be finite. Received:", origin],
    )
    with tf.control_dependencies([finite]):
        return tf.identity(origin)


def export_forecaster(
    model: ProbabilisticModel, scaler: WindowScaler, path: str | os.PathLike[str]
) -> None:
    """Writes a trained model and its scaler as a SavedModel; see `Forecaster.export`."""
    _export(model, _Requests(scaler), path)


def export_pretrained(
    model: ProbabilisticModel,
    support: ValueSupport | None,
    covariates: CovariateScaling,
    path: str | os.PathLike[str],
) -> None:
    """Writes a pretrained model as a SavedModel; see `PretrainedForecaster.export`."""
    _export(model, _PretrainedRequests(support, covariates), path)


def _export(
    model: ProbabilisticModel,
    requests: _Requests | _PretrainedRequests,
    path: str | os.PathLike[str],
) -> None:
    drawing = Drawing(model, requests.with_support)

    def draw(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        num_samples, seed = inputs.pop("num_samples"), inputs.pop("seed")
        batch, scaling = requests.batch(inputs)
        return scaling.inverse(drawing.sample(batch, num_samples, seed))

    def serve(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        levels = inputs.pop("quantile_levels")
        return summarize(draw(inputs), levels, None)

    def log_prob(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        batch, scaling = requests.batch(inputs)
        density = drawing.log_prob(batch)
        observed = batch["target_mask"]
        return {"log_prob": scaling.inverse_log_prob(density, inputs["y_target"], observed)}

    drawn = [*requests.inputs(), NUM_SAMPLES, SEED]
    endpoints = {
        "serving_default": endpoint(serve, [*drawn, QUANTILE_LEVELS]),
        "sample": endpoint(lambda inputs: {"samples": draw(inputs)}, drawn),
        "log_prob": endpoint(log_prob, requests.inputs(with_y_target=True)),
    }
    save_endpoints(model, endpoints, path)
