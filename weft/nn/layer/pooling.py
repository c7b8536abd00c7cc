"""Pooling layers of 1, 2 and 3 spatial dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.errors import ArgumentError
from weft.ir.node import at_user_line
from weft.nn.functional import pooling as F
from weft.nn.functional.fractional import fractional_max_pool
from weft.nn.functional.layout import sizes_of
from weft.nn.module.module import Module


class _MaxPool(Module):
    spatial: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with smaller spatial sizes; N is optional."""
        return F.max_pool(
            self.spatial, input, self.kernel_size, self.stride, self.padding, self.dilation,
            self.ceil_mode, self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The window options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Max pooling of (N, C, L)."""

    spatial = 1


class MaxPool2d(_MaxPool):
    """Max pooling of (N, C, H, W)."""

    spatial = 2


class MaxPool3d(_MaxPool):
    """Max pooling of (N, C, D, H, W)."""

    spatial = 3


class _AvgPool(Module):
    spatial: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with smaller spatial sizes; N is optional."""
        return F.avg_pool(
            self.spatial, input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The window options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Average pooling of (N, C, L)."""

    spatial = 1

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.kernel_size = sizes_of("AvgPool1d: kernel_size", kernel_size, 1)
        self.stride = sizes_of("AvgPool1d: stride", self.stride, 1)
        self.padding = sizes_of("AvgPool1d: padding", padding, 1)


class AvgPool2d(_AvgPool):
    """Average pooling of (N, C, H, W)."""

    spatial = 2


class AvgPool3d(_AvgPool):
    """Average pooling of (N, C, D, H, W)."""

    spatial = 3


class _LPPool(Module):
    spatial: ClassVar[int]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with smaller spatial sizes; N is optional."""
        return F.lp_pool(
            self.spatial, input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        """The norm and the window options."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, L)."""

    spatial = 1


class LPPool2d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, H, W)."""

    spatial = 2


class LPPool3d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, D, H, W)."""

    spatial = 3


class _AdaptiveAvgPool(Module):
    spatial: ClassVar[int]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with the given spatial sizes; N is optional."""
        return F.adaptive_avg_pool(self.spatial, input, self.output_size)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average pooling of (N, C, L) to (N, C, output_size)."""

    spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average pooling of (N, C, H, W) to (N, C, *output_size)."""

    spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average pooling of (N, C, D, H, W) to (N, C, *output_size)."""

    spatial = 3


class _AdaptiveMaxPool(Module):
    spatial: ClassVar[int]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with the given spatial sizes; N is optional."""
        return F.adaptive_max_pool(self.spatial, input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Max pooling of (N, C, L) to (N, C, output_size)."""

    spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Max pooling of (N, C, H, W) to (N, C, *output_size)."""

    spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Max pooling of (N, C, D, H, W) to (N, C, *output_size)."""

    spatial = 3


class _MaxUnpool(Module):
    spatial: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        name = type(self).__name__
        given = kernel_size if stride is None else stride
        self.kernel_size = sizes_of(f"{name}: kernel_size", kernel_size, self.spatial)
        self.stride = sizes_of(f"{name}: stride", given, self.spatial)
        self.padding = sizes_of(f"{name}: padding", padding, self.spatial)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Maxima and their indices to an image that is 0 elsewhere."""
        return F.max_unpool(
            self.spatial, input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        """The window options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d`, given its indices; other elements are 0."""

    spatial = 1


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d`, given its indices; other elements are 0."""

    spatial = 2


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d`, given its indices; other elements are 0."""

    spatial = 3


class _FractionalMaxPool(Module):
    spatial: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(
                f"{type(self).__name__}: expected output_size or output_ratio{at_user_line()}"
            )
        ratios = output_ratio if isinstance(output_ratio, list | tuple) else (output_ratio,)
        if output_ratio is not None and not all(0 < r < 1 for r in ratios):
            raise ArgumentError(
                f"{type(self).__name__}: expected output_ratio between 0 and 1, got {output_ratio}"
                f"{at_user_line()}"
            )
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Any) -> Any:
        """(N, C, spatial...) with the given sizes; N is optional."""
        return fractional_max_pool(
            self.spatial, input, self.kernel_size, self.output_size, self.output_ratio,
            self.return_indices, self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """Max pooling of (N, C, H, W) with random windows (Graham, 2014)."""

    spatial = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Max pooling of (N, C, D, H, W) with random windows (Graham, 2014)."""

    spatial = 3
