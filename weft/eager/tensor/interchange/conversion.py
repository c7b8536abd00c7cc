"""Converts data of Python and other libraries to arrays and values, for `weft.tensor`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import leaf, record, recorded, wrap
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError, WeftError
from weft.ir.dtype import DType, as_dtype, bfloat16, float32, float64, is_number
from weft.ir.node import at_user_line
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY
from weft.ops.shape import creation as nodes

STOP: Final = REGISTRY["stop_gradient"]
MOST_DIMENSIONS: Final = 64  # NumPy's
REALS: Final = (float32, float64)
FEW: Final = 16
LARGE: Final = 1e38
PYTHON: Final = frozenset({bool, int, float, complex})  # the numbers without a dtype


def showing(array: Array) -> Any:
    """A tensor on memory of others, who may write to it."""
    x = wrap(leaf(array))
    x.lend()
    return x


def array_from(data: Any, dtype: DType | None, copy: bool) -> Array:
    """`data` as an array of a dtype that tensors support.

    Raises:
        ShapeError, DTypeError: see `tensor`.
    """
    if type(data) is np.ndarray and dtype is None and not copy and is_number(data.dtype):
        return data
    if isinstance(data, list | tuple):
        if dtype is not None and dtype in REALS and len(data) <= FEW and _are_modest(data):
            return np.array(data, dtype.numpy)
        data = _values(data, 0)
    try:
        with np.errstate(over="ignore"):
            array = np.array(data, None if dtype is None else dtype.numpy, copy=copy or None)
    except OverflowError:
        return _wrapped(data, dtype)
    except WeftError:
        raise
    except (ValueError, TypeError) as error:
        ragged = "inhomogeneous" in str(error)
        kind = ShapeError if ragged and not _is_mixed(data) else DTypeError
        text = "nested lists of equal lengths" if ragged else "numbers"
        raise kind.here(f"tensor: expected {text}, got {shown(data)}") from None
    if array.dtype.byteorder not in "=|":
        array = array.astype(array.dtype.newbyteorder("="))
    return _usual(array, data) if dtype is None else array


def _are_modest(data: Sequence[Any]) -> bool:
    """Whether these are Python floats that any of `REALS` can hold, such as means of channels."""
    return {*map(type, data)} == {float} and max(data) < LARGE and min(data) > -LARGE


def _values(data: Any, depth: int) -> Any:
    """Nested lists with tensors that NumPy cannot read replaced by their elements.

    These are tensors that require grad or are bfloat16; one of a single element is a number.

    Raises:
        DTypeError: lists nested deeper than any tensor, such as one that contains itself.
    """
    if isinstance(data, Handle):
        shape = known(data.lazy.type.shape)
        if shape and math.prod(shape) == 1 and data.rules is promotion.TORCH:
            return data.array.reshape(())
        return data.array if data.lazy.tracked or data.lazy.type.dtype is bfloat16 else data
    if isinstance(data, list | tuple):
        if depth == MOST_DIMENSIONS:
            text = f"tensor: expected at most {MOST_DIMENSIONS} lists inside one another"
            raise DTypeError.here(text)
        given = cast("Sequence[Any]", data)
        if any([isinstance(x, Handle | list | tuple) for x in given]):
            return [_values(x, depth + 1) for x in given]
    return data


def _is_mixed(data: Any) -> bool:
    """Whether nested lists mix numbers and lists."""
    if not isinstance(data, list | tuple):
        return False
    given = cast("Sequence[Any]", data)
    return len(
        {
            np.ndim(x) > 0 if isinstance(x, np.ndarray) else isinstance(x, list | tuple)
            for x in given
        }
    ) > 1 or any([_is_mixed(x) for x in given])


def _wrapped(data: Any, dtype: DType | None) -> Array:
    """Python integers for an unsigned dtype; negative ones wrap to their two's complement.

    Raises:
        DTypeError: one is too large.
    """
    text = f"tensor: expected numbers that {dtype} holds, got {shown(data)}{at_user_line()}"
    try:
        array = np.array(data, np.int64)
    except OverflowError:
        raise DTypeError(text) from None
    limit = 0 if dtype is None or dtype.kind != "u" else int(np.iinfo(dtype.numpy).max)
    fraction = np.asarray(data).dtype.kind == "f"
    if fraction or not array.size or array.min() < -limit or array.max() > limit:
        raise DTypeError(text)
    assert dtype is not None
    return array.astype(dtype.numpy)


def _usual(array: Array, data: Any) -> Array:
    """`array` in the dtype that PyTorch gives to such data.

    Raises:
        DTypeError: it has no numbers, or integers beyond int64.
    """
    kind = array.dtype.str[1:]  # its name takes NumPy microseconds
    if kind in ("f8", "u8") and _is_huge(array) and _has_huge(data):
        raise DTypeError.here(f"tensor: expected integers that int64 holds, got {shown(data)}")
    if kind in ("f8", "c16") and not _is_double(data):
        usual = promotion.get_default_dtype()
        usual = promotion.complex_of(usual) if array.dtype.kind == "c" else usual
        return array.astype(usual.numpy)
    try:
        as_dtype(array.dtype)
    except DTypeError:
        text = f"tensor: expected numbers, got {shown(data)} of type {array.dtype}"
        raise DTypeError.here(text) from None
    return array


_HUGE: Final = 2**63  # the first integer beyond int64


def _is_huge(array: Array) -> bool:
    return bool((np.abs(array) >= _HUGE).any())


def _has_huge(data: Any) -> bool:
    """Whether it is or contains a Python integer beyond int64."""
    if isinstance(data, list | tuple):
        return any(map(_has_huge, cast("Sequence[Any]", data)))
    return type(data) is int and not -_HUGE <= data < _HUGE


def _is_double(data: Any) -> bool:
    """Whether it is or contains a float64 or complex128 that is no Python number."""
    if not isinstance(data, list | tuple):
        own: Any = data.lazy.type.dtype.numpy if isinstance(data, Handle) else _own_type(data)
        return own in (np.float64, np.complex128)
    given = cast("Sequence[Any]", data)
    return not set(map(type, given)) <= PYTHON and any(map(_is_double, given))


def _own_type(x: Any) -> Any:
    return getattr(getattr(x, "dtype", None), "type", None)


def shown(data: Any) -> str:
    """Data as short text, for error messages."""
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."


def copied(lazy: Lazy, dtype: DType | None = None) -> Lazy:
    """A detached copy."""
    before, trace.now.grad_mode = trace.now.grad_mode, False
    try:
        if dtype is None or dtype is lazy.type.dtype:
            return record(STOP, (lazy,), {})[0]
        return record(REGISTRY["cast"], (lazy,), {"dtype": dtype})[0]
    finally:
        trace.now.grad_mode = before


filled_with = recorded(nodes.full, differentiable=False)
"""An array of a shape filled with a number."""


def zeros_of(shape: tuple[int, ...], dtype: DType) -> Any:
    """A tensor of zeros."""
    return wrap(filled_with.record((), {"value": 0, "shape": shape, "dtype": dtype})[0])
