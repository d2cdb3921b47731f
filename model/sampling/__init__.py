"""Joint samples, one target after the other: what every sampler shares, and each kind of it."""
