"""Resizing, pixel shuffles, channel shuffles, and windows as columns."""

from __future__ import annotations

from typing import Any

from weft.nn.functional import vision as F
from weft.nn.layer.base import Layer, layer

__all__ = [
    "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


@layer(F.interpolate)
class Upsample(Layer):
    """Resizes images (N, C, spatial...); see `functional.interpolate`."""

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        factor = self.scale_factor
        if isinstance(factor, list | tuple):
            self.scale_factor = tuple(map(float, factor))
        elif factor is not None:
            self.scale_factor = float(factor)

    def extra_repr(self) -> str:
        """The size and the mode."""
        if self.scale_factor is None:
            return f"size={self.size!r}, mode={self.mode!r}"
        return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of (N, C, H, W) by nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of (N, C, H, W), bilinear with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


@layer(F.pixel_shuffle)
class PixelShuffle(Layer):
    """(..., C r r, H, W) as (..., C, H r, W r)."""

    upscale_factor: int


@layer(F.pixel_unshuffle)
class PixelUnshuffle(Layer):
    """(..., C, H r, W r) as (..., C r r, H, W)."""

    downscale_factor: int


@layer(F.channel_shuffle)
class ChannelShuffle(Layer):
    """Interleaves the channels of the groups."""

    groups: int


@layer(F.unfold)
class Unfold(Layer):
    """Windows of (N, C, H, W) as columns: (N, C kh kw, windows)."""

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@layer(F.fold)
class Fold(Layer):
    """Sums columns (N, C kh kw, windows) into an image; overlapping windows add up."""

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1
