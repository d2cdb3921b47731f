"""What happens once, when the first public name is used: the backend check and the registration.

`load_model` is here because it needs both, and nothing else of the package.
"""

import importlib
import os
import sys
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

# Every module with a class that is registered with Keras. Importing it registers the class.
SERIALIZABLE_MODULES = (
    "taylorformer.comparison_models.attentive_neural_process",
    "taylorformer.comparison_models.auto_correlation",
    "taylorformer.comparison_models.autoformer",
    "taylorformer.comparison_models.autoformer_decoder_layer",
    "taylorformer.comparison_models.autoformer_encoder_layer",
    "taylorformer.comparison_models.circular_convolution",
    "taylorformer.comparison_models.distilling",
    "taylorformer.comparison_models.feed_forward",
    "taylorformer.comparison_models.informer",
    "taylorformer.comparison_models.informer_decoder_layer",
    "taylorformer.comparison_models.informer_encoder_layer",
    "taylorformer.comparison_models.mlp",
    "taylorformer.comparison_models.neural_process",
    "taylorformer.comparison_models.prob_sparse_attention",
    "taylorformer.comparison_models.seasonal_layer_norm",
    "taylorformer.comparison_models.series_decomposition",
    "taylorformer.comparison_models.transformer_block",
    "taylorformer.comparison_models.transformer_neural_process",
    "taylorformer.comparison_models.value_embedding",
    "taylorformer.data_wrangler.features.masked_normalization",
    "taylorformer.data_wrangler.features.positional_encoding",
    "taylorformer.data_wrangler.features.representation_extractor",
    "taylorformer.model.layers.attention",
    "taylorformer.model.layers.attention_block",
    "taylorformer.model.layers.dropout",
    "taylorformer.model.layers.layer_normalization",
    "taylorformer.model.layers.local_taylor",
    "taylorformer.model.layers.mha_x",
    "taylorformer.model.layers.mha_x_net",
    "taylorformer.model.layers.mha_xy",
    "taylorformer.model.released_weights",
    "taylorformer.model.taylorformer",
    "taylorformer.training_and_evaluation.training.gradient_norms",
    "taylorformer.training_and_evaluation.training.muon",
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


def load_model(path: str | os.PathLike[str], **kwargs: Any) -> "keras.Model":
    """Loads a model from a `.keras` file, whichever class of this package it is of.

    (`keras.saving.load_model` does the same once any public name of the package has been used: that
    registers its classes.)

    Example:
        >>> import os, tempfile, taylorformer
        >>> model = taylorformer.NeuralProcess(width=8, latent_dim=4, seed=0)
        >>> model.build({key: (None, None, 1) for key in ("x_context", "y_context", "x_target")})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.keras")
        ...     model.save(path)
        ...     again = taylorformer.load_model(path)
        >>> type(again).__name__, again.count_params() == model.count_params()
        ('NeuralProcess', True)

    Args:
        path: a file that `model.save` wrote; its name ends in `.keras`.
        **kwargs: as `keras.saving.load_model` takes them: `custom_objects`, `compile`, `safe_mode`.

    Returns:
        The model, with its weights, its seeds and, if it was compiled, its optimizer.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no `.keras` file.
        ImportError: Keras has another backend than TensorFlow.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(
            f"`path` must be a `.keras` file. Received: {name}, which is not there"
        )
    if not name.endswith(".keras") or not zipfile.is_zipfile(name):
        raise ValueError(
            "`path` must be a `.keras` file, as `model.save` writes it (a forecaster's folder is "
            f"loaded by `Forecaster.load`). Received: {name}"
        )
    check_backend()
    register()
    import keras

    return keras.saving.load_model(name, **kwargs)
