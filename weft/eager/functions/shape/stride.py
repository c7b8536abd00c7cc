"""Strided views, sliding windows, and in-place resizing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft import ops
from weft.eager.functions.shape.reshape import detach, reshape
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.argument import axis_of, dims_of, sizes
from weft.eager.tensor.dispatch import lazy_of, leaf, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import become, check_writable
from weft.eager.tensor.view.memory_format import check_format
from weft.eager.tensor.view.view import Array, InvalidLens, RepeatedError, View
from weft.eager.tensor.view.view_transform import apply, placed, put_at, show
from weft.errors import GradientError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.declaration.memory_check import check_table
from weft.ops.declaration.rule import concrete
from weft.ops.signal.piece import pieces_of

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["as_strided"]


def _chosen(x: Value, places: Value) -> Value:
    return ops.take_nd(catalogue.reshape(x, shape=(-1,)), [places])


@dataclass(frozen=True, slots=True)
class Strided:
    """The elements at `offset + sum(index * stride)` of a tensor that is no view."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        flat = base.reshape(-1)[self.offset :]
        steps = tuple([n * base.dtype.itemsize for n in self.stride])
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_chosen, (base, leaf(self.places(), base)))

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`.

        Raises:
            RepeatedError: several elements of the view are one of the base.
        """
        return put_once("as_strided", base, self.places(), part)

    def places(self) -> Array:
        """The row-major positions of the elements in the base."""
        check_table("as_strided", self.shape, int64)
        found = np.full(self.shape, self.offset, np.int64)
        for axis, (n, step) in enumerate(zip(self.shape, self.stride, strict=True)):
            found += (np.arange(n) * step).reshape(n, *[1] * (len(self.shape) - axis - 1))
        return found


@dataclass(frozen=True, slots=True)
class Windows:
    """Sliding windows of `size` elements, `step` apart, along an axis, as a new last axis."""

    axis: int
    size: int
    step: int
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        if not base.ndim:
            return base.reshape(1)[: self.size]
        steps = [n * (self.step if a == self.axis else 1) for a, n in enumerate(base.strides)]
        sizes = list(base.shape)
        sizes[self.axis] = (sizes[self.axis] - self.size) // self.step + 1
        return np.lib.stride_tricks.as_strided(
            base, [*sizes, self.size], [*steps, base.strides[self.axis]]
        )

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(pieces_of, (base,), axis=self.axis, size=self.size, step=self.step)

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`.

        Raises:
            RepeatedError: windows overlap.
        """
        shape = known(base.type.shape)
        places = np.arange(math.prod(shape)).reshape(shape)
        return put_once("unfold", base, np.ascontiguousarray(self.lay(places)), part)


def put_once(name: str, base: Lazy, places: Array, part: Lazy) -> Lazy:
    """`base` with the elements of `part` at `places`, which are row-major positions.

    Raises:
        RepeatedError: a position occurs twice.
    """
    if np.unique(places).size != places.size:
        raise RepeatedError(name, put_at)
    return put_at(base, places, part)


def strided(name: str, x: Any, size: Any, stride: Any, offset: int) -> Strided:
    """The row-major positions that sizes and strides select, checked.

    Raises:
        ShapeError: different numbers of sizes and strides, or a negative number.
        OutOfRangeError: a position outside the tensor.
    """
    shape, steps = sizes(name, (size,)), sizes(name, (stride,))
    if len(shape) != len(steps):
        raise ShapeError.here(f"{name}: expected a stride for each size, got {shape} and {steps}")
    if min((*shape, *steps), default=0) < 0:
        text = f"{name}: expected sizes and strides that are not negative, got {shape} and {steps}"
        raise ShapeError.here(f"{text}; flip() turns axes round")
    count, reach = math.prod(dims_of(x)), [(n - 1) * s for n, s in zip(shape, steps, strict=True)]
    last = offset + sum(reach)
    if math.prod(shape) and not (offset >= 0 and last < count):
        raise OutOfRangeError.here(
            f"{name}: expected positions from 0 to {count - 1}, got {offset} to {last}"
        )
    return Strided(shape, steps, offset)


def _offset(x: Handle, base: Handle | None = None) -> int:
    """The storage offset of a view in `base` or its root."""
    start = 0 if base is None else placed(base)[2]
    return (placed(x)[2] - start) // x.lazy.type.dtype.size


def as_strided(x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """A view of the elements at `storage_offset + sum(index * stride)`.

    Positions count in the storage of the base of `x`, in row-major order; the offset defaults to
    that of `x`.

    Raises:
        OutOfRangeError: an element outside the tensor.

    Example:
        >>> import weft as wf
        >>> x = wf.zeros(3)
        >>> _ = wf.as_strided(x, (2,), (2,)).add_(1.0)
        >>> x.tolist()
        [1.0, 0.0, 1.0]
    """
    tensor: Any = x if isinstance(x, Handle) else wrap(lazy_of(x))
    base, is_detached = tensor, False
    whole: Lazy | None = None  # the base with a view written to it that has a gradient of its own
    while base.view_of is not None and base.view_of.base.dtype is tensor.dtype:
        view = base.view_of
        if whole is None and base.lazy.tracked and base.lazy.leaf is not None:
            whole = base.lazy
        if whole is not None and not view.lens.detached:
            whole = view.lens.put(view.base.lazy, whole)
        is_detached |= view.lens.detached
        base = view.base
    offset = _offset(tensor, base) if storage_offset is None else int(storage_offset)
    lens = strided("as_strided", base, size, stride, offset)
    if whole is None:
        return show(detach(base) if is_detached else base, lens)
    found = wrap(lens.take(whole), tensor)
    found.look(View(base, lens))
    return found


def unfold(x: Any, dimension: int, size: int, step: int) -> Tensor:
    """A view: sliding windows of `size` elements, `step` apart, along an axis, as a new last axis.

    Raises:
        ShapeError: a window longer than the axis, or a step below 1.

    Example:
        >>> import weft as wf
        >>> wf.arange(5).unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
    """
    at = axis_of("unfold", dimension, len(dims_of(x)))
    count = dims_of(x)[at] if dims_of(x) else 1
    if not 0 <= size <= count or step < 1:
        raise ShapeError.here(
            f"unfold: expected 0 <= size <= {count} and step >= 1, got {size} and {step}"
        )
    return show(x, Windows(at, size, step))


@recorded
def _resized(x: Value, *, shape: tuple[int, ...]) -> Value:
    flat = catalogue.reshape(x, shape=(-1,))
    count, wanted = concrete(flat)[0], math.prod(shape)
    if wanted > count:
        flat = catalogue.pad(flat, paddings=((0, wanted - count),))
    elif wanted < count:
        flat = catalogue.slice(flat, begin=(0,), end=(wanted,))
    return catalogue.reshape(flat, shape=shape)


class Methods(Handle):
    """The methods of this module."""

    def as_strided_(self, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """`as_strided` in place."""
        return become(self, as_strided(self, size, stride, storage_offset), "as_strided_")

    def storage_offset(self) -> int:
        """The storage offset: position of the first element in the base's memory."""
        return _offset(self)

    def resize_(self, *size: Any, memory_format: Any = None) -> Any:
        """Resize in place: elements are cut off at the end, or zeros appended.

        Raises:
            GradientError: the tensor requires grad.
            ShapeError: another size for a view, or a larger one for shared memory (`numpy()`,
                `from_numpy`).

        Example:
            >>> import weft as wf
            >>> wf.tensor([1, 2, 3]).resize_(2, 2).tolist()
            [[1, 2], [3, 0]]
        """
        check_format(memory_format)
        check_writable(self, "resize_")
        if self.lazy.tracked and not trace.now.inference:
            raise GradientError.here("resize_: a tensor that needs a gradient keeps its size")
        shape = sizes("resize_", size)
        if min(shape, default=0) < 0 or math.prod(shape) * self.lazy.type.dtype.size >= 1 << 63:
            raise ShapeError.here(f"resize_: expected a shape that memory can hold, got {shape}")
        count = math.prod(shape)
        if count > math.prod(dims_of(self)) and getattr(self, "lent", False):
            text = "resize_: others see the memory, which cannot grow; clone() the tensor first"
            raise ShapeError.here(text)
        if self.view_of is not None and count not in (0, math.prod(dims_of(self))):
            raise ShapeError.here("resize_: a view keeps its number of elements; clone() it first")
        if self.view_of is not None and not count:
            whole: Any = self
            self.become(whole[None])
            self.become(whole[:0])
        if count == math.prod(dims_of(self)):
            return self if shape == dims_of(self) else self.become(reshape(self, shape))
        views = self.shown_by()
        self.become(_resized(self, shape=shape))
        for view in views:  # whose elements are gone
            view.lens, view.layout = InvalidLens(), None
        return self

    def resize_as_(self, other: Any, *, memory_format: Any = None) -> Any:
        """`resize_` to the shape of another tensor."""
        return self.resize_(dims_of(other), memory_format=memory_format)
