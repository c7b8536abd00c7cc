"""Images as arrays, with Pillow if it is installed."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np

from weft.errors import DataError

Array = np.ndarray[Any, Any]
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def pillow(what: str) -> Any:
    """Pillow's module `Image`.

    Raises:
        DataError: it is not installed.
    """
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        text = 'expected Pillow to be installed: pip install "weft[images]"'
        raise DataError(f"{what}: {text}") from None


def decode(data: bytes, channels: int = 0, where: str = "image") -> Array:
    """An image file's pixels, (height, width, channels), uint8.

    Args:
        channels: 1, 3 or 4; 0 for the file's own (palettes become 3 or 4).
        where: its name in messages.

    Raises:
        DataError: the bytes are not an image, or damaged.
    """
    return pixels(opened(data, where), channels)


def opened(data: bytes, where: str = "image") -> Any:
    """An image file as Pillow's image, fully read.

    Raises:
        DataError: the bytes are not an image, or damaged.
    """
    library = pillow("decode an image")
    try:
        image = library.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise DataError(f"{where}: expected an image, got {len(data)} bytes: {error}") from None
    return image


def pixels(image: Any, channels: int = 0) -> Array:
    """Pillow's image as an array (height, width, channels), uint8."""
    if channels:
        mode = MODES[channels]
    elif image.mode in MODES.values():
        mode = image.mode
    elif image.mode in ("1", "I", "I;16", "F"):
        mode = "L"
    else:
        mode = "RGBA" if "A" in image.mode or "transparency" in image.info else "RGB"
    array = np.array(image if image.mode == mode else image.convert(mode))
    return array if array.ndim == 3 else array[..., None]


def encode(array: Array, kind: str = "PNG", **options: Any) -> bytes:
    """An array (height, width) or (height, width, channels), uint8, as an image file's bytes.

    Args:
        options: Pillow's, of the kind of file.
    """
    library = pillow("encode an image")
    stream = io.BytesIO()
    squeezed = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    library.fromarray(squeezed).save(stream, kind, **options)
    return stream.getvalue()
