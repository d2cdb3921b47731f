"""One seed for each part of a model or task, derived from the one seed of the whole."""

import numpy as np

SMALLEST_SEED, LARGEST_SEED = -(2**63), 2**63 - 1
"""The 64-bit integers: any of them is a seed of samples, those from 0 on are seeds of tasks."""


def child_seed(seed: int | None, child: int) -> int | None:
    """Makes the seed of one part of a model or layer from the seed of the whole.

    Args:
        seed: the seed of the whole, or None for a random one.
        child: the child number, different for each part of the whole.

    Returns:
        A non-negative 31-bit seed that differs from part to part; None for None.
    """
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, child]).generate_state(1)[0] >> 1)


def numbered_generator(seed: int, stream: int, number: int) -> np.random.Generator:
    """Makes the generator of one piece of a stream, a function of its arguments alone.

    Args:
        seed: of the whole, 0 to `LARGEST_SEED`.
        stream: what is drawn; different streams of one seed share no numbers.
        number: the number of the piece.
    """
    # A spawn key never mixes with the words of a large seed, as a longer list of words would.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, number)))
