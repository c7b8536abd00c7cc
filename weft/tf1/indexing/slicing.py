"""Slices, subscripts, gather, scatter, selection."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from weft import ops
from weft.errors import DTypeError, GraphError, OutOfRangeError, ShapeError
from weft.ir.node import Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.indexing.block import block_at
from weft.ops.indexing.gather_nd import gather_nd_of_batches
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    emit_constant,
    is_tensor,
    same_type,
    shape_operand,
    static_axis,
    static_value,
)  # fmt: skip
from weft.tf1.framework.dynamic_shape import first_inputs, plain
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.known_ahead import follows_from_feeds
from weft.tf1.framework.tensor import OPERATORS, Tensor
from weft.tf1.shaping.arrangement import shape as shape_of

__all__ = ["gather", "gather_nd", "newaxis", "scatter_nd", "slice", "strided_slice", "where"]

newaxis = None


def tf_slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The block that starts at `begin` and has `size` (-1: to the end)."""
    with name_scope(name, "Slice", [input_]) as scope:
        tensor = convert_to_tensor(input_, name="input")
        start, extent = convert_to_tensor(begin, name="begin"), convert_to_tensor(size, name="size")
        sizes = _entries(extent, size)
        key = tuple([_block(b, s) for b, s in zip(_entries(start, begin), sizes, strict=True)])
        for axis, (item, dim) in enumerate(zip(key, tensor.shape.dims or key, strict=False)):
            _check_block(item, dim, axis)
        block = emit("Slice", [tensor, start, extent], _subscripted(key), name=scope)
        block.set_shape([n if isinstance(n, int) and n >= 0 else None for n in sizes])
        return block


slice = tf_slice


def _subscripted(key: tuple[Any, ...]) -> Any:
    """A build function that subscripts its first input with `key`."""

    def build(x: Value, *_: Value) -> Value:
        try:
            return ops.subscript(*_gathered(x, key))
        except OutOfRangeError as error:  # a ValueError in TensorFlow
            raise ShapeError(str(error)) from None

    return build


def _gathered(x: Value, key: tuple[Any, ...]) -> tuple[Value, tuple[Any, ...]]:
    """A value and its subscript, without slices of known sizes whose begins the step computes."""
    found = list(key)
    for i, item in enumerate(key):
        size = _size(item) if isinstance(item, builtins.slice) else None
        if size is None:
            continue
        ahead = [each for each in key[:i] if each is not None]
        axis = len(ahead)
        if any(each is ... for each in ahead):
            axis = len(x.type.shape or ()) - len([each for each in key[i:] if each is not None])
        x = block_at(x, item.start, size=size, axis=axis)
        found[i] = builtins.slice(None)
    return x, tuple(found)


def _size(item: builtins.slice) -> int | None:
    """The size of a slice from `begin` to `begin + size`, if the step computes its begin."""
    begin, end = item.start, item.stop
    if not isinstance(begin, Value) or not isinstance(end, Value) or item.step not in (None, 1):
        return None
    inputs = end.node.inputs
    if op_of(end.node).name != "add" or begin not in inputs or follows_from_feeds([begin]):
        return None
    rest = inputs[1] if inputs[0] is begin else inputs[0]
    return int(rest.node.attrs["value"].array) if op_of(rest.node) is CONSTANT else None


def _entries(tensor: Tensor, given: Any) -> list[Any]:
    """Entries of an index vector: integers, or values."""
    known = static_value(tensor)
    if known is not None:
        return [int(v) for v in known]
    if isinstance(given, list | tuple):
        return [_position(v) for v in given]
    count = tensor.shape.as_list()[0]
    if count is None:
        raise fail(ShapeError, f"expected a vector of known length, got {tensor}")
    with get_default_graph().building():
        return [tensor.used[i] for i in builtins.range(count)]


def _position(value: Any) -> Any:
    if is_tensor(value):
        known = static_value(value)
        return value._as_graph_tensor().used if known is None else int(known)
    return int(plain(value))


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
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Elements from `begin` to `end` by `strides`; the masks change the meaning of an axis."""
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
        build = _subscripted(tuple(key))
        return emit("StridedSlice", [tensor, first, last], build, name=scope)


def _getitem(x: Any, key: Any) -> Tensor:
    items = key if isinstance(key, tuple) else (key,)
    with name_scope("strided_slice", None, [x, *[i for i in items if is_tensor(i)]]) as scope:
        tensor = convert_to_tensor(x)
        if tensor.shape.ndims is None and isinstance(key, int | np.integer):
            return gather(tensor, _row(tensor, key), name=scope)
        found = tuple([_subscript(item) for item in items])
        for label, position in (("stack", 0), ("stack_1", 1), ("stack_2", 2)):
            emit_constant(np.array([_written(i, position) for i in found], np.int32), label)
        return emit("StridedSlice", [tensor], _subscripted(found), name=scope)


def _row(x: Tensor, key: Any) -> Any:
    """A number of a row, which counts from the end if it is negative."""
    return key if key >= 0 else shape_of(x)[0] + int(key)


def _written(item: Any, position: int) -> int:
    """TensorFlow's encoding of a subscript as vectors of begins, ends and strides."""
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
        raise fail(
            DTypeError, f"expected an integer or a slice as subscript, got {item!r}; use tf.gather"
        )
    if is_tensor(item):
        found = convert_to_tensor(item)
        if found.dtype.is_bool:
            raise fail(
                DTypeError, "boolean masks have shapes that depend on data; use tf.where(c, x, y)"
            )
        return _position(found)
    if isinstance(item, bool) or not hasattr(plain(item), "__index__"):
        raise fail(DTypeError, f"expected an integer or a slice as subscript, got {item!r}")
    return int(plain(item))


def gather(
    params: Any, indices: Any, validate_indices: Any = None, name: str | None = None,
    axis: Any = None, batch_dims: int = 0,
) -> Tensor:  # fmt: skip
    """The rows (or slices along `axis`) of `params` at `indices`."""
    del validate_indices
    with name_scope(name, "GatherV2", [params, indices]) as scope:
        tensor = convert_to_tensor(params, name="params")
        where = convert_to_tensor(indices, name="indices")
        along = batch_dims if axis is None else static_axis(axis, "gather")
        emit_constant(np.array(along, np.int32), "axis")
        return emit(
            "GatherV2", [tensor, where], "gather", axis=along, batch_dims=batch_dims, name=scope
        )


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The elements of `params` at the indices in the last axis of `indices`.

    Args:
        batch_dims: the first axes that both have, of examples with elements and indices each.
    """
    with name_scope(name, "GatherNd", [params, indices]) as scope:
        tensor = convert_to_tensor(params, name="params")
        where = convert_to_tensor(indices, name="indices")
        return emit(
            "GatherNd", [tensor, where], gather_nd_of_batches, name=scope, batch_dims=batch_dims
        )


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at the indices in the last axis of `indices`."""
    with name_scope(name, "ScatterNd", [indices, updates]) as scope:
        where = convert_to_tensor(indices, name="indices")
        new = convert_to_tensor(updates, name="updates")
        dims, target = shape_operand(shape, "shape")
        build = first_inputs(2, "scatter_nd")
        return emit("ScatterNd", [where, new, dims], build, shape=target, name=scope)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where `condition` is true, else `y`; a vector condition selects whole rows.

    Without x and y, the indices of true elements, int64, [number, rank].

    Raises:
        GraphError: one of x and y is missing.
    """
    if x is None and y is None:
        return OPERATORS["positions"](condition, name)
    if x is None or y is None:
        raise fail(GraphError, "where: expected x and y, or neither of them")
    with name_scope(name, "Select", [condition, x, y]) as scope:
        flags = convert_to_tensor(condition, name="condition", dtype=dtypes.bool_)
        a, b = same_type("where", x, y)
        return emit("Select", [flags, a, b], _select, name=scope)


def _select(condition: Value, x: Value, y: Value) -> Value:
    if condition.rank == 1 and (x.rank or 0) > 1:
        for _ in builtins.range((x.rank or 1) - 1):
            condition = ops.expand_dims(condition, axis=-1)
    return ops.select(condition, x, y)


where_v2 = where
select = where
OPERATORS["getitem"] = _getitem
