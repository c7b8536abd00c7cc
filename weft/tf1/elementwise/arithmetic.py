"""Arithmetic, comparisons, logic, casts and matmuls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.elementwise.combination import cut_off, floored, safe_quotient
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    binary,
    convert_n_to_tensor,
    convert_to_tensor,
    require_kind,
    same_type,
    unary,
)  # fmt: skip
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import OPERATORS, Tensor

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "asin", "asinh", "atan", "atan2",
    "atanh", "bitcast", "cast", "ceil", "cos", "cosh", "div", "div_no_nan", "divide", "equal",
    "erf", "erfc", "exp", "expm1", "floor", "floor_div", "floordiv", "floormod", "greater",
    "greater_equal", "is_finite", "is_inf", "is_nan", "less", "less_equal", "log", "log1p",
    "log_sigmoid", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum",
    "minimum", "mod", "multiply", "negative", "not_equal", "pow", "realdiv", "reciprocal", "rint",
    "round", "rsqrt", "saturate_cast", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "squared_difference", "subtract", "tan", "tanh", "to_bfloat16", "to_double", "to_float",
    "to_int32", "to_int64", "truediv", "truncatediv", "truncatemod",
]  # fmt: skip

Function = Callable[..., Tensor]


def _unary(kind: str, op: Any, doc: str) -> Function:
    def function(x: Any, name: str | None = None) -> Tensor:
        return unary(kind, op, x, name)

    function.__doc__ = doc
    function.__name__ = function.__qualname__ = kind.lower()
    return function


def _binary(kind: str, op: Any, doc: str, default: str | None = None) -> Function:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return binary(kind, op, x, y, name, default)

    function.__doc__ = doc
    function.__name__ = function.__qualname__ = kind.lower()
    return function


# one input
negative = neg = _unary("Neg", "negative", "-x")
sign = _unary("Sign", "sign", "-1, 0 or 1")
square = _unary("Square", "square", "x * x")
sqrt = _unary("Sqrt", "sqrt", "The square root.")
rsqrt = _unary("Rsqrt", "rsqrt", "1 / sqrt(x)")
reciprocal = _unary("Reciprocal", "reciprocal", "1 / x")
inverse = _unary("Inv", "reciprocal", "1 / x")
exp = _unary("Exp", "exp", "e to the power of x")
expm1 = _unary("Expm1", "expm1", "exp(x) - 1, accurate near 0")
log = _unary("Log", "log", "The natural logarithm.")
log1p = _unary("Log1p", "log1p", "log(1 + x), accurate near 0")
sin = _unary("Sin", "sin", "The sine.")
cos = _unary("Cos", "cos", "The cosine.")
tan = _unary("Tan", "tan", "The tangent.")
asin = _unary("Asin", "asin", "The inverse sine.")
acos = _unary("Acos", "acos", "The inverse cosine.")
atan = _unary("Atan", "atan", "The inverse tangent.")
sinh = _unary("Sinh", "sinh", "The hyperbolic sine.")
cosh = _unary("Cosh", "cosh", "The hyperbolic cosine.")
tanh = _unary("Tanh", "tanh", "The hyperbolic tangent.")
asinh = _unary("Asinh", "asinh", "The inverse hyperbolic sine.")
acosh = _unary("Acosh", "acosh", "The inverse hyperbolic cosine.")
atanh = _unary("Atanh", "atanh", "The inverse hyperbolic tangent.")
sigmoid = _unary("Sigmoid", "sigmoid", "1 / (1 + exp(-x))")
erf = _unary("Erf", "erf", "The error function.")
erfc = _unary("Erfc", "erfc", "1 - erf(x), exact where that is tiny")
floor = _unary("Floor", "floor", "The greatest integer that is not greater.")
ceil = ceiling = _unary("Ceil", "ceil", "The least integer that is not less.")
rint = _unary("Rint", "round", "The nearest integer, halves to even.")
is_nan = _unary("IsNan", "isnan", "Whether x is NaN.")
is_inf = _unary("IsInf", "isinf", "Whether x is infinite.")
is_finite = _unary("IsFinite", "isfinite", "Whether x is a number and not infinite.")
logical_not = _unary("LogicalNot", "logical_not", "not x")


def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value."""
    return unary("Abs", "abs", x, name)


def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, halves to even; integers are unchanged."""
    tensor = convert_to_tensor(x)
    return unary("Round", "identity" if tensor.dtype.is_integer else "round", tensor, name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x))"""
    return unary("Neg", ops.log_sigmoid, x, name, "LogSigmoid")


# two inputs
add = _binary("AddV2", "add", "x + y", "Add")
add_v2 = add
subtract = sub = _binary("Sub", "subtract", "x - y")
multiply = mul = _binary("Mul", "multiply", "x * y")
floormod = mod = _binary("FloorMod", "remainder", "The remainder, with the sign of y.")
truncatemod = _binary("TruncateMod", "fmod", "The remainder, with the sign of x.")
maximum = _binary("Maximum", "maximum", "The greater one.")
minimum = _binary("Minimum", "minimum", "The smaller one.")
squared_difference = _binary(
    "SquaredDifference", lambda x, y: ops.square(x - y), "(x - y) * (x - y)"
)
atan2 = _binary("Atan2", "atan2", "The angle of the point (y, x).")
equal = _binary("Equal", "equal", "x == y")
not_equal = _binary("NotEqual", "not_equal", "x != y")
less = _binary("Less", "less", "x < y")
less_equal = _binary("LessEqual", "less_equal", "x <= y")
greater = _binary("Greater", "greater", "x > y")
greater_equal = _binary("GreaterEqual", "greater_equal", "x >= y")
logical_and = _binary("LogicalAnd", "logical_and", "x and y")
logical_or = _binary("LogicalOr", "logical_or", "x or y")
bitwise_and = _binary("BitwiseAnd", "bitwise_and", "x & y")
bitwise_or = _binary("BitwiseOr", "bitwise_or", "x | y")
bitwise_xor = _binary("BitwiseXor", "bitwise_xor", "x ^ y")
left_shift = _binary("LeftShift", "left_shift", "x << y")
right_shift = _binary("RightShift", "right_shift", "x >> y")


def invert(x: Any, name: str | None = None) -> Tensor:
    """Bitwise not."""
    return unary("Invert", "bitwise_not", x, name)


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Logical exclusive or."""
    return binary("LogicalAnd", "logical_xor", x, y, name)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power of y; for negative x, the gradient by y is 0."""
    return binary("Pow", _power, x, y, name)


def _power(x: Any, y: Any) -> Any:
    if op_of(y.node) is CONSTANT or not x.dtype.is_floating:
        return ops.power(x, y)
    return ops.power(x, ops.select(ops.less(x, 0), ops.stop_gradient(y), y))


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
        return get_default_graph().emit("RealDiv", [a, b], "divide", name=scope).outputs[0]


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
        graph = get_default_graph()
        if a.dtype.is_floating:
            return graph.emit("RealDiv", [a, b], "divide", name=scope).outputs[0]
        return graph.emit("FloorDiv", [a, b], floored, name=scope).outputs[0]


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The quotient, rounded down."""
    return binary("FloorDiv", floored, x, y, name, "floordiv")


floor_div = floordiv


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The quotient, rounded towards zero."""
    return binary("TruncateDiv", cut_off, x, y, name)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    return binary("DivNoNan", safe_quotient, x, y, name, "div_no_nan")


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0 even if x is NaN or infinite."""
    return binary(
        "MulNoNan", lambda a, b: ops.select(ops.equal(b, 0), 0, a * b), x, y, name,
        "multiply_no_nan",
    )  # fmt: skip


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise fail(GraphError, "add_n: expected a list of at least one tensor")
    values = [dense(item) if isinstance(item, IndexedSlices) else item for item in inputs]
    with name_scope(name, "AddN", values) as scope:
        tensors = convert_n_to_tensor(values, name="inputs")
        for other in tensors[1:]:
            _require_same_shape("AddN", tensors[0], other)
        graph = get_default_graph()
        return graph.emit("AddN", tensors, "add_n", name=scope).outputs[0]


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
    graph = get_default_graph()
    return graph.emit("UnsortedSegmentSum", inputs, build, name="UnsortedSegmentSum").outputs[0]  # pyright: ignore[reportArgumentType]


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
        graph = get_default_graph()
        return graph.emit("Cast", [tensor], "cast", dtype=wanted.ir, name=scope).outputs[0]


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`cast`, after clipping to the range of `dtype`."""
    return cast(value, dtype, name or "saturate_cast")


def _caster(wanted: DType, default: str) -> Function:
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
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
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
        flags = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
        batched = (x.shape.ndims or 2) > 2 or (w.shape.ndims or 2) > 2
        return _matmul("BatchMatMulV2" if batched else "MatMul", x, w, flags, scope)


def _matmul(kind: str, x: Tensor, w: Tensor, flags: dict[str, bool], scope: str) -> Tensor:
    graph = get_default_graph()
    op = graph.emit(
        kind, [x, w], "matmul", name=scope, attrs=flags,
        transpose_x=flags["transpose_a"], transpose_y=flags["transpose_b"],
    )  # fmt: skip
    return op.outputs[0]


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


OPERATORS.update(
    add=_operator("AddV2", "add", "add"),
    sub=_operator("Sub", "subtract", "sub"),
    mul=_operator("Mul", "multiply", "mul"),
    truediv=truediv,
    floordiv=floordiv,
    mod=_operator("FloorMod", "remainder", "mod"),
    pow=_operator("Pow", _power, "pow"),
    matmul=_operator_matmul,
    less=less,
    less_equal=less_equal,
    greater=greater,
    greater_equal=greater_equal,
    neg=negative,
    abs=abs,
    invert=_operator_invert,
)
OPERATORS["and"] = _logical_or_bits("LogicalAnd", "logical_and", "bitwise_and", "and")
OPERATORS["or"] = _logical_or_bits("LogicalOr", "logical_or", "bitwise_or", "or")
OPERATORS["xor"] = _logical_or_bits("LogicalAnd", "logical_xor", "bitwise_xor", "xor")
