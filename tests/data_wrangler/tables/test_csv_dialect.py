"""Dialects of CSV: what each option reads, what is refused, and which option an error names."""

import gzip

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.csv_dialect import CsvDialect
from taylorformer.data_wrangler.tables.files import read_series, read_table
from taylorformer.data_wrangler.tables.series import Series

NAN = np.nan


@pytest.fixture
def file_of(tmp_path):
    def write(text, encoding="utf-8", name="table.csv"):
        path = tmp_path / name
        content = text.encode(encoding)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.mark.parametrize(
    "cells, missing, wanted",
    [
        ([".", "1.49", "."], ".", [NAN, 1.49, NAN]),
        (["-999.99", "380.4", "-999.9900"], -999.99, [NAN, 380.4, NAN]),
        (["-999.99", "380.4", "-9.9999e2"], "-999.990", [NAN, 380.4, NAN]),
        (["-9999", "5", "-09999"], "-9999", [NAN, 5, NAN]),
        (["-9999.0", "5.5", "-9999"], -9999, [NAN, 5.5, NAN]),
        (["n/m", "?", "- "], ["n/m", "?", "- "], [NAN, NAN, NAN]),
        (["0", "-0.0", "0.1"], 0, [NAN, NAN, 0.1]),
        (["1e20", "100000000000000000000", "1"], 1e20, [NAN, NAN, 1]),
        # No mark, however near.
        (["-999.989", "-999.99000001", "999.99"], -999.99, [-999.989, -999.99000001, 999.99]),
        (["NA", "", "NaN"], ".", [NAN, NAN, NAN]),
    ],
)
def test_marks_of_missing_values(file_of, cells, missing, wanted):
    path = file_of("t,y\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))
    np.testing.assert_array_equal(read_series(path, "t", "y", missing=missing).values[:, 0], wanted)


def test_marks_count_in_no_id_and_no_time(file_of):
    path = file_of("unique_id,ds,y,k\n-1,-1,-1,-1\n.,0,.,1\n-1,1,3,2\n")
    frame = read_table(path, text_columns="unique_id", missing=[-1, "."])
    assert frame["unique_id"].tolist() == ["-1", ".", "-1"] and frame["ds"].tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(frame["y"], [NAN, NAN, 3])
    np.testing.assert_array_equal(frame["k"], [NAN, 1, 2])
    # What the time is can be said, and is guessed by its name, or as the first column, otherwise.
    path = file_of("y,when\n0,0\n1,1\n")
    assert read_table(path, missing=0)["when"].isna().tolist() == [True, False]
    assert not read_table(path, missing=0, time_columns="when")["when"].isna().any()
    assert read_series(path, "when", "y", missing=0).time.tolist() == [0, 1]


@pytest.mark.parametrize(
    "text, options, wanted",
    [
        ('t,y\n1,"1,500.0"\n2,"-12,345,678"\n3,7\n', {"thousands": ","}, [1500, -12345678, 7]),
        ("t;y\n1;1.500,5\n2;2\n3;0,5\n", {"thousands": ".", "decimal": ","}, [1500.5, 2, 0.5]),
        ("t;y\n1;1 500.5\n2;-12 345\n3;.5\n", {"thousands": " "}, [1500.5, -12345, 0.5]),
        ("t;y\n1;1'500.5\n2;12'345\n3;1e3\n", {"thousands": "'"}, [1500.5, 12345, 1000]),
        (
            "t;y\n1;12,34,567\n2;1,00,000.5\n3;99,999\n",
            {"thousands": ","},
            [1234567, 100000.5, 99999],
        ),
        # Marks in the form of Python, and in that of the file.
        (
            "t;y\n1;-999,990\n2;-999,99\n3;1,5\n",
            {"decimal": ",", "missing": "-999,99"},
            [NAN, NAN, 1.5],
        ),
        (
            "t;y\n1;-999.99 \n2;-999,99\n3;1.500\n",
            {"decimal": ",", "thousands": ".", "missing": -999.99},
            [NAN, NAN, 1500],
        ),
        ("t;y\n1;-9,999\n2;1,500\n3;\n", {"thousands": ",", "missing": -9999}, [NAN, 1500, NAN]),
    ],
)
def test_groups_of_digits(file_of, text, options, wanted):
    separator = ";" if ";" in text else ","
    series = read_series(file_of(text), "t", "y", separator=separator, **options)
    np.testing.assert_array_equal(series.values[:, 0], wanted)


def test_groups_of_digits_do_not_change_dates_or_decimals(file_of):
    options = {"separator": ";", "thousands": ".", "decimal": ",", "date_format": "%d.%m.%Y"}
    path = file_of("y;day\n1.500;16.12.2006\n2.500;17.12.2006\n")
    series = read_series(path, "day", "y", **options)
    assert series.stamps[0] == pd.Timestamp("2006-12-16") and series.values[0, 0] == 1500
    for cell in ("1.5", "1.50", "1500.500", "1.2345", ".500", "1.500.50"):
        path = file_of(f"day;y\n16.12.2006;1\n17.12.2006;{cell}\n")
        with pytest.raises(ValueError, match=rf"in groups of three digits.*'{cell}' in row 2$"):
            read_series(path, "day", "y", **options)


def test_a_number_of_another_form_is_not_guessed(file_of):
    for other in ("", "day;y\n16.12.2006;2,5\n"):
        # 1.5, or 1500 where groups of digits are marked.
        path = file_of((other or "day;y\n") + "17.12.2006;1.500\n")
        options = {"separator": ";", "decimal": ",", "date_format": "%d.%m.%Y"}
        with pytest.raises(
            ValueError, match=r"`y` must hold numbers.*`thousands`.*'1\.500' in row"
        ):
            read_series(path, "day", "y", **options)
        series = read_series(path, "day", "y", thousands=".", **options)
        assert series.values[-1, 0] == 1500
    # A column that is not read is no matter.
    path = file_of("ds;y;version\n1;2,5;1.5\n")
    frame = read_table(path, separator=";", decimal=",", thousands=".")
    assert frame["y"].tolist() == [2.5] and frame["version"].tolist() == ["1.5"]


@pytest.mark.parametrize(
    "text, comment",
    [
        ("# Weekly values, ppm\n#\n# date, average\ndate,average\n1,380.5\n2,381.5\n", "#"),
        ("%date,ppm,x\ndate,average\n% why, not\n1,380.5 % flagged\n2,381.5%\n", "%"),
        ("!\n\n!\ndate,average\n1,380.5\n!2,3,4,5\n2,381.5\n\n!", "!"),
    ],
)
def test_comments(file_of, text, comment):
    series = read_series(file_of(text), "date", "average", comment=comment)
    assert series.values[:, 0].tolist() == [380.5, 381.5]


def test_a_comment_after_a_mark_or_in_quotes(file_of):
    path = file_of('unique_id,ds,y\n"#1",1,n.d.  # broken\n"#1",2,3 # "x"\n')
    frame = read_table(path, comment="#", missing="n.d.", text_columns="unique_id")
    assert frame["unique_id"].tolist() == ["#1", "#1"]
    np.testing.assert_array_equal(frame["y"], [NAN, 3])


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig", "shift_jis"])
@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_encodings(file_of, encoding, name):
    column = "温度" if encoding == "shift_jis" else "Température"
    path = file_of(f"date,{column}\r\n1,1.5\r\n2,\r\n", encoding, name)
    series = read_series(path, "date", column, encoding=encoding)
    np.testing.assert_array_equal(series.values[:, 0], [1.5, NAN])
    if encoding != "utf-8-sig":
        with pytest.raises(ValueError, match=r"CSV file in UTF-8|missing"):
            read_series(path, "date", column)


def test_a_byte_order_mark_where_the_encoding_says_the_order(file_of):
    path = file_of("\ufefft,y\n1,2\n", "utf-16-le")
    assert list(read_table(path, encoding="utf-16-le")) == ["t", "y"]


def test_blanks_around_names_and_cells(file_of):
    # Names and numbers need no option; two names that differ by blanks alone stay as they are.
    path = file_of(" date, average ,site\n1, 380.5 , A\n2,  381.5, B \n")
    frame = read_table(path, text_columns=("site",))
    assert list(frame) == ["date", "average", "site"] and frame["site"].tolist() == [" A", " B "]
    assert frame["average"].tolist() == [380.5, 381.5]
    assert list(read_table(file_of("y, y,t\n1,2,3\n"))) == ["y", " y", "t"]
    path = file_of(
        "ds ; id ; y\n 2024-01-01 ; 001 ; n.d. \n2024-01-02;NA;  \n2024-01-03 ;NA;1,5 \n"
    )
    options = {"separator": ";", "decimal": ",", "missing": "n.d.", "strip": True}
    frame = read_table(path, text_columns="id", **options)
    assert frame["ds"].tolist() == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert frame["id"].tolist() == ["001", "NA", "NA"]
    np.testing.assert_array_equal(frame["y"], [NAN, NAN, 1.5])
    # Read by their names without blanks, whatever the file says.
    assert read_table(file_of("id ,y\n007,1\n"), text_columns="id")["id"].tolist() == ["007"]


def test_quotes_and_lines_before_the_header(file_of):
    path = file_of("'t';'a;b'\n'1';'2,5'\n")
    options = {"quote": "'", "decimal": ",", "separator": ";"}
    assert read_series(path, "t", "a;b", **options).values.tolist() == [[2.5]]
    path = file_of('Station;"Mauna, Loa"\n\nwritten by nobody\nt,y\n1,2.5\n')
    assert read_series(path, "t", "y", skip_rows=3).values[0, 0] == 2.5


@pytest.mark.parametrize(
    "options, message",
    [
        ({"thousands": "."}, "`decimal` and `thousands` must not be the same"),
        ({"separator": ";", "comment": ";"}, "`separator` and `comment` must not be the same"),
        ({"thousands": "'", "quote": "'"}, "`thousands` and `quote` must not be the same"),
        ({"thousands": "#", "comment": "#"}, "`thousands` and `comment` must not be the same"),
        ({"comment": "//"}, "`comment` must be one character"),
        ({"comment": ""}, "`comment` must be one character"),
        ({"comment": "-"}, "`comment` must be one character"),
        ({"thousands": "e"}, "`thousands` must be one character"),
        ({"thousands": "\u00a0"}, "`thousands` must be one character"),
        ({"quote": "''"}, "`quote` must be one character"),
        ({"encoding": "utf-7777"}, "`encoding` must be a text encoding"),
        ({"encoding": "base64"}, "`encoding` must be a text encoding"),
        ({"encoding": ""}, "`encoding` must be a text encoding"),
        ({"skip_rows": -1}, "`skip_rows` must be at least 0"),
        ({"missing": ""}, "`missing` must hold text of one line"),
        ({"missing": [".", "a\nb"]}, "`missing` must hold text of one line"),
        ({"missing": [np.inf]}, "`missing` must hold finite numbers"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        read_table("no file is read", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"thousands": 1},
        {"comment": b"#"},
        {"quote": None},
        {"encoding": None},
        {"skip_rows": 1.5},
        {"skip_rows": True},
        {"strip": 1},
        {"missing": True},
        {"missing": [None]},
        {"missing": None},
    ],
)
def test_options_of_another_type(options):
    (name,) = options
    with pytest.raises(TypeError, match=f"`{name}` must"):
        CsvDialect(**options)


@pytest.mark.parametrize(
    "text, options, words",
    [
        # Text in a target: a mark, groups of digits, a decimal comma, blanks.
        ("t,y\n1,.\n2,1.5\n", {}, ["`missing` (--missing)", "'.' in row 1"]),
        ("t,y\n1,2\n2,n/m\n", {}, ["`missing` (--missing)", "'n/m' in row 2"]),
        ("t,y\n1,2\n2,-\n", {}, ["`missing` (--missing)", "'-' in row 2"]),
        ('t,y\n1,"1,500.0"\n', {}, ["`thousands` (--thousands)", "'1,500.0' in row 1"]),
        ("t;y\n1;1.500,5\n", {"separator": ";"}, ["`thousands` (--thousands)", "`decimal`"]),
        ("t;y\n1;1'500\n", {"separator": ";"}, ["`thousands` (--thousands)", "row 1"]),
        ("t;y\n1;2,5\n", {"separator": ";"}, ["`decimal` (--decimal)", "'2,5' in row 1"]),
        ("t,y\n1,2\n2,  \n", {}, ["`strip` (--strip)", "'  ' in row 2"]),
        # Where some cells are numbers of the dialect, the others are to blame.
        (
            "t;y\n1;1,5\n2;-\n",
            {"separator": ";", "decimal": ","},
            ["`missing` (--missing)", "'-' in row 2"],
        ),
        (
            't,y\n1,"1,500"\n2,?\n',
            {"thousands": ","},
            ["`missing` (--missing)", "'?' in row 2"],
        ),
        ("t,y\n1,2.5 # why\n", {}, ["`comment` (--comment '#')", "'2.5 # why' in row 1"]),
        ("t,y\n1,# why\n", {}, ["`missing` (--missing)", "'# why' in row 1"]),
        # Lines that do not fit the header.
        ("# a\nt,y\n1,2\n", {}, ["'#'", "`comment` (--comment '#')", "`skip_rows`"]),
        ("# a, b\n# c, d, e\nt,y\n1,2\n", {}, ["'#'", "`comment` (--comment '#')"]),
        ("Station\nt,y\n1,2\n", {}, ["`skip_rows` (--skip-rows)", "`comment` (--comment)"]),
        ("t,y\n1,2\n1,2,3\n", {}, ["`separator` (--separator)", "line 3, saw 3"]),
        ("t;y\n1;2,5\n", {}, ["'t;y'", "`separator` (--separator) may have to be ';'"]),
        ("t;y\n1;2\n", {}, ["'t;y'", "`separator` (--separator) may have to be ';'"]),
        ("t\ty\n1\t2\n", {}, [r"may have to be '\t'"]),
        ("t,y\n1,2\n", {"separator": ";"}, ["may have to be ','"]),
        ("t|y\n1|2\n", {}, ["may have to be '|'"]),
        ("a,b\nt,y\n1,2\n", {"names": ("a", "b")}, ["`skip_rows` (--skip-rows)", "'t' in row 1"]),
    ],
)
def test_errors_name_the_option_that_would_help(file_of, text, options, words):
    options = dict(options)
    time, target = options.pop("names", ("t", "y"))
    with pytest.raises(ValueError) as error:
        read_series(file_of(text), time, target, **options)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "encoding, example", [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("latin-1", "cp1252")]
)
def test_an_error_of_decoding_names_the_encoding(file_of, encoding, example):
    path = file_of("date,Température\n1,1.5\n", encoding)
    message = rf"in UTF-8 with .*`encoding` \(--encoding\), such as {example}, .*can't decode"
    with pytest.raises(ValueError, match=message):
        read_table(path)
    with pytest.raises(ValueError, match="CSV file in ASCII with a header line"):
        read_table(path, encoding="ascii")


def test_a_column_with_blanks_around_its_name():
    frame = pd.DataFrame({"t": [1], " y": [2.0]})
    with pytest.raises(ValueError, match="column 'y'; it is missing, but there is ' y', with"):
        Series.from_frame(frame, "t", "y")
    with pytest.raises(ValueError, match=r"column 'z'; it is missing\. Received"):
        Series.from_frame(frame, "t", "z")
