"""Attention without a score matrix in memory: see `forward` and `backward`."""
