"""Unary elementwise functions with options; `declared` has the others."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise import declared
from weft.eager.functions.elementwise.from_op import written
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded
from weft.eager.tensor.elementwise import promoted
from weft.ir.dtype import bfloat16, float16, float32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["fix", "frac", "isneginf", "isposinf", "logit", "nan_to_num", "polygamma", "round"]


@written
def round(x: Any, *, decimals: int = 0) -> Tensor:
    """Round to a number of decimals; halves round to even."""
    if not decimals:
        return declared.round(x)
    if lazy_of(x).type.dtype in (float16, bfloat16):  # which may not hold x * scale
        return round(x.to(float32), decimals=decimals).to(x.dtype)
    scale = 10.0 ** builtins.abs(decimals)
    return declared.round(x * scale) / scale if decimals > 0 else declared.round(x / scale) * scale


fix: Final = declared.trunc


def frac(x: Any) -> Tensor:
    """The fractional part: `x - trunc(x)`."""
    return declared.subtract(x, declared.trunc(x))


@recorded(autocast=Autocast.FLOAT32)
def _polygamma(x: Value, *, n: int) -> Value:
    return catalogue.polygamma(x, n=n)


def polygamma(n: int, x: Any) -> Tensor:
    """The `n`-th derivative of `digamma`."""
    return _polygamma.on(kind_of(x), *promoted(x, floats=True), n=n)


@recorded(autocast=Autocast.FLOAT32)
def _logit(x: Value, *, eps: float | None) -> Value:
    return ops.logit(x, eps)


@written
def logit(x: Any, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`; `eps` clamps `x` to [eps, 1 - eps] first."""
    return _logit.on(kind_of(x), *promoted(x, floats=True), eps=eps)


@recorded
def _nan_to_num(x: Value, *, nan: float, posinf: Any, neginf: Any) -> Value:
    return ops.nan_to_num(x, nan, posinf, neginf)


@written
def nan_to_num(
    x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN by a number (0), and infinities by numbers (the dtype's limits)."""
    return _nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def isposinf(x: Any) -> Tensor:
    """Whether an element is +infinity."""
    return declared.equal(x, builtins.float("inf"))


def isneginf(x: Any) -> Tensor:
    """Whether an element is -infinity."""
    return declared.equal(x, -builtins.float("inf"))
