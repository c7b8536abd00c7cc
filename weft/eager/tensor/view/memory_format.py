"""Memory formats and layouts: PyTorch's names, accepted as hints.

Weft chooses layouts itself when it compiles: channels-first networks run channels last inside if
that is faster. So asking for a format changes nothing.
"""

from __future__ import annotations

import enum
from typing import Any

from weft.eager.tensor.device import number_of
from weft.errors import DTypeError


class memory_format(enum.Enum):
    """The order of the axes in memory."""

    contiguous_format = "row-major"
    preserve_format = "as the input"
    channels_last = "NHWC"
    channels_last_3d = "NDHWC"

    def __repr__(self) -> str:
        return f"weft.{self.name}"

    __str__ = __repr__


class layout(enum.Enum):
    """Whether all elements are stored."""

    strided = "all elements"
    sparse_coo = "entries by coordinates"
    sparse_csr = "entries by rows"

    def __repr__(self) -> str:
        return f"weft.{self.name}"

    __str__ = __repr__


contiguous_format = memory_format.contiguous_format
preserve_format = memory_format.preserve_format
channels_last = memory_format.channels_last
channels_last_3d = memory_format.channels_last_3d
strided = layout.strided
sparse_coo = layout.sparse_coo
sparse_csr = layout.sparse_csr

ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}
"""The axes from the outermost to the innermost in memory."""


def check_format(wanted: Any) -> None:
    """Raise unless it is a memory format or `None`.

    Raises:
        DTypeError: something else.
    """
    if wanted is not None and not isinstance(wanted, memory_format):
        raise DTypeError.here(f"memory_format: expected one of weft's, got {wanted!r}")


def check_arrangement(kind: Any, wanted: Any) -> None:
    """Raise unless these are a strided layout and a memory format, or `None`.

    Raises:
        DTypeError: something else.
    """
    if kind is not None and kind is not strided:
        raise DTypeError.here(f"layout: expected weft.strided, got {kind!r}")
    check_format(wanted)


def check_place(device: Any, kind: Any, wanted: Any = None) -> None:
    """Check where and how a new tensor is to be stored: a CPU and strided, or `None`.

    Raises:
        ConfigError: another device.
        DTypeError: another layout, or no memory format.
    """
    if device is not None:
        number_of(device)
    check_arrangement(kind, wanted)
