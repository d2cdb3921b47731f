"""Features of points: neighbours, derivatives, positional encoding, normalisation."""
