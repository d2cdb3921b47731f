"""The orders in which targets are drawn."""

import numpy as np
import tensorflow as tf

from taylorformer.data_wrangler.batch import prepare_batch
from taylorformer.model.sampling.orders import sampling_order


def test_orders():
    x_context = np.array([[[0.0], [1.0]]], "float32")
    x_target = np.array([[[5.0], [0.9], [0.2], [-1.0]]], "float32")
    inputs = {"x_context": x_context, "y_context": x_context, "x_target": x_target}
    zero = tf.constant(0, tf.int64), tf.zeros([1], tf.int64)
    batch = prepare_batch({**inputs, "target_mask": [[True, False, True, True]]})
    assert sampling_order("given", batch, *zero).numpy().tolist() == [[0, 2, 3, 1]]
    assert sampling_order("nearest", batch, *zero).numpy().tolist() == [[2, 3, 0, 1]]
    batch = prepare_batch({**inputs, "context_mask": [[False, False]]})
    assert sampling_order("nearest", batch, *zero).numpy().tolist() == [[0, 1, 2, 3]]
    wide = {**batch, "x_target": tf.zeros([4, 30, 1]), "target_mask": tf.ones([4, 30], tf.bool)}
    orders = sampling_order("random", wide, zero[0], tf.constant([1, 2, 3, 3], tf.int64)).numpy()
    assert np.all(np.sort(orders, axis=1) == np.arange(30))
    assert not np.array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[2], orders[3])
