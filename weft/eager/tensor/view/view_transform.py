"""The kinds of views: reshaped, permuted, expanded, sliced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

import numpy as np

from weft import ops
from weft.eager.record.call.plan import function_plan, op_plan
from weft.eager.record.memory.snapshot import is_open
from weft.eager.record.pending.access import detached
from weft.eager.record.pending.lazy import Lazy, Loan
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view import Array, Lens, RepeatedError, View
from weft.ir.look import looks
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.rule import concrete

RESHAPE: Final = REGISTRY["reshape"]
TRANSPOSE: Final = REGISTRY["transpose"]
BROADCAST: Final = REGISTRY["broadcast_to"]
STOP: Final = REGISTRY["stop_gradient"]


def show(x: Any, lens: Lens) -> Any:
    """A view of a tensor; for other data, a new tensor that shares no memory."""
    base = x if isinstance(x, Handle) else wrap(lazy_of(x))
    version = base.version  # first: another thread may change the base meanwhile
    tensor = wrap(lens.take(base.lazy), base)
    tensor.look(View(base, lens, version))
    return tensor


def placed(x: Handle) -> tuple[Any, Array, int]:
    """The root base of a view, an array laid out in memory as the view is within it, and the byte
    offset at which it begins. Only the layout of the array has a meaning, not its values.
    """
    looks.count += 1
    root, lenses = _chain(x)
    return root, *_laid(root.lazy.type, lenses)


def _chain(x: Handle) -> tuple[Any, tuple[Lens, ...]]:
    """The root base of a view, and the views from there to it."""
    chain: list[Lens] = []
    root, view = x, x.view_of
    while view is not None:
        chain.append(view.lens)
        root, view = view.base, view.base.view_of
    return root, (*reversed(chain),)


def _laid(kind: TensorType, lenses: Sequence[Lens]) -> tuple[Array, int]:
    there = start = np.empty(known(kind.shape), np.dtype((np.void, kind.dtype.size)))
    for lens in lenses:
        there = lens.lay(there)
    return there, there.ctypes.data - start.ctypes.data


def memory_of(x: Handle) -> Array:
    """The memory of a tensor or view, for others to write to.

    A copy only if the memory of the base came from others in another order.
    """
    if x.view_of is None:
        return x.memory
    root, there, start = placed(x)
    memory = root.memory
    if not there.size or not memory.flags.c_contiguous:
        return x.memory
    part = np.ndarray(there.shape, x.lazy.type.dtype.numpy, memory, start, there.strides)
    same = (part.shape, part.strides, part.dtype) == (memory.shape, memory.strides, memory.dtype)
    return memory if same else part


def is_dense(x: Handle) -> bool:
    """Whether the elements of a tensor or view are contiguous in memory."""
    return fits(x, None)


class Layout:
    """How the elements of a view lie in the memory of its root: views of views of a type.

    Equal ones are the same object.
    """

    __slots__ = ("_fits", "_next", "kind", "lenses")

    def __init__(self, kind: TensorType, lenses: tuple[Lens, ...]) -> None:
        self.kind = kind
        self.lenses = lenses
        self._next: dict[Lens, Layout] = {}
        self._fits: dict[tuple[int, ...] | None, bool] = {}

    def after(self, lens: Lens) -> Layout:
        """That of a view of such a view."""
        found = self._next.get(lens)
        if found is None:
            if len(self._next) >= MOST_LAYOUTS:
                self._next.clear()
            found = self._next[lens] = Layout(self.kind, (*self.lenses, lens))
        return found

    def fits(self, shape: tuple[int, ...] | None) -> bool:
        """Whether the elements lie so that a shape shows them without a copy, or in order."""
        found = self._fits.get(shape)
        if found is None:
            if len(self._fits) >= MOST_LAYOUTS:
                self._fits.clear()
            found = self._fits[shape] = _lies(self.kind, self.lenses, shape)
        return found


MOST_LAYOUTS: Final = 1 << 9  # of each kind; forgotten together
_layouts: Final[dict[int, Layout]] = {}  # of tensors with memory of their own, by their types


def layout_of(x: Handle) -> Layout | None:
    """How the elements of a tensor lie; `None` if its views are none that equal others."""
    view = x.window
    if view is None:
        kind = x.shown.type
        found = _layouts.get(id(kind))
        if found is None:
            if len(_layouts) >= MOST_LAYOUTS:
                _layouts.clear()
            found = _layouts[id(kind)] = Layout(kind, ())
        return found
    if view.layout is None and type(view.lens) in _PLAIN:
        base: Any = view.base
        before = layout_of(base)
        view.layout = before and before.after(view.lens)
    return view.layout


def fits(x: Handle, shape: tuple[int, ...] | None) -> bool:
    """Whether the elements lie in memory so that a shape shows them without a copy, or in order.

    That follows from the views alone, which mostly come again.
    """
    looks.layouts += 1
    if x.view_of is None:
        return True
    layout = layout_of(x)
    if layout is not None:
        return layout.fits(shape)
    root, lenses = _chain(x)
    return _lies(root.lazy.type, lenses, shape)


def _lies(kind: TensorType, lenses: Sequence[Lens], shape: tuple[int, ...] | None) -> bool:
    there, _ = _laid(kind, lenses)
    if shape is None:
        return there.flags.c_contiguous
    return np.may_share_memory(there, reshaped(there, shape)) or not there.size


def apply(function: Callable[..., Value], lazies: tuple[Lazy, ...], **static: Any) -> Lazy:
    """Record a function of graph values with one result; `static` is hashable."""
    plan = function_plan(function, [x.type for x in lazies], static)
    return trace.now.record(plan, lazies)[0]


def seen(function: Callable[..., Value], base: Lazy, *places: Lazy, **static: Any) -> Lazy:
    """Record a function whose result is a view of a value, without memory of its own."""
    lazies = (base, *places)
    plan = function_plan(function, [x.type for x in lazies], static, view=True)
    return trace.now.record(plan, lazies)[0]


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """The same memory in another shape; a copy if it is not contiguous."""
    return array.reshape(shape)


def _placed(x: Value, places: Value, part: Value) -> Value:
    flat, to = (catalogue.reshape(v, shape=(-1,)) for v in (x, places))
    part = catalogue.broadcast_to(part, shape=concrete(places))
    changed = ops.put_rows(flat, to, catalogue.reshape(part, shape=(-1,)), "set")
    return catalogue.reshape(changed, shape=concrete(x))


def part_of(base: Lazy, lens: Lens) -> Lazy | None:
    """The part of memory of others that a lens covers, not yet read.

    `None` if the base is no such memory, gradients flow, or the part is larger than the base.
    """
    if base.loan is None or base.tracked or trace.now.depth or not is_open(base):
        return None
    assert base.array is not None
    part = lens.lay(base.array)
    if part.size > base.array.size or not np.may_share_memory(part, base.array):
        return None
    found = leaf(part, base)
    found.loan = Loan()
    return found


def put_at(base: Lazy, places: Array, part: Lazy) -> Lazy:
    """`base` with the elements of `part` at `places`, which are row-major indices."""
    return apply(_placed, (base, leaf(places, base), part))


@dataclass(frozen=True, slots=True)
class Shaped:
    """All elements in row-major order in another shape."""

    shape: tuple[int, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return reshaped(base, self.shape)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        shape = {"shape": self.shape}
        there = part_of(base, self)
        return there or trace.now.record(op_plan(RESHAPE, (base.type,), shape), (base,))[0]

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        shape = base.type.shape
        return trace.now.record(op_plan(RESHAPE, (part.type,), {"shape": shape}), (part,))[0]


@dataclass(frozen=True, slots=True)
class Permuted:
    """The axes permuted; `perm` is not negative."""

    perm: tuple[int, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base.transpose(self.perm)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        perm = {"perm": self.perm}
        there = part_of(base, self)
        return there or trace.now.record(op_plan(TRANSPOSE, (base.type,), perm), (base,))[0]

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        back = tuple([self.perm.index(i) for i in range(len(self.perm))])
        return trace.now.record(op_plan(TRANSPOSE, (part.type,), {"perm": back}), (part,))[0]


@dataclass(frozen=True, slots=True)
class Expanded:
    """Expanded axes; in-place changes are refused."""

    shape: tuple[int, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return np.broadcast_to(base, self.shape)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return trace.now.record(op_plan(BROADCAST, (base.type,), {"shape": self.shape}), (base,))[0]

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`.

        Raises:
            RepeatedError: unless the expansion repeats nothing.
        """
        shape = known(base.type.shape)
        if (
            self.shape[len(self.shape) - len(shape) :] == shape
            and math.prod(self.shape[: len(self.shape) - len(shape)]) == 1
        ):
            return Shaped(shape).take(part)
        raise RepeatedError("an expanded tensor", put_at)


@dataclass(frozen=True, slots=True)
class Detached:
    """The same value, detached."""

    detached: ClassVar[bool] = True

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        there = detached(base)
        return _stopped(base) if there is None else there

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`; the base keeps its own gradient."""
        return _stopped(part)


def _stopped(x: Lazy) -> Lazy:
    before, trace.now.grad_mode = trace.now.grad_mode, False
    try:
        return trace.now.record(op_plan(STOP, (x.type,), {}), (x,))[0]
    finally:
        trace.now.grad_mode = before


def cut(x: Value, *, begin: Any, end: Any, strides: Any, sizes: Any, shape: Any) -> Value:
    """A strided slice of `sizes`, in another shape; `None` for sizes that are the shape."""
    part = catalogue.slice(x, begin=begin, end=end, strides=strides)
    return part if sizes is None else catalogue.reshape(part, shape=shape)


def pasted(
    x: Value, part: Value, *, begin: Any, end: Any, strides: Any, sizes: Any, shape: Any
) -> Value:
    """`x` with a strided slice replaced by `part`, which broadcasts to `shape`."""
    update = part if sizes is None else catalogue.reshape(spread(part, shape), shape=sizes)
    return catalogue.slice_update(x, update, begin=begin, end=end, strides=strides)


def spread(part: Value, shape: tuple[int, ...]) -> Value:
    """An assigned value, broadcast to its target; extra leading 1s are allowed, as in NumPy."""
    dims = concrete(part)
    while len(dims) > len(shape) and dims[0] == 1:
        dims = dims[1:]
    part = catalogue.reshape(part, shape=dims) if dims != part.shape else part
    return catalogue.broadcast_to(part, shape=shape) if dims != shape else part


@dataclass(frozen=True, slots=True)
class Cut:
    """A strided slice, with axes dropped or added.

    Attributes:
        sizes: of the slice.
        shape: of the view: `sizes` without dropped axes, with added ones.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        slices = map(slice, self.begin, self.end, self.strides)
        return base[(*slices, ...)].reshape(self.shape)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return part_of(base, self) or seen(cut, base, **self.static())

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(pasted, (base, part), **self.static())

    def static(self) -> dict[str, Any]:
        """The attributes of what it records."""
        return {
            "begin": self.begin, "end": self.end, "strides": self.strides,
            "sizes": None if self.sizes == self.shape else self.sizes, "shape": self.shape,
        }  # fmt: skip


def _row(x: Value, start: Value) -> Value:
    dims = concrete(x)
    part = catalogue.dynamic_slice(x, start, sizes=(1, *dims[1:]))
    return catalogue.reshape(part, shape=dims[1:])


def with_row(x: Value, start: Value, part: Value) -> Value:
    """`x` with the row at `start[0]` replaced."""
    dims = concrete(x)
    row = catalogue.reshape(spread(part, dims[1:]), shape=(1, *dims[1:]))
    return catalogue.dynamic_update_slice(x, row, start)


@dataclass(frozen=True, slots=True)
class Row:
    """`x[index]` with the index as an input of the program: another row needs no other program."""

    index: int
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base[self.index, ...]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return part_of(base, self) or seen(_row, base, self._start(base))

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(with_row, (base, self._start(base), part))

    def _start(self, base: Lazy) -> Lazy:
        start = np.zeros(len(known(base.type.shape)), np.int64)
        start[0] = self.index
        return leaf(start, base)


def _diagonal(x: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    return ops.diagonal(x, offset, axis1, axis2)


def _with_diagonal(x: Value, part: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    return ops.diagonal_update(x, part, offset, axis1, axis2)


@dataclass(frozen=True, slots=True)
class Diagonal:
    """The diagonal elements `i, i + offset` of two axes."""

    offset: int
    axis1: int
    axis2: int
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base.diagonal(self.offset, self.axis1, self.axis2)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return part_of(base, self) or seen(_diagonal, base, **asdict(self))

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_with_diagonal, (base, part), **asdict(self))


_PLAIN: Final = frozenset({Shaped, Permuted, Expanded, Detached, Cut, Row, Diagonal})
"""Views that equal others of the same numbers."""
