"""Basic indexing, by integers and slices, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array, Lazy, known
from weft.eager.record.pending.state import trace
from weft.eager.tensor.view.view import Lens
from weft.eager.tensor.view.view_transform import Cut, Row
from weft.errors import OutOfRangeError
from weft.ir.node import at_user_line
from weft.ir.shape import show as text
from weft.ops.indexing.subscript import FIRST
from weft.runtime.flight import land_for

_ALL: Final = slice(None)


def copied_part(base: Lazy, entries: tuple[Any, ...]) -> Lazy:
    """The part of an array that is computed already: nothing needs to be recorded."""
    array = base.array  # read once: another thread may overwrite its memory
    if array is None:
        array = array_of(base)
    land_for(id(array))
    try:
        part = array[entries]
    except IndexError as error:
        raise out_of_range(error, array.shape) from None
    kind = base.type
    return known(np.array(part, order="C"), intern(kind.dtype, part.shape, device_of(kind)))


def out_of_range(error: Exception, dims: tuple[int, ...]) -> OutOfRangeError:
    """NumPy's indexing error as one of ours."""
    return OutOfRangeError(f"x[...]: {error}, x has shape {text(dims)}{at_user_line()}")


class Part:
    """A basic index as a lens; it is parsed in full only when it is recorded."""

    __slots__ = ("entries",)
    detached: ClassVar[bool] = False

    def __init__(self, entries: tuple[Any, ...]) -> None:
        self.entries = entries

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base[self.entries if ... in self.entries else (*self.entries, ...)]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        if base.array is not None and not (
            (base.tracked and trace.now.grad_mode) or trace.now.depth
        ):
            return copied_part(base, self.entries)
        return lens_of(base, self.entries).take(base)

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return lens_of(base, self.entries).put(base, part)


def lens_of(x: Lazy, entries: tuple[Any, ...]) -> Lens:
    """A basic index in normal form.

    The index of `x[i]` is an input of the program if `x` is computed already, as in a loop over the
    rows of a parameter. Otherwise it is a constant, so that the compiler can fuse the slice.
    """
    dims: Any = x.type.shape  # always known
    if x.array is not None and len(entries) == 1 and type(entries[0]) is int:
        return Row(_index(entries[0], dims, 0))
    return cut_of(entries, dims)


def cut_of(entries: tuple[Any, ...], dims: tuple[int, ...]) -> Cut:
    """A basic index with constants, of a tensor of this shape."""
    begin: list[int] = []
    end: list[int] = []
    strides: list[int] = []
    sizes: list[int] = []
    shape: list[int] = []
    for entry in _filled(entries, dims):
        if entry is None:
            shape.append(1)
            continue
        axis = len(begin)
        if isinstance(entry, int):
            at = _index(entry, dims, axis)
            where = range(at, at + 1)
        else:
            where = range(dims[axis])
            if entry != _ALL:
                where = where[entry] or range(0)  # an empty slice may start before 0
            shape.append(len(where))
        begin.append(where.start)
        end.append(where.stop if where.stop >= 0 else FIRST)
        strides.append(where.step)
        sizes.append(len(where))
    rest = dims[len(begin) :]
    return Cut(
        (*begin, *[0] * len(rest)), (*end, *rest), (*strides, *[1] * len(rest)), (*sizes, *rest),
        (*shape, *rest),
    )  # fmt: skip


def _filled(entries: tuple[Any, ...], dims: tuple[int, ...]) -> Sequence[Any]:
    """The subscripts with `...` expanded to full slices, without those at the end."""
    if None not in entries and ... not in entries and len(entries) <= len(dims):
        return entries
    named = sum([e is not None and e is not ... for e in entries])
    dots = [i for i, e in enumerate(entries) if e is ...]
    if named > len(dims) or len(dots) > 1:
        raise OutOfRangeError.here(
            f"x[...]: expected at most {len(dims)} subscripts and one '...', got {named} and "
            f"{len(dots)}"
        )
    if not dots:
        return entries
    return [*entries[: dots[0]], *[_ALL] * (len(dims) - named), *entries[dots[0] + 1 :]]


def _index(index: int, dims: tuple[int, ...], axis: int) -> int:
    size = dims[axis] if axis < len(dims) else 0
    if not dims or not -size <= index < size:
        raise OutOfRangeError.here(
            f"x[...]: expected {-size} <= index < {size} on axis {axis}, got {index}, x has shape "
            f"{text(dims)}"
        )
    return index + size if index < 0 else index
