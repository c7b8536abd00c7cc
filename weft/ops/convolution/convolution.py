"""Convolution (cross-correlation, as in every deep learning framework) and its two gradients.

Images are N, spatial..., C; weights are spatial..., C / groups, K; with 1, 2 or 3 spatial axes.
Each of the three operations is linear in both inputs, and its gradients are the other two. A
transposed convolution is `conv_grad_input`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.extent import largest
from weft.ir.shape import Dims, Shape, compatible, known, show, size
from weft.ops.convolution.geometry import Geometry, geometry
from weft.ops.declaration import Array, Case, Opaque, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.fact import Ability, Autocast, Facts, Sizes, Work
from weft.ops.declaration.numeric import FLOATS, draw
from weft.ops.declaration.rule import attribute_shape, floating, shape_argument

ATTRS: Final[Mapping[str, Any]] = {
    "strides": None, "padding": None, "dilation": None, "groups": 1,
}  # fmt: skip


def conv_geometry(x: Dims, w: Dims, **attrs: Any) -> Geometry:
    """The geometry of a convolution of an image of shape `x` with weights of shape `w`.

    Raises:
        ShapeError: ranks or channels that do not fit, or as for `geometry`.
    """
    groups = attrs.pop("groups")
    if len(x) != len(w) or not 3 <= len(x) <= 5:
        raise ShapeError(
            f"expected x of rank 3, 4 or 5 and w of the same rank, got {show(x)} and {show(w)}"
        )
    channels, filters = x[-1], w[-1]
    if groups < 1 or (filters is not None and filters % groups):
        raise ShapeError(f"groups: expected a divisor of w.shape[{len(w) - 1}], got {groups}")
    if channels is not None and w[-2] is not None and channels != w[-2] * groups:
        times = "" if groups == 1 else f" * {groups} groups"
        raise ShapeError(
            f"channels differ: expected x.shape[{len(x) - 1}] == w.shape[{len(w) - 2}]{times},"
            f" got {channels} and {w[-2] * groups}"
        )
    return geometry(x[1:-1], w[:-2], **attrs)


# Shapes
def _conv_shape(x: Shape, w: Shape, **attrs: Any) -> Shape:
    assert x is not None and w is not None
    return (x[0], *conv_geometry(x, w, **attrs).output, w[-1])


def _check_cotangent(g: Shape, x: Shape, w: Shape, attrs: Mapping[str, Any]) -> None:
    if g is None or x is None or w is None:
        return
    expected = _conv_shape(x, w, **attrs)
    if not compatible(g, expected):
        raise ShapeError(
            f"expected g of shape {show(expected)} for x {show(x)} and w {show(w)}, got {show(g)}"
        )


def _grad_input_shape(g: Shape, w: Shape, *, shape: Any, **attrs: Any) -> Shape:
    x = attribute_shape(shape=shape)
    if UNKNOWN not in attrs.values():
        _check_cotangent(g, x, w, attrs)
    return x


def _grad_weight_shape(x: Shape, g: Shape, *, shape: Any, **attrs: Any) -> Shape:
    w = attribute_shape(shape=shape)
    if UNKNOWN not in attrs.values():
        _check_cotangent(g, x, w, attrs)
    return w


# Normalized attributes
def _normal(image: Dims, weights: Dims, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    geo = conv_geometry(image, weights, **attrs)
    return {
        "strides": geo.strides, "padding": geo.padding, "dilation": geo.dilation,
        "groups": attrs["groups"],
    }  # fmt: skip


def _grad_input_normal(g: Dims, w: Dims, *, shape: Any, **attrs: Any) -> Mapping[str, Any]:
    return {"shape": shape, **_normal(shape, w, attrs)}


def _grad_weight_normal(x: Dims, g: Dims, *, shape: Any, **attrs: Any) -> Mapping[str, Any]:
    return {"shape": shape, **_normal(x, shape, attrs)}


# References in float64, and fast forms in the inputs' dtype
def _in_float64(fast: Callable[..., Array]) -> Callable[..., Array]:
    def run(a: Array, b: Array, **attrs: Any) -> Array:
        return fast(a.astype(np.float64), b.astype(np.float64), **attrs).astype(a.dtype)

    return run


def _grouped(a: Array, groups: int) -> Array:
    """The last axis split into groups, which move to the front: G, ..., C / G."""
    split = a.reshape(*a.shape[:-1], groups, a.shape[-1] // groups)
    return np.moveaxis(split, -2, 0)


def _ungrouped(a: Array) -> Array:
    back = np.moveaxis(a, 0, -2)
    return back.reshape(*back.shape[:-2], back.shape[-2] * back.shape[-1])


def _rows(a: Array) -> Array:
    """Pixels as the rows of a matrix."""
    return a.reshape(math.prod(a.shape[:-1]), a.shape[-1])


def padded(x: Array, geo: Geometry, value: float = 0.0) -> Array:
    """An image (N, spatial..., C) with `value` around it."""
    return np.pad(x, ((0, 0), *geo.padding, (0, 0)), constant_values=value)


def taps(geo: Geometry) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Every window position, with the strided slice of the padded image that it covers."""
    outputs = known(geo.output)
    for tap in itertools.product(*map(range, geo.kernel)):
        places = zip(tap, geo.dilation, geo.strides, outputs, strict=True)
        yield tap, tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, s, o in places)


def _fast_conv(x: Array, w: Array, **attrs: Any) -> Array:
    geo = conv_geometry(x.shape, w.shape, **attrs)
    rank, groups = len(geo.kernel), attrs["groups"]
    extents = [(k - 1) * d + 1 for k, d in zip(geo.kernel, geo.dilation, strict=True)]
    image = _grouped(padded(x, geo), groups)
    windows = np.lib.stride_tricks.sliding_window_view(image, extents, tuple(range(2, 2 + rank)))
    steps = [slice(None, None, s) for s in geo.strides]
    holes = [slice(None, None, d) for d in geo.dilation]
    windows = windows[(slice(None), slice(None), *steps, slice(None), *holes)]
    # G N O... C T...  times  G T... C K  gives  G N O... K
    tap_axes = tuple(range(3 + rank, 3 + 2 * rank))
    pairs = zip(windows, _grouped(w, groups), strict=True)
    contract = ((*(a - 1 for a in tap_axes), 1 + rank), tuple(range(rank + 1)))
    return _ungrouped(np.stack([np.tensordot(a, b, contract) for a, b in pairs]))


def _fast_grad_input(g: Array, w: Array, shape: Any, **attrs: Any) -> Array:
    geo = conv_geometry(shape, w.shape, **attrs)
    groups = attrs["groups"]
    weights, cotangent = _grouped(w, groups), _grouped(g, groups)
    total = np.zeros((groups, shape[0], *geo.padded, shape[-1] // groups), g.dtype)
    for tap, seen in taps(geo):
        per_group = zip(cotangent, weights[(slice(None), *tap)], strict=True)
        for i, (a, b) in enumerate(per_group):
            part = _rows(a) @ b.T  # one matmul, not one for each row of pixels
            total[(i, slice(None), *seen)] += part.reshape(*a.shape[:-1], len(b))
    pads = zip(geo.padding, shape[1:-1], strict=True)
    inner = tuple(slice(low, low + size) for (low, _), size in pads)
    return _ungrouped(total[(slice(None), slice(None), *inner)])


def _fast_grad_weight(x: Array, g: Array, shape: Any, **attrs: Any) -> Array:
    geo = conv_geometry(x.shape, shape, **attrs)
    groups = attrs["groups"]
    image, cotangent = _grouped(padded(x, geo), groups), _grouped(g, groups)
    total = np.zeros((groups, *shape[:-1], shape[-1] // groups), x.dtype)
    flat = [_rows(a) for a in cotangent]
    for tap, seen in taps(geo):
        for i in range(groups):
            total[(i, *tap)] = _rows(image[(i, slice(None), *seen)]).T @ flat[i]
    return _ungrouped(total)


# Gradients: each in terms of the other two
def _conv_vjp(g: Any, y: Any, x: Any, w: Any, **attrs: Any) -> tuple[Any, ...]:
    return (
        conv_grad_input(g, w, shape=shape_argument(x), **attrs),
        conv_grad_weight(x, g, shape=shape_argument(w), **attrs),
    )


def _grad_input_vjp(h: Any, y: Any, g: Any, w: Any, shape: Any, **attrs: Any) -> tuple[Any, ...]:
    return conv(h, w, **attrs), conv_grad_weight(h, g, shape=shape_argument(w), **attrs)


def _grad_weight_vjp(h: Any, y: Any, x: Any, g: Any, shape: Any, **attrs: Any) -> tuple[Any, ...]:
    return conv_grad_input(g, h, shape=shape_argument(x), **attrs), conv(x, h, **attrs)


# Cases: image, weights, attributes
CASES: Final[tuple[tuple[Dims, Dims, Mapping[str, Any]], ...]] = (
    ((2, 6, 5, 3), (3, 3, 3, 4), {"padding": "same"}),
    ((1, 7, 9, 2), (3, 2, 2, 5), {"strides": (2, 3), "padding": ((1, 2), (0, 1))}),
    ((2, 9, 3), (3, 3, 2), {"dilation": (2,), "padding": ((4, 1),)}),
    ((1, 4, 5, 3, 2), (2, 3, 2, 2, 3), {"strides": (1, 2, 1), "padding": "same"}),
    ((2, 5, 6, 4), (3, 3, 2, 6), {"groups": 2, "padding": ((1, 1), (1, 1))}),
    ((1, 6, 6, 3), (3, 3, 1, 6), {"groups": 3, "strides": (2, 2), "padding": "same"}),
    ((3, 1, 1, 17), (1, 1, 17, 33), {}),
    ((2, 2, 2, 1), (1, 1, 1, 1), {"padding": ((3, 2), (2, 4)), "strides": (3, 2)}),
    ((1, 8, 8, 2), (2, 2, 2, 3), {"strides": (4, 3)}),
    ((0, 4, 4, 2), (3, 3, 2, 3), {}),
    ((1, 1, 3, 2), (2, 1, 2, 16), {"strides": (2, 1), "padding": ((1, 0), (0, 0))}),
)


def _weights_like(x: DType, y: DType, **_: Any) -> DType:
    return floating(x, y)


def _operands(dtype: DType, i: int) -> tuple[Array, Array, Array, dict[str, Any], float]:
    """Image, weights, cotangent, attributes, and an error bound for any summation order."""
    image, weights, attrs = CASES[i]
    full = {**ATTRS, **attrs}
    output = known(_conv_shape(image, weights, **full))
    x, w = draw(known(image), dtype, -1, 1), draw(known(weights), dtype, -1, 1, seed=1)
    g = draw(output, dtype, -1, 1, seed=2)
    terms = max(w.size, g.size, 1)
    return x, w, g, full, 1e-6 + 1.2e-7 * terms


def _cases(kind: str) -> Iterator[Case]:
    for dtype in FLOATS:
        for i in range(len(CASES) if dtype is types.float32 else 2):
            x, w, g, attrs, atol = _operands(dtype, i)
            if kind == "conv":
                yield Case((x, w), attrs, atol=atol)
            elif kind == "conv_grad_input":
                yield Case((g, w), {**attrs, "shape": x.shape}, atol=atol)
            else:
                yield Case((x, g), {**attrs, "shape": w.shape}, atol=atol)


# Kernel abilities, and the number of multiply-adds: for each position the size of a filter
def _conv_products(x: Sizes, w: Sizes, y: Sizes, **_: Any) -> int:
    return size(y) * size(w) // largest(w[-1], 1)


def _grad_input_products(g: Sizes, w: Sizes, x: Sizes, **_: Any) -> int:
    return _conv_products(x, w, g)


def _grad_weight_products(x: Sizes, g: Sizes, w: Sizes, **_: Any) -> int:
    return _conv_products(x, w, g)


def _facts(products: Callable[..., int]) -> Facts:
    return Facts(autocast=Autocast.LOW, cancels=True, work=Work(products, ns=0.3))


conv = defop(
    "conv",
    inputs="x w",
    attrs=ATTRS,
    dtype=_weights_like,
    shape=_conv_shape,
    reference=_in_float64(_fast_conv),
    fast=_fast_conv,
    vjp=_conv_vjp,
    lower=Opaque("conv", abilities=Ability.EPILOGUE | Ability.PROLOGUE | Ability.TURNS),
    cases=lambda: _cases("conv"),
    normal=lambda x, w, **attrs: _normal(x, w, attrs),
    facts=_facts(_conv_products),
)
conv_grad_input = defop(
    "conv_grad_input",
    inputs="g w",
    attrs={"shape": REQUIRED, **ATTRS},
    dtype=_weights_like,
    shape=_grad_input_shape,
    reference=_in_float64(_fast_grad_input),
    fast=_fast_grad_input,
    vjp=_grad_input_vjp,
    lower=Opaque("conv_grad_input", abilities=Ability.EPILOGUE | Ability.TURNS),
    cases=lambda: _cases("conv_grad_input"),
    normal=_grad_input_normal,
    partial=True,
    facts=_facts(_grad_input_products),
)
conv_grad_weight = defop(
    "conv_grad_weight",
    inputs="x g",
    attrs={"shape": REQUIRED, **ATTRS},
    dtype=_weights_like,
    shape=_grad_weight_shape,
    reference=_in_float64(_fast_grad_weight),
    fast=_fast_grad_weight,
    vjp=_grad_weight_vjp,
    lower=Opaque("conv_grad_weight", abilities=Ability.EPILOGUE | Ability.PROLOGUE),
    cases=lambda: _cases("conv_grad_weight"),
    normal=_grad_weight_normal,
    partial=True,
    facts=_facts(_grad_weight_products),
)
