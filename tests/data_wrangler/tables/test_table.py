"""Tables of many series: who plays which part, one series an id, and what a dry run counts."""

import json
import time

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.files import read_table
from taylorformer.data_wrangler.tables.long_table import id_text, ids_of, split_table
from taylorformer.data_wrangler.tables.report import inspect_table
from taylorformer.data_wrangler.tables.series import Series

LONG = Columns("ds", ("y",), "unique_id")


def long_frame(**changes):
    frame = pd.DataFrame(
        {
            "unique_id": ["b", "a", "b", "a", "b"],
            "ds": ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-08", "2024-01-03"],
            "y": [1.0, 10.0, 2.0, np.nan, 3.0],
        }
    )
    return frame.assign(**changes)


def frame_of(*names):
    return pd.DataFrame({name: [1, 2] for name in names})


# Which columns play which part.


@pytest.mark.parametrize(
    "names, given, wanted",
    [
        (["unique_id", "ds", "y"], {}, Columns("ds", ("y",), "unique_id")),
        (["y", "ds"], {}, Columns("ds", ("y",))),
        (["load", "Date"], {}, Columns("Date", ("load",))),
        (["when", "load"], {}, Columns("when", ("load",))),
        (["ds", "date", "y"], {}, Columns("ds", ("y",))),
        (["y", "other", "TIMESTAMP"], {}, Columns("TIMESTAMP", ("y",))),
        (
            ["shop", "date", "time", "sold", "open"],
            {"id_column": "shop", "time_column": "time", "covariate_columns": ["open", "date"]},
            Columns("time", ("sold",), "shop", ("open", "date")),
        ),
        # A column with a part is not guessed for another one.
        (["date", "week", "b"], {"target_columns": "date"}, Columns("week", ("date",))),
        (["t", "y", "b"], {"covariate_columns": "y"}, Columns("t", ("b",), None, ("y",))),
        (["t", "unique_id"], {"target_columns": ["unique_id"]}, Columns("t", ("unique_id",))),
        ([0, 1], {}, Columns(0, (1,))),
    ],
)
def test_columns_are_found(names, given, wanted):
    columns = Columns.resolve(frame_of(*names), **given)
    assert columns == wanted
    assert Columns.from_config(json.loads(json.dumps(columns.get_config()))) == wanted


def test_the_format_of_dates_is_kept():
    columns = Columns.resolve(frame_of("t", "y"), date_format="%d.%m.%Y")
    assert columns.date_format == "%d.%m.%Y" == columns.get_config()["date_format"]
    # Names of NumPy are no JSON.
    columns = Columns(np.int64(0), (np.int64(1),))
    assert Columns.from_config(json.loads(json.dumps(columns.get_config()))) == columns
    pair = Columns(("a", "b"), (("a", ("c", np.int64(1))),))
    assert Columns.from_config(json.loads(json.dumps(pair.get_config()))) == pair


@pytest.mark.parametrize("name", ["day", None])
@pytest.mark.parametrize("periods", [False, True])
def test_an_index_of_dates_is_the_time(name, periods):
    index = pd.date_range("2024-01", periods=2, freq="MS")
    index = (index.to_period("M") if periods else index).rename(name)
    frame = pd.DataFrame({"note": ["x", "y"], "load": [1.0, 2.0]}, index)
    columns = Columns.resolve(frame, target_columns="load")
    assert columns == Columns(name or "index", ("load",))
    (series,) = split_table(frame, columns)
    assert series.stamps.equals(index) and series.name == ""


def test_an_index_of_ids_and_dates():
    frame = long_frame()
    indexed = frame.assign(ds=pd.to_datetime(frame["ds"])).set_index(["unique_id", "ds"])
    assert Columns.resolve(indexed) == LONG
    assert [series.name for series in split_table(indexed, LONG)] == ["b", "a"]
    # A name that is also a column, and a level that plays no part.
    frame = frame.set_index("unique_id", drop=False)
    assert [series.name for series in split_table(frame, LONG)] == ["b", "a"]


@pytest.mark.parametrize(
    "names, given, message",
    [
        (["t", "a", "b"], {}, r"`target_columns` must be given .* Received: 'a', 'b'$"),
        (["t"], {}, r"`target_columns` must be given .* Received: no columns left$"),
        (["y"], {}, r"`target_columns` must be given .* no columns left$"),
        (["y"], {"target_columns": "y"}, r"must have a column of time\. Received: 'y'$"),
        (["date", "Time", "y"], {}, r"`time_column` must be given .* Received: 'date', 'Time'$"),
        (["t", "y"], {"id_column": "shop"}, r"column 'shop'; it is missing\. Received: 't', 'y'$"),
        (["t", "y"], {"time_column": "ds"}, r"column 'ds'; it is missing\. Received: 't', 'y'$"),
        (["t", "y"], {"target_columns": ["y", "z"]}, r"column 'z'; it is missing"),
        (["t", "y"], {"covariate_columns": "z"}, r"column 'z'; it is missing"),
        (["t", "y"], {"target_columns": "t", "time_column": "t"}, r"share a column.*'t' in both$"),
        (
            ["t", "y", "k"],
            {"id_column": "k", "covariate_columns": "k"},
            r"`id_column` and `covariate_columns` must not share a column. Received: 'k' in both$",
        ),
    ],
)
def test_columns_that_cannot_be_found(names, given, message):
    with pytest.raises(ValueError, match=message):
        Columns.resolve(frame_of(*names), **given)


def test_bad_tables_and_columns():
    with pytest.raises(TypeError, match="`frame` must be a pandas DataFrame"):
        Columns.resolve([1, 2])
    with pytest.raises(TypeError, match="`frame` must be a pandas DataFrame"):
        split_table([1, 2], LONG)
    with pytest.raises(ValueError, match="at least one row"):
        Columns.resolve(frame_of("t", "y").iloc[:0])
    with pytest.raises(ValueError, match="`target_columns` must name at least one"):
        Columns("t", ())
    with pytest.raises(ValueError, match="`time_column` and `target_columns` must not share"):
        Columns("t", ("t",))
    with pytest.raises(ValueError, match="one column 'y'; it is there 2 times"):
        Columns.resolve(pd.concat([frame_of("t", "y"), frame_of("y")], axis=1))


@pytest.mark.parametrize(
    "name", [pd.Timestamp("2024"), pd.Timedelta("1h"), np.timedelta64(1, "h"), b"y", ("y", None)]
)
def test_names_that_a_file_cannot_keep(name):
    parts = {"time_column": "t", "target_columns": ("y",)}
    for role in ("time_column", "target_columns", "id_column", "covariate_columns"):
        named = (name,) if role in ("target_columns", "covariate_columns") else name
        with pytest.raises(TypeError, match=f"`{role}` must be text or a number, or a tuple"):
            Columns(**{**parts, role: named})
    # As in a wide table, where they are found and not given.
    if not isinstance(name, tuple):
        with pytest.raises(TypeError, match="`target_columns` must be text or a number"):
            Columns.resolve(pd.DataFrame({"t": [1], name: [1.0]}))


# One series an id.


def test_one_series_an_id_in_order_of_first_appearance():
    frame = long_frame(k=range(5))
    columns = Columns("ds", ("y",), "unique_id", ("k",))
    b, a = split_table(frame, columns)
    assert (b.name, a.name) == ("b", "a") and b.time_unit == a.time_unit
    assert b.values[:, 0].tolist() == [1, 2, 3] and b.covariates[:, 0].tolist() == [0, 2, 4]
    assert a.missing == {"y": 1} and np.diff(a.time) == [a.duration("7 days")]
    assert list(a.stamps.astype(str)) == ["2024-01-01", "2024-01-08"]
    # As if each one had a table of its own.
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
        found = ids_of(table, LONG)
        assert list(found) == [id_text(value) for value in ids]
        assert list(found.values()) == list(ids) and set(map(type, found.values())) == {kind}
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
                "ds": [
                    f"2024-01-0{day}T00:00{zone}" for day, zone in enumerate(["Z", "+01:00"] * 2, 1)
                ]
                + ["2024-01-05T00:00Z"]
            },
            r"one time zone.*in row 2 \(unique_id 'a'\)$",
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


# A dry run.


def test_a_report_counts_and_does_not_raise():
    frame = pd.DataFrame(
        {
            "unique_id": ["a"] * 6 + ["b"],
            "ds": [f"2024-01-01T0{clock}" for clock in ("0:00", "0:15", "0:45", "0:30", "0:30")]
            + ["2024-01-01T02:00", "2023-01-01T00:00"],
            "y": [1, 2, np.nan, 4, 5, np.nan, 7],
            "z": [1, np.nan, np.nan, 4, 5, np.nan, 7],
        }
    )
    report = inspect_table(frame, Columns.resolve(frame, target_columns=["y", "z"]))
    a, b = report.series
    assert (a.name, a.rows, a.duplicates, a.out_of_order) == ("a", 6, 1, 1)
    assert (a.first, a.last) == (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01T02:00"))
    assert (a.median_step, a.frequency) == ("15 min", None)
    assert (a.gaps, a.longest_gap) == (1, "75 min")
    assert dict(a.missing) == {"y": 2, "z": 3}
    assert (a.masked_rows, a.partly_missing_rows) == (3, 1)
    assert (b.rows, b.median_step, b.gaps, b.longest_gap) == (1, None, 0, None)
    assert (report.rows, report.duplicates, report.out_of_order) == (7, 1, 1)
    table = report.to_frame()
    assert list(table["name"]) == ["a", "b"] and list(table["missing z"]) == [3, 0]
    assert list(table["rows"]) == [6, 1]


@pytest.mark.parametrize(
    "times, step, frequency, longest",
    [
        (pd.date_range("2024-01-01", periods=6, freq="B"), "1 day", "B", "3 days"),
        (pd.date_range("2024-01-01", periods=5, freq="5ms"), "5 ms", "5ms", None),
        (pd.date_range("2024-01-01", periods=4, freq="MS"), "31 days", "MS", None),
        (pd.period_range("2024-01", periods=3, freq="M"), "29 days", "M", None),
        (pd.date_range("2024-01-01", periods=3, freq="90min"), "90 min", "90min", None),
        ([2**62, 2**62 + 1, 2**62 + 2, 2**62 + 9], 1, None, 7),
        ([0.0, 0.5, 1.0, 4.0], 0.5, None, 3.0),
        # Two in the middle: of integers the lower one, of floats their mean.
        ([0, 1, 4], 1, None, 3),
        ([0.0, 1.0, 4.0], 2.0, None, None),
    ],
)
def test_steps_are_told_in_words(times, step, frequency, longest):
    report = inspect_table(pd.DataFrame({"t": times, "y": 0.0}), Columns("t", ("y",))).series[0]
    assert (report.median_step, report.frequency, report.longest_gap) == (step, frequency, longest)


@pytest.mark.parametrize(
    "changes", [{"ds": ["?"] * 5}, {"y": list("12-45")}, {"unique_id": ["a", None, "a", "b", "b"]}]
)
def test_what_cannot_be_read_is_an_error_in_a_dry_run_too(changes):
    with pytest.raises(ValueError, match="Column `"):
        inspect_table(long_frame(**changes), LONG)


def test_a_file_of_many_series(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("unique_id;ds;y\n1;2024-01;0,5\n2;2024-01;1,5\n1;2024-02;2,5\n")
    frame = read_table(path, separator=";", decimal=",")
    first, second = split_table(frame, Columns.resolve(frame))
    assert first.values[:, 0].tolist() == [0.5, 2.5] and second.name == "2"
