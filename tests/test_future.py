"""Where to predict: rules of the calendar, exact steps, and tables of the future."""

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.future import continue_stamps, extend_series
from taylorformer.data_wrangler.series import Series
from taylorformer.data_wrangler.table import Columns

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
def test_periods_go_on_by_their_frequency(freq, wanted):
    periods = pd.period_range("2024-01-01", periods=3, freq=freq)
    series = series_of(periods)
    stamps = continue_stamps(series, 2)
    assert str(stamps[0]) == wanted and stamps.freq == periods.freq
    check_follows(series, stamps, 2)
    # One is enough, and gaps do not matter.
    assert continue_stamps(series_of(periods[2:]), 2).equals(stamps)
    assert continue_stamps(series_of(periods[[0, 2]]), 2).equals(stamps)


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
        ([1, 2], [2.5, 3], r"hold times that int64 can tell exactly.*Received: 2\.5 in row 1$"),
        ([1, 2], [3, 1e300], r"can tell exactly.* Received: 1e\+300 in row 2$"),
        ([1.0, 2.0], [3, 2**53 + 1], r"float64 can tell exactly.*9007199254740993 in row 2$"),
        (
            pd.date_range("2024-01-01", periods=2, unit="s"),
            pd.date_range("2024-01-03", periods=2, freq="5ms"),
            r"datetime64\[s\] can tell exactly.*00:00:00\.005000 in row 2$",
        ),
        (
            pd.period_range("2024-01", periods=2, freq="M"),
            ["2024-03-01", "2024-04-02"],
            r"period\[M\] can tell exactly.*2024-04-02 00:00:00 in row 2$",
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
        (["2024-01-01", "2024-01-02"], ["2024-01-03", "-"], r"`t` must hold dates .*'-' in row 2$"),
        ([1, 2], [], r"at least one row"),
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
    [([1.0, np.nan], r"`k` must hold a finite number.*in row 2$"), (["x", 1], r"'x' in row 1$")],
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
    with pytest.raises(ValueError, match="one column 'k'; it is missing"):
        extend_series(known, future=pd.DataFrame({"t": [3]}))
    with pytest.raises(ValueError, match="one column 't'; it is missing"):
        extend_series(plain, future=pd.DataFrame({"time": [3]}))
    with pytest.raises(ValueError, match=r"at least num_rows = 3 rows\. Received: 2"):
        extend_series(plain, future=pd.DataFrame({"t": [3, 4]}), num_rows=3)
    with pytest.raises(TypeError, match="`future` must be a pandas DataFrame"):
        extend_series(plain, future=[3, 4])
    with pytest.raises(ValueError, match="`columns` must name D_c = 1 covariates"):
        extend_series(known, future=pd.DataFrame({"t": [3]}), columns=Columns("t", ("y",)))
