"""loop_counts: integers counted by a loop, known before the step runs if its inputs are.

Sizes may depend on it: how many elements a loop appends to a growing array.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir.dtype import DType, int32
from weft.ir.node import Node, Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph, trace, types_of
from weft.ops.control.function_reference import prepared
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import NO_GRADIENT, Array, Case, Composite, catalogue, defop, op_of
from weft.ops.declaration.attribute import (
    KNOWN_RULES,
    REQUIRED,
    UNKNOWN,
    is_complete,
    known_value,
    operand_attribute,
)
from weft.ops.declaration.fact import Autocast, Facts

LONGEST: Final = 100_000
"""Iterations counted before the step runs; the sizes of longer loops are unknown."""


def _dtype(*dtypes: DType, counts: int, **_: Any) -> DType:
    if any([d is not int32 for d in dtypes[:counts]]):
        raise DTypeError(f"expected {counts} int32 counts first, got {dtypes[:counts]}")
    return int32


def _counted(
    arrays: list[Array], condition: Subgraph, body: Subgraph, carried: int, most: int | None
) -> list[Array] | None:
    """The carry after the loop; `None` beyond `most` iterations."""
    holds, step = prepared(condition), prepared(body)
    carry, captured = arrays[:carried], arrays[carried:]
    while holds([*carry, *captured])[0]:
        if most is not None:
            if not most:
                return None
            most -= 1
        carry = step([*carry, *captured])
    return carry


def _reference(
    *arrays: Array, condition: Subgraph, body: Subgraph, carried: int, counts: int
) -> Array:
    found = _counted(list(arrays), condition, body, carried, None)
    assert found is not None
    return np.array(found[:counts], np.int32).reshape(counts)


def _expand(*xs: Value, condition: Subgraph, body: Subgraph, carried: int, counts: int) -> Value:
    found = while_loop.all(*xs, condition=condition, body=body, carried=carried)
    return catalogue.stack(*found[:counts], axis=0)


def _cases() -> Iterator[Case]:
    arrays = (np.array(0, np.int32), np.array(2, np.int32), np.array(5, np.int32))
    kinds = types_of(arrays)
    condition = trace(lambda n, i, end: catalogue.less(i, end), kinds)
    body = trace(lambda n, i, end: (n + i, i + 1), kinds)
    attrs = {"condition": condition, "body": body, "carried": 2, "counts": 1}
    yield Case(arrays, attrs, differentiate=False)


loop_counts = defop(
    "loop_counts",
    inputs="*xs",
    attrs=dict.fromkeys(("condition", "body", "carried", "counts"), REQUIRED),
    dtype=_dtype,
    shape=lambda *_, counts, **__: (counts,),
    reference=_reference,
    vjp=NO_GRADIENT,
    lower=Composite(_expand),
    cases=_cases,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT),
)
"""The first `counts` carried values, int32 scalars, after a `while_loop` with the same arguments.

It is a shape operand: `known_value` runs the loop if all its inputs are known.
"""


def _known(node: Node) -> Any:
    seen: dict[Value, Array | None] = {}
    given = [a for a in [_evaluated(v, seen) for v in node.inputs] if a is not None]
    unknown = (None,) * node.attrs["counts"]
    if len(given) < len(node.inputs):
        return unknown
    key = tuple([(a.dtype.str, a.shape, a.tobytes()) for a in given])
    found = _run(key, **node.attrs)
    return unknown if found is None else found


@functools.lru_cache(maxsize=64)
def _run(
    key: tuple[tuple[str, tuple[int, ...], bytes], ...], condition: Subgraph, body: Subgraph,
    carried: int, counts: int,
) -> tuple[int, ...] | None:  # fmt: skip
    arrays = [np.frombuffer(data, dtype).reshape(shape) for dtype, shape, data in key]
    carry = _counted(arrays, condition, body, carried, LONGEST)
    return None if carry is None else tuple([int(n) for n in carry[:counts]])


def _evaluated(value: Value, seen: dict[Value, Array | None]) -> Array | None:
    """The value, folded from constants; `None` if it depends on anything else."""
    if value not in seen:
        seen[value] = None
        node, known = value.node, known_value(value) if value.dtype.is_integer else UNKNOWN
        if op_of(node) is CONSTANT:
            seen[value] = node.attrs["value"].array
        elif known is not UNKNOWN and is_complete(known):
            seen[value] = np.asarray(known, value.dtype.numpy)
        elif node.inputs and not op_of(node).stateful:
            _compute(node, seen)
    return seen[value]


def _compute(node: Node, seen: dict[Value, Array | None]) -> None:
    arrays = [a for a in [_evaluated(v, seen) for v in node.inputs] if a is not None]
    if len(arrays) < len(node.inputs):
        return
    count, op = len(node.data_inputs), op_of(node)
    supplied = dict(zip(node.operands, map(operand_attribute, arrays[count:]), strict=True))
    found = op.reference(*arrays[:count], **{**op.attrs, **node.attrs, **supplied})
    results = (found,) if op.outputs == 1 else found
    seen.update(zip(node.outputs, map(np.asarray, results), strict=True))


KNOWN_RULES["loop_counts"] = _known
