"""Where to predict: rules of the calendar, exact steps, and tables of the future."""

import time

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import continue_stamps
from taylorformer.data_wrangler.tables.future import FutureRows, extend_series, split_future
from taylorformer.data_wrangler.tables.long_table import split_table
from taylorformer.data_wrangler.tables.series import Series

_PARIS = {"tz": "Europe/Paris"}


def series_of(times, **options):
    return Series.from_frame(pd.DataFrame({"t": times, "y": 0.0}), "t", "y", **options)


def check_follows(series, stamps, count):
    """What holds for all: strictly increasing, after the last row, of the same kind."""
    every = series.stamps.append(stamps)
    assert len(stamps) == count and every.is_monotonic_increasing and every.is_unique
    assert stamps.dtype == series.stamps.dtype and stamps.name == series.stamps.name


@pytest.mark.parametrize(
    "times, wanted",
    [
        # What pandas infers.
        (
            pd.date_range("2024-03-01 10:00", periods=5, freq="B"),
            ["2024-03-08 10:00", "2024-03-11 10:00"],
        ),
        (["2020-01", "2020-02", "2020-03"], ["2020-04-01", "2020-05-01"]),
        (pd.date_range("2024-01-31", periods=3, freq="ME"), ["2024-04-30", "2024-05-31"]),
        (pd.date_range("2024-01-05", periods=4, freq="W-FRI"), ["2024-02-02", "2024-02-09"]),
        (pd.date_range("2024-01-01", periods=4, freq="WOM-3FRI"), ["2024-05-17", "2024-06-21"]),
        (
            pd.date_range("2024-01-01", periods=4, freq="5ms"),
            ["2024-01-01 00:00:00.020", "2024-01-01 00:00:00.025"],
        ),
        # Hours of trading, from any time on.
        (
            [f"2024-03-0{day} {hour}:30" for day in (7, 8) for hour in range(10, 18)],
            ["2024-03-11 10:30", "2024-03-11 11:30"],
        ),
        # Rules of the calendar, with rows missing.
        (
            pd.date_range("2024-03-01 17:30", periods=20, freq="B").delete([3, 4, 11]),
            ["2024-03-29 17:30", "2024-04-01 17:30"],
        ),
        (["2020-01-01", "2020-02-01", "2020-04-01"], ["2020-05-01", "2020-06-01"]),
        (["2020-01-31", "2020-02-29", "2020-04-30"], ["2020-05-31", "2020-06-30"]),
        (["2020-01-15T06:30", "2020-02-15T06:30"], ["2020-03-15 06:30", "2020-04-15 06:30"]),
        (["2020-12-30", "2021-01-30", "2021-02-28"], ["2021-03-30", "2021-04-30"]),
        (["2020-01-01", "2020-04-01", "2020-10-01", "2021-01-01"], ["2021-04-01", "2021-07-01"]),
        (["2020-03-31", "2020-06-30", "2020-12-31", "2021-03-31"], ["2021-06-30", "2021-09-30"]),
        (["2016-02-29", "2018-02-28", "2019-02-28", "2020-02-29"], ["2021-02-28", "2022-02-28"]),
        (["1960-01-01", "1961-01-01", "1963-01-01"], ["1964-01-01", "1965-01-01"]),
        # Days stay days: with rows missing, and with no weekend among them.
        (
            pd.date_range("2024-03-01", periods=15).delete([3, 4, 11]),
            ["2024-03-16", "2024-03-17"],
        ),
        (pd.date_range("2024-03-04", periods=5), ["2024-03-09", "2024-03-10"]),
        (["2024-03-07", "2024-03-08"], ["2024-03-09", "2024-03-10"]),
        # Everything else: the lower median step.
        (
            [f"2024-03-0{day} {hour}:00" for day in (7, 8) for hour in (10, 11, 13, 14)],
            ["2024-03-08 15:00", "2024-03-08 16:00"],
        ),
        (
            ["2024-01-01T00:00", "2024-01-01T00:10", "2024-01-01T01:00"],
            ["2024-01-01 01:10", "2024-01-01 01:20"],
        ),
    ],
)
def test_dates_go_on_by_their_rule(times, wanted):
    series = series_of(times)
    stamps = continue_stamps(series, 2)
    assert list(stamps) == [pd.Timestamp(date) for date in wanted]
    check_follows(series, continue_stamps(series, 30), 30)


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
def test_every_resolution_stays(resolution):
    dates = pd.date_range("2024-01-01 06:00", periods=5, unit=resolution)
    for times in (dates, dates.delete(1), dates[:2], dates[[0, 1, 4]] + pd.Timedelta("1s")):
        series = series_of(times)
        stamps = continue_stamps(series, 3)
        check_follows(series, stamps, 3)
        assert list(stamps) == [times[-1] + pd.Timedelta(day, "D") for day in (1, 2, 3)]


@pytest.mark.parametrize(
    "times, wanted",
    [
        # The clock goes from 2 to 3 on 2024-03-31, and from 3 to 2 on 2024-10-27.
        (pd.date_range("2024-03-27", periods=4, **_PARIS), ["31T00:00+01:00", "01T00:00+02:00"]),
        (
            pd.date_range("2024-03-20", periods=11, **_PARIS).delete(4),
            ["31T00:00+01:00", "01T00:00+02:00"],
        ),
        (
            pd.date_range("2024-03-28 02:30", periods=3, **_PARIS),
            ["31T03:00+02:00", "01T02:30+02:00"],
        ),
        (
            pd.date_range("2024-10-24 02:30", periods=3, **_PARIS),
            ["27T02:30+02:00", "28T02:30+01:00"],
        ),
        (
            pd.date_range("2024-01-31", periods=3, freq="ME", **_PARIS),
            ["30T00:00+02:00", "31T00:00+02:00"],
        ),
        # Steps of hours are elapsed time.
        (
            pd.date_range("2024-03-31 00:00", periods=2, freq="h", **_PARIS),
            ["31T03:00+02:00", "31T04:00+02:00"],
        ),
        (
            pd.date_range("2024-10-26 14:00", periods=3, freq="6h", **_PARIS),
            ["27T07:00+01:00", "27T13:00+01:00"],
        ),
    ],
)
def test_the_clock_on_the_wall(times, wanted):
    series = series_of(times)
    assert [
        stamp.isoformat()[8:16] + stamp.isoformat()[19:] for stamp in continue_stamps(series, 2)
    ] == wanted
    check_follows(series, continue_stamps(series, 400), 400)


@pytest.mark.parametrize(
    "freq, wanted", [("M", "2024-04"), ("Q", "2024Q4"), ("5min", "2024-01-01 00:15")]
)
def test_periods_go_on_by_their_step(freq, wanted):
    periods = pd.period_range("2024-01-01", periods=3, freq=freq)
    series = series_of(periods)
    stamps = continue_stamps(series, 2)
    assert str(stamps[0]) == wanted and stamps.freq == periods.freq
    check_follows(series, stamps, 2)
    # One is enough, and some gaps do not matter.
    assert continue_stamps(series_of(periods[2:]), 2).equals(stamps)
    many = pd.period_range(end=periods[2], periods=9, freq=freq)
    assert continue_stamps(series_of(many.delete([1, 4, 5])), 2).equals(stamps)


@pytest.mark.parametrize(
    "periods, wanted",
    [
        (["2024-01", "2024-04", "2024-07"], ["2024-10", "2025-01"]),
        (["2023-10", "2024-01", "2024-07", "2024-10"], ["2025-01", "2025-04"]),
        (["2024-01", "2024-03"], ["2024-05", "2024-07"]),
    ],
)
def test_periods_that_lie_apart_stay_apart(periods, wanted):
    series = series_of(pd.PeriodIndex(periods, freq="M"))
    stamps = continue_stamps(series, 2)
    assert list(stamps.astype(str)) == wanted
    check_follows(series, stamps, 2)


def test_numbers_go_on_by_the_median_step():
    # In float64 the numbers would be the same.
    series = series_of([2**62 + 1, 2**62 + 2, 2**62 + 3, 2**62 + 9])
    stamps = continue_stamps(series, 2)
    check_follows(series, stamps, 2)
    assert stamps.tolist() == [2**62 + 10, 2**62 + 11]
    milliseconds = series_of([1_700_000_000_123, 1_700_000_000_128, 1_700_000_000_133])
    assert continue_stamps(milliseconds, 1).tolist() == [1_700_000_000_138]
    # Of two in the middle: the lower one of integers, and the mean of floats.
    assert continue_stamps(series_of([0, 1, 4]), 1).tolist() == [5]
    floats = series_of([0.0, 1.0, 4.0])
    assert continue_stamps(floats, 2).tolist() == [6.0, 8.0]
    check_follows(floats, continue_stamps(floats, 9), 9)


@pytest.mark.parametrize("times", [[3], [3.5], ["2024-01-01"]])
def test_one_row_has_no_step(times):
    with pytest.raises(ValueError, match=r"`future` must give the stamps .* one row"):
        continue_stamps(series_of(times), 1)


@pytest.mark.parametrize(
    "times",
    [
        [2**62, 2**62 + 2**60],
        [1.7e308, 1.75e308],
        [2.0**53 - 4, 2.0**53 - 3],
        pd.date_range("2262-01-01", periods=3, freq="MS", unit="ns"),
        pd.date_range("2261-12-01", periods=3, unit="ns").delete(1),
        pd.DatetimeIndex(["2262-04-10", "2262-04-11T23:00"]).as_unit("ns"),
        pd.DatetimeIndex(["2261-12-01", "2262-01-01"]).as_unit("ns"),
        pd.PeriodIndex(
            ["2262-04-11T23:47:16.854775805", "2262-04-11T23:47:16.854775806"], freq="ns"
        ),
    ],
)
def test_stamps_stay_in_range(times):
    with pytest.raises(ValueError, match=r"`num_rows` must be so few .* Received: num_rows=500"):
        continue_stamps(series_of(times), 500)


def test_long_series_go_on_at_once():
    series = series_of(pd.date_range("2000", periods=100_000, freq="min").delete(7))
    assert continue_stamps(series, 1)[0] == series.stamps[-1] + pd.Timedelta("1min")


@pytest.mark.parametrize("num_rows, error", [(0, ValueError), (1.0, TypeError), (True, TypeError)])
def test_bad_numbers_of_rows(num_rows, error):
    with pytest.raises(error, match="`num_rows` must be"):
        continue_stamps(series_of([1, 2]), num_rows)


# Rows to predict.


def known_series(times=("2024-01-01", "2024-01-02")):
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
    series = known_series()
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
        ([1, 2], [3, 4, 4], r"`t` of `future` must be after .* row 2, 4\. Received: 4 in row 3$"),
        ([1, 2], [2, 3], r"after the last row of the series, 2\. Received: 2 in row 1$"),
        ([1, 2], [3, 5, 4], r"must be after .*row 2, 5\. Received: 4 in row 3$"),
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
    "known, message",
    [
        ([1.0, np.nan], r"`k` of `future` must hold a finite number.*in row 2$"),
        (["x", 1], r"`k` of `future` must hold a number.*'x' in row 1$"),
    ],
)
def test_bad_covariates_of_a_future(known, message):
    future = pd.DataFrame({"t": ["2024-01-03", "2024-01-04"], "k": known})
    with pytest.raises(ValueError, match=message):
        extend_series(known_series(), future=future)


def test_what_must_be_given():
    plain, known = series_of([1, 2]), known_series((1, 2))
    with pytest.raises(ValueError, match="`num_rows` or `future` must be given"):
        extend_series(plain)
    with pytest.raises(ValueError, match="`future` must give the covariates 'k'"):
        extend_series(known, num_rows=3)
    with pytest.raises(ValueError, match="`future` must have one column 'k'; it is missing"):
        extend_series(known, future=pd.DataFrame({"t": [3]}))
    with pytest.raises(ValueError, match="one column 't'; it is missing"):
        extend_series(plain, future=pd.DataFrame({"time": [3]}))
    with pytest.raises(ValueError, match=r"at least num_rows = 3 rows\. Received: 2"):
        extend_series(plain, future=pd.DataFrame({"t": [3, 4]}), num_rows=3)
    with pytest.raises(TypeError, match="`future` must be a pandas DataFrame"):
        extend_series(plain, future=[3, 4])
    with pytest.raises(ValueError, match="`columns` must name D_c = 1 covariates"):
        extend_series(known, future=pd.DataFrame({"t": [3]}), columns=Columns("t", ("y",)))


def test_names_of_columns_may_be_any_in_a_series():
    day = pd.Timestamp("2024")
    series = Series.from_frame(pd.DataFrame({day: [1, 2], "y": 0.0}), day, "y")
    assert extend_series(series, future=pd.DataFrame({day: [3]})).time.tolist() == [1, 2, 3]


# One future for each series.

SHOPS = Columns("ds", ("y",), "unique_id", ("k",))


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
    for name, times, known in (("shop 1", [4, 6], [10, 11]), ("shop 2", [3, 4], [20, 21])):
        longer = extend_series(series[name], future=parts[name], columns=SHOPS)
        assert longer.time.tolist() == [1, 2, *times] and longer.name == name
        assert longer.covariates[2:, 0].tolist() == known
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
            r"after the stamp of row 1, 3\. Received: 3 in row 4 .*'shop 2'\)$",
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
            split_future(future_of_shops(), SHOPS, [f"a{place}" for place in range(count)])


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
