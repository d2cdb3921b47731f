"""The report of a table: what it counts, and what it cannot read."""

import numpy as np
import pandas as pd
import pytest
from tables import LONG, long_frame

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.report import inspect_table


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
    assert (a.median_step, a.frequency) == ("15 min", "every 15 min")
    assert a.next_stamps == "2024-01-01 02:15:00, 2024-01-01 02:30:00"
    assert (a.gaps, a.longest_gap) == (1, "75 min")
    assert dict(a.missing) == {"y": 2, "z": 3}
    assert (a.masked_rows, a.partly_missing_rows) == (3, 1)
    assert (b.rows, b.median_step, b.gaps, b.longest_gap) == (1, None, 0, None)
    assert (b.frequency, b.next_stamps) == (None, None)
    assert (report.rows, report.duplicates, report.out_of_order) == (7, 1, 1)
    table = report.to_frame()
    assert list(table["name"]) == ["a", "b"] and list(table["missing z"]) == [3, 0]
    assert list(table["rows"]) == [6, 1]


@pytest.mark.parametrize(
    "times, step, frequency, longest",
    [
        (
            pd.date_range("2024-01-01", periods=6, freq="B"),
            "1 day",
            "business days (Monday to Friday)",
            "3 days",
        ),
        (pd.date_range("2024-01-01", periods=5, freq="5ms"), "5 ms", "every 5 ms", None),
        (
            pd.date_range("2024-01-01", periods=4, freq="MS"),
            "31 days",
            "first day of the month",
            None,
        ),
        (pd.period_range("2024-01", periods=3, freq="M"), "29 days", "every month", None),
        (pd.date_range("2024-01-01", periods=3, freq="90min"), "90 min", "every 90 min", None),
        ([2**62, 2**62 + 1, 2**62 + 2, 2**62 + 9], 1, "every 1", 7),
        ([0.0, 0.5, 1.0, 4.0], 0.5, "every 0.5", 3.0),
        # Two in the middle: of integers the lower one, of floats their mean.
        ([0, 1, 4], 1, "every 1", 3),
        ([0.0, 1.0, 4.0], 2.0, "none, median step 2", None),
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
