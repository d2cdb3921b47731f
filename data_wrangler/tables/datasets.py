"""Named data sets for forecasting: their names, their public homes, and how they are read."""

import dataclasses
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import pandas as pd

from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2, read_table
from taylorformer.data_wrangler.tables.series import Series

_ETT = (
    "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/"
    "1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small"
)
_EXCHANGE = (
    "https://raw.githubusercontent.com/laiguokun/multivariate-time-series-data/"
    "7f402f185cc2435b5e66aed13a3b560ed142e023/exchange_rate/exchange_rate.txt.gz"
)
# Dates such as 1990/1/31 0:00, in some copies of these files.
_SLASHES = "%Y/%m/%d %H:%M"


@dataclasses.dataclass(frozen=True)
class DatasetFile:
    """One of the files that hold a data set.

    Attributes:
        name: the name of the file; it may end in `.gz`, too.
        sha256: the checksum of its content, unpacked. None: any content is accepted.
        origin: its public address, packed or not, or None.
        header: the names of the columns, if the file has no header line; else None.
        first_day: the first of consecutive days, if the file has no column of time; else None.
    """

    name: str
    sha256: str | None = None
    origin: str | None = None
    header: tuple[str, ...] | None = None
    first_day: str | None = None


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set with a name.

    Attributes:
        name: its name for `load_dataset`.
        files: the files that hold it, each of them whole; the first one that exists is read.
        target_column: the default column to forecast.
        time_column: the column of time.
    """

    name: str
    files: tuple[DatasetFile, ...]
    target_column: str = "OT"
    time_column: str = "date"


def _ett(name: str, sha256: str) -> Dataset:
    return Dataset(name, (DatasetFile(f"{name}.csv", sha256, f"{_ETT}/{name}.csv"),))


DATASETS = {
    dataset.name: dataset
    for dataset in (
        _ett("ETTm1", "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e"),
        _ett("ETTm2", "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd"),
        _ett("ETTh1", "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066"),
        _ett("ETTh2", "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b"),
        Dataset(
            "exchange",
            (
                DatasetFile(
                    "exchange_rate.csv",
                    "48b4d9d3d508f5104162e85b9a6042e3557fde11aa9f2944eba8c0d0efc89842",
                ),
                # The order of the original: the last column but one is OT of the other file.
                DatasetFile(
                    "exchange_rate.txt",
                    "0127465b51e3cd3c360f8eb2be30cfd294689a2a55903eb8245aafc396626c7f",
                    _EXCHANGE,
                    ("0", "1", "2", "3", "4", "5", "OT", "6"),
                    "1990-01-01",
                ),
            ),
        ),
        Dataset(
            "electricity",
            (
                DatasetFile("electricity.csv"),
                DatasetFile("electricity_clients_0_and_OT.csv"),
            ),
        ),
        Dataset("mauna_loa_co2", (DatasetFile("mauna_loa_co2.csv"),), target_column="co2"),
    )
}


def dataset_names() -> tuple[str, ...]:
    """Returns the names that `load_dataset` accepts."""
    return tuple(DATASETS)


def load_dataset(
    name: str,
    data_dir: str | PathLike[str] | None = None,
    target_column: str | None = None,
    download: bool = False,
) -> Series:
    """Loads a data set by its name.

    - `ETTm1`, `ETTm2` (15 minutes), `ETTh1`, `ETTh2` (hours): oil temperature `OT` and loads
      `HUFL` to `LULL` of two transformers, Zhou et al., 2021.
    - `exchange`: daily exchange rates of eight countries, columns `0` to `6` and `OT` (New
      Zealand), Lai et al., 2018. The original file, without header and dates, holds the same
      series as the copy with them.
    - `electricity`: the hourly load of clients in Portugal, from a file of yours, whose content is
      not checked. The default column `OT` of the common copy is *not* the client of the paper: that
      is row 322 of the 370 clients of the original, `OT` is row 368.
    - `mauna_loa_co2`: part of this package; see `load_mauna_loa_co2`.

    Args:
        name: one of `dataset_names()`, in any case.
        data_dir: the folder to search for the file, packed with gzip or not, and up to two levels
            of folders in it. None: no search.
        target_column: None: the default, `OT` (`co2` for `mauna_loa_co2`).
        download: fetch the file with `keras.utils.get_file` if it is not found: into `data_dir`,
            or for None into the cache of Keras. Only for ETT and exchange.

    Returns:
        The series, of one column. Its `name` is that of the data set.

    Raises:
        FileNotFoundError: no such file was found, and `download` is not set or the data set has no
            public address.
        OSError: the file could not be fetched or read.
        ValueError: an unknown name or column, or a file whose content is not the published one. If
            it was fetched it is removed.
    """
    dataset = _find_dataset(name)
    column = dataset.target_column if target_column is None else target_column
    if dataset.name == "mauna_loa_co2":
        return _load_shipped(dataset, column)
    file_and_path = next(_find_files(dataset, data_dir), None)
    if file_and_path is None:
        if not download:
            raise _not_found(dataset, data_dir)
        file_and_path = _fetch(dataset, data_dir)
    return _read(dataset, *file_and_path, column)


def _find_dataset(name: str) -> Dataset:
    for dataset in DATASETS.values():
        if isinstance(name, str) and name.lower() == dataset.name.lower():
            return dataset
    raise ValueError(f"`name` must be one of {', '.join(DATASETS)}. Received: name={name!r}")


def _load_shipped(dataset: Dataset, column: str) -> Series:
    if column != dataset.target_column:
        raise ValueError(
            f"`target_column` must be {dataset.target_column!r} for {dataset.name}. "
            f"Received: target_column={column!r}"
        )
    return load_mauna_loa_co2()


def _find_files(
    dataset: Dataset, data_dir: str | PathLike[str] | None
) -> Iterator[tuple[DatasetFile, Path]]:
    if data_dir is None:
        return
    for file in dataset.files:
        for below in ("", "*/", "*/*/"):
            for suffix in ("", ".gz"):
                paths = sorted(Path(data_dir).glob(f"{below}{file.name}{suffix}"))
                yield from ((file, path) for path in paths if path.is_file())


def _not_found(dataset: Dataset, data_dir: str | PathLike[str] | None) -> FileNotFoundError:
    names = " or ".join(f"{file.name}[.gz]" for file in dataset.files)
    origins = [file.origin for file in dataset.files if file.origin is not None]
    fetch = f"; download=True fetches it from {origins[0]}" if origins else ""
    where = "None" if data_dir is None else f"'{data_dir}'"
    return FileNotFoundError(
        f"`data_dir` must be a folder with {names}, at most two folders deep{fetch}. "
        f"Received: data_dir={where}"
    )


def _fetch(dataset: Dataset, data_dir: str | PathLike[str] | None) -> tuple[DatasetFile, Path]:
    file = next((file for file in dataset.files if file.origin is not None), None)
    if file is None or file.origin is None:
        raise _not_found(dataset, data_dir)
    from keras.utils import get_file

    cache: dict[str, str] = {}
    if data_dir is not None:
        Path(data_dir).mkdir(parents=True, exist_ok=True)
        cache = {"cache_dir": str(data_dir), "cache_subdir": ""}
    name = file.origin.rsplit("/", 1)[-1]
    try:
        path = Path(get_file(name, origin=file.origin, **cache))
    except Exception as error:  # Keras raises no narrower class.
        raise OSError(f"{file.origin} could not be fetched: {error}") from error
    try:
        _check_content(file, path)
    except ValueError:
        path.unlink()
        raise
    return file, path


def _check_content(file: DatasetFile, path: Path) -> None:
    if file.sha256 is None:
        return
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"`{path}` must be packed with gzip. Received: {error}") from error
    received = hashlib.sha256(content).hexdigest()
    if received != file.sha256:
        raise ValueError(
            f"`{path}` must hold {file.name} as published, with the sha256 {file.sha256}. "
            f"Received: {received}"
        )


def _read(dataset: Dataset, file: DatasetFile, path: Path, column: str) -> Series:
    _check_content(file, path)
    time = dataset.time_column
    if file.header is None:
        frame = read_table(path)
    else:
        frame = pd.read_csv(path, header=None, names=list(file.header))
    if file.first_day is not None:
        # As text, so that all files of a data set are read in one way.
        days = pd.date_range(file.first_day, periods=len(frame), freq="D")
        frame.insert(0, time, days.strftime(_SLASHES))
    slashes = time in frame.columns and len(frame) and "/" in str(frame[time].iloc[0])
    return Series.from_frame(
        frame, time, column, date_format=_SLASHES if slashes else None, name=dataset.name
    )
