"""Which series of a table are trained on, forecast and scored, so that no odd one stops the others.

Where a table has several series, one that cannot be used is left out, with its reason, and what is
computed for the others is the same as without it. A table without any usable series is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer.data_wrangler.tables.columns import Columns
from taylorformer.data_wrangler.tables.continued_stamps import describe_guesses, next_stamps
from taylorformer.data_wrangler.tables.frequencies import Frequency
from taylorformer.data_wrangler.tables.future import extend_series, split_future, with_rows
from taylorformer.data_wrangler.tables.odd_series import (
    OddSeries,
    by_reason,
    names_of_absent,
    names_of_few_values,
    names_of_stopped,
    note_what_is_odd,
)
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.scaler import WindowScaler
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tables.split import Split, WindowSpec, spaced_starts

# A scale is how far values lie apart, so one value has none.
_VALUES_FOR_SCALE = 2
_ABSENT = "not in the table, though there in training"


def odd_in_training(panel: Panel, splits: Mapping[str, Split], spec: WindowSpec) -> OddSeries:
    """Decides which series are trained on.

    They are those with a training window and a value to predict in one of them. The others add
    neither windows nor statistics, and are not validated on.

    Args:
        panel: the table.
        splits: for each series.
        spec: N_C and N_T.

    Raises:
        ValueError: no series can be trained on.
    """
    odd = OddSeries()
    series = panel.series
    ends = [splits[one.name].train_end for one in series]
    without = set(names_of_few_values(series, ends=ends))
    for one, end in zip(series, ends, strict=True):
        if one.name in without:
            odd.leave_out([one.name], "no value of every target in the training part")
        elif end < spec.length:
            need = f"context_length + horizon = {spec.length} rows"
            odd.leave_out([one.name], f"fewer than {need} in the training part")
        elif not one.observed[spec.context_length : end].any():
            odd.leave_out([one.name], "no value to predict in the training part")
    kept = odd.kept(panel)
    if not kept and panel.num_series == 1:
        # These say how many rows or values the one series lacks.
        splits[series[0].name].window_starts(spec, "training")
        WindowScaler.fit(panel, spec, ends)
    check_some(kept, odd, "can be trained on")
    if any(len(splits[one.name].rows("validation")) for one in kept) and len(kept) > 1:
        short = [one.name for one in kept if _starts(splits[one.name], spec, "validation") is None]
        if len(short) < len(kept):
            odd.note(short, "no window in the validation part: too short")
    note_what_is_odd(odd, kept, spec)
    return odd


def with_scales_of(
    scaler: WindowScaler, left_out: Iterable[Series], splits: Mapping[str, Split]
) -> WindowScaler:
    """Adds the scales of series that were not trained on, where their training part has one."""
    series = list(left_out)
    ends = {one.name: splits[one.name].train_end for one in series}
    unknown = set(names_of_few_values(series, _VALUES_FOR_SCALE, list(ends.values())))
    measured = [one for one in series if one.name not in unknown]
    return scaler.with_series(measured, ends) if measured else scaler


def odd_in_forecast(panel: Panel, scaler: WindowScaler, new: Sequence[str]) -> OddSeries:
    """Decides which series can be forecast: those with a value, and with a scale.

    Args:
        panel: the table.
        scaler: of training.
        new: the names of the series that were not there in training. Their scale is measured on
            the rows in the table.

    Raises:
        ValueError: no series can be forecast.
    """
    odd = OddSeries()
    odd.leave_out(names_of_few_values(panel.series), "no value of every target")
    names = set(new)
    few = names_of_few_values([one for one in panel.series if one.name in names], _VALUES_FOR_SCALE)
    odd.leave_out(
        few, "not there in training, and too few values to measure a scale on: two are needed"
    )
    kept = odd.kept(panel)
    check_some(kept, odd, "can be forecast")
    what = "not there in training: its scale is measured on the rows that are given"
    odd.note(new, what)
    _compare(odd, panel, kept, scaler)
    return odd


def odd_in_backtest(panel: Panel, scaler: WindowScaler, new: Sequence[str]) -> OddSeries:
    """Decides which series can be scored, but for their windows: those of training.

    Raises:
        ValueError: no series was there in training.
    """
    odd = OddSeries()
    odd.leave_out(new, "not there in training, so no scale is known")
    kept = odd.kept(panel)
    if kept:
        _compare(odd, panel, kept, scaler)
    return odd


def _compare(odd: OddSeries, panel: Panel, kept: Sequence[Series], scaler: WindowScaler) -> None:
    note_what_is_odd(odd, kept, scaler.spec)
    if panel.num_series > 1:
        odd.leave_out(names_of_absent(panel.names, scaler.names), _ABSENT)


def backtest_starts(
    panel: Panel,
    splits: Mapping[str, Split],
    spec: WindowSpec,
    part: str,
    context_inside: bool,
    step: int,
    num_windows: int | None,
    odd: OddSeries,
) -> dict[str, np.ndarray]:
    """Returns the first rows of the windows to score, for each series counted in that series.

    Args:
        panel: the table.
        splits: for each series.
        spec: N_C and N_T.
        part: which part to score.
        context_inside: see `Split.window_starts`.
        step: rows from one window to the next, counted back from the last one.
        num_windows: at most this many for each series, the last ones. None: all.
        odd: series without a window that can be scored are added.

    Raises:
        ValueError: no series has such a window.
    """
    chosen = {}
    for one in odd.kept(panel):
        starts = _starts(splits[one.name], spec, part, context_inside)
        if starts is None:
            odd.leave_out([one.name], f"too short for a window in the {part} part")
            continue
        starts = spaced_starts(starts, step, num_windows)
        observed = np.concatenate([[0], np.cumsum(one.observed)])
        targets = starts + spec.context_length
        if panel.num_series > 1 and (observed[targets] == observed[starts + spec.length]).all():
            odd.leave_out([one.name], f"no value to score in the {part} part")
        else:
            chosen[one.name] = starts
    if not chosen and panel.num_series == 1:
        splits[panel.names[0]].window_starts(spec, part, context_inside)
    check_some(odd.kept(panel), odd, f"can be scored in the {part} part")
    return chosen


def _starts(
    split: Split, spec: WindowSpec, part: str, context_inside: bool = False
) -> np.ndarray | None:
    try:
        return split.window_starts(spec, part, context_inside)
    except ValueError:
        return None


def check_some(kept: Sequence[Series], odd: OddSeries, what: str) -> None:
    """Refuses a table of which no series is left.

    Args:
        kept: the series that are left.
        odd: the others, with the reasons.
        what: what cannot be done, such as "can be forecast".

    Raises:
        ValueError: no series is left.
    """
    if not kept:
        raise ValueError(
            f"`data` must hold a series that {what}. Received: {by_reason(odd.left_out)}"
        )


def extend_each(
    panel: Panel,
    odd: OddSeries,
    spec: WindowSpec,
    num_rows: int | None,
    future: pd.DataFrame | None,
    columns: Columns,
    columns_of_future: Columns,
    freq: Frequency | None = None,
    unsorted: str = "error",
) -> tuple[dict[str, Series], str]:
    """Adds the rows to predict to every series that is not left out; see `extend_series`.

    Args:
        panel: the table.
        odd: a series whose next stamps cannot be known is added.
        spec: N_C and N_T.
        num_rows: how many rows. None: all of `future`.
        future: a table of the rows to predict, or None.
        columns: of training.
        columns_of_future: the same, with a column of ids where there are several series.
        freq: how stamps continue without `future`, see `continue_stamps`.
        unsorted: see `extend_series`.

    Returns:
        The longer series by their names, and what `describe_guesses` says of their stamps.

    Raises:
        ValueError: as `extend_series`, where `future` is at fault, or where no series is left.
    """
    series = odd.kept(panel)
    futures: Mapping[str, Any] = dict.fromkeys(panel.names)
    if future is not None:
        names = [one.name for one in series]
        stopped = names_of_stopped(series, spec)
        futures = split_future(future, columns_of_future, names, stopped)
        odd.leave_out([name for name in stopped if name not in futures], "no rows in `future`")
    longer, guesses = {}, {}
    for one in odd.kept(panel):
        try:
            rows = futures[one.name]
            if rows is None and one.num_rows == 1 and freq is None:
                rows = _stamps_of_another(one, series, num_rows, odd, columns)
            if rows is None and num_rows is not None and not one.covariate_columns:
                guesses[one.name] = next_stamps(one, num_rows, freq)
                longer[one.name] = with_rows(one, guesses[one.name].stamps)
            else:
                longer[one.name] = extend_series(
                    one, num_rows=num_rows, future=rows, columns=columns, unsorted=unsorted
                )
        except ValueError as error:
            # Covariates, and stamps that the user gives, are not a matter of one series.
            if future is not None or one.covariate_columns or panel.num_series == 1:
                raise
            odd.leave_out([one.name], f"its next stamps are unknown: {error}")
    check_some(odd.kept(panel), odd, "can be forecast")
    return longer, describe_guesses(columns.time_column, guesses)


def _stamps_of_another(
    series: Series,
    others: Sequence[Series],
    num_rows: int | None,
    odd: OddSeries,
    columns: Columns,
) -> pd.DataFrame | None:
    """Returns the stamps that follow one row in the longest other series that has its stamp."""
    if num_rows is None or series.covariate_columns or isinstance(series.stamps, pd.PeriodIndex):
        return None
    time = series.time[0]
    for other in sorted(others, key=lambda one: one.num_rows, reverse=True):
        row = int(np.searchsorted(other.time, time))
        alike = other.num_rows > 1 and other.stamps.dtype == series.stamps.dtype
        if alike and row < other.num_rows and other.time[row] == time:
            every = other.stamps.append(next_stamps(other, num_rows).stamps)
            odd.note([series.name], f"one row: its next stamps are those of {other.name}")
            return pd.DataFrame({columns.time_column: every[row + 1 : row + 1 + num_rows]})
    return None
