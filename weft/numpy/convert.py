"""Converts arguments of functions to arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import SEQUENCE, cast, lazy_of, leaf, record, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import array_from, copied
from weft.errors import DTypeError, ShapeError, nameless
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import at_user_line
from weft.ir.shape import known, show
from weft.numpy.promotion import rules_of
from weft.ops.declaration import REGISTRY
from weft.ops.refusal import shown

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

NUMBERS: Final = (bool, int, float, complex)


class _Kind:
    """Stands for an array when only the class of results matters."""

    kind: type[Any]


NEW: Final = _Kind()
"""What results are like where no argument is an array; `weft.numpy.array` sets the kind."""


def array_like(x: Any) -> Any:
    """An argument as an array; tensors and arrays are returned as they are.

    Nested lists may hold arrays, through which gradients flow.

    Raises:
        ShapeError, DTypeError: nested lists of unequal lengths, or no numbers.
    """
    if isinstance(x, Handle):
        return x
    if type(x) in NUMBERS:
        return new(leaf(_of_number(x)))
    if isinstance(x, list | tuple) and _holds_arrays(x):
        return _stacked(x)
    found = new(leaf(_of_data(x)))
    found.lend()
    return found


def new(lazy: Lazy) -> ndarray:
    """A new array that holds a value."""
    found: Any = wrap(lazy, NEW)
    return found


def _of_number(x: Any) -> Any:
    try:
        return np.array(x, np.int64 if type(x) is int else None)
    except OverflowError:
        if x < 0 or x >= 2**64:
            raise DTypeError.here(f"asarray: {x} fits no integer type") from None
        return np.array(x, np.uint64)


def _of_data(x: Any) -> Any:
    try:
        array = np.asarray(x)
    except ValueError as error:
        if SEQUENCE not in str(error):
            raise
        text = f"expected nested lists of equal lengths, got {shown(x)}{at_user_line()}"
        raise nameless(ShapeError(text)) from error
    if array.dtype == object:
        array = np.asarray(x, np.float64) if _has_values(array) else array
    return array_from(array, None, copy=False)


def _has_values(array: Any) -> bool:
    """Whether an array of objects holds only numbers.

    Raises:
        DTypeError: some are integers that fit no integer dtype.
    """
    for v in array.reshape(-1):
        if isinstance(v, int) and not -(2**63) <= v < 2**64:
            raise DTypeError.here(f"asarray: {v} fits no integer type")
    return all([isinstance(v, int | float | np.generic) for v in array.reshape(-1)])


def as_type(x: Any, dtype: DType) -> Any:
    """Numbers, or nested lists of them without arrays, as an array of a dtype.

    Raises:
        ShapeError, DTypeError: lists of unequal lengths, no numbers, or numbers that `dtype` cannot
            hold.
    """
    if isinstance(x, list | tuple) and _holds_arrays(x):
        return typed(x, dtype)
    try:
        with np.errstate(all="ignore"):
            array = np.asarray(x, dtype.numpy)
    except (OverflowError, ValueError, TypeError):
        array_like(x)  # raises the right error for lists
        text = f"asarray: expected numbers that {dtype} holds, got {x!r}{at_user_line()}"
        raise DTypeError(text) from None
    return new(leaf(array_from(array, dtype, copy=False)))


def _holds_arrays(x: Any) -> bool:
    """Whether nested lists contain an array."""
    return any(
        isinstance(v, Handle) or (isinstance(v, list | tuple) and _holds_arrays(v)) for v in x
    )


def _stacked(x: Any) -> Any:
    """Nested lists of arrays as one array."""
    rows = [array_like(v) for v in x]
    dtype = common(rows)
    lazies = [cast(r.lazy, dtype) for r in rows]
    shapes = {known(y.type.shape) for y in lazies}
    if len(shapes) != 1:
        listed = ", ".join(map(show, shapes))
        raise ShapeError.here(f"array: expected entries of one shape, got {listed}")
    like = next((r for r in rows if isinstance(r, NEW.kind)), NEW)
    return wrap(record(REGISTRY["stack"], lazies, {"axis": 0})[0], like)


def common(arrays: Sequence[Any]) -> DType:
    """The dtype to which arrays are promoted."""
    return rules_of(arrays).result([x.lazy.type for x in arrays])


def operands(*xs: Any) -> list[Any]:
    """Arguments as arrays, except bare numbers beside an array, which take its dtype."""
    if all([type(x) in NUMBERS for x in xs]):
        return [array_like(x) for x in xs]
    return [x if type(x) in NUMBERS else array_like(x) for x in xs]


def alike(*xs: Any) -> list[Any]:
    """Arguments as arrays of their common dtype."""
    given = operands(*xs)
    arrays = [x for x in given if type(x) not in NUMBERS]
    dtype = common(arrays)
    for x in given:
        if type(x) in NUMBERS:
            dtype = rules_of(arrays).number(x, dtype)
    return [
        converted(x, dtype) if isinstance(x, Handle) else wrap(lazy_of(x, dtype), arrays[0])
        for x in given
    ]


def floats(x: Any) -> Any:
    """An argument as a floating-point or complex array."""
    x = array_like(x)
    return converted(x, rules_of([x]).floating(x.lazy.type.dtype))


def typed(x: Any, dtype: Any) -> Any:
    """An argument as an array of a dtype, by default its own."""
    x = array_like(x)
    return x if dtype is None else converted(x, as_dtype(dtype))


def converted(x: Any, dtype: DType) -> Any:
    """An array as another dtype; itself if it has that dtype."""
    return x if x.lazy.type.dtype is dtype else wrap(cast(x.lazy, dtype), x)


def of_kind(x: Handle) -> ndarray:
    """A tensor as an array; gradients flow through."""
    return new(record(REGISTRY["identity"], (x.lazy,), {})[0])


def own(x: Any, dtype: DType | None = None) -> Any:
    """A detached copy."""
    return wrap(copied(x.lazy, dtype), x)


def hosted(function: Callable[..., Any], *xs: Any) -> Any:
    """A NumPy function on the values of arrays, with data-dependent result shapes."""
    like = next((x for x in xs if isinstance(x, Handle)), NEW)
    arrays = [x.array if isinstance(x, Handle) else x for x in xs]
    found = function(*arrays)
    if isinstance(found, tuple):
        return tuple([wrap(leaf(np.asarray(y)), like) for y in found])
    return wrap(leaf(np.asarray(found)), like)


def of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of arguments that can be converted to arrays."""

    @functools.wraps(function)
    def run(*xs: Any, **attrs: Any) -> Any:
        return function(*operands(*xs), **attrs)

    return run


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """An array as another dtype; itself if nothing changes and `copy` is false.

    Raises:
        DTypeError: complex to real; take `real(x)`.
    """
    check_device(device)
    x, kind = array_like(x), as_dtype(dtype)
    if x.dtype.is_complex and not kind.is_complex and kind.name != "bool":
        raise DTypeError.here(f"astype: expected a complex type, got {kind}; take real(x) first")
    return x.clone() if copy and kind is x.dtype else typed(x, kind)
