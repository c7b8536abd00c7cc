"""Arithmetic on elements of computed tensors, without recording.

Results have the same bits: they are the exact ones rounded once, as those of float32 are by way of
float64 (Figueroa, "When is double rounding innocuous?", 1995). Whatever else an operation may give
(infinity, NaN, an integer that wraps) is left to the recorded operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from weft.eager.functions.elementwise.inplace import Methods as InPlace
from weft.eager.functions.elementwise.operator import (
    MINUS,
    MODULO,
    OVER,
    OVER_WHOLE,
    PLUS,
    TIMES,
    power_of,
)
from weft.eager.functions.elementwise.operator import Methods as Operators
from weft.eager.functions.indexing.element import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INTEGERS,
    Element,
    Number,
    Scalar,
    rounded,
    scalar,
)
from weft.eager.record.pending.global_mark import inferring
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.tensor import Tensor
from weft.ir.node import TensorType
from weft.ops.override import DOORS
from weft.ops.refusal import REFUSABLE, refuse
from weft.runtime.flight import aloft, land_for

Bounds = Mapping[np.dtype[Any], tuple[float, float]]
FLOATS: Final[Bounds] = {
    d: (-float(np.finfo(d).max), float(np.finfo(d).max)) for d in (FLOAT32, FLOAT64)
}
WHOLE: Final[Bounds] = {d: (int(np.iinfo(d).min) - 1, int(np.iinfo(d).max) + 1) for d in INTEGERS}
ALL: Final[Bounds] = {**FLOATS, **WHOLE}
"""Dtypes that are calculated with; a result lies between these, or the operation is recorded."""
EXACT: Final = 1 << 24
"""Integers up to this size are numbers of float32."""


def _result(
    x: Number, other: Any, calculate: Callable[[Any, Any], Any], dtypes: Bounds = ALL,
    compares: bool = False, swapped: bool = False,
) -> Scalar | None:  # fmt: skip
    """What an operation gives, if it is calculated here.

    Args:
        dtypes: those for which it is calculated.
        compares: whether it gives a truth.
        swapped: whether the other operand comes first.
    """
    now = trace.now
    if now.depth or now.inspect is not None or now.autocast is not None or now.duals:
        return None
    first = None if inferring.open else x.number()
    if first is None:
        return None
    a, dtype = first
    bounds = dtypes.get(dtype)
    if bounds is None:
        return None
    b = _operand(other, dtype, bounds)
    if b is None:
        return None
    try:
        result = calculate(b, a) if swapped else calculate(a, b)
    except ZeroDivisionError:
        return None
    if compares:
        return scalar(result, BOOL)
    return scalar(result, dtype) if bounds[0] < result < bounds[1] else None


def _operand(other: Any, dtype: np.dtype[Any], bounds: tuple[float, float]) -> Any:
    """An operand as a number of this dtype; `None` if it is none."""
    kind = type(other)
    if kind is Element or kind is Scalar:
        second = other.number()
        return second[0] if second is not None and second[1] is dtype else None
    if kind is Tensor:
        return _computed(other, dtype)
    if kind is float:
        if dtype is FLOAT64:
            return other
        return rounded(other) if dtype is FLOAT32 and bounds[0] < other < bounds[1] else None
    if kind is int and bounds[0] < other < bounds[1]:
        if dtype is FLOAT32 or dtype is FLOAT64:
            return float(other) if abs(other) <= EXACT else None
        return other
    return None


def _computed(x: Tensor, dtype: np.dtype[Any]) -> Any:
    """The number that a tensor of rank 0 holds; `None` if it takes more than reading it."""
    lazy = x.shown
    array = lazy.array
    if array is None or array.ndim or array.dtype is not dtype or x.window is not None:
        return None
    if type(lazy.type) is not TensorType or (lazy.tracked and trace.now.grad_mode):
        return None
    if aloft:
        land_for(id(array))
    return array.item()


def _of_two(
    calculate: Callable[[Any, Any], Any], recorded: Any, dtypes: Bounds = ALL,
    compares: bool = False, swapped: bool = False,
) -> Any:  # fmt: skip
    """An operator; `recorded` is the operation that it stands for."""

    def method(self: Number, other: Any) -> Any:
        try:
            found = _result(self, other, calculate, dtypes, compares, swapped)
            if found is None:
                return recorded(other, self) if swapped else recorded(self, other)
            return found
        except REFUSABLE as error:
            return refuse(error, recorded.__name__, recorded, (self, other), {})

    DOORS.add(method.__code__)
    return method


def _in_place(calculate: Callable[[Any, Any], Any], recorded: Any, dtypes: Bounds) -> Any:
    """An operator in place."""

    def method(self: Number, other: Any) -> Any:
        with computing:  # other threads may change it
            found = _result(self, other, calculate, dtypes)
            if found is not None and self.write(found):
                return self
            return recorded(self, other)

    return method


def _of_one(calculate: Callable[[Any], Any], recorded: Any) -> Any:
    """An operator with one operand."""

    def method(self: Number) -> Any:
        found = _result(self, 0, lambda a, _: calculate(a))
        return recorded(self) if found is None else found

    return method


def _power(self: Number, other: Any) -> Any:
    """`x ** other`; a square is a product."""
    square = type(other) is int and other == 2
    found = _result(self, self, operator.mul) if square else None
    return power_of(self, other) if found is None else found


for _name, _calculate, _recorded, _dtypes in (
    ("add", operator.add, PLUS, ALL),
    ("sub", operator.sub, MINUS, ALL),
    ("mul", operator.mul, TIMES, ALL),
    ("truediv", operator.truediv, OVER, FLOATS),
    ("floordiv", operator.floordiv, OVER_WHOLE, WHOLE),
    ("mod", operator.mod, MODULO, WHOLE),
):
    setattr(Number, f"__{_name}__", _of_two(_calculate, _recorded, _dtypes))
    setattr(Number, f"__r{_name}__", _of_two(_calculate, _recorded, _dtypes, swapped=True))
    _changing = getattr(InPlace, f"__i{_name}__")
    setattr(Number, f"__i{_name}__", _in_place(_calculate, _changing, _dtypes))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _recorded = getattr(Operators, f"__{_name}__")
    setattr(Number, f"__{_name}__", _of_two(getattr(operator, _name), _recorded, compares=True))
Number.__neg__ = _of_one(operator.neg, Operators.__neg__)
Number.__abs__ = _of_one(abs, Operators.__abs__)
Number.__pow__ = _power
