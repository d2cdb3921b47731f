"""Muon, which changes matrices by orthogonal steps; only newer versions of Keras have it."""

import re
from collections.abc import Sequence
from typing import Any

import keras

from taylorformer.training_and_evaluation.training.gradient_norms import MeasuresNorms

_LEAST_SIDE = 8
_KerasMuon: Any = getattr(keras.optimizers, "Muon", keras.optimizers.Optimizer)


@keras.saving.register_keras_serializable("taylorformer")
class Muon(_KerasMuon):
    """Keras' Muon, which leaves matrices with a short side to Adam."""

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the state of the optimizer."""
        if not self.built:
            thin = [one.path for one in variables if min(one.shape, default=0) < _LEAST_SIDE]
            self.exclude_layers = [f"^{re.escape(path)}$" for path in thin]
        super().build(variables)


@keras.saving.register_keras_serializable("taylorformer")
class NormMuon(MeasuresNorms, Muon):
    """Muon that adds up the global norms of the gradients, before they are clipped."""


def make_muon(
    learning_rate: Any, weight_decay: float, beta_2: float, measures_norms: bool, **arguments: Any
) -> Muon:
    """Makes a Muon for the models of this package.

    A step changes a matrix by the nearest orthogonal one to its momentum (Jordan et al., "Muon: an
    optimizer for hidden layers in neural networks", 2024), as large as a step of Adam (Liu et al.,
    "Muon is scalable for LLM training", 2025). Its best learning rates may still be larger than
    Adam's: four and eight times on Gaussian processes, see `docs/experiments.md`. Vectors, and
    matrices with a side below 8, which read or write single numbers, are changed by Adam. No layer
    of this package looks up rows by number, so, other than in Keras, "embedding" in a name means
    nothing.

    Example:
        >>> type(make_muon(1e-3, 0.0, 0.999, measures_norms=True)).__name__
        'NormMuon'

    Args:
        learning_rate: the peak, or a schedule.
        weight_decay: of all weights.
        beta_2: of Adam.
        measures_norms: add up the norms of the gradients, see `GradientNorms`.
        arguments: more of those of every Keras optimizer.

    Raises:
        RuntimeError: this version of Keras has no Muon.
    """
    if not hasattr(keras.optimizers, "Muon"):
        raise RuntimeError(
            "the optimizer muon needs a version of Keras that has `keras.optimizers.Muon`. "
            f"Received: Keras {keras.__version__}"
        )
    kind = NormMuon if measures_norms else Muon
    return kind(
        learning_rate,
        adam_beta_2=beta_2,
        adam_weight_decay=weight_decay,
        weight_decay=weight_decay,
        exclude_embeddings=False,
        **arguments,
    )
