"""Shapes, slices and rearrangements of tensors."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.errors import DTypeError, GraphError, OutOfRangeError, ShapeError
from weft.ir.node import Value
from weft.tf1 import dtypes
from weft.tf1.convert import (
    constant,
    convert_n_to_tensor,
    convert_to_tensor,
    emit_constant,
    is_tensor,
    same_type,
    shape_operand,
    static_value,
    unary,
)  # fmt: skip
from weft.tf1.dtypes import as_dtype
from weft.tf1.graph import fail, get_default_graph, name_scope
from weft.tf1.reduction_ops import static_axes, static_axis
from weft.tf1.tensor import OPERATORS, Tensor
from weft.tf1.tensor_shape import Dimension, TensorShape, as_shape

newaxis = None
LARGE = 1000  # elements from which zeros and ones are filled in, not written down


def _int(value: Any) -> Any:
    return value.value if isinstance(value, Dimension) else value


# Shapes as tensors
def shape(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """The shape, as a vector of integers; a constant where it is known."""
    kind = as_dtype(out_type)
    with name_scope(name, "Shape", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        dims = tensor.shape
        if optimize and dims.is_fully_defined():
            return emit_constant(np.array(dims.as_list(), kind.ir.numpy), scope)
        graph = get_default_graph()
        return graph.emit("Shape", [tensor], "shape_of", dtype=kind.ir, name=scope).outputs[0]


def size(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """The number of elements; a constant where it is known."""
    kind = as_dtype(out_type)
    with name_scope(name, "Size", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        count = tensor.shape.num_elements()
        if optimize and count is not None:
            return emit_constant(np.array(count, kind.ir.numpy), scope)
        graph = get_default_graph()
        return graph.emit("Size", [tensor], "size_of", dtype=kind.ir, name=scope).outputs[0]


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions; a constant where it is known."""
    with name_scope(name, "Rank", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        if tensor.shape.ndims is not None:
            return emit_constant(np.array(tensor.shape.ndims, np.int32), scope)
        return get_default_graph().emit("Rank", [tensor], "rank_of", name=scope).outputs[0]


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None):
    """The shape of each tensor."""
    return [shape(item, name, out_type) for item in input]


# Movement
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape; one -1 stands for what is left.

    Raises:
        ShapeError: the number of elements differs.
    """
    with name_scope(name, "Reshape", [tensor, shape]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        dims, target = shape_operand(shape, "shape")
        graph = get_default_graph()
        op = graph.emit("Reshape", [x, dims], _drop(1, "reshape"), shape=target, name=scope)
    return op.outputs[0]


def _drop(keep: int, build: Any) -> Any:
    """A build function that ignores all inputs but the first `keep`: they supply attributes."""

    def function(*values: Any, **options: Any) -> Any:
        made = getattr(ops, build) if isinstance(build, str) else build
        return made(*values[:keep], **options)

    return function


def expand_dims(
    input: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """The same tensor with a dimension of 1 put in at `axis`."""
    chosen = dim if axis is None else axis
    if chosen is None:
        raise fail(GraphError, "expand_dims: expected an axis, got None")
    with name_scope(name, "ExpandDims", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        at = static_axis(chosen, "expand_dims")
        emit_constant(np.array(at, np.int32), "dim")
        graph = get_default_graph()
        return graph.emit("ExpandDims", [tensor], "expand_dims", axis=at, name=scope).outputs[0]


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """The same tensor without the dimensions of 1 (or those in `axis`)."""
    chosen = squeeze_dims if axis is None else axis
    axes = static_axes(chosen, "squeeze") or None
    return unary("Squeeze", "squeeze", input, name, axes=axes)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """The axes in another order: reversed, or as `perm` says."""
    del conjugate
    with name_scope(name, "transpose", [a]) as scope:
        tensor = convert_to_tensor(a, name="a")
        order = static_axes(perm, "transpose")
        if order is not None:
            emit_constant(np.array(order, np.int32), "perm")
        graph = get_default_graph()
        return graph.emit("Transpose", [tensor], "transpose", perm=order, name=scope).outputs[0]


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    with name_scope(name, "matrix_transpose", [a]):
        tensor = convert_to_tensor(a, name="a")
        count = len(tensor.shape)
        order = [*builtins.range(count - 2), count - 1, count - 2]
        return transpose(tensor, order, conjugate=conjugate)


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors one after another along `axis`."""
    items = list(values) if isinstance(values, list | tuple) else [values]
    with name_scope(name, "concat", [v for v in items if is_tensor(v)]) as scope:
        along = static_axis(axis, "concat")
        tensors = convert_n_to_tensor(items, name="values")
        emit_constant(np.array(along, np.int32), "axis")
        graph = get_default_graph()
        if len(tensors) == 1:
            return graph.emit("Identity", tensors, "identity", name=scope).outputs[0]
        return graph.emit("ConcatV2", tensors, "concatenate", axis=along, name=scope).outputs[0]


def stack(values: Sequence[Any], axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape along a new axis."""
    if axis == 0 and not any(is_tensor(v) for v in values):
        try:
            return constant(values, name=name)
        except (TypeError, ValueError):
            pass
    with name_scope(name, "stack", [v for v in values if is_tensor(v)]) as scope:
        tensors = convert_n_to_tensor(values, name="values")
        graph = get_default_graph()
        op = graph.emit("Pack", tensors, "stack", axis=axis, name=scope, attrs={"axis": axis})
    return op.outputs[0]


pack = stack


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"):
    """The tensors that `stack` would have joined."""
    with name_scope(name, "unstack", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        if num is None:
            num = tensor.shape[axis].value
            if num is None:
                raise fail(GraphError, f"unstack: expected num, for shape {tensor.shape}")
        graph = get_default_graph()
        return graph.emit("Unpack", [tensor], "unstack", count=num, axis=axis, name=scope).outputs


unpack = unstack


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Pieces along `axis`: so many equal ones, or ones of these sizes (one may be -1)."""
    del num
    with name_scope(name, "split", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        along = static_axis(axis, "split")
        emit_constant(np.array(along, np.int32), "split_dim")
        wanted = static_value(_int(num_or_size_splits))
        if wanted is None:
            raise fail(GraphError, "split: expected sizes that are known now")
        kind = "Split" if wanted.ndim == 0 else "SplitV"
        sizes = _split_sizes(tensor.shape[along].value, wanted)
        graph = get_default_graph()
        return graph.emit(kind, [tensor], "split", sizes=sizes, axis=along, name=scope).outputs


def _split_sizes(total: int | None, wanted: Any) -> tuple[int, ...]:
    if wanted.ndim:
        sizes = [int(s) for s in wanted]
        if -1 in sizes:
            if total is None:
                raise fail(ShapeError, "split: expected a known dimension for a size of -1")
            sizes[sizes.index(-1)] = total - sum(s for s in sizes if s != -1)
        return tuple(sizes)
    count = int(wanted)
    if total is None or count < 1 or total % count:
        raise fail(
            ShapeError, f"split: expected a dimension divisible by {count}, got {total}"
        )
    return (total // count,) * count


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along each axis."""
    with name_scope(name, "Tile", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        count, reps = shape_operand(multiples, "multiples")
        graph = get_default_graph()
        return graph.emit("Tile", [tensor, count], _drop(1, "tile"), reps=reps, name=scope).outputs[0]


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:  # fmt: skip
    """The tensor with elements put before and after along each axis.

    Args:
        paddings: a pair (before, after) for each axis.
        mode: `CONSTANT`, `REFLECT` or `SYMMETRIC`.
        constant_values: what to fill with.
    """
    how = mode.upper()
    if how not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise fail(GraphError, f"pad: unknown mode {mode!r}")
    plain = how == "CONSTANT" and not is_tensor(constant_values) and constant_values == 0
    kind = "MirrorPad" if how != "CONSTANT" else "Pad" if plain else "PadV2"
    with name_scope(name, kind, [tensor]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        count, widths = shape_operand(paddings, "paddings")
        graph = get_default_graph()
        if how != "CONSTANT":
            op = graph.emit(
                kind, [x, count], _drop(1, "mirror_pad"), paddings=widths, mode=how.lower(),
                name=scope,
            )  # fmt: skip
            return op.outputs[0]
        known = static_value(constant_values)
        if known is None:
            raise fail(GraphError, "pad: expected constant_values that are known now")
        number = x.dtype.ir.numpy.type(known).item()
        op = graph.emit(
            kind, [x, count], _drop(1, "pad"), paddings=widths, value=number, name=scope
        )
    return op.outputs[0]


def tf_slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The block that starts at `begin` and has `size` (-1: up to the end)."""
    with name_scope(name, "Slice", [input_]) as scope:
        tensor = convert_to_tensor(input_, name="input")
        start, extent = convert_to_tensor(begin, name="begin"), convert_to_tensor(size, name="size")
        items = zip(_entries(start, begin), _entries(extent, size), strict=True)
        key = tuple([_block(b, s) for b, s in items])
        for axis, (item, dim) in enumerate(zip(key, tensor.shape.dims or key, strict=False)):
            _check_block(item, dim, axis)
        graph = get_default_graph()
        op = graph.emit("Slice", [tensor, start, extent], _subscripted(key), name=scope)
    return op.outputs[0]


slice = tf_slice


def _subscripted(key: tuple[Any, ...]) -> Any:
    """A build function that takes `key` of its first input."""

    def build(x: Value, *_: Value) -> Value:
        try:
            return ops.subscript(x, key)
        except OutOfRangeError as error:  # a ValueError in TensorFlow
            raise ShapeError(str(error)) from None

    return build


def _entries(tensor: Tensor, given: Any) -> list[Any]:
    """Entries of a vector of positions: integers, or values."""
    known = static_value(tensor)
    if known is not None:
        return [int(v) for v in known]
    if isinstance(given, list | tuple):
        return [_position(v) for v in given]
    count = tensor.shape[0].value
    if count is None:
        raise fail(ShapeError, f"expected a vector of known length, got {tensor}")
    with get_default_graph().building():
        return [tensor.used[i] for i in builtins.range(count)]


def _position(value: Any) -> Any:
    if is_tensor(value):
        known = static_value(value)
        return value._as_graph_tensor().used if known is None else int(known)
    return int(_int(value))


def _block(begin: Any, size: Any) -> builtins.slice:
    if isinstance(size, int) and size == -1:
        return builtins.slice(begin, None)
    if isinstance(begin, int) and isinstance(size, int):
        return builtins.slice(begin, begin + size)
    with get_default_graph().building():
        return builtins.slice(begin, begin + size)


def _check_block(item: Any, dim: Any, axis: int) -> None:
    size = getattr(dim, "value", None)
    ends = [v for v in (item.start, item.stop) if isinstance(v, int)]
    if size is not None and any(not 0 <= v <= size for v in ends):
        raise fail(ShapeError, f"slice: expected a block inside {size} on axis {axis}, got {ends}")


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Elements from `begin` to `end` by `strides`; bits of the masks give an axis another meaning."""
    del var
    with name_scope(name, "StridedSlice", [input_]) as scope:
        tensor = convert_to_tensor(input_, name="input")
        first, last = convert_to_tensor(begin, name="begin"), convert_to_tensor(end, name="end")
        starts, stops = _entries(first, begin), _entries(last, end)
        steps = [1] * len(starts)
        if strides is not None:
            steps = _entries(convert_to_tensor(strides, name="strides"), strides)
        key: list[Any] = []
        for i, (b, e, s) in enumerate(zip(starts, stops, steps, strict=True)):
            bit = 1 << i
            if ellipsis_mask & bit:
                key.append(...)
            elif new_axis_mask & bit:
                key.append(None)
            elif shrink_axis_mask & bit:
                key.append(b)
            else:
                key.append(
                    builtins.slice(
                        None if begin_mask & bit else b, None if end_mask & bit else e, s
                    )
                )
        graph = get_default_graph()
        build = _subscripted(tuple(key))
        return graph.emit("StridedSlice", [tensor, first, last], build, name=scope).outputs[0]


def _getitem(x: Any, key: Any) -> Tensor:
    items = key if isinstance(key, tuple) else (key,)
    with name_scope("strided_slice", None, [x, *[i for i in items if is_tensor(i)]]) as scope:
        tensor = convert_to_tensor(x)
        found = tuple([_subscript(item) for item in items])
        for label, position in (("stack", 0), ("stack_1", 1), ("stack_2", 2)):
            emit_constant(np.array([_written(i, position) for i in found], np.int32), label)
        graph = get_default_graph()
        op = graph.emit("StridedSlice", [tensor], _subscripted(found), name=scope)
    return op.outputs[0]


def _written(item: Any, position: int) -> int:
    """What TensorFlow writes down of a subscript in its vectors of begins, ends and strides."""
    if isinstance(item, builtins.slice):
        part = (item.start, item.stop, item.step)[position]
        return part if isinstance(part, int) else int(position == 2)
    if isinstance(item, int):
        return (item, item + 1, 1)[position]
    return int(position == 2)


def _subscript(item: Any) -> Any:
    if item is None or item is ...:
        return item
    if isinstance(item, builtins.slice):
        parts = [None if p is None else _position(p) for p in (item.start, item.stop, item.step)]
        return builtins.slice(*parts)
    if isinstance(item, np.ndarray) and item.ndim:
        raise fail(DTypeError, f"expected an integer or a slice as subscript, got {item!r}; use tf.gather")
    if is_tensor(item):
        found = item._as_graph_tensor()
        if found.dtype.is_bool:
            raise fail(DTypeError, "boolean masks have shapes that depend on data; use tf.where(c, x, y)")
        return _position(found)
    if isinstance(item, bool) or not hasattr(_int(item), "__index__"):
        raise fail(DTypeError, f"expected an integer or a slice as subscript, got {item!r}")
    return int(_int(item))


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The rows (or slices along `axis`) of `params` at `indices`."""
    del validate_indices
    with name_scope(name, "GatherV2", [params, indices]) as scope:
        tensor = convert_to_tensor(params, name="params")
        where = convert_to_tensor(indices, name="indices")
        along = batch_dims if axis is None else static_axis(axis, "gather")
        emit_constant(np.array(along, np.int32), "axis")
        graph = get_default_graph()
        op = graph.emit(
            "GatherV2", [tensor, where], "gather", axis=along, batch_dims=batch_dims, name=scope
        )
    return op.outputs[0]


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The elements of `params` at the positions in the last axis of `indices`."""
    if batch_dims:
        raise fail(GraphError, "gather_nd: batch_dims is not supported")
    with name_scope(name, "GatherNd", [params, indices]) as scope:
        tensor = convert_to_tensor(params, name="params")
        where = convert_to_tensor(indices, name="indices")
        return get_default_graph().emit("GatherNd", [tensor, where], "gather_nd", name=scope).outputs[0]


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at the positions in the last axis of `indices`."""
    with name_scope(name, "ScatterNd", [indices, updates]) as scope:
        where = convert_to_tensor(indices, name="indices")
        new = convert_to_tensor(updates, name="updates")
        dims, target = shape_operand(shape, "shape")
        graph = get_default_graph()
        build = _drop(2, "scatter_nd")
        return graph.emit("ScatterNd", [where, new, dims], build, shape=target, name=scope).outputs[0]


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where `condition` is true, else `y`; a vector of conditions picks whole rows.

    Raises:
        GraphError: without x and y the shape would depend on data, which is not supported.
    """
    if x is None or y is None:
        raise fail(GraphError, "where: expected x and y; positions alone have a shape that data decides")
    with name_scope(name, "Select", [condition, x, y]) as scope:
        flags = convert_to_tensor(condition, name="condition", dtype=dtypes.bool_)
        a, b = same_type("where", x, y)
        return get_default_graph().emit("Select", [flags, a, b], _select, name=scope).outputs[0]


def _select(condition: Value, x: Value, y: Value) -> Value:
    if condition.rank == 1 and (x.rank or 0) > 1:
        for _ in builtins.range((x.rank or 1) - 1):
            condition = ops.expand_dims(condition, axis=-1)
    return ops.select(condition, x, y)


where_v2 = where
select = where


# Made from numbers
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` at each index, `off_value` elsewhere, along a new axis of size `depth`."""
    with name_scope(name, "one_hot", [indices]) as scope:
        where_ = convert_to_tensor(indices, name="indices")
        known = static_value(_int(depth))
        if known is None:
            raise fail(GraphError, "one_hot: expected a depth that is known now")
        on, off = (None if v is None else static_value(v) for v in (on_value, off_value))
        given = next((v.dtype for v in (on, off) if v is not None), np.dtype(np.float32))
        kind = as_dtype(given if dtype is None else dtype)
        op = get_default_graph().emit(
            "OneHot", [where_], "one_hot", depth=int(known), on=1 if on is None else on.item(),
            off=0 if off is None else off.item(), axis=-1 if axis is None else axis,
            dtype=kind.ir, name=scope,
        )  # fmt: skip
    return op.outputs[0]


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """Numbers from `start` (0 if only one is given) up to, not including, `limit`."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "range", [start, limit, delta]) as scope:
        parts = [_int(v) for v in (start, limit, delta)]
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

        return get_default_graph().emit("Range", tensors, build, name=scope).outputs[0]


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, both included."""
    with name_scope(name, "linspace", [start, stop, num]) as scope:
        a, b = same_type("linspace", start, stop)
        known = static_value(_int(num))
        if known is None or int(known) < 1:
            raise fail(GraphError, f"linspace: expected num >= 1 that is known now, got {num!r}")
        count = int(known)

        def build(x: Value, y: Value) -> Value:
            if count == 1:
                return ops.expand_dims(x, axis=0)
            line = ops.iota(shape=(count,), dtype=x.dtype)
            inner = x + line * ((y - x) / (count - 1))
            return ops.select(ops.equal(line, count - 1), y, inner)

        return get_default_graph().emit("LinSpace", [a, b], build, name=scope).outputs[0]


lin_space = linspace


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of one number."""
    with name_scope(name, "Fill", [dims, value]) as scope:
        shape_, target = shape_operand(dims, "dims")
        number = convert_to_tensor(value, name="value")

        def build(_: Value, v: Value) -> Value:
            return ops.broadcast_to(v, shape=target)

        return get_default_graph().emit("Fill", [shape_, number], build, name=scope).outputs[0]


def _filled(shape: Any, dtype: Any, name: str | None, number: int, default: str) -> Tensor:
    kind = as_dtype(dtype).base_dtype
    with name_scope(name, default, [shape] if is_tensor(shape) else []) as scope:
        graph = get_default_graph()
        plain = not is_tensor(shape) and not (
            isinstance(shape, list | tuple) and any(is_tensor(d) for d in shape)
        )
        if plain:
            dims = tuple([int(_int(d)) for d in TensorShape(shape).as_list()])  # pyright: ignore[reportArgumentType]
            if np.prod(dims, dtype=np.int64) < LARGE:
                return emit_constant(np.full(dims, number, kind.ir.numpy), scope)
            return graph.emit(
                "Fill", (), ops.full, shape=dims, value=number, dtype=kind.ir, name=scope
            ).outputs[0]
        shape_, target = shape_operand(shape, "shape")
        build = _drop(0, ops.full)
        return graph.emit(
            "Fill", [shape_], build, shape=target, value=number, dtype=kind.ir, name=scope
        ).outputs[0]


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

        def build(v: Value) -> Value:
            found = ops.full_like(v, number)
            return found if found.dtype is kind.ir else ops.cast(found, dtype=kind.ir)

        op = "ZerosLike" if number == 0 else "Fill"
        return get_default_graph().emit(op, [x], build, name=scope).outputs[0]


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
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The identity matrix, or a batch of it."""
    with name_scope(name, "eye"):
        rows = int(_int(num_rows))
        columns = rows if num_columns is None else int(_int(num_columns))
        lead = () if batch_shape is None else tuple(as_shape(batch_shape).as_list())
        kind = as_dtype(dtype).ir

        def build() -> Value:
            matrix = ops.eye(rows, columns, kind)
            return ops.broadcast_to(matrix, shape=(*lead, rows, columns)) if lead else matrix

        return get_default_graph().emit("MatrixDiagV3", (), build, name="diag").outputs[0]


def matrix_diag(diagonal: Any, name: str = "diag", **others: Any) -> Tensor:
    """Matrices with these diagonals."""
    del others

    def build(d: Value) -> Value:
        count = d.shape[-1] if d.shape is not None else None
        if count is None:
            count = ops.shape_of(d)[-1]
        mask = ops.eye(count, count, d.dtype)
        return ops.expand_dims(d, axis=-1) * mask

    return unary("MatrixDiagV3", build, diagonal, name, "diag")


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The matrix with this diagonal."""
    tensor = convert_to_tensor(diagonal)
    if tensor.shape.ndims not in (None, 1):
        raise fail(ShapeError, f"diag: expected a vector, got shape {tensor.shape}")

    def build(d: Value) -> Value:
        count = (d.shape or (None,))[0]
        if count is None:
            count = ops.shape_of(d)[0]
        return ops.expand_dims(d, axis=-1) * ops.eye(count, count, d.dtype)

    return unary("Diag", build, tensor, name)


def _diagonal(x: Value) -> Value:
    assert x.shape is not None
    rows, columns = x.shape[-2:]
    if rows is None or columns is None:
        raise fail(ShapeError, "diag_part: expected a matrix of known shape")
    count = min(rows, columns)
    square = ops.subscript(x, (..., builtins.slice(0, count), builtins.slice(0, count)))
    return ops.sum(square * ops.eye(count, count, x.dtype), axes=(-1,))


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a square matrix."""
    return unary("DiagPart", _diagonal, input, name)


def matrix_diag_part(input: Any, name: str = "diag_part", **others: Any) -> Tensor:
    """The diagonals of matrices."""
    del others
    return unary("MatrixDiagPartV3", _diagonal, input, name)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", **others: Any) -> Tensor:
    """Square matrices with their diagonals replaced."""
    del others
    with name_scope(name, "set_diag", [input, diagonal]) as scope:
        x, d = same_type("matrix_set_diag", input, diagonal)

        def build(m: Value, v: Value) -> Value:
            assert m.shape is not None
            rows, columns = m.shape[-2:]
            mask = ops.eye(rows, columns, dtypes.bool_.ir)
            return ops.select(mask, ops.expand_dims(v, axis=-1), m)

        return get_default_graph().emit("MatrixSetDiagV3", [x, d], build, name=scope).outputs[0]


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band: so many below and above the diagonal; -1 keeps all."""
    bounds = [static_value(v) for v in (num_lower, num_upper)]
    if None in [None if b is None else 0 for b in bounds]:
        raise fail(GraphError, "matrix_band_part: expected bounds that are known now")
    lower, upper = (None if int(b) < 0 else int(b) for b in bounds)  # pyright: ignore[reportArgumentType]
    return unary("MatrixBandPart", "band_part", input, name, lower=lower, upper=upper)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    return unary("Sum", lambda v: ops.sum(_diagonal(v), axes=(-1,)), x, name, "Trace")


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements in reverse order along `axis`."""
    axes = static_axes(axis, "reverse") or ()
    if not axes:
        return unary("ReverseV2", "identity", tensor, name)
    return unary("ReverseV2", "flip", tensor, name, axes=axes)


reverse_v2 = reverse


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements moved along `axis`; what leaves at one end enters at the other."""
    shifts = static_axes(shift, "roll") or ()
    axes = static_axes(axis, "roll") or ()

    def build(x: Value) -> Value:
        for count, at in zip(shifts, axes, strict=True):
            size_ = None if x.shape is None else x.shape[at]
            if size_ is None:
                raise fail(ShapeError, "roll: expected a known dimension")
            cut = size_ - count % size_ if size_ else 0
            parts = ops.split.all(x, sizes=(cut, size_ - cut), axis=at)
            x = ops.concatenate(parts[1], parts[0], axis=at)
        return x

    return unary("Roll", build, input, name)


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Coordinates of the points of a grid."""
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
            sizes = [ops.shape_of(v)[0] if d is None else d for v, d in zip(values, dims, strict=True)]
            spread: list[Any] = [1] * count
            spread[order[which]] = -1
            line = ops.reshape(values[which], shape=tuple(spread))
            return ops.broadcast_to(line, shape=[sizes[i] for i in order])

        graph = get_default_graph()
        return [
            graph.emit("Mul", lines, build, which=i, name="mul").outputs[0]
            for i in builtins.range(count)
        ]


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along axes of size 1 to reach `shape`."""
    with name_scope(name, "BroadcastTo", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        dims, target = shape_operand(shape, "shape")
        graph = get_default_graph()
        build = _drop(1, "broadcast_to")
        return graph.emit("BroadcastTo", [tensor, dims], build, shape=target, name=scope).outputs[0]


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that two shapes broadcast to."""
    a, b = as_shape(shape_x).as_list(), as_shape(shape_y).as_list()
    return TensorShape(np.broadcast_shapes(tuple(a), tuple(b)))  # pyright: ignore[reportArgumentType]


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same tensor, of which the shape is now known."""
    found = unary("EnsureShape", "identity", x, name)
    found.set_shape(shape)
    return found


# Segments, order, sets
def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row i is the sum of the rows of `data` whose id is i."""
    with name_scope(name, "UnsortedSegmentSum", [data, segment_ids]) as scope:
        rows = convert_to_tensor(data, name="data")
        ids = convert_to_tensor(segment_ids, name="segment_ids")
        count, target = shape_operand(num_segments, "num_segments")
        lead = ids.shape.ndims or 1

        def build(x: Value, i: Value, _: Value) -> Value:
            if lead > 1:
                tail = [_dim(x, a) for a in builtins.range(lead, x.rank or lead)]
                x = ops.reshape(x, shape=[-1, *tail])
                i = ops.reshape(i, shape=(-1,))
            tail = [_dim(x, a) for a in builtins.range(1, x.rank or 1)]
            return ops.scatter_add(ops.full([target, *tail], 0, x.dtype), i, x)

        graph = get_default_graph()
        return graph.emit("UnsortedSegmentSum", [rows, ids, count], build, name=scope).outputs[0]


def _dim(x: Value, axis: int) -> Any:
    assert x.shape is not None
    known = x.shape[axis]
    return ops.shape_of(x)[axis] if known is None else known


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """`unsorted_segment_sum` for sorted ids that are known now."""
    known = static_value(segment_ids)
    if known is None:
        raise fail(GraphError, "segment_sum: expected ids that are known now; use unsorted_segment_sum")
    with name_scope(name, "SegmentSum", [data]) as scope:
        rows = convert_to_tensor(data, name="data")
        count = int(known.max()) + 1 if known.size else 0

        def build(x: Value) -> Value:
            tail = [_dim(x, a) for a in builtins.range(1, x.rank or 1)]
            return ops.scatter_add(ops.full([count, *tail], 0, x.dtype), known, x)

        return get_default_graph().emit("SegmentSum", [rows], build, name=scope).outputs[0]


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None
) -> Tensor:
    """For each length, so many true values, up to `maxlen`."""
    known = static_value(lengths) if maxlen is None else static_value(_int(maxlen))
    if known is None:
        raise fail(GraphError, "sequence_mask: expected maxlen, the lengths are not known now")
    limit = int(known.max()) if known.ndim else int(known)
    with name_scope(name, "SequenceMask", [lengths]):
        sizes = convert_to_tensor(lengths, name="lengths")

        def build(n: Value) -> Value:
            line = ops.iota(shape=(limit,), dtype=n.dtype)
            return ops.less(line, ops.expand_dims(n, axis=-1))

        found = get_default_graph().emit("Less", [sizes], build, name="Less").outputs[0]
        kind = as_dtype(dtype)
        return found if kind is dtypes.bool_ else unary("Cast", "cast", found, None, dtype=kind.ir)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`."""
    def build(p: Value) -> Value:
        return ops.cast(ops.argsort(p, axis=0), dtype=p.dtype)

    return unary("InvertPermutation", build, x, name)


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements in order along `axis`."""
    descending = _descending(direction)
    with name_scope(name, "sort", [values]):
        return unary(
            "Sort", lambda x: ops.sort.all(x, axis=axis, descending=descending)[0], values, None
        )


def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The positions that put the elements in order along `axis`; equal ones keep theirs."""
    del stable
    descending = _descending(direction)

    def build(x: Value) -> Value:
        found = ops.argsort(x, axis=axis, descending=descending)
        return found if found.dtype is dtypes.int32.ir else ops.cast(found, dtype=dtypes.int32.ir)

    with name_scope(name, "argsort", [values]):
        return unary("TopKV2", build, values, None)


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise fail(GraphError, f"expected ASCENDING or DESCENDING, got {direction!r}")
    return direction == "DESCENDING"


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often each label (row) was predicted as each class (column)."""
    if num_classes is None:
        raise fail(GraphError, "confusion_matrix: expected num_classes")
    kind = as_dtype(dtype)
    with name_scope(name, "confusion_matrix", [labels, predictions]):
        rows = one_hot(labels, num_classes, dtype=kind)
        columns = one_hot(predictions, num_classes, dtype=kind)
        if weights is not None:
            rows = rows * expand_dims(convert_to_tensor(weights, kind), -1)
        pairs = expand_dims(rows, -1) * expand_dims(columns, 1)
        return unary("Sum", lambda x: ops.sum(x, axes=(0,)), pairs, None)


# Images
def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Blocks of pixels become channels."""
    _require_nhwc("space_to_depth", data_format)

    def build(x: Value) -> Value:
        n, h, w, c = [_dim(x, i) for i in builtins.range(4)]
        b = block_size
        x = ops.reshape(x, shape=[n, h // b, b, w // b, b, c])
        x = ops.transpose(x, perm=(0, 1, 3, 2, 4, 5))
        return ops.reshape(x, shape=[n, h // b, w // b, b * b * c])

    return unary("SpaceToDepth", build, input, name)


def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Channels become blocks of pixels."""
    _require_nhwc("depth_to_space", data_format)

    def build(x: Value) -> Value:
        n, h, w, c = [_dim(x, i) for i in builtins.range(4)]
        b = block_size
        x = ops.reshape(x, shape=[n, h, w, b, b, c // (b * b)])
        x = ops.transpose(x, perm=(0, 1, 3, 2, 4, 5))
        return ops.reshape(x, shape=[n, h * b, w * b, c // (b * b)])

    return unary("DepthToSpace", build, input, name)


def _require_nhwc(kind: str, data_format: str) -> None:
    if data_format != "NHWC":
        raise fail(GraphError, f"{kind}: expected data_format NHWC, got {data_format!r}")


# Where a graph begins
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value every run must feed.

    Args:
        shape: what is known of its shape; `None` dimensions or no shape may be anything.
    """
    kind = as_dtype(dtype)
    if kind.name.endswith("_ref"):
        raise fail(DTypeError, f"placeholder: expected a plain type, got {kind.name}")
    dims = as_shape(shape).as_dims()
    op = get_default_graph().emit(
        "Placeholder", (), "placeholder", dtype=kind.ir, shape=dims, name=name or "Placeholder",
        attrs={"dtype": kind, "shape": as_shape(shape)},
    )  # fmt: skip
    return op.outputs[0]


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that is `input` unless a run feeds another value, of a shape that fits `shape`."""
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

        return graph.emit("PlaceholderWithDefault", [tensor], build, name=scope).outputs[0]


OPERATORS["getitem"] = _getitem
