"""Dtype promotion by PyTorch's rules.

A bare Python number only decides the kind (bool, integer, floating-point), and so does a rank-0
tensor beside tensors of higher rank. A floating-point result of integers has the default dtype.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.look import looks
from weft.ir.node import TensorType

_KINDS: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


class _Default(threading.local):
    dtype: DType = types.float32


_default: Final = _Default()


def get_default_dtype() -> DType:
    """The default floating-point dtype: float32 at first."""
    looks.count += 1
    return _default.dtype


def complex_of(dtype: DType) -> DType:
    """The complex dtype for a real dtype."""
    return types.complex128 if dtype.size >= 8 else types.complex64


def set_default_dtype(dtype: Any) -> None:
    """Set the default floating-point dtype of this thread.

    Raises:
        DTypeError: the dtype is not floating-point.
    """
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"set_default_dtype: expected a floating type, got {kind}")
    _default.dtype = kind


def promote(a: DType, b: DType) -> DType:
    """The smallest dtype that holds the numbers of both.

    >>> promote(types.int64, types.float32), promote(types.uint8, types.int8)
    (float32, int16)
    """
    if a is b:
        return a
    if _kind(a) != _kind(b):
        high, low = (a, b) if _kind(a) > _kind(b) else (b, a)
        wide = high.is_complex and low is types.float64
        return types.complex128 if wide else high
    if a.is_floating:
        if {a, b} == {types.float16, types.bfloat16}:
            return types.float32
        return a if a.size > b.size else b
    try:
        return as_dtype(np.promote_types(a.numpy, b.numpy))
    except DTypeError:  # uint64 with a signed type
        return types.int64


def _kind(dtype: DType) -> int:
    return _KINDS[dtype.kind]


def _all(dtypes: Sequence[DType]) -> DType | None:
    found: DType | None = None
    for dtype in dtypes:
        found = dtype if found is None else promote(found, dtype)
    return found


class Rules:
    """PyTorch's rules: rank-0 tensors beside others count only if their kind is higher.

    Attributes:
        wraps: whether a negative number beside an unsigned dtype wraps to its two's complement. If
            not, it is refused, and comparisons with integers that a dtype cannot hold are exact.
        lists: whether lists and tuples are operands of operators.
    """

    wraps = True
    lists = False

    def result(self, operands: Sequence[TensorType]) -> DType:
        """The common dtype of tensors."""
        ranked = _all([t.dtype for t in operands if t.shape])
        single = _all([t.dtype for t in operands if not t.shape])
        if ranked is None or single is None:
            found = ranked or single
            assert found is not None
            return found
        if _kind(single) <= _kind(ranked):
            return ranked
        if single.is_complex and ranked.is_floating:  # its kind counts, not its precision
            return complex_of(ranked)
        return promote(ranked, single)

    def bare(self, scalar: np.generic) -> Any:
        """A scalar of NumPy as a bare Python number, as which PyTorch takes it; truths as floats.

        >>> TORCH.bare(np.float64(0.5)), TORCH.bare(np.int8(3))
        (0.5, 3)
        """
        if isinstance(scalar, np.integer):
            return int(scalar)
        return complex(scalar) if isinstance(scalar, np.complexfloating) else float(scalar)

    def number(self, number: Any, beside: DType) -> DType:
        """The common dtype of a tensor and a bare Python number."""
        if isinstance(number, bool):
            return beside
        if isinstance(number, int):
            return types.int64 if beside is types.bool_ else beside
        if isinstance(number, complex):
            return beside if beside.is_complex else complex_of(self.floating(beside))
        return self.floating(beside)

    def floating(self, dtype: DType) -> DType:
        """`dtype`, or the default floating-point dtype for integers and booleans."""
        return dtype if _kind(dtype) >= 2 else get_default_dtype()


TORCH: Final = Rules()
