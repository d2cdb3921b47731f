"""Progress in a log, where there is no terminal."""

import io

import pytest
from rich.console import Console

from taylorformer.training_and_evaluation.training import progress as module
from taylorformer.training_and_evaluation.training.progress import WorkProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def log():
    return Console(file=io.StringIO(), width=40)


def lines(log):
    return log.file.getvalue().splitlines()


def test_a_log_has_a_line_now_and_then(clock, log):
    with WorkProgress("Training", log) as progress:
        for done in range(0, 61):
            note = "compiling" if not done else f"nll {done / 10:.1f}, validation 0.5, best 0.5"
            progress(done, 60, note)
            clock[0] += 0.5
    assert lines(log) == [
        "Training: 0 of 60, 0:00:00. compiling",
        "Training: 20 of 60, 0:00:10, about 0:00:20 left. nll 2.0, validation 0.5, best 0.5",
        "Training: 40 of 60, 0:00:20, about 0:00:10 left. nll 4.0, validation 0.5, best 0.5",
        "Training: 60 of 60, 0:00:30. nll 6.0, validation 0.5, best 0.5",
    ]


def test_the_time_left_counts_from_where_work_resumed(clock, log):
    with WorkProgress("Training", log) as progress:
        clock[0] += 5
        progress(100, 200)
        clock[0] += 50
        progress(150, 200)
    assert lines(log) == [
        "Training: 100 of 200, 0:00:05",
        "Training: 150 of 200, 0:00:55, about 0:00:50 left",
    ]


def test_a_terminal_shows_a_bar_and_no_lines(clock):
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    with WorkProgress("Training", screen) as progress:
        progress(1, 2)
    assert "left" in screen.file.getvalue() and "1 of 2" not in screen.file.getvalue()


def test_marks_of_rich_in_a_note_are_text(clock, log):
    with WorkProgress("[red]", log) as progress:
        progress(1, 1, "[bold]")
    assert lines(log) == ["[red]: 1 of 1, 0:00:00. [bold]"]
