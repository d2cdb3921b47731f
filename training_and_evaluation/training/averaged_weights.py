"""Running averages of weights: validated and kept, while training itself moves the weights."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np


@contextlib.contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Puts the averages of the optimizer into a model, for as long as the context lasts.

    Without an optimizer that keeps averages (`use_ema`), or before its first step, nothing changes.
    Weights that are not trained, such as moving statistics, have no average.

    Example:
        >>> model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, use_bias=False)])
        >>> model.compile(keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5))
        >>> model.layers[0].kernel.assign([[8.0]]).shape
        TensorShape([1, 1])
        >>> for gradient in (1.0, 2.0):
        ...     model.optimizer.apply([keras.ops.full([1, 1], gradient)], model.trainable_variables)
        >>> with averaged_weights(model):
        ...     model.get_weights()[0].item()
        6.0
        >>> model.get_weights()[0].item()
        5.0
    """
    if not _has_averages(model):
        yield
        return
    weights = _trained_values(model)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    try:
        yield
    finally:
        _put_back(model, weights)


class AveragedValidation(keras.callbacks.Callback):
    """Lets `fit` validate the averages of the weights, and leaves the weights themselves.

    It changes nothing for an optimizer that keeps no averages.
    """

    def __init__(self) -> None:
        super().__init__()
        self._context: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        self._weights: list[np.ndarray] | None = None

    def on_test_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Puts the averages into the model."""
        self._context = averaged_weights(self.model)
        self._context.__enter__()

    def on_test_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Puts the weights back."""
        self._context.__exit__(None, None, None)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Remembers the weights."""
        self._weights = _trained_values(self.model) if _has_averages(self.model) else None

    def on_train_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Puts the weights back: at the end of `fit` Keras replaces them by their averages."""
        if self._weights is not None:
            _put_back(self.model, self._weights)


def _has_averages(model: keras.Model) -> bool:
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not getattr(optimizer, "use_ema", False):
        return False
    return int(optimizer.iterations) > 0


def _trained_values(model: keras.Model) -> list[np.ndarray]:
    return [variable.numpy() for variable in model.trainable_variables]


def _put_back(model: keras.Model, values: list[np.ndarray]) -> None:
    for variable, value in zip(model.trainable_variables, values, strict=True):
        variable.assign(value)
