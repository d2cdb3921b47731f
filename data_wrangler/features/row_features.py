"""The features of one target row at a time, for samplers that draw targets one by one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

# What is known of the neighbours of a point from x alone.
_OF_X = (
    "points",
    "seen",
    "has_n",
    "observed",
    "x_n",
    "dx",
    "x_nn",
    "dx_n",
    "delta_x",
    "fitted_weights",
    "dx_s",
)


def rows_first(values: tf.Tensor) -> tf.Tensor:
    """Lays `[B, N, ..]` out as `[N, B, ..]`."""
    return tf.transpose(values, [1, 0, *range(2, len(values.shape))])


class RowFeatures(keras.layers.Layer):
    """The half of `RepresentationExtractor` that makes the features of one target at a time.

    It stands on the other half, whose formulas serve all points at once and one row alike. B
    sequences have S samples each; the samples of a sequence take the axis on which its points stand
    elsewhere, `[B, S, F]`. A loop calls `before_sampling` once, and for each target `row_before_y`,
    then draws y, then calls `row_after_y`.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("before_sampling", "row_before_y", "row_after_y")

    def before_sampling(
        self, inputs: Mapping[str, tf.Tensor]
    ) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor], tf.Tensor]:
        """Makes everything that reads x and y_context only.

        Args:
            inputs: a prepared batch, targets in the order in which they will be drawn.

        Returns:
            The features (`y_fe`, `y_seen` and `taylor_terms` are right in context rows only); what
            is known of the neighbours of target rows, each `[N_T, B, ..]`; and the state of the
            context points `[N_C, B, C]`, see `row_before_y`.
        """
        num_context = tf.shape(inputs["x_context"])[1]
        shape = tf.concat([tf.shape(inputs["x_target"])[:2], [self._y_dims]], axis=0)
        features, neighbour = self._features_and_neighbourhood(
            {**inputs, "y_target": tf.zeros(shape)}, training=False
        )
        state = self._state(neighbour, features["y"])[:, :num_context]
        rows = {
            name: rows_first(neighbour[name][:, num_context:])
            for name in _OF_X
            if name in neighbour
        }
        return features, rows, rows_first(state)

    def row_before_y(
        self, rows: Mapping[str, tf.Tensor], i: tf.Tensor, state: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor, tf.Tensor]:
        """Makes what target i may know before its y is drawn.

        Args:
            rows: what is known of the neighbours of target rows, returned by `before_sampling`.
            i: the number of the target.
            state: `[N, B, S, C]`, of context and earlier targets what other points may read: y, D,
                dD, D2 and flags.

        Returns:
            What is known of its neighbours, for `row_after_y`; `y_seen` `[B, S, F_s]`;
            `taylor_terms` `[B, S, D_y]`; and `gated_terms` `[B, S, G, D_y]`.
        """
        if not rows:
            y = state[0, ..., : self._y_dims]
            return {}, y[..., :0], tf.zeros_like(y), y[:, :, tf.newaxis][:, :, :0]
        num_samples = tf.shape(state)[2]
        neighbour: dict[str, tf.Tensor] = {}
        for name, values in rows.items():
            row = values[i]
            if name != "points":
                repeats = [1, num_samples, *[1] * (len(row.shape) - 1)]
                row = tf.tile(row[:, tf.newaxis], repeats)
            neighbour[name] = row
        points = neighbour.pop("points")
        sequences = tf.range(tf.shape(points)[0])[:, tf.newaxis]
        indices = tf.stack([points, tf.broadcast_to(sequences, tf.shape(points))], axis=-1)
        of_points = tf.transpose(tf.gather_nd(state, indices), [0, 2, 1, 3])
        neighbour["y_of_points"] = of_points[..., : self._y_dims]
        of_nearest = tf.where(neighbour["has_n"], of_points[:, :, 0], 0.0)
        neighbour["y_n"] = of_nearest[..., : self._y_dims]
        self._add_of_nearest(neighbour, self._kept, of_nearest[..., self._y_dims :])
        gated = neighbour["y_n"][:, :, tf.newaxis][:, :, :0]
        if self._num_gated:
            self._add_gated(neighbour)
            gated = neighbour["gated"]
        # What needs the target's y is not known yet.
        nothing = tf.zeros_like(neighbour["y_n"])
        before: dict[str, Any] = {**neighbour, "dy": nothing, "dy_s": nothing}
        for name in self._kept:
            before[name] = tf.zeros_like(neighbour[f"{name}_n"])
            before[f"{name}_flag"] = tf.zeros_like(neighbour[f"{name}_n_flag"])
        y_seen = neighbour["y_n"][..., :0]
        if self.feature_order >= 1:
            is_context = tf.zeros_like(neighbour["has_n"])
            y_seen = tf.concat(self._features(before, is_context, False)[2], axis=-1)
        return neighbour, y_seen, self._taylor_terms(before, tf.constant(0)), gated

    def row_after_y(
        self, neighbour: Mapping[str, tf.Tensor], y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Makes what other points may know of a target once its y is drawn.

        Args:
            neighbour: what is known of its neighbours, returned by `row_before_y`.
            y: `[B, S, D_y]`.

        Returns:
            `y_fe` `[B, S, F_y]` and the state `[B, S, C]`.
        """
        if not neighbour:
            return y, y
        neighbour = dict(neighbour)
        self._add_of_itself(neighbour, y)
        if self._needs_second_derivative:
            self._add_second_of_itself(neighbour)
        y_fe = [y]
        if self.feature_order >= 1:
            y_fe += self._features(neighbour, tf.zeros_like(neighbour["has_n"]), False)[1]
        return tf.concat(y_fe, axis=-1), self._state(neighbour, y)
