"""Joint samples: one `Sampler` that all kinds share, and each kind of it."""
