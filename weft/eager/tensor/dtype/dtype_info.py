"""Limits of dtypes, and the dtype that holds the numbers of two."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.eager.tensor.dispatch import lazy_of
from weft.eager.tensor.dtype.promotion import TORCH, get_default_dtype, promote
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, OutOfRangeError
from weft.ir.dtype import DType, as_dtype

_RANKS: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


class finfo:
    """The limits of a floating-point dtype.

    Attributes:
        min, max: the smallest and the largest number.
        eps: the distance from 1 to the next number.
        tiny, smallest_normal: the smallest positive number of full precision.
        resolution: 10 ** -digits, for the decimal digits that are kept.
        bits: size of a number.
        dtype: the name of the type.

    Raises:
        DTypeError: the dtype is not floating-point.

    Example:
        >>> import weft as wf
        >>> wf.finfo(wf.bfloat16).eps
        0.0078125
    """

    def __init__(self, dtype: Any = None) -> None:
        kind = get_default_dtype() if dtype is None else as_dtype(dtype)
        if not kind.is_inexact:
            text = f"finfo: expected a floating-point dtype, got {kind}; use iinfo()"
            raise DTypeError.here(text)
        found = ml_dtypes.finfo(kind.real.numpy)
        self.min, self.max = float(found.min), float(found.max)
        self.eps, self.resolution = float(found.eps), 10.0**-found.precision
        self.tiny = self.smallest_normal = float(found.tiny)
        self.bits: int = found.bits
        self.dtype = kind.real.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype: `min`, `max`, `bits` and its name `dtype`.

    Raises:
        DTypeError: the dtype is no integer dtype.

    Example:
        >>> import weft as wf
        >>> wf.iinfo(wf.int8).max
        127
    """

    def __init__(self, dtype: Any) -> None:
        kind = as_dtype(dtype)
        if not kind.is_integer:
            raise DTypeError.here(f"iinfo: expected an integer dtype, got {kind}")
        found = np.iinfo(kind.numpy)
        self.min, self.max, self.bits = int(found.min), int(found.max), int(found.bits)
        self.dtype = kind.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype that two dtypes are promoted to.

    >>> import weft as wf
    >>> wf.promote_types(wf.int32, wf.float32)
    float32
    """
    return promote(as_dtype(type1), as_dtype(type2))


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that two tensors or numbers are promoted to.

    >>> import weft as wf
    >>> wf.result_type(wf.tensor([1, 2]), 1.0)
    float32
    """
    tensors = [x for x in (tensor1, tensor2) if isinstance(x, Handle)]
    if len(tensors) == 1:
        number = tensor2 if tensors[0] is tensor1 else tensor1
        return TORCH.number(number, tensors[0].lazy.type.dtype)
    return TORCH.result([lazy_of(x).type for x in (tensor1, tensor2)])


def can_cast(from_: Any, to: Any) -> bool:
    """Whether promotion allows a cast from one dtype to another: not floating-point to integer.

    >>> import weft as wf
    >>> wf.can_cast(wf.float32, wf.int64)
    False
    """
    a, b = as_dtype(from_), as_dtype(to)
    return _RANKS[a.kind] <= _RANKS[b.kind]


@functools.cache
def _bounds(dtype: DType) -> tuple[int, int]:
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def check_held(name: str, dtype: DType, low: int, high: int) -> None:
    """Refuse integers that a dtype cannot hold.

    Raises:
        OutOfRangeError: names the numbers and the type.
    """
    bounds = _bounds(dtype) if dtype.is_integer else None
    if bounds is not None and not bounds[0] <= low <= high <= bounds[1]:
        raise OutOfRangeError.here(
            f"{name}: expected numbers that {dtype} holds, got {low} to {high}"
        )


def neutral(reduce: str, dtype: DType) -> Any:
    """The identity element of a reduction: sum, product, ..."""
    if reduce not in ("amax", "amin"):
        return int(reduce == "prod")
    if dtype.is_floating:
        return -math.inf if reduce == "amax" else math.inf
    return _bounds(dtype)[reduce != "amax"]
