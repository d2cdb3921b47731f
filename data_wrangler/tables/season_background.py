"""Rows one step apart: backgrounds without a season, and how much waves explain beyond them.

A background is a trend and noise whose power falls (or rises) steadily with frequency, such as
white noise, an autoregression, a random walk, its integral, and sums of them: one `shape` for
each. A season is what stands out of every such background.
"""

import copy
import functools
from typing import NamedTuple

import numpy as np
import scipy.fft

TREND_DEGREE = 2
"""Degree of the trend. With the square, cosines describe smooth series up to their ends."""

AUTOREGRESSIONS = (0.5, -0.98, -0.9, -0.75, -0.5, -0.25, 0.25, 0.65, 0.8, 0.95)
"""Coefficients of autoregressions; a random walk is the limit of 1."""

OVERSAMPLING = 4
"""Waves are examined at frequencies this part of 1 / (number of steps) apart."""

FEWEST_CYCLES = 1.5
"""Waves of fewer cycles than these look like trends, and are not examined."""

TINY = 1e-30
"""Keeps divisions from 0 / 0."""

# Frequencies below which a walk or smooth changes exceed white noise: so many, from that many
# cycles a series to that many a step.
_NUM_TURNS, _FIRST_TURN, _LAST_TURN = 6, 1.5, 0.2
# A damped trend is a walk below this part of that frequency, squared, and smooth above.
_DAMPING = 0.1
# A determinant, relative to the product of the diagonal, below which two waves are one.
_SAME_WAVE = 1e-4
# Seasons are tried beside the first backgrounds, and beside as many that suit the rows alone.
_NUM_FIRST, _NUM_BEST = 5, 4


class Spectrum(NamedTuple):
    """B series on frequencies.

    Attributes:
        share: `[B, S, F]` float32, about what share of the variance a wave explains beside each of
            S backgrounds; the frequency of index i is `(i + 1) / size` cycles a step.
        size: length of the Fourier transform.
    """

    share: np.ndarray
    size: int


def even_length(least: int) -> int:
    """Returns an even length of a fast Fourier transform."""
    length = int(scipy.fft.next_fast_len(least, real=True))
    return length if length % 2 == 0 else even_length(least + 1)


def _inverse_powers(eigenvalues: np.ndarray, num_rows: int) -> np.ndarray:
    """Returns 1 / power `[S, K]` of cosines, whose eigenvalues `[K]` are those of a walk."""
    turns = np.geomspace(min(_FIRST_TURN / num_rows, _LAST_TURN / 2), _LAST_TURN, _NUM_TURNS)
    turns = 4 * np.sin(np.pi * turns) ** 2
    roots = np.array(AUTOREGRESSIONS)[:, np.newaxis]
    walk = eigenvalues[np.newaxis]
    turn = turns[:, np.newaxis] / walk
    damped = turns[:, np.newaxis] * (1 + _DAMPING) / (walk + turns[:, np.newaxis] * _DAMPING)
    autoregressions = (1 - roots) ** 2 + roots * walk
    first = [walk**0, autoregressions[:1], walk, 1 / (1 + turn[1:2]), 1 / (1 + turn[:1] ** 2)]
    rest = [
        autoregressions[1:],
        1 / (1 + turn[2:]),
        1 / (1 + turn[1:] ** 2),
        1 / (1 + turn * damped),
        walk**2,
        walk * (walk + _DAMPING),
        walk**4,
    ]
    return np.concatenate([*first, *rest])


def _cosines(rows: np.ndarray) -> np.ndarray:
    """Returns the coefficients `[..., K]` of orthonormal cosines, without the constant."""
    return scipy.fft.dct(rows, norm="ortho", axis=-1)[..., 1:]


@functools.lru_cache(maxsize=64)
class _Tables:
    """What depends on the number of rows only.

    The precision matrix of a background is `C' r (I - Q Q') r C`: the cosines C, the roots r of
    their inverse powers, and Q for the trend and the ends.
    """

    def __init__(self, num_rows: int) -> None:
        index = np.arange(num_rows)
        eigenvalues = 4 * np.sin(np.pi * index[1:] / (2 * num_rows)) ** 2
        inverse = _inverse_powers(eigenvalues, num_rows)
        scale = np.exp(np.log(inverse).mean(axis=1, keepdims=True))
        self.root = np.sqrt(inverse / scale)
        basis = self._basis(index, scale[:, 0])
        # The symmetric root of I - Q Q' is I - L d L'.
        left, size, _ = np.linalg.svd(basis, full_matrices=False)
        damping = 1 - np.sqrt(np.maximum(1 - size**2, 0.0))
        self.left, self.right = left, (left * damping[:, np.newaxis]).swapaxes(1, 2)
        self.single = [one.astype(np.float32) for one in (self.root, self.left, self.right)]
        self.basis = basis.astype(np.float32)
        self.size = even_length(OVERSAMPLING * num_rows)
        self.inverse = self._inverse(index, basis)

    def _basis(self, index: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Returns Q `[S, K, D + 2]` and sets half the log determinants."""
        x = 2 * index / index[-1] - 1
        trend = _cosines(np.stack([x**degree for degree in range(1, TREND_DEGREE + 1)]))
        trend = trend * self.root[:, np.newaxis]
        # The first and the last row of an autoregression weigh 1, and more in its cosines where
        # the coefficient is negative. (That they weigh less elsewhere is too little to matter.)
        excess = np.zeros(len(scale))
        for root in AUTOREGRESSIONS:
            if root < 0:
                excess[_NUM_FIRST - 1 + AUTOREGRESSIONS.index(root)] = root**2 - root
        ends = _cosines(np.eye(len(index))[[0, -1]]) / self.root[:, np.newaxis]
        ends = ends * np.sqrt(excess / scale)[:, np.newaxis, np.newaxis]
        rest = trend - trend @ ends.swapaxes(1, 2) @ ends
        lower = np.linalg.cholesky(trend @ rest.swapaxes(1, 2))
        self.log_root = -np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        self.log_root += np.linalg.slogdet(np.eye(2) - ends @ ends.swapaxes(1, 2))[1] / 2
        return np.concatenate([ends, np.linalg.inv(lower) @ rest], axis=1).swapaxes(1, 2)

    def _inverse(self, index: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Returns the inverse products `[3, S, F]` of a cosine and a sine of each frequency."""
        frequency = np.arange(1, self.size // 2 + 1) / self.size
        angle = 2 * np.pi * frequency[:, np.newaxis] * index
        cos, sin = _cosines(np.cos(angle)), _cosines(np.sin(angle))
        weight = self.root**2
        inside = (basis * self.root[..., np.newaxis]).swapaxes(1, 2)
        cos_inside, sin_inside = inside @ cos.T, inside @ sin.T
        cos_cos = weight @ (cos * cos).T - (cos_inside**2).sum(axis=1)
        sin_sin = weight @ (sin * sin).T - (sin_inside**2).sum(axis=1)
        cos_sin = weight @ (cos * sin).T - (cos_inside * sin_inside).sum(axis=1)
        determinant = cos_cos * sin_sin - cos_sin**2
        one_wave = determinant < _SAME_WAVE * cos_cos * sin_sin
        safe = np.where(one_wave, 1.0, determinant)
        # At a frequency of 1/2 there is but the cosine.
        inverse = [
            np.where(one_wave, 1 / np.maximum(cos_cos, TINY), sin_sin / safe),
            np.where(one_wave, 0.0, 2 * cos_sin / safe),
            np.where(one_wave, 0.0, cos_cos / safe),
        ]
        seen = frequency * len(index) >= FEWEST_CYCLES
        return (seen * np.stack(inverse)).astype(np.float32)


class EvenRows:
    """B series with the same number of rows, one step apart.

    The cosines of the discrete cosine transform are the eigenvectors of a random walk, so that
    every background is a weight for each of them.

    Args:
        values: `[B, N]` float64.

    Attributes:
        num_rows: `[B]`, N.
        num_steps: `[B]`, N.
        degrees: `[B]`, degrees of freedom beside the trend.
        position: `[B, N]`, in steps.
        weight: `[B, N]`, 1.
        on_grid: True.
        is_exact: True: `spectrum` is exact for one wave.
        background: `[B]`, log likelihood of the best background alone.
        evidence: `[B, S]`, of those beside which seasons are tried.
        rest: `[B]`, the sum of squares without the trend.
    """

    on_grid = True
    is_exact = True

    def __init__(self, values: np.ndarray) -> None:
        count, length = values.shape
        self.num_rows = np.full(count, length)
        self.num_steps = self.num_rows.astype(np.float64)
        self.degrees = self.num_steps - 1 - TREND_DEGREE
        self.position = np.broadcast_to(np.arange(length, dtype=np.float64), values.shape)
        self.weight = np.ones_like(values)
        self._tables = tables = _Tables(length)
        white = _cosines(values) * tables.root[:, np.newaxis]
        white -= white @ tables.left @ tables.right
        squares = np.maximum(np.einsum("sbk,sbk->bs", white, white), TINY)
        self.rest = squares[:, 0]
        evidence = tables.log_root - self.degrees[:, np.newaxis] / 2 * np.log(squares)
        self.background = evidence.max(axis=1)
        # Not beside the last one, which is so smooth that it explains what has no noise.
        suited = evidence[:, _NUM_FIRST:-1]
        suited = np.argpartition(suited, -_NUM_BEST, axis=1)[:, -_NUM_BEST:] + _NUM_FIRST
        first = np.broadcast_to(np.arange(_NUM_FIRST), (count, _NUM_FIRST))
        self._shapes = np.concatenate([first, suited], axis=1)
        series = np.arange(count)[:, np.newaxis]
        self.evidence = evidence[series, self._shapes]
        size = np.sqrt(squares[series, self._shapes])[..., np.newaxis]
        self._white = (white[self._shapes, series] / size).astype(np.float32)
        white -= white @ tables.left @ tables.right
        self._weighted = (white[self._shapes, series] / size).astype(np.float32)

    def take(self, which: np.ndarray) -> "EvenRows":
        """Returns some of the series."""
        rows = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(rows, name, value[which])
        return rows

    def spectrum(self) -> Spectrum:
        """Returns what each wave explains."""
        tables = self._tables
        coefficients = np.zeros((*self._white.shape[:2], self.position.shape[1]), np.float32)
        np.multiply(self._weighted, tables.single[0][self._shapes], out=coefficients[..., 1:])
        rows = scipy.fft.idct(coefficients, norm="ortho", axis=-1, overwrite_x=True)
        waves = scipy.fft.rfft(rows, tables.size, axis=-1)[..., 1:]
        cos, sin = waves.real, -waves.imag
        first, both, second = tables.inverse[:, self._shapes]
        share = (first * cos - both * sin) * cos
        share += second * sin * sin
        return Spectrum(share, tables.size)

    def products(
        self, which: np.ndarray, shape: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns products of columns beside backgrounds.

        Args:
            which: `[P]`, indices of series.
            shape: `[P]`, indices of backgrounds.
            columns: `[P, C, N]` float32, 0 in rows of padding.

        Returns:
            Of the columns with one another, `[P, C, C]`, and with the values, `[P, C]`, all
            without the trend; the square of the values is 1.
        """
        root, left, right = (one[self._shapes[which, shape]] for one in self._tables.single)
        white = _cosines(columns) * root[:, np.newaxis]
        white -= white @ left @ right
        gram = white @ white.swapaxes(1, 2)
        with_values = white @ self._white[which, shape][..., np.newaxis]
        return gram.astype(np.float64), with_values[..., 0].astype(np.float64)
