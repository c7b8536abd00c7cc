"""Mixed precision: the dtype in which each operation runs under autocast.

Matmuls and convolutions run in a half-precision dtype, which is fastest, and accumulate in float32,
which keeps the error small. Operations that cancel, overflow, or sum many terms run in float32.
Others run in the widest dtype of their inputs. Weights stay float32: only the casts before matmuls
round them, and gradients pass back through these casts in float32. An operation declares its policy
(`Autocast` in `weft.ops.declaration.fact`), and so does a function that is recorded as one call.
(Micikevicius et al., "Mixed Precision Training", 2017; the division is PyTorch's.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import DTypeError
from weft.ir.dtype import DType, float32, float64
from weft.ir.node import Value
from weft.ops.declaration.fact import Autocast
from weft.ops.declaration.numeric import HALVES
from weft.ops.declaration.op import Op
from weft.ops.elementwise.convert import cast


def declared(function: Callable[..., Any]) -> Autocast:
    """The policy of an operation or of a function with `autocasting`; by default the widest dtype.

    >>> from weft import ops
    >>> [declared(f).value for f in (ops.matmul, ops.softmax, ops.add, ops.tanh, ops.inner)]
    ['low', 'float32', 'widest', 'kept', 'low']
    """
    found = function.facts.autocast if isinstance(function, Op) else vars(function).get("autocast")
    return found or Autocast.WIDEST


def input_dtypes(rule: Autocast, dtypes: Sequence[DType], low: DType) -> tuple[DType, ...]:
    """The dtypes in which an operation takes inputs of the given dtypes.

    Only floating-point inputs change. With a float64 input the operation runs in float64.

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
    """The common dtype for all floating-point inputs of an operation; `None` if there are none."""
    if not floats or float64 in floats:
        return float64 if floats else None
    if rule is Autocast.LOW:
        return low
    return floats[0] if rule is Autocast.WIDEST and len(set(floats)) == 1 else float32


def cast_inputs(op: Op, args: Sequence[Any], low: DType) -> tuple[Any, ...]:
    """The inputs of an operation about to be recorded, with its autocasts.

    Args:
        args: the inputs of the call; bare numbers and arrays are not cast, because they take the
            dtype of the values beside them.
        low: the half-precision type, bfloat16 or float16.

    Raises:
        DTypeError: `low` is another type.
    """
    values = [arg for arg in args if isinstance(arg, Value)]
    wanted = iter(input_dtypes(declared(op), [value.dtype for value in values], low))
    return tuple(_as(arg, next(wanted)) if isinstance(arg, Value) else arg for arg in args)


def _as(value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else cast(value, dtype=dtype)
