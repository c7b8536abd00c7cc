"""Arrays as images: PNG, and animated PNG for frames, which browsers play.

Source: the PNG specification, third edition, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}  # by channels
LEVEL: Final = 6
GRID_COLUMNS: Final = 8


def png(array: np.ndarray) -> bytes:
    """An image of bytes, `[height, width, channels]` with 1 to 4 channels, as PNG."""
    return _file(array, b"", _chunk(b"IDAT", _squeezed(array)))


def animated(frames: np.ndarray, fps: float) -> bytes:
    """Images of bytes, `[time, height, width, channels]`, as a looping animated PNG."""
    count, height, width, _ = frames.shape
    delay = max(1, round(1000 / fps))
    body, number = [], 0
    for place, frame in enumerate(frames):
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, delay, 1000, 0, 0)
        body.append(_chunk(b"fcTL", control))
        content = _squeezed(frame)
        if place == 0:
            body.append(_chunk(b"IDAT", content))
        else:
            body.append(_chunk(b"fdAT", struct.pack(">I", number + 1) + content))
        number += 1 if place == 0 else 2
    return _file(frames[0], _chunk(b"acTL", struct.pack(">II", count, 0)), b"".join(body))


def size_of(content: bytes) -> tuple[int, int, int]:
    """Height, width and channels of a PNG."""
    width, height, _, color = struct.unpack(">IIBB", content[16:26])
    channels = {color: channels for channels, color in COLOR_TYPES.items()}
    return height, width, channels.get(color, 3)


def bytes_of(array: Any) -> np.ndarray:
    """An image's values as bytes: floats between 0 and 1 are scaled to 255, and clipped."""
    found = np.asarray(array)
    if found.dtype == np.uint8:
        return found
    if found.dtype.kind not in "biuf" and found.dtype.name != "bfloat16":
        raise DTypeError(f"image: expected numbers, got {found.dtype}")
    scale = 1 if found.dtype.kind in "iu" else 255
    return np.clip(found.astype(np.float32) * scale, 0, 255).astype(np.uint8)


def arranged(array: np.ndarray, format: str) -> np.ndarray:
    """An image of dimensions named by `format` as `[height, width, channels]`; `N` makes a grid.

    Raises:
        ShapeError: the dimensions differ, or the image is empty.
    """
    names = format.upper()
    known = sorted(names) in (sorted("HW"), sorted("CHW"), sorted("NCHW"))
    if not known or len(names) != array.ndim:
        raise ShapeError(
            f"image: expected a dimension for each letter of dataformats={format!r} (H, W, C, N), "
            f"got shape {array.shape}"
        )
    found = array.transpose([names.index(name) for name in "NHWC" if name in names])
    if "C" not in names:
        found = found[..., None]
    found = grid(found) if "N" in names else found
    if found.shape[2] not in COLOR_TYPES or not found.size:
        raise ShapeError(f"image: expected 1 to 4 channels and some pixels, got {array.shape}")
    return found


def grid(images: np.ndarray, columns: int = GRID_COLUMNS) -> np.ndarray:
    """Images `[number, height, width, channels]` in a grid, row by row, the rest black."""
    count, height, width, channels = images.shape
    columns = min(count, columns) or 1
    rows = -(-count // columns)
    padded = np.zeros((rows * columns, height, width, channels), images.dtype)
    padded[:count] = images
    tiles = padded.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    return tiles.reshape(rows * height, columns * width, channels)


def _file(array: np.ndarray, before: bytes, body: bytes) -> bytes:
    height, width, channels = array.shape
    head = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", head) + before + body + _chunk(b"IEND", b"")


def _squeezed(array: np.ndarray) -> bytes:
    """Rows of an image, each with its filter byte, compressed."""
    height = len(array)
    rows = np.zeros((height, 1 + array[0].size), np.uint8)
    rows[:, 1:] = array.reshape(height, -1)
    return zlib.compress(rows.data, LEVEL)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
