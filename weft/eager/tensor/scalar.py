"""Python numbers as inputs of programs, so that another number is not another program."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array, Lazy, Number
from weft.eager.tensor.dtype.promotion import TORCH, Rules
from weft.errors import DTypeError, nameless
from weft.ir.dtype import DType, float16
from weft.ir.node import at_user_line
from weft.ops.refusal import shown

MOST_NUMBERS: Final = 4096  # of one class and dtype


class Numbers:
    """Python numbers of one class as inputs of one dtype, which have this type."""

    __slots__ = ("_arrays", "_dtype", "_wraps", "type")

    def __init__(self, dtype: DType, wraps: bool) -> None:
        self._dtype = dtype
        self._wraps = wraps
        self.type = intern(dtype, ())
        self._arrays: dict[Any, Array] = {}  # arrays of the numbers so far, read-only

    def get(self, value: Any) -> Any:
        """A number as an input: see `number`; `None` only of `HalfNumbers`."""
        array = self._arrays.get(value)
        found = Number()  # `begun` inlined: this is a quarter of the time to record x * 2.0
        found.type = self.type
        found.array = self._enter(value) if array is None else array
        found.index = 0
        found.tracked = False
        found.record = found.owner = found.leaf = found.hooks = found.home = None
        found.loan = None
        return found

    def _enter(self, value: Any) -> Array:
        try:
            if value is None:  # NumPy takes it for NaN
                raise TypeError
            given = wrapped(value, self._dtype) if self._wraps else value
            with np.errstate(over="ignore"):
                array = np.array(given, self._dtype.numpy)
        except (OverflowError, TypeError):  # too large, or complex for a real dtype
            text = f"expected a number that {self._dtype} holds, got {shown(value)}"
            raise nameless(DTypeError(text + at_user_line())) from None
        array.flags.writeable = False
        kind = value.__class__
        if kind is int or (value and kind is not complex):  # 0.0 equals -0.0
            if len(self._arrays) >= MOST_NUMBERS:
                self._arrays.clear()
            self._arrays[value] = array
        return array


class HalfNumbers(Numbers):
    """Numbers beside float16; PyTorch computes in float32 with those that float16 cannot hold."""

    __slots__ = ()

    def get(self, value: Any) -> Any:
        """A number as an input; `None` for one that float16 cannot hold."""
        return None if lacks(value) else super().get(value)


def lacks(value: Any) -> bool:
    """Whether float32 can hold a number but float16 cannot."""
    return 65504 < abs(value) < math.inf


def wrapped(value: Any, dtype: DType) -> Any:
    """A number; a negative one wraps to its two's complement in an unsigned dtype."""
    if dtype.kind != "u" or type(value) is not int or value >= 0:
        return value
    count = 1 << 8 * dtype.size
    return value + count if -value < count else value


class _AllNumbers(dict[tuple[DType, type[Any], bool], Numbers]):
    """By dtype, class and whether they wrap: equal numbers may be different values."""

    def __missing__(self, key: tuple[DType, type[Any], bool]) -> Numbers:
        return self.setdefault(key, Numbers(key[0], key[2]))


_numbers: Final = _AllNumbers()


_halves: Final[dict[type[Any], HalfNumbers]] = {}


def numbers_beside(dtype: DType, kind: type[Any], rules: Rules) -> Numbers:
    """The numbers of a class beside tensors of a dtype."""
    if dtype is float16 and rules.wraps:
        return _halves.setdefault(kind, HalfNumbers(dtype, True))
    return _numbers[dtype, kind, rules.wraps]


def number(value: Any, dtype: DType, rules: Rules = TORCH) -> Lazy:
    """A Python number as an input of the program, so that another number is not another program.

    Args:
        rules: decide whether a negative one is allowed beside an unsigned dtype.

    Raises:
        DTypeError: `dtype` cannot hold it.
    """
    return _numbers[dtype, value.__class__, rules.wraps].get(value)


def element(value: Any, dtype: DType, rules: Rules = TORCH) -> Lazy:
    """A Python number that becomes an element as it is: see `number`.

    Raises:
        DTypeError: `dtype` cannot hold it, even if only because it is too large.
    """
    found = number(value, dtype, rules)
    if not dtype.is_floating or isinstance(value, complex) or not math.isfinite(value):
        return found
    if not np.isfinite(array_of(found)):
        raise DTypeError.here(f"expected a number that {dtype} holds, got {value!r}")
    return found
