"""Fixtures and the way to the shared data, which may be absent."""

import os
from pathlib import Path

import numpy as np
import pytest


def shared_path(*parts: str) -> Path:
    """Returns a path in the shared folder, or skips the test with the reason."""
    default = Path(__file__).parents[2] / "shared"
    path = Path(os.environ.get("TAYLORFORMER_SHARED", default)).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} not found in TAYLORFORMER_SHARED (default ../shared)")
    return path


@pytest.fixture(name="shared_path")
def _shared_path():
    return shared_path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def eagerly():
    """Runs graphs op by op, where tracing them takes longer than running them."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
