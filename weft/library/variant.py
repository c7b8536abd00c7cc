"""Variants: kernels of a form that hold for the same sizes, and their launches at each of these."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from weft.codegen.driver import list_layout as layout
from weft.codegen.target import Target
from weft.ir.extent import Extent, Extents, largest
from weft.ir.node import Value
from weft.ir.shape import known
from weft.library.formula import DecidedError, Formula, OfSizes, Tables
from weft.ops.declaration import op_of
from weft.passes.group import Group, nbytes
from weft.passes.launch import BYTES_PER_NS, ERROR, FLOPS_PER_NS, Kernel, Launch, Scratch
from weft.runtime.compilation import compiler


class Code:
    """A kernel and, once it is linked, its address."""

    __slots__ = ("_cell", "kernel", "target")

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target: Final = target
        self._cell = ctypes.c_int64()

    @property
    def address(self) -> int:
        """The kernel's address; 0 until it is linked."""
        return self._cell.value

    @property
    def place(self) -> int:
        """Where native code finds the address."""
        return ctypes.addressof(self._cell)

    @property
    def is_lost(self) -> bool:
        """Whether its object code was on disk, and is not there any more."""
        return not (self.address or self.kernel.ir or compiler.holds(self.kernel.key))

    def link(self, address: int) -> None:
        """Sets its address; its text is not needed any more."""
        self._cell.value, name = address, self.kernel.name
        self.kernel = Kernel(name, "", compiler.key_of(self.kernel, self.target))


_codes: Final[dict[str, Code]] = {}


@contextlib.contextmanager
def codes_anew() -> Iterator[None]:
    """As if there were no kernels yet: what is linked has lost its text."""
    before = dict(_codes)
    _codes.clear()
    try:
        yield
    finally:
        _codes.clear()
        _codes.update(before)


def code_of(kernel: Kernel, target: Target) -> Code:
    """A kernel's code, of which there is one."""
    key = compiler.key_of(kernel, target)
    found = _codes.get(key)
    if found is None:
        found = _codes[key] = Code(kernel, target)
    elif not found.address and kernel.ir:  # what is on disk may be gone until it is linked
        found.kernel = kernel
    return found


class Place(NamedTuple):
    """A number that follows from the sizes."""

    extent: int  # its index


Number = int | Place


class Template(NamedTuple):
    """A launch for many sizes.

    Attributes:
        slots: the arguments' values, 0 where an address belongs.
        buffers: pairs of a slot and the number of a buffer: the group's inputs, then the results of
            all its nodes, then scratch memory.
        work: estimated ticks of the group on one thread, of which ...
        share: ... this launch takes so many parts of `layout.WHOLE`.
        error: the slot of the error cell's address, -1 if there is none; the next one tells which
            launch reports a fault.
    """

    code: Code
    slots: tuple[Number, ...]
    buffers: tuple[tuple[int, int], ...]
    chunks: Number
    work: Number
    share: int
    error: int

    @property
    def ns(self) -> float:
        """Estimated nanoseconds on one thread, of a template with numbers for extents."""
        assert not isinstance(self.work, Place)
        return self.work * self.share / (layout.WHOLE * layout.TICKS)

    def plain(self, values: Sequence[int]) -> Template:
        """The template with numbers for extents: their values, by index."""
        slots = tuple([_plain(x, values) for x in self.slots])
        chunks, work = _plain(self.chunks, values), _plain(self.work, values)
        return self._replace(slots=slots, chunks=chunks, work=work)


def _plain(number: Number, values: Sequence[int]) -> int:
    return values[number.extent] if isinstance(number, Place) else number


_shown: Final[WeakValueDictionary[int, Variant]] = WeakValueDictionary()


def variant_at(address: int) -> Variant:
    """The variant with this table."""
    return _shown[address]


class Variant(OfSizes):
    """Launches for all sizes that pass the same guards.

    Args:
        scratch: bytes of each piece, and whether each thread needs as many.
        extents: what is known of the sizes.
        only: the only sizes that it holds for, if there are no extents.
    """

    def __init__(
        self, templates: Sequence[Template], scratch: Sequence[tuple[Number, bool]],
        extents: Extents | None, only: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.templates: Final = tuple(templates)
        self.scratch: Final = tuple(scratch)
        self._extents = extents
        self._only = only

    @property
    def has_extents(self) -> bool:
        """Whether it is for many sizes."""
        return self._extents is not None

    @property
    def first(self) -> tuple[int, ...]:
        """The sizes that it was written for."""
        return tuple(self._only if self._extents is None else self._extents.state["bases"])

    def at(self, sizes: Sequence[int]) -> Variant | None:
        """The variant for these sizes alone; `None` if the kernels do not hold for them."""
        assert self._extents is not None
        values = self._extents.admitted(sizes)
        if values is None:
            return None
        templates = [template.plain(values) for template in self.templates]
        scratch = [(_plain(size, values), each) for size, each in self.scratch]
        return Variant(templates, scratch, None, sizes)

    @functools.cached_property
    def table(self) -> int:
        """The address of its table; 0 if native code cannot tell which sizes it holds for."""
        try:
            return self._written()
        except DecidedError:
            return 0

    def _written(self) -> int:
        if self._extents is None:
            formula = Formula()
            for place, size in enumerate(self._only):
                formula.admit(place, size)
        else:
            state = self._extents.state
            formula = Formula(state, range(len(state["bases"])))
            formula.guard()

        def value(x: Number) -> int:
            return formula.extent(x.extent) if isinstance(x, Place) else formula.number(x)

        self._tables = Tables()
        launches = (layout.Launch * len(self.templates))()
        for launch, template in zip(launches, self.templates, strict=True):
            self._fill(launch, template, value)
        scratch = self._tables.add([(each, value(size)) for size, each in self.scratch])
        self._formula = formula.table()
        self._tables.keep(launches)
        self._struct = layout.Variant(
            self._formula.address, ctypes.addressof(launches), len(launches), *scratch
        )
        found = ctypes.addressof(self._struct)
        _shown[found] = self
        return found

    def _fill(self, launch: Any, template: Template, value: Callable[[Number], int]) -> None:
        code, slots, buffers, chunks, work, share, error = template
        places = [(i, value(x)) for i, x in enumerate(slots) if isinstance(x, Place)]
        launch.address, launch.chunks = code.place, value(chunks)
        launch.work, launch.share = value(work), share
        add = self._tables.add
        launch.slots, launch.slot_count = add([x if type(x) is int else 0 for x in slots])
        launch.numbers, launch.number_count = add(places)
        launch.buffers, launch.buffer_count = add(buffers)
        launch.error = error

    _struct: Any

    def as_data(self, key_of: Callable[[Kernel], object]) -> dict[str, Any]:
        """The variant as data.

        Args:
            key_of: the key of a kernel's object code.
        """
        assert self._extents is not None
        launches = [
            (t.code.kernel.name, key_of(t.code.kernel), list(map(_written, t.slots)), t.buffers,
             _written(t.chunks), _written(t.work), t.share, t.error)
            for t in self.templates
        ]  # fmt: skip
        scratch = [(_written(size), each) for size, each in self.scratch]
        return {"extents": self._extents.state, "launches": launches, "scratch": scratch}


def from_data(data: dict[str, Any], code: Callable[[str, Any], Code]) -> Variant:
    """The variant that `as_data` gave.

    Args:
        code: the kernel of a name and a key.
    """
    extents = Extents()
    for value in data["extents"]["bases"]:
        extents.base(value)
    extents.restored(data["extents"])
    templates = [
        Template(
            code(name, key), tuple(map(_read, slots)), tuple([(a, b) for a, b in buffers]),
            _read(chunks), _read(work), share, error,
        )
        for name, key, slots, buffers, chunks, work, share, error in data["launches"]
    ]  # fmt: skip
    return Variant(templates, [(_read(size), each) for size, each in data["scratch"]], extents)


def _written(number: Number) -> int | list[int]:
    return list(number) if isinstance(number, Place) else number


def _read(number: Any) -> Number:
    return Place(*number) if isinstance(number, list) else number


def variant_of(
    group: Group, launches: Sequence[Launch], extents: Extents | None, target: Target,
    only: Sequence[int] = (),
) -> Variant:  # fmt: skip
    """The variant of a group's launches.

    Args:
        only: the sizes of the group, if there are no extents.
    """
    values: list[Value] = [*group.inputs, *[v for n in group.all_nodes for v in n.outputs]]
    arguments = [x for launch in launches for x in launch.args if isinstance(x, Scratch)]
    scratch = list(dict.fromkeys([x for x in arguments if x is not ERROR]))
    number: dict[Any, int] = {x: i for i, x in enumerate([*values, *scratch])}
    work = _work(group)
    templates = [_template(launch, number, work, target) for launch in launches]
    pieces = [(_number(x.size), x.per_thread) for x in scratch]
    return Variant(templates, pieces, extents, only)


def _work(group: Group) -> int:
    """Estimated ticks of a group, by its multiply-adds or by the memory that it touches."""
    multiplied = 0
    for node in group.all_nodes:
        op = op_of(node)
        if op.facts.work is not None:
            shapes = [known(v.shape) for v in (*node.inputs, *node.outputs)]
            multiplied += 2 * op.facts.work.products(*shapes, **{**op.attrs, **node.attrs})
    moved = sum([nbytes(v) for v in (*group.inputs, *group.outputs)])
    return largest(multiplied * layout.TICKS // FLOPS_PER_NS, moved * layout.TICKS // BYTES_PER_NS)


def _template(launch: Launch, number: dict[Any, int], work: int, target: Target) -> Template:
    slots: list[Number] = []
    buffers: list[tuple[int, int]] = []
    error = -1
    for place, argument in enumerate(launch.args):
        if argument is ERROR:
            error = place
        elif isinstance(argument, Value | Scratch):
            buffers.append((place, number[argument]))
        else:
            slots.append(_number(argument))
            continue
        slots.append(0)
    now = work.value if isinstance(work, Extent) else work
    ns = max(float(launch.flops) / FLOPS_PER_NS, float(launch.bytes) / BYTES_PER_NS)
    share = round(layout.WHOLE * layout.TICKS * ns / max(now, 1))
    return Template(
        code_of(launch.kernel, target), tuple(slots), tuple(buffers), _number(launch.chunks),
        _number(work), share, error,
    )  # fmt: skip


def _number(number: int) -> Number:
    return Place(number.index) if isinstance(number, Extent) else number
