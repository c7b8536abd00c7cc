"""Variants: kernels of a form that hold for the same sizes, and their launches at each of these."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from weft.codegen.target import Target
from weft.ir.extent import Extent, Extents
from weft.ir.extent_function import evaluation
from weft.ir.node import Value
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch, Scratch
from weft.runtime.compilation import compiler


class Code:
    """A kernel and, once it is linked, its address."""

    __slots__ = ("address", "kernel", "target")

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target: Final = target
        self.address = 0

    @property
    def is_lost(self) -> bool:
        """Whether its object code was on disk, and is not there any more."""
        return not (self.address or self.kernel.ir or compiler.holds(self.kernel.key))

    def link(self, address: int) -> None:
        """Sets its address; its text is not needed any more."""
        self.address, name = address, self.kernel.name
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


class Start(NamedTuple):
    """One launch at concrete sizes.

    Attributes:
        slots: the arguments' values, 0 where an address belongs.
        buffers: pairs of a slot and the number of a buffer: the group's inputs, then the results of
            all its nodes, then scratch memory.
        ns: estimated nanoseconds on one thread.
        error: the slot of the error cell's address, -1 if there is none; the next one tells which
            launch reports a fault.
    """

    code: Code
    slots: tuple[int, ...]
    buffers: tuple[tuple[int, int], ...]
    chunks: int
    ns: float
    error: int


class Bound(NamedTuple):
    """The launches of a group at concrete sizes, and the scratch memory that they need.

    Attributes:
        scratch: bytes of each piece, and whether each thread needs as many.
        sizes: those of the form.
    """

    starts: tuple[Start, ...]
    scratch: tuple[tuple[int, bool], ...]
    sizes: tuple[int, ...]


class Place(NamedTuple):
    """A number that follows from the sizes."""

    extent: int  # its index


Number = int | Place


@dataclass(frozen=True, eq=False)
class Template:
    """A launch for many sizes; attributes are those of a `Start`.

    Attributes:
        ns: for the sizes that it was written for, at which there were `planned` chunks.
    """

    code: Code
    slots: tuple[Number, ...]
    buffers: tuple[tuple[int, int], ...]
    chunks: Number
    planned: int
    ns: float
    error: int

    def at(self, left: Iterator[int]) -> Start:
        """The launch, given the numbers that follow from the sizes in order."""
        slots = tuple([x if type(x) is int else next(left) for x in self.slots])
        chunks = at(self.chunks, left)
        ns = self.ns * chunks / max(self.planned, 1)
        return Start(self.code, slots, self.buffers, chunks, ns, self.error)


def at(number: Number, left: Iterator[int]) -> int:
    """A number: its own, or the next of those that follow from the sizes."""
    return next(left) if isinstance(number, Place) else number


class Variant:
    """Launches for all sizes that pass the same guards.

    Args:
        extents: what is known of the sizes; `None` if they are those of the kernels.
    """

    def __init__(
        self, templates: Sequence[Template], scratch: Sequence[tuple[Number, bool]],
        extents: Extents | None,
    ) -> None:  # fmt: skip
        self.templates: Final = tuple(templates)
        self.scratch: Final = tuple(scratch)
        self._extents = extents

    @property
    def first(self) -> tuple[int, ...]:
        """The sizes that it was written for, if they are not those of the kernels."""
        return () if self._extents is None else tuple(self._extents.state["bases"])

    @functools.cached_property
    def _numbers(self) -> Callable[[Sequence[int]], Sequence[int] | None]:
        """The numbers of all launches in order, then the scratch memory, for given sizes."""
        if self._extents is None:
            return lambda _: ()
        given = [x for t in self.templates for x in (*t.slots, t.chunks)]
        given += [size for size, _ in self.scratch]
        return evaluation(self._extents, [x.extent for x in given if isinstance(x, Place)])

    def at(self, sizes: tuple[int, ...]) -> Bound | None:
        """The launches for these sizes; `None` if the kernels do not hold for them."""
        try:
            numbers = self._numbers(sizes)
        except ZeroDivisionError:
            return None
        if numbers is None:
            return None
        left = iter(numbers)
        return Bound(
            tuple([template.at(left) for template in self.templates]),
            tuple([(at(size, left), each) for size, each in self.scratch]),
            sizes,
        )

    def as_data(self, key_of: Callable[[Kernel], object]) -> dict[str, Any]:
        """The variant as data.

        Args:
            key_of: the key of a kernel's object code.
        """
        assert self._extents is not None
        launches = [
            (t.code.kernel.name, key_of(t.code.kernel), list(map(_written, t.slots)), t.buffers,
             _written(t.chunks), t.planned, t.ns, t.error)
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
            _read(chunks), planned, ns, error,
        )
        for name, key, slots, buffers, chunks, planned, ns, error in data["launches"]
    ]  # fmt: skip
    return Variant(templates, [(_read(size), each) for size, each in data["scratch"]], extents)


def _written(number: Number) -> int | list[int]:
    return list(number) if isinstance(number, Place) else number


def _read(number: Any) -> Number:
    return Place(*number) if isinstance(number, list) else number


def variant_of(
    group: Group, launches: Sequence[Launch], extents: Extents | None, target: Target
) -> Variant:
    """The variant of a group's launches."""
    values: list[Value] = [*group.inputs, *[v for n in group.all_nodes for v in n.outputs]]
    arguments = [x for launch in launches for x in launch.args if isinstance(x, Scratch)]
    scratch = list(dict.fromkeys([x for x in arguments if x is not ERROR]))
    number: dict[Any, int] = {x: i for i, x in enumerate([*values, *scratch])}
    templates = [_template(launch, number, target) for launch in launches]
    return Variant(templates, [(_number(x.size), x.per_thread) for x in scratch], extents)


def _template(launch: Launch, number: dict[Any, int], target: Target) -> Template:
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
    chunks = launch.chunks
    planned = chunks.value if isinstance(chunks, Extent) else chunks
    ns = max(float(launch.flops) / 100, float(launch.bytes) / 20)
    return Template(
        code_of(launch.kernel, target), tuple(slots), tuple(buffers), _number(chunks), planned, ns,
        error,
    )  # fmt: skip


def _number(number: int) -> Number:
    return Place(number.index) if isinstance(number, Extent) else number
