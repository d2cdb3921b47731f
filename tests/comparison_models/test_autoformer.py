"""Autoformer and its parts against the formulas of the paper, written slowly in NumPy."""

import math

import conformance
import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from taylorformer import Autoformer
from taylorformer.comparison_models.auto_correlation import (
    AutoCorrelation,
    aggregate,
    correlations,
    delay_weights,
)
from taylorformer.comparison_models.autoformer_decoder_layer import AutoformerDecoderLayer
from taylorformer.comparison_models.autoformer_encoder_layer import AutoformerEncoderLayer
from taylorformer.comparison_models.feed_forward import FeedForward
from taylorformer.comparison_models.seasonal_layer_norm import SeasonalLayerNorm
from taylorformer.comparison_models.series_decomposition import SeriesDecomposition
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.resumable_fit import resumable_fit

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SMALL = {"width": 8, "num_heads": 2, "feed_forward": 6, "moving_average": 5, "seed": 1}
EVEN = next(case for case in conformance.MODELS if case.name == "autoformer")


def random_rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


# The formulas, one sequence `[N, F]` at a time, in float64.


def slow_dense(layer, rows):
    rows = np.float64(rows) @ np.float64(layer.kernel)
    return rows + np.float64(layer.bias) if layer.use_bias else rows


def slow_convolution(layer, rows):
    count = len(rows)
    neighbours = [[rows[(t + step) % count] for step in (-1, 0, 1)] for t in range(count)]
    return slow_dense(layer.dense, np.reshape(neighbours, [count, -1]))


def slow_decomposition(size, rows):
    rows, count = np.float64(rows), len(rows)
    trend = np.zeros_like(rows)
    for t in range(count):
        for step in range(-(size // 2), size // 2 + 1):
            trend[t] += rows[min(max(t + step, 0), count - 1)] / size
    return rows - trend, trend


def slow_correlations(query, key):
    count = len(query)
    return [
        np.mean(sum(np.float64(query[(t + tau) % count]) * key[t] for t in range(count)))
        for tau in range(count)
    ]


def slow_weights(correlation, delays):
    scores = np.exp([correlation[tau] - max(correlation) for tau in delays])
    return scores / scores.sum()


def slow_aggregate(values, delays, weights):
    count = len(values)
    return np.array(
        [
            sum(
                w * np.float64(values[(t + tau) % count])
                for tau, w in zip(delays, weights, strict=True)
            )
            for t in range(count)
        ]
    )


def slow_length(rows, count):
    return np.concatenate([rows[:count], np.zeros([max(count - len(rows), 0), rows.shape[1]])])


def slow_auto_correlation(layer, query, key, value, shared=False):
    """Of a batch `[B, N, F]`, since in training the batch shares the delays."""
    count = query.shape[1]
    queries = [slow_dense(layer.query_dense, rows) for rows in query]
    keys = [slow_length(slow_dense(layer.key_dense, rows), count) for rows in key]
    values = [slow_length(slow_dense(layer.value_dense, rows), count) for rows in value]
    correlated = np.array([slow_correlations(*pair) for pair in zip(queries, keys, strict=True)])
    k = max(1, min(count, math.floor(layer.factor * math.log(count))))
    outputs = []
    for correlation, rows in zip(correlated, values, strict=True):
        ranked = correlated.mean(axis=0) if shared else correlation
        delays = np.argsort(-ranked)[:k]
        rows = slow_aggregate(rows, delays, slow_weights(correlation, delays))
        outputs.append(slow_dense(layer.output_dense, rows))
    return np.array(outputs)


def slow_norm(layer, rows):
    rows = rows - rows.mean(axis=-1, keepdims=True)
    rows = rows / np.sqrt(rows.var(axis=-1, keepdims=True) + 1e-5) * np.float64(layer.norm.gamma)
    return rows - rows.mean(axis=0)


def slow_feed_forward(layer, rows):
    hidden = slow_dense(layer.hidden_dense, rows)
    return slow_dense(layer.output_dense, hidden * (1 + erf(hidden / np.sqrt(2))) / 2)


def slow_split(layer, batch):
    parts = [slow_decomposition(layer.moving_average, rows) for rows in batch]
    return (np.array(part) for part in zip(*parts, strict=True))


def slow_encoder_layer(layer, rows, shared):
    rows = rows + slow_auto_correlation(layer.auto_correlation, rows, rows, rows, shared)
    rows, _ = slow_split(layer, rows)
    rows, _ = slow_split(layer, rows + slow_feed_forward(layer.feed_forward_part, rows))
    return rows


def slow_decoder_layer(layer, rows, encoded, shared):
    trends = np.zeros([1])
    for attention, source in ((layer.self_correlation, None), (layer.cross_correlation, encoded)):
        source = rows if source is None else source
        rows = rows + slow_auto_correlation(attention, rows, source, source, shared)
        rows, trend = slow_split(layer, rows)
        trends = trends + trend
    rows, trend = slow_split(layer, rows + slow_feed_forward(layer.feed_forward_part, rows))
    trends = trends + trend
    return rows, np.array([slow_convolution(layer.trend_convolution, each) for each in trends])


def slow_embedding(layer, values, features):
    rows = np.array([slow_convolution(layer.value_convolution, each) for each in values])
    return rows + slow_dense(layer.feature_dense, features) if features.shape[-1] else rows


def slow_forecast(model, inputs, shared=False):
    values = np.float64(inputs["y_context"])
    context, target = inputs["x_context"][..., 1:], inputs["x_target"][..., 1:]
    batch, num_target, start = len(values), target.shape[1], model.num_start
    encoded = slow_embedding(model.context_embedding, values, context)
    for layer in model.encoder:
        encoded = slow_encoder_layer(layer, encoded, shared)
    encoded = np.array([slow_norm(model.encoder_norm, rows) for rows in encoded])
    seasonal, trend = slow_split(model, values)
    first = values.shape[1] - start
    zeros = np.zeros([batch, num_target, values.shape[-1]])
    seasonal = np.concatenate([seasonal[:, first:], zeros], axis=1)
    trend = np.concatenate([trend[:, first:], zeros + values.mean(axis=1, keepdims=True)], axis=1)
    features = np.concatenate([context[:, first:], target], axis=1)
    rows = slow_embedding(model.target_embedding, seasonal, features)
    for layer in model.decoder:
        rows, more = slow_decoder_layer(layer, rows, encoded, shared)
        trend = trend + more
    rows = np.array([slow_norm(model.decoder_norm, each) for each in rows])
    return (slow_dense(model.output_dense, rows) + trend)[:, start:]


# The parts.


@pytest.mark.parametrize("length", [1, 2, 7, 12])
def test_correlations_are_sums_over_time(length):
    query, key = random_rows(2, length, 3), random_rows(2, length, 3, seed=1)
    expected = [slow_correlations(*pair) for pair in zip(query, key, strict=True)]
    np.testing.assert_allclose(correlations(query, key), expected, **CLOSE)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("count", [1, 3, 9])
def test_the_largest_correlations_get_their_softmax(count, shared):
    correlated = random_rows(4, 9)
    weights = delay_weights(tf.constant(correlated), count, shared=shared).numpy()
    for row, correlation in zip(weights, correlated, strict=True):
        ranked = correlated.mean(axis=0) if shared else correlation
        delays = np.argsort(-ranked)[:count]
        expected = np.zeros(9)
        expected[delays] = slow_weights(correlation, delays)
        np.testing.assert_allclose(row, expected, **CLOSE)
        assert np.count_nonzero(row) == count


@pytest.mark.parametrize("length", [1, 7, 12])
def test_the_aggregate_is_a_weighted_sum_of_rolled_series(length):
    values, weights = random_rows(2, length, 3), random_rows(2, length, seed=1)
    for row, each, weight in zip(aggregate(values, weights), values, weights, strict=True):
        expected = sum(w * np.roll(each, -tau, axis=0) for tau, w in enumerate(weight))
        np.testing.assert_allclose(row, expected, **CLOSE)
        again = slow_aggregate(each, range(length), weight)
        np.testing.assert_allclose(row, again, **CLOSE)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("lengths", [(9, 9), (9, 5), (5, 9), (1, 3), (2, 2)])
@pytest.mark.parametrize("factor", [0.1, 1.0, 2.5, 100.0])
def test_auto_correlation_is_that_of_the_paper(factor, lengths, training):
    layer = AutoCorrelation(2, 3, 5, factor=factor, seed=1)
    query, key, value = (
        random_rows(3, length, 4, seed=seed)
        for seed, length in enumerate((lengths[0], lengths[1], lengths[1]))
    )
    rows = layer(query, key, value, training=training)
    expected = slow_auto_correlation(layer, query, key, value, shared=training)
    np.testing.assert_allclose(rows, expected, **CLOSE)


def test_delays_of_a_sine_are_its_period_and_the_aggregate_is_the_sine():
    length, period = 96, 24
    times = 2 * np.pi * np.arange(length) / period
    rows = np.stack([np.sin(times), np.cos(times)], axis=-1)[np.newaxis].astype("float32")
    layer = AutoCorrelation(num_heads=1, head_dim=2, width=2, use_bias=False)
    layer.build(rows.shape, rows.shape, rows.shape)
    layer.set_weights([np.eye(2, dtype="float32")] * 4)
    weights = delay_weights(correlations(rows, rows), 4, shared=False)
    assert set(np.flatnonzero(weights[0])) == {0, 24, 48, 72}
    np.testing.assert_allclose(layer(rows, rows, rows), rows, **CLOSE)
    # A sequence that lags by six rows is found six rows later.
    late = correlations(np.roll(rows, 6, axis=1), rows)
    assert set(np.flatnonzero(delay_weights(late, 4, shared=False)[0])) == {6, 30, 54, 78}


def test_a_bias_of_the_query_would_change_nothing_and_of_the_key_where_no_zeros_follow():
    query, key = random_rows(2, 9, 3), random_rows(2, 9, 3, seed=1)
    plain, shifted = correlations(query, key), correlations(query + 2, key - 3)
    np.testing.assert_allclose(
        delay_weights(plain, 3, False), delay_weights(shifted, 3, False), **CLOSE
    )
    short = key.copy()
    short[:, 6:] = 0
    plain = correlations(query, short)
    np.testing.assert_allclose(
        delay_weights(plain, 3, False),
        delay_weights(correlations(query + 2, short), 3, False),
        **CLOSE,
    )
    short[:, :6] -= 3
    change = (correlations(query, short) - plain).numpy()
    assert (np.ptp(change, axis=1) > 1).all()


@pytest.mark.parametrize("size", [1, 3, 25])
@pytest.mark.parametrize("length", [1, 2, 9, 40])
def test_the_trend_is_a_moving_average_with_repeated_ends(length, size):
    rows = random_rows(2, length, 3)
    seasonal, trend = SeriesDecomposition(size)(rows)
    for b in range(2):
        expected = slow_decomposition(size, rows[b])
        np.testing.assert_allclose(seasonal[b], expected[0], **CLOSE)
        np.testing.assert_allclose(trend[b], expected[1], **CLOSE)


def test_a_moving_average_has_a_middle():
    with pytest.raises(ValueError, match=r"`kernel_size` must be odd\. Received: kernel_size=24"):
        SeriesDecomposition(24)
    with pytest.raises(ValueError, match=r"`kernel_size` must be odd\. Received: kernel_size=24"):
        Autoformer(moving_average=24)


def test_the_last_norm_takes_out_the_mean_over_time():
    layer, rows = SeasonalLayerNorm(), random_rows(2, 5, 4)
    layer(rows)
    layer.set_weights([random_rows(4, seed=1)])
    normalized = layer(rows)
    for b in range(2):
        np.testing.assert_allclose(normalized[b], slow_norm(layer, rows[b]), **CLOSE)


def test_the_feed_forward_part_is_two_products_with_gelu_between():
    layer, rows = FeedForward(7, 5, seed=1), random_rows(2, 3, 4)
    np.testing.assert_allclose(layer(rows), slow_feed_forward(layer, rows), **CLOSE)


@pytest.mark.parametrize("training", [False, True])
def test_layers_are_those_of_the_paper(training):
    rows, encoded = random_rows(3, 9, 8), random_rows(3, 7, 8, seed=1)
    encoder = AutoformerEncoderLayer(2, 8, 6, 5, seed=1)
    expected = slow_encoder_layer(encoder_made(encoder, rows), rows, training)
    np.testing.assert_allclose(encoder(rows, training=training), expected, **CLOSE)
    decoder = AutoformerDecoderLayer(2, 8, 6, 2, 5, seed=1)
    decoder(rows, encoded)
    expected = slow_decoder_layer(decoder, rows, encoded, training)
    for ours, theirs in zip(decoder(rows, encoded, training=training), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def encoder_made(layer, rows):
    layer.build(rows.shape)
    return layer


# The model.


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("x_dims, start_length", [(1, None), (3, 4), (3, 0), (1, 12)])
def test_the_forecast_is_that_of_the_formulas(x_dims, start_length, training):
    model = Autoformer(**SMALL, start_length=start_length, decoder_layers=2, dropout=0.0)
    inputs, _ = conformance.points(12, 7, x_dims, 2, times="even")
    mean = model(inputs, training=training)["mean"]
    np.testing.assert_allclose(mean, slow_forecast(model, inputs, training), **CLOSE)


def test_a_forecast_does_not_depend_on_its_batch():
    model = EVEN.make(factor=2.0)
    inputs, _ = EVEN.data(num_context=24, num_target=12, batch_size=5)
    together = model(inputs)["mean"]
    for b in (0, 3):
        alone = model({key: value[b : b + 1] for key, value in inputs.items()})["mean"]
        np.testing.assert_allclose(alone[0], together[b], **CLOSE)


def test_points_that_all_sequences_share_are_those_of_each():
    model = Autoformer(**SMALL)
    inputs, _ = conformance.points(8, 4, 3, 1, times="even")
    shared = {**inputs, **{key: inputs[key][:1] for key in ("x_context", "x_target")}}
    copies = {key: np.repeat(value, 3, axis=0) for key, value in shared.items() if key[0] == "x"}
    expected = model({**inputs, **copies})["mean"]
    np.testing.assert_allclose(model(shared)["mean"], expected, **CLOSE)


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_target_reaches_the_forecast(training):
    model = EVEN.make(dropout=0.1)
    inputs, y_target = EVEN.data()
    model(inputs)

    def outputs(y):
        for generator in conformance.seed_generators(model):
            generator.state.assign([5, 0])
        made = model({**inputs, "y_target": y}, training=training)
        return tf.stack([made["mean"], made["scale"]])

    y = tf.constant(y_target)
    with tf.GradientTape() as tape:
        tape.watch(y)
        plain = outputs(y)
    assert tape.gradient(plain, y) is None  # there is no path at all
    for value in (1e6, np.nan):
        np.testing.assert_array_equal(outputs(np.full_like(y_target, value)), plain)
    # The test can see something: the context matters.
    inputs = {**inputs, "y_context": inputs["y_context"] + np.float32([[[0.0]] * 4 + [[1.0]]])}
    assert np.all(outputs(y)[0] != plain[0])


def formula_count(width, feed_forward, y_dims, num_features, encoders=2, decoders=1):
    """The parameters of the authors' layers, with every bias that they have."""
    attention = 4 * (width * width + width)
    feed = 2 * width * feed_forward
    embedding = 3 * y_dims * width + num_features * width
    return (
        2 * embedding
        + encoders * (attention + feed)
        + decoders * (2 * attention + feed + 3 * width * y_dims)
        + 2 * 2 * width
        + width * y_dims
        + y_dims
    )


@pytest.mark.parametrize("y_dims, num_features", [(7, 4), (1, 6), (7, 6), (1, 0)])
def test_the_official_size_has_ten_and_a_half_million_parameters(y_dims, num_features):
    model = Autoformer(seed=0)
    x_dims = 1 + num_features
    model.build(
        {
            "x_context": (None, 96, x_dims),
            "y_context": (None, 96, y_dims),
            "x_target": (None, 96, x_dims),
        }
    )
    count = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    expected = formula_count(512, 2048, y_dims, num_features)
    assert abs(count / expected - 1) < 0.002
    assert abs(count / 10.5e6 - 1) < 0.01
    # Four bytes for each: the 42 megabytes of the paper's table.
    assert round(4 * count / 1e6) == 42


def noisy_sines(rng, batch_size=16):
    """Sines of period 12 and random phase: 24 context rows, 12 targets."""
    times = np.arange(36.0)
    y = np.sin(2 * np.pi * (times + rng.uniform(0, 12, (batch_size, 1))) / 12)
    y = (y + 0.1 * rng.normal(size=y.shape))[..., np.newaxis].astype("float32")
    x = np.tile(times[np.newaxis, :, np.newaxis], [batch_size, 1, 1]).astype("float32")
    inputs = {"x_context": x[:, :24], "y_context": y[:, :24], "x_target": x[:, 24:]}
    return inputs, y[:, 24:]


def test_it_learns_a_noisy_sine():
    rng = np.random.default_rng(0)
    sizes = {"width": 16, "num_heads": 2, "feed_forward": 32, "encoder_layers": 1}
    model = Autoformer(**sizes, moving_average=13, seed=0)
    model.compile(keras.optimizers.Adam(3e-3), jit_compile=False)
    inputs, y_target = noisy_sines(rng, 16 * 100)
    held_out, truth = noisy_sines(rng, 64)
    model.fit(inputs, y_target, batch_size=16, verbose=0)
    error = np.mean(np.square(model(held_out)["mean"] - truth))
    last_value = np.mean(np.square(held_out["y_context"][:, -1:] - truth))
    assert last_value > 0.9
    assert error < 0.05 * last_value  # noise alone is 0.01


class StopAt(keras.callbacks.Callback):
    """Does what Ctrl-C does."""

    def __init__(self, batch):
        super().__init__()
        self.left = batch

    def on_train_batch_begin(self, batch, logs=None):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


@pytest.mark.slow
def test_stopped_training_resumes_to_the_same_bits(tmp_path):
    plan = TrainingPlan(4, 1e-2, "constant", max_steps=4, steps_per_epoch=2)
    inputs, y_target = EVEN.data(batch_size=16)
    batches = tf.data.Dataset.from_tensor_slices((inputs, y_target)).batch(4)

    def train(stop=None, resume=False):
        model = EVEN.make(encoder_layers=1, dropout=0.2)
        model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
        options = {} if stop is None and not resume else {"checkpoint": tmp_path / "checkpoint"}
        callbacks = [] if stop is None else [StopAt(stop)]
        resumable_fit(
            model,
            lambda step: batches.repeat().skip(step),
            batches.take(1),
            plan,
            resume=resume,
            callbacks=callbacks,
            **options,
        )
        return model

    whole = train()
    with pytest.raises(KeyboardInterrupt):
        train(stop=3)
    for ours, theirs in zip(train(resume=True).weights, whole.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert float(whole.residual_scale[0]) != 1


@pytest.mark.slow
def test_an_exported_model_forecasts_what_the_model_does(tmp_path):
    model = EVEN.make()
    inputs, y_target = EVEN.data()
    expected = model.log_prob(inputs, y_target)
    model.export(tmp_path)
    served = tf.saved_model.load(str(tmp_path)).signatures["log_prob"]
    tensors = {key: tf.constant(value) for key, value in inputs.items()}
    got = served(**tensors, y_target=tf.constant(y_target))
    np.testing.assert_allclose(got["log_prob"], expected, **CLOSE)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"factor": 0}, r"`factor` must be finite and above 0\. Received: factor=0"),
        ({"moving_average": 0}, "`kernel_size` must be at least 1"),
        ({"moving_average": 2.5}, "`kernel_size` must be an integer"),
        ({"width": 10}, r"`width` must be a multiple of `num_heads`\. Received: width=10"),
        ({"dropout": 1}, "`dropout` must be finite and at least 0 and below 1"),
    ],
)
def test_arguments_out_of_range_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Autoformer(**settings)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"`rows` must have the shape \[B, N, width\].*width=8"):
        AutoformerEncoderLayer(2, 8, 6)(random_rows(2, 5, 7))
    with pytest.raises(ValueError, match=r"must be a multiple of `num_heads`.*num_heads=3"):
        AutoformerDecoderLayer(3, 8, 6, 1)
