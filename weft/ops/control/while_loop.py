"""while_loop: a body applied to a carry while a condition on it holds.

while condition(*carry, *captured):
    *carry, *rows = body(*carry, *captured)

The rows are stacked. Their number is unknown until the loop ends, so the first dimension of a stack
is unknown. Only a `scan` of length `STACKED` reads a stack, as gradients do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, bool_, float64
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.call import Subgraph, retyped, trace, types_of
from weft.ops.control.agreement import merged_shapes, same_dtypes
from weft.ops.control.function_reference import prepared
from weft.ops.control.region import region
from weft.ops.control.scan import UNKNOWN_ITERATIONS
from weft.ops.declaration import Array, Case, catalogue
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count


def _dtype(
    *dtypes: DType, condition: Subgraph, body: Subgraph, carried: int, **_: Any
) -> tuple[DType, ...]:
    for name, function in (("condition", condition), ("body", body)):
        taken = [t.dtype for t in function.input_types]
        same_dtypes(f"inputs as the {name} takes them (inputs | {name})", dtypes, taken)
    told = [t.dtype for t in condition.output_types]
    if told != [bool_]:
        raise DTypeError(f"expected a condition that gives one bool, got {_in_a_row(told)}")
    given = [t.dtype for t in body.output_types]
    kept = given[:carried]
    what = "a body that gives its carry back as it got it (before | after)"
    same_dtypes(what, dtypes[:carried], kept)
    return tuple(given)


def _in_a_row(dtypes: list[DType]) -> str:
    return ", ".join(map(str, dtypes)) or "nothing"


def _shape(
    *shapes: Shape, condition: Subgraph, body: Subgraph, carried: int, maximum: Any
) -> tuple[Shape, ...]:
    if isinstance(maximum, int) and maximum < 0:
        raise ShapeError(f"expected a maximum of 0 or more, got {maximum}")
    told = retyped(condition, shapes).output_types[0].shape
    if not compatible(told, ()):
        raise ShapeError(f"expected a condition of shape (), got {show(told)}")
    found = retyped(body, shapes)
    before = [t.shape for t in found.input_types[:carried]]
    what = "a body that gives its carry back as it got it (before | after)"
    after = [t.shape for t in found.output_types]
    finals = merged_shapes(what, before, after[:carried])
    return (*finals, *[None if s is None else (None, *s) for s in after[carried:]])


def _normal(*shapes: Shape, condition: Subgraph, body: Subgraph, **attrs: Any) -> Mapping[str, Any]:
    return {"condition": retyped(condition, shapes), "body": retyped(body, shapes), **attrs}


def _reference(
    *arrays: Array, condition: Subgraph, body: Subgraph, carried: int, maximum: int | None,
    fast: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    holds, iteration = prepared(condition, fast), prepared(body, fast)
    carry, captured = list(arrays[:carried]), arrays[carried:]
    left = -1 if maximum is None else maximum
    rows: list[list[Array]] = []
    while left and holds([*carry, *captured])[0]:
        found = iteration([*carry, *captured])
        carry = found[:carried]
        if len(found) > carried:
            rows.append(found[carried:])
        left -= 1
    kinds = body.output_types[carried:]
    if not rows:
        return (*carry, *[np.zeros((0, *known(t.shape)), t.dtype.numpy) for t in kinds])
    return (*carry, *[np.stack(column) for column in zip(*rows, strict=True)])


def _fast(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    return _reference(*arrays, **attrs, fast=True)


def _cases() -> Iterator[Case]:
    i, x = np.array(0, np.int32), count((2, 3), float64) * 0.1
    w = np.array([0.9, 1.1, 0.8])
    for arrays in ((i, x, w), (i, x.astype(np.float32), w.astype(np.float32))):
        kinds = types_of(arrays)
        body = trace(lambda i, x, w: (i + 1, catalogue.sin(x) * w), kinds)
        counted = trace(lambda i, x, w: catalogue.less(i, 3), kinds)
        small = trace(
            lambda i, x, w: catalogue.less(catalogue.sum(x), catalogue.cast(i, dtype=x.dtype)),
            kinds,
        )
        smooth = arrays[1].dtype == np.float64  # dtypes that the body was traced for
        for condition, maximum in ((counted, 5), (counted, 2), (small, 4), (counted, 0)):
            attrs = {"condition": condition, "body": body, "carried": 2, "maximum": maximum}
            yield Case(arrays, attrs, differentiate=smooth)
        attrs = {"condition": counted, "body": body, "carried": 2}
        yield Case(arrays, attrs, differentiate=False)


def _iterations(maximum: int | None, **_: Any) -> float:
    return UNKNOWN_ITERATIONS if maximum is None else min(maximum, UNKNOWN_ITERATIONS)


while_loop = region(
    "while_loop",
    inputs="*xs",
    attrs={"condition": REQUIRED, "body": REQUIRED, "carried": REQUIRED, "maximum": None},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_fast,
    cases=_cases,
    normal=_normal,
    runs=_iterations,
    unbounded=True,
)
"""The final carry, once `condition(*carry, *captured)` is false, then stacks of other results.

Inputs: `carried` initial values, then loop-invariant values. The body returns the next carry, and
values to be stacked. The loop ends after `maximum` iterations, if given.
"""
