"""Shapes of tensors, reshaping and reordering."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    constant,
    convert_n_to_tensor,
    convert_to_tensor,
    emit_constant,
    is_tensor,
    shape_operand,
    static_axes,
    static_axis,
    static_value,
    unary,
)  # fmt: skip
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.dynamic_shape import first_inputs, plain
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape

__all__ = [
    "broadcast_static_shape", "broadcast_to", "concat", "ensure_shape", "expand_dims", "pad",
    "rank", "reshape", "reverse", "reverse_v2", "roll", "shape", "shape_n", "size", "split",
    "squeeze", "stack", "tile", "transpose", "unstack",
]  # fmt: skip


# shapes as tensors
def shape(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """The shape, as a vector of integers; a constant if known."""
    kind = as_dtype(out_type)
    with name_scope(name, "Shape", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        dims = tensor.shape
        if optimize and dims.is_fully_defined():
            return emit_constant(np.array(dims.as_list(), kind.ir.numpy), scope)
        return emit("Shape", [tensor], "shape_of", dtype=kind.ir, name=scope)


def size(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """The number of elements; a constant if known."""
    kind = as_dtype(out_type)
    with name_scope(name, "Size", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        count = tensor.shape.num_elements()
        if optimize and count is not None:
            return emit_constant(np.array(count, kind.ir.numpy), scope)
        return emit("Size", [tensor], "size_of", dtype=kind.ir, name=scope)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The rank; a constant if known."""
    with name_scope(name, "Rank", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        if tensor.shape.ndims is not None:
            return emit_constant(np.array(tensor.shape.ndims, np.int32), scope)
        return emit("Rank", [tensor], "rank_of", name=scope)


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None):
    """The shape of each tensor."""
    return [shape(item, name, out_type) for item in input]


# movement
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements in another shape; one size may be -1, which is inferred.

    Raises:
        ShapeError: the number of elements differs.
    """
    with name_scope(name, "Reshape", [tensor, shape]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        dims, target = shape_operand(shape, "shape")
        return emit("Reshape", [x, dims], first_inputs(1, "reshape"), shape=target, name=scope)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """The tensor with a new axis of size 1 at `axis`."""
    chosen = dim if axis is None else axis
    if chosen is None:
        raise fail(GraphError, "expand_dims: expected an axis, got None")
    with name_scope(name, "ExpandDims", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        at = static_axis(chosen, "expand_dims")
        emit_constant(np.array(at, np.int32), "dim")
        return emit("ExpandDims", [tensor], "expand_dims", axis=at, name=scope)


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """The tensor without its axes of size 1 (or those in `axis`)."""
    chosen = squeeze_dims if axis is None else axis
    axes = static_axes(chosen, "squeeze") or None
    return unary("Squeeze", "squeeze", input, name, axes=axes)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """The axes permuted: reversed, or as `perm` says; complex numbers are conjugated on request."""
    with name_scope(name, "transpose", [a]) as scope:
        tensor = convert_to_tensor(a, name="a")
        order = static_axes(perm, "transpose")
        if order is not None:
            emit_constant(np.array(order, np.int32), "perm")
        if conjugate and tensor.dtype.is_complex:
            return emit("ConjugateTranspose", [tensor], _adjoint, perm=order, name=scope)
        return emit("Transpose", [tensor], "transpose", perm=order, name=scope)


def _adjoint(x: Value, perm: Any) -> Value:
    return ops.transpose(ops.conj(x), perm=perm)


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors concatenated along `axis`."""
    items = list(values) if isinstance(values, list | tuple) else [values]
    with name_scope(name, "concat", [v for v in items if is_tensor(v)]) as scope:
        along = static_axis(axis, "concat")
        tensors = convert_n_to_tensor(items, name="values")
        emit_constant(np.array(along, np.int32), "axis")
        if len(tensors) == 1:
            return emit("Identity", tensors, "identity", name=scope)
        return emit("ConcatV2", tensors, "concatenate", axis=along, name=scope)


def stack(values: Sequence[Any], axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape stacked along a new axis."""
    if axis == 0 and not any(is_tensor(v) for v in values):
        with contextlib.suppress(TypeError, ValueError):  # else they would be converted one by one
            return constant(values, name=name)
    with name_scope(name, "stack", [v for v in values if is_tensor(v)]) as scope:
        tensors = convert_n_to_tensor(values, name="values")
        return emit("Pack", tensors, "stack", axis=axis, name=scope, attrs={"axis": axis})


pack = stack


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"):
    """The inverse of `stack`: the slices along an axis."""
    with name_scope(name, "unstack", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        if num is None:
            num = tensor.shape.as_list()[axis]
            if num is None:
                raise fail(GraphError, f"unstack: expected num, for shape {tensor.shape}")
        graph = get_default_graph()
        return graph.emit("Unpack", [tensor], "unstack", count=num, axis=axis, name=scope).outputs


unpack = unstack


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Parts along `axis`: a number of equal ones, or ones of these sizes (one may be -1)."""
    del num
    with name_scope(name, "split", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        along = static_axis(axis, "split")
        emit_constant(np.array(along, np.int32), "split_dim")
        wanted = static_value(plain(num_or_size_splits))
        if wanted is None:
            raise fail(GraphError, "split: expected sizes that are known now")
        kind = "Split" if wanted.ndim == 0 else "SplitV"
        graph = get_default_graph()
        total = tensor.shape.as_list()[along]
        if total is None and wanted.ndim == 0:
            count, axis = int(wanted), along % len(tensor.shape)
            parts = _in_parts(tensor, count, axis)
            return graph.emit(kind, [parts], "unstack", count=count, axis=axis, name=scope).outputs
        sizes = _split_sizes(total, wanted)
        return graph.emit(kind, [tensor], "split", sizes=sizes, axis=along, name=scope).outputs


def _in_parts(tensor: Tensor, count: int, axis: int) -> Tensor:
    """The tensor with an axis of a size that only a run knows in parts: an axis for them before it.

    A run in which the size is not divisible by `count` fails.
    """
    dims = shape(tensor)
    parts = concat([dims[:axis], [count, -1], dims[axis + 1 :]], 0)
    result = reshape(tensor, parts)
    known = tensor.shape.as_list()
    result.set_shape([*known[:axis], count, None, *known[axis + 1 :]])
    return result


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
        raise fail(ShapeError, f"split: expected a dimension divisible by {count}, got {total}")
    return (total // count,) * count


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along each axis."""
    with name_scope(name, "Tile", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        count, reps = shape_operand(multiples, "multiples")
        return emit("Tile", [tensor, count], first_inputs(1, "tile"), reps=reps, name=scope)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:  # fmt: skip
    """The tensor padded before and after along each axis.

    Args:
        paddings: a pair (before, after) for each axis.
        mode: `CONSTANT`, `REFLECT` or `SYMMETRIC`.
        constant_values: the fill value.
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
                kind, [x, count], first_inputs(1, "mirror_pad"), paddings=widths, mode=how.lower(),
                name=scope,
            )  # fmt: skip
            return op.outputs[0]
        known = static_value(constant_values)
        if known is None:
            raise fail(GraphError, "pad: expected constant_values that are known now")
        number = x.dtype.ir.numpy.type(known).item()
        op = graph.emit(
            kind, [x, count], first_inputs(1, "pad"), paddings=widths, value=number, name=scope
        )
    return op.outputs[0]


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements reversed along `axis`."""
    axes = static_axes(axis, "reverse") or ()
    if not axes:
        return unary("ReverseV2", "identity", tensor, name)
    return unary("ReverseV2", "flip", tensor, name, axes=axes)


reverse_v2 = reverse


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements rotated along `axis`."""
    shifts, axes = static_axes(shift, "roll") or (), static_axes(axis, "roll") or ()
    return unary("Roll", "roll", input, name, shifts=shifts, axes=axes)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor broadcast to `shape`."""
    with name_scope(name, "BroadcastTo", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        dims, target = shape_operand(shape, "shape")
        build = first_inputs(1, "broadcast_to")
        return emit("BroadcastTo", [tensor, dims], build, shape=target, name=scope)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that two shapes broadcast to."""
    a, b = as_shape(shape_x).as_list(), as_shape(shape_y).as_list()
    return TensorShape(np.broadcast_shapes(tuple(a), tuple(b)))  # pyright: ignore[reportArgumentType]


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor with a more specific static shape."""
    found = unary("EnsureShape", "identity", x, name)
    found.set_shape(shape)
    return found
