"""Permutes axes: permute, transpose, movedim, diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.eager.tensor.argument import axis_of, dims_of, integer, sizes
from weft.eager.tensor.view.view_transform import (
    Diagonal,
    Permuted,
    show,
)  # fmt: skip
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "diagonal", "moveaxis", "movedim", "permute", "permute_dims", "swapaxes", "swapdims", "t",
    "transpose",
]  # fmt: skip


# Permutation


def permute(x: Any, *axes: Any, dims: Any = None) -> Tensor:
    """Permute the axes to an order, which may be given as `dims`.

    Raises:
        ShapeError: it is no permutation of all axes.
    """
    order = sizes("permute", axes if dims is None else (dims,))
    rank = len(dims_of(x))
    perm = tuple([d + rank if d < 0 else d for d in order])
    if sorted(perm) != list(range(rank)):
        raise ShapeError.here(f"permute: expected an order of all {rank} dims, got {order}")
    return show(x, Permuted(perm))


def permute_dims(x: Any, axes: Any) -> Tensor:
    """`permute`, under the Array API's name."""
    return permute(x, axes)


def transpose(x: Any, *dims: Any, dim0: Any = None, dim1: Any = None, axes: Any = None) -> Tensor:
    """Swap two axes; or as in NumPy, reverse or permute all axes.

    `transpose(x, 0, 1)` swaps; `transpose(x)` reverses; `transpose(x, (2, 0, 1))` permutes.

    Raises:
        OutOfRangeError, ShapeError: axes outside the rank, or no permutation of all axes.
    """
    rank = len(dims_of(x))
    if dim0 is not None:
        dims = (dim0, dim1 if dim1 is not None else dims[0])
    elif dim1 is not None:
        dims = (*dims, dim1)
    if axes is not None:
        dims = (axes,)
    if not dims or dims == (None,):
        return show(x, Permuted(tuple(range(rank))[::-1]))
    if len(dims) != 2 or not all(isinstance(d, int) for d in dims):
        return permute(x, *dims)
    a, b = (axis_of("transpose", d, rank) for d in dims)
    order = list(range(rank))
    if rank:
        order[a], order[b] = b, a
    return show(x, Permuted(tuple(order)))


def swapaxes(x: Any, axis0: Any, axis1: Any) -> Tensor:
    """Two axes in each other's place."""
    return transpose(x, integer("swapaxes", axis0), integer("swapaxes", axis1))


def swapdims(x: Any, dim0: Any, dim1: Any) -> Tensor:
    """Two axes in each other's place."""
    return transpose(x, integer("swapdims", dim0), integer("swapdims", dim1))


def t(x: Any) -> Tensor:
    """Transpose a matrix; a lower rank is returned as is.

    Raises:
        ShapeError: a rank above 2.
    """
    rank = len(dims_of(x))
    if rank > 2:
        raise ShapeError.here(f"t: expected rank 2 or less, got {rank}; use x.mT or transpose()")
    return show(x, Permuted(tuple(range(rank))[::-1]))


def matrix_transpose(x: Any) -> Tensor:
    """Transpose matrices: swap the last two axes.

    Raises:
        ShapeError: a rank below 2.
    """
    rank = len(dims_of(x))
    if rank < 2:
        raise ShapeError.here(f"mT: expected rank 2 or more, got {rank}")
    return show(x, Permuted((*range(rank - 2), rank - 1, rank - 2)))


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move the axes `source` to the positions `destination`; the others keep their order.

    Raises:
        ShapeError: repeated axes, or different numbers of sources and destinations.
    """
    rank = len(dims_of(x))
    old, new = (
        [axis_of("moveaxis", d, rank) for d in ((given,) if isinstance(given, int) else given)]
        for given in (source, destination)
    )
    if len(old) != len(new) or len(set(old)) != len(old) or len(set(new)) != len(new):
        raise ShapeError.here(
            f"moveaxis: expected as many different sources as destinations, got {source} and "
            f"{destination}"
        )
    places = dict(zip(new, old, strict=True))
    rest = iter([i for i in range(rank) if i not in old])
    return show(x, Permuted(tuple([places[i] if i in places else next(rest) for i in range(rank)])))


def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """`moveaxis`, under PyTorch's name."""
    return moveaxis(x, source, destination)


def diagonal(
    x: Any, offset: int = 0, dim1: Any = 0, dim2: Any = 1, *, axis1: Any = None, axis2: Any = None
) -> Tensor:
    """The diagonal elements `i, i + offset` of two axes, as the last axis.

    Raises:
        OutOfRangeError, ShapeError: axes outside the rank, or one axis twice.
    """
    rank = len(dims_of(x))
    a = axis_of("diagonal", dim1 if axis1 is None else axis1, rank)
    b = axis_of("diagonal", dim2 if axis2 is None else axis2, rank)
    return show(x, Diagonal(offset, a, b))
