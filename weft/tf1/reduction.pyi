"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.tf1.framework.tensor import Tensor

def axis_array(axes: tuple[int, ...], axis: Any) -> Any:
    """Axes in TensorFlow's form: a scalar if one was given as such."""

def reduce_sum(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """The sum over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_mean(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """The mean over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_prod(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """The product over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_max(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """The greatest over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_min(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """The least over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_all(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """Whether all are true, over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_any(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """Whether one is true, over `axis` (all by default), kept as 1 with `keepdims`."""

def reduce_logsumexp(input_tensor: Any, axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ...) -> Tensor:
    """log(sum(exp(x))), without overflow."""

def reduce_variance(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The variance."""

def reduce_std(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The standard deviation."""

def reduce_euclidean_norm(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The square root of the sum of squares."""

def count_nonzero(input_tensor: Any = ..., axis: Any = ..., keepdims: bool | None = ..., dtype: Any = ..., name: str | None = ..., reduction_indices: Any = ..., keep_dims: bool | None = ..., input: Any = ...) -> Tensor:
    """The number of nonzero elements."""

def norm(tensor: Any, ord: Any = ..., axis: Any = ..., keepdims: bool | None = ..., name: str | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The norm of vectors (`axis` an integer), or of all elements.

    Args:
        ord: `'euclidean'`, `'fro'`, 1, 2, infinity, or another positive number.
    """

def argmax(input: Any, axis: Any = ..., name: str | None = ..., dimension: Any = ..., output_type: Any = ...) -> Tensor:
    """The index of the maximum along `axis` (0 by default); the first of equal ones."""

def argmin(input: Any, axis: Any = ..., name: str | None = ..., dimension: Any = ..., output_type: Any = ...) -> Tensor:
    """The index of the minimum along `axis` (0 by default); the first of equal ones."""

def arg_max(input: Any, dimension: Any, output_type: Any = ..., name: str | None = ...) -> Tensor:
    """The deprecated form of `argmax`."""

def arg_min(input: Any, dimension: Any, output_type: Any = ..., name: str | None = ...) -> Tensor:
    """The deprecated form of `argmin`."""

__all__ = [
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "count_nonzero",
    "norm",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]
