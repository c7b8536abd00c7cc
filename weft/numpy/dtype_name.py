"""NumPy's names of element types."""

from __future__ import annotations

from weft.ir import dtype as _types

__all__ = [
    "bfloat16", "bool", "bool_", "complex64", "complex128", "double", "float16", "float32",
    "float64", "half", "int8", "int16", "int32", "int64", "single", "uint8", "uint16", "uint32",
    "uint64",
]  # fmt: skip

bool = bool_ = _types.bool_
int8, int16, int32, int64 = _types.int8, _types.int16, _types.int32, _types.int64
uint8, uint16, uint32, uint64 = _types.uint8, _types.uint16, _types.uint32, _types.uint64
float16, bfloat16 = _types.float16, _types.bfloat16
float32, float64 = _types.float32, _types.float64
complex64, complex128 = _types.complex64, _types.complex128
half, single, double = float16, float32, float64
