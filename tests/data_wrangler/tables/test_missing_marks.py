"""Which values look like marks for missing ones, and which do not."""

import numpy as np
import pandas as pd
import pytest

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.missing_marks import (
    describe_marks,
    likely_marks,
    marks_of,
    possible_marks,
)
from taylorformer.data_wrangler.tables.report import inspect_table
from taylorformer.data_wrangler.tables.series import Series


def likely(values):
    return likely_marks([{"y": possible_marks(np.asarray(values, np.float64))}]).get("y", {})


LEVELS = 380 + 15 * np.sin(np.arange(300) / 9)
DEGREES = 12 * np.sin(np.arange(300) / 9)


@pytest.mark.parametrize(
    "values, marks",
    [
        (LEVELS, [-999.99]),
        (LEVELS, [-9999]),
        (LEVELS, [9999, -999.99]),
        (LEVELS, [-9999, -999]),
        (LEVELS, [-1]),
        (LEVELS, [-32768]),
        (LEVELS, [1e20]),
        (LEVELS.astype(np.float32), [np.float32(-999.99)]),
        (DEGREES, [-99.9]),
        (DEGREES, [999.9]),
        (DEGREES, [-99]),
        # The only negative value, though the others reach far.
        (np.geomspace(1, 1e6, 300), [-999]),
        (np.arange(300) % 200, [-99.9]),
    ],
)
def test_marks_are_seen(values, marks):
    rows = np.concatenate([values, *([mark] * 3 for mark in marks), [np.nan]])
    assert likely(rows) == {float(mark): 3 for mark in marks}


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "values",
    [
        LEVELS,
        np.append(LEVELS, -999.99),
        # Short marks have to be farther away.
        np.append(20 + np.arange(20), [-1, -1]),
        np.append(np.arange(40), [99, 99]),
        RNG.poisson(0.3, 500),
        RNG.poisson(3, 500) * (RNG.random(500) < 0.2),
        np.where(np.arange(300) % 7 == 0, 0, LEVELS),
        np.clip(RNG.normal(50, 40, 500), 0, 99),
        np.clip(RNG.normal(0, 1000, 500), -999, 999),
        np.clip(RNG.normal(80, 30, 500), None, 99.9),
        RNG.choice([-1, 0, 1], 500),
        np.maximum(RNG.normal(0, 5, 500).round(), -1),
        RNG.choice([0, 1], 500) - 1,
        RNG.choice([0.0, 99.0], 500),
        RNG.normal(0, 1, 500).cumsum().round() - 1,
        np.concatenate([RNG.poisson(8, 500), [99, 60, 80]]),
        np.concatenate([RNG.poisson(8, 500), [40, 40]]),
        np.concatenate([RNG.exponential(100, 500).round(), [999, 999]]),
        np.full(50, 999.0),
        np.full(50, np.nan),
        [],
        [999.0, 999.0],
        [5.0, 5.0, 999.0, 999.0],
        RNG.standard_cauchy(2000),
        RNG.integers(900, 1000, 500),
    ],
)
def test_other_values_raise_no_alarm(values):
    assert likely(values) == {}


def test_one_mark_in_each_of_many_series():
    frame = pd.DataFrame(
        {
            "unique_id": np.repeat(["a", "b", "c"], 300),
            "ds": np.tile(np.arange(300), 3),
            "y": np.concatenate([LEVELS, LEVELS + 100, LEVELS]),
            "z": 1.0,
        }
    )
    frame.loc[[5, 305], "y"] = -999.99
    frame.loc[[5, 600], "z"] = [np.nan, 4.0]
    report = inspect_table(frame, Columns.resolve(frame, target_columns=["y", "z"]))
    assert report.series[0].least == {"y": -999.99, "z": 1.0}
    assert report.series[2].largest == {"y": LEVELS.max(), "z": 4.0}
    assert report.series[0].possible_marks == {"y": {-999.99: 1}, "z": {}}
    assert report.likely_marks == {"y": {-999.99: 2}}
    table = report.to_frame()
    assert list(table["least y"])[:2] == [-999.99] * 2 and list(table["largest z"]) == [1, 1, 4]
    assert "possible_marks" not in table
    series = Series.from_frame(frame.iloc[:300], "ds", ["y", "z"])
    assert marks_of([series]) == {} and marks_of([series, series]) == {"y": {-999.99: 2}}


def test_a_column_without_values_has_no_least():
    frame = pd.DataFrame({"t": [1, 2], "y": [np.nan, np.nan]})
    report = inspect_table(frame, Columns.resolve(frame)).series[0]
    assert np.isnan(report.least["y"]) and np.isnan(report.largest["y"])


def test_marks_in_words():
    assert describe_marks({}) == ""
    words = describe_marks({"a": {-999.99: 2}, "b": {-999.99: 3, 9999.0: 4}})
    assert "-999.99 (2 times in a, 3 times in b), 9999 (4 times in b) are far" in words
    assert "--missing -999.99 --missing 9999" in words
    assert "--missing -999.99)" in describe_marks({"a": {float(np.float32(-999.99)): 2}})
