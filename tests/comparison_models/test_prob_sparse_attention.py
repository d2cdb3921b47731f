"""ProbSparse attention: the formulas of the paper, causality, determinism."""

import informer_by_loops
import numpy as np
import pytest
import tensorflow as tf

from taylorformer.comparison_models.prob_sparse_attention import ProbSparseAttention
from taylorformer.model.layers.attention import MultiHeadAttention

HEADS, HEAD_DIM, WIDTH = 2, 4, 6
NUM_QUERIES, NUM_KEYS = 24, 17


def _attention(**settings):
    return ProbSparseAttention(HEADS, HEAD_DIM, WIDTH, **{"factor": 1, "seed": 0, **settings})


def _rows(length, seed=1, batch=3):
    return 2 * tf.random.stateless_normal([batch, length, 5], seed=(seed, 2))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("causal, num_keys", [(False, NUM_KEYS), (True, NUM_QUERIES)])
def test_it_is_what_the_formulas_say(causal, num_keys, training):
    attention = _attention(causal=causal)
    query, key, value = _rows(NUM_QUERIES), _rows(num_keys, 2), _rows(num_keys, 3)
    attention.build(query.shape, key.shape, value.shape)
    state = attention.key_seeds.state.numpy()
    sample = attention.sampled_keys(NUM_QUERIES, num_keys, training=training).numpy()
    attention.key_seeds.state.assign(state)
    outputs = attention(query, key, value, training=training)
    expected = informer_by_loops.attention(attention, *map(np.float64, (query, key, value)), sample)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_with_all_queries_it_is_full_attention(causal):
    attention = _attention(causal=causal, factor=NUM_QUERIES)
    full = MultiHeadAttention(HEADS, HEAD_DIM, WIDTH, seed=0)
    rows = _rows(NUM_QUERIES)
    earlier = tf.linalg.band_part(tf.ones([1, NUM_QUERIES, NUM_QUERIES]), -1, 0) > 0
    outputs = attention(rows, rows, rows)
    expected = full(rows, rows, rows, visible=earlier if causal else None)
    np.testing.assert_array_equal(outputs, expected)
    specification = tf.TensorSpec([None, None, 5])
    graph = tf.function(lambda r: attention(r, r, r), input_signature=[specification])
    np.testing.assert_allclose(graph(rows), expected, rtol=1e-5, atol=1e-5)


def test_a_number_added_to_all_scores_of_a_query_does_not_get_it_chosen():
    """Which the authors' divisor, the number of all keys, would do."""
    attention = _attention()
    rows = np.zeros((1, 30, 5), "float32")
    rows[:, :15, 0] = 3.0 + 0.01 * np.random.default_rng(0).normal(size=(1, 15))
    keys = np.ones((1, 30, 5), "float32")
    keys[..., 1] = np.random.default_rng(1).normal(size=(1, 30))
    rows[:, 15:, 1] = 1.0
    attention.build(rows.shape, keys.shape, keys.shape)
    kernel = np.zeros((5, HEADS * HEAD_DIM), "float32")
    kernel[0, [0, HEAD_DIM]] = kernel[1, [1, HEAD_DIM + 1]] = 1
    for dense in (attention.query_dense, attention.key_dense, attention.value_dense):
        dense.set_weights([kernel, np.zeros(HEADS * HEAD_DIM, "float32")])
    attention.output_dense.set_weights(
        [np.eye(HEADS * HEAD_DIM, WIDTH, dtype="float32"), np.zeros(WIDTH, "float32")]
    )
    outputs = attention(rows, keys, keys).numpy()[0]
    # The first half has equal scores, about 3 each: their rows are the mean of the values.
    np.testing.assert_allclose(outputs[:15], np.broadcast_to(outputs[0], (15, WIDTH)), atol=1e-6)
    assert np.count_nonzero(np.abs(outputs[15:, 1] - outputs[0, 1]) > 1e-3) >= 4


def test_how_many_are_chosen():
    attention = _attention(factor=5)
    for length, expected in ((96, 23), (48, 20), (720, 33), (9, 9), (2, 2), (1, 1)):
        assert attention.num_chosen(length) == expected
        assert int(attention.num_chosen(tf.constant(length))) == expected


@pytest.mark.parametrize("num_keys", [5, 3])
def test_a_sample_of_all_keys_has_each_once(num_keys):
    sample = _attention(factor=num_keys).sampled_keys(4, num_keys, training=True)
    np.testing.assert_array_equal(sample, np.arange(num_keys)[None].repeat(4, 0))


def test_no_later_row_reaches_an_earlier_one():
    attention = _attention(causal=True)
    rows = _rows(NUM_QUERIES, batch=1)
    reached = np.zeros((NUM_QUERIES, NUM_QUERIES), bool)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(rows)
        outputs = tf.unstack(attention(rows, rows, rows)[0])
    for i, output in enumerate(outputs):
        reached[i] = np.any(tape.gradient(output, rows)[0] != 0, axis=-1)
    assert not np.any(np.triu(reached, 1))
    assert np.all(np.tril(reached)[np.tril_indices(NUM_QUERIES)])


def test_later_values_change_no_earlier_row():
    attention = _attention(causal=True)
    query, value = _rows(NUM_QUERIES), _rows(NUM_QUERIES, 3)
    outputs = attention(query, query, value).numpy()
    for row in (1, 10, NUM_QUERIES - 1):
        spoiled = value.numpy()
        spoiled[:, row:] = 1e6
        again = attention(query, query, spoiled).numpy()
        np.testing.assert_array_equal(again[:, :row], outputs[:, :row])
        assert np.all(np.any(again[:, row:] != outputs[:, row:], axis=-1))


def test_keys_are_drawn_in_training_and_fixed_at_inference():
    attention, other = _attention(), _attention(seed=7)
    draws = [attention.sampled_keys(50, 50, training=True).numpy() for _ in range(2)]
    assert np.any(draws[0] != draws[1])
    assert np.all((draws[0] >= 0) & (draws[0] < 50))
    np.testing.assert_array_equal(
        _attention().sampled_keys(50, 50, training=True), draws[0], strict=True
    )
    fixed = attention.sampled_keys(50, 50)
    np.testing.assert_array_equal(other.sampled_keys(50, 50), fixed)
    # Not the same keys for all queries, and nearly every key for some query.
    assert len(np.unique(fixed, axis=0)) > 45
    assert len(np.unique(fixed)) > 40
    compiled = tf.function(lambda: attention.sampled_keys(50, 50), jit_compile=True)
    np.testing.assert_array_equal(compiled(), fixed)


@pytest.mark.parametrize("causal", [False, True])
def test_a_sequence_alone_has_the_rows_it_has_in_a_batch(causal):
    attention = _attention(causal=causal, factor=2)
    rows = _rows(NUM_QUERIES, batch=7)
    together = attention(rows, rows, rows)
    for number in range(7):
        one = rows[number : number + 1]
        np.testing.assert_allclose(
            attention(one, one, one)[0], together[number], rtol=1e-5, atol=1e-5
        )


def test_causal_attention_needs_as_many_queries_as_keys():
    attention = _attention(causal=True)
    with pytest.raises(
        ValueError, match=r"as many queries as keys\. Received: 24 queries, 17 keys"
    ):
        attention(_rows(24), _rows(17), _rows(17))
    specification = tf.TensorSpec([None, None, 5])
    graph = tf.function(
        lambda q, k: attention(q, k, k), input_signature=[specification, specification]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many queries as keys"):
        graph(_rows(24), _rows(17))


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"factor": 0}, ValueError, "`factor` must be at least 1"),
        ({"factor": 1.5}, TypeError, "`factor` must be an integer"),
        ({"causal": 1}, TypeError, "`causal` must be True or False"),
    ],
)
def test_wrong_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        _attention(**settings)
