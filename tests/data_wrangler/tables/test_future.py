"""Rows to predict: from tables of the future, of one and of several series."""

import time

import numpy as np
import pandas as pd
import pytest
from tables import check_follows, series_of

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.future import FutureRows, extend_series, split_future
from taylorformer.data_wrangler.tables.long_table import split_table
from taylorformer.data_wrangler.tables.series import Series

SHOPS = Columns("ds", ("y",), "unique_id", ("k",))


def series_with_covariate(times=("2024-01-01", "2024-01-02")):
    frame = pd.DataFrame({"t": times, "y": [1.0, 2.0], "k": [True, False]})
    return Series.from_frame(frame, "t", "y", covariate_columns="k", name="plant")


def test_rows_without_y_follow():
    series = series_of(["2024-01-01", "2024-01-02"])
    longer = extend_series(series, num_rows=2)
    assert longer.num_rows == 4 and longer.missing == {"y": 2}
    assert np.diff(longer.time).tolist() == [series.duration("1 day")] * 3
    assert longer.time.dtype == np.int64 and longer.stamps[-1] == pd.Timestamp("2024-01-04")
    np.testing.assert_array_equal(longer.time[:2], series.time)
    # The one that was given is as it was.
    assert series.num_rows == 2


def test_a_future_gives_stamps_and_covariates_and_no_target():
    series = series_with_covariate()
    future = pd.DataFrame(
        {
            "k": [False, True, True],
            "t": ["2024-01-05", "2024-01-06", "2024-02-01"],
            "y": ["garbage", 1e99, None],
        }
    )
    longer = extend_series(series, future=future)
    assert np.isnan(longer.values[2:]).all() and longer.name == "plant"
    assert longer.covariates[:, 0].tolist() == [1, 0, 0, 1, 1]
    assert list(longer.stamps[2:].astype(str)) == ["2024-01-05", "2024-01-06", "2024-02-01"]
    without = extend_series(series, future=future.drop(columns="y"), num_rows=2)
    assert without.num_rows == 4
    np.testing.assert_array_equal(without.time, longer.time[:4])


@pytest.mark.parametrize(
    "times, future",
    [
        (
            pd.date_range("2024-01-01", periods=2, unit="s"),
            pd.date_range("2024-01-03", periods=2, unit="ns"),
        ),
        (
            pd.date_range("2024-01-01", periods=2, unit="ns"),
            pd.date_range("2024-01-03", periods=2, unit="s"),
        ),
        (
            pd.date_range("2024-01-01", periods=2, tz="Europe/Paris"),
            pd.date_range("2024-01-03 12:00", periods=2, tz="UTC", unit="ms"),
        ),
        (pd.period_range("2024-01", periods=2, freq="M"), ["2024-03", "2024-05"]),
        (
            pd.period_range("2024-01", periods=2, freq="M"),
            pd.period_range("2024-04-01", periods=2, freq="Q"),
        ),
        (["2024-01-01", "2024-02-01"], pd.period_range("2024-03", periods=2, freq="M")),
        ([1, 2], [3.0, 4.0]),
        ([1.0, 2.0], [3, 2**53]),
        ([1.0, 2.0], [2.5, 3.0]),
    ],
)
def test_stamps_of_a_future_become_those_of_the_series(times, future):
    series = series_of(times)
    longer = extend_series(series, future=pd.DataFrame({"t": future}))
    check_follows(series, longer.stamps[2:], 2)
    assert longer.time.dtype == series.time.dtype and longer.time_unit == series.time_unit
    # The instants are the same.
    again = series_of(future)
    assert [longer.time_label(row) for row in (2, 3)] == [again.time_label(row) for row in (0, 1)]


@pytest.mark.parametrize(
    "times, future, message",
    [
        (
            [1, 2],
            [3, 4, 4],
            r"`t` of `future` must be after .* 4 \(each time may .*\)\. Received: 4 in row 3$",
        ),
        ([1, 2], [2, 3], r"after the last row of the series, 2\. Received: 2 in row 1$"),
        (
            [1, 2],
            [3, 5, 4],
            r"must be after .*row 2, 5 \(unsorted=\"sort\", --sort, .*\)\. Received: 4 in row 3$",
        ),
        (["2024-01-01", "2024-01-02"], ["2024-01-02"], r"2024-01-02 00:00:00 in row 1$"),
        ([1, 2], [2.5, 3], r"hold times that int64 can hold exactly.*Received: 2\.5 in row 1$"),
        ([1, 2], [3, 1e300], r"can hold exactly.* Received: 1e\+300 in row 2$"),
        ([1.0, 2.0], [3, 2**53 + 1], r"float64 can hold exactly.*9007199254740993 in row 2$"),
        (
            pd.date_range("2024-01-01", periods=2, unit="s"),
            pd.date_range("2024-01-03", periods=2, freq="5ms"),
            r"datetime64\[s\] can hold exactly.*00:00:00\.005000 in row 2$",
        ),
        (
            pd.period_range("2024-01", periods=2, freq="M"),
            ["2024-03-01", "2024-04-02"],
            r"period\[M\] can hold exactly.*2024-04-02 00:00:00 in row 2$",
        ),
        (
            pd.date_range("2024-01-01", periods=2, unit="ns"),
            pd.date_range("2300-01-01", periods=1, unit="s"),
            r"in the range of datetime64\[ns\].*2300-01-01 00:00:00 to ",
        ),
        ([1, 2], ["2024-01-01"], r"must hold numbers, as the series does.*dates without"),
        (["2024-01-01", "2024-01-02"], [3], r"must hold dates without a time zone.*numbers.*3$"),
        (
            ["2024-01-01", "2024-01-02"],
            ["2024-01-03T00:00Z"],
            r"must hold dates without a time zone, .* dates with a time zone",
        ),
        (
            ["2024-01-01T00:00Z", "2024-01-02T00:00Z"],
            ["2024-01-03"],
            r"must hold dates with a time zone, .* dates without a time zone",
        ),
        (
            ["2024-01-01", "2024-01-02"],
            ["2024-01-03", "-"],
            r"`t` of `future` must hold dates .*'-' in row 2$",
        ),
        ([1, 2], [3, np.nan], r"`t` of `future` must hold a time in every row.* in row 2$"),
        ([1, 2], [0, 2**63], r"`t` of `future` must hold times whose differences.* to 922\d+$"),
        ([1, 2], [], r"`future` must have at least one row"),
    ],
)
def test_bad_stamps_of_a_future(times, future, message):
    with pytest.raises(ValueError, match=message):
        extend_series(series_of(times), future=pd.DataFrame({"t": future}))


def test_a_future_by_other_columns():
    series = series_of(["2024-01-01", "2024-01-02"])
    future = pd.DataFrame({"day": ["03.01.2024", "04.01.2024"]})
    columns = Columns("day", ("y",), date_format="%d.%m.%Y")
    longer = extend_series(series, future=future, columns=columns)
    assert longer.stamps[-1] == pd.Timestamp("2024-01-04") and longer.time_column == "t"
    # An index of dates, with or without a name.
    index = pd.date_range("2024-01-03", periods=2)
    for name in ("t", "index"):
        table = pd.DataFrame(index=index.rename(None if name == "index" else name))
        longer = extend_series(series, future=table, columns=Columns(name, ("y",)))
        assert longer.stamps[-1] == index[-1]


@pytest.mark.parametrize(
    "values, message",
    [
        ([1.0, np.nan], r"`k` of `future` must hold a finite number.*in row 2$"),
        (["x", 1], r"`k` of `future` must hold a number.*'x' in row 1$"),
    ],
)
def test_bad_covariates_of_a_future(values, message):
    future = pd.DataFrame({"t": ["2024-01-03", "2024-01-04"], "k": values})
    with pytest.raises(ValueError, match=message):
        extend_series(series_with_covariate(), future=future)


def test_what_must_be_given():
    plain, covariate = series_of([1, 2]), series_with_covariate((1, 2))
    with pytest.raises(ValueError, match="`num_rows` or `future` must be given"):
        extend_series(plain)
    with pytest.raises(ValueError, match="`future` must give the covariates 'k'"):
        extend_series(covariate, num_rows=3)
    with pytest.raises(ValueError, match="`future` must have one column 'k'; it is missing"):
        extend_series(covariate, future=pd.DataFrame({"t": [3]}))
    with pytest.raises(ValueError, match="one column 't'; it is missing"):
        extend_series(plain, future=pd.DataFrame({"time": [3]}))
    with pytest.raises(ValueError, match=r"at least num_rows = 3 rows\. Received: 2"):
        extend_series(plain, future=pd.DataFrame({"t": [3, 4]}), num_rows=3)
    with pytest.raises(TypeError, match="`future` must be a pandas DataFrame"):
        extend_series(plain, future=[3, 4])
    with pytest.raises(ValueError, match="`columns` must name D_c = 1 covariates"):
        extend_series(covariate, future=pd.DataFrame({"t": [3]}), columns=Columns("t", ("y",)))


def test_names_of_columns_may_be_any_in_a_series():
    day = pd.Timestamp("2024")
    series = Series.from_frame(pd.DataFrame({day: [1, 2], "y": 0.0}), day, "y")
    assert extend_series(series, future=pd.DataFrame({day: [3]})).time.tolist() == [1, 2, 3]


def shops(ids=("shop 1", "shop 2")):
    frame = pd.DataFrame({"unique_id": [ids[0], ids[1]] * 2, "ds": [1, 1, 2, 2], "y": 0.0, "k": 0})
    return {one.name: one for one in split_table(frame, SHOPS)}


def future_of_shops(**changes):
    frame = pd.DataFrame(
        {
            "unique_id": ["shop 2", "shop 1", "new", "shop 2", "shop 1"],
            "ds": [3, 4, 0, 4, 6],
            "k": [20, 10, -1, 21, 11],
        }
    )
    return frame.assign(**changes)


@pytest.mark.parametrize("index", [None, "unique_id", ["unique_id", "ds"]])
def test_each_series_gets_its_own_future(index):
    series, future = shops(), future_of_shops()
    future = future if index is None else future.set_index(index)
    parts = split_future(future, SHOPS, list(series))
    assert list(parts) == ["shop 1", "shop 2"]
    for name, times, covariates in (("shop 1", [4, 6], [10, 11]), ("shop 2", [3, 4], [20, 21])):
        longer = extend_series(series[name], future=parts[name], columns=SHOPS)
        assert longer.time.tolist() == [1, 2, *times] and longer.name == name
        assert longer.covariates[2:, 0].tolist() == covariates
        first = extend_series(series[name], future=parts[name], num_rows=1)
        assert first.time.tolist() == [1, 2, times[0]]
    assert parts["shop 1"].numbers.tolist() == [2, 5]


def test_without_ids_every_series_gets_the_whole_future():
    columns = Columns("ds", ("y",), covariate_columns=("k",))
    future = pd.DataFrame({"k": [1, 2]}, pd.Index([3, 4], name="ds"))
    parts = split_future(future, columns, ["a", "b"])
    series = shops()["shop 1"]
    for name in ("a", "b"):
        assert extend_series(series, future=parts[name]).time.tolist() == [1, 2, 3, 4]
    future["k"] = [1, np.nan]
    with pytest.raises(ValueError, match=r"`k` of `future` must .* an empty cell in row 2$"):
        extend_series(series, future=split_future(future, columns, [""])[""])


@pytest.mark.parametrize(
    "past, ahead",
    [([1, 2], [1.0, 2.0]), ([1.0, 2.0], ["1", "2"]), (["1", "2"], [1, 2]), ([1, 2.5], [1, 2.5])],
)
def test_ids_of_a_future_may_be_spelled_as_other_numbers(past, ahead):
    names = list(shops(past))
    future = pd.DataFrame({"unique_id": ahead, "ds": [3, 4], "k": 0})
    parts = split_future(future, SHOPS, names)
    assert [parts[name].frame["ds"].tolist() for name in names] == [[3], [4]]


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"ds": [3, 4, 0, 3, 6]},
            r"after the stamp of row 1, 3 .*\. Received: 3 in row 4 .*'shop 2'\)$",
        ),
        ({"ds": [3, 2, 0, 4, 6]}, r"row of the series, 2\. Received: 2 in row 2 .*'shop 1'\)$"),
        ({"ds": [3, 4, 0, 4, 6.5]}, r"hold exactly.* Received: 6\.5 in row 5 .*'shop 1'\)$"),
        ({"ds": [3, 4, 0, 4, None]}, r"every row\. .*empty cell in row 5 .*'shop 1'\)$"),
        ({"ds": ["2024"] * 5}, r"hold numbers, as the series does.*, such as .*'shop 1'\)$"),
        ({"ds": [3, 2**63, 0, 4, 0]}, r"fit in 64 bits\. Received: 0 to 922\d+ .*'shop 1'\)$"),
        ({"k": [0, 0, np.nan, np.nan, 0]}, r"finite number.* in row 4 \(unique_id 'shop 2'\)$"),
        ({"k": list("012-4")}, r"hold a number, .*'-' in row 4 \(unique_id 'shop 2'\)$"),
    ],
)
def test_errors_of_a_part_name_the_row_of_the_future_and_the_id(changes, message):
    series = shops()
    parts = split_future(future_of_shops(**changes), SHOPS, list(series))
    with pytest.raises(ValueError, match=f"^Column `.*` of `future` must .*{message}"):
        for name, one in series.items():
            extend_series(one, future=parts[name], columns=SHOPS)


def test_a_part_with_too_few_rows():
    part = split_future(future_of_shops(), SHOPS, ["shop 1"])["shop 1"]
    message = r"`future` must have at least num_rows = 3 .* Received: 2 \(unique_id 'shop 1'\)$"
    with pytest.raises(ValueError, match=message):
        extend_series(shops()["shop 1"], future=part, num_rows=3)


def test_futures_that_cannot_be_split():
    names = ["shop 1", "shop 2"]
    for future in (None, [3, 4], shops()["shop 1"]):
        with pytest.raises(TypeError, match="`future` must be a pandas DataFrame"):
            split_future(future, SHOPS, names)
    for future, message in (
        (future_of_shops().drop(columns="unique_id"), r"the column 'unique_id', .*: 'ds', 'k'$"),
        (future_of_shops()[:0], "`future` must have at least one row"),
        (
            future_of_shops(unique_id=["shop 1", "shop 2", None, None, ""]),
            r"`unique_id` of `future` must hold an id in every row\. .*an empty cell in row 3$",
        ),
        (
            future_of_shops(unique_id=[1, "1", 1, 1, 1]),
            r"`unique_id` of `future` must hold ids that differ as text, too\. .*1 and '1'$",
        ),
        (
            future_of_shops()[1:3],
            r"^`future` must have rows for every series\. Received: none for shop 2$",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            split_future(future, SHOPS, names)
    for count, end in ((5, "a0, a1, a2, a3, a4"), (7, "a0, a1, a2, a3, a4 and 2 more")):
        with pytest.raises(ValueError, match=f"none for {end}$"):
            split_future(future_of_shops(), SHOPS, [f"a{number}" for number in range(count)])


def test_many_futures_take_little_time():
    # A filter for each id would read 400 million rows.
    count, rows = 2_000, 100
    ids = np.tile(np.arange(count), rows)
    future = pd.DataFrame({"unique_id": ids, "ds": np.repeat(np.arange(rows), count)})
    begin = time.perf_counter()
    parts = split_future(future, SHOPS, [str(name) for name in range(count)])
    assert time.perf_counter() - begin < 5
    assert isinstance(parts["7"], FutureRows) and len(parts) == count
    assert parts["7"].numbers[:3].tolist() == [8, 2008, 4008]
