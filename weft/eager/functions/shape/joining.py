"""Joins tensors: along an axis, along a new one, or as blocks of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from weft.eager.functions.creation.constructor import zeros
from weft.eager.functions.recall.memory import of_any_sizes
from weft.eager.functions.shape.reshape import reshape
from weft.eager.tensor.argument import axis_of, dims_of, either, listed
from weft.eager.tensor.dispatch import kind_of, record, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cat", "column_stack", "concat",
    "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack",
]  # fmt: skip


@of_any_sizes
def cat(tensors: Sequence[Any], dim: Any = 0, *, axis: Any = None) -> Tensor:
    """Concatenate tensors along an axis; empty ones of rank 1 are ignored.

    Raises:
        DTypeError: a tensor instead of a sequence.
        ShapeError: no tensors, or shapes that differ along another axis.
    """
    given = listed("cat", tensors)
    lazies = promoted(*given)
    full = [x for x in lazies if x.type.shape != (0,)]
    along = either("cat", dim, axis, 0)
    at = axis_of("cat", along, len(dims_of(full[0]))) if full else 0
    full = full or lazies[:1]
    return wrap(record(REGISTRY["concatenate"], full, {"axis": at})[0], kind_of(*given))


concat = concatenate = cat


def stack(tensors: Sequence[Any], dim: Any = 0, *, axis: Any = None) -> Tensor:
    """Stack tensors of one shape along a new axis.

    Raises:
        ShapeError: no tensors, or shapes that differ.
    """
    given = listed("stack", tensors)
    lazies = promoted(*given)
    at = axis_of("stack", either("stack", dim, axis, 0), len(dims_of(lazies[0])) + 1)
    return wrap(record(REGISTRY["stack"], lazies, {"axis": at})[0], kind_of(*given))


def atleast_1d(*tensors: Any) -> Any:
    """Scalars as tensors of one element."""
    return _each(tensors, lambda x: reshape(x, dims_of(x) or (1,)))


def atleast_2d(*tensors: Any) -> Any:
    """The tensor with at least two axes; new axes of size 1 come first."""
    return _each(tensors, lambda x: reshape(x, (1,) * (2 - len(dims_of(x))) + dims_of(x)))


def atleast_3d(*tensors: Any) -> Any:
    """The tensor with at least three axes: a vector becomes `(1, n, 1)`, a matrix `(m, n, 1)`."""
    return _each(tensors, _solid)


def _solid(x: Any) -> Tensor:
    dims = dims_of(x)
    lead = (1,) if len(dims) < 2 else ()
    inner = dims or (1,)
    return reshape(x, (*lead, *inner, *(1,) * (3 - len(lead) - len(inner))))


def _each(tensors: tuple[Any, ...], change: Callable[[Any], Tensor]) -> Any:
    """A function applied to one tensor, or to several, which may come as one sequence."""
    one = tensors[0] if len(tensors) == 1 else tensors
    if isinstance(one, list | tuple) and any(isinstance(x, Handle) for x in cast("Any", one)):
        return tuple([change(x) for x in cast("Sequence[Any]", one)])
    return change(one) if len(tensors) == 1 else tuple([change(x) for x in tensors])


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Concatenate along the second axis; vectors along their only axis."""
    wide = [atleast_1d(x) for x in listed("hstack", tensors)]
    return cat(wide, 0 if len(dims_of(wide[0])) == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Stack vertically, along the first axis."""
    return cat([atleast_2d(x) for x in listed("vstack", tensors)], 0)


row_stack = vstack


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Stack along the third axis."""
    return cat([atleast_3d(x) for x in listed("dstack", tensors)], 2)


def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Stack vectors as columns of a matrix."""
    given = listed("column_stack", tensors)
    return cat([reshape(x, -1, 1) if len(dims_of(x)) < 2 else x for x in given], 1)


@recorded
def _block_diag(*xs: Value) -> Value:
    blocks = [catalogue.reshape(x, shape=(1, 1, *concrete(x))[-2:]) for x in xs]
    width = sum([concrete(x)[1] for x in blocks])
    rows: list[Value] = []
    left = 0
    for x in blocks:
        right = width - left - concrete(x)[1]
        rows.append(catalogue.pad(x, paddings=((0, 0), (left, right))))
        left += concrete(x)[1]
    return catalogue.concatenate(*rows, axis=0)


def block_diag(*tensors: Any) -> Tensor:
    """A block-diagonal matrix.

    Raises:
        ShapeError: a tensor of a rank above 2.
    """
    if not tensors:
        return zeros(1, 0)
    for x in tensors:
        if len(dims_of(x)) > 2:
            raise ShapeError.here(f"block_diag: expected matrices, got shape {show(dims_of(x))}")
    return _block_diag.on(kind_of(*tensors), *promoted(*tensors))
