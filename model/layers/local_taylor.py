"""LocalTaylor: adds Taylor terms to the output of a layer (paper, section "LocalTaylor")."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.batch import tile_sequences
from taylorformer.data_wrangler.checks import check_choice
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor


def feature_shapes(
    extractor: RepresentationExtractor, input_shape: Mapping[str, Any]
) -> dict[str, tuple[int | None, ...]]:
    """Returns the static shapes of the features that an extractor makes."""
    specs = {
        key: keras.KerasTensor((None, None, input_shape[key][-1]), dtype="float32")
        for key in ("x_context", "y_context", "x_target")
    }
    specs["y_target"] = keras.KerasTensor((None, None, input_shape["y_context"][-1]))
    features = extractor.compute_output_spec(specs)
    return {key: tuple(feature.shape) for key, feature in features.items()}


def gated_sum(terms: tf.Tensor, gates: tf.Tensor | None, first_gates: Sequence[float]) -> tf.Tensor:
    """Sums terms, each times its gate.

    Args:
        terms: `[B, R, G, D_y]`.
        gates: `[B, R, G]`, before the sigmoid. None: all gates are 1.
        first_gates: what is added to them, see `RepresentationExtractor.first_gates`.

    Returns:
        `[B, R, D_y]`, float32.
    """
    if gates is not None:
        gates = tf.cast(gates, tf.float32) + tf.constant(first_gates, tf.float32)
        terms *= tf.sigmoid(gates)[..., tf.newaxis]
    return tf.reduce_sum(terms, axis=2)


@keras.saving.register_keras_serializable("taylorformer")
class LocalTaylor(keras.layers.Layer):
    """`mean = A + the explicit Taylor terms up to order p about n(i)`.

    A is the mean that the wrapped layer makes of the features. p = 0 adds `Y^n`; p = 1 also
    `D^n dX`; p = 2 also `1/2 D2^n dX^2`; None adds nothing. Where the extractor has gated terms,
    each is added times its gate, a number in (0, 1) that the wrapped layer learns for each target.
    The sum is float32 under every dtype policy.

    Example:
        Around a layer that always returns 0, the mean is the y of the nearest seen point:

        >>> import keras
        >>> import tensorflow as tf
        >>> class Zero(keras.layers.Layer):
        ...     def call(self, features):
        ...         return {"mean": tf.zeros_like(features["taylor_terms"])}
        >>> layer = LocalTaylor(Zero(), taylor_order=0)
        >>> x, y = tf.constant([[[0.0], [1.0]]]), tf.constant([[[5.0], [7.0]]])
        >>> x_target = tf.constant([[[0.1], [0.8], [3.0]]])
        >>> outputs = layer({"x_context": x, "y_context": y, "x_target": x_target})
        >>> outputs["mean"].numpy().ravel().tolist()
        [5.0, 7.0, 7.0]

    Args:
        network: a layer that takes the dictionary of features of the extractor and returns a
            dictionary with `mean` `[B, N_T, D_y]` (and anything else, which is handed on), for
            gated terms also `gates` `[B, N_T, G]` before a sigmoid; without, gates are 1. Every
            feature has B rows, unless the layer has an attribute `shares_points` that is True: then
            `x_fe`, `context_mask` and `target_seen` have 1 row for points that all share.
        representation_extractor: makes the features and the explicit terms. None: a
            `RepresentationExtractor` of the order wanted, with its other defaults.
        taylor_order: p.

    Raises:
        ValueError: p is none of None, 0, 1, 2, or not the extractor's.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call",)

    def __init__(
        self,
        network: keras.layers.Layer,
        representation_extractor: RepresentationExtractor | None = None,
        taylor_order: int | None = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        taylor_order = check_choice("taylor_order", taylor_order, (None, 0, 1, 2))
        if representation_extractor is None:
            representation_extractor = RepresentationExtractor(
                taylor_order=taylor_order, dtype=self.dtype_policy
            )
        if representation_extractor.taylor_order != taylor_order:
            raise ValueError(
                "`representation_extractor` must have the same `taylor_order`. Received: "
                f"{representation_extractor.taylor_order} there, taylor_order={taylor_order}"
            )
        self.network = network
        self.representation_extractor = representation_extractor
        self.taylor_order = taylor_order

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Builds the extractor and the wrapped layer from the shapes of a batch."""
        if not self.representation_extractor.built:
            self.representation_extractor.build(input_shape)
        if not self.network.built:
            self.network.build(feature_shapes(self.representation_extractor, input_shape))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, Any]:
        """Runs the extractor and the wrapped layer on a batch of the data contract.

        Returns:
            The outputs of the wrapped layer, with the explicit terms added to `mean`.
        """
        features = self.representation_extractor(inputs, training=training)
        if not getattr(self.network, "shares_points", False):
            for name in ("x_fe", "context_mask", "target_seen"):
                features[name] = tile_sequences(features[name], tf.shape(features["y"])[0])
        outputs = dict(self.network(features, training=training))
        outputs["mean"] = tf.cast(outputs["mean"], tf.float32)
        if self.taylor_order is not None:
            outputs["mean"] += features["taylor_terms"]
        gates, gated = outputs.pop("gates", None), features.get("gated_terms")
        if gated is not None and gated.shape[2]:
            first_gates = self.representation_extractor.first_gates
            outputs["mean"] += gated_sum(gated, gates, first_gates)
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "network": keras.saving.serialize_keras_object(self.network),
            "representation_extractor": keras.saving.serialize_keras_object(
                self.representation_extractor
            ),
            "taylor_order": self.taylor_order,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LocalTaylor":
        """Makes the layer from its configuration."""
        config = dict(config)
        for key in ("network", "representation_extractor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        return cls(**config)
