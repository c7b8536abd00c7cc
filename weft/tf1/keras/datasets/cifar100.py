"""CIFAR-100, from the folder in `WEFT_DATA`."""

from __future__ import annotations

from typing import Any

from weft.datasets import CIFAR100
from weft.tf1.keras.datasets.parts import both


def load_data() -> Any:
    """Training and test images with labels.

    Raises:
        DataError: the files are missing; the message says where to get them.
    """
    return both(CIFAR100)
