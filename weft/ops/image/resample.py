"""Image resizing: `interpolate`.

Images are N, spatial..., C. Axis by axis, every new pixel is a weighted sum of a few old ones,
whose positions and weights are known when the graph is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import GraphError, ShapeError
from weft.ir.dtype import float32, float64
from weft.ir.node import Value
from weft.ir.shape import Shape, normal_axis, show
from weft.ops.declaration import Array, Case, Pull, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Batching, Facts
from weft.ops.declaration.memory_check import check_room, check_table
from weft.ops.declaration.numeric import FLOATS, draw, widened
from weft.ops.declaration.rule import concrete, floating, front_axis
from weft.ops.indexing.gather import gather
from weft.ops.pooling.pooling import adaptive_avg_pool

__all__ = ["interpolate"]

Taps = list[tuple[Array, Array]]  # (positions, weights), one of each for each new pixel
_CUBIC: Final = -0.75
"""The free parameter of cubic convolution (Keys, 1981), as in PyTorch and OpenCV."""
_ARRAYS: Final = 4
"""The number of arrays of a table's size that exist at a time while it is computed, at least."""


def interpolate(
    x: Value,
    size: Sequence[int],
    mode: str = "nearest",
    align_corners: bool = False,
    scales: Sequence[float] | None = None,
    antialias: bool = False,
) -> Value:
    """`x` with its spatial axes resampled to the sizes `size`, as PyTorch's `interpolate` does.

    Args:
        mode: `nearest`, `nearest-exact`, `linear` (bilinear and trilinear on 2 and 3 axes),
            `cubic`, or `area`.
        align_corners: align the centers of the corner pixels of both images instead of the edges.
        scales: the scale of each axis, if it is not the ratio of the sizes.
        antialias: for `linear` and `cubic`, weigh all old pixels under a new one, as in Pillow.

    Raises:
        GraphError: an unknown mode, or one without `antialias`.
        ShapeError: not a positive size for each spatial axis; the shape must be known.
    """
    image = concrete(x)[1:-1]
    if len(size) != len(image) or min(size, default=0) < 1 or 0 in image:
        raise ShapeError.here(
            f"interpolate: expected {len(image)} positive sizes for x of shape {show(x.shape)},"
            f" got {tuple(size)}"
        )
    check_room("interpolate", (concrete(x)[0], *size, concrete(x)[-1]), x.dtype)
    if mode == "area":
        return adaptive_avg_pool(x, size)
    if mode not in _TAPS:
        names = ", ".join((*_TAPS, "area"))
        raise GraphError.here(f"interpolate: expected mode {names}, got {mode!r}")
    if antialias and mode not in ("linear", "cubic"):
        raise GraphError.here(
            f"interpolate: expected mode linear or cubic with antialias, got {mode!r}"
        )
    y = x
    for axis, (old, new) in enumerate(zip(image, size, strict=True), start=1):
        ratio = old / new if scales is None else 1 / scales[axis - 1]
        if antialias:
            step = (old - 1) / max(new - 1, 1) if align_corners else ratio
            y = _by_matrix(y, axis, _smooth(old, new, mode, step))
        elif old != new or ratio != 1:
            y = _resampled(y, axis, (new, mode, align_corners), ratio)
    return y


def _resampled(x: Value, axis: int, to: tuple[int, str, bool], ratio: float) -> Value:
    """Resample one axis by the operation, or by tables if positions are not rational."""
    (new, mode, align), old = to, concrete(x)[axis]
    taps = _taps(old, new, mode, ratio, align)
    attrs: dict[str, Any] = {"axis": axis, "size": new, "mode": mode, "align": align}
    if mode.startswith("nearest"):  # float32 may round a position down below a pixel's edge
        exact = np.array_equal(taps[0][0], _edges(np.arange(new), old, new, mode))
    else:
        exact = ratio == old / new or align
    return resample(x, **attrs) if exact else _weighted(x, axis, taps)


def _weighted(x: Value, axis: int, taps: Taps) -> Value:
    """The weighted sum of pixels along an axis."""
    wide = catalogue.cast(x, dtype=float32) if x.dtype.size == 2 else x
    shape = tuple(-1 if i == axis else 1 for i in range(len(concrete(x))))
    parts = [
        gather(wide, constant_of(places), axis=axis)
        * constant_of(weights.astype(wide.dtype.numpy).reshape(shape))
        for places, weights in taps
    ]
    return catalogue.cast(catalogue.add_n(*parts), dtype=x.dtype)


def _by_matrix(x: Value, axis: int, matrix: Array) -> Value:
    """A matmul with a matrix (new, old) along an axis."""
    dims = concrete(x)
    half = x.dtype.size == 2
    wide = catalogue.cast(x, dtype=float32) if half else x
    rows = catalogue.reshape(
        wide, shape=(math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :]))
    )
    product = catalogue.matmul(constant_of(matrix.astype(wide.dtype.numpy)), rows)
    y = catalogue.reshape(product, shape=(*dims[:axis], len(matrix), *dims[axis + 1 :]))
    return catalogue.cast(y, dtype=x.dtype) if half else y


# Positions and weights


def _taps(old: int, new: int, mode: str, ratio: float, align: bool) -> Taps:
    check_table("interpolate", (_ARRAYS, new), float64)
    return _TAPS[mode](old, new, ratio, align)


def _nearest(old: int, new: int, ratio: float, align: bool) -> Taps:
    places = np.floor(np.arange(new, dtype=np.float32) * np.float32(ratio))
    return [(np.minimum(places.astype(np.int64), old - 1), np.ones(new))]


def _nearest_exact(old: int, new: int, ratio: float, align: bool) -> Taps:
    places = np.floor((np.arange(new, dtype=np.float32) + np.float32(0.5)) * np.float32(ratio))
    return [(np.minimum(places.astype(np.int64), old - 1), np.ones(new))]


def _edges(i: Any, old: int, new: int, mode: str) -> Any:
    """The nearest old pixel of new pixel `i`, in integer arithmetic."""
    return (i * 2 + 1) * old // (2 * new) if mode == "nearest-exact" else i * old // new


def _sources(old: int, new: int, ratio: float, align: bool) -> Array:
    """The positions of new pixels among the old ones."""
    if align:
        return np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return (np.arange(new) + 0.5) * ratio - 0.5


def _linear(old: int, new: int, ratio: float, align: bool) -> Taps:
    at = np.clip(_sources(old, new, ratio, align), 0, old - 1)
    low = np.floor(at).astype(np.int64)
    part = at - low
    return [(low, 1 - part), (np.minimum(low + 1, old - 1), part)]


def _cubic(old: int, new: int, ratio: float, align: bool) -> Taps:
    at = _sources(old, new, ratio, align)
    low = np.floor(at).astype(np.int64)
    return [(np.clip(low + i - 1, 0, old - 1), w) for i, w in enumerate(cubic_weights(at - low))]


def _triangle(d: Array) -> Array:
    return np.maximum(1 - d, 0)


def _bump(d: Array) -> Array:
    """Cubic convolution with the parameter -0.5, as in Pillow."""
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return np.where(d < 1, near, np.where(d < 2, far, 0))


def _lanczos(reach: int) -> Callable[[Array], Array]:
    return lambda d: np.where(d < reach, np.sinc(d) * np.sinc(d / reach), 0)


_FILTERS: Final[Mapping[str, tuple[int, Callable[[Array], Array]]]] = {
    "linear": (1, _triangle), "cubic": (2, _bump), "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
}  # fmt: skip
"""The support of each filter, and the filter."""


def resized(x: Value, *, shape: Sequence[int | None], mode: str, antialias: bool) -> Value:
    """`x` with any of its axes resampled, as `jax.image.resize` does.

    Args:
        shape: the new sizes; `None` for axes that are kept.
        mode: `nearest-exact`, or a filter: `linear`, `cubic`, `lanczos3` or `lanczos5`.
        antialias: weigh all old pixels under a new one.
    """
    y = x
    for axis, (old, new) in enumerate(zip(concrete(x), shape, strict=True)):
        if new is None or old == new:
            continue
        if mode == "nearest-exact":
            y = gather(y, constant_of(_edges(np.arange(new), old, new, mode)), axis=axis)
        else:
            y = _by_matrix(y, axis, _smooth(old, new, mode, old / new, antialias))
    return y


def _smooth(old: int, new: int, mode: str, ratio: float, antialias: bool = True) -> Array:
    """The matrix (new, old) of a filtered axis."""
    check_table("interpolate", (_ARRAYS, new, old), float64)
    reach, weigh = _FILTERS[mode]
    wide = max(ratio, 1.0) if antialias else 1.0
    center = ratio * (np.arange(new) + 0.5)[:, None]
    first = np.maximum((center - reach * wide + 0.5).astype(np.int64), 0)
    last = np.minimum((center + reach * wide + 0.5).astype(np.int64), old)
    places = np.arange(old)
    weights = weigh(np.abs(places + 0.5 - center) / wide) * ((places >= first) & (places < last))
    return weights / weights.sum(axis=1, keepdims=True)


def interpolate_bytes(
    x: Value, size: Sequence[int], mode: str, align_corners: bool, scales: Any, antialias: bool
) -> Value:
    """`interpolate` of uint8 images (`linear` or `cubic`) in fixed point, as Pillow and PyTorch do.

    The last axis goes first; intermediate results are rounded to uint8, too.
    """
    y = catalogue.cast(x, dtype=float64)
    for axis in reversed(range(1, len(size) + 1)):
        old, new = concrete(x)[axis], size[axis - 1]
        ratio = old / new if scales is None else 1 / scales[axis - 1]
        if old == new and ratio == 1:
            continue
        step = (old - 1) / max(new - 1, 1) if align_corners else ratio
        matrix = (
            _smooth(old, new, mode, step)
            if antialias
            else _dense(_taps(old, new, mode, ratio, align_corners), old)
        )
        whole, one = _fixed(matrix)
        y = catalogue.floor((_by_matrix(y, axis, whole) + one / 2) / one)
        y = catalogue.maximum(
            catalogue.minimum(y, constant_of(255.0, float64)), constant_of(0.0, float64)
        )
    return catalogue.cast(y, dtype=x.dtype)


def _dense(taps: Taps, old: int) -> Array:
    """The matrix (new, old) of positions and weights."""
    check_table("interpolate", (len(taps[0][0]), old), float64)
    matrix = np.zeros((len(taps[0][0]), old))
    for places, weights in taps:
        np.add.at(matrix, (np.arange(len(matrix)), places), weights)
    return matrix


def _fixed(matrix: Array) -> tuple[Array, float]:
    """Weights as 16-bit fixed-point integers, and the integer for 1."""
    most, bits = matrix.max(), 0
    while bits < 22 and int(0.5 + most * 2 ** (bits + 1)) < 1 << 15:
        bits += 1
    scaled = matrix * 2.0**bits
    return np.trunc(scaled + np.copysign(0.5, scaled)), 2.0**bits


def cubic_weights(part: Any) -> tuple[Any, Any, Any, Any]:
    """Weights of four adjacent pixels, at the fraction `part` between the second and the third."""

    def near(d: Any) -> Any:
        return (d * (_CUBIC + 2) - (_CUBIC + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return (((d - 5) * d + 8) * d - 4) * _CUBIC

    return far(part + 1), near(part), near(1 - part), far(2 - part)


_TAPS: Final[Mapping[str, Callable[[int, int, float, bool], Taps]]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
}

# The operation: one axis, positions as integers over a common denominator


def _resample_shape(x: Shape, *, axis: int, size: int, mode: str, align: bool) -> Shape:
    assert x is not None
    at = normal_axis(axis, len(x))
    if mode not in _TAPS or size < 1 or x[at] == 0:
        raise ShapeError(f"expected a size and a mode for {show(x)}, got {size} and {mode!r}")
    return (*x[:at], size, *x[at + 1 :])


def _resample_taps(old: int, size: int, mode: str, align: bool) -> Taps:
    if mode.startswith("nearest"):
        return [(_edges(np.arange(size), old, size, mode), np.ones(size))]
    return _taps(old, size, mode, old / size, align)


@widened
def _resample_reference(x: Array, *, axis: int, size: int, mode: str, align: bool) -> Array:
    shape = tuple(-1 if i == axis % x.ndim else 1 for i in range(x.ndim))
    taps = _resample_taps(x.shape[axis], size, mode, align)
    parts = [np.take(x, at, axis) * w.astype(x.dtype).reshape(shape) for at, w in taps]
    return np.sum(parts, axis=0, dtype=x.dtype)


def _resample_pull(
    b: Any, index: Any, x: Any, *, axis: int, size: int, mode: str, align: bool
) -> Any:
    old, i = x.shape[axis], index[axis]

    def pixel(at: Any) -> Any:
        return x((*index[:axis], b.clamp(at, 0, old), *index[axis + 1 :]))

    if mode.startswith("nearest"):
        return pixel(_edges(i, old, size, mode))
    # The position times `under`, plus one pixel, so that it is not negative
    under = max(size - 1, 1) if align else 2 * size
    if align:
        over = i * (old - 1 if size > 1 else 0) + under
    else:
        over = i * (2 * old) + (old - size + under)
    if mode == "linear":
        over = b.clamp(over, under, old * under + 1)
    kind = float32 if x.dtype.size == 2 else x.dtype
    part = b.scalar(over % under, kind) / b.scalar(under, kind)
    weights = (1.0 - part, part) if mode == "linear" else cubic_weights(part)
    first = 1 if mode == "linear" else 2
    total: Any = None
    for k, w in enumerate(weights):
        term = b.cast(pixel(over // under - first + k), kind) * w
        total = term if total is None else total + term
    return b.cast(total, x.dtype)


def _resample_vjp(g: Value, y: Value, x: Value, **attrs: Any) -> tuple[Value]:
    """A matmul with the transposed weights."""
    dims, at = concrete(x), normal_axis(attrs["axis"], len(concrete(x)))
    old, size = dims[at], attrs["size"]
    matrix = _dense(_resample_taps(old, size, attrs["mode"], attrs["align"]), old).T
    return (_by_matrix(g, at, matrix),)


def _resample_cases() -> Iterator[Case]:
    modes = [("nearest", False), ("nearest-exact", False), ("linear", False), ("linear", True)]
    modes += [("cubic", False), ("cubic", True)]
    for mode, align in modes:
        for dtype in FLOATS:
            attrs = {"axis": 1, "size": 7, "mode": mode, "align": align}
            yield Case((draw((2, 4, 3), dtype),), attrs)
        for shape, axis, size in (((5,), 0, 12), ((2, 9), -1, 4), ((3, 1), 0, 1), ((1, 2), 0, 3)):
            attrs = {"axis": axis, "size": size, "mode": mode, "align": align}
            yield Case((draw(shape, float32),), attrs)


resample = defop(
    "resample",
    inputs="x",
    attrs={"axis": REQUIRED, "size": REQUIRED, "mode": "linear", "align": False},
    dtype=floating,
    shape=_resample_shape,
    reference=_resample_reference,
    vjp=_resample_vjp,
    normal=front_axis,
    lower=Pull(_resample_pull),
    cases=_resample_cases,
    facts=Facts(linear=True, batching=Batching.AXIS),
)
"""One axis of `interpolate`: `x` resampled to `size`."""
