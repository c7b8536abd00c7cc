"""Complex numbers: their parts, and tensors built from parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.creation.constructor import ones_like
from weft.eager.functions.elementwise.from_op import of_one
from weft.eager.functions.shape.bit_view import Half, Paired, Pairs
from weft.eager.functions.shape.permutation import matrix_transpose
from weft.eager.tensor.argument import dims_of, tensor_of
from weft.eager.tensor.dispatch import call, kind_of, recorded
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import show as show_view
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import bool_
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.elementwise import combination
from weft.ops.elementwise.complex_number import imag as imag_of
from weft.ops.shape.creation import zeros_like

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "adjoint", "complex", "conj", "conj_physical", "imag", "is_conj", "is_neg", "isreal",
    "polar", "real", "resolve_conj", "resolve_neg", "view_as_complex", "view_as_real",
]  # fmt: skip

_conj: Final = of_one("conj")


def real(x: Tensor) -> Tensor:
    """A view of the real parts; a real tensor is returned as is."""
    x = tensor_of("real", x)
    return show_view(x, Half(imaginary=False)) if x.dtype.is_complex else x


def imag(x: Tensor) -> Tensor:
    """A view of the imaginary parts.

    Raises:
        DTypeError: real numbers.
    """
    x = tensor_of("imag", x)
    if not x.dtype.is_complex:
        raise DTypeError.here(f"imag: expected complex numbers, got {x.dtype}")
    return show_view(x, Half(imaginary=True))


def conj(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned as is."""
    x = tensor_of("conj", x)
    return _conj(x) if x.dtype.is_complex else x


conj_physical = conj


def adjoint(x: Any) -> Tensor:
    """The conjugate transpose of matrices.

    Raises:
        ShapeError: a rank below 2.
    """
    return conj(matrix_transpose(x))


def complex(real: Any, imag: Any) -> Tensor:
    """Complex numbers from real and imaginary parts.

    Raises:
        DTypeError: parts that are not floating-point, or of two dtypes.

    >>> import weft as wf
    >>> wf.complex(wf.tensor([1.0]), wf.tensor([2.0])).tolist()
    [(1+2j)]
    """
    _check_parts("complex", real, imag)
    return call(REGISTRY["complex"], real, imag)


def _check_parts(name: str, *parts: Any) -> None:
    kinds = [x.lazy.type.dtype for x in parts if isinstance(x, Handle)]
    if len(set(kinds)) > 1 or not all([kind.is_floating for kind in kinds]):
        raise DTypeError.here(
            f"{name}: expected parts of one floating type, got {', '.join(map(str, kinds))}"
        )


def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers from magnitudes and angles.

    Raises:
        DTypeError: as for `complex`.
    """
    _check_parts("polar", abs, angle)
    return _polar.on(kind_of(abs, angle), *promoted(abs, angle))


_polar = recorded(combination.polar)


def view_as_real(x: Tensor) -> Tensor:
    """A real view, with the real and imaginary parts along a new last axis.

    Raises:
        DTypeError: real numbers.
    """
    x = tensor_of("view_as_real", x)
    if not x.dtype.is_complex:
        raise DTypeError.here(f"view_as_real: expected complex numbers, got {x.dtype}")
    return show_view(x, Pairs())


def view_as_complex(x: Tensor) -> Tensor:
    """A complex view of real and imaginary parts along the last axis.

    Raises:
        DTypeError: no real floating-point numbers.
        ShapeError: the last axis does not have two elements, or they are not adjacent in memory.
    """
    x = tensor_of("view_as_complex", x)
    if x.dtype.name not in ("float32", "float64"):
        raise DTypeError.here(f"view_as_complex: expected float32 or float64, got {x.dtype}")
    if dims_of(x)[-1:] != (2,):
        raise ShapeError.here(
            f"view_as_complex: expected a last dimension of 2, got {show(dims_of(x))}"
        )
    *outer, last = x.stride()
    if last != 1 or any(n % 2 for n in outer) or x.storage_offset() % 2:
        raise ShapeError.here(
            "view_as_complex: expected a last stride of 1 and even other strides, got "
            f"{x.stride()}; contiguous() the tensor"
        )
    return show_view(x, Paired())


@recorded(differentiable=False)
def _isreal(x: Value) -> Value:
    return catalogue.equal(imag_of(x), zeros_like(imag_of(x)))


def isreal(x: Any) -> Tensor:
    """Whether the imaginary part is 0."""
    x = tensor_of("isreal", x)
    if not x.dtype.is_complex:
        return ones_like(x, dtype=bool_)
    return _isreal.on(kind_of(x), *promoted(x))


def is_conj(x: Tensor) -> bool:
    """Whether conjugation is lazy: never."""
    return False


def is_neg(x: Tensor) -> bool:
    """Whether negation is lazy: never."""
    return False


def resolve_conj(x: Tensor) -> Tensor:
    """The tensor itself: conjugation is never lazy."""
    return x


resolve_neg = resolve_conj


class Methods(Handle):
    """Complex numbers, as methods."""

    @property
    def real(self) -> Tensor:
        """A view of the real parts; assigning writes into it."""
        tensor: Any = self
        return real(tensor)

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """A view of the imaginary parts; assigning writes into it."""
        tensor: Any = self
        return imag(tensor)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(value)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix.

        Raises:
            ShapeError: no matrix.
        """
        if len(dims_of(self)) != 2:
            raise ShapeError.here(f"H: expected a matrix, got rank {len(dims_of(self))}")
        return adjoint(self)

    @property
    def mH(self) -> Tensor:
        """The last two axes swapped, conjugated."""
        return adjoint(self)
