"""Shapes: a tuple of dimensions, `None` where a dimension is unknown; `None` for unknown rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from weft.errors import ShapeError, UnknownShapeError, nameless
from weft.ir.extent import Extent

Dim = int | None
Dims = tuple[Dim, ...]
Shape = Dims | None


def show(shape: Shape) -> str:
    """`(2, ?)`, or `<unknown>` where the rank is unknown."""
    if shape is None:
        return "<unknown>"
    inner = ", ".join("?" if d is None else str(d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def is_static(shape: Shape) -> bool:
    """Whether every dimension is known."""
    return shape is not None and None not in shape


def is_stack(shape: Shape) -> bool:
    """Whether only the first dimension is unknown, so that a run decides the number of rows."""
    return bool(shape) and shape[0] is None and is_static(shape[1:])


def size(shape: Shape) -> int:
    """Number of elements of a fully known shape.

    Raises:
        ShapeError: the shape is not fully known.
    """
    total = 1
    for d in known(shape):
        total *= d
    return total


def known(shape: Shape) -> tuple[int, ...]:
    """`shape` as plain integers.

    Raises:
        UnknownShapeError: a dimension or the rank is unknown.
    """
    if shape is None:
        raise UnknownShapeError("shape: expected a known rank, got <unknown>")
    dims: list[int] = []
    for d in shape:
        if d is None:
            raise UnknownShapeError(f"shape: expected known dimensions, got {show(shape)}")
        dims.append(d)
    return tuple(dims)


def compatible(a: Shape, b: Shape) -> bool:
    """Whether some concrete shape matches both."""
    if a is None or b is None:
        return True
    if a == b:
        return True
    return len(a) == len(b) and all(
        p is None or q is None or p == q for p, q in zip(a, b, strict=True)
    )


def merge(a: Shape, b: Shape) -> Shape:
    """The most specific shape that two descriptions of one shape give.

    Raises:
        ShapeError: the two contradict each other.
    """
    if not compatible(a, b):
        raise ShapeError(f"shape: expected {show(a)}, got {show(b)}")
    if a is None or b is None:
        return b if a is None else a
    return tuple(q if p is None else p for p, q in zip(a, b, strict=True))


def broadcast(*shapes: Shape) -> Shape:
    """NumPy's broadcast of the shapes; an unknown dimension against 1 or unknown stays unknown.

    Raises:
        ShapeError: two known dimensions differ and neither is 1.
    """
    if None in shapes:
        return None
    found: Dims = ()
    for shape in cast("tuple[Dims, ...]", shapes):
        if not _alike(shape, found):
            found = _broadcast_pair(found, shape, shapes) if found else shape
    return found


def _alike(a: Dims, b: Dims) -> bool:
    """Whether two shapes are equal; no extent is compared with a number, as that adds a guard."""
    return len(a) == len(b) and all(
        p is q or (isinstance(p, Extent) is isinstance(q, Extent) and p == q)
        for p, q in zip(a, b, strict=True)
    )


def _broadcast_pair(a: Dims, b: Dims, shapes: Sequence[Shape]) -> Dims:
    if len(a) < len(b):
        a, b = b, a
    out = list(a)
    for axis, new in enumerate(b, len(a) - len(b)):
        old = out[axis]
        plain = not isinstance(new, Extent) and new == 1  # compared first: it adds no guard
        if plain or old == new or new == 1:
            continue
        if old == 1 or old is None:
            out[axis] = new
        elif new is not None:
            text = " and ".join(map(show, shapes))
            raise nameless(ShapeError(f"shapes do not broadcast: {text}"))
    return tuple(out)


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front.

    Raises:
        ShapeError: the axis lies outside the rank.
    """
    if not -rank <= axis < rank:
        text = f"axis: expected {-rank} <= axis < {rank}, got {axis}"
        raise nameless(ShapeError(text))
    return axis + rank if axis < 0 else axis


def normal_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Sorted unique axes counted from the front; `None` means all.

    Raises:
        ShapeError: an axis lies outside the rank or is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    found = sorted(normal_axis(a, rank) for a in axes)
    if len(set(found)) != len(found):
        raise ShapeError(f"axes: expected distinct axes, got {tuple(axes)}")
    return tuple(found)
