"""The layers of the Taylorformer: attention, its two towers, the local Taylor terms."""
