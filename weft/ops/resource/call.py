"""Calls on queues, tables and other resources: nodes that run between programs and may wait."""

from __future__ import annotations

from typing import Any

from weft.errors import DTypeError
from weft.ir.dtype import DType, as_dtype
from weft.ir.record import record
from weft.ir.shape import Shape
from weft.ops.boundary.state import from_outside, no_cases
from weft.ops.declaration import NO_GRADIENT, Boundary, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.resource.spec import ResourceSpec

record(ResourceSpec)


def _dtypes(*_: DType, resource: Any, dtypes: Any, shapes: Any, **__: Any) -> tuple[DType, ...]:
    if not isinstance(resource, ResourceSpec):
        raise DTypeError(f"resource: expected a ResourceSpec, got {resource!r}")
    if len(dtypes) != len(shapes):
        raise DTypeError(f"expected a shape for each of {len(dtypes)} results, got {len(shapes)}")
    return tuple(map(as_dtype, dtypes))


def _shapes(*_: Shape, shapes: tuple[Shape, ...], **__: Any) -> tuple[Shape, ...]:
    return shapes


resource_call = defop(
    "resource_call",
    inputs="*xs",
    attrs={
        "resource": REQUIRED,
        "method": REQUIRED,
        "options": (),
        "dtypes": (),
        "shapes": (),
        "waits": True,
    },
    dtype=_dtypes,
    shape=_shapes,
    reference=from_outside,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, ordered=True, host=True),
)
"""A method of a resource, called when the node runs.

Attributes: `resource`, a `ResourceSpec`; `method`; `options`, pairs of a name and a plain value;
`dtypes` and `shapes` of the results, of which the shapes may be unknown or partly so; `waits`,
whether the method may wait for what others do (a dequeue does, a size does not).
"""
