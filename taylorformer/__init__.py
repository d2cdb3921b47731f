"""Taylorformer: joint predictive distributions of random processes, for Keras 3 and TensorFlow.

The public names are listed in the stub beside this file and are loaded when they are first used,
so `import taylorformer` does not import TensorFlow. The first of them that is used also registers
every layer and model of the package with Keras, so that `.keras` files load without
`custom_objects`.

Raises:
    ImportError: Where the package is not installed, and, at the first use of a public name, where
        Keras has another backend than TensorFlow.
"""

import importlib.metadata
import importlib.util
import os
import pkgutil
import sys


def _is_complete(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "model", "__init__.py"))


# In the checkout this folder is found before an installed copy, but holds no sub-packages: they lie
# beside it. An editable install maps them. After a plain install they are in the installed copy,
# which then goes first, so that its parts fit together.
if importlib.util.find_spec(f"{__name__}.model") is None:
    __path__ = sorted(pkgutil.extend_path(__path__, __name__), key=_is_complete, reverse=True)
    if importlib.util.find_spec(f"{__name__}.model") is None:
        # The name makes `python -m taylorformer` show the sentence alone, without a traceback.
        raise ImportError(
            f"Taylorformer is not installed for {sys.executable or 'this Python'}; "
            "run `python -m pip install -e .` in its checkout.",
            name=__name__,
        )

import lazy_loader  # noqa: E402  (a bare checkout should say the above, not that this is missing)

_SUB_PACKAGES = ("model", "data_wrangler", "training_and_evaluation", "comparison_models")
_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.metadata.version(__name__)
    if name in __all__ and name not in _SUB_PACKAGES:
        from taylorformer import _registry

        _registry.check_backend()
        _registry.register()
    return _load(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
