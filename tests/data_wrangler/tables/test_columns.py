"""Columns: found in a table by their names, kept in JSON, and checked."""

import json

import numpy as np
import pandas as pd
import pytest
from tables import LONG, frame_of, long_frame

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.long_table import split_table


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
