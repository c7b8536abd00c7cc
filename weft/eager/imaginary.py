"""Complex numbers: their parts, and tensors made of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.eager.argument import dims_of
from weft.eager.arithmetic import multiply
from weft.eager.call import call, kind_of, promoted, recorded
from weft.eager.elementary import cos, sin
from weft.eager.family import of_floats, of_one
from weft.eager.handle import Handle
from weft.eager.movement import select, stack
from weft.eager.shaping import adjoint
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.base import REGISTRY, at_user_line, catalogue
from weft.ops.complex import angle as angle_of
from weft.ops.complex import imag as imag_of
from weft.ops.creation import zeros_like

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor

__all__ = [
    "angle", "complex", "conj", "conj_physical", "imag", "is_conj", "is_neg", "isreal", "polar",
    "real", "resolve_conj", "resolve_neg", "view_as_complex", "view_as_real",
]  # fmt: skip

_conj: Final = of_one("conj")
angle: Final = of_floats("angle", angle_of)


def real(x: Tensor) -> Tensor:
    """The real parts; a tensor of real numbers itself."""
    return call(REGISTRY["real"], x) if x.dtype.is_complex else x


def imag(x: Tensor) -> Tensor:
    """The imaginary parts.

    Raises:
        DTypeError: real numbers.
    """
    if not x.dtype.is_complex:
        raise DTypeError(f"imag: expected complex numbers, got {x.dtype}{at_user_line()}")
    return call(REGISTRY["imag"], x)


def conj(x: Tensor) -> Tensor:
    """The complex conjugates; a tensor of real numbers itself."""
    return _conj(x) if x.dtype.is_complex else x


conj_physical = conj


def complex(real: Any, imag: Any) -> Tensor:
    """Complex numbers of real and imaginary parts.

    >>> import weft as wf
    >>> wf.complex(wf.tensor([1.0]), wf.tensor([2.0])).tolist()
    [(1+2j)]
    """
    return call(REGISTRY["complex"], real, imag)


def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers of magnitudes and angles."""
    return complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


def view_as_real(x: Tensor) -> Tensor:
    """The real and imaginary parts side by side along a new last axis; a copy."""
    return stack([real(x), imag(x)], -1)


def view_as_complex(x: Tensor) -> Tensor:
    """Complex numbers whose parts lie side by side along the last axis; a copy.

    Raises:
        ShapeError: the last axis has not two elements.
    """
    if dims_of(x)[-1:] != (2,):
        raise ShapeError(
            f"view_as_complex: expected a last dimension of 2, got {show(dims_of(x))}"
            f"{at_user_line()}"
        )
    return complex(select(x, -1, 0), select(x, -1, 1))


@recorded(differentiable=False)
def _isreal(x: Value) -> Value:
    return catalogue.equal(imag_of(x), zeros_like(imag_of(x)))


def isreal(x: Any) -> Tensor:
    """Whether the imaginary part is 0."""
    return _isreal.on(kind_of(x), *promoted(x))


def is_conj(x: Tensor) -> bool:
    """Whether conjugation waits to be done: never."""
    return False


def is_neg(x: Tensor) -> bool:
    """Whether a change of sign waits to be done: never."""
    return False


def resolve_conj(x: Tensor) -> Tensor:
    """The tensor itself: conjugation never waits to be done."""
    return x


resolve_neg = resolve_conj


class Imaginary(Handle):
    """Complex numbers, as methods."""

    __slots__ = ()

    angle = angle
    conj = conj
    conj_physical = conj_physical
    is_conj = is_conj
    is_neg = is_neg
    isreal = isreal
    resolve_conj = resolve_conj
    resolve_neg = resolve_neg

    @property
    def real(self) -> Tensor:
        """The real parts."""
        tensor: Any = self
        return real(tensor)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts."""
        tensor: Any = self
        return imag(tensor)

    @property
    def H(self) -> Tensor:
        """A matrix with rows and columns exchanged, conjugated.

        Raises:
            ShapeError: no matrix.
        """
        if len(dims_of(self)) != 2:
            raise ShapeError(f"H: expected a matrix, got rank {len(dims_of(self))}{at_user_line()}")
        return conj(adjoint(self))

    @property
    def mH(self) -> Tensor:
        """The last two axes in each other's place, conjugated."""
        return conj(adjoint(self))
