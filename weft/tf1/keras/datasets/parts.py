"""The two parts of a data set as Keras gives them."""

from __future__ import annotations

from typing import Any

import numpy as np


def both(kind: Any) -> Any:
    """Training and test images with labels."""
    found: list[Any] = []
    for train in (True, False):
        part = kind(train=train)
        found.append((np.asarray(part.data), np.asarray(part.targets)))
    return tuple(found)
