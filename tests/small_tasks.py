"""Small Gaussian-process tasks for tests, and the arrays of a batch."""

from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks


def arrays_of(element):
    """Returns the arrays of an element of a data set by name."""
    inputs, y_target = element
    return {**{name: v.numpy() for name, v in inputs.items()}, "y_target": y_target.numpy()}


def small_set(num_sequences=7, num_points=8, seed=3, **options):
    """Draws a few held-out sequences of a few points."""
    return held_out_gaussian_process_tasks(
        "matern", num_sequences, seed, num_points=num_points, num_context=(0, 7), **options
    )
