"""Matmul with broadcasting batch dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.shape import Shape, broadcast, show, size
from weft.ops.declaration import Array, Case, Opaque, catalogue, defop
from weft.ops.declaration.fact import Ability, Autocast, Facts, Sizes, Work
from weft.ops.declaration.numeric import FLOATS, draw, fitted, widened
from weft.ops.declaration.rule import same

_DTYPES: Final = (*FLOATS, types.int32, types.int64, types.complex64, types.complex128)


def _dtype(x: DType, w: DType, **_: Any) -> DType:
    if x not in _DTYPES:
        raise DTypeError(f"expected a floating or complex type, int32 or int64, got {x}")
    return same(x, w)


def _shape(x: Shape, w: Shape, transpose_x: bool, transpose_y: bool) -> Shape:
    assert x is not None and w is not None
    for name, shape in (("x", x), ("w", w)):
        if len(shape) < 2:
            raise ShapeError(f"expected {name} of rank 2 or more, got shape {show(shape)}")
    rows, inner_x = (-1, -2) if transpose_x else (-2, -1)
    inner_w, columns = (-1, -2) if transpose_y else (-2, -1)
    k, l = x[inner_x], w[inner_w]
    if k is not None and l is not None and k != l:
        places = f"x.shape[{len(x) + inner_x}] == w.shape[{len(w) + inner_w}]"
        raise ShapeError(f"inner dimensions differ: expected {places}, got {k} and {l}")
    batch = broadcast(x[:-2], w[:-2])
    assert batch is not None
    return (*batch, x[rows], w[columns])


def _product(x: Array, w: Array, transpose_x: bool, transpose_y: bool) -> Array:
    return np.matmul(
        np.swapaxes(x, -1, -2) if transpose_x else x,
        np.swapaxes(w, -1, -2) if transpose_y else w,
    )


_reference: Final = widened(_product)


def _fast(x: Array, w: Array, transpose_x: bool, transpose_y: bool) -> Array:
    """All rows of a batch in one matmul, if they share the weights."""
    if w.ndim != 2 or x.ndim < 3 or transpose_x or not (x.size and w.size and x.flags.c_contiguous):
        return _product(x, w, transpose_x, transpose_y)
    w = w.T if transpose_y else w
    rows, y = math.prod(x.shape[:-1]), np.empty((*x.shape[:-1], w.shape[1]), x.dtype)
    np.matmul(x.reshape(rows, -1), w, out=y.reshape(rows, -1))
    return y


def _by_weight(g: Any, x: Any, w: Any, transpose_x: bool, transpose_y: bool) -> Any:
    """The cotangent of `w` before its batch dimensions are summed."""
    if x.rank is not None and x.rank > 2 and w.rank == 2 and not transpose_x:
        # One tall matmul sums over the batch, instead of a batched matmul and a sum.
        flat = [catalogue.reshape(v, shape=(-1, v.shape[-1])) for v in (x, g) if v.shape[-1]]
        if len(flat) == 2:
            x, g = flat
    if transpose_y:
        return matmul(g, x, transpose_x=True, transpose_y=transpose_x)
    return matmul(x, g, transpose_x=not transpose_x)


@fitted
def _vjp(g: Any, y: Any, x: Any, w: Any, transpose_x: bool, transpose_y: bool) -> tuple[Any, ...]:
    if transpose_x:
        dx = matmul(w, g, transpose_x=transpose_y, transpose_y=True)
    else:
        dx = matmul(g, w, transpose_y=not transpose_y)
    return dx, _by_weight(g, x, w, transpose_x, transpose_y)


_SHAPES: Final = (
    ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((17, 33), (33, 19)), ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 1)), ((2, 1, 3, 4), (3, 4, 2)), ((3, 0), (0, 2)), ((0, 3), (3, 2)),
    ((70, 2), (2, 1)), ((1, 130), (130, 40)),
)  # fmt: skip


def _cases() -> Iterator[Case]:
    for i, dtype in enumerate(_DTYPES):
        for n, (p, q) in enumerate(_SHAPES if i == 0 else _SHAPES[:4]):
            x, w = draw(p, dtype, -2, 2), draw(q, dtype, -2, 2, seed=1)
            tx, ty = n % 2 == 1, n % 4 >= 2
            x = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if tx else x
            w = np.ascontiguousarray(np.swapaxes(w, -1, -2)) if ty else w
            # k terms of at most 4 each: k * k * 4 * eps/2 bounds any order of summation.
            bound = 2.4e-7 * p[-1] * p[-1]
            yield Case((x, w), {"transpose_x": tx, "transpose_y": ty}, atol=1e-6 + bound)


def _products(x: Sizes, w: Sizes, y: Sizes, transpose_x: bool, transpose_y: bool) -> int:
    return size(y) * x[-2 if transpose_x else -1]


matmul = defop(
    "matmul",
    inputs="x w",
    attrs={"transpose_x": False, "transpose_y": False},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    vjp=_vjp,
    lower=Opaque("matmul", abilities=Ability.EPILOGUE),
    cases=_cases,
    fast=_fast,
    facts=Facts(autocast=Autocast.LOW, cancels=True, fresh=True, work=Work(_products, ns=0.05)),
)
