"""NumPy's methods of arrays: functions of the other modules, attached to `ndarray`."""

# pyright: reportAssignmentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
# NumPy's methods take other arguments than PyTorch's of the same name.

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from weft.eager.functions.table import members
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view.inplace import write
from weft.numpy import convert, declared, elementwise, manipulation, product, searching, statistical
from weft.numpy.array import ndarray
from weft.numpy.convert import NEW, array_like
from weft.ops.refusal import guard_methods


def _sequence(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence of numbers as a method that also takes separate numbers."""

    def method(self: Any, *numbers: Any, **options: Any) -> Any:
        given = numbers[0] if len(numbers) == 1 else numbers
        return function(self, given, **options) if numbers else function(self, **options)

    method.__doc__ = function.__doc__
    return method


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a method that NumPy's functions may call with `out=None`."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, out: None = None, **options: Any) -> Any:
        return function(self, *args, **options)

    return method


class Methods(Tensor):
    """Methods of NumPy's arrays that PyTorch lacks."""

    def __init__(self, data: Any) -> None:
        Tensor.__init__(self, array_like(data))

    @property
    def real(self) -> ndarray:
        """The real parts."""
        return elementwise.real(self)

    @property
    def imag(self) -> ndarray:
        """The imaginary parts."""
        return elementwise.imag(self)

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return iter(manipulation.ravel(self))

    astype = convert.astype

    reshape = _sequence(manipulation.reshape)
    transpose = _sequence(manipulation.transpose)

    def flatten(self, order: str = "C") -> ndarray:
        """A flattened copy."""
        return manipulation.ravel(self, order).clone()  # pyright: ignore[reportReturnType]

    def sort(self, axis: int = -1) -> None:
        """Sort along an axis, in place."""
        write(self, searching.sort(self, axis).lazy, "sort")


_ROWS: Final = (
    (declared, "conj conjugate"),
    (manipulation, "diagonal ravel repeat squeeze swapaxes"),
    (product, "dot"),
    (searching, "argsort choose nonzero searchsorted take"),
)
"""Functions that are methods as they are."""
_WITH_OUT: Final = (
    (declared, " ".join(declared.cumulative_names())),
    (elementwise, "clip round"),
    (product, "trace"),
    (searching, "argmax argmin"),
    (statistical, "all any max mean min prod ptp std sum var"),
)
"""Functions that are methods with `out=None`."""

for _rows, _made in ((_ROWS, lambda f: f), (_WITH_OUT, _method)):
    for _module, _names in _rows:
        for _name in _names.split():
            setattr(Methods, _name, _made(getattr(_module, _name)))
for _name, _member in members(Methods).items():
    setattr(ndarray, _name, _member)
guard_methods(ndarray, Tensor)
NEW.kind = ndarray
