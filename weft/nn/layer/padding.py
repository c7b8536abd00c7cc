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

    mode: ClassVar[str] = "constant"
    _shown = "padding"

    def __init_subclass__(cls, *, mode: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.mode = mode or cls.mode

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


class ConstantPad1d(_ConstantPad, spatial=1):
    """Pads the last dimension with a constant."""


class ConstantPad2d(_ConstantPad, spatial=2):
    """Pads the last 2 dimensions with a constant."""


class ConstantPad3d(_ConstantPad, spatial=3):
    """Pads the last 3 dimensions with a constant."""


class ZeroPad1d(_ZeroPad, spatial=1):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_ZeroPad, spatial=2):
    """Pads the last 2 dimensions with zeros."""


class ZeroPad3d(_ZeroPad, spatial=3):
    """Pads the last 3 dimensions with zeros."""


class ReflectionPad1d(_Pad, spatial=1, mode="reflect"):
    """Pads the last dimension by reflection."""


class ReflectionPad2d(_Pad, spatial=2, mode="reflect"):
    """Pads the last 2 dimensions by reflection."""


class ReflectionPad3d(_Pad, spatial=3, mode="reflect"):
    """Pads the last 3 dimensions by reflection."""


class ReplicationPad1d(_Pad, spatial=1, mode="replicate"):
    """Pads the last dimension by repeating the edge."""


class ReplicationPad2d(_Pad, spatial=2, mode="replicate"):
    """Pads the last 2 dimensions by repeating the edge."""


class ReplicationPad3d(_Pad, spatial=3, mode="replicate"):
    """Pads the last 3 dimensions by repeating the edge."""


class CircularPad1d(_Pad, spatial=1, mode="circular"):
    """Pads the last dimension circularly."""


class CircularPad2d(_Pad, spatial=2, mode="circular"):
    """Pads the last 2 dimensions circularly."""


class CircularPad3d(_Pad, spatial=3, mode="circular"):
    """Pads the last 3 dimensions circularly."""
