"""What the stitcher and Python share: lists of library kernels for many sizes, as tables.

A list has steps. A step is a call of the library at the sizes of one recorded call. A call has
cases, of which the first that holds for the sizes is taken. A case has parts; a part is an entry of
the library, which has variants: again the first that holds is taken. A variant has launches, whose
arguments follow from its sizes.

What follows from sizes is told by *instructions*, which give values in order, or check something.
All numbers have 64 bits, so that tables are arrays of them.
"""

from __future__ import annotations

import ctypes
from typing import Final

from weft.codegen.procedure import i64, pointer

BASE, NUMBER, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LEAST, MOST = range(9)
"""Instructions that give a value: size `a`, the number `a`, or one of two earlier values."""
EQUAL, LESS, AT_MOST = range(9, 12)
"""Those that check that two values compare as `wanted`."""
IS, SAME = range(12, 14)
"""Those that check size `a`: it is `b`, or as size `b`."""

DONE, NO_CASE, OTHER_LAYOUT, NO_VARIANT, NO_ROOM = range(5)
"""What stitching ends with. Of `NO_CASE`, `OTHER_LAYOUT` and `NO_VARIANT` the workspace tells where
that was; of `NO_ROOM`, that there are more launches or slots, or that more memory is needed."""

REMEMBERED: Final = 8
"""Choices of a call or an entry, by sizes: layers are alike, and parameters keep their sizes."""
TICKS: Final = 16  # of estimated time, in a nanosecond
WHOLE: Final = 1024  # parts of a group's estimated time
PIECE: Final = 1 << 16
"""Bytes of a chunk of what is copied."""


class Instruction(ctypes.Structure):
    """One instruction."""

    _fields_ = [("kind", i64), ("a", i64), ("b", i64), ("wanted", i64)]


class Formula(ctypes.Structure):
    """Instructions in order."""

    _fields_ = [("code", pointer), ("count", i64)]


class Pair(ctypes.Structure):
    """Two numbers: of a launch, a slot and what it holds."""

    _fields_ = [("place", i64), ("index", i64)]


class Launch(ctypes.Structure):
    """A launch for many sizes.

    `address` points at the kernel's address; `chunks` and `work` are numbers of values: the launch
    takes `share` of the work, in parts of `WHOLE`, in ticks. Of the slots, `numbers` are values and
    `buffers` addresses; `error` is that of the error cell's address, or -1.
    """

    _fields_ = [
        ("address", pointer), ("chunks", i64), ("work", i64), ("share", i64),
        ("slots", pointer), ("slot_count", i64), ("numbers", pointer), ("number_count", i64),
        ("buffers", pointer), ("buffer_count", i64), ("error", i64),
    ]  # fmt: skip


class Variant(ctypes.Structure):
    """Launches of a group; `scratch` are pairs: whether each thread needs it, the value of its
    bytes."""

    _fields_ = [
        ("formula", pointer), ("launches", pointer), ("launch_count", i64), ("scratch", pointer),
        ("scratch_count", i64),
    ]  # fmt: skip


class Choice(ctypes.Structure):
    """The addresses of the cases of a call, or of the variants of an entry, the latest first; for
    how many sizes they are, and where `REMEMBERED` choices are kept."""

    _fields_ = [("items", pointer), ("count", i64), ("size_count", i64), ("known", pointer)]


class Chosen(ctypes.Structure):
    """What was chosen for some sizes, null for none, and its values."""

    _fields_ = [("item", pointer), ("sizes", pointer), ("values", pointer)]


class Part(ctypes.Structure):
    """An entry: which values of the case are its sizes, and which buffers of the case are its.
    Where the entry is null, it is a call of Python on these buffers."""

    _fields_ = [
        ("entry", pointer), ("sizes", pointer), ("size_count", i64), ("buffers", pointer),
        ("buffer_count", i64),
    ]  # fmt: skip


class Case(ctypes.Structure):
    """A routine. Its buffers are the inputs, the results, constants (their addresses are known),
    and temporaries (values tell their bytes). Only steps of the same `layout` can have it."""

    _fields_ = [
        ("formula", pointer), ("layout", i64), ("parts", pointer), ("part_count", i64),
        ("constants", pointer), ("constant_count", i64), ("temporaries", pointer),
        ("temporary_count", i64),
    ]  # fmt: skip


class Output(ctypes.Structure):
    """A result of a step.

    It has the memory of value `root`, or that of constant `constant` of the case, or its address is
    `given`; else it has memory between steps: `item` bytes times `rank` sizes from `first` on.
    """

    _fields_ = [
        ("value", i64), ("root", i64), ("constant", i64), ("given", i64), ("item", i64),
        ("first", i64), ("rank", i64),
    ]  # fmt: skip


class Step(ctypes.Structure):
    """A call at the sizes from `first` on. The memory of `dead` values is free after it.

    Where the call is null, the first output's memory is divided among the others, in order. If
    there are inputs, each is copied to its part.
    """

    _fields_ = [
        ("call", pointer), ("first", i64), ("layout", i64), ("inputs", pointer),
        ("input_count", i64), ("outputs", pointer), ("output_count", i64), ("dead", pointer),
        ("dead_count", i64),
    ]  # fmt: skip


class List(ctypes.Structure):
    """A list: its steps; the values whose addresses are given; for each value its address, and its
    bytes if it has memory between steps."""

    _fields_ = [
        ("steps", pointer), ("step_count", i64), ("given", pointer), ("given_count", i64),
        ("places", pointer), ("bytes", pointer),
    ]  # fmt: skip


class Origin(ctypes.Structure):
    """Where a launch comes from."""

    _fields_ = [("step", i64), ("part", i64), ("case", pointer), ("variant", pointer)]


class Host(ctypes.Structure):
    """A call of Python before a launch, and where the addresses of its buffers are."""

    _fields_ = [("launch", i64), ("step", i64), ("part", i64), ("case", pointer), ("slot", i64)]


class Workspace(ctypes.Structure):
    """Where lists are stitched, one after another: room for what is written, and what was found."""

    _fields_ = [
        ("sizes", pointer),  # of a part
        ("buffers", pointer), ("own", pointer),  # addresses: of a case, and of a part
        ("free", pointer),  # pairs: bytes and an offset
        ("calls", pointer), ("origins", pointer), ("ticks", pointer), ("slots", pointer),
        ("hosts", pointer),
        ("launch_room", i64), ("slot_room", i64),
        ("base", i64), ("memory", i64),  # where there is memory for what is between steps, and how
        ("threads", i64), ("error", pointer),  # much
        ("step", i64), ("case", pointer), ("part", i64),  # where it is
        ("free_count", i64), ("top", i64), ("scratch", i64),
        ("launch_count", i64), ("slot_count", i64), ("host_count", i64),
        ("needed", i64),  # bytes
        ("unlinked", i64),  # launches whose kernels have no address yet
        ("total", i64),  # ticks
    ]  # fmt: skip
