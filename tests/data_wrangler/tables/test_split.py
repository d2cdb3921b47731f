"""Splits: their borders, and where windows of each part lie."""

import numpy as np
import pytest
from tables import SPEC

from taylorformer.data_wrangler.tables.split import (
    PARTS,
    Split,
    WindowSpec,
    panel_window_starts,
    spaced_starts,
)


@pytest.mark.parametrize("num_rows, borders", [(100, (69, 80)), (2284, (1575, 1827)), (0, (0, 0))])
def test_split_borders(num_rows, borders):
    split = Split.chronological(num_rows)
    assert (split.train_end, split.validation_end, split.num_rows) == (*borders, num_rows)
    assert [len(split.rows(part)) for part in PARTS] == [
        borders[0],
        borders[1] - borders[0],
        num_rows - borders[1],
    ]


def test_legal_windows_are_all_there_and_no_others():
    split = Split(30, 40, 52)
    wanted = {"training": [], "validation": [], "test": []}
    for start in range(52):
        rows = range(start, start + SPEC.length)
        targets = rows[SPEC.context_length :]
        if rows[-1] < 30:
            wanted["training"].append(start)
        elif targets[0] >= 30 and targets[-1] < 40:
            wanted["validation"].append(start)
        elif targets[0] >= 40 and targets[-1] < 52:
            wanted["test"].append(start)
    for part in PARTS:
        assert split.window_starts(SPEC, part).tolist() == wanted[part]


def test_windows_may_have_to_lie_in_their_part_with_the_context_too():
    starts = Split(30, 50, 70).window_starts(SPEC, "test", context_inside=True)
    assert starts.tolist() == list(range(50, 59))
    with pytest.raises(ValueError, match=r"= 12 rows in the test part\. Received: 10"):
        Split(20, 30, 40).window_starts(SPEC, "test", context_inside=True)


def test_spaced_starts_count_back_from_the_last():
    starts = np.arange(3, 14)
    assert spaced_starts(starts, 4).tolist() == [5, 9, 13]
    assert spaced_starts(starts, 4, 2).tolist() == [9, 13]


def test_too_short_a_series_is_a_clear_error():
    with pytest.raises(
        ValueError,
        match=r"context_length \+ horizon = 192 rows in the training part\. Received: 41$",
    ):
        Split.chronological(60).window_starts(WindowSpec(96, 96), "training")
    with pytest.raises(ValueError, match=r"horizon = 4 rows in the test part\. Received: 2"):
        Split(20, 28, 30).window_starts(SPEC, "test")
    with pytest.raises(ValueError, match=r"= 12 rows up to the end of the validation part"):
        Split(2, 10, 30).window_starts(SPEC, "validation")
    with pytest.raises(ValueError, match="`part` must be one of"):
        Split(2, 10, 30).rows("train")
    for fractions in ((0.5, 0.5, 0.1), (1.2, -0.2, 0.0), (0.5, 0.5)):
        with pytest.raises(ValueError, match="`fractions` must be three shares"):
            Split.chronological(100, fractions)
    with pytest.raises(ValueError, match="must be in order"):
        Split(5, 4, 10)
    with pytest.raises(ValueError, match="`horizon` must be at least 1"):
        WindowSpec(3, 0)


def test_series_that_are_too_short_are_an_error_only_if_all_are(panel):
    splits = [Split(6, 8, one.num_rows) for one in panel.series]
    with pytest.raises(ValueError, match=r"= 12 rows in the training part\. Received: 6"):
        panel_window_starts(panel, splits, SPEC, "training")


def test_numbers_of_numpy_become_plain_ones():
    spec = WindowSpec(np.int64(8), np.uint8(4))
    assert type(spec.context_length) is type(spec.horizon) is int and spec == WindowSpec(8, 4)
    for split in (
        Split(np.int64(3), np.int32(5), np.int64(9)),
        Split.chronological(np.int64(9), np.array([0.4, 0.2, 0.4], np.float32)),
    ):
        assert split == Split(3, 5, 9) and type(split.train_end) is int
    assert spaced_starts(np.arange(9), np.int64(4), np.int8(2)).tolist() == [4, 8]
