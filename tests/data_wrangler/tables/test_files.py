"""Files: CSV as programs write it, archives, Parquet, and what is a clear error."""

import gzip
import importlib.util
import lzma
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2, read_series, read_table
from taylorformer.data_wrangler.tables.long_table import split_table


def test_mauna_loa_keeps_its_gaps():
    series = load_mauna_loa_co2()
    assert (series.num_rows, series.num_columns) == (2284, 1)
    assert series.missing == {"co2": 59}
    assert series.missing_summary() == {
        "rows": 2284,
        "missing": {"co2": 59},
        "masked_rows": 59,
        "partly_missing_rows": 0,
    }
    assert series.stamps[0] == pd.Timestamp("1958-03-29")
    assert series.stamps[-1] == pd.Timestamp("2001-12-29")
    assert series.values[0, 0] == 316.1 and series.values[-1, 0] == 371.5
    weeks = np.diff(series.time)
    assert weeks.dtype == np.int64 and set(weeks) == {series.duration("7 days")}


def test_reading_a_series_leaves_tensorflow_alone():
    code = """
import sys
from taylorformer.data_wrangler.tables import datasets, files, future, report, windows
files.load_mauna_loa_co2()
print("tensorflow" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


def test_csv_with_other_marks_names_and_order(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeffload;note;day\n1,5;-;31.01.2020\n;x;01.02.2020\n2,5;;02.02.2020\n")
    options = {"separator": ";", "decimal": ",", "date_format": "%d.%m.%Y"}
    series = read_series(path, "day", ["load"], name="plant", **options)
    np.testing.assert_array_equal(series.values[:, 0], [1.5, np.nan, 2.5])
    assert series.stamps[2] == pd.Timestamp("2020-02-02") and series.name == "plant"


def test_numbers_that_spell_dates(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("day,y\n20200131,1\n20200201,2\n")
    series = read_series(path, "day", "y", date_format="%Y%m%d")
    assert np.diff(series.time) == [series.duration("1 day")]


@pytest.mark.parametrize(
    "text",
    [
        "t,y\n1,1.5\n2,\n3,2.5\n",
        "\ufefft,y\n1,1.5\n2,\n3,2.5",
        "t,y\r\n1,1.5\r\n2,\r\n3,2.5\r\n",
        "t,y\n1,1.5\n2,\n3,2.5\n\n  \n\n",
        "t,y\r\n1,1.5\r\n\r\n2,\r\n3,2.5\r\n\r\n",
        "t,y,\n1,1.5,\n2,,\n3,2.5,\n",
    ],
    ids=["plain", "byte-order mark", "CRLF", "empty at the end", "empty between", "last separator"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_csv_as_programs_write_it(text, packed, tmp_path):
    path = tmp_path / ("table.csv.gz" if packed else "table.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    series = read_series(path, "t", "y")
    np.testing.assert_array_equal(series.values[:, 0], [1.5, np.nan, 2.5])
    assert series.time.tolist() == [1, 2, 3]


def test_blank_lines_count_for_no_row(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t,y\n1,1.5\n\n2,\n3,n.d.\n")
    with pytest.raises(ValueError, match=r"'n\.d\.' in row 3$"):
        read_series(path, "t", "y")


def test_text_in_a_csv_is_named_by_its_row(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t,y\n1,1.5\n2,\n3,n.d.\n")
    with pytest.raises(ValueError, match=r"Column `y` .* Received: 'n\.d\.' in row 3$"):
        read_series(path, "t", "y")


def test_no_cell_of_a_file_is_lost(tmp_path):
    path = tmp_path / "table.csv"
    # A decimal comma in a file with commas between columns.
    path.write_text("t,y\n1,1,5\n2,2,5\n")
    with pytest.raises(ValueError, match="`path` must be a CSV file whose rows have no more cells"):
        read_series(path, "t", "y")
    for content in (b"t,y\n1,2\n1,2,3\n", b"t,y\n1,\xff\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="`path` must be a CSV file in UTF-8"):
            read_series(path, "t", "y")
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(b"t,y\n1,2\n" * 99)[:-20])
    with pytest.raises(ValueError, match="`path` must be a CSV file in UTF-8"):
        read_series(packed, "t", "y")


@pytest.mark.parametrize("ending", ["zip", "xz", "tar", "gz", "bz2"])
def test_damaged_archives(ending, tmp_path):
    path = tmp_path / f"table.csv.{ending}"
    path.write_bytes(b"t,y\n1,2\n")
    with pytest.raises(ValueError, match=rf"`path` must be a CSV file .*table\.csv\.{ending} \("):
        read_table(path)


def test_truncated_archives(tmp_path):
    text = b"".join(b"%d,%d\n" % (row, row * row) for row in range(999))
    with zipfile.ZipFile(tmp_path / "table.zip", "w") as archive:
        archive.writestr("table.csv", text)
    (tmp_path / "table.xz").write_bytes(lzma.compress(text))
    for path in tmp_path.iterdir():
        assert len(read_table(path)) == 998
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(ValueError, match="`path` must be a CSV file"):
            read_table(path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.zip")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_columns_are_read_as_they_are_spelled(newline, tmp_path):
    path = tmp_path / "table.csv"
    lines = ["shop;t;y", "001;1;0,5", "NA;2;NA", ";3;", "None;4;2", "=1,0;5;3", '"a ""b"" ";6;4']
    path.write_bytes(newline.join(lines).encode())
    marks = {"separator": ";", "decimal": ","}
    frame = read_table(path, text_columns=("shop", "town", 1), **marks)
    assert frame["shop"].isna().tolist() == [False, False, True, False, False, False]
    assert frame["shop"].dropna().tolist() == ["001", "NA", "None", "=1,0", 'a "b" ']
    # The others are read as ever, and so is everything where nothing is said.
    pd.testing.assert_frame_equal(
        frame.drop(columns="shop"), read_table(path, **marks).drop(columns="shop")
    )
    assert frame["y"].isna().sum() == 2 and read_table(path, **marks)["shop"].isna().sum() == 3
    assert read_table(path, text_columns="shop", **marks)["shop"].equals(frame["shop"])
    path.write_text("shop,t\n")
    assert read_table(path, text_columns="shop").shape == (0, 2)
    path.write_text("shop,t\n,1\n,2\n")
    assert read_table(path, text_columns="shop")["shop"].isna().all()


def test_marks_of_a_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t\ty\n1\t2.5\n")
    for tab in ("\t", r"\t"):
        assert read_table(path, separator=tab).to_numpy().tolist() == [[1, 2.5]]
    path.write_text("t y\n1 2,5\n")
    assert read_table(path, separator=" ", decimal=",").to_numpy().tolist() == [[1, 2.5]]
    for mark in ("", ";;", r"\s", "\n", '"', "1", "§"):
        for name in ("separator", "decimal"):
            with pytest.raises(ValueError, match=f"`{name}` must be one character"):
                read_table(path, **{name: mark})
    with pytest.raises(TypeError, match="`separator` must be text"):
        read_table(path, separator=None)
    with pytest.raises(
        ValueError, match=r"`separator` and `decimal` must not be the same.* separator=',' and"
    ):
        read_table(path, decimal=",")


def test_disorder_in_a_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t;y;k\n2;1,5;0\n1;2,5;1\n1;3,5;1\n")
    options = {"separator": ";", "decimal": ",", "unsorted": "sort", "duplicates": "mean"}
    series = read_series(path, "t", "y", covariate_columns="k", **options)
    assert series.values[:, 0].tolist() == [3.0, 1.5] and series.covariates.tolist() == [[1], [0]]


def test_parquet_round_trip(tmp_path):
    if not any(map(importlib.util.find_spec, ("pyarrow", "fastparquet"))):
        pytest.skip("neither pyarrow nor fastparquet is installed")
    frame = pd.DataFrame({"t": pd.date_range("2024", periods=3, freq="5ms"), "y": [1.0, 2, np.nan]})
    for name in ("table.parquet", "table.PQ"):
        frame.to_parquet(tmp_path / name)
        series = read_series(tmp_path / name, "t", "y")
        np.testing.assert_array_equal(series.values[:, 0], frame["y"])
        assert series.stamps.equals(pd.Index(frame["t"]))
    (tmp_path / "none.parquet").write_text("t,y\n1,2\n")
    with pytest.raises(ValueError, match="`path` must be a Parquet file"):
        read_table(tmp_path / "none.parquet")


def test_parquet_without_a_package_for_it(tmp_path, monkeypatch):
    def read_parquet(path):
        raise ImportError("Unable to find a usable engine; and so on, over some lines")

    monkeypatch.setattr(pd, "read_parquet", read_parquet)
    with pytest.raises(ImportError, match="neither `pyarrow` nor `fastparquet` is installed"):
        read_table(tmp_path / "table.parquet")


def test_a_file_of_many_series(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("unique_id;ds;y\n1;2024-01;0,5\n2;2024-01;1,5\n1;2024-02;2,5\n")
    frame = read_table(path, separator=";", decimal=",")
    first, second = split_table(frame, Columns.resolve(frame))
    assert first.values[:, 0].tolist() == [0.5, 2.5] and second.name == "2"


def test_files_without_a_table(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match="`path` must be a CSV file"):
        read_series(tmp_path / "empty.csv", "t", "y")
    with pytest.raises(FileNotFoundError):
        read_series(tmp_path / "none.csv", "t", "y")
