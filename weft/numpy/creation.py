"""Arrays from data, shapes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.creation import arange as sequence
from weft.eager.functions.creation import constructor
from weft.eager.functions.shape import diagonal, movement, reshape
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange import conversion, interchange
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, bool_, float64, int64
from weft.ir.node import at_user_line
from weft.numpy.convert import (
    NEW,
    NUMBERS,
    alike,
    array_like,
    as_type,
    new,
    of_kind,
    own,
    typed,
)
from weft.ops.declaration.memory_check import check_table

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "empty", "empty_like",
    "eye", "from_dlpack", "full", "full_like", "geomspace", "identity", "indices", "linspace",
    "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

# From data


def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> ndarray:
    """An array of numbers, nested lists (which may hold arrays), or another library's array.

    Args:
        copy: `True` always copies, `False` never, `None` only if needed.

    Raises:
        ValueError: a copy is needed but not allowed.
        ShapeError, DTypeError: nested lists of unequal lengths, or no numbers.

    >>> asarray([1, 2.5]).dtype, asarray(3).dtype
    (float64, int64)
    """
    check_device(device)
    kind = None if dtype is None else as_dtype(dtype)
    if copy is False and not _shares(obj, kind):
        raise ArgumentError.here(
            f"asarray: expected a copy to be allowed, as {type(obj).__name__} is no array of "
            f"{kind or 'numbers'}"
        )
    if isinstance(obj, Handle):
        x: Any = obj if isinstance(obj, NEW.kind) else of_kind(obj)
        x = typed(x, kind)
        return own(x) if copy and x is obj else x
    if kind is not None and isinstance(obj, (list, tuple, *NUMBERS)):
        return as_type(obj, kind)
    if kind is not None:
        x = new(leaf(conversion.array_from(obj, kind, copy=bool(copy))))
        if not copy:
            x.lend()
        return x
    x = typed(array_like(obj), kind)
    return own(x) if copy and isinstance(obj, np.ndarray) else x


def _shares(obj: Any, dtype: DType | None) -> bool:
    """Whether an array may share the memory of `obj`."""
    if isinstance(obj, Handle):
        return dtype in (None, obj.lazy.type.dtype)
    if isinstance(obj, np.ndarray):
        return dtype is None or obj.dtype == dtype.numpy
    return not isinstance(obj, (list, tuple, *NUMBERS)) and hasattr(obj, "__buffer__")


def array(object: Any, dtype: Any = None, *, copy: bool = True, ndmin: int = 0) -> ndarray:
    """A new array of numbers, nested lists (which may hold arrays), or another library's array.

    Gradients flow through it to arrays in `object`.

    Args:
        ndmin: the minimal number of axes; new ones come first.
    """
    most = conversion.MOST_DIMENSIONS
    if ndmin > most:
        raise ShapeError.here(f"array: expected ndmin of at most {most}, got {ndmin}")
    x: Any = asarray(object, dtype)
    if isinstance(object, Handle):
        x = x.clone() if copy and x is object else x
    elif isinstance(object, np.ndarray) and copy:
        x = own(x)
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


asanyarray = ascontiguousarray = asarray


def copy(a: Any) -> ndarray:
    """A copy of an array; gradients flow through."""
    found: Any = array_like(a).clone()
    return found


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array that shares the memory of another library's array, or copies it if asked to."""
    check_device(device)
    found = new(interchange.from_dlpack(x).lazy)
    return own(found) if copy else found


# From shapes


def _made(x: Any, device: Any) -> ndarray:
    check_device(device)
    return wrap(x.lazy, NEW)  # pyright: ignore[reportReturnType]


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> ndarray:
    """Zeros of a shape: a number or a sequence of numbers."""
    return _made(constructor.zeros(shape, dtype=dtype or float64), device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> ndarray:
    """Ones of a shape: a number or a sequence of numbers."""
    return _made(constructor.ones(shape, dtype=dtype or float64), device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> ndarray:
    """An uninitialized array."""
    return _made(constructor.empty(shape, dtype=dtype or float64), device)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> ndarray:
    """An array filled with a number, whose dtype is the number's unless `dtype` is given."""
    value = asarray(fill_value, dtype)
    return _made(movement.broadcast_to(value, constructor.dims((shape,), "full")).clone(), device)


def _kind(x: Any, dtype: Any, shape: Any) -> tuple[Any, Any]:
    x = array_like(x)
    return (x.shape if shape is None else shape), dtype or x.dtype


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> ndarray:
    """Zeros with the shape and dtype of `x`."""
    return zeros(*_kind(x, dtype, shape), device=device)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> ndarray:
    """Ones with the shape and dtype of `x`."""
    return ones(*_kind(x, dtype, shape), device=device)


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> ndarray:
    """An uninitialized array with the shape and dtype of `x`."""
    return empty(*_kind(x, dtype, shape), device=device)


def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None, shape: Any = None
) -> ndarray:
    """An array filled with a number, with the shape and dtype of `x`."""
    dims, kind = _kind(x, dtype, shape)
    return full(dims, fill_value, kind, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> ndarray:
    """Ones on the `k`-th diagonal, zeros elsewhere."""
    kind = as_dtype(dtype or float64)
    check_table("eye", (n_rows, n_rows if n_cols is None else n_cols), float64)
    return _from(np.eye(n_rows, n_cols, k), kind, device)


def identity(n: int, dtype: Any = None) -> ndarray:
    """The identity matrix of `n` rows."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> ndarray:
    """Ones on and below the `k`-th diagonal, zeros above."""
    check_table("tri", (N, N if M is None else M), float64)
    return _from(np.tri(N, M, k), as_dtype(dtype or float64), None)


# Ranges


def _from(values: Any, dtype: DType, device: Any = None) -> ndarray:
    """NumPy's result as an array of a dtype."""
    check_device(device)
    return new(leaf(np.asarray(values).astype(dtype.numpy)))


def _plain(x: Any) -> Any:
    """A number from a one-element array."""
    return x.item() if hasattr(x, "item") else x


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> ndarray:
    """Numbers from `start` (0) up to but without `stop`, in steps; int64 if all three are integers.

    >>> arange(2, 8, 2).tolist()
    [2, 4, 6]
    """
    first, last = (0, start) if stop is None else (start, stop)
    first, last, step = _plain(first), _plain(last), _plain(step)
    whole = all([isinstance(v, int) for v in (first, last, step)])
    kind = as_dtype(dtype or (int64 if whole else float64))
    if step == 0:
        raise DTypeError.here("arange: expected a step other than 0")
    if kind is bool_ and len(range(first, last, step) if whole else ()) > 2:
        raise DTypeError.here("arange: expected at most 2 booleans")
    if whole and kind.is_integer and (last - first) * step >= 0:
        _check_held(kind, range(first, last, step))
        return _made(sequence.arange(first, last, step, dtype=kind), device)
    return _from(np.arange(first, last, step), kind, device)


def _check_held(dtype: DType, numbers: range) -> None:
    """Refuse a range whose limits an integer dtype cannot hold."""
    limits = np.iinfo(dtype.numpy)
    for end in (numbers[0], numbers[-1]) if numbers else ():
        if not limits.min <= end <= limits.max:
            text = f"arange: expected numbers that {dtype} holds, got {end}{at_user_line()}"
            raise DTypeError(text)


def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, *, dtype: Any = None,
    device: Any = None,
) -> ndarray:  # fmt: skip
    """`num` evenly spaced numbers from `start` to `stop`, inclusive unless `endpoint` is false.

    Gradients flow to `start` and `stop`.
    """
    x, y = alike(start, stop)
    check_table("linspace", (num, *x.shape), float64)
    if x.lazy.tracked or y.lazy.tracked:
        between = _between(x, y, num, endpoint)
        return between if dtype is None else between.astype(dtype)
    found = np.linspace(x.array, y.array, num, endpoint)
    found = found if x.dtype.is_inexact else found.astype(np.float64)
    kind = as_dtype(dtype or found.dtype)
    return _from(np.floor(found) if kind.is_integer else found, kind, device)


def _between(x: Any, y: Any, num: int, endpoint: bool) -> Any:
    parts = max(num - 1 if endpoint else num, 1)
    places = np.arange(num) / parts
    at = new(leaf(places.reshape((num,) + (1,) * max(x.ndim, y.ndim)).astype(x.dtype.numpy)))
    return x * (1 - at) + y * at


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0
) -> ndarray:
    """`base` to the powers `linspace(start, stop, num)`."""
    powers: Any = linspace(start, stop, num, endpoint)
    return base**powers


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> ndarray:
    """`num` numbers from `start` to `stop` in geometric progression."""
    check_table("geomspace", (num,), float64)
    return _from(np.geomspace(_plain(start), _plain(stop), num, endpoint), float64)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[ndarray]:
    """Coordinate arrays of a grid, from a vector for each axis.

    Args:
        indexing: `"xy"`: the second axis follows the first vector; `"ij"`: the first does.

    Raises:
        ShapeError: another `indexing`.
    """
    given = [array_like(x) for x in arrays]
    found: Any = sequence.meshgrid(*given, indexing=indexing) if given else ()
    return [typed(y, x.dtype) for x, y in zip(given, found, strict=True)]


def indices(dimensions: Sequence[int], dtype: Any = int64) -> ndarray:
    """For each axis of a shape, the index along it at every position."""
    check_table("indices", (len(dimensions), *dimensions), int64)
    return _from(np.indices(tuple(dimensions)), as_dtype(dtype))


def tril(x: Any, /, k: int = 0) -> ndarray:
    """Matrices with zeros above the `k`-th diagonal; a vector becomes each of the rows."""
    found: Any = diagonal.tril(_rows(x), k)
    return found


def _rows(x: Any) -> Any:
    """A matrix, or a square one whose rows are a vector."""
    found = array_like(x)
    return reshape.broadcast_to(found, (found.shape[0],) * 2) if found.ndim == 1 else found


def triu(x: Any, /, k: int = 0) -> ndarray:
    """Matrices with zeros below the `k`-th diagonal; a vector becomes each of the rows."""
    found: Any = diagonal.triu(_rows(x), k)
    return found
