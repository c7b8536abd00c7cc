"""switch: one of several branches, selected by an index when the program runs.

`cond` is a switch of two branches; the first is that of a false predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, int32
from weft.ir.shape import Shape, compatible, show
from weft.ops.call import Subgraph, retyped, trace, types_of
from weft.ops.control.agreement import merged_shapes, same_dtypes
from weft.ops.control.function_reference import prepared
from weft.ops.control.region import region
from weft.ops.declaration import Array, Case, catalogue
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count


def _dtype(index: DType, *dtypes: DType, branches: Sequence[Subgraph]) -> tuple[DType, ...]:
    if not branches:
        raise ShapeError("expected at least one branch, got none")
    if index is not int32:
        raise DTypeError(f"expected an index of int32, got {index}")
    first = [t.dtype for t in branches[0].output_types]
    for number, branch in enumerate(branches):
        taken = [t.dtype for t in branch.input_types]
        same_dtypes(f"operands as branch {number} takes them (operands | branch)", dtypes, taken)
        given = [t.dtype for t in branch.output_types]
        what = f"branches that give the same types (branch 0 | branch {number})"
        same_dtypes(what, first, given)
    return tuple(first)


def _shape(index: Shape, *shapes: Shape, branches: Sequence[Subgraph]) -> tuple[Shape, ...]:
    if not compatible(index, ()):
        raise ShapeError(f"expected an index of shape (), got {show(index)}")
    given = [[t.shape for t in retyped(b, shapes).output_types] for b in branches]
    found: tuple[Shape, ...] = tuple(given[0])
    for number, other in enumerate(given):
        what = f"branches that give the same shapes (branch 0 | branch {number})"
        found = merged_shapes(what, found, other)
    return found


def _normal(index: Shape, *shapes: Shape, branches: Sequence[Subgraph]) -> Mapping[str, Any]:
    return {"branches": tuple([retyped(branch, shapes) for branch in branches])}


def _reference(
    index: Array, *xs: Array, branches: Sequence[Subgraph], fast: bool = False
) -> tuple[Array, ...]:
    chosen = branches[min(max(int(index), 0), len(branches) - 1)]
    return tuple(prepared(chosen, fast)(xs))


def _fast(index: Array, *xs: Array, branches: Sequence[Subgraph]) -> tuple[Array, ...]:
    return _reference(index, *xs, branches=branches, fast=True)


def _cases() -> Iterator[Case]:
    x, w = count((2, 3)) * np.float32(0.25), count((3,)) * np.float32(0.5)
    for wide in (np.float32, np.float64):
        xs = x.astype(wide), w.astype(wide)
        kinds = types_of(xs)
        branches = (
            trace(lambda x, w: (catalogue.tanh(x * w), w), kinds),
            trace(lambda x, w: (x * x, catalogue.sum(x, axes=(0,))), kinds),
            trace(lambda x, w: (x, w + 1), kinds),
        )
        differentiate = wide is np.float64  # the branches are traced for their result types
        for index in (-1, 0, 1, 2, 7):
            number = np.array(index, np.int32)
            yield Case((number, *xs), {"branches": branches}, differentiate=differentiate)
    only = trace(lambda x: catalogue.exp(x), types_of([x.astype(np.float64)]))
    yield Case((np.array(0, np.int32), x.astype(np.float64)), {"branches": (only,)})


switch = region(
    "switch",
    inputs="index *xs",
    attrs={"branches": REQUIRED},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_fast,
    cases=_cases,
    normal=_normal,
    runs=lambda branches: 1 / len(branches),
)
"""The result of one of `branches` (functions) for the inputs after the index.

The index is an int32 scalar, clamped to the range of branches.
"""
