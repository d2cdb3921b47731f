"""Training batches of a table for a pretrained model."""

import numpy as np
import pandas as pd

from taylorformer.data_wrangler import Series
from taylorformer.data_wrangler.tables.context_batches import ContextBatches
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.value_support import ValueSupport


def _panel(*lengths, seed=0, change=lambda y: y):
    rng = np.random.default_rng(seed)
    return Panel(
        [
            Series.from_frame(
                pd.DataFrame({"t": range(rows), "y": change(rng.normal(size=rows).cumsum())}),
                "t",
                "y",
                name=f"s{number}",
            )
            for number, rows in enumerate(lengths)
        ]
    )


def _batches(panel, horizon=4, longest=20, size=8, seed=0, **more):
    return ContextBatches(panel, horizon, longest, lambda *_: np.zeros(3), size, seed, **more)


def test_a_pass_holds_every_first_target_once_and_each_pass_has_another_order():
    batches = _batches(_panel(30), size=7)
    rows = batches.first_targets
    # At least six rows come before, and all targets are rows of the series.
    assert rows.tolist() == [*range(6, 30)]
    drawn = np.concatenate([batches._first_targets_of(number) for number in range(7)])
    first, second = drawn[: len(rows)], drawn[len(rows) : 2 * len(rows)]
    assert sorted(first) == sorted(second) == rows.tolist()
    assert first.tolist() != second.tolist()


def test_a_pass_holds_all_of_the_shortest_series_and_some_of_the_others():
    batches = _batches(_panel(30, 15, 5), size=20)
    rows = batches.first_targets
    assert rows.tolist() == [*range(6, 30), *range(36, 45), *range(46, 50)]
    # Of 24, 9 and 4 first targets there are the roots of 24 x 4, 9 x 4 and 4 x 4, rounded up.
    passes = [batches._first_targets_of(number) for number in range(40)]
    for one in passes:
        assert len(set(one)) == 20
        assert batches.panel.series_of(np.sort(one)).tolist() == [0] * 10 + [1] * 6 + [2] * 4
    assert set(np.concatenate(passes)) == set(rows)


def test_the_balance_says_how_many_windows_of_long_series_are_in_a_pass():
    panel = _panel(30, 15, 5)
    for balance, counts in {0.0: [4, 4, 4], 0.5: [10, 6, 4], 1.0: [24, 9, 4]}.items():
        batches = _batches(panel, size=sum(counts), balance=balance)
        numbers = panel.series_of(np.sort(batches._first_targets_of(1)))
        assert np.bincount(numbers).tolist() == counts


def test_a_short_series_has_windows_with_shorter_contexts():
    assert _batches(_panel(6)).first_targets.tolist() == [2, 3, 4, 5]
    assert _batches(_panel(4)).first_targets.tolist() == []


def test_windows_have_up_to_all_targets_and_end_with_the_series():
    panel = _panel(9, 12)
    batches = _batches(panel, horizon=4, longest=1, size=400)
    assert batches.first_targets.tolist() == [*range(5, 9), *range(9 + 6, 9 + 12)]
    by_count = {}
    for number in range(30):
        y_target = batches.draw(number)["y_target"]
        by_count[y_target.shape[1]] = y_target[:, 0, 0]
    assert sorted(by_count) == [1, 2, 3, 4]
    # Of the first series a window of all targets has one beginning only, of the second three; what
    # has no room for them is spread over these, and is not all the last one.
    values, counts = np.unique(by_count[4], return_counts=True)
    assert len(values) == 1 + 3 and counts.max() < 0.5 * counts.sum()


def test_a_batch_is_a_function_of_its_number():
    one, other = _batches(_panel(60)), _batches(_panel(60))
    later = other.draw(9)
    assert all((one.draw(9)[name] == value).all() for name, value in later.items())
    lengths = {one.draw(number)["x_context"].shape[1] for number in range(20)}
    assert max(lengths) == 20 and len(lengths) > 4 and min(lengths) >= 6


def test_even_stamps_are_shared():
    batch = _batches(_panel(60), longest=6).draw(0)
    assert batch["x_context"].shape == (1, 6, 7) and batch["context_mask"].shape == (1, 6)
    assert batch["y_context"].shape == (8, 6, 1)


def test_a_jump_out_of_reach_is_not_trained_on():
    panel = _panel(40, change=lambda y: y + 1e6 * (np.arange(40) >= 20))
    batches = _batches(panel, size=len(_batches(panel).first_targets), longest=10)
    number = next(
        number
        for number in range(30)
        if batches.draw(number)["context_mask"].shape[1] == 10
        and batches.draw(number)["y_target"].shape[1] == 4
    )
    masks, first = batches.draw(number)["target_mask"], batches._first_targets_of(number)
    # The first that jump have all of their context before it, the last ones all of it after it.
    assert not masks[(first > 16) & (first <= 20)].any()
    assert masks[(first <= 16) | ((first >= 30) & (first <= 36))].all()


def test_whole_numbers_come_with_their_support():
    panel = _panel(30, change=lambda y: np.abs(y).round())
    support = ValueSupport.of(0, None, True, 1)
    assert _batches(panel, support=support).draw(0)["y_support"].shape == (8, 1, 6)


class _Forgetful(dict):
    """Forgets everything after each look, as another thread may do."""

    def __contains__(self, key):
        is_there = super().__contains__(key)
        self.clear()
        return is_there

    def get(self, key, default=None):
        value = super().get(key, default)
        self.clear()
        return value


def test_what_another_thread_forgets_does_not_matter():
    panel = _panel(30)
    expected = [_batches(panel).draw(number) for number in range(6)]
    forgetful = _batches(panel, _passes=_Forgetful())
    for number, batch in enumerate(expected):
        again = forgetful.draw(number)
        assert all((again[name] == value).all() for name, value in batch.items())
