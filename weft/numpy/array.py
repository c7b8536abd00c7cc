"""The array: a tensor with NumPy's rules and methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.eager.tensor.device import check_device
from weft.eager.tensor.inplace import write
from weft.eager.tensor.tensor import Tensor
from weft.errors import DTypeError
from weft.ir.dtype import as_dtype
from weft.numpy import elementwise, manipulation, product, searching, statistical
from weft.numpy.convert import NEW, array_like, typed
from weft.numpy.promotion import NUMPY
from weft.ops.base import at_user_line
from weft.ops.refusal import guard_methods

__all__ = ["astype", "ndarray"]


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """An array as another element type; itself where nothing changes and no copy is asked for.

    Raises:
        DTypeError: complex numbers to real ones; take `real(x)`.
    """
    check_device(device)
    x, kind = array_like(x), as_dtype(dtype)
    if x.dtype.is_complex and not kind.is_complex and kind.name != "bool":
        raise DTypeError(
            f"astype: expected a complex type, got {kind}; take real(x) first{at_user_line()}"
        )
    return x.clone() if copy and kind is x.dtype else typed(x, kind)


def _sequence(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence of numbers as a method that takes them one by one as well."""

    def method(self: Any, *numbers: Any, **options: Any) -> Any:
        given = numbers[0] if len(numbers) == 1 else numbers
        return function(self, given, **options) if numbers else function(self, **options)

    method.__doc__ = function.__doc__
    return method


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a method that NumPy's own functions call, which name an output they lack."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, out: None = None, **options: Any) -> Any:
        return function(self, *args, **options)

    return method


class ndarray(Tensor):
    """An array whose operations are recorded, and computed when someone looks.

    Operators combine element types as NumPy 2 does; methods are NumPy's, and those of tensors that
    NumPy has not. Whatever is computed from one is one.
    """

    __slots__ = ()
    rules = NUMPY
    __array_priority__ = 1001  # above tensors

    def __init__(self, data: Any) -> None:
        super().__init__(array_like(data))

    # -- what it is

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number of elements."""
        return self.numel()

    @property
    def real(self) -> ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The real parts."""
        return elementwise.real(self)

    @property
    def imag(self) -> ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The imaginary parts."""
        return elementwise.imag(self)

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return iter(manipulation.ravel(self))

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index of an axis to the next."""
        return tuple([s * self.itemsize for s in self.stride()])

    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray:
        """The array itself, which is in this computer's memory, the only place there is."""
        check_device(device)
        if stream is not None:
            raise DTypeError(f"to_device: expected no stream, got {stream!r}{at_user_line()}")
        return self

    # -- conversions

    astype = astype

    def copy(self) -> ndarray:
        """An array of its own with the same elements."""
        return self.clone()  # pyright: ignore[reportReturnType]

    def item(self, *index: int) -> Any:
        """The one element, or the one at an index, as a Python number."""
        place = np.unravel_index(index[0], self.shape) if len(index) == 1 else index
        return Tensor.item(self[tuple([int(i) for i in place])] if index else self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return Tensor.__array__(self, dtype, copy)

    # -- arithmetic

    conj = elementwise.conj
    conjugate = elementwise.conj
    clip = _method(elementwise.clip)
    round = _method(elementwise.round)

    # -- reductions

    all = _method(statistical.all)
    any = _method(statistical.any)
    argmax = _method(searching.argmax)
    argmin = _method(searching.argmin)
    cumprod = _method(statistical.cumprod)
    cumsum = _method(statistical.cumsum)
    max = _method(statistical.max)
    mean = _method(statistical.mean)
    min = _method(statistical.min)
    prod = _method(statistical.prod)
    ptp = _method(statistical.ptp)
    std = _method(statistical.std)
    sum = _method(statistical.sum)
    trace = _method(product.trace)
    var = _method(statistical.var)

    # -- shapes

    diagonal = manipulation.diagonal
    ravel = manipulation.ravel
    repeat = manipulation.repeat
    reshape = _sequence(manipulation.reshape)
    squeeze = manipulation.squeeze
    swapaxes = manipulation.swapaxes
    transpose = _sequence(manipulation.transpose)

    def flatten(self, order: str = "C") -> ndarray:
        """All elements in one axis, as an array of its own."""
        return manipulation.ravel(self, order).clone()  # pyright: ignore[reportReturnType]

    # -- others

    argsort = searching.argsort
    choose = searching.choose
    dot = product.dot
    nonzero = searching.nonzero
    searchsorted = searching.searchsorted
    take = searching.take

    def fill(self, value: Any) -> None:
        """Put one number in every place."""
        self.fill_(value)

    def sort(self, axis: int = -1) -> None:
        """Put the elements in order along an axis, in place."""
        write(self, searching.sort(self, axis).lazy, "sort")

    def __repr__(self) -> str:
        inner = np.array2string(self.array, separator=", ", prefix="array(")
        usual = self.dtype.name in ("float64", "int64", "bool", "complex128") and self.numel()
        return f"array({inner})" if usual else f"array({inner}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self.array)

    def __format__(self, spec: str) -> str:
        return format(Tensor.item(self), spec) if not self.ndim else str(self)


guard_methods(ndarray, Tensor)
ndarray.kind = ndarray
NEW.kind = ndarray
