"""Progress of long work: bars on a terminal, elsewhere a line now and then."""

import datetime
import math
import time
from collections.abc import Mapping
from types import TracebackType

import keras
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_SECONDS_BETWEEN_LINES = 10.0
_COMPILING = "compiling, which takes some seconds"


class WorkProgress:
    """A bar for work that is counted; call it with the pieces that are done and their total.

    Use it in a `with` statement. Without a terminal, such as in a log file, it writes a line where
    work begins that takes longer, then one at most every ten seconds, and one at the end.

    Example:
        >>> import sys
        >>> with WorkProgress("Reading", Console(file=sys.stdout)) as progress:
        ...     progress(2, 2, "nothing is missing")
        Reading: 2 of 2, 0:00:00. nothing is missing

    Args:
        title: of the work.
        console: where it is shown. None: standard error.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = Console(stderr=True) if console is None else console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._entered = time.monotonic()
        self._first_call: tuple[float, int] | None = None
        self._last_line = -math.inf

    def __enter__(self) -> "WorkProgress":
        self._entered = time.monotonic()
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Shows how much is done.

        Args:
            done: pieces of work that are done.
            total: pieces of work in all.
            note: shown beside the bar.
        """
        if self._task is None:
            self._task = self._progress.add_task(self._title, total=total, note="")
        self._progress.update(self._task, completed=done, total=total, note=note)
        if not self._console.is_terminal:
            self._write_line(done, total, note)

    def _write_line(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        # What was done before it may be of a training that was stopped, at another speed.
        if self._first_call is None:
            self._first_call = now, done
        if now - self._last_line < _SECONDS_BETWEEN_LINES and done != total:
            return
        self._last_line = now
        since, first = self._first_call
        line = f"{self._title}: {done} of {total}, {_clock(now - self._entered)}"
        if first < done < total:
            line += f", about {_clock((now - since) * (total - done) / (done - first))} left"
        line = f"{line}. {note}".rstrip(" .")
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    """Returns hours, minutes and seconds, as `1:02:03`."""
    return str(datetime.timedelta(seconds=round(seconds)))


class TrainingBar(keras.callbacks.Callback):
    """Shows training steps, the training score and the best validation score on a bar.

    The validation score is the one that chooses the weights: the nll, the squared error, or
    another one that the training names.

    `resumable_fit` says where it starts; in another training the steps are those of Keras.

    Args:
        progress: the bar; the caller enters and leaves its `with` statement.
    """

    def __init__(self, progress: WorkProgress) -> None:
        super().__init__()
        self._progress = progress
        self._done = 0
        self._total: int | None = None
        self._best = math.inf
        self._score: str | None = None
        self._note = ""

    def start_from(
        self, done: int, total: int, best: float | None, score: str | None = None
    ) -> None:
        """Continues from a training that was stopped.

        Args:
            done: training steps that are done.
            total: training steps in all.
            best: the best validation score so far, or None.
            score: its name in the logs. None: the usual one of the model.
        """
        self._score = score
        self._done, self._total = done, total
        self._best = best if best is not None and math.isfinite(best) else math.inf

    @property
    def _epoch_steps(self) -> int:
        return self.params["steps"] or 1

    def _show(self, step_in_epoch: int) -> None:
        total = self.params["epochs"] * self._epoch_steps if self._total is None else self._total
        self._progress(self._done + step_in_epoch, total, self._note)

    def on_train_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Says that the first step takes longer; not where a last, shorter epoch begins."""
        self._note = self._note or _COMPILING

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Shows the steps of the epochs before."""
        if self._total is None:
            self._done = epoch * self._epoch_steps
        self._show(0)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        """Shows a step."""
        if self._note == _COMPILING:
            self._note = ""
        if batch + 1 < self._epoch_steps:
            self._show(batch + 1)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Shows the scores of the epoch."""
        logs = logs or {}
        name = "nll" if getattr(self.model, "selected_by_nll", True) else self.model.mse_name
        note = f"{name} {logs[name]:.3f}" if name in logs else ""
        chooses = self._score or f"val_{name}"
        if chooses in logs:
            score = float(logs[chooses])
            self._best = min(self._best, score)
            shown = "validation" if self._score is None else self._score.replace("_", " ")
            note += f", {shown} {score:.3f}, best {self._best:.3f}"
        self._note = note
        self._show(self._epoch_steps)
        if self._total is not None:
            self._done += self._epoch_steps
