"""Which layers and weights of a model are frozen, and which its optimizer knows, for files.

Keras keeps `trainable` of the layers that stand in a configuration. Layers that a constructor makes
do not: of them a file remembers their numbers, in the order in which Keras lists them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from taylorformer.model.keras_private import set_trainable_alone, sublayers

_NUM_LAYERS, _FROZEN_LAYERS = "num_layers", "frozen_layers"
_NUM_WEIGHTS, _FROZEN_WEIGHTS = "num_weights", "frozen_weights"
_NUMBERS = "numbers"


def frozen_state(model: keras.Model) -> dict[str, Any]:
    """Returns what is frozen inside a model that has been built, as numbers that JSON can hold."""
    layers, weights = sublayers(model), model.weights
    return {
        _NUM_LAYERS: len(layers),
        _FROZEN_LAYERS: [i for i, layer in enumerate(layers) if not layer.trainable],
        _NUM_WEIGHTS: len(weights),
        _FROZEN_WEIGHTS: [i for i, weight in enumerate(weights) if not weight.trainable],
    }


def freeze_as(model: keras.Model, state: Mapping[str, Any]) -> None:
    """Freezes in a model what was frozen in another one of the same layers.

    Args:
        model: a model that has been built.
        state: returned by `frozen_state`. Files of earlier versions have none: nothing is done.

    Raises:
        ValueError: layers are frozen, and the model has another number of layers.
    """
    if _FROZEN_LAYERS not in state:
        return
    layers, weights, frozen = sublayers(model), model.weights, set(state[_FROZEN_LAYERS])
    if len(layers) != state[_NUM_LAYERS]:
        if not frozen:
            return
        raise ValueError(
            f"the model must have {state[_NUM_LAYERS]} layers, of which {len(frozen)} are frozen, "
            f"as when it was saved. Received: {type(model).__name__} with {len(layers)} layers"
        )
    if len(weights) != state[_NUM_WEIGHTS]:
        # Weights that Keras does not save as such, like those of LoRA: what is left follows the
        # layers.
        for number, layer in enumerate(layers):
            if number in frozen:
                layer.trainable = False
        return
    for number, layer in enumerate(layers):
        set_trainable_alone(layer, number not in frozen)
    frozen = set(state[_FROZEN_WEIGHTS])
    for number, weight in enumerate(weights):
        if weight.trainable != (number not in frozen):
            weight.trainable = number not in frozen


def weight_numbers(model: keras.Model, weights: Sequence[Any]) -> dict[str, Any] | None:
    """Returns the numbers of some weights of a model, for a file; None where one is not in it."""
    numbers = {id(weight): number for number, weight in enumerate(model.weights)}
    if any(id(weight) not in numbers for weight in weights):
        return None
    return {
        _NUM_WEIGHTS: len(numbers),
        _NUMBERS: [numbers[id(weight)] for weight in weights],
    }


def numbered_weights(model: keras.Model, numbers: Mapping[str, Any] | None) -> list[Any]:
    """Returns the weights of which `weight_numbers` returned the numbers.

    Where they are not known, or the model has another number of weights: the trainable ones.
    """
    weights = model.weights
    if numbers is None or numbers[_NUM_WEIGHTS] != len(weights):
        return list(model.trainable_variables)
    return [weights[number] for number in numbers[_NUMBERS]]
