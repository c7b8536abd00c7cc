"""Quotients and remainders of integers; a divisor of 0 raises."""

from __future__ import annotations

from functools import wraps
from typing import Any, Final

import numpy as np

from weft.eager.functions.elementwise.from_op import Binary, of_two
from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.errors import DivisionError
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary import host
from weft.ops.boundary.routine import routine
from weft.ops.elementwise import combination

ZERO: Final = "expected integer divisors other than 0"


def dividing(name: str, operator: bool = False) -> Binary:
    """`of_two` for quotients and remainders; arrays give 0 for a divisor of 0, as in NumPy.

    The function raises `DivisionError`; for a tensor of divisors, when it is computed.
    """
    plain = of_two(name, operator=operator)

    @wraps(plain)
    def function(x: Any, other: Any) -> Any:
        return plain(x, divisor(name, x, other))

    return function


def divisor(name: str, x: Any, other: Any) -> Any:
    """The divisor of `x`, checked if both are integers.

    Raises:
        DivisionError: it is 0; for a tensor, when it is computed.
    """
    if isinstance(other, Handle):
        whole = _is_whole(other) and other.rules is TORCH
        return _checked.on(kind_of(other), lazy_of(other)) if whole and _is_whole(x) else other
    if type(other) is int and other == 0 and _is_whole(x) and x.rules is TORCH:
        raise DivisionError.here(f"{name}: {ZERO}, got 0")
    return other


def _is_whole(x: Any) -> bool:
    return x.lazy.type.dtype.kind in "biu" if isinstance(x, Handle) else isinstance(x, int)


@recorded(differentiable=False)
def _checked(y: Value) -> Value:
    return host.call(_nonzero, y, types_of=[(y.dtype, known(y.shape))], title="division")[0]


@routine
def _nonzero(y: Array) -> Array:
    if not y.all():
        raise DivisionError(f"{ZERO}, got 0 at {tuple(map(int, np.argwhere(y == 0)[0]))}")
    return y


def truncated(x: Any, other: Any) -> Any:
    """`x / other`, rounded towards 0."""
    return _cut_off.on(kind_of(x, other), *promoted(x, divisor("divide", x, other)))


_cut_off = recorded(combination.cut_off)
