"""Times in several columns, days before months, and what errors of times advise."""

import dataclasses
import datetime
import json

import numpy as np
import pandas as pd
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.files import read_series, read_table
from taylorformer.data_wrangler.tables.future import extend_series, split_future
from taylorformer.data_wrangler.tables.long_table import split_table
from taylorformer.data_wrangler.tables.series import Series


@pytest.mark.parametrize(
    "texts, first, second",
    [
        (["16/12/2006", "17/12/2006"], "2006-12-16", "2006-12-17"),
        # Never the month first, and never by row.
        (["5/4/2006", "13/4/2006"], "2006-04-05", "2006-04-13"),
        (["01.02.2006", "1.3.2006"], "2006-02-01", "2006-03-01"),
        (["1-2-2006 7:05", "1-2-2006 17:06"], "2006-02-01 07:05", "2006-02-01 17:06"),
        (["16.12.2006, 17:24", "16.12.2006, 17:25"], "2006-12-16 17:24", "2006-12-16 17:25"),
        (
            ["16/12/2006 17:24:00.5", "16/12/2006 17:24:01.25"],
            "2006-12-16T17:24:00.5",
            "2006-12-16T17:24:01.25",
        ),
        (["16/12/2006 17:24Z", "17/12/2006 17:24Z"], "2006-12-16 17:24Z", "2006-12-17 17:24Z"),
        (["16 12 2006", "17 12 2006"], "2006-12-16", "2006-12-17"),
        # The year comes first: ISO 8601, as forecasts of this package are written.
        (["2006-12-10", "2006-12-11"], "2006-12-10", "2006-12-11"),
        (["2006-12", "2007-01"], "2006-12-01", "2007-01-01"),
    ],
)
def test_the_day_comes_first(texts, first, second):
    stamps = series_of(texts, day_first=True).stamps
    assert [stamps[0], stamps[1]] == [pd.Timestamp(first), pd.Timestamp(second)]


@pytest.mark.parametrize(
    "texts, message",
    [
        (
            ["12/16/2006"],
            r"'%d/%m/%Y'.*`date_format` \(--date-format\), such as '%m/%d/%Y'.*row 1$",
        ),
        (["5/4/2006", "5/13/2006"], r"such as '%m/%d/%Y'.*'5/13/2006' in row 2$"),
        (["16/12/2006", "12/16/2006"], "the day comes first in some rows and the month in others"),
        (["Datum", "16/12/2006"], r"\(`skip_rows` \(--skip-rows\) and .*'Datum' in row 1$"),
        (["16/12/2006 5 pm"], r"is for other forms\. Received: '16/12/2006 5 pm' in row 1$"),
        (["16/12/06"], r"years of four digits .*%y.*'16/12/06' in row 1$"),
        (["16/12/2006", "17.12.2006"], r"'17\.12\.2006' in row 2$"),
        (["16/12/2006 17:24", "16/12/2006"], r"'16/12/2006' in row 2$"),
        (["29/02/2024", "29/02/2025"], r"'29/02/2025' in row 2$"),
        (["16 Dec 2006"], r"for `day_first`; `date_format`.*'16 Dec 2006' in row 1$"),
        (["16/12-2006"], r"for `day_first`; `date_format`.*'16/12-2006' in row 1$"),
        ([16122006], r"hold text such as 16/12/2006 for `day_first`"),
        (["16/12/2006", None], r"hold a time in every row.*an empty cell in row 2$"),
        ([None, "16/12/2006"], r"hold a time in every row.*an empty cell in row 1$"),
    ],
)
def test_days_that_cannot_come_first(texts, message):
    with pytest.raises(ValueError, match=message):
        series_of(texts, day_first=True)


@pytest.mark.parametrize(
    "texts, advice",
    [
        (["16/12/2006"], r"\(`day_first` \(--day-first\)\)\. Received"),
        (["5/4/2006", "16/4/2006"], r"\(`day_first` \(--day-first\)\)\. Received"),
        (["12/16/2006"], r"\(`date_format` \(--date-format\), such as '%m/%d/%Y'\)\. Received"),
        (["5.4.2006"], r"`day_first` .* if the day comes first, .*'%m\.%d\.%Y', if the month does"),
        (["16-12-06"], r"`date_format` \(--date-format\), such as '%d-%m-%y'"),
        (["16/12/2006", "12/16/2006"], "the day comes first in some rows and the month in others"),
        ([" 2024-01-01"], r"`strip` \(--strip\)"),
        (["date", "2024-01-01"], r"`skip_rows` \(--skip-rows\) and `comment` \(--comment\)"),
    ],
)
def test_errors_of_times_name_the_option_that_would_help(texts, advice):
    with pytest.raises(ValueError, match=advice):
        series_of(texts)


def test_other_errors_of_times_are_as_they_were():
    for texts in (["2024-01-01", "soon"], ["2024-13-01"], ["2024-01-01", "2024-01-01+01:00"]):
        with pytest.raises(
            ValueError, match=r"`date_format`, --date-format, is for other forms\)\. Received"
        ) as error:
            series_of(texts)
        assert str(error.value).count("(") == 1
    with pytest.raises(ValueError, match="`date_format` and `day_first` must not both"):
        series_of(["1/2/2006"], day_first=True, date_format="%d/%m/%Y")
    with pytest.raises(ValueError, match="`date_format` and `day_first` must not both"):
        Columns("t", ("y",), date_format="%d/%m/%Y", day_first=True)
    with pytest.raises(TypeError, match="`day_first` must be True or False"):
        Columns("t", ("y",), day_first=1)


@pytest.mark.parametrize(
    "table, given, first",
    [
        (
            {"Date": ["2006-12-16", "2006-12-17"], "Time": ["17:24", "00:00"]},
            {},
            "2006-12-16 17:24",
        ),
        (
            {"Date": ["16/12/2006", "17/12/2006"], "Time": ["17:24:00", "01:00:00"]},
            {"day_first": True},
            "2006-12-16 17:24",
        ),
        (
            {"Date": [20061216, 20061217], "Time": ["0030", "0130"]},
            {"date_format": "%Y%m%d %H%M"},
            "2006-12-16 00:30",
        ),
        (
            {"year": [2006, 2007], "month": [2, 3], "day": [9, 10]},
            {"date_format": "%Y %m %d"},
            "2006-02-09",
        ),
        (
            {"day": [9.0, 10.0], "month": [2, 3], "year": [2006, 2007]},
            {"day_first": True},
            "2006-02-09",
        ),
        (
            {
                "d": pd.to_datetime(["2006-12-16", "2006-12-17"]),
                "t": [datetime.time(17, 24), datetime.time(1)],
            },
            {},
            "2006-12-16 17:24",
        ),
    ],
)
def test_a_time_in_several_columns(table, given, first):
    frame = pd.DataFrame({**table, "y": [1.0, 2.0]})
    before = frame.copy()
    parts = list(table)
    columns = Columns.resolve(frame, parts, **given)
    assert columns.time_parts == tuple(parts) and columns.time_column == " ".join(parts)
    assert columns.target_columns == ("y",)
    assert Columns.from_config(json.loads(json.dumps(columns.get_config()))) == columns
    (series,) = split_table(frame, columns)
    assert series.stamps[0] == pd.Timestamp(first) and series.stamps.name == " ".join(parts)
    pd.testing.assert_frame_equal(frame, before)
    assert Series.from_frame(frame, parts, "y", **given).stamps.equals(series.stamps)
    # What the series itself writes has the joined column.
    (again,) = split_table(series.to_frame(), columns)
    assert again.stamps.equals(series.stamps)


def test_columns_of_earlier_files_have_one_column_of_time():
    config = Columns("t", ("y",)).get_config()
    del config["time_parts"], config["day_first"]
    assert Columns.from_config(config) == Columns("t", ("y",))


@pytest.mark.parametrize("form", [{"day_first": True}, {"date_format": "%d/%m/%Y %H:%M"}])
def test_the_joined_column_instead_of_its_parts(form):
    columns = Columns.resolve(
        pd.DataFrame({"Date": ["16/12/2006"], "Time": ["17:24"], "y": [1.0]}),
        ["Date", "Time"],
        **form,
    )
    for text in ("16/12/2006 17:24", "2006-12-16 17:24:00"):
        (series,) = split_table(pd.DataFrame({"Date Time": [text], "y": [1.0]}), columns)
        assert series.stamps[0] == pd.Timestamp("2006-12-16 17:24")
        future = pd.DataFrame({"Date Time": [text.replace("17:24", "18:24")]})
        longer = extend_series(series, future=future, columns=columns)
        assert longer.stamps[1] == pd.Timestamp("2006-12-16 18:24")
    with pytest.raises(
        ValueError, match=r"'%d/%m/%Y %H:%M', all with.*'17\.12\.2006 18:24' in row 1"
    ):
        other = pd.DataFrame({"Date Time": ["17.12.2006 18:24"], "y": [1.0]})
        split_table(
            other, dataclasses.replace(columns, date_format="%d/%m/%Y %H:%M", day_first=False)
        )
    future = pd.DataFrame({"Time": ["18:24", "19:24"], "Date": ["16/12/2006"] * 2})
    longer = extend_series(series, future=future, columns=columns, num_rows=1)
    assert longer.stamps[1] == pd.Timestamp("2006-12-16 18:24")


def test_a_future_of_many_series_in_two_columns():
    past = pd.DataFrame(
        {"id": ["b", "a"], "Date": ["2006-12-16"] * 2, "Time": ["17:24", "17:25"], "y": [1.0, 2.0]}
    )
    columns = Columns.resolve(past, ["Date", "Time"], id_column="id")
    series = {one.name: one for one in split_table(past, columns)}
    future = past.assign(Time=["18:24", "18:25"])
    for name, rows in split_future(future, columns, ["a", "b"]).items():
        longer = extend_series(series[name], future=rows, columns=columns)
        assert (
            str(longer.stamps[1]) == {"b": "2006-12-16 18:24:00", "a": "2006-12-16 18:25:00"}[name]
        )
    bad = split_future(past.assign(Time=["18:24", None]), columns, ["a"])["a"]
    with pytest.raises(
        ValueError, match=r"`Date Time` of `future` must hold a time.* in row 2 \(id"
    ):
        extend_series(series["a"], future=bad, columns=columns)


@pytest.mark.parametrize(
    "changes, time, message",
    [
        (
            {},
            ["Date", "Clock"],
            r"one column 'Clock'; it is missing\. Received: 'Date', 'Time', 'y'$",
        ),
        (
            {"Date Time": ["x"]},
            ["Date", "Time"],
            "either the column 'Date Time' or those that make",
        ),
        ({}, ["Date", "y"], "`target_columns` and `time_parts` must not share a column"),
        ({}, ["Date", "Date"], r"`time_column` must name"),
        ({}, [], r"`time_column` must name"),
        ({"Time": [None]}, ["Date", "Time"], "`Date Time` must hold a time in every row"),
        ({"Date": [None]}, ["Date", "Time"], "`Date Time` must hold a time in every row"),
        ({"Time": ["25:00"]}, ["Date", "Time"], r"Received: '2006-12-16 25:00' in row 1$"),
        ({}, None, r"a list of them, or --time more than once, joins them.*'Date', 'Time'$"),
    ],
)
def test_parts_that_make_no_time(changes, time, message):
    frame = pd.DataFrame({"Date": ["2006-12-16"], "Time": ["17:24"], "y": [1.0]}).assign(**changes)
    with pytest.raises(ValueError, match=message):
        split_table(frame, Columns.resolve(frame, time, "y"))


def test_values_are_no_parts():
    frame = pd.DataFrame({"Date": ["2006-12-16"], "y": [1.0]})
    for values in ([1.0, 2.0], [0, 1], np.array(["a", "b"])):
        with pytest.raises(TypeError, match="`time_column` must be the name of a column"):
            Columns.resolve(frame, values)
    assert Columns.resolve(frame, ["Date"]) == Columns("Date", ("y",))


def test_parts_of_a_file_keep_their_zeros(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Date;Time;y\n16122006;0030;1.500\n16122006;0130;?\n")
    options = {"separator": ";", "thousands": ".", "decimal": ",", "missing": "?"}
    form = {"date_format": "%d%m%Y %H%M"}
    series = read_series(path, ["Date", "Time"], "y", **options, **form)
    assert series.stamps[1] == pd.Timestamp("2006-12-16 01:30")
    np.testing.assert_array_equal(series.values[:, 0], [1500, np.nan])
    frame = read_table(path, text_columns=["Date", "Time"], **options)
    assert frame["Time"].tolist() == ["0030", "0130"]
