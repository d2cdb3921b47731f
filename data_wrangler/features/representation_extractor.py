"""RepresentationExtractor: the features W of the paper (section "LocalTaylor")."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch, tile_sequences
from taylorformer.data_wrangler.checks import (
    check_choice,
    check_integer,
    check_number,
    check_optional_integer,
    plain_number,
)
from taylorformer.data_wrangler.features.derivatives import estimate_derivative, ratio
from taylorformer.data_wrangler.features.fitted_terms import (
    LARGEST_ORDER,
    compress,
    fitted_terms,
    fitted_weights,
)
from taylorformer.data_wrangler.features.masked_normalization import MaskedBatchNormalization
from taylorformer.data_wrangler.features.neighbours import (
    canonical_order,
    nearest_seen_points,
    shuffled_order,
    split_where_ties_differ,
)
from taylorformer.data_wrangler.features.positional_encoding import PositionalEncoding
from taylorformer.data_wrangler.features.row_features import RowFeatures

ANCHORS = (("nearest",), ("nearest", "season"))
# sigmoid(0) is 0.5, sigmoid(4) is 0.98.
_FIRST_SEASON, _FIRST_FITTED = 0.0, 4.0
# How far apart in time a step of 1 on the unit circle of phases is.
_PHASE_WEIGHT = 10.0


def _checked_anchors(anchors: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(anchors, (list, tuple)) or tuple(anchors) not in ANCHORS:
        raise ValueError(
            '`anchors` must be ("nearest",) or ("nearest", "season"). '
            f"Received: anchors={anchors!r}"
        )
    return tuple(str(anchor) for anchor in anchors)


def _checked_columns(columns: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(columns, (list, tuple)) or len(columns) != 2:
        raise ValueError(
            "`season_dims` must be two columns of x, of cosine and sine. "
            f"Received: season_dims={columns!r}"
        )
    return tuple(check_integer("season_dims", column, 0) for column in columns)


def _flatten_derivative(derivative: tf.Tensor) -> tf.Tensor:
    """Lays D `[B, N, D_y, M]` out as `[B, N, D_y M]`."""
    shape = tf.shape(derivative)
    size = derivative.shape[-2] * derivative.shape[-1]
    return tf.reshape(derivative, [shape[0], shape[1], size])


@keras.saving.register_keras_serializable("taylorformer")
class RepresentationExtractor(RowFeatures):
    """Makes the features of every point from the points that it may see.

    For point i the seen points are the observed ones among the other context points if i is a
    context point, and among all context points and the earlier targets if i is a target. From the
    nearest one, n(i), come `X^n`, `Y^n`, `dX = X - X^n`, `dY = Y - Y^n`; from the K nearest ones
    the derivative D; and `D^n` is the derivative already estimated at n(i). The features are
    (paper, equations for W, Q and K)

    - `X^fe = [PE(X), X^n, dX]`, which reads x only,
    - `Y^fe = [Y, dY, D, flag]`, which reads the y of the point itself,
    - `Y^seen = [Y^n, D^n, flag]`, which reads y of seen points only.

    Ties are broken at random in training, as in the paper, and by a fixed rule otherwise (see
    `canonical_order`), so that the order of the context never matters.

    Example:
        >>> import tensorflow as tf
        >>> x = tf.constant([[[0.0], [1.0], [2.0], [0.6], [2.5]]])
        >>> batch = {"x_context": x[:, :3], "y_context": x[:, :3] ** 2, "x_target": x[:, 3:]}
        >>> features = RepresentationExtractor(encoding_dim=4, feature_order=1)(batch)
        >>> features["x_fe"].shape, features["y_fe"].shape, features["y_seen"].shape
        (TensorShape([1, 5, 6]), TensorShape([1, 5, 4]), TensorShape([1, 5, 3]))
        >>> features["taylor_terms"].numpy().ravel().tolist()  # Y^n of the two targets
        [1.0, 4.0]

    Args:
        encoding_dim: E, features of the positional encoding of one input dimension, even.
        shortest: delta_t of the positional encoding, in units of x.
        longest: t_max of the positional encoding, in units of x.
        feature_order: q. 0: x and y only; 1: the above; 2 (with M = 1 only): second differences
            too.
        taylor_order: p, the largest order of the explicit Taylor terms to make (see `LocalTaylor`),
            or None for no such term.
        num_neighbours: K >= M, the neighbours of one derivative. None: M.
        neighbour_dims: M, how many leading dimensions of x define distance and derivative; the
            others are plain features. None: all D_x.
        fitted_order: r, to have Taylor terms of orders 1 to r about n(i) whose derivatives are
            fitted together to the r next seen points (see `fitted_weights`), and for q >= 1 their
            signs and sizes among `Y^seen`. It needs p = 0 and M = 1, and is not in the paper.
            None: no such terms.
        anchors: "nearest" alone, or "nearest" and "season": a second seen point s(i), the nearest
            one at the same phase of a season. The difference `Y^s - Y^n` is a term, and for q >= 1
            `X - X^s` is among `X^fe`, `Y - Y^s` among `Y^fe` and `Y^s - Y^n` among `Y^seen`. It
            needs p = 0 and M = 1, and is not in the paper.
        season_dims: which two columns of x hold cosine and sine of the phase of the season; read
            with the anchor "season" alone. Of two points whose phases differ by c on the unit
            circle, the one with the other phase is as far as one that is 10 c away in time.
        max_derivative: derivatives larger than this, in units of y over x, get the flag 0.
        seed: for the random ties in training.

    Raises:
        TypeError, ValueError: an argument outside its range, or one that does not fit D_x
            (when the layer is built).
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = (
        "call",
        "_add_gated",
        "_add_of_itself",
        "_add_of_nearest",
        "_add_second_of_itself",
        "_features",
        "_features_and_neighbourhood",
        "_neighbourhood",
        "_normalized",
        "_packed",
        "_points_of_season",
        "_state",
        "_taylor_terms",
    )

    def __init__(
        self,
        encoding_dim: int = 32,
        shortest: float = 0.1,
        longest: float = 1.0,
        feature_order: int = 1,
        taylor_order: int | None = 0,
        num_neighbours: int | None = None,
        neighbour_dims: int | None = None,
        fitted_order: int | None = None,
        anchors: Sequence[str] = ("nearest",),
        season_dims: Sequence[int] = (1, 2),
        max_derivative: float = 200.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.encoding_dim = plain_number(encoding_dim)
        self.shortest = plain_number(shortest)
        self.longest = plain_number(longest)
        self.feature_order = check_choice("feature_order", feature_order, (0, 1, 2))
        self.taylor_order = check_choice("taylor_order", taylor_order, (None, 0, 1, 2))
        self.num_neighbours = check_optional_integer("num_neighbours", num_neighbours, 1)
        self.neighbour_dims = check_optional_integer("neighbour_dims", neighbour_dims, 1)
        self.fitted_order = check_optional_integer("fitted_order", fitted_order, 1, LARGEST_ORDER)
        self.anchors = _checked_anchors(anchors)
        self.season_dims = _checked_columns(season_dims)
        self._has_season = "season" in self.anchors
        if (self.fitted_order or self._has_season) and self.taylor_order != 0:
            raise ValueError(
                '`taylor_order` must be 0 with `fitted_order` or the anchor "season", whose terms '
                f"are instead of those of higher order. Received: taylor_order={taylor_order}, "
                f"fitted_order={fitted_order}, anchors={anchors}"
            )
        self.max_derivative = check_number("max_derivative", max_derivative, above=0)
        self.seed = check_optional_integer("seed", seed, 0)
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        self.positional_encoding = PositionalEncoding(
            self.encoding_dim,
            self.shortest,
            self.longest,
            dtype=self.dtype_policy,
            name="positional_encoding",
        )
        order = max(self.feature_order, self.taylor_order or 0)
        self._needs_derivative = order >= 1
        self._needs_second_derivative = order == 2
        self._num_fitted = self.fitted_order or 0
        self._num_gated = self._num_fitted + self._has_season
        # What is kept of a point beside its y, for those whose neighbour it is.
        self._kept = ("d",) * (order >= 1) + ("dd", "d2") * (order == 2)
        if self.feature_order >= 1:
            self.derivative_normalization = MaskedBatchNormalization(
                name="derivative_normalization"
            )
        if self.feature_order == 2:
            self.difference_normalization = MaskedBatchNormalization(
                name="difference_normalization"
            )
            self.second_derivative_normalization = MaskedBatchNormalization(
                name="second_derivative_normalization"
            )

    @property
    def first_gates(self) -> list[float]:
        """What is added to the gates of the terms before the sigmoid.

        So a layer whose gates begin at 0 chooses at first the middle between both anchors, and
        nearly all of the fitted terms.
        """
        return [_FIRST_SEASON] * self._has_season + [_FIRST_FITTED] * self._num_fitted

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Fixes M and K from the input shapes and makes the normalisers.

        Raises:
            ValueError: `neighbour_dims` or a column of `season_dims` above D_x, K below M, or
                second order, fitted terms or the anchor "season" with M above 1.
        """
        x_dims = input_shape["x_context"][-1]
        y_dims = input_shape["y_context"][-1]
        dims = x_dims if self.neighbour_dims is None else self.neighbour_dims
        if dims > x_dims:
            raise ValueError(
                "`neighbour_dims` must be at most D_x. "
                f"Received: neighbour_dims={dims}, D_x = {x_dims}"
            )
        num_neighbours = dims if self.num_neighbours is None else self.num_neighbours
        if num_neighbours < dims:
            raise ValueError(
                "`num_neighbours` must be at least `neighbour_dims` (D_x where it is None). "
                f"Received: num_neighbours={num_neighbours}, dimensions {dims}"
            )
        if self._needs_second_derivative and dims != 1:
            raise ValueError(
                "`feature_order` = 2 and `taylor_order` = 2 need one dimension that defines "
                "neighbours (D_x = 1 or `neighbour_dims` = 1). "
                f"Received: feature_order={self.feature_order}, "
                f"taylor_order={self.taylor_order}, dimensions {dims}"
            )
        if self._num_gated and dims != 1:
            raise ValueError(
                '`fitted_order` and the anchor "season" need one dimension that defines neighbours '
                f"(D_x = 1 or `neighbour_dims` = 1). Received: fitted_order={self.fitted_order}, "
                f"anchors={self.anchors}, dimensions {dims}"
            )
        if self._has_season and max(self.season_dims) >= x_dims:
            raise ValueError(
                "`season_dims` must be columns of x, counted from 0. "
                f"Received: season_dims={self.season_dims}, D_x = {x_dims}"
            )
        self._dims = dims
        self._y_dims = y_dims
        self._num_neighbours = num_neighbours
        self.positional_encoding.build((None, None, x_dims))
        if self.feature_order >= 1:
            self.derivative_normalization.build((None, None, y_dims * dims))
        if self.feature_order == 2:
            self.difference_normalization.build((None, None, y_dims))
            self.second_derivative_normalization.build((None, None, y_dims))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, Any]:
        """Makes the features.

        Args:
            inputs: a batch of the data contract (see `taylorformer.data_wrangler.batch`). Without
                `y_target` no target is seen by any other.
            training: random ties and batch statistics.

        Returns:
            A dictionary of float32 tensors, context rows before target rows:

            - `x_fe` `[B, N, F_x]`, `y_fe` `[B, N, F_y]`, `y_seen` `[B, N, F_s]`;
            - `y` `[B, N, D_y]`, 0 where it is not known;
            - `context_mask` `[B, N_C]` and `target_seen` `[B, N_T]`, bool: which points are seen;
            - `taylor_terms` `[B, N_T, D_y]`: the explicit Taylor terms of the targets up to order
              p about n(i), from derivatives before normalisation. 0 for p = None;
            - `gated_terms` `[B, N_T, G, D_y]`: `Y^s - Y^n` of the anchor "season", then those of
              orders 1 to r whose derivatives are fitted; G = 0 without either.

            `x_fe`, `context_mask` and `target_seen` have 1 instead of B where all sequences
            share their points.
        """
        return self._features_and_neighbourhood(inputs, training)[0]

    def _features_and_neighbourhood(
        self, inputs: Mapping[str, tf.Tensor], training: bool
    ) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        """Returns the features, and what is known of neighbours (nothing for q = 0, p = None)."""
        batch = prepare_batch(inputs)
        num_context = tf.shape(batch["x_context"])[1]
        target_seen = batch["target_mask"]
        if "y_target" not in batch:
            y_context = batch["y_context"]
            lengths = [tf.shape(y_context)[0], tf.shape(batch["x_target"])[1]]
            batch["y_target"] = tf.zeros([*lengths, y_context.shape[-1]])
            target_seen = tf.zeros_like(target_seen)
        x = tf.concat([batch["x_context"], batch["x_target"]], axis=1)
        y = tf.concat([batch["y_context"], batch["y_target"]], axis=1)
        observed = tf.concat([batch["context_mask"], target_seen], axis=1)

        features = {
            "y": y,
            "context_mask": batch["context_mask"],
            "target_seen": target_seen,
        }
        x_fe, y_fe = [self.positional_encoding(x)], [y]
        y_seen: list[tf.Tensor] = []
        terms = tf.zeros_like(batch["y_target"])
        gated = tf.zeros_like(terms)[:, :, tf.newaxis][:, :, :0]
        neighbour: dict[str, tf.Tensor] = {}
        if self.feature_order >= 1 or self.taylor_order is not None:
            neighbour = self._neighbourhood(batch, x, y, observed, target_seen, training)
            terms = self._taylor_terms(neighbour, num_context)
            if self._num_gated:
                gated = neighbour["gated"][:, num_context:]
            if self.feature_order >= 1:
                is_context = tf.range(tf.shape(x)[1])[tf.newaxis, :, tf.newaxis] < num_context
                for added, features_of in zip(
                    (x_fe, y_fe, y_seen),
                    self._features(neighbour, is_context, training),
                    strict=True,
                ):
                    added.extend(features_of)
        features["x_fe"] = tf.concat(x_fe, axis=-1)
        features["y_fe"] = tf.concat(y_fe, axis=-1)
        features["y_seen"] = tf.concat(y_seen, axis=-1) if y_seen else y[..., :0]
        features["taylor_terms"] = terms
        features["gated_terms"] = gated
        return features, neighbour

    def _orders(
        self, batch: Mapping[str, tf.Tensor], training: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the tie rule as two orders, of the context and of all points."""
        x_context = batch["x_context"][..., : self._dims]
        x_target = batch["x_target"][..., : self._dims]
        if training:
            return shuffled_order(x_context, x_target, self.seed_generator.next())
        return canonical_order(batch["x_context"], batch["y_context"], batch["x_target"])

    def _neighbourhood(
        self,
        batch: Mapping[str, tf.Tensor],
        x: tf.Tensor,
        y: tf.Tensor,
        observed: tf.Tensor,
        target_seen: tf.Tensor,
        training: bool,
    ) -> dict[str, tf.Tensor]:
        """Finds neighbours and derivatives of all points, before any normalisation.

        What reads x alone has as many rows as x: B, or 1 for points that all sequences share.
        """
        num_neighbours = self._num_neighbours if self._needs_derivative else 1
        num_neighbours = max(num_neighbours, self._num_fitted + 1)
        rows = split_where_ties_differ({**batch, "target_seen": target_seen})
        orders = self._orders(rows, training)
        points, seen = nearest_seen_points(
            rows["x_context"][..., : self._dims],
            rows["x_target"][..., : self._dims],
            rows["context_mask"],
            rows["target_seen"],
            orders,
            num_neighbours,
        )
        if self._has_season:
            of_season = self._points_of_season(rows, orders)
            points, seen = (
                tf.concat(parts, axis=-1) for parts in zip((points, seen), of_season, strict=True)
            )
        points_of_y = tile_sequences(points, tf.shape(y)[0])
        # Points of equal x are told apart by y alone: what reads x is the same for all sequences.
        points, seen = points[: tf.shape(x)[0]], seen[: tf.shape(x)[0]]
        has_nearest = seen[..., :1]

        def of_nearest(values: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
            return tf.where(has_nearest, tf.gather(values, points[..., 0], batch_dims=1), 0.0)

        neighbour = {"points": points_of_y, "seen": seen, "has_n": has_nearest}
        neighbour["observed"] = observed
        neighbour["x_n"], neighbour["y_n"] = of_nearest(x, points), of_nearest(y, points_of_y)
        neighbour["dx"] = tf.where(has_nearest, x - neighbour["x_n"], 0.0)
        neighbour["x_nn"], neighbour["dx_n"] = (
            of_nearest(neighbour["x_n"], points),
            of_nearest(neighbour["dx"], points),
        )
        if self._needs_derivative or self._num_gated:
            x_of_points = tf.gather(x[..., : self._dims], points, batch_dims=1)
            neighbour["y_of_points"] = tf.gather(y, points_of_y, batch_dims=1)
        if self._needs_derivative:
            delta_x = x[:, :, tf.newaxis, : self._dims] - x_of_points
            neighbour["delta_x"] = delta_x[:, :, : self._num_neighbours]
        if self._num_fitted:
            neighbour["fitted_weights"] = fitted_weights(
                neighbour["dx"][..., :1],
                x_of_points[:, :, 1 : self._num_fitted + 1, 0],
                neighbour["x_n"][..., :1],
                seen[..., : self._num_fitted + 1],
            )
        if self._has_season:
            neighbour["dx_s"] = tf.where(seen[..., -1:], x[..., :1] - x_of_points[:, :, -1], 0.0)
        if self._num_gated:
            self._add_gated(neighbour)
        self._add_of_itself(neighbour, y)
        if self._needs_derivative:
            packed = self._packed(neighbour, ("d",))
            self._add_of_nearest(neighbour, ("d",), of_nearest(packed, points_of_y))
        if self._needs_second_derivative:
            self._add_second_of_itself(neighbour)
            packed = self._packed(neighbour, ("dd", "d2"))
            self._add_of_nearest(neighbour, ("dd", "d2"), of_nearest(packed, points_of_y))
        return neighbour

    def _add_of_itself(self, neighbour: dict[str, tf.Tensor], y: tf.Tensor) -> None:
        """Adds dY, D and its flag: what needs the y `[B, N, D_y]` of a point itself."""
        neighbour["dy"] = tf.where(neighbour["has_n"], y - neighbour["y_n"], 0.0)
        if self._has_season:
            neighbour["dy_s"] = neighbour["dy"] - neighbour["gated"][:, :, 0]
        if self._needs_derivative:
            y_of_points, seen = neighbour["y_of_points"], neighbour["seen"]
            if self._num_gated:
                # Gated terms read points beyond those of the derivative.
                count = self._num_neighbours
                y_of_points, seen = y_of_points[:, :, :count], seen[..., :count]
            delta_y = y[:, :, tf.newaxis] - y_of_points
            neighbour["d"], flag = self._estimate_derivative(neighbour["delta_x"], delta_y, seen)
            neighbour["d_flag"] = flag & neighbour["observed"][..., tf.newaxis]

    def _points_of_season(
        self, rows: Mapping[str, tf.Tensor], orders: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds s(i) of each point, `[B, N, 1]`, and whether there is one."""
        unrolled = {
            name: tf.concat(
                [rows[name][..., :1]]
                + [_PHASE_WEIGHT * rows[name][..., c : c + 1] for c in self.season_dims],
                axis=-1,
            )
            for name in ("x_context", "x_target")
        }
        return nearest_seen_points(
            unrolled["x_context"],
            unrolled["x_target"],
            rows["context_mask"],
            rows["target_seen"],
            orders,
            1,
        )

    def _add_gated(self, neighbour: dict[str, tf.Tensor]) -> None:
        """Adds the terms that get a gate, `[B, N, G, D_y]`, from y of seen points."""
        parts = []
        if self._has_season:
            difference = neighbour["y_of_points"][:, :, -1:] - neighbour["y_n"][:, :, tf.newaxis]
            parts.append(tf.where(neighbour["seen"][..., -1:, tf.newaxis], difference, 0.0))
        if self._num_fitted:
            parts.append(
                fitted_terms(
                    neighbour["fitted_weights"],
                    neighbour["y_of_points"][:, :, 1 : self._num_fitted + 1],
                    neighbour["y_n"],
                )
            )
        neighbour["gated"] = tf.concat(parts, axis=2)

    def _add_second_of_itself(self, neighbour: dict[str, tf.Tensor]) -> None:
        """Adds dD and D2 with their flags, from D and D^n."""
        flag = neighbour["d_flag"] & neighbour["d_n_flag"]
        difference = tf.where(flag, (neighbour["d"] - neighbour["d_n"])[..., 0], 0.0)
        neighbour["dd"], neighbour["dd_flag"] = difference, flag
        neighbour["d2"], neighbour["d2_flag"] = ratio(
            difference, neighbour["dx"][..., :1], flag, self.max_derivative
        )

    def _state(self, neighbour: Mapping[str, tf.Tensor], y: tf.Tensor) -> tf.Tensor:
        """Lays out what others may want to know of each point, `[B, N, C]`: y, D, dD, D2, flags."""
        return tf.concat([y, self._packed(neighbour, self._kept)], axis=-1) if self._kept else y

    @staticmethod
    def _packed(neighbour: Mapping[str, tf.Tensor], names: tuple[str, ...]) -> tf.Tensor:
        """Puts some of D, dD, D2 behind one another, each with its flag: `[B, N, C]`."""
        parts = []
        for name in names:
            values = _flatten_derivative(neighbour[name]) if name == "d" else neighbour[name]
            parts += [values, tf.cast(neighbour[f"{name}_flag"], tf.float32)]
        return tf.concat(parts, axis=-1)

    def _add_of_nearest(
        self, neighbour: dict[str, tf.Tensor], names: tuple[str, ...], packed: tf.Tensor
    ) -> None:
        """Adds D^n, dD^n, D2^n and flags, from `_packed` of the nearest points."""
        shape = tf.shape(packed)
        start = 0
        for name in names:
            size = self._y_dims * (self._dims if name == "d" else 1)
            values, flag = packed[..., start : start + size], packed[..., start + size, tf.newaxis]
            if name == "d":
                values = tf.reshape(values, [shape[0], shape[1], self._y_dims, self._dims])
            neighbour[f"{name}_n"], neighbour[f"{name}_n_flag"] = values, flag > 0
            start += size + 1

    def _estimate_derivative(
        self, delta_x: tf.Tensor, delta_y: tf.Tensor, seen: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Estimates D `[B, N, D_y, M]` and its flag `[B, N, 1]`; subclasses may override it."""
        return estimate_derivative(delta_x, delta_y, seen, self.max_derivative)

    def _taylor_terms(
        self, neighbour: Mapping[str, tf.Tensor], num_context: tf.Tensor
    ) -> tf.Tensor:
        """Sums the explicit terms of the targets up to order p about n(i)."""
        if self.taylor_order is None:
            return tf.zeros_like(neighbour["y_n"][:, num_context:])
        terms = neighbour["y_n"][:, num_context:]
        dx = neighbour["dx"][:, num_context:, : self._dims]
        if self.taylor_order >= 1:
            derivative = tf.where(neighbour["d_n_flag"][..., tf.newaxis], neighbour["d_n"], 0.0)
            terms += tf.reduce_sum(derivative[:, num_context:] * dx[:, :, tf.newaxis], axis=-1)
        if self.taylor_order >= 2:
            second = tf.where(neighbour["d2_n_flag"], neighbour["d2_n"], 0.0)
            terms += 0.5 * second[:, num_context:] * tf.square(dx)
        return terms

    def _features(
        self, neighbour: Mapping[str, tf.Tensor], is_context: tf.Tensor, training: bool
    ) -> tuple[list[tf.Tensor], list[tf.Tensor], list[tf.Tensor]]:
        """Returns what q >= 1 adds to X^fe, Y^fe and Y^seen."""
        of_itself, of_neighbour = self._normalized(
            self.derivative_normalization,
            (_flatten_derivative(neighbour["d"]), neighbour["d_flag"]),
            (_flatten_derivative(neighbour["d_n"]), neighbour["d_n_flag"]),
            is_context,
            training,
        )
        x_fe = [neighbour["x_n"], neighbour["dx"]]
        y_fe = [neighbour["dy"], *of_itself]
        y_seen = [neighbour["y_n"], *of_neighbour]
        if self._has_season:
            x_fe.append(neighbour["dx_s"])
            y_fe.append(neighbour["dy_s"])
            y_seen.append(neighbour["gated"][:, :, 0])
        if self._num_fitted:
            fitted = neighbour["gated"][:, :, self._num_gated - self._num_fitted :]
            y_seen += tf.unstack(compress(fitted), self._num_fitted, axis=2)
        if self.feature_order == 2:
            x_fe += [neighbour["x_nn"], neighbour["dx_n"]]
            for name, normalization in (
                ("dd", self.difference_normalization),
                ("d2", self.second_derivative_normalization),
            ):
                of_itself, of_neighbour = self._normalized(
                    normalization,
                    (neighbour[name], neighbour[f"{name}_flag"]),
                    (neighbour[f"{name}_n"], neighbour[f"{name}_n_flag"]),
                    is_context,
                    training,
                )
                y_fe += of_itself
                y_seen += of_neighbour
        return x_fe, y_fe, y_seen

    def _normalized(
        self,
        normalization: MaskedBatchNormalization,
        of_itself: tuple[tf.Tensor, tf.Tensor],
        of_neighbour: tuple[tf.Tensor, tf.Tensor],
        is_context: tf.Tensor,
        training: bool,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Normalises a derivative and the neighbour's by the statistics of context points."""
        statistics = (of_itself[1] & is_context)[..., 0]
        values = tf.concat([of_itself[0], of_neighbour[0]], axis=1)
        flags = tf.concat([of_itself[1], of_neighbour[1]], axis=1)
        mask = tf.concat([statistics, tf.zeros_like(statistics)], axis=1)
        values = tf.where(flags, values, 0.0)
        normalized = normalization(values, mask, training=training)
        normalized = tf.where(flags, normalized, 0.0)
        values_of_itself, neighbour_values = tf.split(normalized, 2, axis=1)
        flag_of_itself, neighbour_flag = tf.split(tf.cast(flags, tf.float32), 2, axis=1)
        return [values_of_itself, flag_of_itself], [neighbour_values, neighbour_flag]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "encoding_dim": self.encoding_dim,
            "shortest": self.shortest,
            "longest": self.longest,
            "feature_order": self.feature_order,
            "taylor_order": self.taylor_order,
            "num_neighbours": self.num_neighbours,
            "neighbour_dims": self.neighbour_dims,
            "fitted_order": self.fitted_order,
            "anchors": list(self.anchors),
            "season_dims": list(self.season_dims),
            "max_derivative": self.max_derivative,
            "seed": self.seed,
        }
