"""PyTorch's aliases of dtypes, such as `wf.float` and `wf.long`; and constants."""

from __future__ import annotations

import math

from weft.ir import dtype as types

__all__ = [
    "bool", "cdouble", "cfloat", "double", "e", "float", "half", "inf", "int", "long", "nan",
    "newaxis", "pi", "short",
]  # fmt: skip

bool = types.bool_
short = types.int16
int = types.int32
long = types.int64
half = types.float16
float = types.float32
double = types.float64
cfloat = types.complex64
cdouble = types.complex128

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi
