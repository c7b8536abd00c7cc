"""Collectives between the examples of a batch, along a named axis of `vmap`.

All are formulas of one operation, which gathers a value of all examples. Its second input, the
index of the example, tells the batch that it belongs to: only there does the index differ between
examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import DType, float32
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.declaration import Array, Case, Composite, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.declaration.numeric import draw
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather

__all__ = ["BETWEEN_EXAMPLES"]


def _dtype(x: DType, index: DType, **_: Any) -> DType:
    return x


def _shape(x: Shape, index: Shape, *, size: int) -> Shape:
    return None if x is None else (size, *x)


def _expand(x: Value, index: Value, *, size: int) -> Value:
    return catalogue.broadcast_to(x, shape=(size, *concrete(x)))


def _reference(x: Array, index: Array, *, size: int) -> Array:
    return np.broadcast_to(x, (size, *x.shape))


def _vjp(g: Value, y: Value, x: Value, index: Value, *, size: int) -> tuple[Value, None]:
    return _scattered(g, index, size=size), None


def _cases() -> Iterator[Case]:
    yield Case((draw((2, 3), float32), np.array(0)), {"size": 1})


gather_examples = defop(
    "gather_examples",
    inputs="x index:int64",
    attrs={"size": REQUIRED},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    vjp=_vjp,
    lower=Composite(_expand),
    cases=_cases,
    facts=Facts(autocast=Autocast.KEPT),
)
"""The values of all `size` examples along a new first axis; outside `vmap`, copies of one."""


def _gathered(x: Value, index: Value, *, size: int) -> Value:
    return gather_examples(x, index, size=size)


def _reduced(x: Value, index: Value, *, size: int, reduction: str) -> Value:
    return getattr(catalogue, reduction)(_gathered(x, index, size=size), axes=(0,))


def _scattered(x: Value, index: Value, *, size: int) -> Value:
    return gather(_reduced(x, index, size=size, reduction="sum"), index, axis=0)


def _exchanged(x: Value, index: Value, *, size: int) -> Value:
    return gather(_gathered(x, index, size=size), index, axis=1)


def _permuted(x: Value, index: Value, *, size: int, pairs: Sequence[tuple[int, int]]) -> Value:
    source, there = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for a, b in pairs:
        source[b], there[b] = a, True
    sent = gather(_gathered(x, index, size=size), gather(constant_of(source), index), axis=0)
    nothing = constant_of(np.zeros((), x.dtype.numpy))
    return catalogue.select(gather(constant_of(there), index), sent, nothing)


BETWEEN_EXAMPLES: Final[Mapping[str, Callable[..., Value]]] = {
    "all_gather": _gathered, "all_reduce": _reduced, "all_to_all": _exchanged,
    "permute_parts": _permuted, "reduce_scatter": _scattered,
}  # fmt: skip
"""By the operation between ranks that does the same."""
