"""Padding layers for the last 1, 2 or 3 dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.nn.functional import plain as F
from weft.nn.functional.layout import sizes_of
from weft.nn.module.module import Module


class _Pad(Module):
    spatial: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = sizes_of(type(self).__name__, padding, 2 * self.spatial)

    def forward(self, input: Any) -> Any:
        """The padded input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The sizes."""
        return str(self.padding)


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The padded input."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The sizes and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)

    def extra_repr(self) -> str:
        """The sizes."""
        return str(self.padding)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a constant.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last 2 dimensions with a constant.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last 3 dimensions with a constant.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last 2 dimensions with zeros.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last 3 dimensions with zeros.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 3


class ReflectionPad1d(_Pad):
    """Pads the last dimension by reflection.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last 2 dimensions by reflection.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last 3 dimensions by reflection.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension by repeating the edge.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last 2 dimensions by repeating the edge.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last 3 dimensions by repeating the edge.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """Pads the last dimension circularly.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """Pads the last 2 dimensions circularly.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """Pads the last 3 dimensions circularly.

    Takes one size, or those of `functional.pad`.
    """

    spatial = 3
    mode = "circular"
