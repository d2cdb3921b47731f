"""What all samplers share: how many samples and sequences are drawn at once, and in what graph."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.sampling import base
from taylorformer.model.sampling.base import Memory, Sampler

MODEL = SimpleNamespace(x_dims=1, y_dims=2, distance_dims=None)
NUM_SAMPLES, SEED = 4, tf.constant(3, tf.int64)
KEYS = tf.constant([7, 8, 9], tf.int64)


class Written(Sampler):
    """Writes down what each number is for, and how many samples and sequences come together."""

    def __init__(self, per_sample=1, per_sequence=1):
        super().__init__(MODEL)
        self.bytes = Memory(tf.constant(per_sample, tf.int64), tf.constant(per_sequence, tf.int64))
        self.sizes = []

    def memory(self, batch):
        return self.bytes

    def draw(self, batch, order, sample_numbers, sequence_keys, seed, xla=False):
        tf.py_function(
            lambda *sizes: self.sizes.append(tuple(map(int, sizes))),
            [tf.size(sample_numbers), tf.size(sequence_keys)],
            [],
        )
        shape = [tf.size(sample_numbers), tf.size(sequence_keys), tf.shape(order)[1]]
        parts = (sample_numbers[:, None, None], sequence_keys[:, None], order)
        sample, key, target = (tf.cast(tf.broadcast_to(part, shape), tf.float32) for part in parts)
        return tf.stack([100 * sample + key, target], axis=-1)


def _batch(num_sequences=3, num_target=5):
    x = np.zeros((num_sequences, num_target, 1), "float32")
    inputs = {"x_context": x, "y_context": np.zeros((num_sequences, num_target, 2)), "x_target": x}
    return prepare_batch(inputs)


def _expected():
    keys = 100 * np.arange(NUM_SAMPLES)[:, None, None] + KEYS.numpy()[:, None] + np.zeros(5)
    return np.stack([keys, np.broadcast_to(np.arange(5), keys.shape)], axis=-1)


@pytest.mark.parametrize(
    "per_sample, per_sequence, at_once",
    [
        # With 100 bytes: how many samples and how many sequences come together.
        (1, 1, (4, 3)),
        (20, 1, (4, 1)),
        (50, 1, (2, 1)),
        (1, 60, (4, 1)),
        (1, 40, (4, 2)),
        (101, 101, (1, 1)),
    ],
)
def test_no_more_is_drawn_at_once_than_memory_allows(
    monkeypatch, per_sample, per_sequence, at_once
):
    monkeypatch.setattr(base, "MOST_BYTES", 100)
    sampler = Written(per_sample, per_sequence)
    drawn = sampler(_batch(), NUM_SAMPLES, SEED, KEYS, "given", None)
    np.testing.assert_array_equal(drawn, _expected())
    assert max(sampler.sizes) == at_once
    sampler.sizes.clear()
    drawn = sampler.draw_all(_batch(), NUM_SAMPLES, SEED, KEYS)
    np.testing.assert_array_equal(drawn, _expected())
    assert set(sampler.sizes) == {at_once}


@pytest.mark.parametrize(
    "chunk_size, at_once", [(1, (1, 1)), (5, (4, 1)), (8, (4, 2)), (99, (4, 3))]
)
def test_a_chunk_size_overrides_the_memory(monkeypatch, chunk_size, at_once):
    monkeypatch.setattr(base, "MOST_BYTES", 1)
    sampler = Written()
    for draw in (sampler, sampler.draw_all):
        sampler.sizes.clear()
        drawn = draw(_batch(), NUM_SAMPLES, SEED, KEYS, "given", chunk_size)
        np.testing.assert_array_equal(drawn, _expected())
        assert max(sampler.sizes) == at_once


def test_one_graph_for_all_sizes_and_none_of_xla():
    sampler = Written()
    for num_sequences, num_target in ((3, 5), (2, 1), (1, 4)):
        batch, keys = _batch(num_sequences, num_target), KEYS[:num_sequences]
        for jit_compile in (False, True):
            drawn = sampler(batch, NUM_SAMPLES, SEED, keys, "given", None, jit_compile)
            assert drawn.shape == (NUM_SAMPLES, num_sequences, num_target, 2)
    assert sampler._graph.experimental_get_tracing_count() == 1
    assert sampler._xla_graph.experimental_get_tracing_count() == 0


def test_no_sequences_have_no_samples():
    sampler = Written()
    for draw in (sampler, sampler.draw_all):
        assert draw(_batch(0), NUM_SAMPLES, SEED, KEYS[:0], "given", None).shape == (4, 0, 5, 2)


def test_a_kind_must_say_how_it_draws_and_what_that_takes():
    class Half(Sampler):
        def memory(self, batch):
            return Memory(0, 0)

    with pytest.raises(TypeError, match="abstract"):
        Half(MODEL)
