"""1,797 real handwritten digits of 8x8 pixels, bundled.

Source: the test set of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak,
UCI Machine Learning Repository, 1998 (CC BY 4.0), as scikit-learn carries it. Pixels count the
black points of a 4x4 block, 0 to 16; thirteen people wrote these digits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.formats.idx import read_idx

IMAGES: Final = Path(__file__).with_name("digits-images-idx3-ubyte.gz")
LABELS: Final = Path(__file__).with_name("digits-labels-idx1-ubyte.gz")
BRIGHTEST: Final = 16

Array = np.ndarray[Any, Any]


def load_digits(size: int = 8) -> tuple[Array, Array]:
    """Images of shape (1797, size, size), float32 in [0, 1], and labels, uint8.

    Sizes other than 8 are interpolated bilinearly.

    Args:
        size: height and width.

    >>> images, labels = load_digits()
    >>> images.shape, labels[:4]
    ((1797, 8, 8), array([0, 1, 2, 3], dtype=uint8))
    """
    images = read_idx(IMAGES).astype(np.float32) / BRIGHTEST
    return (images if size == images.shape[1] else resize(images, size)), read_idx(LABELS)


def resize(images: Array, size: int) -> Array:
    """Bilinear interpolation of (n, h, w) images to (n, size, size), pixel centers aligned."""
    rows = _weights(images.shape[1], size)
    columns = _weights(images.shape[2], size)
    return np.ascontiguousarray(rows @ images @ columns.T)


def _weights(old: int, new: int) -> Array:
    """A (new, old) matrix whose rows interpolate between two neighbors and sum to 1."""
    place = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    left = np.minimum(place.astype(int), max(old - 2, 0))
    matrix = np.zeros((new, old), np.float32)
    matrix[np.arange(new), left] = 1 - (place - left)
    matrix[np.arange(new), np.minimum(left + 1, old - 1)] += place - left
    return matrix
