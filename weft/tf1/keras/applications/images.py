"""Images as the networks were trained on them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import weft.tf1 as tf

MEAN: Final = np.array([103.939, 116.779, 123.68], np.float32)
"""Of ImageNet's blue, green and red."""


def _floating(x: Any) -> tuple[Any, Any]:
    """The images as float32, and the module with functions of them."""
    if tf.is_tensor(x):
        return tf, tf.cast(x, tf.float32)
    return np, np.asarray(x, np.float32)


def blue_first(x: Any, data_format: str | None = None) -> Any:
    """Images as blue, green and red, without ImageNet's mean: of VGG and ResNet.

    Args:
        x: (..., 3), red, green and blue from 0 to 255; an array or a tensor.
        data_format: accepted; channels are the last.
    """
    del data_format
    library, found = _floating(x)
    return library.subtract(found[..., ::-1], MEAN)


def from_minus_one(x: Any, data_format: str | None = None) -> Any:
    """Images from -1 to 1: of MobileNets.

    Args:
        x: (..., 3), from 0 to 255; an array or a tensor.
        data_format: accepted; channels are the last.
    """
    del data_format
    library, found = _floating(x)
    return library.subtract(library.divide(found, 127.5), 1.0)
