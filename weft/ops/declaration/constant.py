"""Constants: nodes for Python numbers and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, int64, string
from weft.ir.extent import Extent
from weft.ir.graph import current_graph
from weft.ir.node import Literal, TensorType, Value

Array = np.ndarray[Any, Any]


def constant_of(value: Any, dtype: DType | None = None, name: str | None = None) -> Value:
    """A constant node for a Python number or an array; a bare number takes `dtype`.

    A symbolic integer is a node that computes it.

    Raises:
        DTypeError: a bare number that `dtype` cannot hold, such as 0.5 for int32.
        ShapeError: nested lists of different lengths.
    """
    if type(value) is Extent and not value.extents.planning:  # it differs from run to run
        attrs = {"size": value, "dtype": dtype or int64}
        types = (TensorType(dtype or int64, ()),)
        return current_graph().add("number_of", (), attrs, types, name).outputs[0]
    if value.__class__ in (int, float, bool):
        literal, types = _number(value, dtype)
    else:
        array = _array_of(value, dtype)
        literal = {"value": Literal(array)}
        types = (TensorType(as_dtype(array.dtype), array.shape),)
    return current_graph().add("constant", (), literal, types, name).outputs[0]


def texts(array: Array, name: str | None = None) -> Value:
    """A constant node for an array of bytes objects."""
    attrs = {"value": Literal(array)}
    types = (TensorType(string, array.shape),)
    return current_graph().add("constant", (), attrs, types, name).outputs[0]


_numbers: dict[Any, tuple[Mapping[str, Any], tuple[TensorType]]] = {}
_MOST_NUMBERS: Final = 4096  # numbers such as learning rates change from step to step


def _number(value: float, dtype: DType | None) -> tuple[Mapping[str, Any], tuple[TensorType]]:
    """Attributes and type of a constant for a Python number."""
    key = (value.__class__, value or repr(value), dtype)  # 0.0 is not -0.0
    constant = _numbers.get(key)
    if constant is None:
        array = _array_of(value, dtype)
        constant = {"value": Literal(array)}, (TensorType(as_dtype(array.dtype), ()),)
        if len(_numbers) >= _MOST_NUMBERS:
            _numbers.clear()
        _numbers[key] = constant
    return constant


def _array_of(value: Any, dtype: DType | None) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:
        text = f"constant: expected nested lists of equal lengths, got {value!r}"
        raise ShapeError.here(text) from None
    if not isinstance(value, np.ndarray | np.generic):
        if dtype is not None:
            array = _bare(value, array, dtype)
        elif array.dtype in _NARROWER:
            array = array.astype(_NARROWER[array.dtype])
    return array


_NARROWER: Final = {
    np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.complex64),
}  # fmt: skip
"""The default dtypes of bare numbers."""


def _bare(value: Any, array: Array, dtype: DType) -> Array:
    if dtype.is_hosted:
        raise DTypeError.here(f"constant: expected a {dtype} value, got {value!r}")
    try:
        if array.dtype.kind == "c" and not dtype.is_complex:
            raise TypeError
        with np.errstate(all="ignore"):
            converted = array.astype(dtype.numpy)
        exact = dtype.is_inexact or bool((array == converted).all())
    except (TypeError, ValueError, OverflowError):
        exact, converted = False, array
    if not exact:
        raise DTypeError.here(f"constant: expected a number that {dtype} holds, got {value!r}")
    return converted
