"""More dimensions of x for a model that was trained without them."""

import numpy as np
import tensorflow as tf

from taylorformer.model.taylorformer import Taylorformer


def with_wider_x(model: Taylorformer, num_more: int) -> Taylorformer:
    """Returns a copy of a model that reads more dimensions of x, with no effect at first.

    The weights that read the features of the new dimensions are 0, all others are those of the
    model: what it predicts does not depend on the new dimensions, but for rounding, until it is
    trained further.

    Example:
        >>> model = Taylorformer(
        ...     num_heads=1, head_dim=4, width=4, num_layers=1, encoding_dim=2, neighbour_dims=1
        ... )
        >>> x, y = (None, None, 1), (None, None, 1)
        >>> model.build({"x_context": x, "y_context": y, "x_target": x})
        >>> wider = with_wider_x(model, 2)
        >>> (model.x_dims, wider.x_dims), wider.neighbour_dims
        ((1, 3), 1)

    Args:
        model: built, with `neighbour_dims` set: which points are neighbours must not change.
        num_more: how many dimensions are added, after those that are there. 0: a copy.

    Returns:
        A new model with the same arguments.

    Raises:
        ValueError: `neighbour_dims` is None, or the features are those of another layer than
            `RepresentationExtractor`.
    """
    config = model.get_config()
    if num_more and (model.neighbour_dims is None or config["representation_extractor"]):
        raise ValueError(
            "`model` must have `neighbour_dims` and the features of `RepresentationExtractor`, to "
            f"read more dimensions of x. Received: neighbour_dims={model.neighbour_dims}, "
            f"representation_extractor={config['representation_extractor']!r}"
        )
    wider: Taylorformer = type(model).from_config(config)
    x, y = (None, None, model.x_dims + num_more), (None, None, model.y_dims)
    wider.build({"x_context": x, "y_context": y, "x_target": x})
    for old, new in zip(model.weights, wider.weights, strict=True):
        value = tf.convert_to_tensor(old).numpy()
        if value.shape != new.shape:
            rows = _rows(model, value.shape[0], new.shape[0], num_more)
            whole = np.zeros(new.shape, value.dtype)
            whole[rows] = value
            value = whole
        new.assign(value)
    return wider


def _rows(model: Taylorformer, num_old: int, num_new: int, num_more: int) -> np.ndarray:
    """Returns the rows of a wider kernel that read the same features as the rows of the old one.

    What is read begins with X^fe: the encodings of each dimension of x, E numbers each, then x of
    the nearest point, differences, ...: one number for each dimension.
    """
    dims, width = model.x_dims, model.encoding_dim
    num_of_points = (num_new - num_old) // num_more - width
    sizes = [width * dims, *[dims] * num_of_points]
    added = [width * num_more, *[num_more] * num_of_points]
    rows, first = [], 0
    for size, more in zip(sizes, added, strict=True):
        rows.append(first + np.arange(size))
        first += size + more
    rows.append(first + np.arange(num_old - sum(sizes)))
    return np.concatenate(rows)
