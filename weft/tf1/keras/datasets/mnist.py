"""MNIST, from the folder in `WEFT_DATA`; else the bundled digits, enlarged."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.datasets import get_mnist


def load_data(path: str = "mnist.npz") -> Any:
    """Training and test images (n, 28, 28) with labels, of type uint8.

    Args:
        path: accepted for old programs.
    """
    del path
    mnist = get_mnist(onehot=False)
    parts = [(p.images.reshape(-1, 28, 28) * 255, p.labels) for p in (mnist.train, mnist.test)]
    return tuple((np.rint(x).astype(np.uint8), y.astype(np.uint8)) for x, y in parts)
