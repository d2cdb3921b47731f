"""Odds of regressors, and what waves explain between the frequencies of a spectrum."""

import dataclasses
import functools
from typing import Any

import numpy as np

WHOLE_PATTERN = 0
"""The number of harmonics that stands for one value for each step of a period."""

FEWEST_CYCLES = 2.5
"""A season that nobody asked for has at least this many cycles."""

FEWEST_CYCLES_OF_CANDIDATE = 2.0
"""A candidate has at least this many cycles."""

WHOLE_BONUS = 1.0
"""Log odds that a whole number of steps next to the best period is given."""

# Harmonics are not quite independent: together they may explain more than it seems, by this part
# divided by the number of cycles, and by this part at most.
_SLACK, _MOST_SLACK = 0.3, 0.05
_FEWEST_DEGREES = 2
# Regressors explain this much at most: noise this small is as good as none.
_MOST_EXPLAINED = 1 - 1e-3
# Makes products of columns regular.
_RIDGE = 1e-5


@dataclasses.dataclass
class BestSeasons:
    """The best season of each of B series so far.

    Attributes:
        score: `[B]`, its log likelihood and what is given for free.
        period: `[B]`, in steps; 0 for none.
        harmonics: `[B]`, their number; or `WHOLE_PATTERN`.
        asked: `[B]` bool, whether it is one of the candidates.
        inside: `[B]`, the period of a season inside of a whole pattern; 0 for none.
        part: `[B]`, the part of the pattern that it is.
    """

    score: np.ndarray
    period: np.ndarray
    harmonics: np.ndarray
    asked: np.ndarray
    inside: np.ndarray
    part: np.ndarray

    @classmethod
    def none(cls, score: np.ndarray) -> "BestSeasons":
        """Returns none, where a season needs a score."""
        count = len(score)
        return cls(
            score,
            np.zeros(count),
            np.zeros(count, np.intp),
            np.zeros(count, bool),
            np.zeros(count),
            np.zeros(count),
        )

    def put(self, which: np.ndarray, others: "BestSeasons") -> None:
        """Sets the seasons of some series."""
        for field in dataclasses.fields(self):
            getattr(self, field.name)[which] = getattr(others, field.name)

    def take(self, score: np.ndarray, period: np.ndarray, count: int, asked: np.ndarray) -> None:
        """Takes the best of seasons of some harmonics, `[B, M]`, where it is better."""
        series, best = np.arange(len(score)), score.argmax(axis=1)
        better = score[series, best] > self.score
        self.score = np.where(better, score[series, best], self.score)
        self.period = np.where(better, period[series, best], self.period)
        self.harmonics = np.where(better, count, self.harmonics)
        self.asked = np.where(better, asked[best], self.asked)


def log_odds(share: Any, count: Any, degrees: Any) -> Any:
    """Returns the log odds of `count` regressors that explain a share of the variance.

    It is the Bayes factor under Zellner's prior, with the scale that suits the data best (the local
    empirical Bayes of Liang et al. 2008); 0 where they explain no more than noise does.
    """
    share = np.minimum(np.maximum(share, 0.0), _MOST_EXPLAINED)
    left = np.maximum(degrees - count, 1.0)
    rest = 1 - share
    scale = np.maximum(share * left / (count * rest) - 1, 0.0)
    odds = 0.5 * (left * np.log1p(scale) - degrees * np.log1p(scale * rest))
    # With less than two degrees of freedom left nothing is known of the noise.
    return odds * (degrees - count >= _FEWEST_DEGREES)


def slack_of(cycles: np.ndarray) -> np.ndarray:
    """Returns by which part harmonics of a season of so many cycles may explain more."""
    return np.minimum(_SLACK / np.maximum(cycles, 1), _MOST_SLACK)


def at_index(share: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Interpolates `[B, S, F]` by parabolas at indices `[B, M]`; returns `[B, S, M]`."""
    middle = np.minimum(np.maximum(np.rint(index), 1), share.shape[-1] - 2)
    rest = np.minimum(np.maximum(index - middle, -1), 1).astype(np.float32)[:, np.newaxis]
    middle = middle.astype(np.intp)
    flat = share.reshape(-1)
    first = np.arange(share.shape[0] * share.shape[1]).reshape(*share.shape[:2], 1)
    middle = middle[:, np.newaxis] + first * share.shape[-1]
    before, here, after = (flat[middle + shift] for shift in (-1, 0, 1))
    return here + rest / 2 * (after - before + rest * (after + before - 2 * here))


@functools.lru_cache(maxsize=64)
def pattern_weights(size: int, longest: int) -> np.ndarray:
    """Returns `[F, P]`: how frequencies add up to patterns of 2, 3, ... `longest` steps."""
    count = size // 2
    weights = np.zeros((count, longest - 1), np.float32)
    for column, period in enumerate(range(2, longest + 1)):
        index = np.arange(1, period // 2 + 1) / period * size - 1
        middle = np.clip(np.rint(index).astype(np.intp), 1, count - 2)
        rest = index - middle
        np.add.at(weights[:, column], middle - 1, rest / 2 * (rest - 1))
        np.add.at(weights[:, column], middle, 1 - rest**2)
        np.add.at(weights[:, column], middle + 1, rest / 2 * (rest + 1))
    return weights


def share_of(gram: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Returns what columns explain, of their products with one another and with the values."""
    diagonal = np.einsum("...ii->...i", gram)
    # Columns of zeros stand for harmonics that are not there.
    diagonal += np.where(diagonal > 0, _RIDGE * diagonal, 1.0)
    solution = np.linalg.solve(gram, products[..., np.newaxis])[..., 0]
    return (products * solution).sum(axis=-1)
