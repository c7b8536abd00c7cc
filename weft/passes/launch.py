"""Kernels and their launches on values, which the code generator makes from groups.

Every kernel is one native function

    void kernel(ptr args, i64 begin, i64 end, i64 thread)

`args` points at 8-byte slots: addresses of buffers, then integers. A launch is divided into
`chunks`, whose number does not depend on the number of threads. A call runs chunks `begin` to `end
- 1`. Chunks write disjoint memory, so all of them may run concurrently, and results are bitwise
equal on any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from weft.host.blake2 import digest_of
from weft.ir.node import Node, Value
from weft.passes.control.record import Control, Loop, Tape
from weft.passes.group import Group

SYMBOL: Final = "weft_kernel"
"""Name of the function in a kernel's LLVM IR; the compiler renames it to `Kernel.symbol`."""


@dataclass(frozen=True)
class Kernel:
    """The LLVM IR of one native function. Equal text is compiled once.

    If its object code is on disk, `key` may replace the text.
    """

    name: str  # readable, such as "matmul_f32_128x512x784_bias_relu"
    ir: str  # an LLVM module whose only visible definition is @weft_kernel
    key: str = ""

    @cached_property
    def digest(self) -> str:
        """A hash of the text."""
        return digest_of(self.ir.encode()).hex()


@dataclass(frozen=True, eq=False)
class Scratch:
    """Memory for one launch sequence: `size` bytes, or that many per thread."""

    size: int
    per_thread: bool = False


Buffer = Value | Scratch
Argument = Buffer | int
"""A buffer of the plan, scratch memory, or an integer slot."""


FLOPS_PER_NS: Final = 100
"""Of a thread, for estimates: rather too many, as are ..."""
BYTES_PER_NS: Final = 20
"""... the bytes that it reads and writes."""


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel on given arguments.

    `writes` are the positions in `args` that are written. `inplace` has pairs (written, read) of
    positions that may share memory: the kernel reads an element before it writes it, and no other
    chunk reads it. For per-thread scratch the slot holds the base, and the kernel adds `thread *
    size`.
    """

    kernel: Kernel
    args: tuple[Argument, ...]
    writes: tuple[int, ...]
    chunks: int = 1
    inplace: tuple[tuple[int, int], ...] = ()
    flops: float = 0.0
    bytes: float = 0.0
    check: bool = False  # may set the step's error cell: see ERROR
    control: Control | None = None  # a jump instead of a kernel
    inside: Flat | None = None  # launches of a loop or branch, in its place


@dataclass(frozen=True)
class Slice:
    """At iteration t of a loop, the memory `start + stride * t` bytes into `whole`.

    In a stack, `height` bytes further for each of its rows.
    """

    whole: Buffer
    loop: Loop
    start: int
    stride: int
    height: int = 0


@dataclass(frozen=True)
class Swapped:
    """Double buffering: the memory of `even` in even iterations of a loop, of `odd` in odd ones."""

    even: Scratch
    odd: Scratch
    loop: Loop


View = Slice | Swapped


Pair = tuple[Launch, Group | None]


@dataclass(frozen=True)
class Flat:
    """Launches in order, loops and branches expanded, each with its group.

    Attributes:
        aliases: values of bodies that share the memory of another value.
        views: buffers whose memory differs from iteration to iteration.
        constants: nodes of bodies whose arrays are read.
        stacks: the tape of each stack, and the bytes of a row.
    """

    launches: list[Pair] = field(default_factory=list["Pair"])
    aliases: dict[Value, Value] = field(default_factory=dict[Value, Value])
    views: dict[Buffer, View] = field(default_factory=dict[Buffer, View])
    constants: dict[Node, None] = field(default_factory=dict[Node, None])
    stacks: dict[Value, tuple[Tape, int]] = field(default_factory=dict[Value, tuple[Tape, int]])

    def include(self, other: Flat) -> None:
        """Adds the buffers of another one."""
        self.aliases.update(other.aliases)
        self.views.update(other.views)
        self.constants.update(other.constants)
        self.stacks.update(other.stacks)

    def add(self, launch: Launch, group: Group | None = None) -> None:
        """Appends a launch, expanding a loop or branch."""
        if launch.inside is None:
            self.launches.append((launch, group))
        else:
            self.launches.extend(launch.inside.launches)
            self.include(launch.inside)


def moves(argument: Buffer, flat: Flat) -> bool:
    """Whether an argument advances with the iterations of some loop."""
    while isinstance(argument, Value) and argument in flat.aliases:
        argument = flat.aliases[argument]
    return argument in flat.views


ERROR: Final = Scratch(32)
"""The step's error cell, 4 x i64: state (0 free, 1 set), the launch's tag, position, bad value.

A kernel that checks indices takes its address in its last slot. If one is bad it stores the tag
(its last integer slot), the flat position and the value, then sets the state; the first writer wins
(compare-and-swap). It must still not touch memory it does not own: clamp the index and go on. The
runtime raises after the step, before variables change.
"""


@dataclass(frozen=True)
class Part:
    """In iteration t of a serial loop, the memory `start + stride * t` bytes into `base`."""

    base: Buffer
    start: int = 0
    stride: int = 0


@dataclass(frozen=True, eq=False)
class SerialCall:
    """A kernel's call in a serial loop."""

    kernel: Kernel
    args: tuple[Part | int, ...]
    chunks: int


@dataclass(frozen=True, eq=False)
class SerialLoop:
    """The work of a kernel that calls the kernels of a loop's iterations.

    Attributes:
        test: calls before each iteration that tell whether there is one.
        holds: the boolean that they write; `None` if only the number of iterations decides.
        body: the calls of an iteration.
        carried: what iterations hand on, and its bytes.
        private: what is written and read within an iteration, and its bytes.
        rows: arrays that iterations write a row of each.
        swapped: of what is carried: where an iteration reads it, and where it writes it.
        most: maximum number of iterations, -1 for none.
        nanoseconds: of an iteration, as estimated.
        done: memory for the number of finished iterations, 0 at first.
        going: memory for whether any are left.
    """

    test: tuple[SerialCall, ...]
    holds: Part | None
    body: tuple[SerialCall, ...]
    carried: Mapping[Buffer, int]
    private: Mapping[Buffer, int]
    rows: tuple[Buffer, ...]
    swapped: tuple[tuple[Scratch, Scratch], ...]
    most: int
    nanoseconds: float
    done: Scratch
    going: Scratch


class Generator(Protocol):
    """The interface of the code generator, which makes launches."""

    def lower(self, group: Group) -> tuple[Launch, ...]:
        """The launches that compute a group, in order."""
        ...

    def copy(self, source: Argument, target: Argument, size: int) -> Launch:
        """Copies `size` bytes between buffers that do not overlap."""
        ...

    def serial(self, name: str, loop: SerialLoop) -> Launch | None:
        """Some iterations of a loop; `None` if its kernels cannot be called from one."""
        ...
