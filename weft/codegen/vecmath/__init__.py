"""Vector maths written as LLVM IR: accurate to a few units in the last place, any vector width.

Each function takes a builder and registers of `float` or `double`, scalar or vector, and writes
straight-line code (plus one branch around huge angles):

>>> from weft.codegen import vecmath
>>> from weft.codegen.builder import Builder, Reg
>>> f = Builder("f", [])
>>> vecmath.exp(f, Reg("<16 x float>", "%x")).type
'<16 x float>'

NaN, infinities, signed zeros, overflow and subnormal numbers are as in C and NumPy.
"""

from weft.codegen.vecmath.basic import abs, ceil, floor, fma, round, sqrt, trunc
from weft.codegen.vecmath.division import floor_divide, fmod, remainder
from weft.codegen.vecmath.error import erf
from weft.codegen.vecmath.exponential import cosh, exp, expm1, log, log1p, sigmoid, sinh, tanh
from weft.codegen.vecmath.inverse import acos, asin, atan, atan2
from weft.codegen.vecmath.power import power, rsqrt
from weft.codegen.vecmath.trigonometric import cos, sin, tan

__all__ = [
    "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor",
    "floor_divide", "fma", "fmod", "log", "log1p", "power", "remainder", "round", "rsqrt",
    "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
