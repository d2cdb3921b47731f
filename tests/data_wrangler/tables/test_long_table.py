"""Tables of several series: one series for each id, and errors that name the row and the id."""

import time

import numpy as np
import pandas as pd
import pytest
from tables import LONG, frame_of, long_frame

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.long_table import id_text, ids_of, split_table
from taylorformer.data_wrangler.tables.series import Series


def test_one_series_an_id_in_order_of_first_appearance():
    frame = long_frame(k=range(5))
    columns = Columns("ds", ("y",), "unique_id", ("k",))
    b, a = split_table(frame, columns)
    assert (b.name, a.name) == ("b", "a") and b.time_unit == a.time_unit
    assert b.values[:, 0].tolist() == [1, 2, 3] and b.covariates[:, 0].tolist() == [0, 2, 4]
    assert a.missing == {"y": 1} and np.diff(a.time) == [a.duration("7 days")]
    assert list(a.stamps.astype(str)) == ["2024-01-01", "2024-01-08"]
    # As if each series came alone.
    alone = Series.from_frame(frame[frame["unique_id"] == "a"], "ds", "y")
    np.testing.assert_array_equal(alone.time, a.time)
    np.testing.assert_array_equal(alone.values, a.values)
    assert alone.stamps.equals(a.stamps)


@pytest.mark.parametrize(
    "ids, names",
    [
        ([7, 3, 7, 3, 7], ["7", "3"]),
        (pd.Categorical(["x", "a", "x", "a", "x"], ["unused", "a", "x"]), ["x", "a"]),
        (pd.array([7, 3, 7, 3, 7], "Int64"), ["7", "3"]),
        ([True, False, True, False, True], ["True", "False"]),
        ([7.0, 3.0, 7.0, 3.0, 7.0], ["7", "3"]),
        ([7.5, 3.0, 7.5, 3.0, 7.5], ["7.5", "3"]),
        (["007", "7", "007", "7", "007"], ["007", "7"]),
    ],
)
def test_ids_of_other_types(ids, names):
    series = split_table(long_frame(unique_id=ids), LONG)
    assert [one.name for one in series] == names
    assert [one.num_rows for one in series] == [3, 2]


@pytest.mark.parametrize(
    "value, text",
    [
        (1, "1"),
        (1.0, "1"),
        (np.float32(-2), "-2"),
        (np.int64(3), "3"),
        (1.5, "1.5"),
        (np.inf, "inf"),
        ("1.0", "1.0"),
        ("001", "001"),
        (True, "True"),
        (pd.Timestamp("2024-01-01"), "2024-01-01 00:00:00"),
    ],
)
def test_ids_as_text(value, text):
    assert id_text(value) == text


@pytest.mark.parametrize(
    "ids, kind",
    [(["b", "a"], str), ([7, 3], int), ([7.0, 3.5], float), (pd.array([7, 3], "Int64"), int)],
)
def test_ids_by_their_names(ids, kind):
    frame = pd.DataFrame({"unique_id": pd.Series(ids)[[0, 1, 0]].array, "ds": [1, 1, 2], "y": 0.0})
    for table in (frame, frame.set_index(["unique_id", "ds"]), frame[["unique_id"]]):
        ids_by_name = ids_of(table, LONG)
        assert list(ids_by_name) == [id_text(value) for value in ids]
        assert list(ids_by_name.values()) == list(ids) and set(map(type, ids_by_name.values())) == {
            kind
        }
    assert list(ids_of(frame, LONG)) == [one.name for one in split_table(frame, LONG)]
    assert ids_of(frame, Columns("ds", ("y",))) == {"": None}


def test_bad_ids_by_their_names():
    with pytest.raises(TypeError, match="`frame` must be a pandas DataFrame"):
        ids_of([1], LONG)
    with pytest.raises(ValueError, match="one column 'unique_id'; it is missing"):
        ids_of(frame_of("ds", "y"), LONG)
    with pytest.raises(ValueError, match=r"an id in every row\. Received: an empty cell in row 2$"):
        ids_of(pd.DataFrame({"unique_id": ["a", None]}), LONG)
    with pytest.raises(ValueError, match=r"differ as text, too\. Received: 1\.0 and '1'$"):
        ids_of(pd.DataFrame({"unique_id": np.array([1.0, "1"], object)}), LONG)


def test_a_table_without_ids_is_one_series():
    frame = long_frame().iloc[[0, 2, 4]]
    (series,) = split_table(frame, Columns("ds", ("y",)))
    assert series.name == "" and series.num_rows == 3


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"ds": ["2024-01-01", "2024-01-01", "2024-01-01", "2024-01-02", "2024-01-02"]},
            r"each time once; 1 come again .*in rows 1 and 3 \(unique_id 'b'\)$",
        ),
        (
            {"ds": ["2024-01-01", "2024-01-05", "2024-01-02", "2024-01-04", "2024-01-03"]},
            r"order of time; 1 rows.*05.* in row 2 and .*04.* in row 4 \(unique_id 'a'\)$",
        ),
        ({"y": ["1", "2", "3", "-", "5"]}, r"`y` must hold numbers.*'-' in row 4 .*'a'\)$"),
        ({"y": [1, 2, 3, np.inf, 5]}, r"`y` must hold finite.*inf in row 4 \(unique_id 'a'\)$"),
        (
            {"ds": ["2024-01-01", "2024-01-01", "02.01.2024", "2024-01-02", "2024-01-03"]},
            r"`ds` must hold dates .*'02\.01\.2024' in row 3 \(unique_id 'b'\)$",
        ),
        # Of the whole table, not of each id.
        (
            {
                "ds": [f"2024-01-0{day}T00:00{zone}" for day, zone in enumerate(["Z", ""] * 2, 1)]
                + ["2024-01-05T00:00Z"]
            },
            r"a UTC offset or none.*in row 2 \(unique_id 'a'\)$",
        ),
        ({"unique_id": ["b", "a", None, "a", None]}, r"an id in every row\. .* in row 3$"),
        ({"unique_id": ["1", 1, "1", 1, "1"]}, r"differ as text, too\. Received: '1' and 1$"),
        ({"unique_id": [2, 1, 2, 1, 2], "y": list("12-45")}, r"in row 3 \(unique_id 2\)$"),
    ],
)
def test_errors_name_the_row_of_the_table_and_the_id(changes, message):
    with pytest.raises(ValueError, match=message):
        split_table(long_frame(**changes), LONG)


def test_disorder_of_one_id_on_request():
    frame = long_frame(ds=[3, 5, 1, 4, 1])
    b, a = split_table(frame, LONG, unsorted="sort", duplicates="mean")
    assert b.time.tolist() == [1, 3] and b.values[:, 0].tolist() == [2.5, 1]
    assert a.time.tolist() == [4, 5]
    with pytest.raises(ValueError, match=r"each time once.*in rows 3 and 5 \(unique_id 'b'\)"):
        split_table(frame, LONG, unsorted="sort")
    with pytest.raises(ValueError, match="`duplicates` must be one of"):
        split_table(frame, LONG, duplicates="drop")


def test_many_ids_take_little_time():
    # A filter for each id would read 400 million rows.
    ids, rows = 2_000, 100
    frame = pd.DataFrame(
        {
            "unique_id": np.tile(np.arange(ids), rows),
            "ds": np.repeat(pd.date_range("2024", periods=rows), ids),
            "y": np.arange(ids * rows, dtype=float),
        }
    )
    begin = time.perf_counter()
    series = split_table(frame, LONG)
    assert time.perf_counter() - begin < 5
    assert len(series) == ids and series[7].values[:3, 0].tolist() == [7, 2007, 4007]
