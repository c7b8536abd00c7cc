"""Attention without a matrix of scores in memory: see `forward` and `backward`."""
