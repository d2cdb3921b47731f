"""Draws with the cached and the plain sampler, and compares what they return."""

import numpy as np
import tensorflow as tf

from taylorformer.model.sampling.cached import CachedSampler
from taylorformer.model.sampling.plain import PlainSampler

KEYS = tf.constant([5, 2**40, -7], tf.int64)
SEED = tf.constant(-3, tf.int64)


def masked(inputs):
    rng = np.random.default_rng(1)
    lengths = inputs["x_context"].shape[1], inputs["x_target"].shape[1]
    masks = [rng.random((3, length)) < 0.7 for length in lengths]
    masks[0][1], masks[1][2] = False, False
    # What stands at hidden points is never read.
    y_context = np.where(masks[0][..., np.newaxis], inputs["y_context"], np.nan)
    return {
        **inputs,
        "y_context": y_context,
        "context_mask": masks[0],
        "target_mask": masks[1],
    }


def both(model, inputs, order="given", num_samples=3):
    batch = model.prepare(inputs)
    if not model.built:
        model(batch)
    arguments = (batch, num_samples, SEED, KEYS, order, None)
    quick = model.make_sampler()
    assert isinstance(quick, CachedSampler)
    return quick(*arguments).numpy(), PlainSampler(model)(*arguments).numpy()


def assert_close(drawn, wanted, tolerance=1e-4):
    assert drawn.shape == wanted.shape and np.isfinite(drawn).all()
    # Relative to the size: an untrained model lets samples grow.
    np.testing.assert_allclose(drawn, wanted, atol=tolerance * max(1.0, np.abs(wanted).max()))
