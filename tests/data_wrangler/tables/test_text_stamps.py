"""Stamps in text and numbers: offsets, periods, epochs; what is written is read as it was."""

import datetime
import io

import numpy as np
import pandas as pd
import pytest
from tables import series_of

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import find_rule
from taylorformer.data_wrangler.tables.files import read_series
from taylorformer.data_wrangler.tables.future import extend_series
from taylorformer.data_wrangler.tables.long_table import split_table
from taylorformer.data_wrangler.tables.stamp_form import StampForm, form_of, likely_time_unit


def _written(stamps):
    """What pandas writes of stamps to CSV, and reads of it."""
    file = io.StringIO()
    pd.DataFrame({"t": stamps}).to_csv(file, index=False)
    return pd.read_csv(io.StringIO(file.getvalue()))["t"]


def _split(times, columns):
    return split_table(pd.DataFrame({"t": times, "y": 0.0}), columns)[0]


COLUMNS = Columns("t", ("y",))


@pytest.mark.parametrize(
    "times",
    [
        ["2024-03-31T00:00+01:00", "2024-03-31T01:00:00+01:00", "2024-03-31T03:00+02:00"],
        ["2024-03-30T23:00Z", "2024-03-31T01:00+01:00", "2024-03-31T03:00+0200"],
        ["2024-10-26 12:00-04:00", "2024-11-03 12:00-05:00", "2024-11-03 12:00:00.5-05:00"],
        [
            pd.Timestamp("2024-03-30", tz="Europe/Paris"),
            pd.Timestamp("2024-04-01", tz="America/Lima"),
        ],
    ],
)
def test_text_with_several_offsets_is_instants(times):
    series = series_of(times)
    assert str(series.stamps.tz) == "UTC"
    assert list(series.stamps) == [pd.Timestamp(time).tz_convert("UTC") for time in times]
    berlin = series_of(times, time_zone="Europe/Berlin")
    assert str(berlin.stamps.tz) == "Europe/Berlin" and (berlin.time == series.time).all()
    later = pd.DataFrame({"t": ["2024-12-01T00:00+01:00", "2025-06-01T00:00+02:00"]})
    longer = extend_series(berlin, future=later)
    assert longer.stamps.dtype == berlin.stamps.dtype
    assert longer.stamps[-1] == pd.Timestamp("2025-06-01", tz="Europe/Berlin")


def test_text_with_one_offset_keeps_it_or_the_zone_asked_for():
    times = ["2024-01-01T00:00+01:00", "2024-01-02T00:00+01:00"]
    assert series_of(times).stamps[0].isoformat() == "2024-01-01T00:00:00+01:00"
    assert str(series_of(times, time_zone="Europe/Berlin").stamps.tz) == "Europe/Berlin"
    utc = pd.date_range("2024-01-01", periods=2, tz="UTC")
    assert str(series_of(utc, time_zone="Europe/Berlin").stamps.tz) == "Europe/Berlin"
    # A named zone, and dates without any, stay as they are.
    lima = pd.date_range("2024-01-01", periods=2, tz="America/Lima")
    assert str(series_of(lima, time_zone="Europe/Berlin").stamps.tz) == "America/Lima"
    assert series_of(["2024-01-01", "2024-01-02"], time_zone="Europe/Berlin").stamps.tz is None


def test_a_date_format_may_have_offsets():
    times = ["31.03.2024 00:00 +0100", "31.03.2024 03:00 +0200"]
    series = series_of(times, date_format="%d.%m.%Y %H:%M %z")
    assert np.diff(series.time) == series.duration("2h")


@pytest.mark.parametrize(
    "times, dtype, first, rule",
    [
        (["1985Q1", "1985Q2", "1985Q4"], "period[Q-DEC]", "1985-01-01", "every quarter"),
        (["1985-Q3", "1985-Q4", "1986-Q1"], "period[Q-DEC]", "1985-07-01", "every quarter"),
        (["Q3 1985", "Q4 1985"], "period[Q-DEC]", "1985-07-01", "every quarter"),
        (["1985 q3", "1985 q4"], "period[Q-DEC]", "1985-07-01", "every quarter"),
        (["2005M01", "2005M02", "2005M03"], "period[M]", "2005-01-01", "every month"),
        (["2005-M09", "2005-M11"], "period[M]", "2005-09-01", "every 2 months"),
        (["2005m9", "2005-10", "2005-11"], "period[M]", "2005-09-01", "every month"),
        (["2024-W05", "2024-W06"], "period[W-SUN]", "2024-01-29", "every week"),
        (["2020W52", "2020W53", "2021W01"], "period[W-SUN]", "2020-12-21", "every week"),
        (
            ["2024-01-29/2024-02-04", "2024-02-05/2024-02-11"],
            "period[W-SUN]",
            "2024-01-29",
            "every week",
        ),
        (["2024-W05", "2024-02-05/2024-02-11"], "period[W-SUN]", "2024-01-29", "every week"),
        (["2024-01-31/2024-02-06", "2024-02-07/2024-02-13"], "period[W-TUE]", "2024-01-31", None),
    ],
)
def test_text_of_periods(times, dtype, first, rule):
    series = series_of(times)
    assert str(series.stamps.dtype) == dtype and series.stamps[0].start_time == pd.Timestamp(first)
    assert series.stamps.name == "t" and find_rule(series.stamps).words == (rule or "every week")
    # What is written is read as it was, alone and after the rows of the past.
    columns = COLUMNS.with_form_of(series.stamps)
    assert _split(_written(series.stamps), columns).stamps.equals(series.stamps)
    longer = extend_series(series, num_rows=3)
    again = extend_series(series, future=pd.DataFrame({"t": _written(longer.stamps[-3:])}))
    assert again.stamps.equals(longer.stamps)


@pytest.mark.parametrize("freq", ["Y", "Y-MAR", "Q", "Q-MAR", "M", "W", "W-WED", "D", "h", "s"])
def test_periods_that_are_written_are_read_as_they_were(freq):
    periods = pd.period_range("2024-01-05", periods=5, freq=freq)
    series = series_of(periods[:3])
    columns = Columns.from_config(COLUMNS.with_form_of(series.stamps).get_config())
    assert _split(_written(periods[:3]), columns).stamps.equals(series.stamps)
    longer = extend_series(series, future=pd.DataFrame({"t": _written(periods[3:])}))
    assert longer.stamps.equals(periods.rename("t"))


@pytest.mark.parametrize(
    "times, message",
    [
        (["1985Q1", "1985Q5"], r"`t` must hold quarters such as 1985Q1 .*'1985Q5' in row 2$"),
        (["1985Q1", "1985-04-01"], r"quarters .*'1985-04-01' in row 2$"),
        (["2005M01", "2005M13"], r"months such as 2005M01 .*'2005M13' in row 2$"),
        (["2024-W05", "2024-W54"], r"weeks such as 2024-W05.*'2024-W54' in row 2$"),
        (["2020-W53", "2021-W53"], r"weeks .*'2021-W53' in row 2$"),
        (["2024-01-29/2024-02-04", "2024-02-05/2024-02-12"], r"'2024-02-05/2024-02-12' in row 2$"),
        (["2024-01-29/2024-02-04", "2024-02-06/2024-02-12"], r"'2024-02-06/2024-02-12' in row 2$"),
        (["2024-01-29/2024-02-04", "2024-02-30/2024-03-07"], r"'2024-02-30/2024-03-07' in row 2$"),
        (["1985Q1", 5], r"quarters .*5 in row 2$"),
        (["1985Q0", "1985Q1"], r"`date_format`, --date-format.*'1985Q0' in row 1$"),
    ],
)
def test_text_that_is_no_period(times, message):
    with pytest.raises(ValueError, match=message):
        series_of(times)


SECONDS = 1_700_000_000 + 3600 * np.arange(4)


@pytest.mark.parametrize(
    "numbers, unit, kept",
    [
        (SECONDS, "s", "s"),
        (SECONDS * 10**3, "ms", "ms"),
        (SECONDS * 10**6, "us", "us"),
        (SECONDS * 10**9, "ns", "ns"),
        (SECONDS.astype(float), "s", "s"),
        (SECONDS.astype(str), "s", "s"),
        (SECONDS.astype(object), "s", "s"),
        (SECONDS.astype(np.uint32), "s", "s"),
        (pd.array(SECONDS, "Int64"), "s", "s"),
    ],
)
def test_numbers_may_count_time_since_1970(numbers, unit, kept):
    series = series_of(numbers, time_unit=unit)
    wanted = pd.date_range("2023-11-14T22:13:20", periods=4, freq="h", tz="UTC")
    assert list(series.stamps) == list(wanted) and series.time_unit == kept
    assert find_rule(series.stamps).words == "every hour"
    # Dates that a forecast writes are read where numbers are.
    columns = Columns("t", ("y",), time_unit=unit)
    for times in (_written(series.stamps), wanted, wanted.tz_localize(None), wanted.astype(str)):
        assert (_split(times, columns).stamps == series.stamps).all()
    longer = extend_series(series, num_rows=2)
    future = pd.DataFrame({"t": _written(longer.stamps[-2:])})
    assert extend_series(series, future=future, columns=columns).stamps.equals(longer.stamps)
    future = pd.DataFrame(
        {"t": [int(SECONDS[-1] + 3600) * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]]}
    )
    assert extend_series(series, future=future, columns=columns).stamps[-1] == longer.stamps[-2]


def test_numbers_of_seconds_may_have_fractions_and_a_zone():
    series = series_of([1_700_000_000.25, 1_700_000_000.75], time_unit="s")
    assert series.time_unit == "us" and np.diff(series.time) == [500_000]
    berlin = series_of([1_711_839_600, 1_711_922_400], time_unit="s", time_zone="Europe/Berlin")
    assert [stamp.hour for stamp in berlin.stamps] == [0, 0]
    assert find_rule(berlin.stamps).words == "every day"


@pytest.mark.parametrize(
    "numbers, options, message",
    [
        ([0, 1_700_000_000_000], {"time_unit": "s"}, r"the years 1 to 9999, counted in s .*row 2$"),
        ([0, np.nan], {"time_unit": "s"}, r"a time in every row.*row 2$"),
        ([0, np.inf], {"time_unit": "s"}, r"finite times.*row 2$"),
        ([1.7e18 + 0.0, 1.5], {"time_unit": "us"}, r"in us since|whole numbers"),
        ([1, 2], {"time_unit": "h"}, r"`time_unit` must be one of s, ms, us, ns .*'h'$"),
        ([1, 2], {"time_zone": "Mars"}, r"`time_zone` must be the name .*'Mars'$"),
        ([1, 2], {"time_zone": 5}, r"`time_zone` must be the name .*5$"),
        (
            [20240101, 20240102],
            {"time_unit": "s", "date_format": "%Y%m%d"},
            r"`time_unit` must be None where `date_format` .*'%Y%m%d'$",
        ),
        ([1, "x"], {"time_unit": "s"}, r"dates of ISO 8601.*Received: 1 in row 1$"),
    ],
)
def test_bad_numbers_of_time(numbers, options, message):
    with pytest.raises(ValueError, match=message):
        series_of(numbers, **options)


def test_integers_stay_numbers_and_are_recognised():
    assert series_of(SECONDS).time_unit is None
    for per_second, unit in ((1, "s"), (10**3, "ms"), (10**6, "us"), (10**9, "ns")):
        assert likely_time_unit(pd.Index(SECONDS * per_second)) == unit
    for numbers in ([1, 2], [2024, 2025], [20240101, 20240102], [0.5, 1.7e9], SECONDS[:1]):
        assert likely_time_unit(pd.Index(numbers)) is None


def test_objects_may_be_periods():
    quarters = pd.period_range("1985Q1", periods=3, freq="Q-MAR")
    series = series_of(pd.Series(quarters.tolist(), dtype="object"))
    assert series.stamps.equals(quarters.rename("t"))
    for other in (pd.Period("1985-01", "M"), "1985Q4"):
        with pytest.raises(ValueError, match=r"`t` must hold periods of 'Q-MAR' .* in row 4$"):
            series_of([*quarters.tolist(), other])


def test_objects_of_python_are_dates():
    for times in (
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
        [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)],
        [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")],
    ):
        series = series_of(pd.Series(times, dtype="object"))
        assert series.stamps.tolist() == [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")]
        assert find_rule(series.stamps).words == "every day"


@pytest.mark.parametrize(
    "kind", ["date32", "date64", "timestamp[s]", "timestamp[us]", "timestamp[ns]", "zone", "string"]
)
def test_arrow_types_are_as_those_of_numpy(kind):
    pa = pytest.importorskip("pyarrow")
    dates = pd.date_range("2024-01-30", periods=9)
    wanted = series_of(dates)
    types = {"date32": pa.date32(), "date64": pa.date64(), "string": pa.string()}
    dtype = types.get(kind)
    if dtype is None:
        dtype = pa.timestamp("us", "Europe/Berlin") if kind == "zone" else pa.timestamp(kind[10:-1])
    source = dates.astype(str) if kind == "string" else dates
    if kind == "zone":
        source, wanted = (
            dates.tz_localize("Europe/Berlin"),
            series_of(dates.tz_localize("Europe/Berlin")),
        )
    column = pd.Series(source).astype(pd.ArrowDtype(dtype))
    series = series_of(column)
    assert list(series.stamps) == list(wanted.stamps)
    assert list(extend_series(series, num_rows=2).stamps) == list(
        extend_series(wanted, num_rows=2).stamps
    )


def test_a_series_file_with_numbers_of_time(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t,y\n1700000000000,1\n1700000060000,2\n")
    series = read_series(path, "t", "y", time_unit="ms", time_zone="Asia/Kolkata")
    assert series.stamps[1].isoformat() == "2023-11-15T03:44:20+05:30"


def test_the_form_of_stamps_is_kept_in_columns():
    zone = pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin")
    assert form_of(zone, StampForm()).time_zone == "Europe/Berlin"
    assert form_of(zone, StampForm(time_zone="UTC")).time_zone == "UTC"
    for plain in (zone.tz_localize(None), zone.tz_convert("UTC"), pd.Index([1, 2])):
        assert form_of(plain, StampForm()) == StampForm()
    with pytest.raises(ValueError, match="`period` must be a frequency of periods"):
        StampForm(period="fortnight")


def test_a_table_over_a_change_of_the_clock_is_read_as_it_was_written():
    for start, freq in (("2024-03-29", "D"), ("2024-03-30T20:00", "h"), ("2024-10-26T20:00", "h")):
        stamps = pd.date_range(start, periods=12, freq=freq, tz="Europe/Berlin")
        series = series_of(stamps[:8])
        columns = COLUMNS.with_form_of(series.stamps)
        past = _split(_written(stamps[:8]), columns)
        assert past.stamps.equals(series.stamps) or (past.stamps == series.stamps).all()
        assert str(past.stamps.tz) == "Europe/Berlin"
        assert list(extend_series(past, num_rows=4).stamps) == list(stamps)
        longer = extend_series(past, future=pd.DataFrame({"t": _written(stamps[8:])}))
        assert list(longer.stamps) == list(stamps)
