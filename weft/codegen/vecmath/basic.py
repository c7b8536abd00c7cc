"""Functions that are one instruction."""

from __future__ import annotations

from weft.codegen.vecmath import vector
from weft.codegen.vecmath.vector import Vec, intrinsic, vector_math

__all__ = ["abs", "ceil", "floor", "fma", "round", "sqrt", "trunc"]


@vector_math
def sqrt(x: Vec) -> Vec:
    """Square root, correctly rounded."""
    return intrinsic("sqrt", x)


@vector_math
def floor(x: Vec) -> Vec:
    """The largest integer that is not above x."""
    return intrinsic("floor", x)


@vector_math
def ceil(x: Vec) -> Vec:
    """The smallest integer that is not below x."""
    return intrinsic("ceil", x)


@vector_math
def round(x: Vec) -> Vec:
    """The nearest integer, halves to even."""
    return intrinsic("roundeven", x)


@vector_math
def trunc(x: Vec) -> Vec:
    """The integer part."""
    return intrinsic("trunc", x)


@vector_math
def abs(x: Vec) -> Vec:
    """The magnitude."""
    return intrinsic("fabs", x)


@vector_math
def fma(x: Vec, y: Vec, z: Vec) -> Vec:
    """x * y + z, rounded once where the target has the instruction, else twice."""
    return vector.fma(x, y, z)
