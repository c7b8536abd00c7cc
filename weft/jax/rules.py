"""JAX's dtypes: 32 bits unless x64 is enabled, and how they are promoted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from weft.eager.tensor.dtype.promotion import complex_of, promote
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import TensorType
from weft.jax.config import config
from weft.numpy.promotion import NumpyRules

NARROW: Final = {
    types.float64: types.float32, types.int64: types.int32, types.uint64: types.uint32,
    types.complex128: types.complex64,
}  # fmt: skip


def canonical(dtype: Any) -> DType:
    """The dtype that an array has when this one is asked for: 32 bits unless x64 is enabled.

    >>> canonical("float64"), canonical(int)
    (float32, int32)
    """
    found = as_dtype(dtype)
    return found if config.jax_enable_x64 else NARROW.get(found, found)


class JaxRules(NumpyRules):
    """JAX's rules: 32 bits by default, and floats keep their width beside integers."""

    lists = False

    def promote(self, a: DType, b: DType) -> DType:
        """The common dtype of two."""
        return promote(a, b)

    def result(self, operands: Sequence[TensorType]) -> DType:
        """The common dtype of arrays."""
        return canonical(functools.reduce(promote, [t.dtype for t in operands]))

    def number(self, number: Any, beside: DType) -> DType:
        """The common dtype of an array and a bare Python number."""
        if isinstance(number, bool):
            return beside
        if isinstance(number, int):
            return canonical(types.int64) if beside is types.bool_ else beside
        if isinstance(number, float):
            return self.floating(beside)
        return beside if beside.is_complex else complex_of(self.floating(beside))

    def floating(self, dtype: DType) -> DType:
        """`dtype`, or the default floating-point dtype for integers and booleans."""
        return dtype if dtype.is_inexact else canonical(types.float64)
