"""Image resizing whose positions begin at the corner pixel, as in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import Shape, normal_axis, show
from weft.ops.declaration import (
    BY_EXPANSION,
    Array,
    Case,
    Composite,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import draw, widened
from weft.ops.declaration.rule import concrete, floating
from weft.ops.image.resample import cubic_weights

__all__ = ["corner_resize"]

MODES: Final = ("nearest", "linear", "cubic", "area")


def _matrix(old: int, new: int, mode: str, align: bool) -> Array:
    """The weights of old pixels in new ones, (new, old).

    New pixel i lies at i * old / new; with `align`, at i * (old - 1) / (new - 1). In the mode
    `area` it covers the interval from there to the next, and weighs old pixels by their overlap.
    """
    step = np.float32(old / new)
    if align and new > 1:
        step = np.float32((old - 1) / (new - 1))
    at = np.arange(new, dtype=np.float32) * step
    rows = np.arange(new)
    found = np.zeros((new, old))
    if mode == "area":
        ends = (np.arange(new, dtype=np.float32) + 1) * step
        low, high = at[:, None], ends[:, None]
        left = np.arange(max(old, int(np.ceil(ends.max()))))
        overlap = np.maximum(np.minimum(high, left + 1) - np.maximum(low, left), 0) / (high - low)
        found += overlap[:, :old]
        found[:, -1] += overlap[:, old:].sum(1)  # beyond the edge is the last pixel
        return found
    if mode == "nearest":
        places = np.floor(at + 0.5) if align else np.floor(at)
        found[rows, np.minimum(places.astype(int), old - 1)] = 1
        return found
    low = np.floor(at).astype(int)
    part = (at - low).astype(np.float64)
    taps = [(0, 1 - part), (1, part)]
    if mode == "cubic":  # TensorFlow's table has 1,024 steps between two pixels
        part = np.rint(part * 1024) / 1024
        taps = [(k - 1, w) for k, w in enumerate(cubic_weights(part))]
    for offset, weights in taps:
        np.add.at(found, (rows, np.clip(low + offset, 0, old - 1)), weights)
    return found


def _shape(x: Shape, *, axis: int, size: int, mode: str, align: bool) -> Shape:
    if mode not in MODES or size < 1:
        raise ShapeError(f"expected a size and a mode of {MODES}, got {size} and {mode!r}")
    if x is None:
        return None
    at = normal_axis(axis, len(x))
    if x[at] == 0:
        raise ShapeError(f"expected pixels along axis {axis}, got {show(x)}")
    return (*x[:at], size, *x[at + 1 :])


def _expand(x: Value, *, axis: int, size: int, mode: str, align: bool) -> Value:
    dims = concrete(x)
    at = normal_axis(axis, len(dims))
    half = x.dtype.size == 2
    wide = catalogue.cast(x, dtype=float32) if half else x
    matrix = constant_of(_matrix(dims[at], size, mode, align).astype(wide.dtype.numpy))
    before, after = int(np.prod(dims[:at])), int(np.prod(dims[at + 1 :]))
    rows = catalogue.reshape(wide, shape=(before, dims[at], after))
    y = catalogue.reshape(catalogue.matmul(matrix, rows), shape=(*dims[:at], size, *dims[at + 1 :]))
    return catalogue.cast(y, dtype=x.dtype) if half else y


@widened
def _reference(x: Array, *, axis: int, size: int, mode: str, align: bool) -> Array:
    matrix = _matrix(x.shape[axis], size, mode, align).astype(x.dtype)
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _cases() -> Iterator[Case]:
    for mode in MODES:
        for align in (False, True):
            attrs: dict[str, Any] = {"axis": 1, "size": 7, "mode": mode, "align": align}
            yield Case((draw((2, 4, 3), float32),), attrs)
    yield Case((draw((5, 2), float32),), {"axis": 0, "size": 2, "mode": "area", "align": False})


corner_resize = defop(
    "corner_resize",
    inputs="x",
    attrs={"axis": REQUIRED, "size": REQUIRED, "mode": "linear", "align": False},
    dtype=floating,
    shape=_shape,
    reference=_reference,
    vjp=BY_EXPANSION,
    lower=Composite(_expand),
    cases=_cases,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, linear=True),
)
"""One axis resized to `size`; new pixels begin at the corner pixel of the old ones."""
