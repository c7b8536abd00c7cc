"""Creation of tensors: constants of a shape, ranges, one-hot rows, placeholders."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from weft import ops
from weft.errors import DTypeError, GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.shape.grid import evenly_spaced, length_mask
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    emit_constant,
    is_tensor,
    same_type,
    shape_operand,
    static_value,
    unary,
)  # fmt: skip
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.dynamic_shape import first_inputs, plain
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape

__all__ = [
    "eye", "fill", "lin_space", "linspace", "meshgrid", "one_hot", "ones", "ones_like",
    "placeholder", "placeholder_with_default", "range", "sequence_mask", "sparse_placeholder",
    "zeros", "zeros_like",
]  # fmt: skip

# from this many elements on, zeros and ones are filled at execution, not stored as constants
LARGE = 1000


# from numbers
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None,
    dtype: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`on_value` at each index, `off_value` elsewhere, along a new axis of size `depth`."""
    with name_scope(name, "one_hot", [indices]) as scope:
        where_ = convert_to_tensor(indices, name="indices")
        known = static_value(plain(depth))
        if known is None:
            raise fail(GraphError, "one_hot: expected a depth that is known now")
        on, off = (None if v is None else static_value(v) for v in (on_value, off_value))
        unknown = [
            given is not None and v is None for given, v in ((on_value, on), (off_value, off))
        ]
        if any(unknown):
            return _one_hot_of_tensors(where_, int(known), on_value, off_value, axis, dtype, scope)
        given = next((v.dtype for v in (on, off) if v is not None), np.dtype(np.float32))
        kind = as_dtype(given if dtype is None else dtype)
        return emit(
            "OneHot", [where_], "one_hot", depth=int(known), on=1 if on is None else on.item(),
            off=0 if off is None else off.item(), axis=-1 if axis is None else axis,
            dtype=kind.ir, name=scope,
        )  # fmt: skip


def _one_hot_of_tensors(
    where_: Tensor, depth: int, on: Any, off: Any, axis: Any, dtype: Any, scope: str
) -> Tensor:
    """`one_hot` with values known only at execution; they get no gradient, as in TensorFlow."""
    wanted = None if dtype is None else as_dtype(dtype)
    given = next(convert_to_tensor(v).dtype.base_dtype for v in (on, off) if v is not None)
    values = [
        convert_to_tensor(default if v is None else v, wanted or given, name=n)
        for v, default, n in ((on, 1, "on_value"), (off, 0, "off_value"))
    ]

    def build(indices: Value, *ends: Value) -> Value:
        hits = ops.one_hot(
            indices, depth=depth, on=1, off=0, axis=-1 if axis is None else axis, dtype="bool"
        )
        return ops.stop_gradient(ops.select(hits, *[ops.reshape(end, shape=()) for end in ends]))

    return emit("OneHot", [where_, *values], build, name=scope)


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """Numbers from `start` (0 if only one is given) to `limit`, exclusive."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "range", [start, limit, delta]) as scope:
        parts = [plain(v) for v in (start, limit, delta)]
        wanted = None if dtype is None else as_dtype(dtype)
        tensors = [
            convert_to_tensor(v, wanted, name=n)
            for v, n in zip(parts, ("start", "limit", "delta"), strict=True)
        ]
        order = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
        kind = max((t.dtype.base_dtype for t in tensors), key=order.index)
        known = [static_value(t) for t in tensors]
        values = [t.used if k is None else k.item() for t, k in zip(tensors, known, strict=True)]

        def build(*_: Any) -> Value:
            return ops.arange(start=values[0], stop=values[1], step=values[2], dtype=kind.ir)

        return emit("Range", tensors, build, name=scope)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, inclusive."""
    with name_scope(name, "linspace", [start, stop, num]) as scope:
        a, b = same_type("linspace", start, stop)
        known = static_value(plain(num))
        if known is None or int(known) < 1:
            raise fail(GraphError, f"linspace: expected num >= 1 that is known now, got {num!r}")
        count = int(known)

        return emit("LinSpace", [a, b], evenly_spaced, name=scope, count=count)


lin_space = linspace


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor filled with one number."""
    with name_scope(name, "Fill", [dims, value]) as scope:
        shape_, target = shape_operand(dims, "dims")
        number = convert_to_tensor(value, name="value")

        def build(_: Value, v: Value) -> Value:
            return ops.broadcast_to(v, shape=target)

        return emit("Fill", [shape_, number], build, name=scope)


def _filled(shape: Any, dtype: Any, name: str | None, number: int, default: str) -> Tensor:
    kind = as_dtype(dtype).base_dtype
    if kind.ir.is_hosted:
        return _empty_texts(shape, kind, name or default, number)
    with name_scope(name, default, [shape] if is_tensor(shape) else []) as scope:
        numbers = not is_tensor(shape) and not (
            isinstance(shape, list | tuple) and any(is_tensor(d) for d in shape)
        )
        if numbers:
            dims = tuple([int(plain(d)) for d in TensorShape(shape).as_list()])  # pyright: ignore[reportArgumentType]
            if np.prod(dims, dtype=np.int64) < LARGE:
                return emit_constant(np.full(dims, number, kind.ir.numpy), scope)
            return emit("Fill", (), ops.full, shape=dims, value=number, dtype=kind.ir, name=scope)
        shape_, target = shape_operand(shape, "shape")
        build = first_inputs(0, ops.full)
        return emit("Fill", [shape_], build, shape=target, value=number, dtype=kind.ir, name=scope)


def _empty_texts(shape: Any, kind: DType, name: str, number: int) -> Tensor:
    """Empty texts, which stand for 0."""
    if number or kind is not dtypes.string:
        raise fail(DTypeError, f"{name}: expected a type of numbers, got {kind.name}")
    return fill(shape, "", name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros."""
    return _filled(shape, dtype, name, 0, "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Ones."""
    return _filled(shape, dtype, name, 1, "ones")


def _filled_like(tensor: Any, dtype: Any, name: str | None, number: int, default: str) -> Tensor:
    with name_scope(name, default, [tensor]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        kind = (x.dtype if dtype is None else as_dtype(dtype)).base_dtype
        if kind.ir.is_hosted:
            given = emit("Shape", [x], ops.shape_of, name="Shape")
            return _empty_texts(given, kind, scope, number)

        def build(v: Value) -> Value:
            found = ops.full_like(v, number)
            return found if found.dtype is kind.ir else ops.cast(found, dtype=kind.ir)

        op = "ZerosLike" if number == 0 else "Fill"
        return emit(op, [x], build, name=scope)


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape of `tensor`."""
    del optimize
    x = convert_to_tensor(tensor)
    if x.shape.is_fully_defined():
        kind = x.dtype if dtype is None else as_dtype(dtype)
        return zeros(x.shape, kind, name or "zeros_like")
    return _filled_like(x, dtype, name, 0, "zeros_like")


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape of `tensor`."""
    del optimize
    return _filled_like(tensor, dtype, name, 1, "ones_like")


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The identity matrix, or a batch of it."""
    with name_scope(name, "eye"):
        rows = int(plain(num_rows))
        columns = rows if num_columns is None else int(plain(num_columns))
        lead = () if batch_shape is None else tuple(as_shape(batch_shape).as_list())
        kind = as_dtype(dtype).ir

        def build() -> Value:
            matrix = ops.eye(rows, columns, kind)
            return ops.broadcast_to(matrix, shape=(*lead, rows, columns)) if lead else matrix

        return emit("MatrixDiagV3", (), build, name="diag")


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Coordinate matrices of a grid."""
    if indexing not in ("xy", "ij"):
        raise fail(GraphError, f"meshgrid: expected indexing 'xy' or 'ij', got {indexing!r}")
    with name_scope(name, "meshgrid", list(args)):
        lines = [convert_to_tensor(a) for a in args]
        count = len(lines)
        order = [1, 0, *builtins.range(2, count)] if indexing == "xy" and count > 1 else [
            *builtins.range(count)
        ]  # fmt: skip

        def build(*values: Value, which: int) -> Value:
            dims = [(v.shape or (None,))[0] for v in values]
            sizes = [
                ops.shape_of(v)[0] if d is None else d for v, d in zip(values, dims, strict=True)
            ]
            spread: list[Any] = [1] * count
            spread[order[which]] = -1
            line = ops.reshape(values[which], shape=tuple(spread))
            return ops.broadcast_to(line, shape=[sizes[i] for i in order])

        return [emit("Mul", lines, build, which=i, name="mul") for i in builtins.range(count)]


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None
) -> Tensor:
    """A mask with `lengths` true values per row, up to `maxlen` (a number or a scalar)."""
    known = None if maxlen is None else static_value(plain(maxlen))
    with name_scope(name, "SequenceMask", [lengths]):
        sizes = convert_to_tensor(lengths, name="lengths")
        limits: list[Tensor] = []
        if maxlen is not None and known is None:
            limits = [convert_to_tensor(maxlen, name="maxlen")]

        found = emit(
            "Less", [sizes, *limits], length_mask, name="Less",
            most=None if known is None else int(known),
        )  # fmt: skip
        kind = as_dtype(dtype)
        return found if kind is dtypes.bool_ else unary("Cast", "cast", found, None, dtype=kind.ir)


# placeholders
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value must be fed in every run.

    Args:
        shape: the static shape; unknown dimensions are `None`, an unknown rank is no shape.
    """
    kind = as_dtype(dtype)
    if kind.name.endswith("_ref"):
        raise fail(DTypeError, f"placeholder: expected a plain type, got {kind.name}")
    dims = as_shape(shape).as_dims()
    return emit(
        "Placeholder", (), "placeholder", dtype=kind.ir, shape=dims, name=name or "Placeholder",
        attrs={"dtype": kind, "shape": as_shape(shape)},
    )  # fmt: skip


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose (indices, values, dense_shape) must be fed in every run.

    Args:
        shape: the static shape.
    """
    if is_tensor(shape):
        shape = static_value(shape)
    rank = None if shape is None else len(as_shape(shape).as_dims() or ())
    with name_scope(name, "Placeholder") as scope:
        return SparseTensor(
            placeholder("int64", [None, rank], f"{scope}indices"),
            placeholder(dtype, [None], f"{scope}values"),
            placeholder("int64", [rank], f"{scope}shape"),
        )


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that is `input` unless a run feeds another value, whose shape must fit `shape`."""
    with name_scope(name, "PlaceholderWithDefault", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        dims = as_shape(shape)
        if not tensor.shape.is_compatible_with(dims):
            raise fail(
                ShapeError,
                f"placeholder_with_default: expected a default of shape {dims}, got {tensor.shape}",
            )
        graph = get_default_graph()

        def build(x: Value) -> Value:
            return graph.narrow(x, dims.as_dims())

        return emit("PlaceholderWithDefault", [tensor], build, name=scope)
