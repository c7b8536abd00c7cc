"""Checks that bodies and branches agree with their inputs and with each other."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType
from weft.ir.shape import Shape, compatible, merge, show


def lines(left: Sequence[str], right: Sequence[str]) -> str:
    """Two structures side by side, one part per line; differences are marked.

    >>> print(lines(["float32[3]", "int32[]"], ["float32[3]"]))
    <BLANKLINE>
      0: float32[3] | float32[3]
      1: int32[]    | (nothing)  <- differs
    """
    count = max(len(left), len(right))
    rows = [[*side, *["(nothing)"] * (count - len(side))] for side in (left, right)]
    width = max(map(len, rows[0]), default=0)
    found: list[str] = []
    for i, (a, b) in enumerate(zip(*rows, strict=True)):
        mark = "" if a == b else "  <- differs"
        found.append(f"\n  {i}: {a:<{width}} | {b}{mark}")
    return "".join(found)


def same_dtypes(what: str, left: Sequence[DType], right: Sequence[DType]) -> None:
    """Refuse dtypes that differ.

    Raises:
        DTypeError: states `what` was expected, and both sides.
    """
    if tuple(left) != tuple(right):
        shown = lines([str(d) for d in left], [str(d) for d in right])
        raise DTypeError(f"expected {what}:{shown}")


def merged_shapes(what: str, left: Sequence[Shape], right: Sequence[Shape]) -> tuple[Shape, ...]:
    """Merge two descriptions of the same partially known shapes.

    Raises:
        ShapeError: they contradict each other; states `what` was expected, and both sides.
    """
    fits = len(left) == len(right) and all(map(compatible, left, right))
    if not fits:
        raise ShapeError(f"expected {what}:{lines(_shown(left), _shown(right))}")
    return tuple(map(merge, left, right))


def _shown(shapes: Sequence[Shape]) -> list[str]:
    return list(map(show, shapes))
