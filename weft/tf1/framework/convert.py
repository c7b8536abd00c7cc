"""Conversion of Python values to tensors by TensorFlow's rules, and constants."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.documentation import named
from weft.errors import DTypeError, GraphError, ShapeError, nameless
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Op, op_of
from weft.ops.declaration.constant import texts
from weft.ops.declaration.memory_check import check_table
from weft.ops.resource.host_value import text_array
from weft.tf1.framework.dtypes import DType, as_dtype, int32, string
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.host import is_text
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import Dimension, TensorShape

Array = np.ndarray[Any, Any]


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor, a variable or a user-defined operation."""
    if isinstance(value, Operation):
        return type(value) is not Operation
    return hasattr(value, "_as_graph_tensor")


def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:  # fmt: skip
    """`value` as a tensor of the default graph.

    Args:
        value: a tensor, a variable, `IndexedSlices`, a number, an array, or nested lists of these.
        dtype: the required element type.
        name: the name of a new constant.
        preferred_dtype, dtype_hint: the type that a plain value takes if it can.

    Raises:
        DTypeError: the value has another type, or cannot be converted.
    """
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    hint = preferred_dtype if dtype_hint is None else dtype_hint
    found = _symbolic(value, wanted, name)
    if found is not None:
        if wanted is not None and found.dtype.base_dtype is not wanted:
            raise fail(DTypeError, f"expected a tensor of type {wanted.name}, got {found}")
        return found
    if dtype is None and hint is not None:
        with contextlib.suppress(TypeError, ValueError):  # a hint need not be followed
            return constant(value, hint, name=name or "Const")
    return constant(value, wanted, name=name or "Const")


internal_convert_to_tensor = convert_to_tensor


def _symbolic(value: Any, wanted: DType | None, name: str | None) -> Tensor | None:
    """The tensor that `value` is or contains; `None` if it is plain."""
    if is_tensor(value):
        return value._as_graph_tensor()
    if isinstance(value, IndexedSlices):
        return value.dense(name)
    if isinstance(value, Operation):
        raise fail(DTypeError, f"expected a tensor, got operation {value.name!r}")
    if isinstance(value, list | tuple) and _contains_tensor(value):
        return _packed(value, wanted, name)
    return None


def _contains_tensor(value: Any) -> bool:
    return any(is_tensor(v) or (isinstance(v, list | tuple) and _contains_tensor(v)) for v in value)


def _packed(items: Sequence[Any], wanted: DType | None, name: str | None) -> Tensor:
    like = wanted or next(t for t in map(_dtype_of, items) if t is not None)
    with name_scope(name, "packed", [v for v in items if is_tensor(v)]) as scope:
        tensors = [convert_to_tensor(v, like, name=str(i)) for i, v in enumerate(items)]
        return emit(
            "Pack", tensors, "stack", axis=0, name=scope, attrs={"N": len(tensors), "axis": 0}
        )


def _dtype_of(value: Any) -> DType | None:
    if is_tensor(value):
        return value._as_graph_tensor().dtype.base_dtype
    if isinstance(value, list | tuple):
        return next((t for t in map(_dtype_of, value) if t is not None), None)
    return None


def convert_n_to_tensor(
    values: Sequence[Any], dtype: Any = None, name: str | None = None, hint: Any = None
) -> list[Tensor]:
    """Each value as a tensor, all with the type of the first tensor among them."""
    wanted = dtype
    if wanted is None:
        wanted = next((t for t in map(_dtype_of, values) if t is not None), None)
    return [
        convert_to_tensor(v, wanted, None if name is None else f"{name}_{i}", hint)
        for i, v in enumerate(values)
    ]


# constants
def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor with a constant value.

    Args:
        value: a number, a text, nested lists, or an array.
        dtype: its element type; by default Python's numbers become float32 and int32.
        shape: a shape to fill; the last element is repeated.
        name: the operation's name.
        verify_shape: raise for a value of another shape instead of filling.

    Raises:
        DTypeError: `dtype` cannot hold the value.
        ShapeError: the lists are ragged, or have more elements than `shape`.
    """
    kind = None if dtype is None else as_dtype(dtype).base_dtype
    if kind is string or (kind is None and is_text(value)):
        array = _texts(value)
    else:
        array = as_array(value, kind)
    if shape is not None:
        array = _filled(array, tuple(TensorShape(shape).as_list()), verify_shape)
    return emit_constant(array, name or "Const")


def emit_constant(array: Array, name: str) -> Tensor:
    """A constant operation in the default graph."""
    kind = as_dtype(array.dtype)
    build = texts if kind is string else "constant"
    return emit("Const", (), build, array, name=name, attrs={"value": array, "dtype": kind})


def _texts(value: Any) -> Array:
    """Texts as an array of bytes."""
    try:
        return text_array(value)
    except DTypeError as error:
        raise fail(DTypeError, f"constant: {error}") from None


def _filled(array: Array, shape: tuple[Any, ...], verify: bool) -> Array:
    if array.shape == shape:
        return array
    total = math.prod(shape)
    if verify:
        raise fail(DTypeError, f"constant: expected shape {shape}, got {array.shape}")
    if array.size > total:
        raise fail(
            ShapeError,
            f"constant: expected at most {total} elements for shape {shape}, got {array.size}",
        )
    if array.size == 0 and total:
        raise fail(ShapeError, f"constant: expected elements to fill shape {shape}, got none")
    check_table("constant", shape, array.dtype)
    flat = array.ravel()
    return np.concatenate([flat, np.repeat(flat[-1:], total - flat.size)]).reshape(shape)


def as_array(value: Any, dtype: DType | None) -> Array:
    """`value` as an array of `dtype`, by TensorFlow's conversion rules."""
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, Dimension):
        value = value.value
    plain = not isinstance(value, np.ndarray | np.generic)
    array = _numeric(value, dtype)
    if dtype is None:
        return _narrowed(array) if plain and _is_python(value) else _supported(array, value)
    if plain or array.dtype.kind == "c":
        _refuse_lossy(array, dtype, value)
    with np.errstate(all="ignore"):
        return np.asarray(array, order="C").astype(dtype.ir.numpy, copy=False)


def _numeric(value: Any, dtype: DType | None) -> Array:
    if value is None:
        raise fail(ShapeError, "constant: expected a value, got None")
    if isinstance(value, list | tuple):
        value = [v.value if isinstance(v, Dimension) else v for v in value]
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fO" and _has_wide(value):
            array = _whole(value, dtype)
    except ValueError:
        raise fail(
            ShapeError, f"constant: expected lists of equal lengths, got {value!r}"
        ) from None
    except OverflowError:
        raise fail(DTypeError, f"constant: {value!r} is too large") from None
    if array.dtype.kind not in "biufcV" or (array.dtype.kind == "V" and array.dtype.fields):
        raise fail(DTypeError, f"constant: expected numbers, got {value!r}")
    return array


def _has_wide(value: Any) -> bool:
    """Whether it is or contains a Python integer beyond int64, which NumPy would make floating."""
    if isinstance(value, list | tuple):
        return any(map(_has_wide, value))
    return type(value) is int and not -(2**63) <= value < 2**63


def _whole(value: Any, dtype: DType | None) -> Array:
    """Integers beyond int64 as an array of the given type.

    Raises:
        DTypeError: no type is given, or it does not hold them.
    """
    if dtype is None:
        raise fail(DTypeError, f"constant: expected a dtype for {value!r}, which int64 cannot hold")
    return np.asarray(value, dtype.ir.numpy)


def _supported(array: Array, value: Any) -> Array:
    try:
        as_dtype(array.dtype)
    except TypeError:
        raise fail(
            DTypeError, f"constant: expected numbers of a known type, got {value!r}"
        ) from None
    return array


def _is_python(value: Any) -> bool:
    """Whether the first leaf is a bare number, whose type is free."""
    while isinstance(value, list | tuple):
        if not value:
            return True
        value = value[0]
    return isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)


def _narrowed(array: Array) -> Array:
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 and array.size:
        limits = np.iinfo(np.int32)
        if limits.min <= array.min() and array.max() <= limits.max:
            return array.astype(np.int32)
    elif array.dtype == np.int64:
        return array.astype(np.int32)
    return array


def _refuse_lossy(array: Array, dtype: DType, value: Any) -> None:
    if array.size == 0:
        return
    kind = array.dtype.kind
    lossy = (
        (dtype.is_integer and kind not in "iu")
        or (dtype.is_bool and kind != "b")
        or (dtype.is_floating and kind in "bc")
    )
    if lossy:
        shown = value if np.ndim(value) == 0 else array.ravel()[0].item()
        text = f"expected {dtype.name}, got {shown!r} of type {type(shown).__name__!r}"
        raise nameless(fail(DTypeError, text))
    if dtype.is_integer:
        limits = np.iinfo(dtype.ir.numpy)
        if array.min() < limits.min or array.max() > limits.max:
            raise fail(DTypeError, f"expected {dtype.name}, got {value!r}, which it cannot hold")


# building operations
def unary(
    kind: str, build: Any, x: Any, name: str | None, default: str | None = None,
    attrs: dict[str, Any] | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """An operation with one input."""
    with name_scope(name, default or kind, [x]) as scope:
        tensor = convert_to_tensor(x, name="x")
        return emit(kind, [tensor], build, name=scope, attrs=attrs, **options)


def binary(
    kind: str, build: Any, x: Any, y: Any, name: str | None, default: str | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """An operation with two inputs of one type; a plain value takes the other's type."""
    with name_scope(name, default or kind, [x, y]) as scope:
        a, b = same_type(kind, x, y)
        return emit(kind, [a, b], build, name=scope, **options)


@functools.cache
def of_op(op: Op) -> Callable[..., Any]:
    """Any operation of the catalogue; plain values take the first tensor's type."""
    kind = "".join([part.capitalize() for part in op.name.split("_")])

    @named(op.name, f"`{op.name}` of the catalogue.")
    def function(*xs: Any, name: str | None = None, **attrs: Any) -> Any:
        like = next((x.dtype.base_dtype for x in xs if is_tensor(x)), None)
        with name_scope(name, kind, list(xs)) as scope:
            tensors = [convert_to_tensor(x, preferred_dtype=like) for x in xs]
            graph = get_default_graph()
            results = graph.emit(kind, tensors, op, name=scope, **attrs).outputs
        return results[0] if len(results) == 1 else tuple(results)

    return function


def same_type(kind: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of the same type.

    Raises:
        DTypeError: their types differ.
    """
    if is_tensor(y) and not is_tensor(x):
        b = convert_to_tensor(y)
        a = convert_to_tensor(x, name="x", preferred_dtype=b.dtype)
    else:
        a = convert_to_tensor(x, name="x")
        b = convert_to_tensor(y, name="y", preferred_dtype=a.dtype)
    require_type(kind, "y", b, a.dtype)
    return a, b


def require_type(kind: str, role: str, tensor: Tensor, dtype: DType) -> None:
    """Check the type of an input.

    Raises:
        DTypeError: it differs.
    """
    if tensor.dtype.base_dtype is not dtype.base_dtype:
        raise fail(
            DTypeError,
            f"{kind}: expected {role} of type {dtype.base_dtype.name} as the first input, "
            f"got {tensor.dtype.base_dtype.name} ({tensor.name})",
        )


def require_kind(kind: str, tensor: Tensor, allowed: Callable[[DType], bool], what: str) -> None:
    """Check the kind of a tensor's type.

    Raises:
        DTypeError: it is of another kind.
    """
    if not allowed(tensor.dtype):
        raise fail(DTypeError, f"{kind}: expected {what}, got {tensor.dtype.name} ({tensor.name})")


def static_value(value: Any) -> Any:
    """A plain value, or a constant tensor's, as an array; `None` if only a run computes it."""
    if not is_tensor(value) and not (isinstance(value, list | tuple) and _contains_tensor(value)):
        return _texts(value) if is_text(value) else as_array(value, None)
    if is_tensor(value):
        tensor = convert_to_tensor(value)
        if op_of(tensor.used.node) is CONSTANT:
            return tensor.used.node.attrs["value"].array
        if tensor.has_value and not tensor.dtype.is_floating:
            return np.asarray(tensor)
    return None


Axes = tuple[int, ...] | None


def static_axes(axis: Any, kind: str) -> Axes:
    """Axes as a tuple, `None` for all.

    Raises:
        GraphError: they are known only at execution.
        DTypeError: they are not integers.
    """
    if axis is None:
        return None
    known = static_value(axis)
    if known is None:
        raise fail(GraphError, f"{kind}: expected axes that are known now, got {axis!r}")
    found = np.atleast_1d(known)
    if found.size and found.dtype.kind not in "iu":
        raise fail(DTypeError, f"{kind}: expected integers as axes, got {axis!r}")
    return tuple(int(a) for a in found)


def static_axis(axis: Any, kind: str) -> int:
    """One axis, as an integer."""
    found = static_axes(axis, kind)
    if found is None or len(found) != 1:
        raise fail(GraphError, f"{kind}: expected one axis, got {axis!r}")
    return found[0]


def shape_operand(value: Any, name: str, wanted: DType = int32) -> Any:
    """An integer argument such as a shape: a tuple or int if plain, else its graph value.

    TensorFlow would make a constant of a plain one; so does this, to get the same names.
    """
    tensor = convert_to_tensor(value, name=name, preferred_dtype=wanted)
    if not tensor.dtype.is_integer:
        if op_of(tensor.used.node) is CONSTANT and tensor.used.node.attrs["value"].array.size == 0:
            return tensor, ()
        raise fail(DTypeError, f"{name}: expected integers, got {tensor}")
    known = static_value(tensor)
    if known is not None:
        return tensor, (int(known) if known.ndim == 0 else _nested(known.tolist()))
    return tensor, tensor.used


def _nested(items: Any) -> Any:
    return tuple([_nested(v) if isinstance(v, list) else v for v in items])


get_static_value = static_value

__all__ = ["constant", "convert_n_to_tensor", "convert_to_tensor", "get_static_value", "is_tensor"]
