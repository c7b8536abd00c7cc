"""Kinds of dtypes, and questions about them, as in `jax.numpy`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft.eager.tensor.handle import Handle
from weft.ir.dtype import DType, as_dtype, bool_
from weft.jax.array import NUMBERS, Array, Weak, beside, canonical, of_number, strong, taken
from weft.jax.key import KEY_DTYPE, KeyDType, extended, prng_key
from weft.numpy.promotion import finfo as finfo
from weft.numpy.promotion import iinfo as iinfo

__all__ = [
    "character", "complexfloating", "dtype", "finfo", "flexible", "floating", "generic", "iinfo",
    "inexact", "integer", "issubdtype", "number", "object_", "promote_types", "result_type",
    "signedinteger", "unsignedinteger",
]  # fmt: skip

generic, number, integer, inexact = np.generic, np.number, np.integer, np.inexact
floating, complexfloating = np.floating, np.complexfloating
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
character, flexible, object_ = np.character, np.flexible, np.object_


class _Kinds(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, DType | KeyDType | np.dtype)


class dtype(metaclass=_Kinds):
    """The dtype of a name, a NumPy type, a Python type or an array.

    >>> dtype("float32"), isinstance(dtype(int), dtype)
    (float32, True)
    """

    def __new__(cls, x: Any) -> Any:
        """The dtype, which is of another class."""
        return x.shown.type.dtype if isinstance(x, Handle) else as_dtype(x)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is of a kind, such as `floating`.

    >>> issubdtype("bfloat16", floating), issubdtype("int32", floating)
    (True, False)
    """
    if KEY_DTYPE in (arg1, arg2) or (isinstance(arg2, type) and issubclass(arg2, extended)):
        kind, above = [prng_key if x is KEY_DTYPE else x for x in (arg1, arg2)]
        return isinstance(kind, type) and isinstance(above, type) and issubclass(kind, above)
    if isinstance(arg1, type) and issubclass(arg1, np.generic) and isinstance(arg2, type):
        return bool(np.issubdtype(arg1, arg2))
    kind = dtype(arg1)
    if isinstance(arg2, type) and issubclass(arg2, np.generic) and arg2.__module__ == "numpy":
        usual = np.dtype(f"{kind.kind}{max(kind.size, 1)}") if kind is not bool_ else kind.numpy
        return bool(np.issubdtype(usual, arg2))
    return kind is dtype(arg2)


def result_type(*args: Any) -> DType:
    """The dtype to which arrays, dtypes and Python numbers are promoted."""
    rules = Array.rules
    given = [taken(x) for x in args]
    numbers = [x for x in given if type(x) in NUMBERS]
    weak = [x for x in given if isinstance(x, Weak)]
    firm = [
        x.dtype if isinstance(x, Array) else canonical(x if isinstance(x, type) else _dtype(x))
        for x in given
        if type(x) not in NUMBERS and not isinstance(x, Weak)
    ]
    if not firm:
        firm = [of_number(x).dtype for x in numbers] + [x.dtype for x in weak]
        return functools.reduce(rules.promote, firm)
    found = functools.reduce(rules.promote, firm)
    for x in numbers:
        found = rules.number(x, found)
    return functools.reduce(lambda d, x: beside(x, d).dtype, weak, found)


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", x)


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that holds the numbers of two."""
    return Array.rules.promote(canonical(a), canonical(b))


def promoted(*xs: Any) -> list[Any]:
    """Arrays of their common dtype."""
    kind = result_type(*xs)
    return [strong(of_number(x) if type(x) in NUMBERS else taken(x)).astype(kind) for x in xs]
