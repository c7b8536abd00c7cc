"""Operations that cut arrays and put them together: slice, pad, concatenate, split, stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Dim, Dims, Shape, known, merge, normal_axis, show
from weft.ops.base import (
    BY_EXPANSION,
    REQUIRED,
    UNKNOWN,
    Array,
    Case,
    Composite,
    Pull,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.indexing import FIRST, LAST
from weft.ops.rule import (
    add_dims,
    attribute_shape,
    checked_shape,
    concrete,
    front_axis,
    front_new_axis,
    per_axis,
    same,
    shape_argument,
)
from weft.ops.sample import ALL, count, each_dtype

# slice and its transpose, unslice


def _ranges(dims: Dims, begin: Any, end: Any, strides: Any) -> list[Any]:
    """A `range` of positions for each axis, by Python's rules; `None` where it is unknown."""
    strides = (1,) * len(begin) if strides == () else strides
    if not len(begin) == len(end) == len(strides) == len(dims):
        raise ShapeError(
            f"expected begin, end and strides of {len(dims)} entries, one an axis of {show(dims)},"
            f" got {len(begin)}, {len(end)} and {len(strides)}"
        )
    if 0 in strides:
        raise ShapeError(f"strides: expected no zero, got {tuple(strides)}")
    return [_range(*entry) for entry in zip(dims, begin, end, strides, strict=True)]


def _range(dim: Dim, begin: int | None, end: int | None, stride: int | None) -> range | None:
    if begin is None or end is None or stride is None:
        return None
    if dim is not None:
        return range(*slice(begin, end, stride).indices(dim))
    # The length may be known all the same: a whole axis is not, but x[2:5] may still be shorter.
    return range(0) if begin == end else None


def _slice_shape(x: Shape, *, begin: Any, end: Any, strides: Any) -> Shape:
    if UNKNOWN in (begin, end, strides):
        return None if x is None else (None,) * len(x)
    dims: Dims = (None,) * len(begin) if x is None else x
    found = _ranges(dims, begin, end, strides)
    return tuple(None if r is None else len(r) for r in found)


def _slices(x: tuple[int, ...], attrs: dict[str, Any]) -> tuple[slice, ...]:
    """The slices as NumPy takes them, in which -1 would mean the last element."""
    return tuple(
        slice(r.start, None if r.stop < 0 else r.stop, r.step) if r else slice(0, 0)
        for r in _ranges(x, **attrs)
    )


def _slice_normal(x: Dims, **attrs: Any) -> Mapping[str, Any]:
    """Bounds inside the array; the end just past the last element, strides of 1 where it is one."""
    found: list[tuple[int, int, int]] = []
    for r in _ranges(x, **attrs):
        if len(r) > 1:
            past = r[-1] + (1 if r.step > 0 else -1)
            found.append((r.start, past if past >= 0 else FIRST, r.step))
        else:
            found.append((r.start, r.start + 1, 1) if r else (0, 0, 1))
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
    vjp=lambda g, y, x, **attrs: (unslice(g, shape=shape_argument(x), **attrs),),
    normal=_slice_normal,
    lower=Pull(_slice_pull),
    cases=_slice_cases,
    partial=True,
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


def _unslice_pull(b: Any, index: Any, x: Any, *, shape: Any, **attrs: Any) -> Any:
    zero = b.const(0, x.dtype)
    ranges = _ranges(shape, **attrs)
    if 0 in x.shape:
        return zero
    found: list[Any] = []
    conditions: list[Any] = []
    for i, r, d in zip(index, ranges, x.shape, strict=True):
        low = r if r.step > 0 else r[::-1]
        distance = i - low.start
        conditions.append(b.inside(i, low.start, low.stop))
        if low.step > 1:
            conditions.append(b.inside(distance % low.step, 0, 1))
        step = b.clamp(distance // low.step, 0, d)
        found.append(step if r.step > 0 else d - 1 - step)
    value = x(tuple(found))
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
)

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
            parts.insert(0, catalogue.flip(_cut(x, axis, edge, edge + low), axes=(axis,)))
        if high:
            last = d - edge
            parts.append(catalogue.flip(_cut(x, axis, last - high, last), axes=(axis,)))
        x = concatenate(*parts, axis=axis) if len(parts) > 1 else x
    return x


def _cut(x: Value, axis: int, begin: int, end: int) -> Value:
    rank = len(concrete(x))
    return slice_(
        x,
        begin=tuple(begin if i == axis else 0 for i in range(rank)),
        end=tuple(end if i == axis else LAST for i in range(rank)),
    )


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
)


def moved(x: Value, axis: int, by: int) -> Value:
    """`y[i] = x[i - by]` along an axis, zeros where that is outside; the shape must be known."""
    size = concrete(x)[axis]
    if abs(by) >= size:
        return catalogue.broadcast_to(constant_of(0, x.dtype), shape=concrete(x))
    kept = _cut(x, axis, max(-by, 0), min(size, size - by))
    rank = len(concrete(x))
    pair = (max(by, 0), max(-by, 0))
    return pad(kept, paddings=tuple(pair if i == axis else (0, 0) for i in range(rank)))


# concatenate, stack


def _concatenate_shape(*xs: Shape, axis: Any) -> Shape:
    if not xs:
        raise ShapeError("expected at least one input")
    ranked = next((x for x in xs if x is not None), None)
    if ranked is None:
        return None
    if axis is UNKNOWN or axis is None:
        return (None,) * len(ranked)
    if not ranked:
        raise ShapeError("expected inputs of rank at least 1, got shape ()")
    at = normal_axis(axis, len(ranked))
    along = add_dims(*[None if x is None else x[at] for x in xs if x is None or len(x) > at])
    rest: Shape = None
    for x in xs:
        open_ = None if x is None else tuple(None if i == at else d for i, d in enumerate(x))
        try:
            rest = merge(rest, open_)
        except ShapeError:
            shapes = " and ".join(map(show, xs))
            raise ShapeError(f"expected shapes equal but for axis {at}, got {shapes}") from None
    assert rest is not None
    return tuple(along if i == at else d for i, d in enumerate(rest))


def _concatenate_pull(b: Any, index: Any, *xs: Any, axis: int) -> Any:
    at = normal_axis(axis, len(xs[0].shape))
    start, found = 0, None
    for x in xs:
        size = x.shape[at]
        if 0 in x.shape:
            continue
        inner = b.clamp(index[at] - start, 0, size)
        value = x((*index[:at], inner, *index[at + 1 :]))
        here = b.inside(index[at], start, start + size)
        found = value if found is None else b.select(here, value, found)
        start += size
    return b.const(0, xs[0].dtype) if found is None else found


def _concatenate_vjp(g: Value, y: Value, *xs: Value, axis: int) -> tuple[Value, ...]:
    if len(xs) == 1:
        return (g,)
    at = axis if axis >= 0 else axis + _rank(xs[0])
    sizes = [_dim(x, at) for x in xs]
    return split.all(g, sizes=sizes, axis=at)


def _rank(x: Value) -> int:
    if x.shape is None:
        return len(concrete(x))  # raises, so that it is asked again later
    return len(x.shape)


def _dim(x: Value, axis: int) -> Any:
    dim = None if x.shape is None else x.shape[axis]
    return catalogue.shape_of(x)[axis] if dim is None else dim


def _concatenate_cases() -> Iterator[Case]:
    for dtype in ALL:
        parts = (count((2, 3), dtype), count((2, 1), dtype), count((2, 4), dtype))
        yield Case(parts, {"axis": 1})
    yield Case((count((2, 3)), count((0, 3)), count((1, 3))), {"axis": 0})
    yield Case((count((2, 3)),), {"axis": -1})
    yield Case((count((0,)), count((0,))), {"axis": 0})
    yield Case((count((2, 3, 33)), count((2, 2, 33))), {"axis": -2})


concatenate = defop(
    "concatenate",
    inputs="*xs",
    attrs={"axis": 0},
    dtype=same,
    shape=_concatenate_shape,
    reference=lambda *xs, axis: np.concatenate(xs, axis),
    vjp=_concatenate_vjp,
    normal=front_axis,
    lower=Pull(_concatenate_pull),
    cases=_concatenate_cases,
    partial=True,
)


def _stack_shape(*xs: Shape, axis: int) -> Shape:
    x: Shape = None
    for other in xs:
        try:
            x = merge(x, other)
        except ShapeError:
            shapes = " and ".join(map(show, xs))
            raise ShapeError(f"expected inputs of one shape, got {shapes}") from None
    if x is None or axis is UNKNOWN:
        return None
    at = normal_axis(axis, len(x) + 1)
    return (*x[:at], len(xs), *x[at:])


def _stack_expand(*xs: Value, axis: int) -> Value:
    return concatenate(*[catalogue.expand_dims(x, axis=axis) for x in xs], axis=axis)


stack = defop(
    "stack",
    inputs="x *xs",
    attrs={"axis": 0},
    dtype=same,
    shape=_stack_shape,
    reference=lambda *xs, axis: np.stack(xs, axis),
    vjp=lambda g, y, *xs, axis: unstack.all(g, count=len(xs), axis=axis),
    normal=front_new_axis,
    lower=Composite(_stack_expand),
    cases=lambda: (
        [Case((count((2, 3)), -count((2, 3))), {"axis": axis}) for axis in (0, 1, 2, -1, -3)]
        + [Case((count(()), count(()), count(())))]
    ),
    partial=True,
)

# split, unstack


def _split_shape(x: Shape, *, sizes: Any, axis: Any) -> tuple[Shape, ...]:
    if x is None or axis is UNKNOWN:
        return (None if x is None else (None,) * len(x),) * len(sizes)
    at = normal_axis(axis, len(x))
    if any(n is not None and n < 0 for n in sizes):
        raise ShapeError(f"sizes: expected numbers that are not negative, got {sizes}")
    total = add_dims(*sizes)
    if total is not None and x[at] is not None and total != x[at]:
        raise ShapeError(f"sizes: expected a sum of x.shape[{at}] == {x[at]}, got {sizes}")
    return tuple((*x[:at], n, *x[at + 1 :]) for n in sizes)


def _split_reference(x: Array, *, sizes: Any, axis: int) -> tuple[Array, ...]:
    parts = np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []
    return tuple(map(np.ascontiguousarray, parts))


def _split_expand(x: Value, *, sizes: Any, axis: int) -> tuple[Value, ...]:
    at = normal_axis(axis, len(concrete(x)))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(_cut(x, at, s, s + n) for s, n in zip(starts, sizes, strict=True))


split = defop(
    "split",
    inputs="x",
    attrs={"sizes": REQUIRED, "axis": 0},
    dtype=same,
    shape=_split_shape,
    reference=_split_reference,
    vjp=lambda g, y, x, *, sizes, axis: (concatenate(*g, axis=axis),),
    normal=front_axis,
    lower=Composite(_split_expand),
    cases=lambda: [
        *each_dtype((2, 6), sizes=(1, 3, 2), axis=1),
        Case((count((5, 2)),), {"sizes": (5,)}),
        Case((count((5, 2)),), {"sizes": (0, 5), "axis": -2}),
    ],
    outputs=-1,
    partial=True,
)


def _unstack_shape(x: Shape, *, count: int, axis: Any) -> tuple[Shape, ...]:
    if x is None or axis is UNKNOWN:
        return (None,) * count
    at = normal_axis(axis, len(x))
    if x[at] not in (None, count):
        raise ShapeError(f"count: expected x.shape[{at}] == {x[at]}, got {count}")
    return ((*x[:at], *x[at + 1 :]),) * count


def _unstack_expand(x: Value, *, count: int, axis: int) -> tuple[Value, ...]:
    at = normal_axis(axis, len(concrete(x)))
    return tuple(catalogue.squeeze(_cut(x, at, i, i + 1), axes=(at,)) for i in range(count))


def _unstack_reference(x: Array, *, count: int, axis: int) -> tuple[Array, ...]:
    return tuple(np.array(part) for part in np.moveaxis(x, axis, 0))


unstack = defop(
    "unstack",
    inputs="x",
    attrs={"count": REQUIRED, "axis": 0},
    dtype=same,
    shape=_unstack_shape,
    reference=_unstack_reference,
    vjp=lambda g, y, x, *, count, axis: (stack(*g, axis=axis),),
    normal=front_axis,
    lower=Composite(_unstack_expand),
    cases=lambda: [
        Case((count((2, 3, 4)),), {"count": (2, 3, 4)[axis], "axis": axis})
        for axis in (0, 1, 2, -1)
    ],
    outputs=-1,
    partial=True,
)
