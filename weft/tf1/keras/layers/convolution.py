"""`Conv1D`, `Conv2D`, `Conv3D`, and the depthwise and separable convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import activations
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.settings import data_format_of
from weft.tf1.keras.layers.weighted import WeightedLayer

__all__ = ["Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"]

_OPERATIONS: Final[dict[int, Callable[..., Any]]] = {
    1: tf.nn.conv1d, 2: tf.nn.conv2d, 3: tf.nn.conv3d,
}  # fmt: skip
FORMATS: Final = {
    (1, "channels_last"): "NWC", (1, "channels_first"): "NCW", (2, "channels_last"): "NHWC",
    (2, "channels_first"): "NCHW", (3, "channels_last"): "NDHWC", (3, "channels_first"): "NCDHW",
}  # fmt: skip
AXES: Final = {1: "sequences", 2: "images", 3: "volumes"}


def tuple_of(value: Any, rank: int, what: str) -> tuple[int, ...]:
    """`rank` numbers, from one or as many.

    Raises:
        ArgumentError: their number is wrong, or one is below 1.
    """
    numbers = (int(value),) * rank if isinstance(value, int) else tuple(int(v) for v in value)
    if len(numbers) != rank or any(v < 1 for v in numbers):
        raise fail(ArgumentError, f"{what}: expected {rank} numbers from 1 on, got {value}")
    return numbers


class Convolution(WeightedLayer):
    """Base class: the arguments of all convolutions.

    Args:
        filters: the number of output channels.
        kernel_size: the window's sizes.
        strides: distances between windows.
        padding: `"valid"`, `"same"`, or `"causal"` for sequences; or pairs, for each axis what is
            added before and after it.
        dilation_rate: distances between the elements of a window.
    """

    rank: int
    weight_options = WeightedLayer.of("kernel", "bias")

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(options)
        rank, name = self.rank, type(self).__name__
        self.filters = None if filters is None else int(filters)
        self.kernel_size = tuple_of(kernel_size, rank, f"{name} kernel_size")
        self.strides = tuple_of(strides, rank, f"{name} strides")
        self.dilation_rate = tuple_of(dilation_rate, rank, f"{name} dilation_rate")
        self.padding = _padding(padding, rank, name)
        self.data_format = data_format_of(data_format)
        self.activation, self.use_bias = activations.get(activation), use_bias
        self.input_spec = InputSpec(ndim=rank + 2)

    @property
    def channel_axis(self) -> int:
        """The channel axis."""
        return 1 if self.data_format == "channels_first" else -1

    @property
    def form(self) -> str:
        """The data format in TensorFlow's letters."""
        return FORMATS[self.rank, self.data_format]

    def channels(self, input_shape: Any) -> int:
        """The number of input channels.

        Raises:
            ShapeError: it is not known.
        """
        size = input_shape.as_list()[self.channel_axis]
        if size is None:
            raise fail(ShapeError, f"{self.name}: expected known channels, got {input_shape}")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self.channel_axis: size})
        return size

    def finished(self, y: Any) -> Any:
        """Outputs with bias and activation."""
        y = tf.nn.bias_add(y, self.bias, self.form) if self.use_bias else y
        return self.activation(y)

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        ends = self._kernel_ends(self.channels(input_shape))
        self.kernel = self.weight("kernel", (*self.kernel_size, *ends))
        self.bias = self.weight("bias", (self.filters,)) if self.use_bias else None
        self.built = True

    def _kernel_ends(self, channels: int) -> tuple[Any, ...]:
        return channels, self.filters

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        inputs, padding = self._padded(inputs)
        operation = _OPERATIONS[self.rank]
        y = operation(
            inputs, self.kernel, self.strides, padding, data_format=self.form,
            dilations=self.dilation_rate,
        )  # fmt: skip
        return self.finished(y)

    def _padded(self, x: Any) -> tuple[Any, str]:
        """The inputs, and the padding that is left for the operation."""
        if self.padding == "causal":
            before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
            steps = 1 if self.data_format == "channels_last" else 2
            return tf.pad(x, [(before, 0) if i == steps else (0, 0) for i in range(3)]), "VALID"
        if isinstance(self.padding, str):
            return x, self.padding.upper()
        return tf.pad(x, self.padding), "VALID"


def _padding(padding: Any, rank: int, name: str) -> Any:
    if isinstance(padding, list | tuple) and np.shape(padding) == (rank + 2, 2):
        return [[int(n) for n in pair] for pair in padding]
    known = ("valid", "same", *(("causal",) if rank == 1 else ()))
    chosen = str(padding).lower()
    if chosen not in known:
        raise fail(ArgumentError, f"{name}: expected padding of {known}, got {padding!r}")
    return chosen


class Conv1D(Convolution):
    """A convolution of sequences (batch, steps, channels)."""

    rank = 1


class Conv2D(Convolution):
    """A convolution of images (batch, rows, columns, channels)."""

    rank = 2


class Conv3D(Convolution):
    """A convolution of volumes (batch, three axes, channels)."""

    rank = 3


class DepthwiseConv2D(Convolution):
    """A convolution of each channel with `depth_multiplier` kernels of its own.

    Args:
        depth_multiplier: the number of kernels of each channel.
    """

    rank = 2
    weight_options = WeightedLayer.of("depthwise", "bias")
    _unconfigured = ("filters",)

    def __init__(
        self, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        depth_multiplier: int = 1, data_format: str | None = None, activation: Any = None,
        use_bias: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        dilation = options.pop("dilation_rate", 1)
        super().__init__(
            None, kernel_size, strides, padding, data_format, dilation, activation, use_bias,
            **options,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        channels = self.channels(input_shape)
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.depthwise_kernel = self.weight("depthwise_kernel", shape, "depthwise")
        count = channels * self.depth_multiplier
        self.bias = self.weight("bias", (count,)) if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        inputs, padding = self._padded(inputs)
        return self.finished(
            tf.nn.depthwise_conv2d(
                inputs, self.depthwise_kernel, self.strides, padding,
                data_format=self.form, dilations=self.dilation_rate,
            )
        )  # fmt: skip


class _Separable(Convolution):
    """A depthwise convolution followed by a pointwise one.

    Args:
        depth_multiplier: the number of depthwise kernels of each channel.
    """

    weight_options = WeightedLayer.of("depthwise", "pointwise", "bias")

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
            use_bias, **options,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Any) -> None:
        """Create the two kernels, and the bias."""
        channels, many = self.channels(input_shape), self.depth_multiplier
        deep = (*self.kernel_size, channels, many)
        wide = (*[1] * self.rank, channels * many, self.filters)
        self.depthwise_kernel = self.weight("depthwise_kernel", deep, "depthwise")
        self.pointwise_kernel = self.weight("pointwise_kernel", wide, "pointwise")
        self.bias = self.weight("bias", (self.filters,)) if self.use_bias else None
        self.built = True


class SeparableConv2D(_Separable):
    """A depthwise convolution of images followed by a pointwise one."""

    rank = 2

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        inputs, padding = self._padded(inputs)
        return self.finished(
            tf.nn.separable_conv2d(
                inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides,
                padding, data_format=self.form, dilations=self.dilation_rate,
            )
        )  # fmt: skip


class SeparableConv1D(_Separable):
    """A depthwise convolution of sequences followed by a pointwise one."""

    rank = 1

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        x, padding = self._padded(inputs)
        row = 1 if self.data_format == "channels_last" else 2  # images of height 1
        image = tf.expand_dims(x, row)
        deep, wide = (tf.expand_dims(k, 0) for k in (self.depthwise_kernel, self.pointwise_kernel))
        y = tf.nn.separable_conv2d(
            image, deep, wide, self.strides * 2, padding,
            data_format=FORMATS[2, self.data_format], dilations=(1, *self.dilation_rate),
        )  # fmt: skip
        return self.finished(tf.squeeze(y, [row]))
