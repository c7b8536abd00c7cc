"""Pooling layers of 1, 2 and 3 spatial dimensions."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.nn.functional import pooling as F
from weft.nn.functional.fractional import fractional_max_pool2d, fractional_max_pool3d
from weft.nn.functional.layout import sizes_of
from weft.nn.layer.base import Layer, buffer, layer, options

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _Pool(Layer):
    kernel_size: Any
    stride: Any

    def __post_init__(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size


@options
class _MaxPool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _shown = "kernel_size=, stride=, padding=, dilation=, ceil_mode="


@layer(F.max_pool1d)
class MaxPool1d(_MaxPool):
    """Max pooling of (N, C, L)."""


@layer(F.max_pool2d)
class MaxPool2d(_MaxPool):
    """Max pooling of (N, C, H, W)."""


@layer(F.max_pool3d)
class MaxPool3d(_MaxPool):
    """Max pooling of (N, C, D, H, W)."""


@options
class _AvgPool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    _shown = "kernel_size=, stride=, padding="


@layer(F.avg_pool1d)
class AvgPool1d(_AvgPool):
    """Average pooling of (N, C, L)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, sizes_of(f"AvgPool1d: {name}", getattr(self, name), 1))


@layer(F.avg_pool2d)
class AvgPool2d(_AvgPool):
    """Average pooling of (N, C, H, W)."""

    divisor_override: int | None = None


@layer(F.avg_pool3d)
class AvgPool3d(_AvgPool):
    """Average pooling of (N, C, D, H, W)."""

    divisor_override: int | None = None


@options
class _LPPool(Layer):
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@layer(F.lp_pool1d)
class LPPool1d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, L)."""


@layer(F.lp_pool2d)
class LPPool2d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, H, W)."""


@layer(F.lp_pool3d)
class LPPool3d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, D, H, W)."""


@options
class _AdaptiveAvgPool(Layer):
    output_size: Any


@layer(F.adaptive_avg_pool1d)
class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average pooling of (N, C, L) to (N, C, output_size)."""


@layer(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average pooling of (N, C, H, W) to (N, C, *output_size)."""


@layer(F.adaptive_avg_pool3d)
class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average pooling of (N, C, D, H, W) to (N, C, *output_size)."""


@options
class _AdaptiveMaxPool(Layer):
    output_size: Any
    return_indices: bool = False
    _shown = "output_size="


@layer(F.adaptive_max_pool1d)
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Max pooling of (N, C, L) to (N, C, output_size)."""


@layer(F.adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Max pooling of (N, C, H, W) to (N, C, *output_size)."""


@layer(F.adaptive_max_pool3d)
class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Max pooling of (N, C, D, H, W) to (N, C, *output_size)."""


@options
class _MaxUnpool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    _shown = "kernel_size=, stride=, padding="

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("kernel_size", "stride", "padding"):
            size = sizes_of(f"{type(self).__name__}: {name}", getattr(self, name), self.spatial)
            setattr(self, name, size)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Maxima and their indices to an image that is 0 elsewhere."""
        return F.unpool(
            self.spatial, input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


@layer(F.max_unpool1d)
class MaxUnpool1d(_MaxUnpool, spatial=1):
    """The inverse of `MaxPool1d`, given its indices; other elements are 0."""


@layer(F.max_unpool2d)
class MaxUnpool2d(_MaxUnpool, spatial=2):
    """The inverse of `MaxPool2d`, given its indices; other elements are 0."""


@layer(F.max_unpool3d)
class MaxUnpool3d(_MaxUnpool, spatial=3):
    """The inverse of `MaxPool3d`, given its indices; other elements are 0."""


@options
class _FractionalMaxPool(Layer):
    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Any = buffer(default=None)
    _shown = ""

    def __post_init__(self) -> None:
        ratio = self.output_ratio
        if (self.output_size is None) == (ratio is None):
            raise ArgumentError.here(f"{type(self).__name__}: expected output_size or output_ratio")
        ratios = ratio if isinstance(ratio, list | tuple) else (ratio,)
        if ratio is not None and not all(0 < r < 1 for r in ratios):
            raise ArgumentError.here(
                f"{type(self).__name__}: expected output_ratio between 0 and 1, got {ratio}"
            )


@layer(fractional_max_pool2d)
class FractionalMaxPool2d(_FractionalMaxPool):
    """Max pooling of (N, C, H, W) with random windows (Graham, 2014)."""


@layer(fractional_max_pool3d)
class FractionalMaxPool3d(_FractionalMaxPool):
    """Max pooling of (N, C, D, H, W) with random windows (Graham, 2014)."""
