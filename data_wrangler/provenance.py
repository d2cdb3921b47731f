"""Which versions made a file."""

import importlib.metadata
import platform

_NAMES = ("taylorformer", "tensorflow", "keras", "tensorflow-probability", "numpy", "pandas")


def versions() -> dict[str, str]:
    """Gives the versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in _NAMES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
