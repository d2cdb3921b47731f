"""One series: made of a table and turned into one again, missing values, bad columns."""

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.series import Series


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


def test_an_index_of_time():
    frame = pd.DataFrame({"y": [1.0, 2.0]}, pd.Index([3, 4], name="t"))
    assert list(Series.from_frame(frame, "t", "y").time) == [3, 4]


def test_an_index_of_dates_without_a_name():
    days = pd.date_range("2024-01-01", periods=2)
    frame = pd.DataFrame({"y": [1.0, 2.0]}, days)
    series = Series.from_frame(frame, "index", "y")
    assert series.stamps.equals(days) and series.time_column == "index"
    # A count of rows is no time.
    with pytest.raises(ValueError, match="one column 'index'; it is missing"):
        Series.from_frame(pd.DataFrame({"y": [1.0]}), "index", "y")


def test_a_series_becomes_a_table_again():
    frame = pd.DataFrame({"t": ["2024-01", "2024-02"], "a": [1, np.nan], "b": 2.0, "k": [0, 1.0]})
    series = Series.from_frame(frame, "t", ["a", "b"], covariate_columns="k")
    table = series.to_frame()
    assert list(table) == ["t", "a", "b", "k"]
    again = Series.from_frame(table, "t", ["a", "b"], covariate_columns="k")
    assert again.stamps.equals(series.stamps)
    np.testing.assert_array_equal(again.values, series.values)
    np.testing.assert_array_equal(again.covariates, series.covariates)


def test_a_column_plays_one_part():
    frame = pd.DataFrame({"t": [1], "y": [1.0]})
    for covariate, first in (("y", "target_columns"), ("t", "time_column")):
        with pytest.raises(ValueError, match=f"`{first}` and `covariate_columns` must not share"):
            Series.from_frame(frame, "t", "y", covariate_columns=covariate)
    with pytest.raises(ValueError, match="`covariate_columns` must name no column twice"):
        Series.from_frame(frame, "t", "y", covariate_columns=["a", "a"])


def test_bad_columns_and_tables():
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


def test_arrays_that_do_not_fit():
    with pytest.raises(ValueError, match=r"`time` must be \[T\].*Received: \[2\] and \[3, 1\]"):
        Series(np.arange(2), np.zeros((3, 1)), pd.Index([1, 2]))
    with pytest.raises(ValueError, match="`time_unit` must be one of"):
        Series(np.arange(2), np.zeros((2, 1)), pd.Index([1, 2]), time_unit="week")
