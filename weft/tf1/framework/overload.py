"""Python's operators on symbolic values, which the operations' modules, a layer above, fill in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from weft.errors import DTypeError

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Implementations of Python's operators, filled in by the operations' modules, a layer above."""


def _binary(name: str):
    """An operator, and its form for a tensor on the right."""

    def operator(self: Any, other: Any) -> Any:
        return OPERATORS[name](self, other)

    def reflected(self: Any, other: Any) -> Any:
        return OPERATORS[name](other, self)

    return operator, reflected


def _unary(name: str):
    def operator(self: Any) -> Any:
        return OPERATORS[name](self)

    return operator


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

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    _multiplied, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __matmul__, __rmatmul__ = _binary("matmul")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lt__, __gt__ = _binary("less")[0], _binary("greater")[0]
    __le__, __ge__ = _binary("less_equal")[0], _binary("greater_equal")[0]
    __getitem__ = _binary("getitem")[0]
    __neg__, __invert__, __abs__ = map(_unary, ("neg", "invert", "abs"))

    def __mul__(self, other: Any) -> Any:
        if hasattr(other, "dense_shape"):
            return NotImplemented  # a sparse tensor multiplies by itself
        return self._multiplied(other)

    # equality is identity, so that tensors can be keys of a feed_dict
