"""Ranges, grids and index pairs."""

from __future__ import annotations

import builtins
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.creation.constructor import dims, finished, floating
from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.dispatch import leaf, recorded
from weft.eager.tensor.dtype.promotion import TORCH, complex_of, get_default_dtype
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.scalar import element
from weft.eager.tensor.view.memory_format import check_place
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, bool_, float64, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.declaration.memory_check import check_table
from weft.ops.shape import creation as nodes
from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


@recorded(differentiable=False)
def _iota(*, start: int, step: int, count: int, dtype: DType) -> Value:
    stop = start + step * count
    found = catalogue.arange(start=start, stop=stop, step=step, dtype=int64)
    return found if dtype is int64 else catalogue.cast(found, dtype=dtype)


_eye = recorded(nodes.eye, differentiable=False)


@recorded
def _grid(*xs: Value, swap: bool) -> tuple[Value, ...]:
    order = (
        [1, 0, *builtins.range(2, len(xs))]
        if swap and len(xs) > 1
        else list(builtins.range(len(xs)))
    )
    sizes = [known(x.shape)[0] if x.shape else 1 for x in xs]
    shape = tuple([sizes[i] for i in order])
    found: list[Value] = []
    for i, x in enumerate(xs):
        column = tuple([sizes[i] if j == i else 1 for j in order])
        column = catalogue.reshape(x, shape=column)
        found.append(catalogue.broadcast_to(column, shape=shape))
    return tuple(found)


def arange(
    start: Any, end: Any = None, step: Any = 1, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` (0) up to but without `end`, in steps; int64 if all three are integers.

    Raises:
        ShapeError: `step` is 0 or has the wrong sign, or the limits are not finite.
        DTypeError: the dtype is bool, or int64 cannot hold the limits.

    Example:
        >>> import weft as wf
        >>> wf.arange(2, 8, 2).tolist()
        [2, 4, 6]
    """
    check_place(device, layout)
    first, last = (0, start) if end is None else (start, end)
    first, last, step = (_number(x) for x in (first, last, step))
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ShapeError.here(f"arange: expected finite limits, got {first} and {last}")
    if step == 0 or (last - first) * step < 0:
        raise ShapeError.here(
            f"arange: expected a step that leads from {first} to {last}, got {step}"
        )
    if dtype is not None and as_dtype(dtype) is int64:
        first, last, step = int(first), int(last), int(step)
        if not step:
            raise ShapeError.here("arange: expected a whole step that is not 0")
    _check_ends("arange", int64, dtype, first, last)
    if all([isinstance(x, int) for x in (first, last, step)]):
        kind = int64 if dtype is None else as_dtype(dtype)
        if kind.is_integer:
            static = {"start": first, "step": step, "count": len(builtins.range(first, last, step))}
            found = _iota.record((), {**static, "dtype": kind})[0]
            return finished(found, requires_grad, device)
    else:
        kind = floating(dtype)
    count = (last - first) / step if step else 0
    if math.isfinite(count):
        check_table("arange", (max(math.ceil(count), 0),), float64)
    return _from(np.arange(first, last, step), kind, requires_grad, device)


@functools.cache
def _limits(kind: DType) -> tuple[int, int]:
    """The least and the largest integer of a type."""
    limits = np.iinfo(kind.numpy)
    return int(limits.min), int(limits.max)


def _check_ends(name: str, held: DType, dtype: Any, *ends: Any) -> None:
    """Refuse bool, and integer limits that `held` cannot hold.

    Raises:
        DTypeError: names the dtype or the limit.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if kind is bool_:
        raise DTypeError.here(f"{name}: expected a type of numbers, got bool")
    whole = all([isinstance(x, int) for x in ends]) if kind is None else kind.is_integer
    least, most = _limits(held)
    for end in ends if whole else ():
        if not least <= end <= most:
            raise DTypeError.here(f"{name}: expected numbers that {held} holds, got {end}")


def range(
    start: Any, end: Any = None, step: Any = 1, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` to `end` inclusive, in steps; `arange` excludes the end.

    Raises:
        ShapeError: as for `arange`.

    It warns about this difference, as in PyTorch.
    """
    text = "range: its last number makes it another one than Python's range, use arange()"
    warn(text)
    check_place(device, layout)
    first, last = (0, start) if end is None else (start, end)
    first, last, step = (_number(x) for x in (first, last, step))
    if step == 0 or not math.isfinite(first + last) or (last - first) * step < 0:
        raise ShapeError.here(
            f"range: expected finite limits and a step that leads from {first} to {last}, got "
            f"{step}"
        )
    count = int((last - first) / step + 1)
    check_table("range", (count,), float64)
    return _from(first + np.arange(count) * step, floating(dtype), requires_grad, device)


def _number(x: Any) -> Any:
    """A Python number, from one or from a one-element tensor or array."""
    return x.item() if hasattr(x, "item") else x


def _from(array: Array, dtype: DType, requires_grad: bool, device: Any) -> Tensor:
    with np.errstate(over="ignore"):
        return finished(leaf(array.astype(dtype.numpy)), requires_grad, device)


def linspace(
    start: Any, end: Any, steps: int, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from `start` to `end`, both inclusive.

    Raises:
        DTypeError: the dtype is bool or cannot hold the limits.

    >>> import weft as wf
    >>> wf.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    check_place(device, layout)
    kind = _kind(dtype, start, end)
    ends = [_number(x) for x in (start, end)]
    if kind.is_integer or kind is bool_:
        _check_ends("linspace", kind, kind, *ends)
    for x in ends:
        element(x, kind)  # refuses what the dtype cannot hold
    return _from(_even("linspace", start, end, steps, kind), kind, requires_grad, device)


def _kind(dtype: Any, *numbers: Any) -> DType:
    """The given dtype, or the default one: complex if a number is complex.

    Raises:
        DTypeError: a number is complex, but the given dtype is not.
    """
    if not any([isinstance(_number(x), complex) for x in numbers]):
        return floating(dtype)
    kind = complex_of(get_default_dtype()) if dtype is None else as_dtype(dtype)
    if not kind.is_complex:
        raise DTypeError.here(f"expected a complex type for complex numbers, got {kind}")
    return kind


def _even(name: str, start: Any, end: Any, steps: Any, kind: DType) -> Array:
    first, last = _number(start), _number(end)
    if kind.is_integer:
        first, last = int(first), int(last)
    shape = dims((steps,), name)
    check_table(name, shape, float64)
    return np.linspace(first, last, shape[0])


def logspace(
    start: Any, end: Any, steps: int, base: Any = 10.0, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`base` to the powers `linspace(start, end, steps)`."""
    check_place(device, layout)
    kind = _kind(dtype, start, end, base)
    powers = _even("logspace", start, end, steps, kind)
    return _from(np.power(base, powers), kind, requires_grad, device)


def eye(
    n: int, m: int | None = None, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The identity matrix of `n` rows and `m` columns (`n`).

    >>> import weft as wf
    >>> wf.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_place(device, layout)
    rows, columns = dims((n, n if m is None else m), "eye")
    static = {"rows": rows, "columns": columns, "dtype": floating(dtype)}
    return finished(_eye.record((), static)[0], requires_grad, device)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column indices of a matrix's lower triangle up to a diagonal: shape (2, count).

    >>> import weft as wf
    >>> wf.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    check_place(device, layout)
    dims((row, col), "tril_indices")
    return _from(triangle("tril_indices", row, col, offset, True), _indices(dtype), False, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column indices of a matrix's upper triangle from a diagonal on: shape (2, count)."""
    check_place(device, layout)
    dims((row, col), "triu_indices")
    return _from(triangle("triu_indices", row, col, offset, False), _indices(dtype), False, device)


def _indices(dtype: Any) -> DType:
    return int64 if dtype is None else as_dtype(dtype)


def triangle(name: str, row: int, col: int, offset: int, lower: bool) -> Array:
    """Row and column indices of a triangle of a matrix: shape (2, count).

    Raises:
        OutOfMemoryError: there are too many.
    """
    offset = max(-row, min(offset, col))
    wide = min(col, row + max(offset, 0)) if lower else col  # further columns have none
    check_table(name, (4, max(row, 0 if lower or not row else col - max(offset, 0))), int64)
    edge = np.clip(np.arange(row) + offset + lower, 0, wide)
    begin, counts = (np.zeros_like(edge), edge) if lower else (edge, wide - edge)
    total = int(counts.sum(dtype=np.float64))
    check_table(name, (4, total), int64)
    rows = np.repeat(np.arange(row), counts)
    columns = np.arange(total) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
    return np.stack([rows, columns])


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate tensors of a grid, from the coordinates along each axis (vectors or scalars).

    Args:
        indexing: `"ij"`: the first axis follows the first tensor; `"xy"`: the second does.

    Example:
        >>> import weft as wf
        >>> i, j = wf.meshgrid(wf.arange(2), wf.arange(3))
        >>> i.tolist(), j.tolist()
        ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    if indexing not in ("ij", "xy"):
        raise ShapeError.here(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    if not given:
        raise ShapeError.here("meshgrid: expected at least one tensor, got none")
    kinds = {x.lazy.type.dtype for x in given if isinstance(x, Handle) and x.rules is TORCH}
    if len(kinds) > 1:
        text = f"meshgrid: expected tensors of one type, got {', '.join(sorted(map(str, kinds)))}"
        raise DTypeError.here(text)
    found = _grid(*given, swap=indexing == "xy")
    return found if isinstance(found, tuple) else (found,)
