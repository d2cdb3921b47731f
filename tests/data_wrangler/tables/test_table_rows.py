"""Rows that are not in order, or share a time: sorted and merged only on request."""

import numpy as np
import pandas as pd
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.series import Series


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
