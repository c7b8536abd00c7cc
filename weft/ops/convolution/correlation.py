"""Cross-correlations of channels-last images of any dtype, and their transposes.

Kernels are for floating-point numbers. A complex correlation is composed of four real ones;
integers, which must be exact, use matmuls of windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.ir.dtype import int32, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.convolution.unfold import conv_transpose, fold, unfold
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import like_weights
from weft.ops.shape.padding import framed


def correlate(
    x: Value, w: Value, *, strides: Any, padding: Any, dilation: Any, groups: int
) -> Value:
    """The correlation of (N, spatial..., C) with weights (window..., C / groups, out)."""
    like_weights("conv", x, w)
    options = {"strides": strides, "padding": padding, "dilation": dilation}
    if x.dtype.is_complex:
        return _of_parts(lambda a, b: catalogue.conv(a, b, **options, groups=groups), x, w)
    if x.dtype.is_floating:
        return catalogue.conv(x, w, **options, groups=groups)
    *window, inputs, out = known(w.shape)
    seen = unfold(_wide(x), window, **options)
    n, *image, places, _ = known(seen.shape)
    rows = math.prod((n, *image))
    split = catalogue.reshape(seen, shape=(rows, places, groups, inputs))
    split = catalogue.transpose(split, perm=(2, 0, 1, 3))
    split = catalogue.reshape(split, shape=(groups, rows, places * inputs))
    weights = catalogue.reshape(_wide(w), shape=(places * inputs, groups, out // groups))
    y = catalogue.matmul(split, catalogue.transpose(weights, perm=(1, 0, 2)))
    y = catalogue.reshape(catalogue.transpose(y, perm=(1, 0, 2)), shape=(n, *image, out))
    return catalogue.cast(y, dtype=x.dtype)


def correlate_spread(
    x: Value, w: Value, *, strides: Any, padding: Any, apart: Any, dilation: Any, groups: int
) -> Value:
    """`correlate` of an image whose elements are `apart`, with zeros between; padding may crop."""
    pairs = zip(padding, apart, strict=True)
    frame = [(min(low, 0), min(high, 0), d - 1) for (low, high), d in pairs]
    if any(map(any, frame)):
        none = (0, 0, 0)
        x = framed(x, constant_of(0, x.dtype), config=(none, *frame, none))
    padding = tuple([(max(low, 0), max(high, 0)) for low, high in padding])
    options = {"strides": strides, "padding": padding, "dilation": dilation}
    return correlate(x, w, **options, groups=groups)


def spread(
    x: Value, w: Value, *, strides: Any, padding: Any, output_padding: Any, dilation: Any,
    groups: int,
) -> Value:  # fmt: skip
    """The transposed correlation, with weights (window..., out / groups, C)."""
    like_weights("conv_transpose", x, w)
    rest = (strides, padding, output_padding, dilation, groups)
    if x.dtype.is_complex:
        return _of_parts(lambda a, b: conv_transpose(a, b, *rest), x, w)
    if x.dtype.is_floating:
        return conv_transpose(x, w, *rest)
    n, *image, channels = known(x.shape)
    *window, out, _ = known(w.shape)
    rows, places, inputs = math.prod((n, *image)), math.prod(window), channels // groups
    split = catalogue.reshape(_wide(x), shape=(rows, groups, inputs))
    weights = catalogue.reshape(_wide(w), shape=(places * out, groups, inputs))
    y = catalogue.matmul(
        catalogue.transpose(split, perm=(1, 0, 2)), catalogue.transpose(weights, perm=(1, 2, 0))
    )
    y = catalogue.reshape(y, shape=(groups, rows, places, out))
    y = catalogue.transpose(y, perm=(1, 2, 0, 3))
    y = catalogue.reshape(y, shape=(n, *image, places, groups * out))
    # The same sums over an image with negative padding cropped, and the padding that is left.
    pads = zip(padding, output_padding, strict=True)
    pads = tuple([(p, p - e) for p, e in pads])
    sizes = [
        (d - 1) * s + (k - 1) * r + 1
        for d, s, k, r in zip(image, strides, window, dilation, strict=True)
    ]
    whole = fold(y, sizes, window, strides=strides, dilation=dilation)
    return catalogue.cast(_cut(whole, pads), dtype=x.dtype)


def _cut(x: Value, pads: Any) -> Value:
    """An image cropped by padding; negative numbers add zeros."""
    more = ((0, 0), *[(0, max(-high, 0)) for _, high in pads], (0, 0))
    x = catalogue.pad(x, paddings=more)
    dims = known(x.shape)
    end = [d - max(high, 0) for d, (_, high) in zip(dims[1:-1], pads, strict=True)]
    begin = (0, *[low for low, _ in pads], 0)
    return catalogue.slice(x, begin=begin, end=(dims[0], *end, dims[-1]))


def _wide(x: Value) -> Value:
    """Integers widened for matmul: sums are the same modulo the range of the smaller dtype."""
    return catalogue.cast(x, dtype=int64 if x.dtype is int64 else int32)


def _of_parts(product: Callable[[Value, Value], Value], x: Value, w: Value) -> Value:
    """A complex product, from a real one."""
    (a, b), (c, d) = [(catalogue.real(v), catalogue.imag(v)) for v in (x, w)]
    real = product(a, c) - product(b, d)
    return catalogue.complex(real, product(a, d) + product(b, c))
