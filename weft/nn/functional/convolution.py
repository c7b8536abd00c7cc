"""Convolutions and transposed convolutions of 1, 2 and 3 spatial dimensions."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.layout import check_image, of_rank, sizes_of
from weft.ops.convolution.correlation import correlate, spread
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast
from weft.ops.shape.layout import batched, channels_last
from weft.ops.shape.padding import padded

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _weights_last(w: Value) -> Value:
    """(out, in, window...) as (window..., in, out)."""
    return catalogue.transpose(w, perm=(*range(2, len(known(w.shape))), 1, 0))


@channels_last
def _correlate(
    x: Value, weight: Value, bias: Value | None,
    *, strides: Any, padding: Any, dilation: Any, groups: int, mode: str,
) -> Value:  # fmt: skip
    if mode != "zeros":
        x = padded(x, ((0, 0), *padding, (0, 0)), mode)
        padding = None
    y = correlate(
        x, _weights_last(weight), strides=strides, padding=padding, dilation=dilation,
        groups=groups,
    )  # fmt: skip
    return y if bias is None else y + bias


def _conv(rank: int) -> Any:
    def conv(x: Value, weight: Value, bias: Value | None, **static: Any) -> Value:
        return batched(rank)(_correlate)(x, weight, bias, **static)

    return recorded(conv, autocast=Autocast.LOW)


_CONV = {spatial: _conv(spatial + 2) for spatial in (1, 2, 3)}


def convolve(
    spatial: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    groups: int, mode: str = "zeros",
) -> Any:  # fmt: skip
    """A convolution with any number of spatial dimensions; `mode` is the padding mode."""
    name = f"conv{spatial}d"
    strides = sizes_of(f"{name}: stride", stride, spatial)
    spread = sizes_of(f"{name}: dilation", dilation, spatial)
    w = dims_of(weight)
    _check(name, dims_of(input), w, spatial, groups)
    pads = _pads(name, padding, w[2:], strides, spread)
    return _CONV[spatial](
        input, weight, bias, strides=strides, padding=pads, dilation=spread, groups=int(groups),
        mode=mode,
    )  # fmt: skip


def _check(name: str, x: tuple[int, ...], w: tuple[int, ...], spatial: int, groups: int) -> None:
    check_image(name, x, spatial)
    if len(w) != spatial + 2:
        raise ShapeError.here(f"{name}: expected a weight of rank {spatial + 2}, got {show(w)}")
    channels = x[-spatial - 1]
    if groups < 1 or w[1] * groups != channels or w[0] % groups:
        raise ShapeError.here(
            f"{name}: expected a weight (out, in / groups, ...) for {channels} channels and "
            f"{groups} groups, got {show(w)} for an input {show(x)}"
        )


def _pads(
    name: str, padding: Any, window: tuple[int, ...], strides: Any, dilation: Any
) -> tuple[tuple[int, int], ...]:
    """Padding at both ends of each spatial dimension."""
    if padding == "valid":
        return ((0, 0),) * len(window)
    if padding == "same":
        if max(strides) > 1:
            raise ArgumentError.here(f"{name}: padding 'same' goes with stride 1, got {strides}")
        totals = [d * (k - 1) for d, k in zip(dilation, window, strict=True)]
        return tuple([(t // 2, t - t // 2) for t in totals])
    if isinstance(padding, str):
        raise ArgumentError.here(
            f"{name}: expected padding 'same', 'valid' or numbers, got {padding!r}"
        )
    return tuple([(p, p) for p in sizes_of(f"{name}: padding", padding, len(window))])


def _conv_in(spatial: int):
    @of_rank(spatial)
    def conv(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        """Cross-correlation of {image} with weights (out, C / groups, {window}).

        Args:
            input: (N, C, spatial...) or (C, spatial...).
            weight: (out, C / groups, window...).
            bias: (out).
            stride: the steps of the window; one number stands for all dimensions.
            padding: how many zeros are added at both ends of each spatial dimension; or `"same"`,
                which keeps the sizes (with stride 1), or `"valid"`, which adds none.
            dilation: the steps within the window.
            groups: the number of groups that the channels are divided into; outputs of a group are
                computed from its inputs only.

        Raises:
            ShapeError: shapes that do not fit.
        """
        return convolve(spatial, input, weight, bias, stride, padding, dilation, groups)

    return conv


conv1d, conv2d, conv3d = map(_conv_in, (1, 2, 3))


@channels_last
def _spread(x: Value, weight: Value, bias: Value | None, **static: Any) -> Value:
    y = spread(x, _weights_last(weight), **static)
    return y if bias is None else y + bias


def _conv_transpose(rank: int) -> Any:
    def conv_transpose(x: Value, weight: Value, bias: Value | None, **static: Any) -> Value:
        return batched(rank)(_spread)(x, weight, bias, **static)

    return recorded(conv_transpose, autocast=Autocast.LOW)


_TRANSPOSE = {spatial: _conv_transpose(spatial + 2) for spatial in (1, 2, 3)}


def transpose(
    spatial: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Any:  # fmt: skip
    """A transposed convolution of any number of spatial dimensions."""
    name = f"conv_transpose{spatial}d"
    x, w = dims_of(input), dims_of(weight)
    check_image(name, x, spatial)
    channels = x[-spatial - 1]
    if len(w) != spatial + 2 or w[0] != channels or groups < 1 or channels % groups:
        raise ShapeError.here(
            f"{name}: expected a weight (in, out / groups, ...) for {channels} channels and "
            f"{groups} groups, got {show(w)} for an input {show(x)}"
        )
    options = {
        "strides": stride, "padding": padding, "output_padding": output_padding,
        "dilation": dilation,
    }  # fmt: skip
    static = {k: sizes_of(f"{name}: {k}", v, spatial) for k, v in options.items()}
    return _TRANSPOSE[spatial](input, weight, bias, **static, groups=int(groups))


def _conv_transpose_in(spatial: int):
    @arguments_of(conv1d)
    @of_rank(spatial)
    def conv_transpose(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        """The transpose of `conv{rank}`: {image} with weights (C, out / groups, {window}).

        Args:
            weight: (C, out / groups, window...).
            padding: how much is cut off at both ends of each spatial dimension.
            output_padding: how much larger the output is at the end of each spatial dimension.
        """
        sizes = (stride, padding, output_padding)
        return transpose(spatial, input, weight, bias, *sizes, groups, dilation)

    return conv_transpose


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose_in, (1, 2, 3))
