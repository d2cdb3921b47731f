"""Held-out sequences, each cut into context and targets in its own way, and kept on disk."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from taylorformer.data_wrangler.checks import check_integer
from taylorformer.data_wrangler.tasks.drawn_batches import masked_specs, numbered_batches
from taylorformer.data_wrangler.versioned_files import FileKind, read_arrays, write_arrays
from taylorformer.data_wrangler.whole_files import refuse_existing

if TYPE_CHECKING:
    import tensorflow as tf

_FILE = FileKind(format_number=1, writer="`TaskSet.save`")
_ARRAYS = ("x", "y", "num_context", "num_target")
_HYPERPARAMETER = "hyperparameter_"


@dataclasses.dataclass(frozen=True, eq=False)
class TaskSet:
    """n held-out sequences of one length N, each with a number of context points and of targets.

    In row r of `x` and `y` the first `num_context[r]` points are the context, and the next
    `num_target[r]` are the targets, in the order they are scored. Points after them are not used.

    Example:
        >>> x, y = np.zeros([2, 5, 1]), np.zeros([2, 5, 1])
        >>> tasks = TaskSet(x, y, num_context=[3, 1])
        >>> inputs, y_target = tasks.batch([0, 1])
        >>> inputs["x_context"].shape, y_target.shape, inputs["target_mask"].sum(axis=1).tolist()
        ((2, 3, 1), (2, 4, 1), [2, 4])

    Args:
        x: `[n, N, D_x]`, float64 or float32, as it was made: scores that need all digits read it.
        y: `[n, N, D_y]`, the same.
        num_context: `[n]` integers, N_C of each sequence, 0 to N - 1.
        num_target: `[n]` integers, N_T of each sequence, at least 1. None: all the other points,
            N - N_C.
        about: how the sequences were made; what JSON can hold.
        hyperparameters: of the distribution of each sequence, arrays `[n]` by name.

    Raises:
        TypeError: numbers of points that are no integers, or an `about` that JSON cannot hold.
        ValueError: shapes that do not fit, numbers of points that a sequence does not have, or
            values that are not finite at a point that is used.
    """

    x: np.ndarray
    y: np.ndarray
    num_context: Any
    num_target: Any = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        x, y = _floats("x", self.x), _floats("y", self.y)
        if x.shape[:2] != y.shape[:2] or not x.size or not y.size:
            raise ValueError(
                "`x` and `y` must have the shapes [n, N, D_x] and [n, N, D_y], none of them 0. "
                f"Received: {list(x.shape)} and {list(y.shape)}"
            )
        count, length = x.shape[:2]
        num_context = _counts("num_context", self.num_context, count)
        given = length - num_context if self.num_target is None else self.num_target
        num_target = _counts("num_target", given, count)
        wrong = (num_context < 0) | (num_target < 1) | (num_context + num_target > length)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                "`num_context` must be at least 0 and `num_target` at least 1, together at most "
                f"N = {length}. Received: {num_context[row]} and {num_target[row]} in row {row}"
            )
        used = np.arange(length) < (num_context + num_target)[:, np.newaxis]
        for name, values in (("x", x), ("y", y)):
            bad = used & ~np.isfinite(values).all(axis=-1)
            if bad.any():
                row, point = np.argwhere(bad)[0]
                raise ValueError(
                    f"`{name}` must be finite at every point that is used. Received: "
                    f"{values[row, point].tolist()} at point {point} of row {row}"
                )
        hyperparameters = {}
        for name, column in self.hyperparameters.items():
            hyperparameters[name] = np.asarray(column, np.float64)
            if hyperparameters[name].shape != (count,):
                raise ValueError(
                    f"`hyperparameters` must hold arrays of the shape [n] = [{count}]. "
                    f"Received: {name} of the shape {list(np.shape(column))}"
                )
        try:
            about = json.loads(json.dumps(dict(self.about), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise TypeError(f"`about` must hold what JSON can. Received: {error}") from error
        checked = (x, y, num_context, num_target, about, hyperparameters)
        for field, value in zip(dataclasses.fields(self), checked, strict=True):
            object.__setattr__(self, field.name, value)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, count: int) -> "TaskSet":
        """Returns the first sequences.

        Args:
            count: how many, at most n.
        """
        count = check_integer("count", count, 1, len(self))
        return dataclasses.replace(
            self,
            x=self.x[:count],
            y=self.y[:count],
            num_context=self.num_context[:count],
            num_target=self.num_target[:count],
            hyperparameters={name: v[:count] for name, v in self.hyperparameters.items()},
        )

    def batch(self, rows: Any, dtype: str = "float32") -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes one batch for `evaluate`, `log_prob` or `sample`.

        Args:
            rows: `[B]` integers, which sequences.
            dtype: of x and y; "float64" for what needs all digits.

        Returns:
            `(inputs, y_target)` of the data contract, with N_C and N_T the largest of the batch.
            Shorter sequences are padded at the end: False in `context_mask` and `target_mask`, and
            0 in x and y.
        """
        rows = self._check_rows(rows)
        num_context, num_target = self.num_context[rows], self.num_target[rows]
        context_mask = np.arange(num_context.max()) < num_context[:, np.newaxis]
        target_mask = np.arange(num_target.max()) < num_target[:, np.newaxis]

        def points(values: np.ndarray, first: np.ndarray, mask: np.ndarray) -> np.ndarray:
            indices = np.arange(mask.shape[1]) + first[:, np.newaxis]
            padded = values[rows[:, np.newaxis], np.where(mask, indices, 0)]
            return np.where(mask[..., np.newaxis], padded, 0).astype(dtype)

        first_point = np.zeros_like(num_context)
        inputs = {
            "x_context": points(self.x, first_point, context_mask),
            "y_context": points(self.y, first_point, context_mask),
            "x_target": points(self.x, num_context, target_mask),
            "context_mask": context_mask,
            "target_mask": target_mask,
        }
        return inputs, points(self.y, num_context, target_mask)

    def batch_rows(self, batch_size: int) -> list[np.ndarray]:
        """Divides the sequences into batches of similar N_C and N_T, so that little is padded.

        Args:
            batch_size: B; the last batch may be smaller.

        Returns:
            The rows of each batch, `[B]` int64. Every row is in one of them.
        """
        batch_size = check_integer("batch_size", batch_size, 1)
        num_batches = -(-len(self) // batch_size)
        # About sqrt(num_batches) strips of similar N_C, with as many batches in each. Inside a
        # strip, sequences are sorted by N_T.
        strip_size = batch_size * math.isqrt(num_batches - 1) + batch_size
        by_context = np.argsort(self.num_context, kind="stable")
        strips = np.split(by_context, range(strip_size, len(self), strip_size))
        rows = np.concatenate(
            [strip[np.argsort(self.num_target[strip], kind="stable")] for strip in strips]
        )
        return np.split(rows, range(batch_size, len(self), batch_size))

    def batches(
        self, batch_size: int, dtype: str = "float32"
    ) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]]:
        """Yields every sequence once, in the batches of `batch_rows`.

        Args:
            batch_size: B; the last batch may be smaller.
            dtype: of x and y.

        Yields:
            `(rows, inputs, y_target)`: which sequences, `[B]`, and their batch.
        """
        for rows in self.batch_rows(batch_size):
            yield rows, *self.batch(rows, dtype)

    def dataset(self, batch_size: int) -> "tf.data.Dataset":
        """Makes a data set for `evaluate`, or for `fit` as `validation_data`.

        Args:
            batch_size: B; the last batch may be smaller.

        Returns:
            A `tf.data.Dataset` of the `(inputs, y_target)` of `batches`, of known cardinality. Its
            B, N_C and N_T are None, so that no graph is traced anew.
        """
        import tensorflow as tf

        rows = self.batch_rows(batch_size)

        def make_batch(number: int) -> dict[str, np.ndarray]:
            inputs, y_target = self.batch(rows[number])
            return {**inputs, "y_target": y_target}

        specs = masked_specs(self.x.shape[-1], self.y.shape[-1])
        return numbered_batches(tf.data.Dataset.range(len(rows)), make_batch, specs)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the sequences to one `.npz` file, without pickle; it appears when it is complete.

        Args:
            path: of the file, used as it is; its folder is made.
            overwrite: replace a file that is there.

        Raises:
            FileExistsError: a file is there, and `overwrite` is not set.
            OSError: the file cannot be written.
        """
        refuse_existing(path, overwrite)
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"{_HYPERPARAMETER}{name}": v for name, v in self.hyperparameters.items()}
        write_arrays(_FILE, path, arrays, {"about": self.about})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "TaskSet":
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file holds no task set, or one of a format that this version does not
                know.
        """

        def make(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> TaskSet:
            sequences = {name: arrays.pop(name) for name in _ARRAYS}
            hyperparameters = {name.removeprefix(_HYPERPARAMETER): v for name, v in arrays.items()}
            return cls(**sequences, about=meta["about"], hyperparameters=hyperparameters)

        return read_arrays(_FILE, path, make)

    def _check_rows(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows)
        if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
            raise ValueError(
                "`rows` must be integers of the shape [B], B at least 1. "
                f"Received: dtype {rows.dtype}, shape {list(rows.shape)}"
            )
        if rows.min() < 0 or rows.max() >= len(self):
            raise ValueError(
                f"`rows` must be from 0 to {len(self) - 1}. "
                f"Received: rows from {rows.min()} to {rows.max()}"
            )
        return rows.astype(np.int64)


def _floats(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 3 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"`{name}` must hold numbers of the shape [n, N, D_{name}]. "
            f"Received: dtype {values.dtype}, shape {list(values.shape)}"
        )
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def _counts(name: str, values: Any, count: int) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must hold integers. Received: dtype {values.dtype}")
    if values.shape != (count,):
        raise ValueError(
            f"`{name}` must have the shape [n] = [{count}]. Received: {list(values.shape)}"
        )
    return values.astype(np.int64)
