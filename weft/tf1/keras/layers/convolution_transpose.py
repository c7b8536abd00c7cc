"""`Conv2DTranspose` and `Conv3DTranspose`."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.layers.convolution import Convolution

__all__ = ["Conv2DTranspose", "Conv3DTranspose"]


class ConvolutionTranspose(Convolution):
    """Base class; weights are (window..., filters, channels).

    Args:
        output_padding: added to the output sizes, which strides leave ambiguous.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        output_padding: Any = None, data_format: str | None = None, dilation_rate: Any = 1,
        activation: Any = None, use_bias: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
            use_bias, **options,
        )  # fmt: skip
        self.output_padding = None
        if output_padding is not None:
            single = isinstance(output_padding, int)
            many = (output_padding,) * self.rank if single else tuple(output_padding)
            if any(p >= s for p, s in zip(many, self.strides, strict=True)):
                raise fail(
                    ArgumentError,
                    f"{self.name}: expected output_padding below the strides {self.strides}, got "
                    f"{output_padding}",
                )
            self.output_padding = many
        if any(d != 1 for d in self.dilation_rate):
            raise fail(ArgumentError, f"{self.name}: dilation_rate is not supported")

    def _kernel_ends(self, channels: int) -> tuple[Any, ...]:
        return self.filters, channels

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        first = 2 if self.data_format == "channels_first" else 1
        known = inputs.shape.as_list()
        now: Any = tf.shape(inputs) if None in known else known
        places = range(first, first + self.rank)
        sizes = [self._size(i, known[p] or now[p]) for i, p in enumerate(places)]
        dims = [known[0] or now[0], *sizes]
        dims.insert(1 if first == 2 else len(dims), self.filters)
        operation: Any = tf.nn.conv2d_transpose if self.rank == 2 else tf.nn.conv3d_transpose
        y = operation(
            inputs, self.kernel, dims, self.strides, self.padding.upper(), data_format=self.form
        )
        y.set_shape([known[0], *[d if isinstance(d, int) else None for d in dims[1:]]])
        return self.finished(y)

    def _size(self, i: int, size: Any) -> Any:
        """The output's size along an axis."""
        window, stride = self.kernel_size[i], self.strides[i]
        if self.output_padding is None:
            return size * stride + (max(window - stride, 0) if self.padding == "valid" else 0)
        inside = window // 2 if self.padding == "same" else 0
        return (size - 1) * stride + window - 2 * inside + self.output_padding[i]


class Conv2DTranspose(ConvolutionTranspose):
    """The transpose of `Conv2D`: images become larger by the strides."""

    rank = 2


class Conv3DTranspose(ConvolutionTranspose):
    """The transpose of `Conv3D`: volumes become larger by the strides."""

    rank = 3
