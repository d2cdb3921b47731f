"""The parts of a table for fine-tuning, and the windows of the validation part."""

import numpy as np
from tables import make_series

from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.training_and_evaluation.forecasting.training_parts import (
    TrainingPart,
    ValidationWindows,
)


def _validation(lengths, horizon=4, most=100, changes=None):
    """Of series with so many rows in the training and the validation part.

    Args:
        changes: added to the validation part.
    """
    parts = []
    for number, (training, validation) in enumerate(lengths):
        values = np.random.default_rng(number).normal(size=training + validation).cumsum()
        values[training:] += 0 if changes is None else changes
        series = make_series(values, name=f"s{number}")
        parts.append(TrainingPart(series.name, series, training, Seasons(time_unit="")))
    panel = Panel([part.series for part in parts])
    windows = ContextWindows(panel, WindowSpec(8, horizon), lambda *_: np.zeros(3))
    return ValidationWindows.of(parts, windows, most)


def _first_targets(validation):
    return (validation.starts + 8).tolist()


def test_all_windows_of_one_series_lie_in_its_validation_part():
    validation = _validation([(20, 7)])
    assert _first_targets(validation) == [20, 21, 22, 23] and validation.scored.all()
    # The last one always is among fewer ones, and so is the first where there are two.
    assert _first_targets(_validation([(20, 7)], most=1)) == [23]
    assert _first_targets(_validation([(20, 7)], most=2)) == [20, 23]


def test_of_more_series_than_windows_some_have_one_evenly_spaced_in_the_table():
    validation = _validation([(20, 6)] * 4 + [(20, 12)] * 4, most=4)
    numbers = validation.windows.panel.series_of(validation.starts + 8)
    assert len(set(numbers)) == 4 and min(numbers) < 4 <= max(numbers)
    # Each is the last one of its series.
    ends = validation.windows.panel.offsets[1:][numbers]
    assert (ends == validation.starts + 8 + 4).all()


def test_a_short_validation_part_is_scored_by_a_window_that_begins_before_it():
    validation = _validation([(20, 7), (20, 1), (20, 0), (2, 3), (7, 3)])
    # Of the third one there is nothing to score, and the fourth has too few rows before a window.
    assert _first_targets(validation) == [20, 21, 22, 23, 27 + 17, 27 + 21 + 20 + 5 + 6]
    assert validation.scored[:4].all()
    assert validation.scored[4:].tolist() == [
        [False, False, False, True],
        [False, True, True, True],
    ]
    # Their likelihood would be that of targets that follow others which are not seen.
    arrays = validation.teacher_forced()
    assert arrays["y_target"].shape == (4, 4, 1) and arrays["target_mask"].all()
    alone = _validation([(20, 1), (20, 7)], horizon=8).teacher_forced()
    assert alone["target_mask"].sum(axis=1).tolist() == [1, 7]


def test_a_jump_out_of_reach_is_not_scored():
    jumps = np.zeros(8)
    jumps[6] = 1e9
    validation = _validation([(20, 8)], horizon=2, changes=jumps)
    assert _first_targets(validation) == [20, 21, 22, 23, 24, 25, 26]
    assert validation.scored[:5].all()
    assert validation.scored[5:].tolist() == [[True, False], [False, True]]
    # Unless there is nothing else.
    assert _validation([(20, 8)], horizon=2, changes=np.full(8, 1e9)).scored.all()


def test_series_have_about_as_many_windows_each():
    def counts(*lengths, most):
        validation = _validation(lengths, most=most)
        first = np.array(_first_targets(validation))
        return np.bincount(validation.windows.panel.series_of(first)).tolist()

    assert counts((20, 40), (20, 6), (20, 9), most=6) == [2, 2, 2]
    # What short series leave over the long ones get.
    assert counts((20, 40), (20, 4), (20, 5), most=12) == [9, 1, 2]
    assert sum(counts(*[(20, 6)] * 9, most=4)) == 4


def test_without_rows_to_score_there_is_none():
    assert len(_validation([(20, 0)])) == 0 and len(_validation([(4, 1)])) == 0
