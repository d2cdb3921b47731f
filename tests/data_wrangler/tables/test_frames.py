"""Tables of other libraries become tables of pandas; arrays for names get a sentence."""

import datetime

import numpy as np
import pandas as pd
import pytest
from forecasting import tiny_forecaster, wave_table

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.frames import as_frame, as_names
from taylorformer.data_wrangler.tables.series import Series


class Converted:
    """A table of another library, which knows the way to pandas."""

    def __init__(self, frame):
        self.frame = frame

    def to_pandas(self):
        return self.frame


class Interchanged:
    """A table that hands over its columns by the interchange protocol alone."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self, **options):
        return self.frame.__dataframe__(**options)


class NeedsPackage(Interchanged):
    """Whose way to pandas needs a package that is not there."""

    def to_pandas(self):
        raise ModuleNotFoundError("No module named 'feather'")


class OnlyNeedsPackage:
    to_pandas = NeedsPackage.to_pandas


def test_tables_that_convert_themselves():
    frame = wave_table(5)
    assert as_frame(frame) is frame
    assert as_frame(Converted(frame)) is frame
    for wrapped in (Interchanged(frame), NeedsPackage(frame)):
        pd.testing.assert_frame_equal(as_frame(wrapped), frame, check_dtype=False)
    with pytest.raises(ImportError, match=r"`future` .*OnlyNeedsPackage \(No module named 'feat"):
        as_frame(OnlyNeedsPackage(), "future")


def test_what_is_no_table_is_left_to_the_caller():
    for other in (None, 5, "table.csv", [1, 2], {"ds": [1], "y": [2]}, np.zeros((3, 2)), Converted):
        assert as_frame(other) is other
    answer = Converted("no table")
    assert as_frame(answer) is answer


def test_a_series_of_pandas_whose_index_holds_the_times():
    table = wave_table(5)
    dates = table.set_index("ds")["y"]
    unnamed = pd.Series(dates.to_numpy(), dates.index.rename(None))
    periods = pd.Series(dates.to_numpy(), pd.period_range("2020-01", periods=5, freq="M"))
    for series, time in ((dates, "ds"), (unnamed, "index"), (periods, "index")):
        for data in (series, Converted(series)):
            columns = Columns.resolve(as_frame(data))
            assert (columns.time_column, columns.target_columns) == (time, ("y",))
    with pytest.raises(TypeError, match=r"whose index holds the times\. Received: a Series"):
        as_frame(table["y"])


@pytest.fixture(scope="module")
def fitted():
    return tiny_forecaster(max_steps=1).fit(wave_table())


@pytest.mark.parametrize(
    "wrap",
    [
        Converted,
        Interchanged,
        lambda frame: frame.astype({"ds": "datetime64[us]"}),
        lambda frame: frame.assign(ds=frame["ds"].dt.date.astype(object)),
        lambda frame: frame.assign(ds=frame["ds"].dt.strftime("%Y-%m-%d").astype("string")),
        lambda frame: frame.assign(ds=frame["ds"].astype("category")),
        lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable"),
        lambda frame: frame.set_index("ds").iloc[:, 0],
    ],
    ids=["to_pandas", "interchange", "us", "dates", "text", "category", "nullable", "series"],
)
def test_the_forecaster_reads_other_tables(fitted, wrap):
    table = wave_table()
    same = tiny_forecaster(max_steps=1).fit(wrap(table))
    for ours, theirs in zip(same.model_.get_weights(), fitted.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    past, future = table[:80], table[80:84]
    wanted = fitted.forecast(past, future, num_samples=2)
    # A series of pandas has the times in its index, as the column `ds`.
    forecast = fitted.forecast(wrap(past), wrap(future), num_samples=2)
    np.testing.assert_array_equal(forecast.samples, wanted.samples)
    pd.testing.assert_frame_equal(
        fitted.backtest(wrap(table), num_samples=0).scores,
        fitted.backtest(table, num_samples=0).scores,
    )


def test_x_and_y_as_in_scikit_learn_get_a_sentence():
    table = wave_table(20)
    sentence = "`time_column` must be the name of a column: times and targets stand in one table"
    for y in (table["y"], table["y"].to_numpy(), table[["y"]], [1.0, 2.0], {"y": 1}):
        with pytest.raises(TypeError, match=sentence):
            tiny_forecaster().fit(table[["ds"]], y)
    for role in ("target_columns", "id_column", "covariate_columns"):
        with pytest.raises(TypeError, match=f"`{role}` must be the name of a column"):
            tiny_forecaster().fit(table, **{role: table["y"]})
    with pytest.raises(TypeError, match="`target_columns` must be the name of a column"):
        tiny_forecaster().fit(table, "ds", [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("data", "received"),
    [
        (np.zeros((3, 2)), "numpy.ndarray"),
        ({"ds": [1, 2], "y": [3, 4]}, "builtins.dict"),
        ([[1, 2], [3, 4]], "builtins.list"),
        ("table.csv", "builtins.str"),
        (None, "builtins.NoneType"),
    ],
)
def test_data_that_is_no_table_gets_a_sentence(fitted, data, received):
    sentence = rf"`data` must be a pandas DataFrame of times .*\. Received: {received}$"
    for use in (tiny_forecaster().fit, fitted.forecast, fitted.backtest):
        with pytest.raises(TypeError, match=sentence):
            use(data)
    with pytest.raises(TypeError, match=sentence):
        tiny_forecaster().fit(data, np.zeros(3))


def test_names_may_come_as_pandas_has_them():
    table = wave_table(5).assign(z=1.0)
    for names in (table.columns[1:], table.columns[1:].to_numpy(), ["y", "z"]):
        assert as_names("target_columns", names) == ("y", "z")
    assert as_names("target_columns", pd.RangeIndex(2)) == (0, 1)
    assert Columns.resolve(table, target_columns=table.columns[1:]).target_columns == ("y", "z")


# Types of Arrow.


@pytest.mark.parametrize("kind", ["date32", "timestamp", "zone", "int64", "text"])
def test_columns_of_arrow_types_are_read_as_others(kind):
    pyarrow = pytest.importorskip("pyarrow")
    days = [datetime.date(2024, 1, 1 + day) for day in range(5)]
    stamps = pd.DatetimeIndex(days)
    times, arrow = {
        "date32": (stamps, pyarrow.date32()),
        "timestamp": (stamps, pyarrow.timestamp("us")),
        "zone": (stamps.tz_localize("Europe/Berlin"), pyarrow.timestamp("us", "Europe/Berlin")),
        "int64": (pd.Index(range(5)), pyarrow.int64()),
        "text": (stamps.strftime("%Y-%m-%d"), pyarrow.string()),
    }[kind]
    given = days if kind == "date32" else times
    frame = pd.DataFrame({"ds": pd.Series(given, dtype=pd.ArrowDtype(arrow)), "y": 1.0})
    frame["y"] = frame["y"].astype(pd.ArrowDtype(pyarrow.float64()))
    series = Series.from_frame(frame, "ds", "y")
    wanted = Series.from_frame(pd.DataFrame({"ds": times, "y": 1.0}), "ds", "y")
    assert list(series.stamps) == list(wanted.stamps)
    assert not isinstance(series.stamps.dtype, pd.ArrowDtype)
    np.testing.assert_array_equal(series.values, wanted.values)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_a_file_with_dates_of_arrow(shared_path, backend):
    pytest.importorskip("pyarrow")
    path = shared_path("cases", "arrow_date32.parquet")
    frame = pd.read_parquet(path, dtype_backend=backend)
    columns = Columns.resolve(frame)
    series = Series.from_frame(frame, columns.time_column, columns.target_columns)
    assert isinstance(series.stamps, pd.DatetimeIndex)


def test_tables_of_polars():
    polars = pytest.importorskip("polars")
    table = wave_table(5)
    frame = as_frame(polars.DataFrame({"ds": table["ds"].to_list(), "y": table["y"].to_list()}))
    assert isinstance(frame, pd.DataFrame) and frame["ds"].dt.day.tolist() == [1, 2, 3, 4, 5]
