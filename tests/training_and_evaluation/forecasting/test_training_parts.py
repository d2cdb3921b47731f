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


def _validation(lengths, horizon=4, most=100):
    """Of series with so many rows in the training and the validation part."""
    parts = []
    for number, (training, validation) in enumerate(lengths):
        values = np.random.default_rng(number).normal(size=training + validation).cumsum()
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


def test_a_short_validation_part_is_scored_by_a_window_that_begins_before_it():
    validation = _validation([(20, 7), (20, 1), (20, 0), (3, 1), (2, 3)])
    # Of the third series there is nothing to score, and the fourth has no row before a window.
    assert _first_targets(validation) == [20, 21, 22, 23, 27 + 17, 27 + 21 + 20 + 4 + 1]
    assert validation.scored[:4].all()
    assert validation.scored[4:].tolist() == [
        [False, False, False, True],
        [False, True, True, True],
    ]
    inputs, y_target = validation.teacher_forced()
    assert y_target.shape == (6, 4, 1) and (inputs["target_mask"] == validation.scored).all()


def test_series_have_about_as_many_windows_each():
    validation = _validation([(20, 40), (20, 6), (20, 9)], most=6)
    series = validation.windows.panel.series_of(np.array(_first_targets(validation)))
    assert series.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(_validation([(20, 6)] * 9, most=4)) == 4
