"""CSV and Parquet files, packed or not: read as a table or as one series, and written."""

import gzip
import importlib.resources
import importlib.util
import lzma
import os
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.frames import as_names
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_whole

_PARQUET = (".parquet", ".pq")
_PARQUET_PACKAGES = ("pyarrow", "fastparquet")
# Of these Python itself can write all; more can be read.
_WRITTEN_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip")
# What unpacking raises; that of bzip2 is an OSError like any other, but without a number.
_BAD_ARCHIVES = (
    gzip.BadGzipFile,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
)
# Put before the cells of text while pandas reads them, so that none looks like a missing one.
_MARK = "="


def read_table(
    path: str | PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    text_columns: Hashable | Sequence[Hashable] = (),
) -> pd.DataFrame:
    r"""Reads a table from a CSV file in UTF-8, or from a Parquet file.

    Args:
        path: the file. `.parquet` and `.pq` are Parquet, everything else is CSV with a header
            line; `.gz`, `.zip`, `.bz2`, `.xz`, `.tar` and `.zst` are unpacked. CSV may have a
            byte-order mark, any line ends, and blank lines; these are left out, and messages do
            not count them as rows.
        separator: what stands between the columns of CSV, such as `";"`: one character, or
            `"\t"` for a tab.
        decimal: the decimal mark of CSV, such as `","`: one other character.
        text_columns: columns of CSV to read as text, such as ids: `001` keeps its zeros, `NA` is a
            word, and only an empty cell is missing. Names that are not in the file are ignored.
            Not needed for Parquet, which has a type for each column.

    Returns:
        The table, in the order of the file.

    Raises:
        OSError: the file cannot be read.
        ImportError: there is no package to read Parquet, or to unpack `.zst`.
        TypeError: `separator` or `decimal` is no text.
        ValueError: the file is no table, is damaged, or has rows with more cells than the header;
            `separator` or `decimal` is not one character, or they are the same.
    """
    separator = _check_mark("separator", "\t" if separator == r"\t" else separator)
    if separator == _check_mark("decimal", decimal):
        raise ValueError(
            "`separator` and `decimal` must not be the same. "
            f"Received: separator={separator!r} and decimal={decimal!r}"
        )
    if str(os.fspath(path)).lower().endswith(_PARQUET):
        return _read_parquet(path)
    return _read_csv(path, separator, decimal, as_names("text_columns", text_columns))


def _check_mark(name: str, mark: Any) -> str:
    if not isinstance(mark, str):
        raise TypeError(f"`{name}` must be text. Received: {name}={mark!r}")
    shown = mark == "\t" or (mark.isascii() and mark.isprintable())
    if len(mark) != 1 or not shown or mark.isdigit() or mark == '"':
        raise ValueError(
            f"`{name}` must be one character of ASCII, and no digit, quote or line end. "
            f"Received: {name}={mark!r}"
        )
    return mark


def _read_csv(
    path: str | PathLike[str], separator: str, decimal: str, text_columns: tuple[Hashable, ...]
) -> pd.DataFrame:
    # pandas takes a number for the position of a column; names in a file are always text.
    text = [name for name in text_columns if isinstance(name, str)]
    try:
        with warnings.catch_warnings():
            # pandas drops cells beyond the last column of the header, and only warns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                sep=separator,
                decimal=decimal,
                encoding="utf-8-sig",
                low_memory=False,
                index_col=False,
                converters=dict.fromkeys(text, _MARK.__add__),
            )
    except pd.errors.ParserWarning as error:
        raise ValueError(
            "`path` must be a CSV file whose rows have no more cells than the header line "
            f"(`separator` and `decimal` are for other marks). Received: {path}"
        ) from error
    except (ValueError, OSError, *_BAD_ARCHIVES) as error:
        damaged = isinstance(error, _BAD_ARCHIVES) or (type(error) is OSError and not error.errno)
        if isinstance(error, OSError) and not damaged:
            raise
        raise ValueError(
            "`path` must be a CSV file in UTF-8 with a header line. "
            f"Received: {path} ({str(error).strip()})"
        ) from error
    for name in frame.columns.intersection(text):
        cells = frame[name].str.removeprefix(_MARK)
        frame[name] = cells.where(cells != "")
    return frame


def _read_parquet(path: str | PathLike[str]) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            "`path` must be a CSV file where neither `pyarrow` nor `fastparquet` is installed to "
            f"read Parquet. Received: {path}"
        ) from error
    except OSError:
        raise
    except Exception as error:
        # The two packages raise different errors for what is no Parquet file.
        raise ValueError(f"`path` must be a Parquet file. Received: {path} ({error})") from error


def read_series(
    path: str | PathLike[str],
    time_column: str,
    target_columns: str | Sequence[str],
    *,
    covariate_columns: str | Sequence[str] = (),
    separator: str = ",",
    decimal: str = ".",
    date_format: str | None = None,
    time_unit: str | None = None,
    time_zone: str | None = None,
    unsorted: str = "error",
    duplicates: str = "error",
    name: str = "",
) -> Series:
    """Reads one series from a CSV file in UTF-8, or from a Parquet file.

    Args:
        path: the file, see `read_table`.
        time_column: see `Series.from_frame`.
        target_columns: see `Series.from_frame`.
        covariate_columns: see `Series.from_frame`.
        separator: what stands between the columns of CSV, such as `";"`.
        decimal: the decimal mark of CSV, such as `","`.
        date_format: see `Series.from_frame`.
        time_unit: see `Series.from_frame`.
        time_zone: see `Series.from_frame`.
        unsorted: see `Series.from_frame`.
        duplicates: see `Series.from_frame`.
        name: see `Series`.

    Returns:
        The series, `[T, D_y]`.

    Raises:
        OSError: the file cannot be read.
        ImportError: there is no package to read Parquet.
        ValueError: the file is no table, or as `Series.from_frame` says. Rows are counted from 1,
            without the header and blank lines.
    """
    return Series.from_frame(
        read_table(path, separator=separator, decimal=decimal),
        time_column,
        target_columns,
        covariate_columns=covariate_columns,
        date_format=date_format,
        time_unit=time_unit,
        time_zone=time_zone,
        unsorted=unsorted,
        duplicates=duplicates,
        name=name,
    )


def check_table_path(path: str | PathLike[str], name: str = "path") -> str:
    """Checks that a table can be written in the format that the ending of a file says.

    Args:
        path: of the file.
        name: of the argument, for messages.

    Returns:
        The ending, such as `.csv.gz`, as it is written in `path`.

    Raises:
        ValueError: the ending is none of a table.
        ImportError: there is no package to write Parquet.
    """
    endings = (*_WRITTEN_CSV, *_PARQUET)
    ending = next((one for one in endings if Path(path).name.lower().endswith(one)), None)
    if ending is None:
        raise ValueError(f"`{name}` must end in one of {', '.join(endings)}. Received: {path}")
    if ending in _PARQUET:
        if not any(map(importlib.util.find_spec, _PARQUET_PACKAGES)):
            raise ImportError(
                f"`{name}` must end in .csv where neither `pyarrow` nor `fastparquet` is installed "
                f"to write Parquet. Received: {path}"
            )
    return Path(path).name[-len(ending) :]


def write_table(
    frame: pd.DataFrame, path: str | PathLike[str], *, overwrite: bool = False, **csv_options: Any
) -> None:
    """Writes a table without its index to a CSV file in UTF-8, or to a Parquet file.

    The file appears when it is complete: whenever the process ends, it is the one of before or
    the new one.

    Args:
        frame: the table.
        path: of the file, whose ending says the format: .csv (also .gz, .bz2, .xz, .zip), .parquet
            or .pq. Its folder is made.
        overwrite: replace a file that is there.
        csv_options: of `pandas.DataFrame.to_csv`.

    Raises:
        FileExistsError: a file is there, and `overwrite` is not set.
        ValueError: another ending.
        ImportError: there is no package to write Parquet.
        OSError: the file cannot be written.
    """
    check_table_path(path)
    refuse_existing(path, overwrite)
    with replaced_whole(path) as unfinished:
        if unfinished.name.lower().endswith(_PARQUET):
            frame.to_parquet(unfinished, index=False)
        else:
            frame.to_csv(unfinished, index=False, encoding="utf-8", **csv_options)


def load_mauna_loa_co2() -> Series:
    """Loads weekly carbon dioxide at Mauna Loa, in ppm, 1958 to 2001, with its gaps.

    Returns:
        2284 rows of the column `co2`, 59 of them missing. The data are in the public domain;
        `data/mauna_loa_co2.txt` names the source.
    """
    folder = importlib.resources.files("taylorformer.data_wrangler")
    with importlib.resources.as_file(folder / "data" / "mauna_loa_co2.csv") as path:
        return read_series(path, "date", "co2", name="mauna_loa_co2")
