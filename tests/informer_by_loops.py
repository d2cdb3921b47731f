"""The Informer's layers from their formulas, one query of one head at a time, in float64."""

import math

import numpy as np


def dense(layer, rows):
    """Applies a Dense layer, with or without a bias."""
    kernel, *bias = (np.float64(weight) for weight in layer.get_weights())
    return rows @ kernel + (bias[0] if bias else 0.0)


def softmax(scores):
    """Returns the softmax of `[N]`."""
    weights = np.exp(scores - np.max(scores))
    return weights / np.sum(weights)


def layer_norm(layer, rows):
    """Normalises each row."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    gamma, beta = (np.float64(weight) for weight in layer.get_weights())
    return scaled * gamma + beta


def gelu(rows):
    """Returns x times the probability that a standard normal number is below x."""
    return rows * np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))(rows)


def sparsity(query, keys, sample):
    """Returns the sparsity measure M of one query, whose scale is that of its attention."""
    scores = [query @ keys[j] / math.sqrt(len(query)) for j in sample]
    return max(scores) - sum(scores) / len(scores)


def attention(layer, query, key, value, sample=None):
    """Runs a multi-head attention.

    Args:
        layer: `ProbSparseAttention`, or `MultiHeadAttention` without `sample`.
        query: `[B, R, F]`.
        key: `[B, N, F]`.
        value: `[B, N, F]`.
        sample: `[R, U]`, the keys from which the sparsity of each query is estimated. None: all
            queries attend.
    """
    parts = zip(
        *(
            np.split(dense(each, rows), layer.num_heads, axis=-1)
            for each, rows in (
                (layer.query_dense, query),
                (layer.key_dense, key),
                (layer.value_dense, value),
            )
        ),
        strict=True,
    )
    heads = []
    for queries, keys, values in parts:
        sequences = zip(queries, keys, values, strict=True)
        heads.append([_one_head(layer, *sequence, sample) for sequence in sequences])
    return dense(layer.output_dense, np.concatenate(heads, axis=-1))


def _one_head(layer, queries, keys, values, sample):
    count = len(queries)
    chosen, causal = range(count), False
    if sample is not None:
        causal = layer.causal
        number = min(count, math.ceil(layer.factor * math.log(count)))
        measures = [sparsity(queries[i], keys, sample[i]) for i in range(count)]
        chosen = np.argsort(measures)[count - number :]
    rows = []
    for i in range(count):
        end = i + 1 if causal else len(keys)
        scores = keys[:end] @ queries[i] / math.sqrt(len(queries[i]))
        weights = softmax(scores) if i in chosen else np.full(end, 1 / end)
        rows.append(weights @ values[:end])
    return rows


def self_attention(layer, rows):
    """Runs ProbSparse attention as at inference, with its fixed sample of keys."""
    count = rows.shape[1]
    return attention(layer, rows, rows, rows, layer.sampled_keys(count, count).numpy())


def feed_forward(layer, rows):
    """Runs the feed-forward part of a layer, with its skip and normalisation."""
    part = layer.feed_forward_part
    inner = dense(part.output_dense, gelu(dense(part.hidden_dense, rows)))
    return layer_norm(layer.output_norm, rows + inner)


def encoder_layer(layer, rows):
    """Runs one layer of the encoder."""
    hidden = layer_norm(layer.attention_norm, rows + self_attention(layer.attention, rows))
    return feed_forward(layer, hidden)


def decoder_layer(layer, rows, encoded):
    """Runs one layer of the decoder."""
    hidden = layer_norm(layer.self_norm, rows + self_attention(layer.self_attention, rows))
    crossed = attention(layer.cross_attention, hidden, encoded, encoded)
    return feed_forward(layer, layer_norm(layer.cross_norm, hidden + crossed))


def convolution(layer, rows):
    """Convolves three rows of a circle."""
    kernel = np.float64(layer.dense.kernel).reshape(3, rows.shape[-1], -1)
    outputs = np.zeros((*rows.shape[:2], kernel.shape[-1]))
    for i in range(rows.shape[1]):
        for number, offset in enumerate((-1, 0, 1)):
            outputs[:, i] += rows[:, (i + offset) % rows.shape[1]] @ kernel[number]
    return outputs + (np.float64(layer.dense.bias) if layer.use_bias else 0.0)


def distilling(layer, rows, statistics=None):
    """Halves the length.

    Args:
        layer: `Distilling`.
        rows: `[B, N, width]`.
        statistics: mean and variance. None: those of the batch.
    """
    hidden = convolution(layer.convolution, rows)
    mean, variance = statistics or (hidden.mean(axis=(0, 1)), hidden.var(axis=(0, 1)))
    hidden = (hidden - mean) / np.sqrt(variance + 1e-5)
    hidden = hidden * np.float64(layer.norm.gamma) + np.float64(layer.norm.beta)
    hidden = np.where(hidden > 0, hidden, np.expm1(np.minimum(hidden, 0)))
    count = (rows.shape[1] + 1) // 2
    pooled = [hidden[:, max(2 * i - 1, 0) : 2 * i + 2].max(axis=1) for i in range(count)]
    return np.stack(pooled, axis=1)


def embedding(layer, values, features):
    """Embeds values, features and the row number."""
    rows = convolution(layer.value_convolution, values)
    if features.shape[-1]:
        rows = rows + dense(layer.feature_dense, features)
    half = layer.width // 2
    angles = np.arange(rows.shape[1])[:, None] / 10_000 ** (np.arange(half) / half)
    return rows + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def forecast(model, values, context_features, target_features):
    """Runs the whole Informer at inference; arguments and result as of `forecast_rows`."""
    rows = embedding(model.context_embedding, values, context_features)
    for number, layer in enumerate(model.encoder):
        rows = encoder_layer(layer, rows)
        if model.distilling and number < model.encoder_layers - 1:
            step = model.distillings[number]
            norm = step.norm
            statistics = np.float64(norm.moving_mean), np.float64(norm.moving_variance)
            rows = distilling(step, rows, statistics)
    encoded = layer_norm(model.encoder_norm, rows)
    first = values.shape[1] - model.num_start
    zeros = np.zeros((len(values), target_features.shape[1], values.shape[-1]))
    rows = embedding(
        model.decoder_embedding,
        np.concatenate([values[:, first:], zeros], axis=1),
        np.concatenate([context_features[:, first:], target_features], axis=1),
    )
    for layer in model.decoder:
        rows = decoder_layer(layer, rows, encoded)
    rows = dense(model.output_dense, layer_norm(model.decoder_norm, rows))
    return rows[:, model.num_start :]
