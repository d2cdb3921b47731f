"""What happens once, when the first public name is used: the backend check and the registration."""

import importlib
import os
import sys

# Every module with a class that is registered with Keras. Importing it registers the class.
SERIALIZABLE_MODULES = (
    "taylorformer.comparison_models.attentive_neural_process",
    "taylorformer.comparison_models.mlp",
    "taylorformer.comparison_models.neural_process",
    "taylorformer.comparison_models.transformer_block",
    "taylorformer.comparison_models.transformer_neural_process",
    "taylorformer.data_wrangler.features.masked_normalization",
    "taylorformer.data_wrangler.features.positional_encoding",
    "taylorformer.data_wrangler.features.representation_extractor",
    "taylorformer.model.layers.attention",
    "taylorformer.model.layers.attention_block",
    "taylorformer.model.layers.local_taylor",
    "taylorformer.model.layers.mha_x",
    "taylorformer.model.layers.mha_x_net",
    "taylorformer.model.layers.mha_xy",
    "taylorformer.model.released_weights",
    "taylorformer.model.taylorformer",
)


def _keras_backend() -> str:
    # Keras reads the variable when it is imported; later only Keras itself knows. Where the
    # variable says enough, nothing heavy is imported to find out.
    named = os.environ.get("KERAS_BACKEND", "")
    if named and "keras" not in sys.modules:
        return named
    import keras

    return str(keras.config.backend())


def check_backend() -> None:
    """Checks that Keras runs on TensorFlow.

    Raises:
        ImportError: Where Keras has another backend.
    """
    backend = _keras_backend()
    if backend != "tensorflow":
        raise ImportError(
            "Taylorformer needs Keras on its TensorFlow backend; set KERAS_BACKEND=tensorflow "
            f"before Keras is imported. Received: backend={backend!r}"
        )


def register() -> None:
    """Registers every serializable class of the package with Keras."""
    for module in SERIALIZABLE_MODULES:
        importlib.import_module(module)
