"""Calls an exported Taylorformer from plain TensorFlow: no taylorformer, no keras.

    taylorformer fit TABLE --model FOLDER
    taylorformer export --model FOLDER --output SERVED
    python examples/call_saved_model.py SERVED

A sine wave is what it forecasts here: raw numbers go in, quantiles in the same units come out.
"""

import sys

import numpy as np
import tensorflow as tf


def main(folder: str) -> None:
    """Forecasts a wave and prints quantiles."""
    served = tf.saved_model.load(folder)
    forecast = served.signatures["serving_default"]
    day = 86400.0
    time = day * np.arange(60)
    value = 5000.0 + 300.0 * np.sin(np.arange(60) / 5)
    value[7] = np.nan  # a missing value
    answer = forecast(
        time_context=tf.constant(time[np.newaxis, :50]),
        y_context=tf.constant(value[np.newaxis, :50, np.newaxis]),
        time_target=tf.constant(time[np.newaxis, 50:]),
        num_samples=tf.constant(100),
        seed=tf.constant(1),
        quantile_levels=tf.constant([0.05, 0.5, 0.95]),
    )
    for step, (low, median, high) in enumerate(answer["quantiles"][0, :, 0].numpy(), start=1):
        print(f"{step:3d}  {low:10.1f} {median:10.1f} {high:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1])
