"""The peers of the forecasting benchmark: classical models, and small series of other wheels.

statsforecast needs an older pandas than this package, so it has a separate environment:

    python3 -m venv .venv-peers
    .venv-peers/bin/python -m pip install -r benchmarks/peers/requirements.txt

`python -m benchmarks.forecasting` then calls this script for all that is not in `.peers-cache` yet.
Both folders are ignored by git. By hand:

    .venv-peers/bin/python benchmarks/peers/run.py series SERIES.npz
    .venv-peers/bin/python benchmarks/peers/run.py forecast WINDOWS.npz FOLDER AutoETS AutoTheta

The first writes the values of the series of statsmodels, pmdarima and sktime by name, each once: of
two with the same values the first is kept. The second reads `contexts` [W, N_C], `horizon`,
`season` (1 for none) and `digest`, and writes one file a model: `quantiles` [Q, W, N_T] of the
levels (i - 1/2) / Q, which are those of the model's central intervals; NaN where the model failed;
`seconds` [W], of the fit and the forecast of one window, after one that is not counted; and
`about`, the versions and the processor.

Of several seasons MSTL has all, the others the shortest. AutoETS has no seasons of more than 24
steps, and runs without a season there. MSTL forecasts its trend by AutoETS without a season.
AutoARIMA is the stepwise search, with the approximate likelihood for seasons of 12 steps and more.
"""

import argparse
import importlib
import importlib.metadata
import json
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = tuple(range(1, 100, 2))
"""Central intervals in percent, whose ends are 100 quantiles: 0.005, 0.015, ..., 0.995."""

_LONGEST_SEASON_OF_ETS = 24
_SEASON_TO_APPROXIMATE = 12
_PACKAGES = ("statsforecast", "statsmodels", "pmdarima", "sktime", "numpy", "pandas")


def _statsmodels() -> Iterator[tuple[str, Any]]:
    def table(name: str) -> Any:
        return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data

    yield "sunspots", table("sunspots")["SUNACTIVITY"]
    yield "elnino", table("elnino").set_index("YEAR").to_numpy().ravel()
    yield "nile", table("nile")["volume"]
    yield "elec_equip", table("elec_equip").iloc[:, -1]
    macro = table("macrodata")
    yield "gdp", macro["realgdp"]
    yield "unemployment", macro["unemp"]
    yield "inflation", macro["infl"]
    yield "german_inflation", table("interest_inflation")["Dp"]
    yield "danish_money", table("danish_data")["lrm"]


def _pmdarima() -> Iterator[tuple[str, Any]]:
    datasets = importlib.import_module("pmdarima.datasets")
    names = "airpassengers ausbeer austres heartrate lynx taylor wineind woolyrnq"
    for name in names.split():
        yield name, getattr(datasets, f"load_{name}")()


def _sktime() -> Iterator[tuple[str, Any]]:
    datasets = importlib.import_module("sktime.datasets")
    yield "airline", datasets.load_airline()
    yield "sktime_lynx", datasets.load_lynx()
    yield "shampoo", datasets.load_shampoo_sales()
    yield "us_consumption", datasets.load_uschange()[0]
    yield "prescriptions", datasets.load_PBS_dataset()
    # Two that are in the wheel as files, without a reader of such a name.
    data = Path(datasets.__file__).parent / "data"
    for name, column in (("seatbelts", "KSI"), ("solar", "solar_gen")):
        table = importlib.import_module("pandas").read_csv(data / name / f"{name}.csv")
        yield name, table[column]


def all_series() -> dict[str, np.ndarray]:
    """Returns the values of all series by name, each once, without missing values at its end."""
    kept: dict[str, np.ndarray] = {}
    for read in (_statsmodels, _pmdarima, _sktime):
        for name, values in read():
            values = np.asarray(values, np.float64).ravel()
            values = values[: np.flatnonzero(np.isfinite(values))[-1] + 1]
            same = [other for other, those in kept.items() if np.array_equal(values, those)]
            if same:
                sys.stderr.write(f"{name} is left out: it is {same[0]}\n")
            else:
                kept[name] = values
    return kept


def make_model(name: str, seasons: list[int]) -> Any:
    """Makes one of the peers, for seasons from the shortest."""
    season = seasons[0]
    models = importlib.import_module("statsforecast.models")
    if name == "AutoETS":
        return models.AutoETS(season_length=season if season <= _LONGEST_SEASON_OF_ETS else 1)
    if name == "AutoTheta":
        return models.AutoTheta(season_length=season)
    if name == "AutoARIMA":
        approximate = season >= _SEASON_TO_APPROXIMATE
        return models.AutoARIMA(season_length=season, approximation=approximate)
    if name == "MSTL":
        return models.MSTL(season_length=seasons, trend_forecaster=models.AutoETS(model="ZZN"))
    raise ValueError(f"no such peer. Received: {name!r}")


def quantiles(name: str, context: np.ndarray, horizon: int, seasons: list[int]) -> np.ndarray:
    """Returns the quantiles of one forecast, [Q, N_T], from the lowest."""
    context = context[np.flatnonzero(np.isfinite(context))[0] :]
    made = make_model(name, seasons).forecast(y=context, h=horizon, level=list(LEVELS))
    low = [made[f"lo-{level}"] for level in reversed(LEVELS)]
    high = [made[f"hi-{level}"] for level in LEVELS]
    return np.stack([*low, *high])


def forecast(windows: Path, folder: Path, models: list[str]) -> None:
    """Writes the forecasts of some models for all windows of a file."""
    with np.load(windows, allow_pickle=False) as file:
        contexts, horizon = file["contexts"], int(file["horizon"])
        seasons = np.atleast_1d(file["season"]).tolist()
        digest = file["digest"]
    for name in models:
        _or_nan(name, contexts[0], horizon, seasons)
        values, seconds = [], []
        for context in contexts:
            started = time.perf_counter()
            values.append(_or_nan(name, context, horizon, seasons))
            seconds.append(time.perf_counter() - started)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            folder / f"{windows.stem}-{name}.npz",
            quantiles=np.stack(values, axis=1),
            seconds=np.array(seconds),
            digest=digest,
            about=np.array(json.dumps(_about())),
        )
        sys.stderr.write(f"{windows.stem}, {name}: {sum(seconds):.1f} s\n")


def _or_nan(name: str, context: np.ndarray, horizon: int, seasons: list[int]) -> np.ndarray:
    try:
        return quantiles(name, context, horizon, seasons)
    except Exception as error:  # Whatever a model fails with, the others are to be forecast.
        sys.stderr.write(f"{name} failed: {error!r}\n")
        return np.full((2 * len(LEVELS), horizon), np.nan)


def _about() -> dict[str, str]:
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), **versions}


def main() -> None:
    """Writes the series or the forecasts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    series = commands.add_parser("series", help="write the series of other wheels")
    series.add_argument("path", type=Path)
    request = commands.add_parser("forecast", help="forecast windows")
    request.add_argument("windows", type=Path)
    request.add_argument("folder", type=Path)
    request.add_argument("models", nargs="+")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "series":
        options.path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(options.path, **all_series())
    else:
        forecast(options.windows, options.folder, options.models)


if __name__ == "__main__":
    main()
