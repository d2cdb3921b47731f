"""Rows with gaps or on no grid: backgrounds without a season, and how much waves explain."""

import copy

import numpy as np

from taylorformer.data_wrangler.tables.season_background import (
    AUTOREGRESSIONS,
    FEWEST_CYCLES,
    OVERSAMPLING,
    TINY,
    TREND_DEGREE,
    Spectrum,
    even_length,
)

# So many low cosines describe a walk or smooth changes and noise: the powers of 1 / number by which
# they fall, and the number up to which they are above the noise.
_COSINES = 24
_SMOOTH = [(steepness, last) for steepness in (2.0, 4.0) for last in (3, 6, 12)]
# The scale of a row that says nothing.
_FREE = 1e-4


class _Background:
    """One background of B uneven series: a filter of neighbours, then low cosines in white noise.

    The precision matrix is `F' (I - U U') F` with the filter F and the basis U, which holds the
    cosines and the trend.

    Args:
        filters: pairs `[B, N]` of what a row keeps of the one before and how it is scaled.
        trend: `[B, D, N]`.
        real: `[B, N]`, False for padding.
        cosines: `[B, N, K]`, or None.
        power: `[K]`, of the cosines relative to the noise; None without cosines.
    """

    def __init__(
        self,
        filters: list[tuple[np.ndarray, np.ndarray]],
        trend: np.ndarray,
        real: np.ndarray,
        cosines: np.ndarray | None = None,
        power: np.ndarray | None = None,
    ) -> None:
        self.filters = filters
        self.log_root = np.zeros(len(trend))
        for _, scale in filters:
            self.log_root += np.log(np.where(real, scale, 1.0)).sum(axis=1)
        white = self.white(trend)
        basis = np.zeros((len(trend), trend.shape[2], 0))
        if cosines is not None and power is not None:
            inside = cosines.swapaxes(1, 2) @ cosines
            lower = np.linalg.cholesky(np.diag(1 / power) + inside)
            diagonal = np.diagonal(lower, axis1=1, axis2=2)
            self.log_root = self.log_root - np.log(diagonal).sum(axis=1) - np.log(power).sum() / 2
            basis = cosines @ np.linalg.inv(lower).swapaxes(1, 2)
        rest = white - (white @ basis) @ basis.swapaxes(1, 2)
        lower = np.linalg.cholesky(white @ rest.swapaxes(1, 2))
        self.log_root = self.log_root - np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        self.basis = np.concatenate([basis, (np.linalg.inv(lower) @ rest).swapaxes(1, 2)], axis=2)

    def white(self, columns: np.ndarray, which: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Filters columns `[P, C, N]` of series `which`."""
        for keep, scale in self.filters:
            before = np.zeros_like(columns)
            before[..., 1:] = columns[..., :-1]
            columns = (columns - keep[which][:, np.newaxis] * before) * scale[which][:, np.newaxis]
        return columns

    def take(self, which: np.ndarray) -> "_Background":
        """Returns the background of some of the series."""
        one = copy.copy(self)
        one.filters = [(keep[which], scale[which]) for keep, scale in self.filters]
        one.log_root, one.basis = self.log_root[which], self.basis[which]
        return one

    def turned(self, rows: np.ndarray) -> np.ndarray:
        """Filters rows `[B, N]` backwards: the transpose of `white`."""
        for keep, scale in reversed(self.filters):
            rows = rows * scale
            after = np.zeros_like(rows)
            after[:, :-1] = keep[:, 1:] * rows[:, 1:]
            rows = rows - after
        return rows


class UnevenRows:
    """B series whose rows have gaps or lie on no grid.

    Args:
        values: `[B, N]` float64.
        position: `[B, N]` float64, in steps, increasing; rows of padding are last.
        num_rows: `[B]`, how many rows are no padding.
        on_grid: whether all positions are whole numbers.

    Attributes:
        is_exact: False: `spectrum` is about right only; `products` is exact.
        num_steps: `[B]`, the length in steps, with one step after the last row.

    The other attributes are those of `EvenRows`.
    """

    is_exact = False

    def __init__(
        self, values: np.ndarray, position: np.ndarray, num_rows: np.ndarray, on_grid: bool
    ) -> None:
        real = np.arange(values.shape[1]) < num_rows[:, np.newaxis]
        self.num_rows = num_rows
        self.on_grid = on_grid
        self.weight = real.astype(np.float64)
        self.position = np.where(real, position, 0.0)
        last = self.position.max(axis=1)
        self.num_steps = last + (1 if on_grid else last / (num_rows - 1))
        self.degrees = num_rows - 1.0 - TREND_DEGREE
        self._prepare_backgrounds(real, last)
        columns = (values * self.weight)[:, np.newaxis]
        self._rest, squares = [], []
        for background in self._backgrounds:
            white = background.white(columns)
            rest = (white - (white @ background.basis) @ background.basis.swapaxes(1, 2))[:, 0]
            squares.append(np.maximum((white[:, 0] * rest).sum(axis=1), TINY))
            self._rest.append(rest / np.sqrt(squares[-1])[:, np.newaxis])
        self.rest = squares[0]
        log_roots = np.stack([one.log_root for one in self._backgrounds], axis=1)
        self.evidence = log_roots - self.degrees[:, np.newaxis] / 2 * np.log(np.stack(squares, 1))
        self.background = self.evidence.max(axis=1)

    def _prepare_backgrounds(self, real: np.ndarray, last: np.ndarray) -> None:
        gap = np.diff(self.position, axis=1, prepend=0.0)
        first = ~real | (np.arange(real.shape[1]) == 0)
        second = first | (np.arange(real.shape[1]) == 1)
        self._gap = gap = np.where(first, 1.0, gap)
        x = 2 * self.position / np.maximum(last, TINY)[:, np.newaxis] - 1
        trend = np.stack([x**degree for degree in range(TREND_DEGREE + 1)], axis=1)
        trend = trend * self.weight[:, np.newaxis]
        white = (np.zeros_like(gap), self.weight)
        self._backgrounds = [_Background([white], trend, real)]
        for root in AUTOREGRESSIONS:
            if root > 0:
                keep = np.where(first, 0.0, root**gap)
                scale = self.weight * np.where(first, 1.0, np.sqrt((1 - root**2) / (1 - keep**2)))
                scale = np.where(first, self.weight * np.sqrt(1 - root**2), scale)
                self._backgrounds.append(_Background([(keep, scale)], trend, real))
        # The first rows of walks say nothing: level and slope are part of the trend.
        walk = (np.where(first, 0.0, 1.0), self.weight * np.where(first, _FREE, 1 / np.sqrt(gap)))
        self._backgrounds.append(_Background([walk], trend, real))
        slope = (walk[0], self.weight * np.where(first, _FREE, 1 / gap))
        mean_gap = (gap + np.roll(gap, 1, axis=1)) / 2
        turn = self.weight * np.where(second, _FREE, 1 / np.sqrt(mean_gap))
        integrated = (np.where(second, 0.0, 1.0), turn)
        self._backgrounds.append(_Background([slope, integrated], trend, real))
        number = np.arange(1, _COSINES + 1)
        shift = (self.position + 0.5) / self.num_steps[:, np.newaxis]
        cosines = np.cos(np.pi * number * shift[..., np.newaxis]) * self.weight[..., np.newaxis]
        cosines *= np.sqrt(2 / self.num_rows)[:, np.newaxis, np.newaxis]
        for steepness, last_number in _SMOOTH:
            power = (last_number / number) ** steepness
            self._backgrounds.append(_Background([white], trend, real, cosines, power))

    def take(self, which: np.ndarray) -> "UnevenRows":
        """Returns some of the series."""
        rows = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(rows, name, value[which])
        rows._rest = [rest[which] for rest in self._rest]
        rows._backgrounds = [background.take(which) for background in self._backgrounds]
        return rows

    def _gains(self, frequency: np.ndarray) -> np.ndarray:
        """Returns about what backgrounds leave of a wave of power 1: `[B, S, F]`."""
        turn = np.cos(
            (2 * np.pi * frequency).astype(np.float32)[:, np.newaxis]
            * self._gap[:, np.newaxis].astype(np.float32)
        )
        count = self.num_rows[:, np.newaxis]
        gains = np.ones((len(count), len(self._backgrounds), len(frequency)))
        for index, background in enumerate(self._backgrounds):
            for keep, scale in background.filters:
                square = scale**2 * (scale > _FREE)
                fixed = (square * (1 + keep**2)).sum(axis=1)[:, np.newaxis]
                moving = turn @ (2 * square * keep).astype(np.float32)[..., np.newaxis]
                gains[:, index] *= (fixed - moving[..., 0]) / count
        wave = np.maximum(2 * frequency * self.num_steps[:, np.newaxis], 1.0)
        for index, (steepness, last) in enumerate(_SMOOTH, start=-len(_SMOOTH)):
            gains[:, index] /= 1 + (last / wave) ** steepness
        return gains * count[..., np.newaxis] / 2

    def spectrum(self) -> Spectrum:
        """Returns about what each wave explains; `products` is exact."""
        size = even_length(int(np.ceil(OVERSAMPLING * self.num_steps.max())))
        frequency = np.arange(1, size // 2 + 1) / size
        # In 32 bits, in place: this is the most work, and only a first look.
        turns = frequency.astype(np.float32)[:, np.newaxis]
        angle = turns * self.position.astype(np.float32)[:, np.newaxis]
        angle -= np.floor(angle)
        angle *= np.float32(2 * np.pi)
        parts = [one.turned(rest) for one, rest in zip(self._backgrounds, self._rest, strict=True)]
        rows = np.stack(parts, axis=2).astype(np.float32)
        share = (np.cos(angle) @ rows) ** 2 + (np.sin(angle) @ rows) ** 2
        share = share.swapaxes(1, 2) / np.maximum(self._gains(frequency), TINY)
        seen = frequency * self.num_steps[:, np.newaxis] >= FEWEST_CYCLES
        return Spectrum((share * seen[:, np.newaxis]).astype(np.float32), size)

    def products(
        self, which: np.ndarray, shape: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns products of columns beside backgrounds; see `EvenRows.products`."""
        gram = np.empty((*columns.shape[:2], columns.shape[1]))
        with_values = np.empty(columns.shape[:2])
        for index in np.unique(shape):
            background = self._backgrounds[index]
            chosen = np.flatnonzero(shape == index)
            series = which[chosen]
            white = background.white(columns[chosen].astype(np.float64), series)
            inside = white @ background.basis[series]
            gram[chosen] = white @ white.swapaxes(1, 2) - inside @ inside.swapaxes(1, 2)
            with_values[chosen] = (white @ self._rest[index][series][..., np.newaxis])[..., 0]
        return gram, with_values
