"""The calls of a program: kernels and Python functions with their arguments' places in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.node import Node
from weft.passes.blueprint import Argument as Argument
from weft.passes.blueprint import External as External
from weft.passes.blueprint import InArena as InArena
from weft.passes.blueprint import Place as Place
from weft.passes.control.record import Kind, Steer
from weft.passes.launch import BYTES_PER_NS, FLOPS_PER_NS, Kernel
from weft.transport.shared_call import SharedCall


@dataclass(frozen=True, eq=False)
class NativeCall:
    """A kernel that calls a Python function where it cannot do without.

    Its first argument is the address of the call's table, which tells it where the function is.
    """

    kernel: Kernel
    python: Callable[[int], None]
    shared: SharedCall


@dataclass(frozen=True, eq=False)
class PythonCall:
    """A Python function, which is told where the addresses of the call's arguments are."""

    python: Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Unbound:
    """A node that Python computes, until a program has memory for it."""

    node: Node


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a kernel or a Python function, or a control-flow record, with argument places.

    `writes` are the positions in `args` that are written, scratch memory among them. A call with
    `check` may set the error cell; one with `guard` ends the program if it is set, so that what
    follows (assignments to variables) does not happen.

    A Python function runs on the thread that called `run`, and may raise: kernels up to the next
    guard still run, then `run` raises. None runs once another has raised, or a kernel has set the
    error cell.
    """

    function: Kernel | NativeCall | PythonCall | Unbound | Steer
    args: tuple[Argument, ...]
    writes: tuple[int, ...]
    chunks: int = 1
    flops: float = 0.0
    bytes: float = 0.0
    check: bool = False
    guard: bool = False

    @property
    def name(self) -> str:
        """A readable name."""
        if isinstance(self.function, Kernel):
            return self.function.name
        if isinstance(self.function, NativeCall):
            return self.function.kernel.name
        if isinstance(self.function, Steer):
            return self.function.kind.name.lower()
        return "host call"

    @property
    def traffic(self) -> float:
        """Bytes read and written: the kernel's estimate, else each argument once."""
        return self.bytes or sum(a.size for a in self.args if isinstance(a, InArena | External))


def estimate_ns(call: Call) -> float:
    """Estimated time on one thread, rather too low: 100 GFLOP/s and 20 GB/s."""
    return max(call.flops / FLOPS_PER_NS, call.traffic / BYTES_PER_NS)


UNKNOWN_ITERATIONS: Final = 16
"""Assumed iterations of a loop whose number is unknown."""


def iterations(calls: Sequence[Call]) -> list[float]:
    """How often each call is made in a step, as far as is known."""
    found: list[float] = []
    times: list[float] = [1.0]
    for call in calls:
        steer = call.function if isinstance(call.function, Steer) else None
        if steer and steer.kind is Kind.END:
            times.pop()
        found.append(times[-1])
        if steer and steer.kind is Kind.BEGIN:
            known = steer.most if steer.most >= 0 else UNKNOWN_ITERATIONS
            times.append(times[-1] * known)
    return found


def moving_arguments(calls: Sequence[Call]) -> list[set[int]]:
    """The positions of each call's arguments that advance with loops."""
    found: list[set[int]] = [set() for _ in calls]
    for call in calls:
        for cursor in call.function.cursors if isinstance(call.function, Steer) else ():
            found[cursor.call].add(cursor.slot)
    return found
