"""Unary elementwise functions."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise.binary import eq, subtract
from weft.eager.functions.elementwise.from_op import of_bools, of_floats, of_one, rounding
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.ir.dtype import bool_, int64
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.fact import Autocast

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctanh", "asin", "asinh", "atan", "atanh", "bitwise_not", "cbrt", "ceil", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expit", "expm1", "fix", "floor",
    "frac", "i0", "invert", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lgamma", "log",
    "log1p", "log2", "log10", "logical_not", "logit", "nan_to_num", "neg", "negative", "polygamma",
    "positive", "rad2deg", "reciprocal", "relu", "round", "rsqrt", "sgn", "sigmoid", "sign",
    "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip

negative: Final = of_one("negative")
abs: Final = of_one("abs")
sign: Final = of_bools(of_one("sign"), bool_)
square: Final = of_bools(of_one("square"), int64)
exp: Final = of_one("exp", floats=True)
expm1: Final = of_one("expm1", floats=True)
log: Final = of_one("log", floats=True)
log1p: Final = of_one("log1p", floats=True)
log2: Final = of_one("log2", floats=True)
log10: Final = of_one("log10", floats=True)
sqrt: Final = of_one("sqrt", floats=True)
rsqrt: Final = of_one("rsqrt", floats=True)
cbrt: Final = of_one("cbrt", floats=True)
reciprocal: Final = of_one("reciprocal", floats=True)
sin: Final = of_one("sin", floats=True)
cos: Final = of_one("cos", floats=True)
tan: Final = of_one("tan", floats=True)
asin: Final = of_one("asin", floats=True)
acos: Final = of_one("acos", floats=True)
atan: Final = of_one("atan", floats=True)
sinh: Final = of_one("sinh", floats=True)
cosh: Final = of_one("cosh", floats=True)
tanh: Final = of_one("tanh", floats=True)
asinh: Final = of_one("asinh", floats=True)
acosh: Final = of_one("acosh", floats=True)
atanh: Final = of_one("atanh", floats=True)
erf: Final = of_one("erf", floats=True)
erfc: Final = of_one("erfc", floats=True)
erfinv: Final = of_one("erfinv", floats=True)
sigmoid: Final = of_one("sigmoid", floats=True)
isnan: Final = of_one("isnan", floats=True)
isinf: Final = of_one("isinf", floats=True)
isfinite: Final = of_one("isfinite", floats=True)
signbit: Final = of_one("signbit", floats=True)
lgamma: Final = of_one("lgamma", floats=True)
digamma: Final = of_one("digamma", floats=True)
i0: Final = of_floats("i0", ops.i0)
relu: Final = of_one("relu")
exp2: Final = of_floats("exp2", ops.exp2)
sinc: Final = of_floats("sinc", ops.sinc)
deg2rad: Final = of_floats("deg2rad", ops.deg2rad)
rad2deg: Final = of_floats("rad2deg", ops.rad2deg)
neg, absolute, sgn, expit = negative, abs, sign, sigmoid
arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh


floor: Final = rounding("floor")
ceil: Final = rounding("ceil")
trunc: Final = rounding("trunc")
positive: Final = of_one("identity")
_round: Final = rounding("round")
fix = trunc


def round(x: Any, *, decimals: int = 0) -> Tensor:
    """Round to a number of decimals; halves round to even."""
    if not decimals:
        return _round(x)
    scale = 10.0 ** builtins.abs(decimals)
    return _round(x * scale) / scale if decimals > 0 else _round(x / scale) * scale


def frac(x: Any) -> Tensor:
    """The fractional part: `x - trunc(x)`."""
    return subtract(x, trunc(x))


@recorded(autocast=Autocast.FLOAT32)
def _polygamma(x: Value, *, n: int) -> Value:
    return catalogue.polygamma(x, n=n)


def polygamma(n: int, x: Any) -> Tensor:
    """The `n`-th derivative of `digamma`."""
    return _polygamma.on(kind_of(x), *promoted(x, floats=True), n=n)


@recorded(autocast=Autocast.FLOAT32)
def _logit(x: Value, *, eps: float | None) -> Value:
    return ops.logit(x, eps)


def logit(x: Any, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`; `eps` clamps `x` to [eps, 1 - eps] first."""
    return _logit.on(kind_of(x), *promoted(x, floats=True), eps=eps)


@recorded
def _nan_to_num(x: Value, *, nan: float, posinf: Any, neginf: Any) -> Value:
    return ops.nan_to_num(x, nan, posinf, neginf)


def nan_to_num(
    x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN by a number (0), and infinities by numbers (the dtype's limits)."""
    return _nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


def isposinf(x: Any) -> Tensor:
    """Whether an element is +infinity."""
    return eq(x, builtins.float("inf"))


def isneginf(x: Any) -> Tensor:
    """Whether an element is -infinity."""
    return eq(x, -builtins.float("inf"))


def logical_not(x: Any) -> Tensor:
    """Whether an element is 0."""
    return wrap(record(REGISTRY["logical_not"], (cast(lazy_of(x), bool_),), {})[0], kind_of(x))


bitwise_not: Final = of_one("bitwise_not")
invert = bitwise_not
