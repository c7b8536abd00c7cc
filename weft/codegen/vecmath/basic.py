"""Functions that are one instruction."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.builder import Builder, Reg
from weft.codegen.vecmath import vector
from weft.codegen.vecmath.vector import Vec, intrinsic, vector_math

__all__ = ["abs", "ceil", "floor", "fma", "round", "sqrt", "trunc"]


def _instruction(name: str, doc: str) -> Callable[[Builder, Reg], Reg]:
    def emit(x: Vec) -> Vec:
        return intrinsic(name, x)

    emit.__doc__ = doc
    return vector_math(emit)


sqrt = _instruction("sqrt", "Square root, correctly rounded.")
floor = _instruction("floor", "The largest integer that is not above x.")
ceil = _instruction("ceil", "The smallest integer that is not below x.")
round = _instruction("roundeven", "The nearest integer, halves to even.")
trunc = _instruction("trunc", "The integer part.")
abs = _instruction("fabs", "The magnitude.")


@vector_math
def fma(x: Vec, y: Vec, z: Vec) -> Vec:
    """x * y + z, rounded once where the target has the instruction, else twice."""
    return vector.fma(x, y, z)
