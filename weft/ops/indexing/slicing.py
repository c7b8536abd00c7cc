"""Operations that slice arrays: slice, unslice, slice_update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Dim, Dims, Shape, merge, show
from weft.ops.declaration import Array, Case, Pull, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.example import count, each_dtype
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.rule import (
    attribute_shape,
    checked_shape,
    concrete,
    same,
    shape_argument,
    sum_like,
)
from weft.ops.indexing.subscript import FIRST, LAST

# slice and its transpose, unslice


class _Range(NamedTuple):
    """Positions like Python's `range`, which does not take extents."""

    start: int
    stop: int
    step: int

    @property
    def length(self) -> int:
        """The number of positions."""
        count = -((self.start - self.stop) // self.step)
        return count if count > 0 else 0


def _ranges(dims: Dims, begin: Any, end: Any, strides: Any) -> list[Any]:
    """A range of positions for each axis, by Python's rules; `None` if unknown."""
    strides = (1,) * len(begin) if strides == () else strides
    if not len(begin) == len(end) == len(strides) == len(dims):
        raise ShapeError(
            f"expected begin, end and strides of {len(dims)} entries, one an axis of {show(dims)},"
            f" got {len(begin)}, {len(end)} and {len(strides)}"
        )
    if 0 in strides:
        raise ShapeError(f"strides: expected no zero, got {tuple(strides)}")
    return [_range(*entry) for entry in zip(dims, begin, end, strides, strict=True)]


def _range(dim: Dim, begin: int | None, end: int | None, stride: int | None) -> _Range | None:
    if begin is None or end is None or stride is None:
        return None
    if dim is not None:
        return _Range(_inside(begin, dim, stride), _inside(end, dim, stride), stride)
    # Without the dimension, only the length of an empty slice is known.
    return _Range(0, 0, 1) if begin == end else None


def _inside(position: int, dim: int, step: int) -> int:
    """A bound of a slice: counted from the front and clamped to the array."""
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    if position < 0:
        position = position + dim
    if position < low:
        return low
    return position if position < high else high


def _slice_shape(x: Shape, *, begin: Any, end: Any, strides: Any) -> Shape:
    if UNKNOWN in (begin, end, strides):
        return None if x is None else (None,) * len(x)
    dims: Dims = (None,) * len(begin) if x is None else x
    found = _ranges(dims, begin, end, strides)
    return tuple(None if r is None else r.length for r in found)


def _slices(x: tuple[int, ...], attrs: dict[str, Any]) -> tuple[slice, ...]:
    """The slices for NumPy, without an end of -1, which would mean the last element."""
    return tuple(
        slice(r.start, None if r.stop < 0 else r.stop, r.step) if r.length else slice(0, 0)
        for r in _ranges(x, **attrs)
    )


def _slice_normal(x: Dims, **attrs: Any) -> Mapping[str, Any]:
    """Normalized bounds: inside the array, the end just past the last element, stride 1 for one."""
    found: list[tuple[int, int, int]] = []
    for r in _ranges(x, **attrs):
        if r.length > 1:
            past = r.start + (r.length - 1) * r.step + (1 if r.step > 0 else -1)
            found.append((r.start, past if past >= 0 else FIRST, r.step))
        else:
            found.append((r.start, r.start + 1, 1) if r.length else (0, 0, 1))
    names = ("begin", "end", "strides")
    return {name: tuple(entry[i] for entry in found) for i, name in enumerate(names)}


def _slice_pull(b: Any, index: Any, x: Any, **attrs: Any) -> Any:
    ranges = _ranges(x.shape, **attrs)
    return x(tuple(i * r.step + r.start for i, r in zip(index, ranges, strict=True)))


def _slice_cases() -> Iterator[Case]:
    yield from each_dtype((4, 7), begin=(1, -2), end=(3, FIRST), strides=(1, -2))
    for begin, end, strides in (
        ((0, 0), (LAST, LAST), ()),
        ((-3, 5), (-1, 1), (1, -1)),
        ((2, 2), (2, 5), (1, 1)),
        ((LAST, LAST), (FIRST, FIRST), (-2, -3)),
    ):
        yield Case((count((5, 9)),), {"begin": begin, "end": end, "strides": strides})
    yield Case((count((0, 3)),), {"begin": (0, 1), "end": (LAST, LAST)})
    yield Case((count(()),), {"begin": (), "end": ()})


slice_ = defop(
    "slice",
    inputs="x",
    attrs={"begin": REQUIRED, "end": REQUIRED, "strides": ()},
    dtype=same,
    shape=_slice_shape,
    reference=lambda x, **attrs: np.array(x[_slices(x.shape, attrs)], order="C"),
    fast=lambda x, **attrs: x[(*_slices(x.shape, attrs), ...)],
    vjp=lambda g, y, x, **attrs: (unslice(g, shape=shape_argument(x), **attrs),),
    normal=_slice_normal,
    lower=Pull(_slice_pull),
    cases=_slice_cases,
    partial=True,
    facts=Facts(linear=True, view=True),
)


def _unslice_shape(x: Shape, *, shape: Any, begin: Any, end: Any, strides: Any) -> Shape:
    whole = attribute_shape(shape=shape)
    if whole is not None:
        merge(x, _slice_shape(whole, begin=begin, end=end, strides=strides))
    return whole


def _unslice_reference(x: Array, *, shape: Any, **attrs: Any) -> Array:
    y = np.zeros(shape, x.dtype)
    y[_slices(shape, attrs)] = x
    return y


def _unslice_normal(_: Dims, *, shape: Any, **attrs: Any) -> Mapping[str, Any]:
    dims = checked_shape(shape)
    return {"shape": dims, **_slice_normal(dims or (), **attrs)}


def _positions(b: Any, index: Any, ranges: list[_Range]) -> tuple[tuple[Any, ...], list[Any]]:
    """The clamped position of `index` within the slice, and the conditions that it is inside.

    No range may be empty.
    """
    found: list[Any] = []
    conditions: list[Any] = []
    for i, r in zip(index, ranges, strict=True):
        low = r if r.step > 0 else _Range(r.start + (r.length - 1) * r.step, r.start + 1, -r.step)
        distance = i - low.start
        conditions.append(b.inside(i, low.start, low.stop))
        if low.step > 1:
            conditions.append(b.inside(distance % low.step, 0, 1))
        step = b.clamp(distance // low.step, 0, r.length)
        found.append(step if r.step > 0 else r.length - 1 - step)
    return tuple(found), conditions


def _unslice_pull(b: Any, index: Any, x: Any, *, shape: Any, **attrs: Any) -> Any:
    zero = b.const(0, x.dtype)
    if 0 in x.shape:
        return zero
    found, conditions = _positions(b, index, _ranges(shape, **attrs))
    value = x(found)
    for condition in conditions:
        value = b.select(condition, value, zero)
    return value


def _unslice_cases() -> Iterator[Case]:
    for case in _slice_cases():
        (x,) = case.inputs
        attrs = {"strides": (), **case.attrs}
        y = x[_slices(x.shape, attrs)]
        yield Case((np.array(y),), {**attrs, "shape": x.shape})


unslice = defop(
    "unslice",
    inputs="x",
    attrs={"shape": REQUIRED, "begin": REQUIRED, "end": REQUIRED, "strides": ()},
    dtype=same,
    shape=_unslice_shape,
    reference=_unslice_reference,
    vjp=lambda g, y, x, *, shape, **attrs: (slice_(g, **attrs),),
    normal=_unslice_normal,
    lower=Pull(_unslice_pull),
    cases=_unslice_cases,
    partial=True,
    facts=Facts(linear=True),
)

# slice_update


def _update_shape(x: Shape, update: Shape, **attrs: Any) -> Shape:
    if x is not None:
        part = _slice_shape(x, **attrs)
        if update is not None and part is not None and not _spreads(update, part):
            raise ShapeError(
                f"update: expected a shape that broadcasts to that of the slice, {show(part)},"
                f" got {show(update)}"
            )
    return x


def _spreads(update: Dims, part: Dims) -> bool:
    lead = len(part) - len(update)
    pairs = zip(update, part[max(lead, 0) :], strict=False)
    return lead >= 0 and all(d in (1, None) or p in (d, None) for d, p in pairs)


def _update_reference(x: Array, update: Array, **attrs: Any) -> Array:
    y = np.array(x)
    y[_slices(x.shape, attrs)] = update
    return y


def _update_vjp(g: Value, y: Value, x: Value, update: Value, **attrs: Any) -> tuple[Value, Value]:
    nothing = constant_of(0, g.dtype)
    return slice_update(g, nothing, **attrs), sum_like(slice_(g, **attrs), update)


def _update_pull(b: Any, index: Any, x: Any, update: Any, **attrs: Any) -> Any:
    old, ranges = x(index), _ranges(x.shape, **attrs)
    if not all(ranges) or 0 in update.shape:
        return old
    found, conditions = _positions(b, index, ranges)
    tail = found[len(found) - len(update.shape) :]
    new = update(tuple(0 if d == 1 else i for d, i in zip(update.shape, tail, strict=True)))
    for condition in conditions:
        new = b.select(condition, new, old)
    return new


def _update_cases() -> Iterator[Case]:
    for case in _slice_cases():
        (x,) = case.inputs
        part = x[_slices(x.shape, {"strides": (), **case.attrs})]
        yield Case((x, np.array(part[::-1] if part.ndim else part)), case.attrs)
    attrs = {"begin": (LAST, 1), "end": (FIRST, 6), "strides": (-2, 2)}
    for shape in ((), (1,), (3,), (2, 1), (2, 3), (1, 3)):
        yield Case((count((4, 7)), -count(shape)), attrs)
    yield Case((count((4, 7)), count((1,))), {"begin": (0, 5), "end": (2, 5)})


slice_update = defop(
    "slice_update",
    inputs="x update",
    attrs={"begin": REQUIRED, "end": REQUIRED, "strides": ()},
    dtype=same,
    shape=_update_shape,
    reference=_update_reference,
    vjp=_update_vjp,
    normal=lambda x, update, **attrs: _slice_normal(x, **attrs),
    lower=Pull(_update_pull),
    cases=_update_cases,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, linear=True),
)
"""`x` with a slice replaced by `update`, which broadcasts to it."""


def cut(x: Value, axis: int, begin: int, end: int) -> Value:
    """The slice of `x` from `begin` to `end` along one axis; the shape must be known."""
    rank = len(concrete(x))
    return slice_(
        x,
        begin=tuple(begin if i == axis else 0 for i in range(rank)),
        end=tuple(end if i == axis else LAST for i in range(rank)),
    )
