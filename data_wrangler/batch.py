"""The data contract: what one batch is, checked and made safe for arithmetic.

One batch is a dictionary of

- `x_context`: `[B, N_C, D_x]`, `y_context`: `[B, N_C, D_y]`, the observed points;
- `x_target`: `[B, N_T, D_x]`, where y is to be predicted;
- `context_mask`: `[B, N_C]` bool, optional, True where the point was observed;
- `target_mask`: `[B, N_T]` bool, optional, True where the target takes part;
- `y_target`: `[B, N_T, D_y]`, optional, for teacher forcing;
- `y_support`: `[B, D_y, 6]` float64, optional, which values y can have (bounds, whole numbers): a
  density is then the probability of a cell where y lies in one, and samples lie inside. A
  `WindowScaler` makes it, see `ScaledSupport`.

x and masks may have 1 instead of B, each by itself: all sequences share these points, as the
windows of an even grid do. The number of sequences is that of y. Where all four have 1, what
depends on points alone is computed once for the batch.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from taylorformer.data_wrangler.tables.scaled_support import NUM_PARTS

REQUIRED_KEYS = ("x_context", "y_context", "x_target")
OPTIONAL_KEYS = ("context_mask", "target_mask", "y_target", "y_support")

_LAYOUT = {
    "x_context": ("B", "N_C", "D_x"),
    "y_context": ("B", "N_C", "D_y"),
    "x_target": ("B", "N_T", "D_x"),
    "y_target": ("B", "N_T", "D_y"),
    "context_mask": ("B", "N_C"),
    "target_mask": ("B", "N_T"),
    "y_support": ("B", "D_y", "parts"),
}
# These letters have one size.
_FIXED_SIZES: dict[str, int | None] = {"parts": NUM_PARTS}
SHARED_KEYS = ("x_context", "x_target", "context_mask", "target_mask")
"""The keys that may have 1 instead of B: points that all sequences share."""
# The points of these keys are observed, or not.
_POINTS = ("x_context", "y_context", "x_target", "y_target")


_GIVE_SHAPES = (
    "Where a data set does not know its shapes, give `tf.data.Dataset.from_generator` an "
    "`output_signature`, or name the shapes with `tf.ensure_shape`"
)


_APPLIED_MASK = "_taylorformer_applied_mask"
"""The attribute of a prepared tensor that holds the mask whose masked points are 0 in it."""
_Y_OF_POINTS = "_taylorformer_y_of_points"
"""The attribute of `context_mask` with one row for each sequence that holds their y_context."""


def check_keys(inputs: Any) -> None:
    """Raises if `inputs` is no dictionary with the keys of the data contract."""
    if not isinstance(inputs, Mapping):
        raise TypeError(
            "`inputs` must be a dictionary with the keys "
            f"{', '.join(REQUIRED_KEYS)} (optional: {', '.join(OPTIONAL_KEYS)}). "
            f"Received: {type(inputs).__name__}"
        )
    missing = [key for key in REQUIRED_KEYS if key not in inputs]
    unknown = [key for key in inputs if key not in _LAYOUT]
    if missing or unknown:
        raise ValueError(
            f"`inputs` must have the keys {', '.join(REQUIRED_KEYS)} and may have "
            f"{', '.join(OPTIONAL_KEYS)}. Received: {', '.join(map(str, inputs))}"
        )


def check_element_spec(spec: Any) -> None:
    """Raises if a data set does not say enough about the shapes of its batches.

    Args:
        spec: `element_spec` of a `tf.data.Dataset`: `inputs`, or a tuple that starts with `inputs`
            and `y_target`. What is no batch of the data contract is let through.

    Raises:
        ValueError: a key of unknown rank, sizes that do not fit, or an unknown D_x or D_y.
    """
    inputs, *rest = spec if isinstance(spec, tuple) and spec else (spec,)
    if not isinstance(inputs, Mapping):
        return
    check_keys(inputs)
    batch = {**inputs, "y_target": rest[0]} if rest else inputs
    shapes = {key: part.shape for key, part in batch.items() if hasattr(part, "shape")}
    check_known_sizes(check_shapes(shapes), shapes)


def check_known_sizes(sizes: Mapping[str, int | None], shapes: Mapping[str, Any]) -> None:
    """Raises if D_x or D_y is unknown.

    Args:
        sizes: returned by `check_shapes`.
        shapes: of which keys of the data contract.
    """
    for letter in ("D_x", "D_y"):
        keys = [key for key in shapes if _LAYOUT[key][-1] == letter]
        if keys and sizes.get(letter) is None:
            raise ValueError(
                f"`{keys[0]}` must have a known last size {letter}. Received: "
                f"{list(shapes[keys[0]])}. {_GIVE_SHAPES}"
            )


def check_shapes(shapes: Mapping[str, Any]) -> dict[str, int | None]:
    """Checks the static shapes of a batch against one another.

    B is the number of sequences, that of y; x and masks may have 1 instead.

    Args:
        shapes: maps the keys of the data contract to shapes; None means unknown.

    Returns:
        The sizes by letter: B, N_C, N_T, D_x, D_y, None where unknown.

    Raises:
        ValueError: a wrong or an unknown rank, or one letter with two sizes.
    """
    sizes = dict(_FIXED_SIZES)
    for key, shape in shapes.items():
        if getattr(shape, "rank", 0) is None:
            raise ValueError(
                f"`{key}` must have the shape [{', '.join(_LAYOUT[key])}]. Received: a tensor of "
                f"unknown shape. {_GIVE_SHAPES}"
            )
    received = ", ".join(f"{key}: {list(shape)}" for key, shape in shapes.items())
    for key, shape in shapes.items():
        letters = _LAYOUT[key]
        if len(shape) != len(letters):
            raise ValueError(
                f"`{key}` must have the shape [{', '.join(letters)}]. Received: {list(shape)}"
            )
        for letter, size in zip(letters, shape, strict=True):
            earlier = sizes.get(letter)
            if letter == "B" and size == 1 and key in SHARED_KEYS:
                size = None
            if earlier is not None and size is not None and earlier != size:
                or_shared = " or 1" if letter == "B" and key in SHARED_KEYS else ""
                raise ValueError(
                    f"`{key}` must have the shape [{', '.join(letters)}] with "
                    f"{letter} = {earlier}{or_shared}. Received: {received}"
                )
            sizes[letter] = size if earlier is None else earlier
    return {letter: size for letter, size in sizes.items() if letter not in _FIXED_SIZES}


def _to_float(value: Any, key: str) -> tf.Tensor:
    tensor = tf.convert_to_tensor(value)
    if not (tensor.dtype.is_floating or tensor.dtype.is_integer):
        raise TypeError(f"`{key}` must hold numbers. Received: dtype {tensor.dtype.name}")
    # Bounds and whole numbers are exact in 64 bits.
    return tf.cast(tensor, tf.float64 if key == "y_support" else tf.float32)


def _to_mask(value: Any, key: str) -> tf.Tensor:
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype != tf.bool and not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        raise TypeError(f"`{key}` must be boolean. Received: dtype {tensor.dtype.name}")
    return tf.cast(tensor, tf.bool)


def check_finite(inputs: Any, y_target: Any = None) -> None:
    """Raises if an array of a batch is not finite at an observed point.

    Only arrays that are there are looked at: a data set, or a tensor of a graph, is let through,
    and so is a batch of wrong shapes, which gets its own error later.

    Args:
        inputs: a batch of the data contract.
        y_target: `[B, N_T, D_y]`, or None.

    Raises:
        ValueError: how many values are not finite, and where the first one is.
    """
    if not isinstance(inputs, Mapping):
        return
    batch = inputs if y_target is None else {**inputs, "y_target": y_target}
    for key, value in batch.items():
        if key not in _POINTS or not _is_concrete(value):
            continue
        wrong = ~np.isfinite(np.asarray(value, np.float64))
        mask = batch.get(f"{key.split('_')[1]}_mask")
        if mask is not None and _is_concrete(mask):
            wrong = wrong & _mask_of_rows(mask, wrong)[..., np.newaxis]
        if wrong.any():
            index = [int(i) for i in np.argwhere(wrong)[0]]
            letters = ", ".join(_LAYOUT[key])
            raise ValueError(
                f"`{key}` must be finite where it is observed; mask missing values. Received: "
                f"{int(wrong.sum())} values that are not, the first one at [{letters}] = {index}"
            )


def largest_absolute_x(inputs: Mapping[str, Any]) -> float:
    """Returns the largest absolute x at the observed points of the arrays of a batch.

    What is no array (a tensor of a graph) and what is not finite does not count; 0 if nothing is
    left.
    """
    largest = 0.0
    for side in ("context", "target"):
        x, mask = inputs.get(f"x_{side}"), inputs.get(f"{side}_mask")
        if not _is_concrete(x):
            continue
        sizes = np.abs(np.asarray(x))
        if mask is not None and _is_concrete(mask):
            sizes = sizes[np.broadcast_to(_mask_of_rows(mask, sizes), sizes.shape[:2])]
        if sizes.size:
            size = float(sizes.max())
            if not math.isfinite(size):
                size = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
            largest = max(largest, size)
    return largest


def _mask_of_rows(mask: Any, points: np.ndarray) -> np.ndarray:
    """Returns which of `[B, N, D]` points count, `[B, N]` or `[1, N]`; all if shapes do not fit.

    A point that all sequences share counts where any of them observes it.
    """
    mask = np.asarray(mask, bool)
    if points.shape[0] == 1 and mask.ndim == 2 and len(mask):
        mask = mask.any(axis=0, keepdims=True)
    fits = mask.ndim == 2 and points.ndim == 3 and mask.shape[1] == points.shape[1]
    if not fits or mask.shape[0] not in (1, points.shape[0]):
        return np.ones(points.shape[:2], bool)
    return mask


def _is_concrete(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiub"
    return tf.is_tensor(value) and hasattr(value, "numpy")


def zero_where_masked(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Replaces the masked entries of `[B, N, D]` by 0, NaN among them.

    A multiplication would not do: 0 times NaN is NaN.
    """
    return tf.where(mask[..., tf.newaxis], values, tf.zeros_like(values))


def as_prepared(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Marks a batch as one whose masks are applied, so that `prepare_batch` does not do it again.

    For code that rearranges a prepared batch (in another order, in parts, repeated). Each tensor
    remembers the very mask that was applied to it, as Keras tensors remember theirs: a tensor that
    is changed is a new one, without a mark, and is masked again; so is one that comes with another
    mask.

    Args:
        batch: with both masks, and 0 at masked points.

    Returns:
        The same dictionary.
    """
    for side in ("context", "target"):
        for name in (f"x_{side}", f"y_{side}"):
            if name in batch:
                setattr(batch[name], _APPLIED_MASK, batch[f"{side}_mask"])
    return batch


def tile_points(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Gives each sequence its own copy of points that all share.

    Args:
        batch: a prepared batch.

    Returns:
        A prepared batch whose x and masks have B rows, that of `y_context`.
    """
    y_context, mask = batch["y_context"], batch["context_mask"]
    is_tiled = mask.shape[0] is not None and mask.shape[0] == y_context.shape[0]
    if is_tiled or getattr(mask, _Y_OF_POINTS, None) is y_context:
        return dict(batch)
    tiled = tile_shared(batch)
    setattr(tiled["context_mask"], _Y_OF_POINTS, y_context)
    return as_prepared(tiled)


def tile_shared(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Does what `tile_points` does for the tensors of any batch; masks may be left out."""
    y_context, tiled = batch["y_context"], dict(batch)
    for key in SHARED_KEYS:
        if key in batch:
            tiled[key] = tile_sequences(batch[key], tf.shape(y_context)[0])
            tiled[key].set_shape([y_context.shape[0], *batch[key].shape[1:]])
    return tiled


def tile_sequences(values: tf.Tensor, batch_size: tf.Tensor) -> tf.Tensor:
    """Returns `[B, ..]` of `[B, ..]` or `[1, ..]`, for B, an int32 scalar."""
    shape = tf.concat([[batch_size], tf.shape(values)[1:]], axis=0)
    tiled = tf.broadcast_to(values, shape)
    tiled.set_shape([tiled.shape[0], *values.shape[1:]])
    return tiled


def tiled_arrays(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Does what `tile_shared` does for arrays; what is tiled is a view.

    Args:
        batch: with `y_context`; masks may be left out.
    """
    number = np.shape(batch["y_context"])[:1]
    return {
        key: np.broadcast_to(value, (*number, *np.shape(value)[1:]))
        if key in SHARED_KEYS and np.shape(value)[:1] != number
        else value
        for key, value in batch.items()
    }


def has_shared_points(inputs: Any) -> bool:
    """Tells whether arrays hold points that all of several sequences share."""
    if not isinstance(inputs, Mapping) or "y_context" not in inputs:
        return False
    sizes = {key: tuple(getattr(value, "shape", ()))[:1] for key, value in inputs.items()}
    number = sizes["y_context"]
    return number not in ((), (1,), (None,)) and any(sizes.get(key) == (1,) for key in SHARED_KEYS)


def _with_common_points(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Gives x and masks the same number of rows: 1 where all four have 1, else B."""
    sizes = {batch[key].shape[0] for key in SHARED_KEYS}
    if len(sizes) == 1 and None not in sizes:
        return batch
    size = tf.constant([1])
    for key in SHARED_KEYS:
        size = tf.broadcast_dynamic_shape(size, tf.shape(batch[key])[:1])
    static = max(sizes - {None}, default=None)
    for key in SHARED_KEYS:
        batch[key] = tile_sequences(batch[key], size[0])
        # 1 beside an unknown size may be either.
        if static != 1:
            batch[key].set_shape([static, *batch[key].shape[1:]])
    return batch


def prepare_batch(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Checks a batch, casts it to float32, and makes its masks explicit.

    What stands at masked points (0, 1e6, NaN) is replaced by 0 before any arithmetic, so that
    it never changes an output, a loss or a gradient. What was prepared already is handed on as it
    is (see `as_prepared`): layers and models can each prepare their inputs, and the work is done
    once.

    Args:
        inputs: a dictionary as the text of this module says; any numeric dtype.

    Returns:
        The same keys, with `context_mask` and `target_mask` always there. x and masks have the same
        number of rows: 1 where all of them had 1, else B.

    Raises:
        TypeError: not a dictionary, or not numbers.
        ValueError: a missing or unknown key, a wrong rank, sizes that do not fit.
    """
    check_keys(inputs)
    batch = {
        key: _to_mask(value, key) if key.endswith("_mask") else _to_float(value, key)
        for key, value in inputs.items()
    }
    shapes = {key: tensor.shape for key, tensor in batch.items()}
    sizes = check_shapes(shapes)
    check_known_sizes(sizes, shapes)
    for key, shape in shapes.items():
        if shape[-1] is None and key in _POINTS:
            batch[key] = tf.ensure_shape(batch[key], [None, None, sizes[_LAYOUT[key][-1]]])
    for side in ("context", "target"):
        if f"{side}_mask" not in batch:
            shape = tf.shape(batch[f"x_{side}"])[:2]
            batch[f"{side}_mask"] = tf.ones(shape, tf.bool)
    if not all(
        getattr(batch[name], _APPLIED_MASK, None) is batch[f"{name[2:]}_mask"]
        for name in ("x_context", "x_target")
    ):
        batch = _with_common_points(batch)
    for side in ("context", "target"):
        mask = batch[f"{side}_mask"]
        for name in (f"x_{side}", f"y_{side}"):
            if name in batch and getattr(batch[name], _APPLIED_MASK, None) is not mask:
                batch[name] = zero_where_masked(batch[name], mask)
    return as_prepared(batch)
