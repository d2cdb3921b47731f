"""Reads a CSV file in its dialect; errors name the option that would help."""

import gzip
import io
import lzma
import re
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.columns import guess_time
from taylorformer.data_wrangler.tables.csv_dialect import CsvDialect
from taylorformer.data_wrangler.tables.values import UnreadNumber

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
_SEPARATORS = (",", ";", "\t", "|")
_COMMENTS = ("#", "%", "!", "//")
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# How far two spellings of a number may be apart after pandas' quick reading, in its last digits.
_SAME_NUMBER = 4


def read_csv(
    path: str | PathLike[str],
    dialect: CsvDialect,
    text_columns: Sequence[Hashable],
    time_columns: Sequence[Hashable] | None,
) -> pd.DataFrame:
    """Reads a CSV file; see `read_table` for arguments and errors."""
    # pandas takes a number for the position of a column; names in a file are always text.
    text = {name for name in text_columns if isinstance(name, str)}
    frame = _parse(path, dialect, text)
    names = _clean_names(frame.columns)
    # Converters go by the names as they are written.
    written = {raw for raw, name in zip(frame.columns, names, strict=True) if name in text}
    if written - text:
        frame = _parse(path, dialect, written)
    _check_header(path, frame, dialect)
    for name in frame.columns.intersection(list(written)):
        cells = frame[name].str.removeprefix(_MARK)
        cells = cells.str.strip() if dialect.strip else cells
        frame[name] = cells.where(cells != "")
    if not dialect.left_to_pandas:
        frame = _finish(path, frame, names, dialect, written, time_columns)
    frame.columns = names
    return frame


def _parse(
    path: str | PathLike[str], dialect: CsvDialect, text: set[str], **more: Any
) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # pandas drops cells beyond the last column of the header, and only warns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                low_memory=False,
                index_col=False,
                converters=dict.fromkeys(text, _MARK.__add__),
                **dialect.pandas_options(),
                **more,
            )
    except pd.errors.ParserWarning as error:
        raise ValueError(
            "`path` must be a CSV file whose rows have no more cells than the header line "
            f"({_advice(path, dialect)}). Received: {path}"
        ) from error
    except (ValueError, OSError, *_BAD_ARCHIVES) as error:
        damaged = isinstance(error, _BAD_ARCHIVES) or (type(error) is OSError and not error.errno)
        if isinstance(error, OSError) and not damaged:
            raise
        advice = ""
        if isinstance(error, UnicodeError):
            advice = f" ({_encoding_advice(error)})"
        elif isinstance(error, pd.errors.ParserError):
            advice = f" ({_advice(path, dialect)})"
        raise ValueError(
            f"`path` must be a CSV file in {dialect.encoding.upper()} with a header line{advice}. "
            f"Received: {path} ({str(error).strip()})"
        ) from error


def _encoding_advice(error: UnicodeError) -> str:
    content = getattr(error, "object", b"")
    example = "cp1252"
    if isinstance(content, bytes) and content[:2] in _UTF_16_MARKS:
        example = "utf-16"
    return f"`encoding` (--encoding), such as {example}, is for files in others"


def _advice(path: str | PathLike[str], dialect: CsvDialect) -> str:
    """Says which options could help where rows do not fit the header."""
    try:
        names = list(pd.read_csv(path, nrows=0, index_col=False, **dialect.pandas_options()))
    except Exception:
        names = []
    if len(names) == 1 and _separators_in(names[0], dialect):
        return _separator_advice(names[0], dialect)
    begin = next((mark for mark in _COMMENTS if names and names[0].lstrip().startswith(mark)), "")
    if begin and dialect.comment is None:
        return (
            f"the first line begins with {begin!r}: `comment` (--comment {begin[0]!r}) leaves out "
            "such lines, `skip_rows` (--skip-rows) the first lines"
        )
    return (
        "`separator` (--separator) and `decimal` (--decimal) are for other marks, `comment` "
        "(--comment) and `skip_rows` (--skip-rows) leave out lines that are no rows"
    )


def _separators_in(name: str, dialect: CsvDialect) -> list[str]:
    return [mark for mark in _SEPARATORS if mark in name and mark != dialect.separator]


def _separator_advice(name: str, dialect: CsvDialect) -> str:
    likely = " or ".join(map(repr, _separators_in(name, dialect)))
    return f"the header is one cell, {name!r}: `separator` (--separator) may have to be {likely}"


def _check_header(path: str | PathLike[str], frame: pd.DataFrame, dialect: CsvDialect) -> None:
    names = list(frame.columns)
    if len(names) == 1 and _separators_in(names[0], dialect):
        raise ValueError(
            f"`path` must be a CSV file with {dialect.separator!r} between its columns "
            f"({_separator_advice(names[0], dialect)}). Received: {path}"
        )


def _clean_names(names: pd.Index) -> list[str]:
    """Strips the names of columns, unless two would be the same or one empty."""
    stripped = [str(name).strip() for name in names]
    return stripped if len({*stripped, ""}) > len(names) else list(names)


def _finish(
    path: str | PathLike[str],
    frame: pd.DataFrame,
    names: list[str],
    dialect: CsvDialect,
    text: set[str],
    time_columns: Sequence[Hashable] | None,
) -> pd.DataFrame:
    """Finishes what pandas cannot do for one column and not for another; reads times again."""
    time = set(guess_time(names) if time_columns is None else time_columns)
    times = [
        raw
        for raw, name in zip(frame.columns, names, strict=True)
        if name in time and raw not in text
    ]
    values = [raw for raw in frame.columns if raw not in text and raw not in times]
    if times and dialect != dialect.exact:
        exact = _parse(path, dialect.exact, set(), usecols=times)
        for name in times:
            frame[name] = exact[name]
    # A comment at the end of a line leaves the blanks before it.
    if dialect.strip or dialect.comment is not None:
        for name in times + values:
            marks = dialect.exact if name in times else dialect
            frame[name] = _stripped(frame[name], marks)
    if dialect.thousands is not None:
        _check_groups(path, frame, values, dialect)
    for name in values:
        if pd.api.types.infer_dtype(frame[name], skipna=True) == "string":
            frame[name] = _partly_numbers(frame[name], dialect)
        elif frame[name].dtype.kind in "iuf":
            frame[name] = _without_marks(frame[name], dialect.missing_numbers)
    return frame


def _stripped(column: pd.Series, dialect: CsvDialect) -> pd.Series:
    """Strips the cells of a column of text, and reads them again."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    cells = column.str.strip()
    if cells.equals(column):
        return column
    options = CsvDialect(
        decimal=dialect.decimal,
        separator=";",
        thousands=dialect.thousands,
        missing=dialect.missing,
    ).pandas_options()
    content = io.StringIO(cells.to_frame("cells").to_csv(index=False, sep=";"))
    return pd.read_csv(content, skip_blank_lines=False, low_memory=False, **options)["cells"]


def _number_pattern(dialect: CsvDialect) -> str:
    """Returns the pattern of numbers in a file; groups of digits must be whole."""
    decimal = re.escape(dialect.decimal)
    digits = r"\d+"
    if dialect.thousands is not None:
        group = re.escape(dialect.thousands)
        # Groups of two digits before the last one, as in India.
        digits = rf"(?:\d{{1,3}}(?:{group}\d{{2,3}})*{group}\d{{3}}|\d+)"
    return rf"\s*[+-]?(?:{digits}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?\s*"


def _check_groups(
    path: str | PathLike[str], frame: pd.DataFrame, values: list[str], dialect: CsvDialect
) -> None:
    """Checks groups of digits: pandas leaves the mark between them out, wherever it stands."""
    mark = dialect.thousands
    columns = [name for name in values if frame[name].dtype.kind in "iuf"]
    if not columns or mark is None:
        return
    texts = _parse(path, dialect.exact, set(), usecols=columns, dtype=str)
    for name in columns:
        cells = texts[name].dropna().str.strip()
        cells = cells[cells.str.contains(mark, regex=False)]
        marked = cells.isin(dialect.missing_texts)
        if marked.any():
            # pandas has read -999.99 with blanks beside it as a number with a group of digits.
            marked_rows = marked.reindex(frame.index, fill_value=False)
            frame[name] = frame[name].astype(np.float64).mask(marked_rows)
            cells = cells[~marked]
        wrong = cells[~cells.str.fullmatch(_number_pattern(dialect))]
        if len(wrong):
            mixed = frame[name].astype("object")
            mixed[wrong.index] = wrong.map(UnreadNumber).astype("object")
            frame[name] = mixed


def _partly_numbers(column: pd.Series, dialect: CsvDialect) -> pd.Series:
    """Reads the numbers in a column that has other text, too, so that the text is to blame."""
    number = column.str.fullmatch(_number_pattern(dialect)).fillna(False).astype(bool)
    plain = column[number]
    if dialect.thousands is not None:
        plain = plain.str.replace(dialect.thousands, "", regex=False)
    numbers = plain.str.replace(dialect.decimal, ".", regex=False).astype(float)
    mixed = column.astype("object")
    mixed[number] = _without_marks(numbers, dialect.missing_numbers)
    other = column[~number]
    unread = other[pd.to_numeric(other, errors="coerce").notna()]
    mixed[unread.index] = unread.map(UnreadNumber).astype("object")
    return mixed


def _without_marks(column: pd.Series, marks: Sequence[float]) -> pd.Series:
    """Empties the cells of a column of numbers that hold one of the marks, in any spelling."""
    if not marks:
        return column
    values = column.to_numpy(np.float64)
    same = [np.abs(values - mark) <= _SAME_NUMBER * np.spacing(abs(mark)) for mark in marks]
    marked = np.logical_or.reduce(same)
    return column.astype(np.float64).mask(marked) if marked.any() else column
