"""Reductions (sums, means, minima, maxima) and softmax, over one axis, several or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.documentation import named
from weft.eager.functions.recall.memory import of_any_sizes
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import axes_of, axis_of, either, kept
from weft.eager.tensor.dispatch import cast, converted, kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError
from weft.ir import dtype as types
from weft.ir.dtype import as_dtype
from weft.ops.declaration import REGISTRY, Op
from weft.ops.declaration.fact import Autocast
from weft.ops.reduction import exponential_sum, spread

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "all", "any", "count_nonzero", "log_softmax", "logsumexp", "mean", "nanmean", "nansum",
    "prod", "softmax", "std", "std_mean", "sum", "var", "var_mean",
]  # fmt: skip


def rank_of(lazy: Lazy) -> int:
    """The rank of a value."""
    shape: Any = lazy.type.shape
    return len(shape)


def floating(x: Any, dtype: Any = None) -> Lazy:
    """A value as floating-point numbers: in the given dtype, its own, or the default one."""
    lazy = lazy_of(x)
    if dtype is not None:
        return converted(lazy, as_dtype(dtype))
    rules = x.rules if isinstance(x, Handle) else TORCH
    return cast(lazy, rules.floating(lazy.type.dtype))


def reduced(op: Op, lazy: Lazy, x: Any, dim: Any, keepdim: bool, **attrs: Any) -> Tensor:
    """A reduction of the catalogue."""
    axes = axes_of(op.name, dim, rank_of(lazy))
    return wrap(record(op, (lazy,), {"axes": axes, "keepdims": keepdim, **attrs})[0], kind_of(x))


def counted(x: Any, dtype: Any = None) -> Lazy:
    """A value to sum: booleans and integers become int64 unless a dtype is given."""
    lazy = lazy_of(x)
    if dtype is not None:
        return converted(lazy, as_dtype(dtype))
    return lazy if lazy.type.dtype.is_inexact else cast(lazy, types.int64)


def truths(x: Any) -> Tensor:
    """Whether each element differs from 0."""
    return wrap(cast(lazy_of(x), types.bool_), kind_of(x))


def by_dim(function: Callable[[Any, Any, bool], Tensor]):
    """A reduction that also takes `axis` and `keepdims`, NumPy's names of its arguments."""
    name = function.__name__

    @named(name, function.__doc__, function.__module__)
    def reduction(
        x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None,
        keepdims: bool | None = None,
    ) -> Tensor:  # fmt: skip
        return function(x, either(name, dim, axis), kept(name, keepdim, keepdims))

    return reduction


# Sums


@of_any_sizes
def sum(
    x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sum over `dim` (an axis, several, or `None` for all); int64 for integers.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims = either("sum", dim, axis)
    if dtype is not None and as_dtype(dtype) is types.bool_:
        return any(truths(x), dims, kept("sum", keepdim, keepdims))
    return reduced(REGISTRY["sum"], counted(x, dtype), x, dims, kept("sum", keepdim, keepdims))


@of_any_sizes
def prod(
    x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The product over `dim`; int64 for integers.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims = either("prod", dim, axis)
    if dtype is not None and as_dtype(dtype) is types.bool_:
        return all(truths(x), dims, kept("prod", keepdim, keepdims))
    return reduced(REGISTRY["prod"], counted(x, dtype), x, dims, kept("prod", keepdim, keepdims))


@of_any_sizes
def mean(
    x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The mean over `dim`; in the default floating-point dtype for integers.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims = either("mean", dim, axis)
    return reduced(REGISTRY["mean"], floating(x, dtype), x, dims, kept("mean", keepdim, keepdims))


_nansum = recorded(ops.nansum, autocast=Autocast.FLOAT32)
_nanmean = recorded(ops.nanmean, autocast=Autocast.FLOAT32)


def nansum(
    x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None
) -> Tensor:
    """The sum, ignoring NaN.

    Raises:
        DTypeError: complex numbers.
    """
    lazy = counted(x, dtype)
    if lazy.type.dtype.is_complex:
        raise DTypeError.here(f"nansum: expected real numbers, got {lazy.type.dtype}")
    axes = axes_of("nansum", either("nansum", dim, axis), rank_of(lazy))
    return _nansum.on(kind_of(x), lazy, axes=axes, keepdims=keepdim)


def nanmean(
    x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None
) -> Tensor:
    """The mean, ignoring NaN; NaN if there are no other elements."""
    lazy = floating(x, dtype)
    axes = axes_of("nanmean", either("nanmean", dim, axis), rank_of(lazy))
    return _nanmean.on(kind_of(x), lazy, axes=axes, keepdims=keepdim)


# Spread


_variance_of_complex = recorded(spread.variance_of)
_std_of_complex = recorded(spread.std_of)


def _ddof(unbiased: Any, correction: Any, ddof: Any) -> float:
    """The correction of a variance: the divisor is the count minus this."""
    if correction is not None:
        return correction
    if ddof is not None:
        return ddof
    return 1 if unbiased is None or unbiased else 0


@of_any_sizes
def var(
    x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, ddof: Any = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The variance over `dim`, divided by the count minus `correction` (1).

    Args:
        unbiased: `False` means a correction of 0.
        ddof: the correction, under NumPy's name.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    return _spread(
        "variance", x, (dim, axis), (unbiased, correction, ddof), kept("var", keepdim, keepdims)
    )


@of_any_sizes
def std(
    x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, ddof: Any = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The square root of `var`, with the same arguments.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    return _spread(
        "std", x, (dim, axis), (unbiased, correction, ddof), kept("std", keepdim, keepdims)
    )


def _spread(name: str, x: Any, dims: tuple[Any, Any], free: tuple[Any, ...], keep: bool) -> Tensor:
    dim, axis = dims
    if isinstance(dim, bool):  # var(unbiased)
        dim, free = None, (dim, *free[1:])
    ddof = _ddof(*free)
    ddof = int(ddof) if ddof == int(ddof) else float(ddof)
    lazy = lazy_of(x)
    if lazy.type.dtype.is_complex:
        run = _std_of_complex if name == "std" else _variance_of_complex
        axes = axes_of(name, either(name, dim, axis), rank_of(lazy))
        return run.on(kind_of(x), lazy, axes=axes, keepdims=keep, ddof=ddof)
    return reduced(REGISTRY[name], floating(x), x, either(name, dim, axis), keep, ddof=ddof)


def var_mean(
    x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`var` and `mean`."""
    dim = either("var_mean", dim, axis)
    found = var(x, dim, unbiased, keepdim, correction=correction)
    return found, mean(x, None if isinstance(dim, bool) else dim, keepdim)


def std_mean(
    x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`std` and `mean`."""
    dim = either("std_mean", dim, axis)
    found = std(x, dim, unbiased, keepdim, correction=correction)
    return found, mean(x, None if isinstance(dim, bool) else dim, keepdim)


# Truth


def _truth(name: str, x: Any, dim: Any, keepdim: bool) -> Tensor:
    """A reduction of booleans; for uint8 as 0 or 1, as in PyTorch."""
    lazy = lazy_of(x)
    found = reduced(REGISTRY[name], cast(lazy, types.bool_), x, dim, keepdim)
    bytes_ = lazy.type.dtype is types.uint8 and isinstance(x, Handle) and x.rules is TORCH
    return found.to(types.uint8) if bytes_ else found


@by_dim
def any(x: Any, dim: Any, keepdim: bool) -> Tensor:
    """Whether any element is not 0."""
    return _truth("any", x, dim, keepdim)


@by_dim
def all(x: Any, dim: Any, keepdim: bool) -> Tensor:
    """Whether all elements are not 0."""
    return _truth("all", x, dim, keepdim)


def count_nonzero(
    x: Any, dim: Any = None, *, keepdim: bool = False, axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The number of nonzero elements."""
    truth = cast(cast(lazy_of(x), types.bool_), types.int64)
    dims = either("count_nonzero", dim, axis)
    return reduced(REGISTRY["sum"], truth, x, dims, kept("count_nonzero", keepdim, keepdims))


# Softmax


_logsumexp_of_complex = recorded(exponential_sum.logsumexp_of_complex)


@by_dim
def logsumexp(x: Any, dim: Any, keepdim: bool) -> Tensor:
    """`log(sum(exp(x)))` over `dim`, without overflow."""
    if lazy_of(x).type.dtype.is_complex:
        axes = axes_of("logsumexp", dim, rank_of(lazy_of(x)))
        return _logsumexp_of_complex.on(kind_of(x), x, axes=axes, keepdims=keepdim)
    return reduced(REGISTRY["logsumexp"], floating(x), x, dim, keepdim)


@of_any_sizes
def softmax(x: Any, dim: Any = -1, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """`exp(x)` divided by its sum along `dim`."""
    return _soft("softmax", x, either("softmax", dim, axis, -1), dtype)


@of_any_sizes
def log_softmax(x: Any, dim: Any = -1, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """The logarithm of `softmax`, accurate even where that is tiny."""
    return _soft("log_softmax", x, either("log_softmax", dim, axis, -1), dtype)


_UNIT: Final = {"softmax": 1, "log_softmax": 0}


def _soft(name: str, x: Any, dim: Any, dtype: Any) -> Tensor:
    lazy = floating(x, dtype)
    rank = rank_of(lazy)
    at = axis_of(name, -1 if dim is None else dim, rank)
    if not rank:
        same = wrap(record(REGISTRY["identity"], (lazy,), {})[0], kind_of(x))
        return same * 0 + _UNIT[name]
    return wrap(record(REGISTRY[name], (lazy,), {"axis": at})[0], kind_of(x))
