"""Tasks to train and score neural processes on: Gaussian processes and image completion."""
