"""Series of a panel that are not like the others."""

import numpy as np
import pytest
from tables import SPEC, make_series

from taylorformer.data_wrangler.tables.odd_series import (
    OddSeries,
    names_of_absent,
    names_of_constants,
    names_of_few_values,
    names_of_stopped,
)

NAN = np.nan


def made_of(count, rows=30, first=0, step=1):
    return [
        make_series(np.arange(rows), first + step * np.arange(rows), f"s{number}")
        for number in range(count)
    ]


def test_few_values_of_any_column():
    two = make_series([[1.0, NAN], [2.0, NAN], [3.0, 4.0]], name="two")
    one = make_series([NAN, NAN, 5.0], name="one")
    assert names_of_few_values([two, one]) == []
    assert names_of_few_values([two, one], 2) == ["two", "one"]
    assert names_of_few_values([two, one], ends=[3, 2]) == ["one"]
    assert names_of_few_values([two, one], ends=[0, 3]) == ["two"]


def test_constants():
    assert names_of_constants([make_series([5.0, NAN, 5.0]), make_series([1.0, 2.0])]) == ["series"]
    assert names_of_constants([make_series([5.0]), make_series([NAN, NAN, 3.0])]) == []


@pytest.mark.parametrize("step", [1, 86_400, 0.5])
def test_a_series_has_stopped_if_most_others_end_a_window_later(step):
    others = made_of(4, step=step)
    for behind, stopped in ((SPEC.length, []), (SPEC.length + 1, ["old"])):
        old = make_series(np.arange(30), step * (np.arange(30) - behind), "old")
        assert names_of_stopped([*others, old], SPEC) == stopped
        assert names_of_stopped([old], SPEC) == []
    one_row = make_series([1.0], [-100 * step], "one row")
    assert names_of_stopped([*others, one_row], SPEC) == ["one row"]
    assert names_of_stopped([one_row, make_series([1.0], [0], "other")], SPEC) == []


def test_series_that_end_at_any_time_have_not_stopped():
    scattered = [
        make_series(np.arange(30), 100 * number + np.arange(30), f"s{number}")
        for number in range(5)
    ]
    assert names_of_stopped(scattered, SPEC) == []


def test_a_table_with_most_series_of_training_lacks_the_others():
    trained = ("a", "b", "c", "d")
    assert names_of_absent(("a", "b", "c", "new"), trained) == ["d"]
    assert names_of_absent(("a", "b"), trained) == names_of_absent(trained, trained) == []


def test_a_series_is_left_out_or_noted_and_all_are_named_by_reason():
    odd = OddSeries()
    assert odd.describe("the forecast") == ""
    odd.note(["a", "b"], "constant")
    odd.note(["b"], "stopped")
    odd.leave_out(["a", "c"], "one row")
    odd.leave_out(["c"], "short")
    odd.note(["c"], "new")
    assert odd.left_out == {"a": "one row", "c": "one row"}
    assert odd.notes == {"b": "constant; stopped"}
    odd.leave_out([f"s{number}" for number in range(30)], "empty")
    text = odd.describe("the training")
    assert "Left out of the training: a, c (one row), s0, s1, " in text
    assert "s19 and 10 more (empty). Used: b (constant; stopped)" in text
