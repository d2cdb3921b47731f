"""What to say about series that a pretrained model reads: odd ones, and those it reads badly."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from taylorformer.data_wrangler.checks import listed
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.odd_series import (
    OddSeries,
    names_of_constants,
    names_of_few_values,
    names_of_stopped,
)
from taylorformer.data_wrangler.tables.panel import Panel
from taylorformer.data_wrangler.tables.seasons import Seasons
from taylorformer.data_wrangler.tables.split import WindowSpec
from taylorformer.training_and_evaluation.forecasting.naive import seasonal
from taylorformer.training_and_evaluation.metrics import gaussian_nll

if TYPE_CHECKING:
    from taylorformer.model.probabilistic_model import ProbabilisticModel

# A context is suspect where one-step forecasts inside it are this much worse than naive ones, in
# nats for each value; with fewer values than these it says too little.
_MUCH_WORSE = 0.25
_LEAST_VALUES = 8


def odd_in_pretrained(panel: Panel) -> OddSeries:
    """Decides which series can be read: those with a value of every target."""
    odd = OddSeries()
    odd.leave_out(names_of_few_values(panel.series), "no value of every target")
    kept = odd.kept(panel)
    if not kept:
        raise ValueError(
            "`data` must hold a series with a value of every target. "
            f"Received: {panel.num_series} series without"
        )
    few = names_of_few_values(kept, 2)
    odd.note(few, "one value: its size is taken for its spread")
    odd.note(names_of_constants(kept), "constant: 0.1 % of its value is taken for its spread")
    return odd


def note_stopped(odd: OddSeries, panel: Panel, spec: WindowSpec) -> None:
    """Notes series that end long before most others."""
    kept = odd.kept(panel)
    if len(kept) > 1:
        odd.note(names_of_stopped(kept, spec), "stopped: it ends long before the others")


def suspect_series(
    model: "ProbabilisticModel", windows: ContextWindows, seasons: Sequence[Seasons]
) -> list[str]:
    """Names the series whose last context rows a naive line forecasts better, one step ahead.

    Args:
        model: pretrained.
        windows: of a forecast; their last rows are the rows to predict.
        seasons: those of each series.
    """
    length = windows.spec.context_length
    num_scored = max(length // 4, _LEAST_VALUES)
    ends = windows.panel.offsets[1:] - windows.spec.horizon
    numbers = np.flatnonzero(ends - windows.panel.offsets[:-1] > num_scored + _LEAST_VALUES)
    if length < num_scored + _LEAST_VALUES or not len(numbers):
        return []
    spec = WindowSpec(length - num_scored, num_scored)
    inner = ContextWindows(
        windows.panel,
        spec,
        lambda number, _: seasons[number].padded,
        windows.support,
        windows.covariates,
    )
    starts = (ends - spec.length)[numbers]
    scored = inner.scored(starts)
    outputs = model.teacher_forced(*inner.batch(starts))
    nll = -np.asarray(outputs["log_prob"], np.float64)
    by_name = dict(zip(windows.panel.names, seasons, strict=True))
    excess = nll - _naive_nll(inner, starts, by_name)
    count = scored.sum(axis=1)
    is_suspect = (count >= _LEAST_VALUES) & (excess > _MUCH_WORSE * count)
    return [windows.panel.names[number] for number in numbers[is_suspect]]


def _naive_nll(
    windows: ContextWindows, starts: np.ndarray, seasons: Mapping[str, Seasons]
) -> np.ndarray:
    """Returns the negative log density of the one-step forecasts of a naive line, `[B]`, scaled.

    The line repeats the last season, or the last value. Its scale is the root mean square error on
    the same rows, so it is the best that such a line can be.
    """
    lengths = {name: one.first_period for name, one in seasons.items()}
    mean = seasonal(windows, starts, lengths, teacher_forced=True)
    mean, truth = (windows.scale_y(one, starts) for one in (mean, windows.truth(starts)))
    scored = windows.scored(starts) & np.isfinite(mean).all(axis=-1)
    error = np.where(scored, (truth - mean)[..., 0], 0.0)
    scale = np.sqrt(np.square(error).sum(axis=1) / np.maximum(scored.sum(axis=1), 1))
    result = np.full(len(starts), np.inf)
    for index in np.flatnonzero(scale > 0):
        one = slice(index, index + 1)
        nll = gaussian_nll(mean[one], scale[index : index + 1], truth[one], scored[one])
        result[index] = np.nansum(nll)
    return result


def describe_not_shown(chosen: Mapping[str, tuple[Seasons, ...]]) -> str:
    """Says which seasons the rows do not show, though they were named."""
    names = [name for name, every in chosen.items() if any(one.not_shown for one in every)]
    if not names:
        return ""
    every = [one for name in names for one in chosen[name] if one.not_shown]
    which = every[0].describe()
    of = "" if names == [""] else f" in {listed([repr(name) for name in names])}"
    return f"the rows do not show the season that was named ({which}){of}; it is used"


def describe_suspects(names: Sequence[str], is_trained: bool) -> str:
    """Names the series that the model does not understand.

    Args:
        names: of the series.
        is_trained: whether the model was trained on the table.
    """
    if not names:
        return ""
    which = "the rows" if list(names) == [""] else listed([repr(name) for name in names])
    training = "" if is_trained else "; `Forecaster(...).fit(...)` trains a model on the table"
    return (
        f"one-step forecasts inside the context of {which} are worse than those of the naive "
        "line: the model does not understand what it reads, and `backtest` shows which forecast "
        f"is better{training}"
    )
