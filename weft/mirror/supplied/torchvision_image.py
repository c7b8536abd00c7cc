"""`torch.ops.image`: image files, which torchvision reads and writes in C++; here by Pillow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.collectives.elements import array
from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.formats.image import encode, opened

__all__ = [
    "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_webp", "encode_jpeg",
    "encode_png", "read_file", "write_file",
]  # fmt: skip

_MODES: Final = (None, "L", "LA", "RGB", "RGBA")
"""Pillow's name of each of torchvision's modes; `None` for the file's own."""
_OWN: Final = {"1": "L", "P": "RGB", "CMYK": "RGB"}


def _bytes_of(data: bytes) -> Tensor:
    return wrap(leaf(np.frombuffer(data, np.uint8).copy()))


def read_file(filename: str) -> Tensor:
    """A file's bytes."""
    return _bytes_of(Path(filename).read_bytes())


def write_file(filename: str, data: Tensor) -> None:
    """Write bytes."""
    Path(filename).write_bytes(array(data).tobytes())


def decode_image(data: Tensor, mode: int = 0, apply_exif_orientation: bool = False) -> Tensor:
    """The image of a file's bytes, uint8 or uint16; (channels, height, width).

    Raises:
        DataError: it is no image.
    """
    image: Any = opened(array(data).tobytes(), "decode_image")
    if apply_exif_orientation:
        image = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    wanted = _MODES[mode] or _OWN.get(image.mode, image.mode)
    pixels = np.asarray(image if image.mode == wanted else image.convert(wanted))
    pixels = pixels.astype(np.uint16) if pixels.dtype == np.int32 else pixels  # 16-bit grays
    rows = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return wrap(leaf(np.array(rows, order="C")))


decode_png = decode_jpeg = decode_webp = decode_gif = decode_image


def encode_png(image: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file of (channels, height, width) in uint8."""
    return _bytes_of(encode(array(image).transpose(1, 2, 0), compress_level=compression_level))


def encode_jpeg(image: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG file of (channels, height, width) in uint8."""
    return _bytes_of(encode(array(image).transpose(1, 2, 0), "JPEG", quality=quality))
