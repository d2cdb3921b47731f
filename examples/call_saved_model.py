"""Calls an exported Taylorformer from plain TensorFlow: no taylorformer, no keras.

    taylorformer fit TABLE --model FOLDER --preset compact
    taylorformer export --model FOLDER --output SERVED
    python examples/call_saved_model.py SERVED

It forecasts a sine wave: raw numbers go in, quantiles in the same units come out.
"""

import sys

import numpy as np
import tensorflow as tf

SECONDS_OF_A_DAY = 86_400.0
DAYS = 60
CONTEXT_DAYS = 50
MISSING_DAY = 7
SAMPLES = 100
LEVELS = (0.05, 0.5, 0.95)


def main(folder: str) -> None:
    """Forecasts a wave and prints quantiles."""
    served = tf.saved_model.load(folder)
    forecast = served.signatures["serving_default"]
    day = np.arange(DAYS)
    time = SECONDS_OF_A_DAY * day
    value = 5000.0 + 300.0 * np.sin(day / 5)
    value[MISSING_DAY] = np.nan
    answer = forecast(
        time_context=tf.constant(time[np.newaxis, :CONTEXT_DAYS]),
        y_context=tf.constant(value[np.newaxis, :CONTEXT_DAYS, np.newaxis]),
        time_target=tf.constant(time[np.newaxis, CONTEXT_DAYS:]),
        num_samples=tf.constant(SAMPLES),
        seed=tf.constant(1),
        quantile_levels=tf.constant(LEVELS),
    )
    for step, (low, median, high) in enumerate(answer["quantiles"][0, :, 0].numpy(), start=1):
        print(f"{step:3d}  {low:10.1f} {median:10.1f} {high:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1])
