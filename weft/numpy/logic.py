"""Predicates of whole arrays, computed at once, and of their dtypes."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.elementwise import binary
from weft.eager.tensor.handle import Handle
from weft.numpy.convert import NUMBERS, array_like, operands
from weft.numpy.elementwise import equal, imag

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "allclose", "array_equal", "array_equiv", "isclose", "iscomplex", "iscomplexobj", "isreal",
    "isrealobj", "isscalar",
]  # fmt: skip


def isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Whether `|a - b| <= atol + rtol * |b|`, elementwise."""
    x, y = operands(a, b)
    found: Any = binary.isclose(x, y, rtol, atol, equal_nan)
    return found


def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close; see `isclose`."""
    return builtins.bool(isclose(a, b, rtol, atol, equal_nan).array.all())


def array_equal(a1: Any, a2: Any) -> bool:
    """Whether two arrays have the same shape and elements."""
    x, y = array_like(a1), array_like(a2)
    return x.shape == y.shape and builtins.bool(equal(x, y).array.all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays have equal elements after broadcasting."""
    return builtins.bool(np.array_equiv(array_like(a1).array, array_like(a2).array))


def iscomplexobj(x: Any) -> bool:
    """Whether an array, or anything else with a dtype, has a complex one."""
    kind = x.dtype if hasattr(x, "dtype") else array_like(x).dtype
    return np.issubdtype(getattr(kind, "numpy", kind), np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether an array has a real dtype."""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> ndarray:
    """Whether an element has an imaginary part other than 0."""
    return imag(x) != 0  # pyright: ignore[reportReturnType]


def isreal(x: Any) -> ndarray:
    """Whether an element has no imaginary part but 0."""
    return equal(imag(x), 0)


def isscalar(element: Any) -> bool:
    """Whether something is a Python or NumPy scalar, and no array."""
    return not isinstance(element, Handle) and isinstance(element, (*NUMBERS, np.generic))
