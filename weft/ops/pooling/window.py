"""Max and average pooling of images (N, spatial..., C), and their gradients.

Padding never wins a maximum. In a tie, or with several NaNs, the first one in row-major order takes
the gradient, as in TensorFlow and PyTorch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.shape import Dims, Shape, compatible, known, show
from weft.ops.convolution.convolution import padded, taps
from weft.ops.convolution.geometry import Geometry, geometry
from weft.ops.declaration import Array, Case, Opaque, Pull, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.fact import AS_GIVEN, Autocast, Facts
from weft.ops.declaration.numeric import FLOATS, draw, widened
from weft.ops.declaration.rule import attribute_shape, floating, shape_argument

ATTRS: Final[Mapping[str, Any]] = {"window": REQUIRED, "strides": None, "padding": None}
MEAN_ATTRS: Final[Mapping[str, Any]] = {**ATTRS, "count_include_pad": True}


def pool_geometry(x: Dims, window: Any, strides: Any, padding: Any, **_: Any) -> Geometry:
    """The geometry of pooling an image of shape `x`; strides default to the window.

    Raises:
        ShapeError: as for `geometry`.
    """
    if len(x) < 3:
        raise ShapeError(f"expected x of rank 3, 4 or 5, got shape {show(x)}")
    return geometry(x[1:-1], tuple(window), window if strides is None else strides, padding)


def _normal(x: Dims, **attrs: Any) -> Mapping[str, Any]:
    geo = pool_geometry(x, **attrs)
    return {**attrs, "window": geo.kernel, "strides": geo.strides, "padding": geo.padding}


# Shapes
def _pooled(x: Shape, **attrs: Any) -> Shape:
    assert x is not None
    return (x[0], *pool_geometry(x, **attrs).output, x[-1])


def _like_image(x: Shape, g: Shape, **attrs: Any) -> Shape:
    expected = _pooled(x, **attrs)
    if not compatible(g, expected):
        raise ShapeError(f"expected g of shape {show(expected)}, got {show(g)}")
    return x


def _gathered(x: Shape, h: Shape, **attrs: Any) -> Shape:
    if not compatible(x, h):
        raise ShapeError(f"expected h of shape {show(x)} like x, got {show(h)}")
    return _pooled(x, **attrs)


def _mean_grad_shape(g: Shape, *, shape: Any, **attrs: Any) -> Shape:
    x = attribute_shape(shape=shape)
    if g is not None and x is not None and UNKNOWN not in attrs.values():
        _like_image(x, g, **attrs)
    return x


# References
def _seen(x: Array, geo: Geometry, value: float) -> Array:
    """The elements of every window: (window size, N, output..., C)."""
    image = padded(x, geo, value)
    return np.stack([image[(slice(None), *seen)] for _, seen in taps(geo)])


@widened
def _max_reference(x: Array, **attrs: Any) -> Array:
    return np.max(_seen(x, pool_geometry(x.shape, **attrs), -np.inf), axis=0)


def _first_winner(x: Array, geo: Geometry) -> Array:
    """The row-major position of every maximum in its window; -1 if all is padding."""
    seen = _seen(x, geo, -np.inf)
    inside = _seen(np.ones(x.shape, np.bool_), geo, False)
    best = np.max(seen, axis=0)
    wins = inside & ((seen == best) | np.isnan(seen))
    return np.where(wins.any(axis=0), np.argmax(wins, axis=0), -1)


def _cropped(image: Array, geo: Geometry) -> Array:
    sides = zip(geo.padding, known(geo.image), strict=True)
    return image[(slice(None), *(slice(low, low + size) for (low, _), size in sides))]


@widened
def _max_grad_reference(x: Array, g: Array, **attrs: Any) -> Array:
    geo = pool_geometry(x.shape, **attrs)
    winner = _first_winner(x, geo)
    total = np.zeros((x.shape[0], *geo.padded, x.shape[-1]), x.dtype)
    for place, (_, seen) in enumerate(taps(geo)):
        total[(slice(None), *seen)] += np.where(winner == place, g, 0)
    return _cropped(total, geo)


@widened
def _max_gather_reference(x: Array, h: Array, **attrs: Any) -> Array:
    geo = pool_geometry(x.shape, **attrs)
    winner = _first_winner(x, geo)
    seen = _seen(h, geo, 0)
    picked = np.take_along_axis(seen, np.maximum(winner, 0)[None], axis=0)[0]
    return np.where(winner < 0, 0, picked).astype(h.dtype)


def _divisor(x: tuple[int, ...], geo: Geometry, count_include_pad: bool) -> Array:
    """The number of elements averaged in each output: (1, output..., 1)."""
    if count_include_pad:
        return np.full((1,) * len(x), math.prod(geo.kernel))
    seen = _seen(np.ones((1, *x[1:-1], 1)), geo, 0.0)
    return np.maximum(seen.sum(axis=0), 1)


@widened
def _avg_reference(x: Array, **attrs: Any) -> Array:
    geo = pool_geometry(x.shape, **attrs)
    total = _seen(x.astype(np.float64), geo, 0.0).sum(axis=0)
    return (total / _divisor(x.shape, geo, attrs["count_include_pad"])).astype(x.dtype)


@widened
def _avg_grad_reference(g: Array, shape: Any, **attrs: Any) -> Array:
    geo = pool_geometry(shape, **attrs)
    share = g / _divisor(shape, geo, attrs["count_include_pad"])
    total = np.zeros((shape[0], *geo.padded, shape[-1]))
    for _, seen in taps(geo):
        total[(slice(None), *seen)] += share
    return _cropped(total, geo).astype(g.dtype)


# The gather that differentiates max_pool_grad
def _gather_pull(b: Any, index: Any, x: Any, h: Any, **attrs: Any) -> Any:
    geo = pool_geometry(x.shape, **attrs)
    best, picked = b.const(-math.inf, x.dtype), b.const(0, h.dtype)
    found = b.const(False, types.bool_)
    for tap in itertools.product(*map(range, geo.kernel)):
        at, inside = _place(b, index, tap, geo)
        value = x(at)
        new = b.bit_or(b.bit_not(found), b.bit_or(b.less(best, value), b.not_equal(value, value)))
        wins = b.bit_and(b.bit_and(inside, new), b.equal(best, best))  # the first NaN wins
        best, picked = b.select(wins, value, best), b.select(wins, h(at), picked)
        found = b.bit_or(found, inside)
    return picked


def _place(b: Any, index: Any, tap: tuple[int, ...], geo: Geometry) -> tuple[Any, Any]:
    """The image index of a window's `tap`, clamped, and whether it is inside."""
    inside = b.const(True, types.bool_)
    at: list[Any] = []
    for i, t, s, (low, _), size in zip(
        index[1:-1], tap, geo.strides, geo.padding, known(geo.image), strict=True
    ):
        place = i * s + (t - low)
        inside = b.bit_and(inside, b.inside(place, 0, size))
        at.append(b.clamp(place, 0, size))
    return (index[0], *at, index[-1]), inside


# Gradients
def _max_vjp(g: Any, y: Any, x: Any, **attrs: Any) -> tuple[Any, ...]:
    return (max_pool_grad(x, g, **attrs),)


def _max_grad_vjp(h: Any, y: Any, x: Any, g: Any, **attrs: Any) -> tuple[Any, ...]:
    return None, max_pool_gather(x, h, **attrs)


def _max_gather_vjp(g: Any, y: Any, x: Any, h: Any, **attrs: Any) -> tuple[Any, ...]:
    return None, max_pool_grad(x, g, **attrs)


def _avg_vjp(g: Any, y: Any, x: Any, **attrs: Any) -> tuple[Any, ...]:
    return (avg_pool_grad(g, shape=shape_argument(x), **attrs),)


def _avg_grad_vjp(h: Any, y: Any, g: Any, shape: Any, **attrs: Any) -> tuple[Any, ...]:
    return (avg_pool(h, **attrs),)


# Cases: image, attributes
CASES: Final[tuple[tuple[Dims, Mapping[str, Any]], ...]] = (
    ((2, 6, 5, 3), {"window": (2, 2)}),
    ((1, 7, 9, 2), {"window": (3, 2), "strides": (2, 3), "padding": ((1, 2), (0, 1))}),
    ((2, 9, 17), {"window": (3,), "strides": (1,), "padding": "same"}),
    ((1, 4, 5, 3, 2), {"window": (2, 3, 2), "strides": (1, 2, 1), "padding": "same"}),
    ((3, 1, 1, 40), {"window": (1, 1)}),
    ((1, 8, 8, 2), {"window": (2, 2), "strides": (3, 4)}),
    ((2, 7, 7, 5), {"window": (7, 7)}),
    ((0, 4, 4, 2), {"window": (2, 2)}),
)


def _cases(kind: str) -> Iterator[Case]:
    for dtype in FLOATS:
        for i, (image, some) in enumerate(CASES if dtype is types.float32 else CASES[:2]):
            attrs = {**ATTRS, **some}
            if kind.startswith("avg"):
                attrs["count_include_pad"] = i % 2 == 0
            yield _case(kind, known(image), dtype, attrs)


def _case(kind: str, image: tuple[int, ...], dtype: DType, attrs: dict[str, Any]) -> Case:
    x = draw(image, dtype)
    g = draw(known(_pooled(image, **attrs)), dtype, seed=1)
    inputs = {
        "max_pool": (x,), "max_pool_grad": (x, g), "max_pool_gather": (x, draw(image, dtype)),
        "avg_pool": (x,), "avg_pool_grad": (g,),
    }[kind]  # fmt: skip
    if kind == "avg_pool_grad":
        attrs["shape"] = image
    return Case(inputs, attrs, rtol=1e-5, atol=1e-5)


max_pool = defop(
    "max_pool",
    inputs="x",
    attrs=ATTRS,
    dtype=floating,
    shape=_pooled,
    reference=_max_reference,
    vjp=_max_vjp,
    lower=Opaque("max_pool"),
    cases=lambda: _cases("max_pool"),
    normal=_normal,
    facts=AS_GIVEN,
)
max_pool_grad = defop(
    "max_pool_grad",
    inputs="x g",
    attrs=ATTRS,
    dtype=floating,
    shape=_like_image,
    reference=_max_grad_reference,
    vjp=_max_grad_vjp,
    lower=Opaque("max_pool_grad"),
    cases=lambda: _cases("max_pool_grad"),
    normal=lambda x, g, **attrs: _normal(x, **attrs),
    facts=Facts(autocast=Autocast.WIDEST, cancels=True),
)
max_pool_gather = defop(
    "max_pool_gather",
    inputs="x h",
    attrs=ATTRS,
    dtype=floating,
    shape=_gathered,
    reference=_max_gather_reference,
    vjp=_max_gather_vjp,
    lower=Pull(_gather_pull),
    cases=lambda: _cases("max_pool_gather"),
    normal=lambda x, h, **attrs: _normal(x, **attrs),
)
avg_pool = defop(
    "avg_pool",
    inputs="x",
    attrs=MEAN_ATTRS,
    dtype=floating,
    shape=_pooled,
    reference=_avg_reference,
    vjp=_avg_vjp,
    lower=Opaque("avg_pool"),
    cases=lambda: _cases("avg_pool"),
    normal=_normal,
    facts=Facts(autocast=Autocast.KEPT, cancels=True),
)
avg_pool_grad = defop(
    "avg_pool_grad",
    inputs="g",
    attrs={"shape": REQUIRED, **MEAN_ATTRS},
    dtype=floating,
    shape=_mean_grad_shape,
    reference=_avg_grad_reference,
    vjp=_avg_grad_vjp,
    lower=Opaque("avg_pool_grad"),
    cases=lambda: _cases("avg_pool_grad"),
    partial=True,
    normal=lambda g, *, shape, **attrs: {"shape": shape, **_normal(shape, **attrs)},
    facts=Facts(autocast=Autocast.KEPT, cancels=True),
)
