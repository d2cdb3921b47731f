"""Tables and time: what is read exactly, and what is a clear error."""

import datetime
import gzip
import importlib.util
import lzma
import pickle
import subprocess
import sys
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.errors import ColumnError
from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2, read_series, read_table
from taylorformer.data_wrangler.tables.series import Series


def series_of(times, values=None, **options):
    values = np.arange(len(times), dtype=float) if values is None else values
    return Series.from_frame(pd.DataFrame({"t": times, "y": values}), "t", "y", **options)


# What is read.


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


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
def test_dates_of_any_resolution(resolution):
    times = pd.date_range("2020-01-01", periods=5, freq="h", unit=resolution)
    series = series_of(times)
    assert series.time_unit == resolution
    assert set(np.diff(series.time)) == {series.duration("1h")}
    # One instant has one name, whatever the resolution.
    assert series.time_label(2) == series_of(times.as_unit("ns")).time_label(2)


@pytest.mark.parametrize(
    "times, step",
    [
        (["2020-01-01 00:00:00.005", "2020-01-01 00:00:00.010"], "5ms"),
        (["2020-01", "2020-02"], "31 days"),
        (["2020-02-28T12:00Z", "2020-02-29T12:00Z"], "24h"),
        (["2020-02-28T12:00+01:00", "2020-02-28T13:00+01:00"], "1h"),
        (pd.period_range("2020-01", periods=2, freq="M"), "31 days"),
        (pd.date_range("2020-03-29 01:00", periods=2, freq="h", tz="Europe/Paris"), "1h"),
        (pd.Categorical(["2020-01-01", "2020-01-02"]), "1 day"),
    ],
)
def test_elapsed_time_is_true(times, step):
    series = series_of(times)
    assert np.diff(series.time) == [series.duration(step)]


def test_irregular_stamps_stay_as_they_are():
    days = pd.bdate_range("2024-03-01", periods=10)
    series = series_of(days)
    assert series.stamps.equals(days.rename("t"))
    day = series.duration("1 day")
    assert list(np.diff(series.time) / day) == [3, 1, 1, 1, 1, 3, 1, 1, 1]


def test_integers_and_floats_are_exact():
    milliseconds = 1_700_000_000_123 + 60_000 * np.arange(4)
    series = series_of(milliseconds)
    assert series.time.dtype == np.int64 and series.time_unit is None
    assert list(np.diff(series.time)) == [60_000] * 3
    # Neither number is one in float64.
    huge = series_of([2**62 + 1, 2**62 + 2])
    assert list(np.diff(huge.time)) == [1]
    floats = series_of([1.7e9, 1.7e9 + 0.005])
    assert floats.time.dtype == np.float64 and floats.time[1] - floats.time[0] > 0.0049
    assert floats.duration(2) == 2.0


def test_missing_values_are_counted_and_never_filled():
    nan = np.nan
    frame = pd.DataFrame({"t": range(5), "a": [1, nan, 3, nan, 5], "b": [nan, nan, 3, 4, nan]})
    series = Series.from_frame(frame, "t", ["a", "b"])
    assert series.missing == {"a": 2, "b": 3}
    assert series.num_masked_rows == 4 and series.num_partly_missing_rows == 3
    assert list(series.observed) == [False, False, True, False, False]
    assert series.last_observed_row.tolist() == [[0, -1], [0, -1], [2, 2], [2, 3], [4, 3]]
    np.testing.assert_array_equal(series.values, frame[["a", "b"]].to_numpy())


def test_the_frame_stays_free_and_the_series_fixed():
    frame = pd.DataFrame({"t": [1, 2], "y": [1.0, 2.0]})
    series = Series.from_frame(frame, "t", "y")
    frame.loc[0, ["t", "y"]] = 0
    assert series.time[0] == 1 and series.values[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        series.values[0, 0] = 3


@pytest.mark.parametrize("values", [["1", "2.5"], pd.array([1, None], "Int64")])
def test_numbers_in_other_dress(values):
    wanted = [1.0, np.nan if values[1] is pd.NA else float(values[1])]
    np.testing.assert_array_equal(series_of([1, 2], values).values[:, 0], wanted)


def test_an_index_of_time():
    frame = pd.DataFrame({"y": [1.0, 2.0]}, pd.Index([3, 4], name="t"))
    assert list(Series.from_frame(frame, "t", "y").time) == [3, 4]


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


def test_an_index_of_dates_without_a_name():
    days = pd.date_range("2024-01-01", periods=2)
    frame = pd.DataFrame({"y": [1.0, 2.0]}, days)
    series = Series.from_frame(frame, "index", "y")
    assert series.stamps.equals(days) and series.time_column == "index"
    # A count of rows is no time.
    with pytest.raises(ValueError, match="one column 'index'; it is missing"):
        Series.from_frame(pd.DataFrame({"y": [1.0]}), "index", "y")


@pytest.mark.parametrize(
    "times, gaps",
    [
        # Trading hours with a lunch break, over a weekend; the unit is half an hour.
        (
            [
                f"{day} {clock}"
                for day in ("2024-03-08", "2024-03-11")
                for clock in ("10:00", "10:30", "12:00")
            ],
            [1, 3, 140, 1, 3],
        ),
        (["2024-01", "2024-02", "2024-03"], [31 * 48, 29 * 48]),
    ],
)
def test_no_row_is_invented_between_stamps(times, gaps):
    series = series_of(times)
    assert series.num_rows == len(times)
    assert list(np.diff(series.time) / series.duration("30min")) == gaps


# Covariates.


def test_a_series_becomes_a_table_again():
    frame = pd.DataFrame({"t": ["2024-01", "2024-02"], "a": [1, np.nan], "b": 2.0, "k": [0, 1.0]})
    series = Series.from_frame(frame, "t", ["a", "b"], covariate_columns="k")
    table = series.to_frame()
    assert list(table) == ["t", "a", "b", "k"]
    again = Series.from_frame(table, "t", ["a", "b"], covariate_columns="k")
    assert again.stamps.equals(series.stamps)
    np.testing.assert_array_equal(again.values, series.values)
    np.testing.assert_array_equal(again.covariates, series.covariates)


@pytest.mark.parametrize(
    "known",
    [
        [True, False, True],
        [1, 0, 1],
        ["1", "0", "1"],
        pd.array([True, False, True], "boolean"),
        np.array([True, False, True], object),
    ],
)
def test_covariates_are_numbers_or_yes_and_no(known):
    frame = pd.DataFrame({"t": range(3), "y": 0.0, "wind": [0.5, 1.5, 2.5], "open": known})
    series = Series.from_frame(frame, "t", "y", covariate_columns=["open", "wind"])
    np.testing.assert_array_equal(series.covariates, [[1, 0.5], [0, 1.5], [1, 2.5]])
    assert series.covariate_columns == ("open", "wind")
    assert Series.from_frame(frame, "t", "y", covariate_columns="wind").covariates.shape == (3, 1)
    assert Series.from_frame(frame, "t", "y").covariates.shape == (3, 0)


@pytest.mark.parametrize(
    "known, message",
    [
        ([1.0, np.nan, np.inf], r"`k` must hold a finite number in every row.*in row 2$"),
        ([1.0, 2.0, -np.inf], r"`k` must hold a finite number in every row.*-inf in row 3$"),
        ([True, False, None], r"`k` must hold a finite number in every row.*in row 3$"),
        (["1", "2", "high"], r"`k` must hold a number, or .*'high' in row 3$"),
        (pd.date_range("2020", periods=3), r"`k` must hold a number, or .*in row 1$"),
    ],
)
def test_bad_covariates(known, message):
    frame = pd.DataFrame({"t": range(3), "y": 0.0, "k": known})
    with pytest.raises(ValueError, match=message):
        Series.from_frame(frame, "t", "y", covariate_columns="k")


def test_a_column_plays_one_part():
    frame = pd.DataFrame({"t": [1], "y": [1.0]})
    for known, first in (("y", "target_columns"), ("t", "time_column")):
        with pytest.raises(ValueError, match=f"`{first}` and `covariate_columns` must not share"):
            Series.from_frame(frame, "t", "y", covariate_columns=known)
    with pytest.raises(ValueError, match="`covariate_columns` must name no column twice"):
        Series.from_frame(frame, "t", "y", covariate_columns=["a", "a"])


# Disorder, where it is asked to be dealt with.


def disorder(**options):
    nan = np.nan
    table = {"t": [5, 1, 3, 1, 1], "a": [50, 10, 30, nan, 13], "b": [5, nan, 3, nan, nan]}
    frame = pd.DataFrame({**table, "k": [5, 1, 3, 1, 1]})
    columns = {"time_column": "t", "target_columns": ["a", "b"], "covariate_columns": "k"}
    return Series.from_frame(frame, **columns, **options)


@pytest.mark.parametrize(
    "duplicates, a",
    [("first", 10.0), ("last", 13.0), ("mean", 11.5)],
)
def test_rows_are_sorted_and_merged_on_request(duplicates, a):
    series = disorder(unsorted="sort", duplicates=duplicates)
    assert series.time.tolist() == [1, 3, 5] == series.stamps.tolist()
    np.testing.assert_array_equal(series.values, [[a, np.nan], [30, 3], [50, 5]])
    np.testing.assert_array_equal(series.covariates, [[1], [3], [5]])


def test_what_was_not_asked_for_stays_an_error():
    with pytest.raises(ValueError, match=r"each time once; 2 come.*Received: 1 in rows 2 and 4$"):
        disorder(unsorted="sort")
    with pytest.raises(ValueError, match=r"order of time; 2 rows.*5 in row 1 and 1 in row 2$"):
        disorder(duplicates="mean")
    for option in ("unsorted", "duplicates"):
        with pytest.raises(ValueError, match=f"`{option}` must be one of 'error'"):
            series_of([1, 2], **{option: "drop"})


def test_rows_that_lie_together_need_no_sorting():
    assert series_of([1, 2, 2, 3], duplicates="last").values[:, 0].tolist() == [0, 2, 3]
    # Of one instant, however it is written.
    days = pd.DatetimeIndex(["2024-01-02", "2024-01-01", "2024-01-02"], tz="Asia/Tokyo")
    series = series_of(days, unsorted="sort", duplicates="mean")
    assert series.values[:, 0].tolist() == [1, 1] and series.stamps.tz is not None


def test_the_mean_does_not_overflow():
    series = series_of([1, 1, 2], [1.6e308, 1.7e308, 1.0], duplicates="mean")
    assert series.values[0, 0] == pytest.approx(1.65e308)


def test_errors_after_sorting_name_the_rows_of_the_table():
    with pytest.raises(ValueError, match=r"inf in row 1$"):
        series_of([3, 2, 1], [np.inf, 1.0, 2.0], unsorted="sort")
    frame = pd.DataFrame({"t": [4, 2, 3, 2], "y": 0.0, "k": [0, 1, 0, 2]})
    with pytest.raises(
        ValueError,
        match=r'`k` must be the same .*duplicates="mean".* 1\.0 and 2\.0 in rows 2 and 4$',
    ):
        Series.from_frame(
            frame, "t", "y", covariate_columns="k", unsorted="sort", duplicates="mean"
        )


# Files.


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


def test_long_columns_of_text_take_no_time():
    # A million rows take 1.6 s; a loop that parses row by row takes minutes.
    text = pd.Series(pd.date_range("2000", periods=200_000, freq="min").astype(str))
    text.iloc[-3] = "2000-02-30"
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=r"'2000-02-30' in row 199998$"):
        series_of(text)
    assert time.perf_counter() - begin < 5


# What is an error: the column, the row, the value.


@pytest.mark.parametrize(
    "times, message",
    [
        (["01/02/2020", "13/02/2020"], r"`t` .*`date_format`.*'01/02/2020' in row 1$"),
        (["2020-01-01", "-"], r"Received: '-' in row 2$"),
        (["2020-01-01", "2020-02-30"], r"Received: '2020-02-30' in row 2$"),
        (["2020-01-01", None], r"a time in every row\. Received: an empty cell in row 2$"),
        (["2020-01-01", "now"], r"Received: 'now' in row 2$"),
        (["2020-01-01T00:00+01:00", "2020-06-01T00:00+02:00"], r"one time zone.*in row 2$"),
        (["2020-01-01T00:00", "2020-01-02T00:00Z"], r"one time zone.*in row 2$"),
        (["1", "2", "-"], r"Received: '-' in row 3$"),
        ([1, "2020-01-01"], r"Received: 1 in row 1$"),
        ([1.0, np.inf], r"finite times\. Received: inf in row 2$"),
        ([True, False], r"dates or numbers\. Received: .*True.* in row 1$"),
        ([-(2**62), 2**62], r"fit in 64 bits\. Received: -4611686018427387904 to"),
        ([2**62, 0, -(2**62)], r"fit in 64 bits"),
        ([1, 2, 4, 3], r"order of time; 1 rows.*Received: 4 in row 3 and 3 in row 4$"),
        ([1, 2, 3, 2], r"each time once; 1 come again .*Received: 2 in rows 2 and 4$"),
        (["2020-01-01", "2020-01-01"], r"Received: 2020-01-01 00:00:00 in rows 1 and 2$"),
    ],
)
def test_bad_times(times, message):
    with pytest.raises(ValueError, match=message):
        series_of(times)


@pytest.mark.parametrize(
    "values, message",
    [
        (["1", "-", "x"], r"`y` must hold numbers, .* Received: '-' in row 2$"),
        ([1.0, 2.0, np.inf], r"finite numbers, .*Received: inf in row 3$"),
        ([True, False, True], r"hold numbers\. Received: .*True.* in row 1$"),
        ([1.5, None, True], r"hold numbers, .*Received: True in row 3$"),
        (pd.date_range("2020", periods=3), r"hold numbers\. Received: Timestamp.* in row 1$"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        series_of([1, 2, 3], values)


def test_text_in_a_csv_is_named_by_its_row(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t,y\n1,1.5\n2,\n3,n.d.\n")
    with pytest.raises(ValueError, match=r"Column `y` .* Received: 'n\.d\.' in row 3$"):
        read_series(path, "t", "y")


def test_bad_columns_and_tables(tmp_path):
    frame = pd.DataFrame({"t": [1], "y": [1.0]})
    with pytest.raises(ValueError, match=r"one column 'z'; it is missing\. Received: 't', 'y'"):
        Series.from_frame(frame, "t", ["y", "z"])
    with pytest.raises(ValueError, match=r"one column 'y'; it is there 2 times"):
        Series.from_frame(pd.concat([frame, frame[["y"]]], axis=1), "t", "y")
    with pytest.raises(ValueError, match="`time_column` and `target_columns` must not share"):
        Series.from_frame(frame, "t", ["t"])
    for names in ([], ["y", "y"]):
        with pytest.raises(ValueError, match="`target_columns` must name"):
            Series.from_frame(frame, "t", names)
    with pytest.raises(ValueError, match="at least one row"):
        Series.from_frame(frame.iloc[:0], "t", "y")
    with pytest.raises(TypeError, match="`frame` must be a pandas DataFrame"):
        Series.from_frame({"t": [1]}, "t", "y")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match="`path` must be a CSV file"):
        read_series(tmp_path / "empty.csv", "t", "y")
    with pytest.raises(FileNotFoundError):
        read_series(tmp_path / "none.csv", "t", "y")


@pytest.mark.parametrize("span", [0, -1, np.nan, "week"])
def test_bad_durations(span):
    with pytest.raises(ValueError, match="`span` must be"):
        series_of([1, 2]).duration(span)
    with pytest.raises(ValueError, match="`span` must be"):
        load_mauna_loa_co2().duration(span)


@pytest.mark.parametrize(
    "span", [7, 7.5, True, np.int64(7), np.timedelta64(7), "7", " +7.5 ", None]
)
def test_a_plain_number_is_no_length_of_time_for_dates(span):
    message = r"`span` must be a Timedelta or text such as '7 days' for dates\. Received: span="
    with pytest.raises(ValueError, match=message):
        load_mauna_loa_co2().duration(span)


@pytest.mark.parametrize(
    "span",
    [
        "7 days",
        "168:00:00",
        "P7D",
        pd.Timedelta("7 days"),
        datetime.timedelta(7),
        np.timedelta64(7, "D"),
        pd.offsets.Hour(168),
    ],
)
def test_lengths_of_time_for_dates(span):
    assert load_mauna_loa_co2().duration(span) == np.diff(load_mauna_loa_co2().time)[0]


def test_an_error_of_a_column_can_be_sent_and_reworded():
    with pytest.raises(ColumnError) as caught:
        series_of([1, 2], [1.0, np.inf])
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value) and error.row == 1
    wanted = "Received: inf in row 9 (shop 3)"
    assert error.describe("future", np.array([4, 9]), " (shop 3)").endswith(wanted)
    assert error.describe("future").startswith("Column `y` of `future` must hold finite numbers")


def test_arrays_that_do_not_fit():
    with pytest.raises(ValueError, match=r"`time` must be \[T\].*Received: \[2\] and \[3, 1\]"):
        Series(np.arange(2), np.zeros((3, 1)), pd.Index([1, 2]))
    with pytest.raises(ValueError, match="`time_unit` must be one of"):
        Series(np.arange(2), np.zeros((2, 1)), pd.Index([1, 2]), time_unit="week")
