"""Arithmetic and comparison, elementwise: functions, and the operators and methods of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.eager.call import binary, recorded, unary
from weft.eager.handle import Handle
from weft.eager.lazy import trace
from weft.ir.node import Value
from weft.ops.base import REGISTRY, Op, catalogue

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor

# x ** 2 and the like are part of the program's structure, because they have programs of their own
# (a product, a square root); any other exponent is an input, like every other number.
EXPONENTS: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4})


def _of_two(name: str, floats: bool = False) -> Callable[[Any, Any], Tensor]:
    op: Op = REGISTRY[name]

    def function(x: Any, y: Any) -> Tensor:
        return binary(op, x, y, floats)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of two tensors, arrays or numbers, elementwise with broadcasting."
    return function


def _of_one(name: str, floats: bool = False) -> Callable[[Any], Tensor]:
    op: Op = REGISTRY[name]

    def function(x: Any) -> Tensor:
        return unary(op, x, floats)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of every element."
    return function


add = _of_two("add")
subtract = _of_two("subtract")
multiply = _of_two("multiply")
divide = _of_two("divide", floats=True)
floor_divide = _of_two("floor_divide")
remainder = _of_two("remainder")
maximum = _of_two("maximum")
minimum = _of_two("minimum")
equal = _of_two("equal")
not_equal = _of_two("not_equal")
less = _of_two("less")
less_equal = _of_two("less_equal")
greater = _of_two("greater")
greater_equal = _of_two("greater_equal")
negative = _of_one("negative")
exp = _of_one("exp", floats=True)
log = _of_one("log", floats=True)
sqrt = _of_one("sqrt", floats=True)
rsqrt = _of_one("rsqrt", floats=True)
tanh = _of_one("tanh", floats=True)
sigmoid = _of_one("sigmoid", floats=True)
abs = _of_one("abs")
_with_any_exponent: Final = _of_two("power")


def _raised(x: Value, *, exponent: float) -> Value:
    return catalogue.power(x, exponent)


_small_power: Final = recorded(_raised)


def power(x: Any, y: Any) -> Tensor:
    """`x` to the power `y`, elementwise with broadcasting."""
    if type(y) in (int, float) and y in EXPONENTS and isinstance(x, Handle):
        dtype = x.rules.number(y, x.lazy.type.dtype)
        if dtype is x.lazy.type.dtype and trace.autocast is None:
            return _small_power(x, exponent=y)
    return _with_any_exponent(x, y)


class Arithmetic(Handle):
    """Operators."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return divide(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return power(other, self)

    def __neg__(self) -> Tensor:
        return negative(self)
