"""Seasons of one value for each step of a whole period."""

import copy

import numpy as np

from taylorformer.data_wrangler.tables.season_background import EvenRows, Spectrum
from taylorformer.data_wrangler.tables.season_odds import (
    FEWEST_CYCLES,
    FEWEST_CYCLES_OF_CANDIDATE,
    WHOLE_BONUS,
    WHOLE_PATTERN,
    BestSeasons,
    log_odds,
    pattern_weights,
    share_of,
    slack_of,
)
from taylorformer.data_wrangler.tables.season_uneven import UnevenRows

Rows = EvenRows | UnevenRows

# Waves with as many harmonics as are tried are whole patterns of less steps than these.
_SHORTEST = 10
# Longer patterns have so many regressors that none is better by little, and still longer ones so
# many that they take too long; the hours of a week are 168.
_LONG, _LONGEST = 24, 200
# Divisors of the best pattern that explain this part of it are tried, too.
_DIVISOR_PART = 0.6
# This close to a whole number is a multiple of a period, which explains so much more than it seems.
_MULTIPLE, _MULTIPLE_SLACK = 0.05, 0.003
# A candidate is a whole number of steps if it is that far from it at the end of the series.
_SAME_STEPS = 0.5
# A season inside of a pattern has at least 7 steps, and 5 cycles in it: days in a week. Its steps
# explain at least 3 times as much each as the others of the pattern.
_SHORTEST_INSIDE, _CYCLES_INSIDE, _TIMES_INSIDE = 7, 5, 3.0


class Patterns:
    """What patterns of 2, 3, ... P steps explain of B series.

    Args:
        rows: the series.
        spectrum: what their waves explain.
        degrees: `[B, 1]`, degrees of freedom.
        candidates: `[B, K]` in steps, 0 for none.
        bonus: `[B, 1]`, log odds that candidates are given.

    Attributes:
        most: `[B, S, P]`, about the log likelihood of the most that longer ones may explain.
        short: `[B]`, the best of the patterns that are so short that few waves are all of them.
    """

    def __init__(
        self,
        rows: Rows,
        spectrum: Spectrum,
        degrees: np.ndarray,
        candidates: np.ndarray,
        bonus: np.ndarray,
    ) -> None:
        self._rows = rows
        self._degrees = degrees
        steps = rows.num_steps[:, np.newaxis]
        longest = max(min(int(steps.max() / FEWEST_CYCLES_OF_CANDIDATE), _LONGEST), 2)
        self._period = np.arange(2, longest + 1)
        share = spectrum.share
        self._about = share.reshape(-1, share.shape[-1]) @ pattern_weights(spectrum.size, longest)
        self._about = self._about.reshape(*share.shape[:2], -1)
        self._slack = slack_of(steps / self._period) * np.minimum(_LONG / self._period, 1)
        away = np.abs(candidates[..., np.newaxis] / self._period - 1) * steps[..., np.newaxis]
        same = np.logical_and(away <= _SAME_STEPS, (candidates > 0)[..., np.newaxis])
        self._asked = np.asarray(same.any(axis=1))
        self._bonus = np.where(self._asked, np.maximum(bonus, WHOLE_BONUS), WHOLE_BONUS)
        fewest = np.where(self._asked, FEWEST_CYCLES_OF_CANDIDATE, FEWEST_CYCLES)
        self._legal: np.ndarray = np.logical_and(self._period * fewest <= steps, rows.on_grid)
        # About the log likelihood of the most that they may explain.
        self.most = self._scores(slice(None), self._about * (1 + self._slack[:, np.newaxis]))
        self.short = self.most[..., : _SHORTEST - 2].max(axis=1).argmax(axis=1) + 2
        self.most[..., : _SHORTEST - 2] = -np.inf

    def _scores(self, which: slice | np.ndarray, share: np.ndarray) -> np.ndarray:
        """Returns log likelihoods `[..., S, P]` of patterns that explain so much."""
        odds = log_odds(share, self._period - 1.0, self._degrees[which][..., np.newaxis])
        odds += self._rows.evidence[which][..., np.newaxis]
        odds += self._bonus[which][..., np.newaxis, :]
        return np.where(self._legal[which][..., np.newaxis, :], odds, -np.inf)

    def take(self, which: np.ndarray, rows: Rows) -> "Patterns":
        """Returns what patterns explain of some of the series, whose rows are these."""
        patterns = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name != "_period":
                setattr(patterns, name, value[which])
        patterns._rows = rows
        return patterns

    def improve(self, best: BestSeasons, shape: np.ndarray) -> None:
        """Takes patterns that are better than the best seasons so far.

        Args:
            best: these.
            shape: `[B]`, the background that suits each series, for rows of which `spectrum` is
                not exact.
        """
        alive = np.flatnonzero(self.most.max(axis=(1, 2)) > best.score)
        if not len(alive):
            return
        plain = self._scores(alive, self._about[alive])[..., _SHORTEST - 2 :]
        plain = plain.reshape(len(alive), -1)
        for index, highest in zip(alive.tolist(), plain.argmax(axis=1).tolist(), strict=True):
            suited, top = divmod(highest, self._period.size - _SHORTEST + 2)
            suited = suited if self._rows.is_exact else int(shape[index])
            top += _SHORTEST
            about = self._about[index, suited]
            enough, more = _DIVISOR_PART * about[top - 2], None
            for period in range(_SHORTEST, top + 1):
                if top % period == 0 and about[period - 2] >= enough:
                    more = self._try(best, index, period, suited, more)
            if best.harmonics[index] == WHOLE_PATTERN and best.period[index] > 0:
                self._look_inside(best, index, suited)

    def _try(
        self, best: BestSeasons, index: int, period: int, shape: int, more: float | None
    ) -> float | None:
        """Tries a pattern that may be better.

        Args:
            best: the best seasons so far.
            index: which series.
            period: of the pattern.
            shape: index of the background.
            more: how much more a divisor of the period explains than it seems, about as much as
                the period does. None: not measured.

        Returns:
            How much more it explains than it seems.
        """
        about = self._about[index, shape, period - 2]
        times = period / best.period[index] if best.period[index] > 0 else 0.5
        slack = _MULTIPLE_SLACK + (more or 0.0)
        if more is None and abs(times - np.rint(times)) > _MULTIPLE:
            slack = about * self._slack[index, period - 2]
        degrees, count = self._degrees[index, 0], period - 1.0
        given = self._rows.evidence[index, shape] + self._bonus[index, period - 2]
        if log_odds(about + slack, count, degrees) + given <= best.score[index]:
            return more
        share = self._explained(index, period, shape)
        score = log_odds(share, count, degrees) + given
        if score > best.score[index] and self._legal[index, period - 2]:
            best.score[index], best.period[index] = score, period
            best.harmonics[index] = WHOLE_PATTERN
            best.asked[index] = self._asked[index, period - 2]
        return float(share - about)

    def _explained(self, index: int, period: int, shape: int) -> float:
        """Returns the share of the variance that a pattern explains."""
        phase = np.rint(self._rows.position[index]).astype(np.intp) % period
        columns = np.eye(period, dtype=np.float32)[:-1, phase]
        columns = columns * self._rows.weight[index].astype(np.float32)
        which = np.array([index]), np.array([shape])
        return float(share_of(*self._rows.products(*which, columns[np.newaxis]))[0])

    def _look_inside(self, best: BestSeasons, index: int, shape: int) -> None:
        """Looks for a season whose cycles make up much of the pattern: days of a week."""
        period = int(best.period[index])
        whole = None
        for part in range(period // _CYCLES_INSIDE, _SHORTEST_INSIDE - 1, -1):
            about = self._about[index, shape, part - 2] * (1 + self._slack[index, part - 2])
            seems = about / (part - 1) * (period - part)
            if period % part or seems < _TIMES_INSIDE * (
                self._about[index, shape, period - 2] - about
            ):
                continue
            whole = self._explained(index, period, shape) if whole is None else whole
            share = self._explained(index, part, shape)
            if share / (part - 1) >= _TIMES_INSIDE * max(whole - share, 0) / (period - part):
                best.inside[index], best.part[index] = part, min(share / whole, 1.0)
                return
