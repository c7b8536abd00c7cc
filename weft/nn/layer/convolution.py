"""Convolution layers of 1, 2 and 3 spatial dimensions, and their transposes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from weft.eager.functions.creation.constructor import empty
from weft.errors import ArgumentError, ShapeError
from weft.nn import init
from weft.nn.functional.convolution import convolve, transpose
from weft.nn.functional.layout import sizes_of
from weft.nn.layer.base import Layer
from weft.nn.parameter import Parameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip

_AROUND = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Layer):
    """Weights, options and their checks, which all convolutions share.

    Args:
        in_channels: the input's channels C.
        out_channels: the output's channels.
        kernel_size: the sizes of the window; one number stands for all.
        stride: the steps of the window; one number stands for all.
        dilation: the steps within the window; one number stands for all.
        groups: the number of groups that the channels are divided into; outputs of a group are
            computed from its inputs only.
        bias: whether there is a bias.
    """

    transposed: ClassVar[bool] = False
    _shown = (
        "in_channels, out_channels, kernel_size=, stride=, padding=0, dilation=1, "
        "output_padding=0, groups=1, bias=True, padding_mode=zeros"
    )

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, output_padding: Any, groups: int, bias: bool, padding_mode: str,
        device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        name, count = type(self).__name__, self.spatial
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.groups = groups
        self.padding_mode = padding_mode
        self.kernel_size = sizes_of(f"{name}: kernel_size", kernel_size, count)
        self.stride = sizes_of(f"{name}: stride", stride, count)
        named = isinstance(padding, str)
        self.padding = padding if named else sizes_of(f"{name}: padding", padding, count)
        self.dilation = sizes_of(f"{name}: dilation", dilation, count)
        self.output_padding = sizes_of(f"{name}: output_padding", output_padding, count)
        self._check(name)
        shape, options = (*self._channels(), *self.kernel_size), {"dtype": dtype, "device": device}
        self.weight = Parameter(empty(shape, **options))
        self.bias = Parameter(empty(out_channels, **options)) if bias else None
        self.reset_parameters()

    def _channels(self) -> tuple[int, int]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return first, second // self.groups

    def _check(self, name: str) -> None:
        groups = self.groups
        if groups < 1 or self.in_channels % groups or self.out_channels % groups:
            raise ShapeError.here(
                f"{name}: expected groups that divide in_channels {self.in_channels} and "
                f"out_channels {self.out_channels}, got {groups}"
            )
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid") or self.transposed:
                raise ArgumentError.here(
                    f"{name}: expected padding 'same', 'valid' or numbers, got {self.padding!r}"
                )
            if self.padding == "same" and max(self.stride) > 1:
                raise ArgumentError.here(
                    f"{name}: padding 'same' goes with stride 1, got {self.stride}"
                )
        if self.padding_mode not in _AROUND or (self.transposed and self.padding_mode != "zeros"):
            raise ArgumentError.here(
                f"{name}: expected padding_mode {', '.join(_AROUND)} (zeros for transposes), got "
                f"{self.padding_mode!r}"
            )

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(inputs) if inputs else 0
            init.uniform_(self.bias, -bound, bound)


class _Conv(_Convolution):
    """Cross-correlation.

    Args:
        padding: how much is added at both ends of each spatial dimension; one number stands for
            all. `"same"` keeps the sizes (with stride 1), `"valid"` adds nothing.
        padding_mode: `zeros`, `reflect`, `replicate` or `circular`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """(N, in_channels, spatial...) to (N, out_channels, spatial...); N is optional."""
        return convolve(
            self.spatial, input, self.weight, self.bias, self.stride, self.padding, self.dilation,
            self.groups, self.padding_mode,
        )  # fmt: skip


class Conv1d(_Conv, spatial=1):
    """Cross-correlation of (N, C, L) with learned weights (out, in / groups, k)."""


class Conv2d(_Conv, spatial=2):
    """Cross-correlation of (N, C, H, W) with learned weights (out, in / groups, kh, kw)."""


class Conv3d(_Conv, spatial=3):
    """Cross-correlation of (N, C, D, H, W) with learned weights (out, in / groups, kd, kh, kw)."""


class _ConvTranspose(_Convolution):
    """The transpose of a cross-correlation.

    Args:
        padding: how much is cut off at both ends of each spatial dimension; one number stands for
            all.
        output_padding: how much larger the output is at the end of each spatial dimension.
        padding_mode: only `zeros`.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """(N, in_channels, spatial...) to (N, out_channels, spatial...); N is optional.

        Args:
            output_size: the output's spatial sizes, instead of `output_padding`.
        """
        extra = self.output_padding if output_size is None else self._missing(input, output_size)
        return transpose(
            self.spatial, input, self.weight, self.bias, self.stride, self.padding, extra,
            self.groups, self.dilation,
        )  # fmt: skip

    def _missing(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """The output padding that gives the requested size."""
        wanted = tuple(output_size)[-self.spatial :]
        pads: Any = self.padding
        axes = zip(
            wanted, input.shape[-self.spatial :], self.stride, pads, self.dilation,
            self.kernel_size, strict=True,
        )  # fmt: skip
        extra: list[int] = []
        for want, size, s, p, d, k in axes:
            least = (size - 1) * s - 2 * p + d * (k - 1) + 1
            if not least <= want < least + s:
                raise ShapeError.here(
                    f"{type(self).__name__}: expected an output_size from {least} to "
                    f"{least + s - 1}, got {want}"
                )
            extra.append(want - least)
        return tuple(extra)


class ConvTranspose1d(_ConvTranspose, spatial=1):
    """The transpose of `Conv1d`: weights (in, out / groups, k)."""


class ConvTranspose2d(_ConvTranspose, spatial=2):
    """The transpose of `Conv2d`: weights (in, out / groups, kh, kw)."""


class ConvTranspose3d(_ConvTranspose, spatial=3):
    """The transpose of `Conv3d`: weights (in, out / groups, kd, kh, kw)."""
