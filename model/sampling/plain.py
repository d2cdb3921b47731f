"""Joint samples, one target after the other.

The plain sampler runs the whole network once for every target. It is slow, and simple enough to
be believed: the reference for anything quicker.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import tensorflow as tf

from taylorformer.model.sampling.counter_noise import normal_noise, order_noise
from taylorformer.model.sampling.shuffling import permute_targets

if TYPE_CHECKING:
    from taylorformer.model.probabilistic_model import ProbabilisticModel

ORDERS = ("given", "random", "nearest")
_MOST_SCORES = 2**24
"""Attention scores of one head that are drawn with at once, unless `chunk_size` says otherwise."""


def sampling_order(
    order: str,
    batch: dict[str, tf.Tensor],
    seed: tf.Tensor,
    sequence_keys: tf.Tensor,
    neighbour_dims: int | None = None,
) -> tf.Tensor:
    """Returns the order in which targets are drawn, `[B, N_T]`.

    One order for each sequence, the same for all its samples. Masked targets come last.

    Args:
        order: "given"; "random", a function of seed and key; or "nearest", by the distance to the
            nearest observed context point.
        batch: a prepared batch.
        seed: int64 scalar.
        sequence_keys: `[B]` int64.
        neighbour_dims: how many leading dimensions of x define the distance; None: all.
    """
    mask = batch["target_mask"]
    shape = tf.shape(mask)
    places = tf.broadcast_to(tf.range(shape[1]), shape)
    if order == "random":
        noise = order_noise(seed, sequence_keys[:, tf.newaxis], places)
        places = tf.argsort(noise, axis=-1, stable=True)
    elif order == "nearest":
        x_target = batch["x_target"][..., :neighbour_dims]
        x_context = batch["x_context"][..., :neighbour_dims]
        difference = x_target[:, :, tf.newaxis] - x_context[:, tf.newaxis]
        distance = tf.reduce_sum(tf.square(difference), axis=-1)
        distance = tf.where(batch["context_mask"][:, tf.newaxis], distance, tf.float32.max)
        # Without any context every target is equally far.
        far = tf.fill(tf.stack([shape[0], shape[1], 1]), tf.float32.max)
        nearest = tf.reduce_min(tf.concat([distance, far], axis=-1), axis=-1)
        places = tf.argsort(nearest, axis=-1, stable=True)
    hidden = tf.cast(~tf.gather(mask, places, batch_dims=1), tf.int32)
    return tf.gather(places, tf.argsort(hidden, axis=-1, stable=True), batch_dims=1)


def batch_spec(x_dims: int, y_dims: int) -> dict[str, tf.TensorSpec]:
    """Describes a prepared batch of any B, N_C and N_T."""
    return {
        "x_context": tf.TensorSpec([None, None, x_dims], tf.float32),
        "y_context": tf.TensorSpec([None, None, y_dims], tf.float32),
        "x_target": tf.TensorSpec([None, None, x_dims], tf.float32),
        "context_mask": tf.TensorSpec([None, None], tf.bool),
        "target_mask": tf.TensorSpec([None, None], tf.bool),
    }


def draw_some_at_once(
    draw: Callable[..., tf.Tensor],
    batch: dict[str, tf.Tensor],
    places: tf.Tensor,
    keys: tf.Tensor,
    num_samples: int | tf.Tensor,
    rows_at_once: tf.Tensor,
    sequences_at_once: tf.Tensor,
) -> tf.Tensor:
    """Draws S samples of every sequence within one graph, as many at once as memory allows.

    Args:
        draw: given some sequences (batch, places, keys) and the numbers of some samples, gives
            their samples in the order S, B, N_T, D_y.
        batch: a prepared batch.
        places: `[B, N_T]`, the order in which targets are drawn.
        keys: `[B]`.
        num_samples: S.
        rows_at_once: how many samples, each of one sequence, may be drawn at once.
        sequences_at_once: of how many sequences.

    Returns:
        `[S, B, N_T, D_y]`.
    """
    y_dims = batch["y_context"].shape[-1]
    num_sequences, num_target = (tf.shape(batch["x_target"], tf.int64)[axis] for axis in (0, 1))
    num_samples = tf.cast(num_samples, tf.int64)
    block = tf.minimum(rows_at_once // tf.maximum(num_samples, 1), sequences_at_once)
    block = tf.clip_by_value(block, 1, tf.maximum(num_sequences, 1))
    chunk = tf.clip_by_value(rows_at_once // block, 1, num_samples)
    spec = tf.TensorSpec([None, None, None, y_dims])

    # One sequence more, of which nothing is observed: it fills up a last block that is too short,
    # and is drawn where there is no sequence at all, as a loop over nothing has no shape.
    batch, places, keys = tf.nest.map_structure(_with_one_more, (batch, places, keys))

    def some_sequences(first: tf.Tensor) -> tf.Tensor:
        rows = tf.minimum(first + tf.range(block), num_sequences)
        own = {name: tf.gather(value, rows) for name, value in batch.items()}
        arguments = own, tf.gather(places, rows), tf.gather(keys, rows)

        def some_samples(number: tf.Tensor) -> tf.Tensor:
            drawn = draw(*arguments, number + tf.range(chunk))
            return tf.reshape(drawn, tf.stack([chunk, block, num_target, y_dims]))

        numbers = tf.range(0, num_samples, chunk, dtype=tf.int64)
        drawn = tf.map_fn(some_samples, numbers, fn_output_signature=spec, parallel_iterations=1)
        drawn = tf.reshape(drawn, tf.stack([-1, block, num_target, y_dims]))
        return tf.transpose(drawn[:num_samples], [1, 0, 2, 3])

    firsts = tf.range(0, tf.maximum(num_sequences, 1), block, dtype=tf.int64)
    drawn = tf.map_fn(some_sequences, firsts, fn_output_signature=spec, parallel_iterations=1)
    blocks = tf.shape(drawn, tf.int64)[0]
    drawn = tf.reshape(drawn, tf.stack([blocks * block, num_samples, num_target, y_dims]))
    return tf.transpose(drawn[:num_sequences], [1, 0, 2, 3])


def _with_one_more(values: tf.Tensor) -> tf.Tensor:
    """Adds a row of zeros."""
    row = tf.zeros(tf.concat([[1], tf.shape(values)[1:]], axis=0), values.dtype)
    return tf.concat([values, row], axis=0)


class PlainSampler:
    """Draws joint samples by running the whole network once for every target.

    It keeps one compiled graph for all lengths. (A plain object and no trackable one, so that the
    graph does not become part of a saved model.)

    Args:
        model: an autoregressive model that has been built.
        fixed_length: run over all targets each time, hiding the later ones, instead of leaving
            them out. Slower; XLA needs it, because it knows no length that changes in a loop.
    """

    def __init__(self, model: "ProbabilisticModel", fixed_length: bool = False) -> None:
        self._model = model
        self._fixed_length = fixed_length
        vector = tf.TensorSpec([None], tf.int64)
        signature = [
            batch_spec(model.x_dims, model.y_dims),
            tf.TensorSpec([None, None], tf.int32),
            vector,
            vector,
            vector,
            tf.TensorSpec([], tf.int64),
        ]
        self._draw_compiled = tf.function(self.draw, input_signature=signature, autograph=False)

    def __call__(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int,
        seed: tf.Tensor,
        sequence_keys: tf.Tensor,
        order: str,
        chunk_size: int | None,
        jit_compile: bool = False,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]`, `chunk_size` of the S B sequences at once.

        (XLA is not used: it would compile every length anew.)
        """
        batch_size = int(tf.shape(batch["x_target"])[0])
        num_target = tf.shape(batch["x_target"])[1]
        places = sampling_order(order, batch, seed, sequence_keys, self._model.distance_dims)
        rows = num_samples * batch_size
        step = int(self.rows_at_once(batch)) if chunk_size is None else chunk_size
        drawn = []
        for start in range(0, rows, step):
            row = tf.range(start, min(start + step, rows), dtype=tf.int64)
            drawn.append(
                self._draw_compiled(
                    batch, places, row // batch_size, row % batch_size, sequence_keys, seed
                )
            )
        shape = [num_samples, batch_size, num_target, self._model.y_dims]
        return tf.reshape(tf.concat(drawn, axis=0) if drawn else tf.zeros([0]), shape)

    @staticmethod
    def rows_at_once(batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns how many sequences to draw at once, so that memory has a bound."""
        num_target = tf.shape(batch["x_target"], tf.int64)[1]
        num_points = num_target + tf.shape(batch["x_context"], tf.int64)[1]
        return tf.maximum(_MOST_SCORES // tf.maximum(num_target * num_points, 1), 1)

    def draw_all(
        self,
        batch: dict[str, tf.Tensor],
        num_samples: int | tf.Tensor,
        seed: tf.Tensor,
        keys: tf.Tensor,
        order: str = "given",
        chunk_size: int | None = None,
    ) -> tf.Tensor:
        """Draws `[S, B, N_T, D_y]` as one graph, some samples at once; sizes may be unknown."""

        def draw(
            batch: dict[str, tf.Tensor], places: tf.Tensor, keys: tf.Tensor, numbers: tf.Tensor
        ) -> tf.Tensor:
            num_sequences = tf.shape(keys, tf.int64)[0]
            samples = tf.repeat(numbers, num_sequences)
            sequences = tf.tile(tf.range(num_sequences), tf.shape(numbers))
            return self.draw(batch, places, samples, sequences, keys, seed)

        places = sampling_order(order, batch, seed, keys, self._model.distance_dims)
        at_once = self.rows_at_once(batch)
        if chunk_size is not None:
            at_once = tf.constant(chunk_size, tf.int64)
        return draw_some_at_once(draw, batch, places, keys, num_samples, at_once, at_once)

    def draw(
        self,
        batch: dict[str, tf.Tensor],
        places: tf.Tensor,
        samples: tf.Tensor,
        sequences: tf.Tensor,
        sequence_keys: tf.Tensor,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Draws R rows, each one sample of one sequence.

        Args:
            batch: a prepared batch of B sequences.
            places: `[B, N_T]`, the order in which targets are drawn.
            samples: `[R]`, the number of each row's sample.
            sequences: `[R]`, the number of each row's sequence.
            sequence_keys: `[B]`.
            seed: int64 scalar.

        Returns:
            `[R, N_T, D_y]`, in the order of the batch; 0 at masked targets.
        """
        y_dims = self._model.y_dims
        rows = {name: tf.gather(values, sequences) for name, values in batch.items()}
        places = tf.gather(places, sequences)
        noise = normal_noise(
            seed,
            tf.gather(sequence_keys, sequences)[:, tf.newaxis],
            samples[:, tf.newaxis],
            places,
            y_dims,
        )
        rows = permute_targets(rows, places)
        shape = tf.shape(noise)
        num_target = shape[1]

        def step(i: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # Targets after i are not needed: nothing before them sees them.
            inputs = {**rows, "y_target": y}
            if self._fixed_length:
                inputs["target_mask"] &= tf.range(num_target) <= i
            else:
                for name in ("x_target", "target_mask", "y_target"):
                    inputs[name] = inputs[name][:, : i + 1]
            outputs = self._model(inputs, training=False)
            value = outputs["mean"][:, i] + outputs["scale"][:, i] * noise[:, i]
            value = tf.where(rows["target_mask"][:, i, tf.newaxis], value, 0.0)
            value = tf.ensure_shape(value, [None, y_dims])
            is_i = (tf.range(num_target) == i)[tf.newaxis, :, tf.newaxis]
            return i + 1, tf.where(is_i, value[:, tf.newaxis], y)

        _, y = tf.while_loop(
            lambda i, _: i < num_target,
            step,
            [tf.constant(0), tf.zeros_like(noise)],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None, y_dims])],
            parallel_iterations=1,
        )
        back = tf.argsort(places, axis=-1)
        return tf.gather(y, back, batch_dims=1)
