"""Models as SavedModels, which serve without this package, without Keras, and without Python.

Every endpoint takes and returns dictionaries, with the batch and all lengths free. A SavedModel
signature cannot leave an input out, so each endpoint is there twice: without masks, and with them
as `<name>_masked`. All share one graph for drawing and one for the density.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import tensorflow as tf
import tensorflow_probability as tfp

from taylorformer.data_wrangler.batch import SHARED_KEYS, tile_points
from taylorformer.data_wrangler.whole_files import replaced_whole
from taylorformer.model.sampling.base import Sampler, batch_spec, support_spec

Endpoint = Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]

NUM_SAMPLES = tf.TensorSpec([], tf.int32, "num_samples")
SEED = tf.TensorSpec([], tf.int32, "seed")
QUANTILE_LEVELS = tf.TensorSpec([None], tf.float32, "quantile_levels")


class ServedModel(Protocol):
    """What is read of a model to serve it; a `ProbabilisticModel` that has been built has it."""

    x_dims: int
    y_dims: int
    weights: list[Any]

    def prepare(self, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Prepares a batch of the data contract."""

    def make_sampler(self) -> Sampler:
        """Makes what draws joint samples."""

    def log_prob(self, inputs: Mapping[str, Any], y_target: Any) -> tf.Tensor:
        """Returns the joint log density of the targets, `[B]`."""


class Drawing:
    """Graphs that endpoints share: drawing, and the density.

    Args:
        model: a model that has been built.
        with_support: batches have `y_support`.
    """

    def __init__(self, model: ServedModel, with_support: bool = False) -> None:
        self._model = model
        spec = batch_spec(model.x_dims, model.y_dims)
        if with_support:
            spec["y_support"] = support_spec(model.y_dims)
        self._sampler = model.make_sampler()
        self._draw = tf.function(
            self._draw_samples, input_signature=[spec, NUM_SAMPLES, SEED], autograph=False
        )
        spec = {**spec, "y_target": tf.TensorSpec([None, None, model.y_dims])}
        self._density = tf.function(self._log_prob, input_signature=[spec], autograph=False)

    def sample(
        self, inputs: Mapping[str, tf.Tensor], num_samples: tf.Tensor, seed: tf.Tensor
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`, every sequence with key 0; masks may be left out."""
        return self._draw(self._checked(inputs), num_samples, seed)

    def log_prob(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Returns log p(Y_T given X_T, X_C, Y_C), `[B]`, for inputs with `y_target`."""
        return self._density(self._checked(inputs))

    def _checked(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Prepares a batch whose B, N_C and N_T fit: a graph would stretch 1 in silence.

        x and masks may have 1 instead of B; each sequence gets its own copy.
        """
        checks = []
        batch_size = tf.shape(inputs["y_context"])[0]
        for name, value in inputs.items():
            if name == "y_support":
                continue
            length = "x_context" if "context" in name else "x_target"
            sizes = tf.shape(value)[:2]
            if name in SHARED_KEYS:
                # 1 stands for all sequences.
                sizes = tf.where([sizes[0] == 1, False], [batch_size, 0], sizes)
            checks.append(
                tf.debugging.assert_equal(
                    sizes,
                    tf.stack([batch_size, tf.shape(inputs[length])[1]]),
                    message=f"`{name}` must have the batch of `y_context` and the length of "
                    f"`{length}`",
                )
            )
        # Where shapes are static there is nothing left to check in the graph.
        with tf.control_dependencies([check for check in checks if check is not None]):
            batch = {name: tf.identity(value) for name, value in inputs.items()}
        return tile_points(self._model.prepare(batch))

    def _draw_samples(
        self, batch: dict[str, tf.Tensor], num_samples: tf.Tensor, seed: tf.Tensor
    ) -> tf.Tensor:
        check = tf.debugging.assert_positive(
            num_samples, message="`num_samples` must be at least 1"
        )
        with tf.control_dependencies([check]):
            num_samples = tf.cast(num_samples, tf.int64)
        keys = tf.zeros(tf.shape(batch["y_context"])[:1], tf.int64)
        return self._sampler.draw_all(batch, num_samples, tf.cast(seed, tf.int64), keys)

    def _log_prob(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        return self._model.log_prob(
            {name: value for name, value in batch.items() if name != "y_target"}, batch["y_target"]
        )


def summarize(
    samples: tf.Tensor, quantile_levels: tf.Tensor, target_mask: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Reads mean, standard deviation and quantiles off samples.

    Args:
        samples: `[S, B, N_T, D_y]`.
        quantile_levels: `[Q]`, from 0 to 1.
        target_mask: `[B, N_T]` bool, or None: all take part.

    Returns:
        `mean` and `stddev` `[B, N_T, D_y]`, and `quantiles` `[B, N_T, D_y, Q]`, with linear
        interpolation. At masked targets 0, 1 and 0.
    """
    check = tf.debugging.Assert(
        tf.reduce_all((quantile_levels >= 0) & (quantile_levels <= 1)),
        ["`quantile_levels` must be from 0 to 1. Received:", quantile_levels],
    )
    with tf.control_dependencies([check]):
        levels = 100 * tf.cast(quantile_levels, samples.dtype)
    quantiles = tfp.stats.percentile(samples, levels, axis=0, interpolation="linear")
    stddev = tf.math.reduce_std(samples, axis=0)
    if target_mask is not None:
        stddev = tf.where(target_mask[..., tf.newaxis], stddev, tf.ones_like(stddev))
    return {
        "mean": tf.reduce_mean(samples, axis=0),
        "stddev": stddev,
        "quantiles": tf.transpose(quantiles, [1, 2, 3, 0]),
    }


def endpoint(function: Endpoint, inputs: Iterable[tf.TensorSpec]) -> tf.types.experimental.Callable:
    """Makes a function of named inputs out of one of a dictionary."""
    specs = list(inputs)
    names = [spec.name for spec in specs]

    def call(*values: tf.Tensor) -> dict[str, tf.Tensor]:
        return function(dict(zip(names, values, strict=True)))

    return tf.function(call, input_signature=specs, autograph=False)


def save_endpoints(
    model: ServedModel,
    endpoints: Mapping[str, tf.types.experimental.Callable],
    path: str | os.PathLike[str],
) -> None:
    """Writes a SavedModel with the weights of a model and some endpoints, whole or not at all.

    The optimizer and the states of random seeds are left out. A folder that is there is replaced.
    """
    module = tf.Module()
    module.model_weights = [weight.value for weight in model.weights]
    with replaced_whole(path) as unfinished:
        tf.saved_model.save(module, os.fspath(unfinished), signatures=dict(endpoints))


def export_model(model: ServedModel, path: str | os.PathLike[str]) -> None:
    """Writes a model as a SavedModel; see `ProbabilisticModel.export`."""
    drawing = Drawing(model)
    x_dims, y_dims = model.x_dims, model.y_dims
    points = [
        tf.TensorSpec([None, None, x_dims], tf.float32, "x_context"),
        tf.TensorSpec([None, None, y_dims], tf.float32, "y_context"),
        tf.TensorSpec([None, None, x_dims], tf.float32, "x_target"),
    ]
    masks = [
        tf.TensorSpec([None, None], tf.bool, "context_mask"),
        tf.TensorSpec([None, None], tf.bool, "target_mask"),
    ]

    def draw(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        num_samples, seed = inputs.pop("num_samples"), inputs.pop("seed")
        return drawing.sample(inputs, num_samples, seed)

    def serve(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        levels = inputs.pop("quantile_levels")
        return summarize(draw(dict(inputs)), levels, inputs.get("target_mask"))

    endpoints = {}
    for ending, batch in (("", points), ("_masked", [*points, *masks])):
        drawn = [*batch, NUM_SAMPLES, SEED]
        endpoints[f"serving_default{ending}"] = endpoint(serve, [*drawn, QUANTILE_LEVELS])
        endpoints[f"sample{ending}"] = endpoint(lambda inputs: {"samples": draw(inputs)}, drawn)
        endpoints[f"log_prob{ending}"] = endpoint(
            lambda inputs: {"log_prob": drawing.log_prob(inputs)},
            [*batch, tf.TensorSpec([None, None, y_dims], tf.float32, "y_target")],
        )
    save_endpoints(model, endpoints, path)
