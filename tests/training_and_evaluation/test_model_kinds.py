"""The kinds of models that presets name are those of the package."""

import inspect

import pytest

from taylorformer.comparison_models.direct_forecaster import DirectForecaster
from taylorformer.training_and_evaluation.model_classes import MODELS
from taylorformer.training_and_evaluation.model_kinds import MODEL_KINDS, PAPER_SIZES


def _arguments(model_class):
    names = set()
    for one in model_class.__mro__:
        if "__init__" in vars(one):
            names |= set(inspect.signature(one.__init__).parameters)
    return names


@pytest.mark.parametrize("kind", MODEL_KINDS.values(), ids=lambda kind: kind.name)
def test_kinds_describe_their_classes(kind):
    model_class = MODELS[kind.class_name]
    assert set(kind.arguments) <= _arguments(model_class)
    assert kind.reads_even_grid == issubclass(model_class, DirectForecaster)
    for sizes in PAPER_SIZES.get(kind.name, {}).values():
        assert set(sizes) <= set(kind.arguments)


def test_there_is_a_class_for_each_kind():
    assert {kind.class_name for kind in MODEL_KINDS.values()} == set(MODELS)
