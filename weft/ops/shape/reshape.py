"""Reshape, transpose, flip, tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, normal_axes, normal_axis, show
from weft.ops.declaration import Alias, Case, Pull, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.example import count, each_dtype
from weft.ops.declaration.fact import Batching, Facts
from weft.ops.declaration.rule import (
    checked_shape,
    concrete,
    front_new_axis,
    mul_dims,
    per_axis,
    reshape_like,
    same,
)  # fmt: skip


def dimension(x: Value, axis: int) -> Any:
    """A dimension of `x`: a number if known, otherwise the value that computes it."""
    dim = None if x.shape is None else x.shape[axis]
    return catalogue.shape_of(x)[axis] if dim is None else dim


def axis_of(name: str, x: Value, axis: int) -> int:
    """An axis of `x`, an argument of function `name`, counted from the front.

    Raises:
        ShapeError: the rank is unknown, or the axis is outside; names the user's line.
    """
    if x.rank is None:
        raise ShapeError.here(f"{name}: expected a known rank, got {x!r}")
    try:
        return normal_axis(axis, x.rank)
    except ShapeError as error:
        raise ShapeError.here(f"{name}: {error}") from None


# reshape


def _reshape_shape(x: Shape, *, shape: Any) -> Shape:
    if shape is UNKNOWN:
        return None
    dims: Dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if dims.count(-1) > 1:
        raise ShapeError(f"shape: expected at most one -1, got {dims}")
    checked_shape(tuple(None if d == -1 else d for d in dims))
    open_ = [i for i, d in enumerate(dims) if d is None or d == -1]
    found = tuple(None if i in open_ else d for i, d in enumerate(dims))
    total = None if x is None else mul_dims(*x)
    if total is None or len(open_) > 1:
        return found
    rest = mul_dims(*[d for d in found if d is not None])
    assert rest is not None
    fits = total == rest if not open_ else rest > 0 and total % rest == 0
    if fits and open_:
        return (*found[: open_[0]], total // rest, *found[open_[0] + 1 :])
    if not fits and not (open_ and dims[open_[0]] is None):
        raise ShapeError(f"expected a shape of {total} elements like x {show(x)}, got {dims}")
    return found


def _reshape_cases() -> Iterator[Case]:
    yield from each_dtype((2, 6), shape=(3, -1))
    for old, new in (((4,), (2, 2)), ((), (1, 1)), ((0, 3), (3, 0)), ((5, 1), (5,))):
        yield Case((count(old),), {"shape": new})


def _reshape_normal(x: Shape, *, shape: Any) -> Mapping[str, Any]:
    return {"shape": _reshape_shape(x, shape=shape)}


reshape = defop(
    "reshape",
    inputs="x",
    attrs={"shape": REQUIRED},
    dtype=same,
    shape=_reshape_shape,
    reference=lambda x, shape: np.reshape(x, shape),
    vjp=lambda g, y, x, **_: (reshape_like(g, x),),
    normal=_reshape_normal,
    lower=Alias(),
    cases=_reshape_cases,
    partial=True,
    facts=Facts(linear=True, view=True),
)


def _expand_dims_shape(x: Shape, *, axis: int) -> Shape:
    assert x is not None
    at = normal_axis(axis, len(x) + 1)
    return (*x[:at], 1, *x[at:])


expand_dims = defop(
    "expand_dims",
    inputs="x",
    attrs={"axis": REQUIRED},
    dtype=same,
    shape=_expand_dims_shape,
    reference=lambda x, axis: np.expand_dims(x, axis),
    vjp=lambda g, y, x, **_: (reshape_like(g, x),),
    normal=front_new_axis,
    lower=Alias(),
    cases=lambda: [Case((count((2, 3)),), {"axis": a}) for a in (0, 2, -1, -3)],
    facts=Facts(linear=True, view=True, batching=Batching.AXIS),
)


def _squeezed(x: Dims, axes: Any) -> tuple[int, ...]:
    return tuple(i for i, d in enumerate(x) if d == 1) if axes is None else _normal(axes, len(x))


def _normal(axes: Any, rank: int) -> tuple[int, ...]:
    return normal_axes((axes,) if isinstance(axes, int) else axes, rank)


def _squeeze_shape(x: Shape, *, axes: Any) -> Shape:
    assert x is not None
    if axes is None and None in x:
        return None
    gone = _squeezed(x, axes)
    for i in gone:
        if x[i] not in (1, None):
            raise ShapeError(f"expected x.shape[{i}] == 1, got shape {show(x)}")
    return tuple(d for i, d in enumerate(x) if i not in gone)


def _squeeze_normal(x: Dims, *, axes: Any) -> Mapping[str, Any]:
    return {"axes": _squeezed(x, axes)}


squeeze = defop(
    "squeeze",
    inputs="x",
    attrs={"axes": None},
    dtype=same,
    shape=_squeeze_shape,
    reference=lambda x, axes: np.squeeze(x, _squeezed(x.shape, axes)),
    vjp=lambda g, y, x, **_: (reshape_like(g, x),),
    normal=_squeeze_normal,
    lower=Alias(),
    cases=lambda: [Case((count((1, 3, 1)),), {"axes": a}) for a in (None, 0, (0, -1))],
    facts=Facts(linear=True, view=True, batching=Batching.AXES),
)

# transpose


def _permutation(perm: Any, rank: int) -> tuple[int, ...]:
    if perm is None:
        return tuple(reversed(range(rank)))
    found = tuple(normal_axis(p, rank) for p in perm)
    if sorted(found) != list(range(rank)):
        raise ShapeError(f"perm: expected a permutation of {rank} axes, got {tuple(perm)}")
    return found


def _transpose_shape(x: Shape, *, perm: Any) -> Shape:
    if perm is UNKNOWN:
        return None if x is None else (None,) * len(x)
    if x is None or (perm is not None and None in perm):
        return None if perm is None else (None,) * len(perm)
    return tuple(x[p] for p in _permutation(perm, len(x)))


def _transpose_vjp(g: Value, y: Value, x: Value, *, perm: Any) -> tuple[Value]:
    if perm is None:
        return (transpose(g),)
    rank = len(perm)
    order = _permutation(perm, rank)
    return (transpose(g, perm=tuple(order.index(i) for i in range(rank))),)


def _transpose_pull(b: Any, index: Any, x: Any, *, perm: Any) -> Any:
    order = _permutation(perm, len(x.shape))
    return x(tuple(index[order.index(i)] for i in range(len(order))))


def _transpose_cases() -> Iterator[Case]:
    yield from each_dtype((3, 5), perm=(1, 0))
    yield Case((count((2, 3, 4)),))
    yield Case((count((2, 3, 4, 5)),), {"perm": (0, 2, 3, 1)})
    yield Case((count((33, 17)),), {"perm": (-1, 0)})
    yield Case((count(()),), {"perm": ()})
    yield Case((count((0, 3)),), {"perm": (1, 0)})


def _transpose_normal(x: Dims, *, perm: Any) -> Mapping[str, Any]:
    return {"perm": _permutation(perm, len(x))}


transpose = defop(
    "transpose",
    inputs="x",
    attrs={"perm": None},
    dtype=same,
    shape=_transpose_shape,
    reference=lambda x, perm: np.transpose(x, _permutation(perm, x.ndim)),
    vjp=_transpose_vjp,
    normal=_transpose_normal,
    lower=Pull(_transpose_pull),
    cases=_transpose_cases,
    partial=True,
    facts=Facts(linear=True, view=True),
)

# flip and tile


def _flip_pull(b: Any, index: Any, x: Any, *, axes: Any) -> Any:
    turned = _normal(axes, len(x.shape))
    return x(tuple(x.shape[k] - 1 - i if k in turned else i for k, i in enumerate(index)))


def _flip_shape(x: Shape, *, axes: Any) -> Shape:
    assert x is not None
    _normal(axes, len(x))
    return x


def _flip_cases() -> Iterator[Case]:
    yield from each_dtype((3, 5), axes=(0, 1))
    for axes in (None, 0, -1, ()):
        yield Case((count((2, 17)),), {"axes": axes})
    yield Case((count((0, 3)),), {"axes": (0,)})


def _flip_normal(x: Dims, *, axes: Any) -> Mapping[str, Any]:
    return {"axes": _normal(axes, len(x))}


flip = defop(
    "flip",
    inputs="x",
    attrs={"axes": None},
    dtype=same,
    shape=_flip_shape,
    reference=lambda x, axes: np.array(np.flip(x, _normal(axes, x.ndim)), order="C"),
    vjp=lambda g, y, x, *, axes: (flip(g, axes=axes),),
    normal=_flip_normal,
    lower=Pull(_flip_pull),
    cases=_flip_cases,
    facts=Facts(linear=True, batching=Batching.AXES),
)


def _reps(reps: Any, rank: int) -> tuple[Any, ...]:
    found = (reps,) if isinstance(reps, int) else tuple(reps)
    return (1,) * (rank - len(found)) + found


@per_axis
def _tile_shape(x: Shape, *, reps: Any) -> Shape:
    assert x is not None
    times = _reps(reps, len(x))
    checked_shape(times)
    dims = (1,) * (len(times) - len(x)) + x
    return tuple(mul_dims(d, r) for d, r in zip(dims, times, strict=True))


def _tile_pull(b: Any, index: Any, x: Any, **_: Any) -> Any:
    tail = index[len(index) - len(x.shape) :]
    return x(tuple(0 if d < 2 else i % d for d, i in zip(x.shape, tail, strict=True)))


def _tile_vjp(g: Value, y: Value, x: Value, *, reps: Any) -> tuple[Value]:
    dims = concrete(x)
    times = _reps(reps, len(dims))
    dims = (1,) * (len(times) - len(dims)) + dims
    pairs = tuple(n for pair in zip(times, dims, strict=True) for n in pair)
    summed = catalogue.sum(reshape(g, shape=pairs), axes=tuple(range(0, len(pairs), 2)))
    return (reshape(summed, shape=concrete(x)),)


def _tile_cases() -> Iterator[Case]:
    yield from each_dtype((2, 3), reps=(2, 3))
    for old, reps in (((3,), 2), ((3,), (2, 2)), ((2, 3), (3,)), ((), (2,)), ((2, 0), (2, 2))):
        yield Case((count(old),), {"reps": reps})
    yield Case((count((3,)),), {"reps": (0,)})


def _tile_normal(x: Dims, *, reps: Any) -> Mapping[str, Any]:
    return {"reps": _reps(reps, len(x))}


tile = defop(
    "tile",
    inputs="x",
    attrs={"reps": REQUIRED},
    dtype=same,
    shape=_tile_shape,
    reference=lambda x, reps: np.tile(x, reps),
    vjp=_tile_vjp,
    normal=_tile_normal,
    lower=Pull(_tile_pull),
    cases=_tile_cases,
    partial=True,
    facts=Facts(linear=True),
)
