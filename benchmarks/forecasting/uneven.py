"""What uneven stamps cost the pretrained model: the same series, seen at even and at random times.

    python -m benchmarks.forecasting.uneven --count 400

Series of every family are drawn on a grid four times finer than a step. One context has every
fourth point, the other as many points at random (the last one is the same); both forecast the same
targets, one step apart, with the true season. Shown is the CRPS, relative to the standard
deviation of each series, averaged over series, and how much the random stamps add. The series are
of a part of the prior that neither training nor validation draws from.
"""

import argparse
import json

import numpy as np
import pandas as pd

from taylorformer import Forecaster
from taylorformer.data_wrangler import WindowSpec
from taylorformer.data_wrangler.seeds import numbered_generator
from taylorformer.data_wrangler.tables.context_windows import ContextWindows
from taylorformer.data_wrangler.tables.series import Series
from taylorformer.data_wrangler.tasks.series_families import FAMILIES, SeriesGrid, standardized
from taylorformer.training_and_evaluation import free_running_point_scores

FINENESS, NUM_CONTEXT, HORIZON, PERIOD = 4, 64, 12, 12.0
# No part of the prior draws from this stream of random numbers, see `numbered_generator`.
_STREAM = 7


def crps_of(
    forecaster: object, points: np.ndarray, series: np.ndarray, num_samples: int
) -> np.ndarray:
    """Returns the CRPS of each series `[n]`, seen at points `[n, N]` of the fine grid."""
    every = []
    for number, (rows, values) in enumerate(zip(points, series, strict=True)):
        time = rows.astype(np.int64)
        every.append(Series(time, values[rows, np.newaxis], pd.Index(time), name=str(number)))
    periods = np.array([PERIOD * FINENESS, 0.0, 0.0])
    windows = ContextWindows(every, WindowSpec(NUM_CONTEXT, HORIZON), lambda *_: periods)
    starts = windows.panel.offsets[:-1]
    drawn = forecaster.model_.sample(  # type: ignore[attr-defined]
        windows.forecast_inputs(starts), num_samples, 0, sequence_keys=windows.sequence_keys(starts)
    )
    scores = free_running_point_scores(
        windows.inverse(drawn, starts), windows.truth(starts), windows.scored(starts)
    )
    return np.asarray(scores["free_running_crps"]).mean(axis=1)


def main() -> None:
    """Draws, forecasts and shows the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasting.uneven")
    parser.add_argument("--count", type=int, default=400, help="series")
    parser.add_argument("--num-samples", type=int, default=100)
    parser.add_argument("--model", help="another model than the one that is shipped")
    options = parser.parse_args()
    forecaster = Forecaster.from_preset(options.model or "prior")
    grid = SeriesGrid(NUM_CONTEXT + HORIZON, FINENESS)
    rng = numbered_generator(0, _STREAM, 0)
    shares = np.array([share for _, share in FAMILIES.values()])
    kinds = rng.choice(len(FAMILIES), options.count, p=shares / shares.sum())
    series = np.empty((options.count, grid.num_points))
    for kind, (family, _) in enumerate(FAMILIES.values()):
        mine = np.flatnonzero(kinds == kind)
        periods = np.tile([PERIOD, 0.0], (len(mine), 1))
        series[mine] = standardized(family(rng, grid, periods))
    even = np.arange(NUM_CONTEXT + HORIZON) * FINENESS
    last = even[NUM_CONTEXT - 1]
    random = []
    for _ in range(options.count):
        earlier = np.sort(rng.choice(last, NUM_CONTEXT - 1, replace=False))
        random.append(np.concatenate([earlier, even[NUM_CONTEXT - 1 :]]))
    both = [
        crps_of(forecaster, points, series, options.num_samples)
        for points in (np.tile(even, (options.count, 1)), np.array(random))
    ]
    difference = both[1] - both[0]
    figures = {
        "series": options.count,
        "crps, even stamps": round(float(both[0].mean()), 4),
        "crps, random stamps": round(float(both[1].mean()), 4),
        "more": round(float(difference.mean() / both[0].mean()), 4),
        "standard error": round(
            float(difference.std() / np.sqrt(options.count) / both[0].mean()), 4
        ),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
