"""Reductions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from weft import ops
from weft.documentation import named
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
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "arg_max", "arg_min", "argmax", "argmin", "count_nonzero", "norm", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
]  # fmt: skip


def _reduce(kind: str, build: Any, x: Any, axis: Any, keepdims: Any, name: str | None) -> Tensor:
    """A reduction with TensorFlow's constant of the axes."""
    tensor = convert_to_tensor(x)
    axes = static_axes(axis, kind)
    if axes is None and tensor.shape.ndims is not None:
        emit_constant(np.arange(tensor.shape.ndims, dtype=np.int32), "Const")
    with name_scope(name, kind, [tensor]) as scope:
        tensor = convert_to_tensor(x, name="input_tensor")
        if axes is not None:
            emit_constant(np.array(axis_array(axes, axis), np.int32), "reduction_indices")
        keep = bool(keepdims)
        return emit(
            kind, [tensor], build, axes=axes, keepdims=keep, name=scope, attrs={"keep_dims": keep}
        )


def _reduce_without_constant(
    kind: str, build: Any, default: str, x: Any, axis: Any, keep: Any, name: str | None
) -> Tensor:
    with name_scope(name, default, [x]) as scope:
        tensor = convert_to_tensor(x, name="input_tensor")
        axes = static_axes(axis, default)
        return emit(kind, [tensor], build, axes=axes, keepdims=bool(keep), name=scope)


def axis_array(axes: tuple[int, ...], axis: Any) -> Any:
    """Axes in TensorFlow's form: a scalar if one was given as such."""
    return axes[0] if np.ndim(static_value(axis)) == 0 else axes


def _either(new: str, value: Any, old: str, old_value: Any) -> Any:
    if value is not None and old_value is not None:
        raise nameless(fail(GraphError, f"expected one of {new} and {old}, got both"))
    return old_value if value is None else value


def _reduction(title: str, reduce: Callable[..., Tensor], doc: str):
    """A reduction whose arguments also have the names that they had before."""

    @named(title, doc)
    def reduction(
        input_tensor: Any, axis: Any = None, keepdims: bool | None = None, name: str | None = None,
        reduction_indices: Any = None, keep_dims: bool | None = None,
    ) -> Tensor:  # fmt: skip
        chosen = _either("axis", axis, "reduction_indices", reduction_indices)
        keep = _either("keepdims", keepdims, "keep_dims", keep_dims)
        return reduce(input_tensor, chosen, keep, name)

    return reduction


_OVER = " over `axis` (all by default), kept as 1 with `keepdims`."
reduce_sum = _reduction("reduce_sum", partial(_reduce, "Sum", "sum"), "The sum" + _OVER)
reduce_mean = _reduction("reduce_mean", partial(_reduce, "Mean", mean_of_any), "The mean" + _OVER)
reduce_prod = _reduction("reduce_prod", partial(_reduce, "Prod", "prod"), "The product" + _OVER)
reduce_max = _reduction("reduce_max", partial(_reduce, "Max", "max"), "The greatest" + _OVER)
reduce_min = _reduction("reduce_min", partial(_reduce, "Min", "min"), "The least" + _OVER)
reduce_all = _reduction(
    "reduce_all", partial(_reduce, "All", "all"), "Whether all are true," + _OVER
)
reduce_any = _reduction(
    "reduce_any", partial(_reduce, "Any", "any"), "Whether one is true," + _OVER
)
reduce_logsumexp = _reduction(
    "reduce_logsumexp", partial(_reduce_without_constant, "AddV2", "logsumexp", "ReduceLogSumExp"),
    "log(sum(exp(x))), without overflow.",
)  # fmt: skip


def _later_reduction(title: str, kind: str, build: str, doc: str, scoped: bool = True):
    """A reduction that has no older names of arguments."""

    @named(title, doc)
    def reduction(
        input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        if not scoped:
            return _reduce_without_constant(kind, build, kind, input_tensor, axis, keepdims, name)
        with name_scope(name, title, [input_tensor]):
            return _reduce_without_constant(kind, build, kind, input_tensor, axis, keepdims, None)

    return reduction


reduce_variance = _later_reduction("reduce_variance", "Mean", "variance", "The variance.")
reduce_std = _later_reduction("reduce_std", "Sqrt", "std", "The standard deviation.")
reduce_euclidean_norm = _later_reduction(
    "reduce_euclidean_norm", "EuclideanNorm", "norm", "The square root of the sum of squares.",
    scoped=False,
)  # fmt: skip


def count_nonzero(
    input_tensor: Any = None, axis: Any = None, keepdims: bool | None = None,
    dtype: Any = dtypes.int64, name: str | None = None, reduction_indices: Any = None,
    keep_dims: bool | None = None, input: Any = None,
) -> Tensor:  # fmt: skip
    """The number of nonzero elements."""
    chosen = _either("axis", axis, "reduction_indices", reduction_indices)
    keep = _either("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name, "count_nonzero", [input_tensor]):
        tensor = convert_to_tensor(input if input_tensor is None else input_tensor)
        there = arithmetic.not_equal(tensor, np.zeros((), tensor.dtype.ir.numpy))
        return reduce_sum(arithmetic.cast(there, dtype), chosen, keep)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None,
    name: str | None = None, keep_dims: bool | None = None,
) -> Tensor:  # fmt: skip
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
def _arg(title: str, kind: str, what: str):
    @named(title, f"The index of the {what} along `axis` (0 by default); the first of equal ones.")
    def index(
        input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
        output_type: Any = dtypes.int64,
    ) -> Tensor:  # fmt: skip
        chosen = _either("axis", axis, "dimension", dimension)
        with name_scope(name, kind, [input]) as scope:
            tensor = convert_to_tensor(input, name="input")
            along = 0 if chosen is None else static_axis(chosen, kind)
            emit_constant(np.array(along, np.int32), "dimension")
            wanted = as_dtype(output_type).ir
            return emit(kind, [tensor], lambda v: _as_index(title, v, along, wanted), name=scope)

    return index


def _as_index(build: str, x: Any, axis: int, dtype: Any) -> Any:
    index = getattr(ops, build)(x, axis=axis)
    return index if index.dtype is dtype else ops.cast(index, dtype=dtype)


argmax = _arg("argmax", "ArgMax", "maximum")
argmin = _arg("argmin", "ArgMin", "minimum")


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
