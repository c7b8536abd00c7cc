"""Convolutions, in all layouts and paddings of `tf.nn`.

Internally, images are always N, spatial..., C; channels-first arguments are transposed, and the
compiler cancels adjacent transposes.
"""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.errors import DTypeError, GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.refusal import shown
from weft.tf1.framework.convert import convert_to_tensor, require_type, shape_operand
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "atrous_conv2d", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "convolution", "depthwise_conv2d", "depthwise_conv2d_native", "separable_conv2d",
]  # fmt: skip

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
_ALIASES = {"NHWC": "last", "NWC": "last", "NDHWC": "last", "NCHW": "first", "NCW": "first",
            "NCDHW": "first"}  # fmt: skip


def channels_first(kind: str, data_format: str | None, spatial: int) -> bool:
    """Whether a data format has the channels first; checks that it is known."""
    allowed = _FORMATS[spatial] + (_FORMATS[2] if spatial == 1 else ())
    chosen = allowed[0] if data_format is None else data_format
    if chosen not in allowed:
        raise fail(
            GraphError, f"{kind}: expected data_format {' or '.join(allowed)}, got {chosen!r}"
        )
    return _ALIASES[chosen] == "first"


def spatial_part(kind: str, what: str, values: Any, spatial: int, first: bool) -> tuple[int, ...]:
    """The spatial part of strides, dilations or a window, from any of TensorFlow's forms."""
    if values is None:
        return (1,) * spatial
    items = [int(v) for v in values] if isinstance(values, list | tuple) else [int(values)]
    if len(items) == 1:
        return (items[0],) * spatial
    if len(items) == spatial:
        return tuple(items)
    if len(items) != spatial + 2:
        raise fail(GraphError, f"{kind}: expected {spatial} {what}, got {items}")
    inner = items[2:] if first else items[1:-1]
    outer = (items[0], items[1] if first else items[-1])
    if outer != (1, 1):
        raise fail(GraphError, f"{kind}: expected {what} of 1 for batch and channels, got {items}")
    return tuple(inner)


def padding_of(kind: str, padding: Any, spatial: int, first: bool) -> Any:
    """The spatial part of a padding, given in any of TensorFlow's forms."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise fail(GraphError, f"{kind}: expected padding SAME or VALID, got {padding!r}")
        return padding.lower()
    if not isinstance(padding, list | tuple):
        text = f"{kind}: expected padding SAME, VALID or pairs of numbers, got {shown(padding)}"
        raise fail(DTypeError, text)
    pairs = [(int(low), int(high)) for low, high in padding]
    if len(pairs) == spatial:
        return tuple(pairs)
    if len(pairs) != spatial + 2:
        raise fail(GraphError, f"{kind}: expected {spatial + 2} pairs of padding, got {padding}")
    outer = (pairs[0], pairs[1] if first else pairs[-1])
    if outer != ((0, 0), (0, 0)):
        raise fail(GraphError, f"{kind}: expected no padding of batch and channels, got {padding}")
    return tuple(pairs[2:] if first else pairs[1:-1])


def in_last(x: Value, first: bool) -> Value:
    """Channels moved to the end."""
    rank = x.rank or 4
    return ops.transpose(x, perm=(0, *range(2, rank), 1)) if first else x


def out_of_last(y: Value, first: bool) -> Value:
    """Channels moved back to the front."""
    rank = y.rank or 4
    return ops.transpose(y, perm=(0, rank - 1, *range(1, rank - 1))) if first else y


def _pair(kind: str, x: Any, w: Any, rank: int) -> tuple[Tensor, Tensor]:
    image = convert_to_tensor(x, name="input")
    weights = convert_to_tensor(w, image.dtype.base_dtype, name="filter")
    require_type(kind, "filter", weights, image.dtype)
    for role, tensor in (("input", image), ("filter", weights)):
        if tensor.shape.ndims not in (None, rank):
            raise fail(
                ShapeError, f"{kind}: expected {role} of rank {rank}, got shape {tensor.shape}"
            )
    return image, weights


def _options(
    kind: str, strides: Any, padding: Any, dilations: Any, data_format: str | None, spatial: int
) -> tuple[bool, dict[str, Any]]:
    """Whether channels come first, and the options of an operation of Weft's."""
    first = channels_first(kind, data_format, spatial)
    options = {
        "strides": spatial_part(kind, "strides", strides, spatial, first),
        "padding": padding_of(kind, padding, spatial, first),
        "dilation": spatial_part(kind, "dilations", dilations, spatial, first),
    }
    return first, options


def _convolve(
    kind: str, x: Any, w: Any, spatial: int, strides: Any, padding: Any, data_format: str | None,
    dilations: Any, scope: str,
) -> Tensor:  # fmt: skip
    first, options = _options(kind, strides, padding, dilations, data_format, spatial)
    image, weights = _pair(kind, x, w, spatial + 2)

    def build(v: Value, k: Value) -> Value:
        return out_of_last(
            ops.conv(in_last(v, first), k, **options, groups=_groups(v, k, first)), first
        )

    attrs = {"strides": strides, "padding": padding, "data_format": data_format}
    return emit(kind, [image, weights], build, name=scope, attrs=attrs)


def _groups(x: Value, w: Value, first: bool) -> int:
    """The number of groups implied by the channels of image and weights."""
    channels = None if x.shape is None else x.shape[1 if first else -1]
    inside = None if w.shape is None else w.shape[-2]
    if channels is None or inside is None or channels % inside:
        return 1
    return channels // inside


def conv2d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
    use_cudnn_on_gpu: bool = True, data_format: str | None = "NHWC", dilations: Any = None,
    name: str | None = None, filters: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of images (N, H, W, C) with weights (height, width, C, K).

    Args:
        strides: a number, two, or four with 1 for batch and channels.
        padding: `SAME`, `VALID`, or a pair (before, after) for each of the four axes.
        data_format: `NHWC` or `NCHW`.
        dilations: distances between the kernel's taps, in the forms of `strides`.
    """
    del use_cudnn_on_gpu
    weights = filter if filters is None else filters
    with name_scope(name, "Conv2D", [input, weights]) as scope:
        return _convolve(
            "Conv2D", input, weights, 2, strides, padding or "VALID", data_format, dilations, scope
        )


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """A convolution of images whose taps are `rate` apart."""
    with name_scope(name, "atrous_conv2d", [value, filters]) as scope:
        return _convolve("Conv2D", value, filters, 2, 1, padding, "NHWC", rate, scope)


def conv1d(
    value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None,
    use_cudnn_on_gpu: Any = None, data_format: str | None = None, name: str | None = None,
    input: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of sequences (N, W, C) with weights (width, C, K)."""
    del use_cudnn_on_gpu
    image = value if input is None else input
    with name_scope(name, "conv1d", [image, filters]):
        return _convolve(
            "Squeeze", image, filters, 1, stride, padding, data_format, dilations, "Squeeze"
        )


def conv3d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
    data_format: str | None = "NDHWC", dilations: Any = None, name: str | None = None,
    filters: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of volumes (N, D, H, W, C) with weights (depth, height, width, C, K)."""
    weights = filter if filters is None else filters
    with name_scope(name, "Conv3D", [input, weights]) as scope:
        return _convolve(
            "Conv3D", input, weights, 3, strides, padding, data_format, dilations, scope
        )


def convolution(
    input: Any, filter: Any = None, padding: Any = None, strides: Any = None,
    dilation_rate: Any = None, name: str | None = None, data_format: str | None = None,
    filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution in one, two or three dimensions, by the input's rank."""
    weights = filter if filters is None else filters
    tensor = convert_to_tensor(input)
    spatial = len(tensor.shape) - 2
    kind = {1: "conv1d", 2: "Conv2D", 3: "Conv3D"}[spatial]
    with name_scope(name, "convolution", [tensor, weights]) as scope:
        return _convolve(
            kind, tensor, weights, spatial, strides, padding, data_format,
            dilation_rate if dilations is None else dilations, scope,
        )  # fmt: skip


def _transposed(
    kind: str, value: Any, filter: Any, output_shape: Any, spatial: int, strides: Any, padding: Any,
    data_format: str | None, dilations: Any, scope: str,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution by its input: weights are (spatial..., K out, C in)."""
    first, options = _options(kind, strides, padding, dilations, data_format, spatial)
    image, weights = _pair(kind, value, filter, spatial + 2)
    _, target = shape_operand(output_shape, "output_shape")

    def build(g: Value, w: Value) -> Value:
        dims: Any = target
        if first:
            dims = [target[0], *[target[i] for i in range(2, spatial + 2)], target[1]]
        return out_of_last(ops.conv_grad_input(in_last(g, first), w, shape=dims, **options), first)

    return emit(kind, [image, weights], build, name=scope)


def conv2d_transpose(
    value: Any = None, filter: Any = None, output_shape: Any = None, strides: Any = None,
    padding: Any = "SAME", data_format: str = "NHWC", name: str | None = None, input: Any = None,
    filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose of `conv2d`, to images of `output_shape`; weights (height, width, out, in)."""
    image, weights = value if input is None else input, filter if filters is None else filters
    with name_scope(name, "conv2d_transpose", [image, weights]) as scope:
        return _transposed(
            "Conv2DBackpropInput", image, weights, output_shape, 2, strides, padding, data_format,
            dilations, scope,
        )  # fmt: skip


def conv3d_transpose(
    value: Any, filter: Any = None, output_shape: Any = None, strides: Any = None,
    padding: Any = "SAME", data_format: str = "NDHWC", name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `conv3d`, to volumes of `output_shape`."""
    with name_scope(name, "conv3d_transpose", [value, filter]) as scope:
        return _transposed(
            "Conv3DBackpropInputV2", value, filter, output_shape, 3, strides, padding, data_format,
            None, scope,
        )  # fmt: skip


def _depthwise(
    x: Any, w: Any, strides: Any, padding: Any, dilations: Any, data_format: str | None, name: str
) -> Tensor:
    """Depthwise: C channels, each with its own weights (height, width, C, M), to C * M channels."""
    kind = "DepthwiseConv2dNative"
    first, options = _options(kind, strides, padding, dilations, data_format, 2)
    image, weights = _pair(kind, x, w, 4)
    dims = weights.shape.as_list()
    if dims[2] is None or dims[3] is None:
        raise fail(ShapeError, f"{kind}: expected weights of known shape, got {weights.shape}")

    def build(v: Value, k: Value) -> Value:
        flat = ops.reshape(k, shape=[dims[0], dims[1], 1, dims[2] * dims[3]])  # pyright: ignore
        return out_of_last(ops.conv(in_last(v, first), flat, **options, groups=dims[2]), first)

    return emit(kind, [image, weights], build, name=name)


def depthwise_conv2d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None, rate: Any = None,
    name: str | None = None, data_format: str | None = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel with its own weights (height, width, C, multiplier)."""
    with name_scope(name, "depthwise", [input, filter]) as scope:
        spread = rate if dilations is None else dilations
        return _depthwise(input, filter, strides, padding, spread, data_format, scope)


def depthwise_conv2d_native(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
    data_format: str | None = "NHWC", dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`depthwise_conv2d` under its deprecated name."""
    with name_scope(name, "DepthwiseConv2dNative", [input, filter]) as scope:
        return _depthwise(input, filter, strides, padding, dilations, data_format, scope)


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
    rate: Any = None, name: str | None = None, data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:  # fmt: skip
    """`depthwise_conv2d`, then a pointwise convolution that mixes the channels."""
    with name_scope(name, "separable_conv2d", [input]) as scope:
        spread = rate if dilations is None else dilations
        deep = _depthwise(
            input, depthwise_filter, strides, padding, spread, data_format, "depthwise"
        )
        return _convolve("Conv2D", deep, pointwise_filter, 2, 1, "VALID", data_format, None, scope)
