"""The classes of the models that presets name."""

from collections.abc import Mapping

from taylorformer.comparison_models.attentive_neural_process import AttentiveNeuralProcess
from taylorformer.comparison_models.autoformer import Autoformer
from taylorformer.comparison_models.informer import Informer
from taylorformer.comparison_models.neural_process import NeuralProcess
from taylorformer.comparison_models.transformer_neural_process import TransformerNeuralProcess
from taylorformer.model.probabilistic_model import ProbabilisticModel
from taylorformer.model.taylorformer import Taylorformer

MODELS: Mapping[str, type[ProbabilisticModel]] = {
    model.__name__: model
    for model in (
        Taylorformer,
        TransformerNeuralProcess,
        AttentiveNeuralProcess,
        NeuralProcess,
        Autoformer,
        Informer,
    )
}
"""The classes by their names."""
