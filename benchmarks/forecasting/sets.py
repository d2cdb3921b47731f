"""The series that are forecast: competition sets and single series, as windows to forecast.

A competition set lies in the shared folder, which the environment variable TAYLORFORMER_SHARED
names (default `../shared`, beside this repository): one window a series, whose context is the part
to train on and whose targets are the part to test on. A single series has rolling windows: the
last ones, one horizon apart. Single series for development come from the wheels of other packages,
see `benchmarks/peers/run.py`; those that are only reported come from the shared folder and from
this package.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.forecasting import peer_cache
from taylorformer.data_wrangler import load_dataset

COMPETITIONS = {
    "m1": "the 1,001 series of the M competition, Makridakis et al., 1982",
    "m4_weekly": "the 359 weekly series of the M4 competition, Makridakis et al., 2020",
}
SEASONS = {"yearly": None, "quarterly": 4, "monthly": 12, "weekly": 52}
"""Steps of a season by the name of a frequency."""


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """One forecast to make.

    Attributes:
        name: of the window, or of the series where there is one window a series.
        context: `[N_C]`, the values that may be read.
        truth: `[N_T]`, the values to forecast.
        stamps: of the context.
        future: stamps of the targets.
        season: steps of a season. None: there is none.
        frequency: a name in `SEASONS`, empty for single series.
        long_season: steps of a second, longer season. None: there is none.
    """

    name: str
    context: np.ndarray
    truth: np.ndarray
    stamps: pd.Index
    future: pd.Index
    season: int | None
    frequency: str = ""
    long_season: int | None = None

    @property
    def horizon(self) -> int:
        return len(self.truth)

    @property
    def seasons(self) -> tuple[int, ...]:
        """The steps of all seasons, from the shortest."""
        return tuple(one for one in (self.season, self.long_season) if one is not None)

    def bare(self) -> "Window":
        """Returns the same window with the steps 0, 1, 2, ... for stamps."""
        steps = pd.RangeIndex(len(self.context) + self.horizon)
        context = len(self.context)
        return dataclasses.replace(self, stamps=steps[:context], future=steps[context:])


@dataclasses.dataclass(frozen=True)
class Single:
    """A single series and the windows of it that are forecast.

    Attributes:
        name: of the set.
        about: what it is, and which package or folder it comes from.
        season: steps of a season. None: there is none.
        context: N_C.
        horizon: N_T.
        num_windows: the last ones, one horizon apart.
        start: the first stamp: a date, or a number.
        freq: an offset of pandas between dates. None: the step between numbers is 1.
        report_only: nothing is chosen by its scores.
        dataset: the name and the column for `load_dataset`. None: it comes from a wheel.
        long_season: steps of a second, longer season. None: there is none.
    """

    name: str
    about: str
    season: int | None
    context: int
    horizon: int
    num_windows: int
    start: str | int = 0
    freq: str | None = None
    report_only: bool = False
    dataset: tuple[str, str] | None = None
    long_season: int | None = None

    def description(self) -> dict[str, Any]:
        """Returns what scores depend on, for the record."""
        names = ["about", "season", "context", "horizon", "num_windows"]
        if self.long_season is not None:
            names.append("long_season")
        return {name: getattr(self, name) for name in names}


# Three to seven seasons of context, and a horizon of one or two of them, where there is a season.
_SINGLES = (
    # The first three as in the trials that came before this benchmark.
    Single("airpassengers", "airline passengers, pmdarima", 12, 60, 12, 2, "1949-01", "MS"),
    Single("sunspots", "sunspots of a year, statsmodels", 11, 66, 11, 5, 1700),
    Single("elnino", "sea surface temperature, statsmodels", 12, 72, 12, 8, "1950-01", "MS"),
    Single("nile", "flow of the Nile, statsmodels", None, 60, 10, 4, 1871),
    Single("elec_equip", "orders of equipment, statsmodels", 12, 72, 12, 8, "1995-01", "MS"),
    Single("gdp", "real GDP of the US, statsmodels", None, 60, 8, 8, "1959-01", "QS"),
    Single("unemployment", "of the US, statsmodels", None, 60, 8, 8, "1959-01", "QS"),
    Single("inflation", "of the US, statsmodels", None, 60, 8, 8, "1959-01", "QS"),
    Single("german_inflation", "statsmodels", 4, 48, 8, 4, "1972-04", "QS"),
    Single("danish_money", "log of real money, statsmodels", 4, 32, 8, 2, "1974-01", "QS"),
    Single("ausbeer", "Australian beer, pmdarima", 4, 60, 8, 8, "1956-01", "QS"),
    Single("austres", "Australian residents, pmdarima", 4, 40, 8, 4, "1971-01", "QS"),
    Single("heartrate", "every half second, pmdarima", None, 80, 10, 4),
    Single("lynx", "lynx trapped in Canada, pmdarima", 10, 60, 10, 4, 1821),
    Single("taylor", "half-hourly load, pmdarima", 48, 192, 48, 8, "2000-06-05", "30min"),
    Single("wineind", "Australian wine, pmdarima", 12, 72, 12, 6, "1980-01", "MS"),
    Single("woolyrnq", "Australian wool yarn, pmdarima", 4, 48, 8, 6, "1965-01", "QS"),
    Single("shampoo", "sales, sktime", 12, 24, 6, 2, "1991-01", "MS"),
    Single("us_consumption", "change in %, sktime", None, 60, 8, 8, "1970-01", "QS"),
    Single("prescriptions", "Australian counts, sktime", None, 72, 12, 8, "1991-07", "MS"),
    Single("seatbelts", "drivers killed or injured, sktime", 12, 72, 12, 8, "1969-01", "MS"),
    Single("solar", "half-hourly production, sktime", 48, 144, 48, 3, "2021-05-01", "30min"),
)
# The last two with a day and a week, over four weeks of context.
_REPORT_ONLY = (
    ("co2", "weekly, in this package", 52, 110, 52, 8, ("mauna_loa_co2", "co2"), None),
    ("etth1", "hourly oil temperature, shared folder", 24, 120, 48, 16, ("ETTh1", "OT"), None),
    ("exchange", "daily, New Zealand, shared folder", None, 96, 96, 8, ("exchange", "OT"), None),
    ("electricity", "hourly, OT, shared folder", 24, 168, 48, 8, ("electricity", "OT"), None),
    ("etth1_week", "hourly oil temperature, shared folder", 24, 672, 48, 16, ("ETTh1", "OT"), 168),
    ("electricity_week", "hourly, OT, shared folder", 24, 672, 48, 16, ("electricity", "OT"), 168),
)
SINGLES = {single.name: single for single in _SINGLES} | {
    name: Single(name, *rest, report_only=True, dataset=dataset, long_season=long_season)
    for name, *rest, dataset, long_season in _REPORT_ONLY
}
DEVELOPMENT = (*COMPETITIONS, *(one.name for one in SINGLES.values() if not one.report_only))
GROUPS = {
    "competitions": tuple(COMPETITIONS),
    "singles": tuple(name for name in DEVELOPMENT if name not in COMPETITIONS),
}
REPORT_ONLY = tuple(one.name for one in SINGLES.values() if one.report_only)


def shared_folder(*parts: str) -> Path:
    """Returns a path in the shared folder.

    Raises:
        FileNotFoundError: it is not there.
    """
    default = peer_cache.REPOSITORY.parent / "shared"
    path = Path(os.environ.get("TAYLORFORMER_SHARED", default)).joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(
            f"TAYLORFORMER_SHARED (default ../shared) must be a folder with {'/'.join(parts)}"
        )
    return path


def competition_windows(name: str) -> list[Window]:
    """Reads a competition set, in the order of its file; stamps are steps.

    Raises:
        FileNotFoundError: it is not in the shared folder.
    """
    with np.load(shared_folder("data", name, f"{name}.npz"), allow_pickle=False) as file:
        table = pd.DataFrame(dict(file))
    windows = []
    for series, rows in table.groupby("unique_id", sort=False):
        past = (rows["part"] == "train").to_numpy()
        y, steps = rows["y"].to_numpy(np.float64), pd.Index(rows["step"].to_numpy())
        frequency = str(rows["frequency"].iloc[0])
        season = SEASONS[frequency]
        windows.append(
            Window(str(series), y[past], y[~past], steps[past], steps[~past], season, frequency)
        )
    return windows


def single_windows(single: Single) -> list[Window]:
    """Returns the windows of a single series, in the order of time.

    Raises:
        FileNotFoundError: the series is neither in the shared folder nor in the cache of the peers.
        ValueError: it is too short, or has gaps in its windows.
    """
    values, stamps = history(single)
    origins = _origins(single, len(values))
    windows = []
    for number, origin in enumerate(origins):
        past = slice(origin - single.context, origin)
        ahead = slice(origin, origin + single.horizon)
        name = f"{single.name}-{number}"
        windows.append(
            Window(
                name,
                values[past],
                values[ahead],
                stamps[past],
                stamps[ahead],
                single.season,
                long_season=single.long_season,
            )
        )
    if not all(np.isfinite(window.context).all() for window in windows):
        raise ValueError(f"the windows of {single.name} must have no gaps")
    return windows


def history(single: Single) -> tuple[np.ndarray, pd.Index]:
    """Returns all values and stamps of a single series."""
    if single.dataset is None:
        values = peer_cache.series()[single.name]
        if single.freq is None:
            first = int(single.start)
            return values, pd.RangeIndex(first, first + len(values))
        return values, pd.date_range(single.start, periods=len(values), freq=single.freq)
    name, column = single.dataset
    folder = None if name == "mauna_loa_co2" else shared_folder("data")
    series = load_dataset(name, folder, target_column=column)
    return series.values[:, 0], series.stamps


def _origins(single: Single, num_rows: int) -> range:
    """Returns the first target row of each window."""
    first = num_rows - single.num_windows * single.horizon
    if first < single.context:
        raise ValueError(
            f"{single.name} must have {single.context + num_rows - first} rows. "
            f"Received: {num_rows}"
        )
    return range(first, num_rows, single.horizon)


def by_season_and_horizon(windows: list[Window]) -> Mapping[Any, list[Window]]:
    """Puts windows together that one call can forecast, by frequency, seasons and horizon."""
    groups: dict[Any, list[Window]] = {}
    for window in windows:
        groups.setdefault((window.frequency, window.seasons, window.horizon), []).append(window)
    return groups
