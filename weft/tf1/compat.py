"""`tf.compat`: text and bytes of Python 2 and 3, and `tf.compat.v1`, which is `weft.tf1` itself.

>>> import weft.tf1 as tf
>>> tf.compat.as_str(b"word"), tf.compat.as_bytes("word"), tf.compat.as_str_any(3)
('word', b'word', '3')
>>> tf.compat.v1 is tf
True
"""

from __future__ import annotations

import importlib
import numbers
import os
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, WeftError
from weft.tf1.framework.graph import fail

integral_types: Final = (numbers.Integral, np.integer)
real_types: Final = (numbers.Real, np.integer, np.floating)
complex_types: Final = (numbers.Complex, np.number)
bytes_or_text_types: Final = (bytes, str)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are.

    Raises:
        DTypeError: it is neither.
    """
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise _refused("as_bytes", bytes_or_text)


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is.

    Raises:
        DTypeError: it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise _refused("as_text", bytes_or_text)


as_str = as_text


def as_str_any(value: Any) -> str:
    """Bytes as text, anything else by `str`."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A `pathlib` path as text; anything else as it is."""
    return as_str_any(os.fspath(path)) if isinstance(path, os.PathLike) else path


def _refused(name: str, value: Any) -> WeftError:
    return fail(DTypeError, f"{name}: expected bytes or text, got {value!r}")


def __getattr__(name: str) -> Any:
    if name == "v1":
        return importlib.import_module("weft.tf1")
    raise AttributeError(f"weft.tf1.compat has no {name!r}: it is a name of newer versions")


__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "integral_types", "path_to_str", "real_types",
]  # fmt: skip
