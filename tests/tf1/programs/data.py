"""Training data, the same for every framework."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def draw(seed: int, *shape: int, scale: float = 1.0) -> Array:
    """Normally distributed numbers."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def classes(seed: int, rows: int, count: int) -> Array:
    """Labels from 0 to count - 1."""
    return np.random.default_rng(seed).integers(0, count, size=rows).astype(np.int32)


def one_hot(labels: Array, count: int) -> Array:
    """Labels as rows with a single 1."""
    return np.eye(count, dtype=np.float32)[labels]
