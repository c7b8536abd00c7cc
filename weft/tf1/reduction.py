"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import ops
from weft.errors import GraphError, nameless
from weft.ops.reduction.norm import stepwise_norm
from weft.ops.reduction.spread import mean_of_any
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    emit_constant,
    static_axes,
    static_axis,
    static_value,
)  # fmt: skip
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "arg_max", "arg_min", "argmax", "argmin", "count_nonzero", "norm", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
]  # fmt: skip


def _reduce(
    kind: str, build: Any, x: Any, axis: Any, keepdims: Any, name: str | None, default: Any = None
) -> Tensor:
    tensor = convert_to_tensor(x)
    axes = static_axes(axis, kind)
    if axes is None and tensor.shape.ndims is not None:
        emit_constant(np.arange(tensor.shape.ndims, dtype=np.int32), "Const")
    with name_scope(name, default or kind, [tensor]) as scope:
        tensor = convert_to_tensor(x, name="input_tensor")
        if axes is not None:
            emit_constant(np.array(axis_array(axes, axis), np.int32), "reduction_indices")
        keep = bool(keepdims)
        op = get_default_graph().emit(
            kind, [tensor], build, axes=axes, keepdims=keep, name=scope, attrs={"keep_dims": keep}
        )
    return op.outputs[0]


def axis_array(axes: tuple[int, ...], axis: Any) -> Any:
    """Axes in TensorFlow's form: a scalar if one was given as such."""
    return axes[0] if np.ndim(static_value(axis)) == 0 else axes


def _reduction(kind: str, build: Any, doc: str):
    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        chosen = _either("axis", axis, "reduction_indices", reduction_indices)
        keep = _either("keepdims", keepdims, "keep_dims", keep_dims)
        return _reduce(kind, build, input_tensor, chosen, keep, name)

    function.__doc__ = f"{doc} over `axis` (all by default), kept as 1 with `keepdims`."
    function.__name__ = function.__qualname__ = "reduce_" + kind.lower()
    return function


def _either(new: str, value: Any, old: str, old_value: Any) -> Any:
    if value is not None and old_value is not None:
        raise nameless(fail(GraphError, f"expected one of {new} and {old}, got both"))
    return old_value if value is None else value


reduce_sum = _reduction("Sum", "sum", "The sum")
reduce_mean = _reduction("Mean", mean_of_any, "The mean")
reduce_prod = _reduction("Prod", "prod", "The product")
reduce_max = _reduction("Max", "max", "The greatest")
reduce_min = _reduction("Min", "min", "The least")
reduce_all = _reduction("All", "all", "Whether all are true,")
reduce_any = _reduction("Any", "any", "Whether one is true,")


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log(sum(exp(x))), without overflow."""
    chosen = _either("axis", axis, "reduction_indices", reduction_indices)
    keep = _either("keepdims", keepdims, "keep_dims", keep_dims)
    return _unnamed("AddV2", "logsumexp", input_tensor, chosen, keep, name, "ReduceLogSumExp")


def _unnamed(
    kind: str, build: Any, x: Any, axis: Any, keep: Any, name: str | None, default: str, **more: Any
) -> Tensor:
    with name_scope(name, default, [x]) as scope:
        tensor = convert_to_tensor(x, name="input_tensor")
        op = get_default_graph().emit(
            kind, [tensor], build, axes=static_axes(axis, default), keepdims=bool(keep),
            name=scope, **more,
        )  # fmt: skip
    return op.outputs[0]


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The variance."""
    with name_scope(name, "reduce_variance", [input_tensor]):
        return _unnamed("Mean", "variance", input_tensor, axis, keepdims, None, "Mean")


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation."""
    with name_scope(name, "reduce_std", [input_tensor]):
        return _unnamed("Sqrt", "std", input_tensor, axis, keepdims, None, "Sqrt")


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares."""
    return _unnamed("EuclideanNorm", "norm", input_tensor, axis, keepdims, name, "EuclideanNorm")


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """The number of nonzero elements."""
    chosen = _either("axis", axis, "reduction_indices", reduction_indices)
    keep = _either("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name, "count_nonzero", [input_tensor]):
        tensor = convert_to_tensor(input if input_tensor is None else input_tensor)
        there = arithmetic.not_equal(tensor, np.zeros((), tensor.dtype.ir.numpy))
        return reduce_sum(arithmetic.cast(there, dtype), chosen, keep)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (`axis` an integer), or of all elements.

    Args:
        ord: `'euclidean'`, `'fro'`, 1, 2, infinity, or another positive number.
    """
    keep = bool(_either("keepdims", keepdims, "keep_dims", keep_dims))
    axes = static_axes(axis, "norm")
    if axes is not None and len(axes) == 2 and ord not in ("euclidean", "fro"):
        raise fail(GraphError, f"norm: expected 'fro' or 'euclidean' for matrices, got {ord!r}")
    order = {"euclidean": 2, "fro": 2, "inf": np.inf}.get(ord, ord)
    if not isinstance(order, int | float) or order <= 0:
        raise fail(GraphError, f"norm: expected a known order, got {ord!r}")
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)

        return emit(
            "Squeeze", [x], stepwise_norm, order=float(order), axes=axes, keepdims=keep,
            name="Squeeze",
        )  # fmt: skip


# arguments of extremes
def _arg(kind: str, build: str, x: Any, axis: Any, dtype: Any, name: str | None) -> Tensor:
    with name_scope(name, kind, [x]) as scope:
        tensor = convert_to_tensor(x, name="input")
        along = 0 if axis is None else static_axis(axis, kind)
        emit_constant(np.array(along, np.int32), "dimension")
        wanted = as_dtype(dtype).ir
        op = get_default_graph().emit(
            kind, [tensor], lambda v: _as_index(build, v, along, wanted), name=scope
        )
    return op.outputs[0]


def _as_index(build: str, x: Any, axis: int, dtype: Any) -> Any:
    found = getattr(ops, build)(x, axis=axis)
    return found if found.dtype is dtype else ops.cast(found, dtype=dtype)


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The index of the maximum along `axis` (0 by default); the first of equal ones."""
    chosen = _either("axis", axis, "dimension", dimension)
    return _arg("ArgMax", "argmax", input, chosen, output_type, name)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The index of the minimum along `axis` (0 by default); the first of equal ones."""
    chosen = _either("axis", axis, "dimension", dimension)
    return _arg("ArgMin", "argmin", input, chosen, output_type, name)


def arg_max(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The deprecated form of `argmax`."""
    return argmax(input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The deprecated form of `argmin`."""
    return argmin(input, dimension, name, output_type=output_type)
