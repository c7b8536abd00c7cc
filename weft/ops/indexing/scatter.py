"""Scatters other than sums: set, multiply, maximum and minimum at computed positions.

`y = x`, then for each `i` in order `y[indices[i]]` becomes `updates[i]`, or the product, maximum or
minimum of the two. The order and the result do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.ir.dtype import DType, int32
from weft.ir.node import Value
from weft.ops.declaration import Array, Case, Op, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.example import ALL, NUMBERS, count
from weft.ops.declaration.fact import IN_WIDEST
from weft.ops.declaration.numeric import widened
from weft.ops.declaration.rule import arithmetic, concrete, numeric, same, shape_argument
from weft.ops.indexing.gather import (
    check_indices,
    gather,
    index_fault,
    scatter_add,
    scatter_dtype,
    scatter_shape,
)
from weft.ops.shape.creation import full, iota

# Gradients


def _last(x: Value, indices: Value) -> Value:
    """For each index, whether no later one names the same row of `x`."""
    rows, places = concrete(x)[0], concrete(indices)
    flat = catalogue.reshape(indices, shape=(math.prod(places),))
    order = iota(shape=(math.prod(places),), dtype=int32)
    final = scatter_set(full((rows,), -1, int32), flat, order)
    return catalogue.reshape(catalogue.equal(gather(final, flat), order), shape=places)


def _beside(condition: Value, rows: Value) -> Value:
    """A condition on indices, shaped like the updates."""
    shape = concrete(condition)
    return catalogue.reshape(condition, shape=(*shape, *[1] * (len(concrete(rows)) - len(shape))))


def _set_vjp(g: Value, y: Value, x: Value, indices: Value, updates: Value) -> tuple[Any, ...]:
    zero = constant_of(0, g.dtype)
    kept = scatter_set(g, indices, catalogue.broadcast_to(zero, shape=shape_argument(updates)))
    picked = gather(g, indices)
    return kept, None, catalogue.select(_beside(_last(x, indices), picked), picked, zero)


def _extreme_vjp(g: Value, y: Value, x: Value, indices: Value, updates: Value) -> tuple[Any, ...]:
    """Equal extrema, the old row included, share the gradient, as in a reduction."""
    kept = catalogue.cast(catalogue.equal(x, y), dtype=g.dtype)
    won = catalogue.cast(catalogue.equal(updates, gather(y, indices)), dtype=g.dtype)
    share = g / scatter_add(kept, indices, won)
    return share * kept, None, gather(share, indices) * won


def _multiply_vjp(g: Value, y: Value, x: Value, indices: Value, updates: Value) -> tuple[Any, ...]:
    """The product of the other factors, correct even if some are zero.

    Correct to second order; the third derivative is wrong at three zeros in one place.
    """
    zero, one, two = (constant_of(n, g.dtype) for n in (0, 1, 2))
    if g.dtype.is_complex:
        x, y, updates = (catalogue.conj(factor) for factor in (x, y, updates))

    def split(factors: Value) -> tuple[Value, Value, Value, Value]:
        zeros = catalogue.equal(factors, zero)
        count = catalogue.cast(zeros, dtype=g.dtype)
        apart = catalogue.select(zeros, factors, zero), catalogue.select(zeros, one, factors)
        return zeros, count, *apart

    (x_zero, x_count, x_null, x_safe), (u_zero, u_count, u_null, u_safe) = split(x), split(updates)
    zeros = scatter_add(x_count, indices, u_count)
    rest = scatter_multiply(x_safe, indices, u_safe) * g  # of the nonzero factors
    nulls = scatter_add(x_null, indices, u_null)  # 0, but with their gradient
    only = catalogue.select(catalogue.equal(zeros, one), rest, zero)
    pair = catalogue.select(catalogue.equal(zeros, two), rest, zero)
    whole = y * g
    return (
        catalogue.select(x_zero, only + pair * (nulls - x_null), whole / x_safe),
        None,
        catalogue.select(
            u_zero,
            gather(only, indices) + gather(pair, indices) * (gather(nulls, indices) - u_null),
            gather(whole, indices) / u_safe,
        ),
    )


# References and cases


def _in_order(combine: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    @widened
    def reference(x: Array, indices: Array, updates: Array) -> Array:
        found = check_indices(indices, x.shape[0]).reshape(-1)
        y = np.array(x)
        rows = updates.reshape(len(found), *x.shape[1:])
        for i, row in zip(found, rows, strict=True):
            y[i] = combine(y[i], row)
        return y

    return reference


def _cases(dtypes: tuple[DType, ...]) -> Iterator[Case]:
    indices = np.array([[3, 0], [1, 3], [2, 3]], np.int32)
    for dtype in dtypes:
        x, updates = count((4, 5), dtype), count((3, 2, 5), dtype)
        if dtype.is_floating:
            x, updates = x * x.dtype.type(0.125), updates[:, ::-1] * x.dtype.type(0.26)
        yield Case((x, indices, np.array(updates, order="C")), rtol=2e-6)
    yield Case((count((4,)) * -1, indices.astype(np.int64), count((3, 2)) / 4 - 1.1))
    yield Case((count((4, 2)), np.array(2, np.int32), count((2,)) + 4.5))
    yield Case((count((4, 2)), np.zeros((0,), np.int32), count((0, 2))))
    yield Case((count((4, 0)), indices[:, 0], count((3, 0))))


def _scatter(
    name: str, combine: str, both: Callable[..., Array], vjp: Any, kind: Any = numeric
) -> Op:
    def dtype(x: DType, indices: DType, updates: DType) -> DType:
        return kind(scatter_dtype(x, indices, updates))

    return defop(
        name,
        inputs="x indices:int32 updates",
        dtype=dtype,
        shape=scatter_shape,
        reference=_in_order(both),
        vjp=vjp,
        lower=Opaque("scatter", combine=combine, fault=index_fault),
        cases=lambda: _cases(ALL if kind is same else NUMBERS),
        facts=IN_WIDEST,
    )


scatter_set = _scatter("scatter_set", "", lambda old, new: new, _set_vjp, same)
"""Rows of `x` replaced; for repeated indices the last row wins."""
scatter_multiply = _scatter("scatter_multiply", "multiply", np.multiply, _multiply_vjp, arithmetic)
scatter_max = _scatter("scatter_max", "maximum", np.maximum, _extreme_vjp)
scatter_min = _scatter("scatter_min", "minimum", np.minimum, _extreme_vjp)
