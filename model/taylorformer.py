"""The Taylorformer (Nivron, Parthipan and Wischik, 2023)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from taylorformer.data_wrangler.checks import plain_number
from taylorformer.data_wrangler.features.masked_normalization import MaskedBatchNormalization
from taylorformer.data_wrangler.features.representation_extractor import RepresentationExtractor
from taylorformer.data_wrangler.seeds import child_seed
from taylorformer.model.keras_private import sublayers
from taylorformer.model.layers.local_taylor import LocalTaylor
from taylorformer.model.layers.mha_x_net import TOWERS, MHAXNet
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.sampling.base import Sampler
from taylorformer.model.sampling.cached import CachedSampler, can_be_drawn_by_row
from taylorformer.model.sampling.taylorformer_loop import TaylorformerLoop

_EXTRACTOR_DEFAULTS = {
    "encoding_dim": 32,
    "shortest": 0.1,
    "longest": 1.0,
    "feature_order": 1,
    "num_neighbours": None,
    "neighbour_dims": None,
    "fitted_order": None,
    "anchors": ("nearest",),
    "season_dims": (1, 2),
    "max_derivative": 200.0,
}


def _plain(value: Any) -> Any:
    """Returns an argument as it compares: lists as tuples."""
    return tuple(value) if isinstance(value, list) else value


_REACH = 50.0
"""How often `longest`, the unit of the slowest wave of the positional encoding, goes into |x|.

That wave has then turned eight times, and the quickest one ten times as often: far points look
alike, and distances are far from those of x in -1 to 1. A forecast of a horizon twenty times as
long as the window it reads stays below it.
"""


@keras.saving.register_keras_serializable("taylorformer")
class Taylorformer(ProbabilisticModel):
    """An autoregressive model of random processes: LocalTaylor around MHA-X-Net.

    `y_i = LocalTaylor(MHA-X-Net, ..; p, q) + scale_i z_i`, z_i standard normal (paper, equation
    for `Y_T^i`), for context and targets at any x. D_x and D_y are read from the input shapes.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1.0, 1.0, 12).reshape(1, 12, 1)
        >>> y = np.sin(3 * x)
        >>> inputs = {"x_context": x[:, :8], "y_context": y[:, :8], "x_target": x[:, 8:]}
        >>> model = Taylorformer(num_heads=2, head_dim=4, width=8, num_layers=1, seed=0)
        >>> model.log_prob(inputs, y[:, 8:]).shape
        TensorShape([1])

    Args:
        num_heads: H, attention heads of each tower.
        head_dim: width of one head.
        width: width of the towers and of the head.
        num_layers: L, layers of each tower.
        dropout: rate of the dropout in the feed-forward parts, in [0, 1).
        encoding_dim: E, features of the positional encoding of one input dimension.
        shortest: delta_t of the positional encoding, in units of x.
        longest: t_max of the positional encoding, in units of x.
        taylor_order: p, the order of the explicit Taylor terms: None, 0, 1 or 2.
        feature_order: q, the order of the Taylor features: 0, 1 or 2.
        num_neighbours: K, neighbours of one derivative. None: M.
        neighbour_dims: M, leading dimensions of x that define distance and derivative. None: D_x.
        fitted_order: r, the largest order of Taylor terms whose derivatives are fitted together,
            each with a learned gate (see `RepresentationExtractor`): for smooth functions of one
            dimension with little noise. It needs p = 0. None: no such terms.
        anchors: "nearest" alone, or "nearest" and "season": a learned gate then chooses between the
            last y and that of the last season (see `RepresentationExtractor`).
        season_dims: the columns of x with cosine and sine of the phase of that season.
        max_derivative: derivatives larger than this are flagged and not used.
        towers: which attention towers to use, of "x" (MHA-X) and "xy" (MHA-XY).
        target_permutations: 0 keeps the given order of targets in training (forecasting); m >= 1
            takes m random orders for each sequence (neural-process tasks).
        scale: "exp" or "bounded"; see `ProbabilisticModel`.
        min_scale: the smallest scale, in units of y.
        predict_samples: S, free-running samples behind `predict`.
        seed: for the first weights and everything that is drawn in training and in `predict`.
            None: at random, and 0 in `predict`.
        representation_extractor: a configured instance of `RepresentationExtractor` or of a
            subclass. Its settings count, and those above that it shares must be left at their
            defaults or be the same.

    Raises:
        TypeError, ValueError: an argument outside its range, or settings that contradict.
    """

    ROW_PARTS: ClassVar[tuple[str, ...]] = ("call",)
    shares_points = True

    def __init__(
        self,
        *,
        num_heads: int = 6,
        head_dim: int = 11,
        width: int = 32,
        num_layers: int = 4,
        dropout: float = 0.05,
        encoding_dim: int = 32,
        shortest: float = 0.1,
        longest: float = 1.0,
        taylor_order: int | None = 0,
        feature_order: int = 1,
        num_neighbours: int | None = None,
        neighbour_dims: int | None = None,
        fitted_order: int | None = None,
        anchors: Sequence[str] = ("nearest",),
        season_dims: Sequence[int] = (1, 2),
        max_derivative: float = 200.0,
        towers: Sequence[str] = TOWERS,
        target_permutations: int = 0,
        scale: str = "exp",
        min_scale: float = 1e-3,
        predict_samples: int = 100,
        seed: int | None = None,
        representation_extractor: RepresentationExtractor | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            scale=scale,
            min_scale=min_scale,
            target_permutations=target_permutations,
            predict_samples=predict_samples,
            seed=seed,
            **kwargs,
        )
        self.num_heads = plain_number(num_heads)
        self.head_dim = plain_number(head_dim)
        self.width = plain_number(width)
        self.num_layers = plain_number(num_layers)
        self.dropout = plain_number(dropout)
        self.encoding_dim = plain_number(encoding_dim)
        self.shortest = plain_number(shortest)
        self.longest = plain_number(longest)
        self.taylor_order = plain_number(taylor_order)
        self.feature_order = plain_number(feature_order)
        self.num_neighbours = plain_number(num_neighbours)
        self.neighbour_dims = plain_number(neighbour_dims)
        self.fitted_order = plain_number(fitted_order)
        self.anchors = anchors
        self.season_dims = season_dims
        self.max_derivative = plain_number(max_derivative)
        self.towers = towers
        self.representation_extractor = representation_extractor
        settings = {name: getattr(self, name) for name in _EXTRACTOR_DEFAULTS}
        if representation_extractor is None:
            extractor = RepresentationExtractor(
                taylor_order=self.taylor_order,
                seed=child_seed(self.seed, 0),
                dtype=self.dtype_policy,
                name="representation_extractor",
                **settings,
            )
        else:
            extractor = representation_extractor
            self._check_extractor(extractor, settings)
        network = MHAXNet(
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            width=self.width,
            num_layers=self.num_layers,
            dropout=self.dropout,
            towers=towers,
            seed=child_seed(self.seed, 1),
            dtype=self.dtype_policy,
            name="mha_x_net",
        )
        self.local_taylor = LocalTaylor(
            network, extractor, self.taylor_order, dtype=self.dtype_policy, name="local_taylor"
        )

    @staticmethod
    def _check_extractor(extractor: Any, settings: Mapping[str, Any]) -> None:
        if not isinstance(extractor, RepresentationExtractor):
            raise TypeError(
                "`representation_extractor` must be a RepresentationExtractor or None. "
                f"Received: {type(extractor).__name__}"
            )
        for name, value in settings.items():
            if _plain(value) not in (_EXTRACTOR_DEFAULTS[name], _plain(getattr(extractor, name))):
                raise ValueError(
                    f"`{name}` must be set on `representation_extractor` where one is given. "
                    f"Received: {name}={value!r}, and {getattr(extractor, name)!r} there"
                )

    def make_sampler(self, xla: bool = False) -> Sampler:
        """Makes the sampler that keeps keys and values, if that draws this model as it is.

        Args:
            xla: for a graph that XLA compiles.
        """
        if isinstance(self.local_taylor.network, MHAXNet) and can_be_drawn_by_row(self):
            return CachedSampler(self, TaylorformerLoop, xla)
        return super().make_sampler(xla)

    @property
    def distance_dims(self) -> int | None:
        """How many leading dimensions of x define a distance; None: all."""
        return self.local_taylor.representation_extractor.neighbour_dims

    @property
    def largest_x(self) -> float | None:
        """The largest absolute x for which the positional encoding tells points apart well."""
        encoder = self.local_taylor.representation_extractor
        return _REACH * encoder.longest

    def build(self, input_shape: Mapping[str, Any]) -> None:
        """Makes all weights from the shapes of a batch."""
        self._remember_sizes(input_shape)
        self.local_taylor.build(input_shape)
        if "xy" not in self.towers:
            # Derivative features are read by MHA-XY alone; a weight that nothing reads must not
            # count as trainable.
            for layer in sublayers(self.local_taylor.representation_extractor):
                if isinstance(layer, MaskedBatchNormalization):
                    layer.trainable = False
        self.built = True

    def call(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Returns the one-step conditionals of the targets.

        Args:
            inputs: a batch of the data contract. With `y_target` each target is given the true
                values of the earlier ones (teacher forcing); without it, the context alone.
            training: random ties, batch statistics and dropout.

        Returns:
            `{"mean": [B, N_T, D_y], "scale": [B, N_T, D_y]}`, float32.
        """
        batch = self.prepare(inputs)
        outputs = self.local_taylor(batch, training=training)
        scale = self.scale_from_raw(outputs["raw_scale"])
        return self.finish_outputs(outputs["mean"], scale, batch["target_mask"])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "num_heads",
            "head_dim",
            "width",
            "num_layers",
            "dropout",
            *_EXTRACTOR_DEFAULTS,
            "taylor_order",
        ):
            config[name] = getattr(self, name)
        config["towers"] = [str(tower) for tower in self.towers]
        for name in ("anchors", "season_dims"):
            config[name] = [plain_number(value) for value in config[name]]
        extractor = self.representation_extractor
        config["representation_extractor"] = (
            None if extractor is None else keras.saving.serialize_keras_object(extractor)
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Taylorformer":
        """Makes the model from its configuration."""
        config = dict(config)
        if isinstance(config.get("representation_extractor"), dict):
            config["representation_extractor"] = keras.saving.deserialize_keras_object(
                config["representation_extractor"]
            )
        return cls(**config)
