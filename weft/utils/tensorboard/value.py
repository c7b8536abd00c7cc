"""Conversion of tensors, arrays and numbers to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.formats.event.picture import bytes_of


def array_of(x: Any) -> np.ndarray:
    """A copy of a tensor's values, which may change before they are written."""
    source = x.detach() if hasattr(x, "detach") else x
    return np.array(source.numpy() if hasattr(source, "numpy") else source)


def number_of(name: str, x: Any) -> np.ndarray:
    """A single number, with its type.

    Raises:
        ArgumentError: there is not exactly one element.
    """
    found = array_of(x)
    if found.size != 1 or found.dtype.kind not in "biuf":
        got = f"shape {found.shape}" if found.dtype.kind in "biuf" else repr(x)
        raise ArgumentError(f"add_scalar: {name!r}: expected one number, got {got}")
    return found.reshape(())


def image_of(x: Any) -> np.ndarray:
    """An image's values as bytes."""
    return bytes_of(array_of(x))
