"""Bounds checks of values: they raise when the graph runs, without splitting the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.dtype import DType, int32
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, show
from weft.ops.declaration import Array, Case, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.elementwise.compare import greater_equal, less_equal, logical_and, logical_not
from weft.ops.elementwise.convert import cast

__all__ = ["count_outside"]


def _dtype(x: DType, wrong: DType, **_: Any) -> DType:
    if wrong is not int32:
        raise DTypeError(f"wrong: expected int32, got {wrong}")
    return x


def _shape(x: Shape, wrong: Shape, *, text: str) -> Shape:
    if wrong not in (None, ()):
        raise ShapeError(f"wrong: expected a scalar, got shape {show(wrong)}")
    return x


def _reference(x: Array, wrong: Array, *, text: str) -> Array:
    if wrong:
        raise OutOfRangeError(_said(text, int(wrong)))
    return x


def _said(text: str, count: int) -> str:
    return f"{text}, got {count} {'others' if count > 1 else 'other'}"


def _fault(node: Node, position: int, value: int) -> str:
    return _said(node.attrs["text"], value)


def _vjp(g: Value, y: Value, x: Value, wrong: Value, *, text: str) -> tuple[Value, None]:
    return check(g, wrong, text=text), None


def _cases() -> Iterator[Case]:
    none = np.zeros((), np.int32)
    for x in (np.arange(6.0).reshape(2, 3), np.float32(2.5), np.zeros((0, 3)), np.arange(3)):
        yield Case((np.asarray(x), none), {"text": "expected nothing"})
    yield Case((np.linspace(0, 1, 100001), none), {"text": "nothing"}, differentiate=False)


check = defop(
    "check",
    inputs="x wrong",
    attrs={"text": REQUIRED},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    vjp=_vjp,
    lower=Opaque("check", fault=_fault),
    cases=_cases,
    facts=Facts(autocast=Autocast.KEPT, linear=True),
    partial=True,
)
"""`x` if `wrong` is 0; otherwise an error when the graph runs, with `text` and the count."""


def count_outside(x: Value, low: float, high: float) -> Value:
    """How many numbers are outside [low, high], for `check`; NaN counts as outside."""
    least, most = (constant_of(limit, x.dtype) for limit in (low, high))
    return count_not(logical_and(greater_equal(x, least), less_equal(x, most)))


def count_not(good: Value) -> Value:
    """How many conditions do not hold, for `check`."""
    return catalogue.sum(cast(logical_not(good), dtype=int32))
