"""Operations that pad arrays (pad, mirror_pad), and shifts by padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Shape, known, show
from weft.ops.declaration import (
    BY_EXPANSION,
    Array,
    Case,
    Composite,
    Pull,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count, each_dtype
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.rule import (
    add_dims,
    concrete,
    per_axis,
    same,
)
from weft.ops.indexing.slicing import cut, slice_
from weft.ops.indexing.subscript import LAST

# pad


@per_axis
def _pad_shape(x: Shape, *, paddings: Any, **_: Any) -> Shape:
    assert x is not None
    if len(paddings) != len(x) or any(len(p) != 2 for p in paddings):
        raise ShapeError(
            f"paddings: expected {len(x)} pairs (before, after) for x of shape {show(x)},"
            f" got {paddings}"
        )
    if any(n is not None and n < 0 for pair in paddings for n in pair):
        raise ShapeError(f"paddings: expected numbers that are not negative, got {paddings}")
    return tuple(add_dims(d, *pair) for d, pair in zip(x, paddings, strict=True))


def _pad_pull(b: Any, index: Any, x: Any, *, paddings: Any, value: Any) -> Any:
    filler = b.const(value, x.dtype)
    if 0 in x.shape:
        return filler
    conditions = [
        b.inside(i, low, low + d)
        for i, (low, high), d in zip(index, paddings, x.shape, strict=True)
        if low or high
    ]
    found = x(
        tuple(
            b.clamp(i - low, 0, d) if low or high else i
            for i, (low, high), d in zip(index, paddings, x.shape, strict=True)
        )
    )
    for condition in conditions:
        found = b.select(condition, found, filler)
    return found


def _pad_vjp(g: Value, y: Value, x: Value, *, paddings: Any, **_: Any) -> tuple[Value]:
    begin = tuple(low for low, _ in paddings)
    end = tuple(-high if high else LAST for _, high in paddings)
    return (slice_(g, begin=begin, end=end),)


def _pad_cases() -> Iterator[Case]:
    yield from each_dtype((2, 3), paddings=((1, 0), (2, 1)), value=1)
    for shape, paddings in (
        ((17,), ((3, 4),)),
        ((2, 3, 2), ((0, 0), (1, 1), (0, 5))),
        ((), ()),
        ((0, 2), ((1, 1), (0, 0))),
    ):
        yield Case((count(shape),), {"paddings": paddings})


pad = defop(
    "pad",
    inputs="x",
    attrs={"paddings": REQUIRED, "value": 0},
    dtype=same,
    shape=_pad_shape,
    reference=lambda x, paddings, value: _padded(x, paddings, value),
    vjp=_pad_vjp,
    lower=Pull(_pad_pull),
    cases=_pad_cases,
    partial=True,
    facts=Facts(linear=True),
)


def _padded(x: Array, paddings: Any, value: Any) -> Array:
    y = np.full(known(_pad_shape(x.shape, paddings=paddings)), value, x.dtype)
    inner = tuple(slice(low, low + d) for (low, _), d in zip(paddings, x.shape, strict=True))
    y[inner] = x
    return y


def _mirror_shape(x: Shape, *, paddings: Any, mode: str) -> Shape:
    if mode not in ("reflect", "symmetric"):
        raise ShapeError(f"mode: expected reflect or symmetric, got {mode!r}")
    y = _pad_shape(x, paddings=paddings)
    if x is None or y is None:
        return y
    edge = 1 if mode == "reflect" else 0
    for i, (d, pair) in enumerate(zip(x, paddings, strict=True)):
        if d is not None and any(n is not None and n > max(d - edge, 0) for n in pair):
            raise ShapeError(
                f"paddings: expected at most {max(d - edge, 0)} on axis {i} of {show(x)}"
                f" in mode {mode}, got {pair}"
            )
    return y


def _mirror_expand(x: Value, *, paddings: Any, mode: str) -> Value:
    edge = 1 if mode == "reflect" else 0
    for axis, (low, high) in enumerate(paddings):
        d = concrete(x)[axis]
        parts = [x]
        if low:
            parts.insert(0, catalogue.flip(cut(x, axis, edge, edge + low), axes=(axis,)))
        if high:
            last = d - edge
            parts.append(catalogue.flip(cut(x, axis, last - high, last), axes=(axis,)))
        x = catalogue.concatenate(*parts, axis=axis) if len(parts) > 1 else x
    return x


def _mirror_cases() -> Iterator[Case]:
    for mode in ("reflect", "symmetric"):
        yield Case((count((3, 5)),), {"paddings": ((2, 1), (0, 4)), "mode": mode})
        yield Case((count((1, 2)),), {"paddings": ((0, 0), (1, 1)), "mode": mode})


mirror_pad = defop(
    "mirror_pad",
    inputs="x",
    attrs={"paddings": REQUIRED, "mode": "reflect"},
    dtype=same,
    shape=_mirror_shape,
    reference=lambda x, paddings, mode: np.pad(x, paddings, mode) if x.ndim else x,
    vjp=BY_EXPANSION,
    lower=Composite(_mirror_expand),
    cases=_mirror_cases,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, linear=True),
)


def moved(x: Value, axis: int, by: int) -> Value:
    """`y[i] = x[i - by]` along an axis, zero if out of bounds; the shape must be known."""
    size = concrete(x)[axis]
    if abs(by) >= size:
        return catalogue.broadcast_to(constant_of(0, x.dtype), shape=concrete(x))
    kept = cut(x, axis, max(-by, 0), min(size, size - by))
    rank = len(concrete(x))
    pair = (max(by, 0), max(-by, 0))
    return pad(kept, paddings=tuple(pair if i == axis else (0, 0) for i in range(rank)))
