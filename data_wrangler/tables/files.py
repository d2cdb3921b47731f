"""CSV and Parquet files, packed or not: read as a table or as one series, and written."""

import importlib.resources
import importlib.util
import os
from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from taylorformer.data_wrangler.tables.csv_dialect import CsvDialect
from taylorformer.data_wrangler.tables.csv_file import read_csv
from taylorformer.data_wrangler.tables.frames import as_names
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.time_parts import split_time_column
from taylorformer.data_wrangler.whole_files import refuse_existing, replaced_whole

_PARQUET = (".parquet", ".pq")
_PARQUET_PACKAGES = ("pyarrow", "fastparquet")
# Of these Python itself can write all; more can be read.
_WRITTEN_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip")


def read_table(
    path: str | PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    text_columns: Hashable | Sequence[Hashable] = (),
    time_columns: Hashable | Sequence[Hashable] | None = None,
    missing: str | float | Sequence[str | float] = (),
    thousands: str | None = None,
    comment: str | None = None,
    quote: str = '"',
    encoding: str = "utf-8",
    skip_rows: int = 0,
    strip: bool = False,
) -> pd.DataFrame:
    r"""Reads a table from a CSV file, or from a Parquet file.

    Example:
        >>> import pathlib, tempfile
        >>> text = "# Weekly values\ndate, load\n2024-01-31,1.5\n2024-02-01,-999.990\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "table.csv")
        ...     _ = path.write_text(text)
        ...     read_table(path, comment="#", missing=-999.99)
                 date  load
        0  2024-01-31   1.5
        1  2024-02-01   NaN

    Args:
        path: the file. `.parquet` and `.pq` are Parquet, everything else is CSV with a header
            line; `.gz`, `.zip`, `.bz2`, `.xz`, `.tar` and `.zst` are unpacked. CSV may have a
            byte-order mark, any line ends, and blank lines; these are left out, and messages do
            not count them as rows. Blanks around the names of columns are left out, unless two
            would be the same.
        separator: what stands between the columns of CSV, such as `";"`: one character, or
            `"\t"` for a tab.
        decimal: the decimal mark of CSV, such as `","`: one other character.
        text_columns: columns of CSV to read as text, such as ids: `001` keeps its zeros, `NA` is a
            word, and only an empty cell is missing. Names that are not in the file are ignored.
            Not needed for Parquet, which has a type for each column.
        time_columns: columns of time, in which neither `missing` nor `thousands` counts. None:
            those that `Columns.resolve` would take by their names.
        missing: other marks of missing values in CSV, such as `"."` or -999.99, see `CsvDialect`.
        thousands: the mark between groups of digits in CSV, such as `","` or `"."`.
        comment: begins a comment in CSV, such as `"#"`: the rest of the line is left out.
        quote: stands around cells of CSV that hold a separator.
        encoding: of CSV, such as `"cp1252"` or `"utf-16"`.
        skip_rows: how many lines of CSV come before the header.
        strip: leave out blanks around the cells of CSV.

    Returns:
        The table, in the order of the file.

    Raises:
        OSError: the file cannot be read.
        ImportError: there is no package to read Parquet, or to unpack `.zst`.
        TypeError: an option of another type.
        ValueError: the file is no table, is damaged, has rows with more cells than the header, or
            another separator; an option outside its range, or two marks that are the same, see
            `CsvDialect`.
    """
    dialect = CsvDialect(
        separator, decimal, missing, thousands, comment, quote, encoding, skip_rows, strip
    )
    if str(os.fspath(path)).lower().endswith(_PARQUET):
        return _read_parquet(path)
    times = None if time_columns is None else as_names("time_columns", time_columns)
    return read_csv(path, dialect, as_names("text_columns", text_columns), times)


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
    time_column: str | Sequence[str],
    target_columns: str | Sequence[str],
    *,
    covariate_columns: str | Sequence[str] = (),
    date_format: str | None = None,
    day_first: bool = False,
    time_unit: str | None = None,
    time_zone: str | None = None,
    unsorted: str = "error",
    duplicates: str = "error",
    name: str = "",
    **csv_options: Any,
) -> Series:
    """Reads one series from a CSV file, or from a Parquet file.

    Args:
        path: the file, see `read_table`.
        time_column: see `Series.from_frame`.
        target_columns: see `Series.from_frame`.
        covariate_columns: see `Series.from_frame`.
        date_format: see `Series.from_frame`.
        day_first: see `Series.from_frame`.
        time_unit: see `Series.from_frame`.
        time_zone: see `Series.from_frame`.
        unsorted: see `Series.from_frame`.
        duplicates: see `Series.from_frame`.
        name: see `Series`.
        **csv_options: `separator`, `decimal`, `missing` and others of `read_table`.

    Returns:
        The series, `[T, D_y]`.

    Raises:
        OSError: the file cannot be read.
        ImportError: there is no package to read Parquet.
        ValueError: the file is no table, or as `Series.from_frame` says. Rows are counted from 1,
            without the header and blank lines.
    """
    time, parts = split_time_column(time_column)
    csv_options = {"time_columns": (time,), "text_columns": parts, **csv_options}
    return Series.from_frame(
        read_table(path, **csv_options),
        time_column,
        target_columns,
        covariate_columns=covariate_columns,
        date_format=date_format,
        day_first=day_first,
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
