"""Arithmetic, comparisons, logic, casts and matmuls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.errors import DTypeError, GraphError, ShapeError
from weft.ops.elementwise.combination import floored, real_power
from weft.ops.elementwise.complex_number import complex_of
from weft.tf1.elementwise import declared
from weft.tf1.elementwise.declared import *  # noqa: F403
from weft.tf1.elementwise.declared import abs as magnitude
from weft.tf1.elementwise.declared import (
    conj,
    equal,
    floor_div,
    floordiv,
    greater,
    greater_equal,
    invert,
    less,
    less_equal,
    logical_not,
    negative,
    not_equal,
    real,
    truncatediv,
    truncatemod,
)  # fmt: skip
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    binary,
    convert_n_to_tensor,
    convert_to_tensor,
    require_kind,
    same_type,
    unary,
)  # fmt: skip
from weft.tf1.framework.dtypes import DType, as_dtype, string
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import OPERATORS, Tensor
from weft.tf1.strings.text import string_join

__all__ = [
    "accumulate_n", "add_n", "bitcast", "cast", "complex", "div", "divide", "floor_div",
    "logical_xor", "matmul", "pow", "realdiv", "round", "saturate_cast", "scalar_mul",
    "to_bfloat16", "to_double", "to_float", "to_int32", "to_int64", "truediv", "truncatediv",
    "truncatemod",
]  # fmt: skip
__all__ += declared.__all__

Function = Callable[..., Tensor]


# one input
def inverse(x: Any, name: str | None = None) -> Tensor:
    """1 / x"""
    return unary("Inv", "reciprocal", x, name)


def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, halves to even; integers are unchanged."""
    tensor = convert_to_tensor(x)
    return unary("Round", "identity" if tensor.dtype.is_integer else "round", tensor, name)


# two inputs
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A tensor, or the rows of a sparse gradient, times a number."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values, name), x.indices, x.dense_shape)
    tensor = convert_to_tensor(x)
    factor = convert_to_tensor(scalar, tensor.dtype.base_dtype)
    return binary("Mul", "multiply", factor, tensor, name)


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Logical exclusive or."""
    return binary("LogicalAnd", "logical_xor", x, y, name)


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """The complex numbers with these real and imaginary parts, float32 or float64."""
    with name_scope(name, "Complex", [real, imag]) as scope:
        x, y = same_type("Complex", real, imag)
        wide = (dtypes.float32, dtypes.float64)
        require_kind("Complex", x, lambda d: d.base_dtype in wide, "float32 or float64")
        return emit("Complex", [x, y], complex_of, name=scope)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power of y; for negative x, the gradient by y is 0."""
    return binary("Pow", real_power, x, y, name)


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, for floating types."""
    return _real_division(x, y, name, "RealDiv")


def _real_division(x: Any, y: Any, name: str | None, default: str) -> Tensor:
    return binary("RealDiv", "divide", x, y, name, default)


_DIVISION_TYPES = {
    "int8": dtypes.float32, "uint8": dtypes.float32, "int16": dtypes.float32,
    "int32": dtypes.float64, "int64": dtypes.float64, "uint32": dtypes.float64,
    "uint64": dtypes.float64,
}  # fmt: skip


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; integers are converted to float32 (8 and 16 bits) or float64."""
    with name_scope(name, "truediv", [x, y]) as scope:
        a, b = same_type("truediv", x, y)
        wider = _DIVISION_TYPES.get(a.dtype.base_dtype.name)
        if wider is not None:
            a, b = cast(a, wider), cast(b, wider)
        return emit("RealDiv", [a, b], "divide", name=scope)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python."""
    if name is not None:
        return truediv(x, y, name)
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, preferred_dtype=getattr(y, "dtype", None))
    return truediv(x, y)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y for floating types, x // y for integers."""
    with name_scope(name, "div", [x, y]) as scope:
        a, b = same_type("div", x, y)
        if not a.dtype.is_integer:
            return emit("RealDiv", [a, b], "divide", name=scope)
        return emit("FloorDiv", [a, b], floored, name=scope)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise fail(GraphError, "add_n: expected a list of at least one tensor")
    values = [dense(item) if isinstance(item, IndexedSlices) else item for item in inputs]
    with name_scope(name, "AddN", values) as scope:
        tensors = convert_n_to_tensor(values, name="inputs")
        for other in tensors[1:]:
            _require_same_shape("AddN", tensors[0], other)
        return emit("AddN", tensors, "add_n", name=scope)


def accumulate_n(
    inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of tensors of one shape."""
    del shape, tensor_dtype
    return add_n(inputs, name)


def _require_same_shape(kind: str, a: Tensor, b: Tensor) -> None:
    if not a.shape.is_compatible_with(b.shape):
        raise fail(ShapeError, f"{kind}: expected inputs of shape {a.shape}, got {b.shape}")


def dense(slices: IndexedSlices, name: str | None = None) -> Tensor:
    """The dense tensor of `slices`.

    Raises:
        GraphError: its shape is not known.
    """
    if slices.dense_shape is None:
        raise fail(GraphError, "expected IndexedSlices with a dense_shape, got none")
    with name_scope(name, "ToDense", [slices.values]):
        return unsorted_rows(slices)


def unsorted_rows(slices: IndexedSlices) -> Tensor:
    """`dense`, without a name scope."""

    def build(values: Any, indices: Any, shape: Any) -> Any:
        return ops.scatter_add(ops.full(shape, 0, values.dtype), indices, values)

    inputs = [slices.values, slices.indices, slices.dense_shape]
    return emit("UnsortedSegmentSum", inputs, build, name="UnsortedSegmentSum")  # pyright: ignore[reportArgumentType]


# element types
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` cast to `dtype`; the tensor itself if it has that type."""
    wanted = as_dtype(dtype).base_dtype
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype, name), x.indices, x.dense_shape)
    if isinstance(x, Tensor) and x.dtype is wanted:
        return x
    return _cast(x, wanted, name, "Cast")


def _cast(x: Any, wanted: DType, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [x]) as scope:
        tensor = convert_to_tensor(x, name="x")
        if tensor.dtype.base_dtype is wanted:
            return tensor
        if wanted is string or tensor.dtype.base_dtype is string:
            text = f"cast: expected numbers, got {tensor!r}, to {wanted.name}; tf.as_string and"
            raise fail(DTypeError, f"{text} tf.string_to_number convert texts")
        if tensor.dtype.is_complex and not (wanted.is_complex or wanted.is_bool):
            tensor = real(tensor)
        return emit("Cast", [tensor], "cast", dtype=wanted.ir, name=scope)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`cast`, after clipping to the range of `dtype`."""
    return cast(value, dtype, name or "saturate_cast")


def _caster(wanted: DType, default: str):
    def function(x: Any, name: str = default) -> Tensor:
        return cast(x, wanted, name=name)

    function.__doc__ = f"`cast(x, tf.{wanted.name})`"
    return function


to_float = _caster(dtypes.float32, "ToFloat")
to_double = _caster(dtypes.float64, "ToDouble")
to_int32 = _caster(dtypes.int32, "ToInt32")
to_int64 = _caster(dtypes.int64, "ToInt64")
to_bfloat16 = _caster(dtypes.bfloat16, "ToBFloat16")


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bits reinterpreted as another type of the same size."""
    return unary("Bitcast", "bitcast", input, name, dtype=as_dtype(type).ir)


# matmul
def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matmul of matrices, batched for ranks above 2.

    Raises:
        ShapeError: a rank is below 2, or inner dimensions differ.
    """
    del a_is_sparse, b_is_sparse
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise fail(GraphError, "matmul: expected one of transpose and adjoint, got both")
    with name_scope(name, "MatMul", [a, b]) as scope:
        x, w = same_type("matmul", a, b)
        for role, tensor in (("a", x), ("b", w)):
            if tensor.shape.ndims is not None and tensor.shape.ndims < 2:
                raise fail(
                    ShapeError,
                    f"matmul: expected {role} of rank 2 or more, got shape {tensor.shape}",
                )
        x, w = conj(x) if adjoint_a else x, conj(w) if adjoint_b else w
        flags = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
        batched = (x.shape.ndims or 2) > 2 or (w.shape.ndims or 2) > 2
        return _matmul("BatchMatMulV2" if batched else "MatMul", x, w, flags, scope)


def _matmul(kind: str, x: Tensor, w: Tensor, flags: dict[str, bool], scope: str) -> Tensor:
    return emit(
        kind, [x, w], "matmul", name=scope, attrs=flags,
        transpose_x=flags["transpose_a"], transpose_y=flags["transpose_b"],
    )  # fmt: skip


def _operator_matmul(a: Any, b: Any) -> Tensor:
    return matmul(a, b, name="matmul")


def _operator(kind: str, op: Any, default: str) -> Function:
    return lambda x, y: binary(kind, op, x, y, None, default)


def _logical_or_bits(kind: str, logical: str, bits: str, default: str) -> Function:
    def function(x: Any, y: Any) -> Tensor:
        a, b = same_type(default, x, y)
        if a.dtype.is_bool:
            return binary(kind, logical, a, b, None, default)
        require_kind(default, a, lambda d: d.is_integer, "bool or an integer type")
        return binary("Bitwise" + default.capitalize(), bits, a, b, None, default)

    return function


def _operator_invert(x: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    return logical_not(tensor) if tensor.dtype.is_bool else invert(tensor)


def _operator_add(x: Any, y: Any) -> Tensor:
    texts = [t for t in (x, y) if isinstance(t, Tensor) and t.dtype.base_dtype is string]
    if texts:
        return string_join([x, y], name="add")
    return binary("AddV2", "add", x, y, None, "add")


OPERATORS.update(
    add=_operator_add,
    sub=_operator("Sub", "subtract", "sub"),
    mul=_operator("Mul", "multiply", "mul"),
    truediv=truediv,
    floordiv=floordiv,
    mod=_operator("FloorMod", "remainder", "mod"),
    pow=_operator("Pow", real_power, "pow"),
    matmul=_operator_matmul,
    less=less,
    less_equal=less_equal,
    greater=greater,
    greater_equal=greater_equal,
    equal=equal,
    not_equal=not_equal,
    neg=negative,
    abs=magnitude,
    invert=_operator_invert,
)
OPERATORS["and"] = _logical_or_bits("LogicalAnd", "logical_and", "bitwise_and", "and")
OPERATORS["or"] = _logical_or_bits("LogicalOr", "logical_or", "bitwise_or", "or")
OPERATORS["xor"] = _logical_or_bits("LogicalAnd", "logical_xor", "bitwise_xor", "xor")
