"""Dtype promotion as in NumPy 2, and the Array API's queries about dtypes.

The rank of arrays does not matter. A bare Python number takes the dtype of the other operand and
only decides the kind.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from weft.eager.tensor.dtype.promotion import Rules
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import TensorType

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS: Final = "buifc"


@functools.cache
def promote(a: DType, b: DType) -> DType:
    """The smallest dtype that holds the numbers of both, as in NumPy.

    >>> promote(types.int64, types.float32), promote(types.uint64, types.int8)
    (float64, float64)
    """
    if a is b:
        return a
    try:
        return as_dtype(np.promote_types(a.numpy, b.numpy))
    except (TypeError, DTypeError):  # bfloat16 beside a dtype that NumPy cannot combine it with
        if {a, b} == {types.bfloat16, types.float16}:
            return types.float32
        return a if (_KINDS.index(a.kind), a.size) > (_KINDS.index(b.kind), b.size) else b


class NumpyRules(Rules):
    """NumPy's rules, in which integers become float64."""

    wraps = False
    lists = True

    def promote(self, a: DType, b: DType) -> DType:
        """The common dtype of two."""
        return promote(a, b)

    def result(self, operands: Sequence[TensorType]) -> DType:
        """The common dtype of arrays."""
        return functools.reduce(promote, [t.dtype for t in operands])

    def bare(self, scalar: np.generic) -> Any:
        """A scalar of NumPy itself: it has a dtype, as an array has."""
        return scalar

    def number(self, number: Any, beside: DType) -> DType:
        """The common dtype of an array and a bare Python number."""
        if isinstance(number, bool):
            return beside
        if isinstance(number, int):
            return types.int64 if beside is types.bool_ else beside
        if isinstance(number, float):
            return self.floating(beside)
        if beside.is_complex:
            return beside
        return types.complex64 if beside in _SINGLE else types.complex128

    def floating(self, dtype: DType) -> DType:
        """`dtype`, or float64 for integers and booleans."""
        return dtype if dtype.is_inexact else types.float64


_SINGLE: Final = (types.float16, types.bfloat16, types.float32)
NUMPY: Final = NumpyRules()


def rules_of(xs: Sequence[Any]) -> NumpyRules:
    """The rules of the first array; NumPy's if there are only other tensors."""
    return next((r for x in xs if isinstance(r := getattr(x, "rules", None), NumpyRules)), NUMPY)


def _type_of(x: Any) -> DType:
    if isinstance(x, Handle):
        return x.lazy.type.dtype
    return as_dtype(x.dtype if isinstance(x, np.ndarray | np.generic) else x)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype to which arrays, dtypes and Python numbers are promoted.

    Raises:
        DTypeError: only Python numbers, or none at all.

    >>> import weft.numpy as np
    >>> result_type(np.int8, np.uint8), result_type(np.float32, 1.5)
    (int16, float32)
    """
    numbers = [x for x in arrays_and_dtypes if type(x) in (bool, int, float, complex)]
    rest = [_type_of(x) for x in arrays_and_dtypes if type(x) not in (bool, int, float, complex)]
    if not rest:
        raise DTypeError.here("result_type: expected an array or a dtype")
    found = functools.reduce(promote, rest)
    for x in numbers:
        found = NUMPY.number(x, found)
    return found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype (or an array's) can be cast to another without loss of kind.

    >>> import weft.numpy as np
    >>> can_cast(np.int8, np.int16), can_cast(np.float64, np.float32)
    (True, False)
    """
    source, target = _type_of(from_), as_dtype(to)
    return promote(source, target) is target


_GROUPS: Final = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
    "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype equals another one, or is of a kind, or of any in a tuple.

    Args:
        kind: a dtype, or `bool`, `signed integer`, `unsigned integer`, `integral`,
            `real floating`, `complex floating`, `numeric`.

    Raises:
        DTypeError: another name of a kind.
    """
    if isinstance(kind, tuple):
        members: Any = kind
        return any(isdtype(dtype, k) for k in members)
    if isinstance(kind, str):
        if kind not in _GROUPS:
            names = ", ".join(_GROUPS)
            raise DTypeError.here(f"isdtype: expected one of {names}, got {kind!r}")
        return as_dtype(dtype).kind in _GROUPS[kind]
    return as_dtype(dtype) is as_dtype(kind)


class FloatInfo(NamedTuple):
    """Limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return self.smallest_normal

    def __getattr__(self, name: str) -> Any:
        """What else NumPy tells: `precision`, `resolution`, `nmant` and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(ml_dtypes.finfo(self.dtype.numpy), name)


class IntegerInfo(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """Limits of a floating-point dtype, of an array's, or of the parts of a complex dtype.

    Raises:
        DTypeError: another type.
    """
    kind = _type_of(type).real
    if not kind.is_floating:
        raise DTypeError.here(f"finfo: expected a floating type, got {kind}")
    found: Any = ml_dtypes.finfo(kind.numpy)
    eps, most, least, normal = map(float, (found.eps, found.max, found.min, found.smallest_normal))
    return FloatInfo(found.bits, eps, most, least, normal, kind)


def iinfo(type: Any, /) -> IntegerInfo:
    """Limits of an integer dtype, or of an array's.

    Raises:
        DTypeError: another type.
    """
    kind = _type_of(type)
    if not kind.is_integer:
        raise DTypeError.here(f"iinfo: expected an integer type, got {kind}")
    found = np.iinfo(kind.numpy)
    return IntegerInfo(found.bits, int(found.max), int(found.min), kind)
