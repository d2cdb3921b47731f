"""The best season of each of many series, and the odds of it against the best background."""

import copy

import numpy as np

from taylorformer.data_wrangler.tables.season_background import Spectrum
from taylorformer.data_wrangler.tables.season_odds import (
    FEWEST_CYCLES,
    FEWEST_CYCLES_OF_CANDIDATE,
    WHOLE_BONUS,
    BestSeasons,
    at_index,
    log_odds,
    share_of,
    slack_of,
)
from taylorformer.data_wrangler.tables.season_patterns import Patterns, Rows

SHORTEST_PERIOD = 3.0
"""The shortest period, in steps, of a season that is not asked for; what is faster is no season."""

# Numbers of harmonics of a season whose period need not be a whole number of steps.
_COUNTS = (1, 2, 4)
# The strongest wave may be one of these harmonics of a season with so many of them.
_STRONGEST_IS = {2: (2,), 4: (3, 4)}
_SHORTEST_CANDIDATE = 2.0
# Log odds that a season of N steps needs: _LEVEL - _LESS * sqrt(_FEW / N), as there are more
# frequencies in more steps. K candidates need _CANDIDATE_LEVEL + _CANDIDATE_SLOPE * log(K).
# With these 1 to 3 series in 100 without a season get one: see the tests.
_LEVEL, _LESS, _FEW = 10.3, 6.0, 12
_CANDIDATE_LEVEL, _CANDIDATE_SLOPE = 4.0, 0.4
# More is needed after other seasons.
_LATER_LEVEL = 1.0
# Waves down to this part of the shortest period are measured ones of that period.
_SHORTER = 0.95
# How far a period may be moved to become a whole number of steps, relative to itself: this much,
# and the error of a measured one with noise of 0.3 times the size of the wave (the bound of
# Cramer and Rao is sqrt(6) / pi * 0.3, divided by the cycles and the root of the rows).
_MOST_MOVED, _ERROR = 0.015, 0.28
# What is known about is this far from what is exact, in log odds, and not much worse.
_MARGIN = 2.0
# Where between two frequencies of the spectrum the best one is looked for.
_AROUND = np.linspace(-1, 1, 13)
# Between two frequencies of the spectrum waves may explain about this part more.
_BETWEEN = 0.08
# One wave between two frequencies may explain this much more of everything than it seems.
_WAVE_SLACK = 0.01
# Waves are not tried again this close to harmonics of what was removed, in cycles a series.
_REMOVED_CYCLES = 1.5
# The distance of the waves whose parabola gives the best frequency, in cycles a series.
_POLISH_CYCLES = 0.08


def best_season(
    rows: Rows, candidates: np.ndarray, removed: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, BestSeasons]:
    """Returns the log odds `[B]` of the best season, less what is needed, and that season.

    Args:
        rows: B series.
        candidates: `[B, K]` in steps, 0 for none.
        removed: `[B, R]`, periods of seasons that were removed from the series; 0 for none.
        used: `[B]`, how many regressors that took.
    """
    search = _Search(rows, candidates, removed, used)
    alive = search.alive()
    if len(alive):
        search.best.put(alive, search.take(alive).season())
    odds = search.best.score - rows.background - search.needed
    return np.where(search.best.period > 0, odds, -np.inf), search.best


class _Search:
    """One look for the best season of each of B series; see `best_season`."""

    def __init__(
        self, rows: Rows, candidates: np.ndarray, removed: np.ndarray, used: np.ndarray
    ) -> None:
        self.rows = rows
        self.asked_frequency = 1 / np.where(candidates > 0, candidates, np.inf)
        self.removed = removed
        self.degrees = (rows.degrees - used)[:, np.newaxis]
        self.steps = rows.num_steps[:, np.newaxis]
        later = _LATER_LEVEL * (removed > 0).any(axis=1)
        self.needed = _LEVEL - _LESS * np.sqrt(_FEW / rows.num_steps) + later
        legal = candidates * FEWEST_CYCLES_OF_CANDIDATE <= self.steps
        number = np.maximum((legal & (candidates > 0)).sum(axis=1), 1)
        asked = _CANDIDATE_LEVEL + _CANDIDATE_SLOPE * np.log(number) + later
        self.bonus = np.maximum(self.needed - asked, 0.0)[:, np.newaxis]
        self.share, self.size = rows.spectrum()
        self.series = np.arange(len(candidates))
        if removed.any():
            frequency = np.arange(1, self.share.shape[-1] + 1) / self.size
            allowed = ~self._is_removed(np.broadcast_to(frequency, (len(removed), len(frequency))))
            self.share = self.share * allowed[:, np.newaxis].astype(np.float32)
        # What is not much better than none is not looked at.
        self.best = BestSeasons.none(rows.background + self.needed - _MARGIN)
        self.patterns = Patterns(
            rows, Spectrum(self.share, self.size), self.degrees, candidates, self.bonus
        )

    def take(self, which: np.ndarray) -> "_Search":
        """Returns the search in some of the series."""
        search = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(search, name, value[which])
        search.series = np.arange(len(which))
        search.rows = self.rows.take(which)
        search.patterns = self.patterns.take(which, search.rows)
        search.best = BestSeasons.none(search.best.score[which])
        return search

    def alive(self) -> np.ndarray:
        """Returns the indices of series that may have a season."""
        most = self.patterns.most.max(axis=(1, 2))
        asked = self.asked_frequency
        for count in _COUNTS:
            tops = self._tops(count, 1 + _BETWEEN)[1].max(axis=1)
            most = np.maximum(most, tops + WHOLE_BONUS)
            if asked.any():
                about = self._sum(self.share, asked, count) * (1 + _BETWEEN)
                odds = log_odds(about, 2.0 * count, self.degrees[..., np.newaxis])
                odds = (odds + self.rows.evidence[..., np.newaxis]).max(axis=1)
                odds = np.where(asked > 0, odds + self.bonus, -np.inf)
                most = np.maximum(most, odds.max(axis=1))
        return np.flatnonzero(most > self.best.score)

    def season(self) -> BestSeasons:
        """Returns the best season."""
        shape, strongest = self._strongest_wave()
        for count in _COUNTS:
            self._try_waves(count, shape, strongest)
        self.patterns.improve(self.best, shape)
        return self.best

    def _is_removed(self, frequency: np.ndarray) -> np.ndarray:
        """Tells which frequencies `[B, M]` are next to a harmonic of what was removed."""
        result = np.zeros(frequency.shape, bool)
        for one in self.removed.T[..., np.newaxis]:
            number = np.maximum(np.rint(frequency * one), 1)
            away = np.abs(frequency - number / np.where(one > 0, one, np.inf))
            result |= (one > 0) & (away * self.steps < _REMOVED_CYCLES)
        return result

    def _tops(self, count: int, times: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Returns the frequency whose first harmonics explain most, `[B, S]`, and the log odds."""
        last = self.share.shape[-1] // count
        first = np.ceil(FEWEST_CYCLES / self.steps * self.size - 1).astype(np.intp)
        start = min(int(first.min()), last - 1)
        total = self.share[..., start:last]
        for number in range(2, count + 1):
            total = total + self.share[..., number * (start + 1) - 1 :: number][..., : last - start]
        if (first != first[0]).any():
            total = np.where((np.arange(start, last) >= first)[:, np.newaxis], total, 0)
        index = total.argmax(axis=-1)
        most = np.take_along_axis(total, index[..., np.newaxis], axis=-1)[..., 0]
        odds = log_odds(times * most, 2.0 * count, self.degrees) + self.rows.evidence
        return (index + start + 1.0) / self.size, odds

    def _refined(
        self, frequency: np.ndarray, series: np.ndarray, shape: np.ndarray, count: int
    ) -> np.ndarray:
        """Moves frequencies `[b]` of the grid to where harmonics explain most between them."""
        share = self.share[series, shape][:, np.newaxis]
        row = np.arange(len(frequency))
        # What one wave explains is measured exactly later.
        for reach in (0.6,) if count == 1 else (0.6, 0.06):
            around = frequency[:, np.newaxis] + _AROUND * (reach / (count * self.size))
            frequency = around[row, self._sum(share, around, count)[:, 0].argmax(axis=1)]
        return frequency

    def _sum(self, share: np.ndarray, frequency: np.ndarray, count: int) -> np.ndarray:
        """Returns what harmonics of `[b, M]` explain, were they independent: `[b, S, M]`."""
        total = at_index(share, frequency * self.size - 1)
        for number in range(2, count + 1):
            wave = at_index(share, frequency * number * self.size - 1)
            total += np.where((frequency * number <= 0.5)[:, np.newaxis], wave, 0)
        return total

    def _strongest_wave(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the background that suits the rows beside the strongest wave, `[B]`, and it."""
        frequency, odds = self._tops(1)
        if not self.rows.is_exact:
            odds = self._odds_of_wave(frequency)
        shape = odds.argmax(axis=1)
        # The top of a parabola through three exact values.
        top = self._refined(frequency[self.series, shape], self.series, shape, 1)
        step = _POLISH_CYCLES / self.steps
        around = top[:, np.newaxis] + step * np.array([-1, 0, 1])
        share = self._explained(np.repeat(self.series, 3), np.repeat(shape, 3), around.ravel(), 1)
        before, here, after = share.reshape(-1, 3).T
        bend = 2 * here - before - after
        move = np.where(bend > 0, (after - before) / np.where(bend > 0, 2 * bend, 1), 0)
        top = top + np.clip(move, -1, 1) * step[:, 0]
        return self._odds_of_wave(top[:, np.newaxis]).argmax(axis=1), top

    def _odds_of_wave(self, frequency: np.ndarray) -> np.ndarray:
        """Returns the log odds `[B, S]` of one wave beside every background."""
        evidence = self.rows.evidence
        frequency = np.broadcast_to(frequency, evidence.shape)
        odds = np.full(evidence.shape, -np.inf)
        wanted = np.ones(evidence.shape, bool)
        if self.rows.is_exact:
            about = at_index(self.share, frequency[:, :1] * self.size - 1)[..., 0]
            least = (log_odds(about, 2.0, self.degrees) + evidence).max(axis=1, keepdims=True)
            wanted = log_odds(about + _WAVE_SLACK, 2.0, self.degrees) + evidence >= least
        row, shape = np.nonzero(wanted)
        share = self._explained(row, shape, frequency[row, shape], 1)
        odds[row, shape] = log_odds(share, 2.0, self.degrees[row, 0]) + evidence[row, shape]
        return odds

    def _try_waves(self, count: int, shape: np.ndarray, strongest: np.ndarray) -> None:
        """Tries seasons of some harmonics at the best frequency and next to it."""
        if count == 1:
            about_shortest = strongest < 1 / (SHORTEST_PERIOD * _SHORTER)
            free = np.where(about_shortest, np.minimum(strongest, 1 / SHORTEST_PERIOD), strongest)
            free = free[:, np.newaxis]
        else:
            frequency, odds = self._tops(count)
            suited = odds.argmax(axis=1)
            top = frequency[self.series, suited]
            frequency = self._refined(top, self.series, suited, count)
            parts = [strongest / number for number in _STRONGEST_IS[count]]
            # So many harmonics are the whole of a short pattern.
            parts += [1 / self.patterns.short] * (count == _COUNTS[-1])
            free = np.stack([frequency, *parts], axis=1)
        whole = 1 / np.maximum(np.rint(1 / free), 2)
        error = _ERROR / (free * self.steps * np.sqrt(self.rows.num_rows)[:, np.newaxis])
        moved = np.abs(whole / free - 1) <= np.maximum(error, _MOST_MOVED)
        asked = self.asked_frequency
        frequency = np.concatenate([free, np.where(moved, whole, 0), asked], axis=1)
        is_asked = np.arange(frequency.shape[1]) >= 2 * free.shape[1]
        is_whole = (np.arange(frequency.shape[1]) >= free.shape[1]) & ~is_asked
        bonus = np.where(is_asked, self.bonus, WHOLE_BONUS * is_whole)
        period = 1 / np.where(frequency > 0, frequency, np.inf)
        cycles = frequency * self.steps
        legal = np.where(
            is_asked,
            (period >= _SHORTEST_CANDIDATE) & (cycles >= FEWEST_CYCLES_OF_CANDIDATE - 1e-9),
            (period >= 2) & (cycles >= FEWEST_CYCLES),
        )
        # The upper half of the harmonics must not all be faster than there are rows to show it.
        legal &= (frequency * (count // 2 + 1) <= 0.5 + 1e-9) & ~self._is_removed(frequency)
        regressors = np.clip(np.ceil(period - 1e-9) - 1, 1, 2 * count)
        about = self._sum(self.share, frequency, count)
        slack = 1 + slack_of(cycles)[:, np.newaxis]
        numbers = regressors[:, np.newaxis], self.degrees[..., np.newaxis]
        evidence = self.rows.evidence[..., np.newaxis]
        most = (log_odds(about * slack, *numbers) + evidence).max(axis=1)
        most = np.where(legal, most + bonus, -np.inf)
        # Exact odds of what may be better, beside the background that suits the strongest wave, and
        # the one that seems to suit the harmonics.
        which, hypothesis = np.nonzero(most > self.best.score[:, np.newaxis])
        if not len(which):
            return
        shapes = shape[which]
        if count > 1 and self.rows.is_exact:
            about = log_odds(about, *numbers) + evidence
            other = about[which, :, hypothesis].argmax(axis=1)
            differs = other != shapes
            shapes = np.concatenate([shapes, other[differs]])
            which = np.concatenate([which, which[differs]])
            hypothesis = np.concatenate([hypothesis, hypothesis[differs]])
        share = self._explained(which, shapes, frequency[which, hypothesis], count)
        odds = log_odds(share, regressors[which, hypothesis], self.degrees[which, 0])
        odds += self.rows.evidence[which, shapes] + bonus[which, hypothesis]
        score = np.full(frequency.shape, -np.inf)
        np.maximum.at(score, (which, hypothesis), odds)
        before = self.best.score
        self.best.take(score, period, count, is_asked)
        if count > 1 and self.rows.is_exact:
            better = np.flatnonzero(self.best.score > before)
            top = score[better].argmax(axis=1)
            self._try_backgrounds(
                better, count, frequency[better, top], regressors[better, top], bonus[better, top]
            )

    def _try_backgrounds(
        self,
        which: np.ndarray,
        count: int,
        frequency: np.ndarray,
        regressors: np.ndarray,
        bonus: np.ndarray,
    ) -> None:
        """Scores the best seasons of some series `[b]` beside every background that may suit."""
        evidence, degrees = self.rows.evidence[which], self.degrees[which]
        about = self._sum(self.share[which], frequency[:, np.newaxis], count)[..., 0]
        slack = slack_of(frequency * self.steps[which, 0])[:, np.newaxis]
        numbers = regressors[:, np.newaxis], degrees
        least = (log_odds(about * (1 - slack), *numbers) + evidence).max(axis=1, keepdims=True)
        row, shape = np.nonzero(log_odds(about * (1 + slack), *numbers) + evidence >= least)
        share = self._explained(which[row], shape, frequency[row], count)
        odds = log_odds(share, regressors[row], degrees[row, 0]) + evidence[row, shape]
        np.maximum.at(self.best.score, which[row], odds + bonus[row])

    def _explained(
        self, which: np.ndarray, shape: np.ndarray, frequency: np.ndarray, count: int
    ) -> np.ndarray:
        """Returns the share `[P]` of the variance that harmonics explain together."""
        turns = frequency[:, np.newaxis] * self.rows.position[which]
        angle = (2 * np.pi * (turns - np.floor(turns))).astype(np.float32)
        columns = np.empty((len(which), 2 * count, angle.shape[1]), np.float32)
        weight = self.rows.weight[which].astype(np.float32)
        cos, sin = np.cos(angle), np.sin(angle)
        columns[:, 0], columns[:, 1] = cos * weight, sin * weight
        for number in range(1, count):
            before = columns[:, 2 * number - 2], columns[:, 2 * number - 1]
            columns[:, 2 * number] = before[0] * cos - before[1] * sin
            columns[:, 2 * number + 1] = before[0] * sin + before[1] * cos
        harmonics = frequency[:, np.newaxis] * np.repeat(np.arange(1, count + 1), 2)
        columns[harmonics > 0.5 + 1e-9] = 0
        return share_of(*self.rows.products(which, shape, columns))
