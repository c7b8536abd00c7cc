"""Padding layers for the last 1, 2 or 3 dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.nn.functional.layout import sizes_of
from weft.nn.functional.padding import pad
from weft.nn.layer.base import Layer

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Layer):
    """Padding of the last dimensions.

    Args:
        padding: one size for all sides, or (low, high) of the last dimension, then of the one
            before it, and so on; negative sizes crop.
    """

    spatial: ClassVar[int]
    mode: ClassVar[str]
    _shown = "padding"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = sizes_of(type(self).__name__, padding, 2 * self.spatial)

    def forward(self, input: Any) -> Any:
        """The padded input."""
        return pad(input, self.padding, self.mode)


class _ConstantPad(_Pad):
    """Padding with a constant.

    Args:
        value: the constant.
    """

    mode = "constant"
    _shown = "padding=, value="

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The padded input."""
        return pad(input, self.padding, self.mode, self.value)


class _ZeroPad(_ConstantPad):
    _shown = "padding"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a constant."""

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last 2 dimensions with a constant."""

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last 3 dimensions with a constant."""

    spatial = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros."""

    spatial = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last 2 dimensions with zeros."""

    spatial = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last 3 dimensions with zeros."""

    spatial = 3


class ReflectionPad1d(_Pad):
    """Pads the last dimension by reflection."""

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last 2 dimensions by reflection."""

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last 3 dimensions by reflection."""

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension by repeating the edge."""

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last 2 dimensions by repeating the edge."""

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last 3 dimensions by repeating the edge."""

    spatial = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """Pads the last dimension circularly."""

    spatial = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """Pads the last 2 dimensions circularly."""

    spatial = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """Pads the last 3 dimensions circularly."""

    spatial = 3
    mode = "circular"
