"""Shapes, sorting, running sums and reductions under the names of `jax.lax`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from weft.eager.functions import api
from weft.eager.tensor.dispatch import call, recorded
from weft.jax.array import Array, as_array, given, of_keys_too, strong
from weft.jax.config import without_effect
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.jax.tree_util import tree_map
from weft.ops.declaration import REGISTRY
from weft.ops.shape.padding import framed

jnp: Any = _numpy

__all__ = [
    "FftType", "Precision", "RoundingMethod", "argmax", "argmin", "batch_matmul", "broadcast",
    "broadcast_in_dim", "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate",
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "dot", "dot_general", "dtype",
    "empty", "expand_dims", "fft", "full", "full_like", "iota", "optimization_barrier", "pad",
    "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reshape", "rev", "sort", "sort_key_val", "split", "squeeze", "stack", "tile", "top_k",
    "transpose", "unstack", "with_sharding_constraint",
]  # fmt: skip


class Precision(Enum):
    """How exact products are; all are float32's own."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class FftType(Enum):
    """Kinds of Fourier transforms."""

    FFT = "fft"
    IFFT = "ifft"
    RFFT = "rfft"
    IRFFT = "irfft"


class RoundingMethod(Enum):
    """Where halves are rounded to."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


full, full_like, empty = jnp.full, jnp.full_like, jnp.empty
stack, tile, dtype = jnp.stack, jnp.tile, jnp.dtype


def _of(x: Any) -> Any:
    return strong(as_array(x))


def iota(dtype: Any, size: int) -> Array:
    """Numbers from 0 on."""
    return jnp.arange(size).astype(dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Array:
    """The index along an axis at every position."""
    row = iota(dtype, shape[dimension])
    dims = [n if i == dimension else 1 for i, n in enumerate(shape)]
    return jnp.broadcast_to(row.reshape(dims), tuple(shape))


def reshape(operand: Any, new_sizes: Any, dimensions: Any = None, **_: Any) -> Array:
    """Another shape; after a transposition by `dimensions`."""
    x = _of(operand)
    return (x if dimensions is None else x.transpose(dimensions)).reshape(tuple(new_sizes))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Several axes as one."""
    x = _of(operand)
    low, high, _ = slice(start_dimension, stop_dimension).indices(x.ndim)
    return x.reshape((*x.shape[:low], math.prod(x.shape[low:high]), *x.shape[high:]))


def transpose(operand: Any, permutation: Any) -> Array:
    """Axes in another order."""
    return jnp.transpose(_of(operand), tuple(permutation))


def expand_dims(array: Any, dimensions: Any) -> Array:
    """New axes of size 1."""
    return jnp.expand_dims(_of(array), axis=tuple(dimensions))


@of_keys_too
def squeeze(array: Any, dimensions: Any) -> Array:
    """The array without axes of size 1."""
    return jnp.squeeze(_of(array), tuple(dimensions))


@of_keys_too
def broadcast(operand: Any, sizes: Sequence[int], **_: Any) -> Array:
    """New leading axes."""
    x = _of(operand)
    return jnp.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> Array:
    """A shape in which the operand's axes have these places."""
    x = _of(operand)
    dims = [1] * len(shape)
    for axis, n in zip(broadcast_dimensions, x.shape, strict=True):
        dims[axis] = n
    return jnp.broadcast_to(x.reshape(dims), tuple(shape))


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Leading axes of size 1 up to a rank."""
    x = _of(x)
    return x.reshape((1,) * (rank - x.ndim) + tuple(x.shape))


def concatenate(operands: Any, dimension: int) -> Array:
    """Arrays joined along an axis."""
    return jnp.concatenate(list(operands), dimension)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Parts of these sizes along an axis."""
    return [given(x) for x in api.split(_of(operand), list(sizes), axis)]


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    return tuple(jnp.moveaxis(_of(x), axis, 0))


def rev(operand: Any, dimensions: Any) -> Array:
    """Axes backwards."""
    return jnp.flip(_of(operand), axis=tuple(dimensions))


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Array:
    """A frame of a value, negative sizes crop; and the value between elements."""
    config = tuple([tuple(map(int, row)) for row in padding_config])
    return given(_framed(*promoted(operand, padding_value), config=config))


_framed = recorded(framed)


# Products


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, **_: Any,
) -> Array:  # fmt: skip
    """Products summed over contracted axes, for each index of batch axes.

    Args:
        dimension_numbers: ((lhs_contracted, rhs_contracted), (lhs_batch, rhs_batch)).
    """
    without_effect("dot_general", precision=precision)
    (left, right), (left_batch, right_batch) = dimension_numbers
    x, y = promoted(lhs, rhs)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    first = [next(letters) for _ in range(x.ndim)]
    second = [next(letters) for _ in range(y.ndim)]
    for a, b in (*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)):
        second[b] = first[a]
    batch = [first[a] for a in left_batch]
    free = [c for i, c in enumerate(first) if i not in (*left, *left_batch)]
    free += [c for i, c in enumerate(second) if i not in (*right, *right_batch)]
    found = jnp.einsum(f"{''.join(first)},{''.join(second)}->{''.join(batch + free)}", x, y)
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def dot(lhs: Any, rhs: Any, precision: Any = None, **_: Any) -> Array:
    """The product of vectors or matrices."""
    return jnp.dot(lhs, rhs, precision=precision)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Products of matrices."""
    return jnp.matmul(lhs, rhs, precision=precision)


# Order


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The sorted array; of a tuple, all arrays in the order of the first `num_keys`."""
    without_effect("sort", is_stable=is_stable)
    if not isinstance(operand, tuple | list):
        return jnp.sort(_of(operand), axis=dimension)
    xs = [_of(x) for x in operand]
    for key in reversed(range(num_keys)):
        places = jnp.argsort(xs[key], axis=dimension)
        xs = [jnp.take_along_axis(x, places, dimension) for x in xs]
    return tuple(xs)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """Keys sorted, and values in the same order."""
    return sort((keys, values), dimension, is_stable)


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The `k` largest elements along an axis, and their indices."""
    found = api.topk(_of(operand), k, axis)
    return given(found[0]), given(found[1])


def argmax(operand: Any, axis: int, index_dtype: Any = "int32") -> Array:
    """The index of the largest element."""
    return jnp.argmax(_of(operand), axis).astype(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = "int32") -> Array:
    """The index of the smallest element."""
    return jnp.argmin(_of(operand), axis).astype(index_dtype)


# Running values


def _running(name: str) -> Callable[..., Array]:
    op = REGISTRY[name]

    def run(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
        x = _of(operand)
        return given(call(op, x, axis=axis % x.ndim, reverse=reverse)).astype(x.dtype)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"`{name}` along an axis, backwards if `reverse`."
    return run


cumsum: Final = _running("cumsum")
cumprod: Final = _running("cumprod")
cummax: Final = _running("cummax")


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element so far."""
    return -cummax(-_of(operand), axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The running `logsumexp`."""
    x = _of(operand)
    turned = jnp.flip(x, axis) if reverse else x
    found = given(api.logcumsumexp(turned, axis))
    return jnp.flip(found, axis) if reverse else found


# Reductions


def _reducer(name: str) -> Callable[..., Array]:
    function = getattr(jnp, name)

    def run(operand: Any, axes: Any, **_: Any) -> Array:
        x = _of(operand)
        return function(x, tuple(axes)).astype(x.dtype)

    run.__doc__ = f"`{name}` over axes."
    return run


reduce_sum, reduce_prod, reduce_max = map(_reducer, ("sum", "prod", "max"))
reduce_min, _any, _all = map(_reducer, ("min", "any", "all"))


def reduce_or(operand: Any, axes: Any, **_: Any) -> Array:
    """`or` over axes: of booleans, or of the bits of integers."""
    x = _of(operand)
    return _any(x, axes) if x.dtype == bool else reduce(x, 0, jnp.bitwise_or, axes)


def reduce_and(operand: Any, axes: Any, **_: Any) -> Array:
    """`and` over axes: of booleans, or of the bits of integers."""
    x = _of(operand)
    every = jnp.invert(jnp.zeros((), x.dtype))
    return _all(x, axes) if x.dtype == bool else reduce(x, every, jnp.bitwise_and, axes)


def reduce(operands: Any, init_values: Any, computation: Any, dimensions: Any) -> Any:
    """Elements over axes combined by a function of two, beginning with a value.

    Sums, products and extrema are recognized; others take a tree of calls.
    """

    def one(x: Any, start: Any) -> Any:
        x = _of(x)
        axes = tuple([d % x.ndim for d in dimensions])
        rest = [i for i in range(x.ndim) if i not in axes]
        x = x.transpose((*axes, *rest))
        x = x.reshape((-1, *x.shape[len(axes) :]))
        while x.shape[0] > 1:
            half = x.shape[0] // 2
            joined = computation(x[:half], x[half : 2 * half])
            x = jnp.concatenate([joined, x[2 * half :]], 0)
        start = jnp.asarray(start, x.dtype)
        return computation(x[0], start) if x.shape[0] else jnp.broadcast_to(start, x.shape[1:])

    return tree_map(one, operands, init_values)


def optimization_barrier(operand: Any) -> Any:
    """The operand."""
    return operand


def fft(x: Any, fft_type: Any, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes, by the name of its type."""
    name = str(getattr(fft_type, "name", fft_type)).rpartition(".")[2].lower()
    names = {"fft": "fftn", "ifft": "ifftn", "rfft": "rfftn", "irfft": "irfftn"}
    axes = tuple(range(-len(fft_lengths), 0))
    return getattr(jnp.fft, names[name])(x, tuple(fft_lengths), axes)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays: there is one device."""
    without_effect("with_sharding_constraint", shardings=shardings)
    return x
