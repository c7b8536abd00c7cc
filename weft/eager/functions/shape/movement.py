"""Moves elements: splits, repeats, flips, rolls; and parts of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.functions.shape.reshape import broadcast_to
from weft.eager.tensor.argument import axes_of, axis_of, dims_of, either, sizes
from weft.eager.tensor.dispatch import kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show as text
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "broadcast_shapes", "broadcast_tensors", "flip", "fliplr", "flipud", "repeat_interleave",
    "roll", "rot90", "tile",
]  # fmt: skip

# Broadcasting


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which tensors of these shapes broadcast.

    Raises:
        ShapeError: they do not broadcast.
    """
    given = [sizes("broadcast_shapes", (s,)) for s in shapes]
    try:
        return tuple(np.broadcast_shapes(*given))
    except ValueError:
        listed = ", ".join(map(text, given))
        raise ShapeError.here(f"broadcast_shapes: shapes do not broadcast: {listed}") from None


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[dims_of(x) for x in tensors])
    return tuple([broadcast_to(x, shape) for x in tensors])


# Repetition


def tile(x: Any, *reps: Any, dims: Any = None) -> Tensor:
    """The tensor repeated along each axis as often as `reps` or `dims` say."""
    lazy, times = lazy_of(x), sizes("tile", reps if dims is None else (dims,))
    return wrap(record(REGISTRY["tile"], (lazy,), {"reps": times})[0], kind_of(x))


def repeat(x: Any, *times: Any, repeats: Any = None) -> Tensor:
    """`tile` with a number for each axis, or more.

    Raises:
        ShapeError: fewer numbers than axes.
    """
    wanted = sizes("repeat", times if repeats is None else (repeats,))
    if len(wanted) < len(dims_of(x)):
        raise ShapeError.here(
            f"repeat: expected a number for each of {len(dims_of(x))} dims, got {wanted}"
        )
    return tile(x, wanted)


_repeated = recorded(ops.repeat)


def repeat_interleave(
    x: Any, repeats: Any = None, dim: Any = None, *, output_size: int | None = None,
    axis: Any = None,
) -> Tensor:  # fmt: skip
    """Each element along an axis repeated; without an axis, of the flattened tensor.

    Called with `repeats` alone, it repeats their indices.

    Args:
        repeats: a number, or one for each element; its values are read, as they decide the shape.
        output_size: the size of the result, which follows from `repeats`; another one is an error.

    Raises:
        DTypeError: `repeats` is no vector of integers.
        ShapeError: the numbers of repeats and elements differ.
    """
    at = either("repeat_interleave", dim, axis)
    if repeats is None:
        x, repeats = np.arange(dims_of(x)[0]), x
    if isinstance(repeats, Handle):
        kind = repeats.lazy.type
        if len(dims_of(repeats)) > 1 or not kind.dtype.is_integer:
            what = "repeat_interleave: expected a vector of integers as repeats"
            got = f"got shape {text(kind.shape)} of {kind.dtype}"
            raise DTypeError.here(f"{what}, {got}")
        repeats = repeats.array.tolist()
    times = repeats if isinstance(repeats, int) else tuple(repeats)
    if at is not None:
        at = axis_of("repeat_interleave", at, len(dims_of(x)))
    found = _repeated.on(kind_of(x), lazy_of(x), repeats=times, axis=at)
    size = dims_of(found)[0 if at is None else at]
    if output_size is not None and output_size != size:
        what = f"expected output_size={size}, got {output_size}"
        raise ShapeError.here(f"repeat_interleave: {what}")
    return found


# Flips and rolls


def flip(x: Any, *given: Any, dims: Any = None, axis: Any = None) -> Tensor:
    """Reverse the axes `dims`; for NumPy arrays, by default all.

    Raises:
        DTypeError: no axes.
        OutOfRangeError: an axis outside the rank.
    """
    if not given:
        given = (axis if dims is None else dims,)
    lazy = lazy_of(x)
    if given == (None,) and isinstance(x, Handle) and x.rules is TORCH:
        raise DTypeError.here("flip: expected dims, got none")
    named = None if given == (None,) else sizes("flip", given)
    axes = () if named == () else axes_of("flip", named, len(dims_of(lazy)))
    return wrap(record(REGISTRY["flip"], (lazy,), {"axes": axes})[0], kind_of(x))


def fliplr(x: Any) -> Tensor:
    """The columns in reverse order."""
    return flip(x, (1,))


def flipud(x: Any) -> Tensor:
    """The rows in reverse order."""
    if not dims_of(x):
        raise ShapeError.here("flipud: expected rank 1 or more, got a scalar")
    return flip(x, (0,))


@recorded
def _rolled(x: Value, *, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Value:
    if axes is None:
        flat = catalogue.reshape(x, shape=(-1,))
        return catalogue.reshape(catalogue.roll(flat, shifts=shifts, axes=(0,)), shape=concrete(x))
    return catalogue.roll(x, shifts=shifts, axes=axes)


def roll(x: Any, shifts: Any, dims: Any = None, *, axis: Any = None) -> Tensor:
    """Shift elements along axes, with wrap-around.

    Without axes, the flattened tensor is shifted.

    Raises:
        ShapeError: the numbers of shifts and axes differ.
        OutOfRangeError: an axis outside the rank.
    """
    given = either("roll", dims, axis)
    along = None if given is None else sizes("roll", (given,))
    by = sizes("roll", (shifts,))
    if (dims is not None and len(by) != len(along or ())) or not by:
        raise ShapeError.here(f"roll: expected a shift for each of the axes {along}, got {by}")
    if along and not dims_of(x):
        raise OutOfRangeError.here(f"roll: expected axes of the tensor, got {along} of a scalar")
    if along is not None:
        along = tuple([axis_of("roll", a, len(dims_of(x))) for a in along])
        by = by * len(along) if len(by) == 1 else by
    return _rolled.on(kind_of(x), lazy_of(x), shifts=by, axes=along)


_turned = recorded(ops.rot90)


def rot90(x: Any, k: int = 1, dims: Any = (0, 1), *, axes: Any = None) -> Tensor:
    """Rotate by `k` quarter turns, from the first axis to the second.

    Raises:
        OutOfRangeError: an axis outside the rank.
        ShapeError: not two different axes.
    """
    plane = sizes("rot90", (axes or dims,))
    if len(axes_of("rot90", plane, len(dims_of(x)))) != 2 or len(plane) != 2:
        raise ShapeError.here(f"rot90: expected two dims, got {plane}")
    return _turned.on(kind_of(x), lazy_of(x), k=k, axes=plane)
