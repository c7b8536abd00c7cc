"""Mixed precision: the element type in which each operation runs while casts are automatic.

Products run in a half-precision type, where hardware is fastest and float32 sums keep the error
small. What loses digits by cancellation, overflows, or adds up many terms runs in float32. Other
operations take what they are given, promoted to the widest input. Weights stay float32: only the
casts that feed products round them, and gradients come back through those casts in float32.
An operation declares which of these it is (`Autocast` in `weft.ops.declaration.fact`), as does
a function that is recorded as one call. (Micikevicius et al., "Mixed Precision
Training", 2017; the division is PyTorch's.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import DTypeError
from weft.ir.dtype import DType, float32, float64
from weft.ir.node import Value
from weft.ops.base import Op
from weft.ops.declaration.fact import Autocast
from weft.ops.declaration.numeric import HALVES
from weft.ops.elementwise.convert import cast


def declared(function: Callable[..., Any]) -> Autocast:
    """What an operation, or a function with `autocasting`, declares; else the widest type.

    >>> from weft import ops
    >>> [declared(f).value for f in (ops.matmul, ops.softmax, ops.add, ops.tanh, ops.inner)]
    ['low', 'float32', 'widest', 'kept', 'low']
    """
    found = function.facts.autocast if isinstance(function, Op) else vars(function).get("autocast")
    return found or Autocast.WIDEST


def input_dtypes(rule: Autocast, dtypes: Sequence[DType], low: DType) -> tuple[DType, ...]:
    """The element types in which an operation takes inputs of the given types.

    What is not floating stays as it is. A float64 input is a wish for digits: the operation then
    runs in float64.

    Args:
        low: the half-precision type, bfloat16 or float16.

    Raises:
        DTypeError: `low` is another type.
    """
    if low not in HALVES:
        raise DTypeError(f"autocast: expected bfloat16 or float16, got {low}")
    if rule is Autocast.KEPT:
        return tuple(dtypes)
    to = _common([dtype for dtype in dtypes if dtype.is_floating], rule, low)
    return tuple(to if to is not None and d.is_floating else d for d in dtypes)


def _common(floats: Sequence[DType], rule: Autocast, low: DType) -> DType | None:
    """The one type for all floating inputs of an operation; `None` where there are none."""
    if not floats or float64 in floats:
        return float64 if floats else None
    if rule is Autocast.LOW:
        return low
    return floats[0] if rule is Autocast.WIDEST and len(set(floats)) == 1 else float32


def cast_inputs(op: Op, args: Sequence[Any], low: DType) -> tuple[Any, ...]:
    """The inputs of an operation about to be recorded, with the casts that it declares.

    Args:
        args: as the operation is called; bare numbers and arrays stay as they are, because they
            take the type of the values beside them.
        low: the half-precision type, bfloat16 or float16.

    Raises:
        DTypeError: `low` is another type.
    """
    values = [arg for arg in args if isinstance(arg, Value)]
    wanted = iter(input_dtypes(declared(op), [value.dtype for value in values], low))
    return tuple(_as(arg, next(wanted)) if isinstance(arg, Value) else arg for arg in args)


def _as(value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else cast(value, dtype=dtype)
