"""Python's operators on symbolic values, which the operations' modules, a layer above, fill in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from weft.errors import DTypeError

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Implementations of Python's operators, filled in by the operations' modules, a layer above."""


class SymbolicArrayError(DTypeError, NotImplementedError):
    """A symbolic tensor was given to NumPy, which needs numbers."""


class Overloads:
    """Python's operators for tensors, variables and user-defined operations."""

    __array_priority__ = 100  # makes np.ndarray + tensor call the tensor's operator

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise SymbolicArrayError(
            f"cannot convert the symbolic {self!r} to a NumPy array: use the function of weft.tf1 "
            "instead of NumPy's, or run it in a session"
        )

    def __add__(self, other: Any) -> Any:
        return OPERATORS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPERATORS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPERATORS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPERATORS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        if hasattr(other, "dense_shape"):
            return NotImplemented  # a sparse tensor multiplies by itself
        return OPERATORS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPERATORS["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return OPERATORS["truediv"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPERATORS["truediv"](other, self)

    def __floordiv__(self, other: Any) -> Any:
        return OPERATORS["floordiv"](self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return OPERATORS["floordiv"](other, self)

    def __mod__(self, other: Any) -> Any:
        return OPERATORS["mod"](self, other)

    def __rmod__(self, other: Any) -> Any:
        return OPERATORS["mod"](other, self)

    def __pow__(self, other: Any) -> Any:
        return OPERATORS["pow"](self, other)

    def __rpow__(self, other: Any) -> Any:
        return OPERATORS["pow"](other, self)

    def __matmul__(self, other: Any) -> Any:
        return OPERATORS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return OPERATORS["matmul"](other, self)

    def __and__(self, other: Any) -> Any:
        return OPERATORS["and"](self, other)

    def __rand__(self, other: Any) -> Any:
        return OPERATORS["and"](other, self)

    def __or__(self, other: Any) -> Any:
        return OPERATORS["or"](self, other)

    def __ror__(self, other: Any) -> Any:
        return OPERATORS["or"](other, self)

    def __xor__(self, other: Any) -> Any:
        return OPERATORS["xor"](self, other)

    def __rxor__(self, other: Any) -> Any:
        return OPERATORS["xor"](other, self)

    def __lt__(self, other: Any) -> Any:
        return OPERATORS["less"](self, other)

    def __le__(self, other: Any) -> Any:
        return OPERATORS["less_equal"](self, other)

    def __gt__(self, other: Any) -> Any:
        return OPERATORS["greater"](self, other)

    def __ge__(self, other: Any) -> Any:
        return OPERATORS["greater_equal"](self, other)

    def __neg__(self) -> Any:
        return OPERATORS["neg"](self)

    def __invert__(self) -> Any:
        return OPERATORS["invert"](self)

    def __abs__(self) -> Any:
        return OPERATORS["abs"](self)

    def __getitem__(self, key: Any) -> Any:
        return OPERATORS["getitem"](self, key)

    # equality is identity, so that tensors can be keys of a feed_dict
