"""What the peers' environment returned: series of other wheels, and forecasts of the peers.

`benchmarks/peers/run.py` runs in a separate environment, `.venv-peers`; its docstring says how to
make it. What it writes stays in `.peers-cache`; both folders are ignored by git. A forecast in
the cache is used as long as the windows are the same.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).parents[2]
CACHE = REPOSITORY / ".peers-cache"
PYTHON = REPOSITORY / ".venv-peers" / "bin" / "python"
SCRIPT = REPOSITORY / "benchmarks" / "peers" / "run.py"

MODELS = ("AutoETS", "AutoTheta", "AutoARIMA", "MSTL")

# A likelihood of a season of a year in weeks takes minutes a fit.
_LONGEST_SEASON_OF_ARIMA = 24


def can_run() -> bool:
    """Tells whether the peers' environment is there."""
    return PYTHON.exists()


def series() -> dict[str, np.ndarray]:
    """Returns the values of the series of other wheels, by name.

    Raises:
        FileNotFoundError: they are not in the cache, and the peers' environment is not there.
    """
    path = CACHE / "series.npz"
    if not path.exists():
        _run("series", path)
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def models_for(seasons: Sequence[int], models: Iterable[str] = MODELS) -> list[str]:
    """Returns those of some peers that forecast series of some seasons."""
    left_out = set()
    if not seasons:
        left_out.add("MSTL")
    elif seasons[0] > _LONGEST_SEASON_OF_ARIMA:
        left_out.add("AutoARIMA")
    return [model for model in models if model not in left_out]


def forecasts(
    name: str, contexts: np.ndarray, horizon: int, seasons: Sequence[int], models: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Returns forecasts of peers, from the cache where they are in it.

    Args:
        name: of the set.
        contexts: `[W, N_C]`, NaN before shorter ones.
        horizon: N_T.
        seasons: steps of each season, from the shortest.
        models: names in `MODELS`.

    Returns:
        For each model `quantiles` `[Q, W, N_T]`, of the levels (i - 1/2) / Q, NaN where it failed;
        `seconds` `[W]`; and `about`, the versions and the processor.

    Raises:
        FileNotFoundError: one is not in the cache, and the peers' environment is not there.
    """
    request = {
        "contexts": np.asarray(contexts, np.float64),
        "horizon": np.array(horizon),
        "season": np.array(seasons if len(seasons) > 1 else max(seasons, default=1)),
    }
    digest = hashlib.sha256(b"".join(value.tobytes() for value in request.values())).hexdigest()
    models = models_for(seasons, models)
    missing = [model for model in models if _read(name, model, digest) is None]
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.npz"
            np.savez(path, digest=np.array(digest), **request)
            _run("forecast", path, CACHE, *missing)
    read = {model: _read(name, model, digest) for model in models}
    return {model: content for model, content in read.items() if content is not None}


def _read(name: str, model: str, digest: str) -> dict[str, Any] | None:
    path = CACHE / f"{name}-{model}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        content = {key: file[key] for key in file.files}
    if str(content.pop("digest")) != digest:
        return None
    return {**content, "about": json.loads(str(content["about"]))}


def _run(*arguments: object) -> None:
    if not can_run():
        raise FileNotFoundError(
            "the peers' environment, .venv-peers, is not there; the docstring of "
            f"{SCRIPT.relative_to(REPOSITORY)} says how to make it"
        )
    subprocess.run([str(PYTHON), str(SCRIPT), *map(str, arguments)], check=True, stdout=sys.stderr)
