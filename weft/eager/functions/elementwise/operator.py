"""The operators of tensors, and their methods for arithmetic, comparison, logic and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.elementwise import declared
from weft.eager.functions.elementwise.binary import power
from weft.eager.functions.elementwise.division import dividing
from weft.eager.functions.elementwise.from_op import of_two, takes
from weft.eager.functions.elementwise.unary import polygamma
from weft.eager.tensor.handle import Handle

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


# Like the functions of the same names, but `NotImplemented` for operands that these refuse
PLUS: Final = of_two("add", operator=True)
MINUS: Final = of_two("subtract", operator=True)
TIMES: Final = of_two("multiply", operator=True)
OVER: Final = of_two("divide", floats=True, operator=True)
OVER_WHOLE: Final = dividing("floor_divide", operator=True)
MODULO: Final = dividing("remainder", operator=True)
AND: Final = of_two("bitwise_and", operator=True)
OR: Final = of_two("bitwise_or", operator=True)
XOR: Final = of_two("bitwise_xor", operator=True)
LEFT: Final = of_two("left_shift", operator=True)
RIGHT: Final = of_two("right_shift", operator=True)


def power_of(x: Any, exponent: Any) -> Any:
    """`x ** exponent`."""
    return power(x, exponent) if takes(x, exponent) and takes(exponent, x) else NotImplemented


class Methods(Handle):
    """`x + y`, `x.add(y)` and the like."""

    __hash__ = object.__hash__  # by identity: == compares elements

    __add__ = __radd__ = PLUS
    __sub__ = MINUS
    __mul__ = __rmul__ = TIMES
    __truediv__ = OVER
    __floordiv__ = OVER_WHOLE
    __mod__ = MODULO
    __and__ = __rand__ = AND
    __or__ = __ror__ = OR
    __xor__ = __rxor__ = XOR
    __lshift__ = LEFT
    __rshift__ = RIGHT
    __lt__ = of_two("less", operator=True)
    __le__ = of_two("less_equal", operator=True)
    __gt__ = of_two("greater", operator=True)
    __ge__ = of_two("greater_equal", operator=True)
    __eq__: Any = of_two("equal", operator=True)
    __ne__: Any = of_two("not_equal", operator=True)
    __neg__ = declared.negative
    __pos__ = declared.identity
    __abs__ = declared.abs
    __invert__ = declared.bitwise_not

    def __pow__(self, other: Any) -> Tensor:
        return power_of(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return MINUS(other, self)

    def __rtruediv__(self, other: Any) -> Tensor:
        return OVER(other, self)

    __rdiv__ = __rtruediv__  # as PyTorch calls it

    def __rfloordiv__(self, other: Any) -> Tensor:
        return OVER_WHOLE(other, self)

    def __rmod__(self, other: Any) -> Tensor:
        return MODULO(other, self)

    def __rpow__(self, other: Any) -> Tensor:
        return power_of(other, self)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return declared.floor_divide(self, other), declared.remainder(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return declared.floor_divide(other, self), declared.remainder(other, self)

    def __rlshift__(self, other: Any) -> Tensor:
        return LEFT(other, self)

    def __rrshift__(self, other: Any) -> Tensor:
        return RIGHT(other, self)

    def polygamma(self, n: int) -> Tensor:
        """The `n`-th derivative of `digamma`."""
        return polygamma(n, self)
