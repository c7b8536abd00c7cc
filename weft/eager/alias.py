"""Other names of the element types, as PyTorch has them: `wf.float`, `wf.long`, `wf.half`."""

from __future__ import annotations

from weft.ir import dtype as types

__all__ = ["bool", "cdouble", "cfloat", "double", "float", "half", "int", "long", "short"]

bool = types.bool_
short = types.int16
int = types.int32
long = types.int64
half = types.float16
float = types.float32
double = types.float64
cfloat = types.complex64
cdouble = types.complex128
