"""Seeds for the parts of a whole."""

import numpy as np


def child_seed(seed: int | None, place: int) -> int | None:
    """Makes the seed of one part from the seed of the whole.

    Args:
        seed: the seed of the whole, or None for a random one.
        place: the number of the part.

    Returns:
        A non-negative 31-bit seed that differs from part to part; None for None.
    """
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0] >> 1)
