"""Boston Housing: 13 facts about districts, with prices, from a file in Keras's folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.tf1.keras.datasets.archive import arrays, shuffled

__all__ = ["load_data"]


def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Any:
    """Facts and prices for training, and those for tests.

    Args:
        path: the file in Keras's folder.
        test_split: the part of the data that is for tests.
        seed: of the order.

    Raises:
        DataError: the file is missing; the message says where to get it.
    """
    found = arrays(path)
    x, y = shuffled(np.random.RandomState(seed), found["x"], found["y"])
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])
