"""Random batches for the six networks, as NumPy arrays: the same ones for every contestant."""

from __future__ import annotations

import numpy as np


def images(batch, size=224, classes=1000):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, 3, size, size), np.float32)
    return (x,), rng.integers(0, classes, batch)


def sentences(batch, words=32000, length=25):
    rng = np.random.default_rng(0)
    source, target, labels = rng.integers(0, words, (3, batch, length))
    return (source, target), labels


def pairs(batch, users=138493, items=26744):
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, users, batch), rng.integers(0, items, batch)
    return chosen, rng.integers(0, 2, batch).astype(np.float32)


MAKE = {"gnmt": sentences, "ncf": pairs}


def batch_of(name, batch, **sizes):
    """The network's arguments, and what the loss compares with."""
    return MAKE.get(name, images)(batch, **sizes)
