"""Tables and time: what is read exactly, and what is a clear error."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.series import Series, load_mauna_loa_co2, read_series


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
from taylorformer.data_wrangler import series, windows
series.load_mauna_loa_co2()
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
        ([1, 2, 4, 3], r"order of time; 1 rows.*Received: 4 in row 3 and 3 in row 4$"),
        ([1, 2, 3, 2], r"each time once; 1 come again\. Received: 2 in rows 2 and 4$"),
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
    with pytest.raises(ValueError, match="`time_column` must not be one"):
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


def test_arrays_that_do_not_fit():
    with pytest.raises(ValueError, match=r"`time` must be \[T\].*Received: \[2\] and \[3, 1\]"):
        Series(np.arange(2), np.zeros((3, 1)), pd.Index([1, 2]))
    with pytest.raises(ValueError, match="`time_unit` must be one of"):
        Series(np.arange(2), np.zeros((2, 1)), pd.Index([1, 2]), time_unit="week")
