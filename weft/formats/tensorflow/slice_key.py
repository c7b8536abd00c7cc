"""Keys of the pieces of partitioned variables: bytes in an order-preserving encoding.

Source: `OrderedCode` in TensorFlow (`core/lib/strings/ordered_code.h`).
"""

from __future__ import annotations

from typing import Final

from weft.formats.tensorflow.message import Slice

_MOST: Final = 10  # bytes of a number with its header


def slice_key(name: str, piece: Slice) -> bytes:
    """The key of a piece."""
    parts = [_unsigned(0), _text(name), _unsigned(len(piece))]
    for start, length in piece:
        parts += [_signed(start), _signed(length)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    return text.encode().replace(b"\0", b"\0\xff") + b"\0\1"  # UTF-8 has no byte 255


def _unsigned(value: int) -> bytes:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(raw)]) + raw


def _signed(value: int) -> bytes:
    """As many leading ones (zeros for a negative number) as there are bytes, then its bits."""
    bits = (~value if value < 0 else value).bit_length()
    size = next(n for n in range(1, _MOST + 1) if bits < 7 * n)
    header = ((1 << size) - 1) << 7 * size
    return ((value ^ header) & (1 << 8 * size) - 1).to_bytes(size, "big")
