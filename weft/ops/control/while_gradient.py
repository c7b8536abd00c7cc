"""while_loop_grad: the way back through a loop of which nobody knows how many turns it takes.

The forward loop runs again and keeps its carries on a stack, which grows with the turns. Then
`backward(*carry, *captured, *gs, *sums)` gives the cotangents before a turn from those after it,
and the sums of the captured values' cotangents so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import TensorType
from weft.ir.shape import Shape, known
from weft.ops.base import HOSTED, NO_GRADIENT, Array, Case, Opaque, catalogue, defop
from weft.ops.call import Subgraph, retyped, trace, types_of
from weft.ops.control.agreement import same_dtypes
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import AS_GIVEN
from weft.ops.function_reference import prepared


def _dtype(*dtypes: DType, backward: Subgraph, **_: Any) -> tuple[DType, ...]:
    taken = [t.dtype for t in backward.input_types][: len(dtypes)]
    same_dtypes("inputs as the backward function takes them (inputs | backward)", dtypes, taken)
    return tuple([t.dtype for t in backward.output_types])


def _whole(shapes: Sequence[Shape], backward: Subgraph) -> Subgraph:
    """The backward function for inputs of these shapes."""
    return retyped(backward, [*shapes, *[t.shape for t in backward.input_types[len(shapes) :]]])


def _shape(*shapes: Shape, backward: Subgraph, **_: Any) -> tuple[Shape, ...]:
    return tuple([t.shape for t in _whole(shapes, backward).output_types])


def _normal(
    *shapes: Shape, condition: Subgraph, body: Subgraph, backward: Subgraph, carried: int,
    captured: int,
) -> Mapping[str, Any]:  # fmt: skip
    given = shapes[: carried + captured]
    return {
        "condition": retyped(condition, given), "body": retyped(body, given),
        "backward": _whole(shapes, backward), "carried": carried, "captured": captured,
    }  # fmt: skip


def _reference(
    *arrays: Array, condition: Subgraph, body: Subgraph, backward: Subgraph, carried: int,
    captured: int, fast: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    holds, turn, back = (prepared(f, fast) for f in (condition, body, backward))
    fixed = arrays[carried : carried + captured]
    gs = list(arrays[carried + captured :])
    carry, stack = list(arrays[:carried]), list[list[Array]]()
    while holds([*carry, *fixed])[0]:
        stack.append(carry)
        carry = turn([*carry, *fixed])
    sums = [_zeros(t) for t in backward.input_types[len(arrays) :]]
    count = len(gs)
    while stack:
        found = back([*stack.pop(), *fixed, *gs, *sums])
        gs, sums = found[:count], found[count:]
    return (*gs, *sums)


def _zeros(kind: TensorType) -> Array:
    return np.zeros(known(kind.shape), kind.dtype.numpy)


def _fast(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    return _reference(*arrays, **attrs, fast=True)


def _cases() -> Iterator[Case]:
    x, w, g = np.array([0.5, 1.0]), np.array([1.5, 2.0]), np.array([1.0, -1.0])
    kinds = types_of([x, w])
    back = trace(lambda x, w, g, s: (g * w, s + g * x), [*kinds, *types_of([g, w])])
    small = trace(lambda x, w: catalogue.less(catalogue.sum(x), 20.0), kinds)
    attrs = {
        "condition": small, "body": trace(lambda x, w: x * w, kinds), "backward": back,
        "carried": 1, "captured": 1,
    }  # fmt: skip
    yield Case((x, w, g), attrs)


while_loop_grad = defop(
    "while_loop_grad",
    inputs="*xs",
    attrs=dict.fromkeys(("condition", "body", "backward", "carried", "captured"), REQUIRED),
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_fast,
    vjp=NO_GRADIENT,
    lower=Opaque(HOSTED),
    cases=_cases,
    outputs=-1,
    partial=True,
    normal=_normal,
    facts=AS_GIVEN,
)
"""Cotangents of the carry before a `while_loop`, then of captured values.

Inputs: those of the loop, then cotangents of the carry after it, as far as it has some.
"""
