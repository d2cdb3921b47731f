"""What made a file or a score: the versions of packages, and the machine."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

_PACKAGES = ("taylorformer", "tensorflow", "keras", "tensorflow-probability", "numpy", "pandas")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that results depend on."""
    numbers = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            numbers[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            numbers[name] = "not installed as a package"
    return numbers


def processor_name() -> str:
    """Returns the model of the processor, or its kind where the system does not say the model."""
    try:
        # The one source that names the model on Linux, where `platform` knows the kind at most.
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name")
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Returns the number of cores, `cpus`, and the operating `system`."""
    return {"cpus": os.cpu_count(), "system": platform.platform()}


def devices() -> str:
    """Names what TensorFlow computes on: the processor, its number of cores, and GPUs."""
    import tensorflow as tf

    gpus = [
        tf.config.experimental.get_device_details(device).get("device_name", "GPU")
        for device in tf.config.list_physical_devices("GPU")
    ]
    return ", ".join([f"{processor_name()}, {os.cpu_count()} cores", *gpus])
