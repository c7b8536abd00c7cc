"""What the compiler makes of a step: graphs, kernels, memory; LLVM IR and assembly on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from weft.codegen import llvm
from weft.codegen.target import Target
from weft.errors import ArgumentError
from weft.passes.blueprint import Blueprint, Placed
from weft.passes.launch import Kernel
from weft.runtime.measurement.profile import arena_map, work_of


class Stage(NamedTuple):
    """The graph after a pass.

    Attributes:
        seconds: how long the pass took.
        graph: as text, as `weft.ir.printer` writes it.
    """

    name: str
    seconds: float
    graph: str


@dataclass(frozen=True, repr=False)
class Explanation:
    """A compiled step; printing it shows every stage from the graph to the memory plan.

    Attributes:
        stages: the graph as specialized, and after each pass.
        blueprint: the launches of kernels, and their places in memory.
        target: the processor that the code is for.
        tier: what computes the same calls when they are recorded, and for which reason.
    """

    stages: tuple[Stage, ...]
    blueprint: Blueprint
    target: Target
    tier: str = ""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, in the order of their first call."""
        return tuple(self._kernels())

    def llvm_ir(self, kernel: str) -> str:
        """The LLVM IR of a kernel.

        Raises:
            ArgumentError: there is no kernel of this name.
        """
        return self._kernel(kernel).ir

    def assembly(self, kernel: str) -> str:
        """The assembly of a kernel.

        Raises:
            ArgumentError: there is no kernel of this name.
        """
        return llvm.to_assembly(self.llvm_ir(kernel), self.target.cpu, self.target.features)

    @property
    def memory(self) -> str:
        """The arena as a picture: addresses downwards, calls to the right; and its buffers."""
        return arena_map(self.blueprint.arena, self.blueprint.names)

    def __str__(self) -> str:
        return "\n\n".join(self._sections())

    __repr__ = __str__

    def _sections(self) -> Iterator[str]:
        if self.tier:
            yield f"# tier\n{self.tier}"
        shown = ""
        for name, seconds, graph in self.stages:
            took = f", {seconds * 1e3:.1f} ms" if seconds else ""
            yield f"# {name}{took}\n{graph}" if graph != shown else f"# {name}{took}: no change"
            shown = graph
        yield "\n".join([f"# calls of kernels on {self.target.cpu}", *map(_line, self._calls())])
        yield f"# memory\n{self.memory}"

    def _calls(self) -> tuple[Placed, ...]:
        return (*self.blueprint.prelude, *self.blueprint.calls)

    def _kernels(self) -> dict[str, Kernel]:
        """The kernels by name; those of one name are numbered from the second on."""
        named: dict[str, Kernel] = {}
        seen: set[str] = set()
        count: Counter[str] = Counter()
        for placed in self._calls():
            kernel = placed.launch.kernel
            if not kernel.ir or kernel.ir in seen:
                continue
            seen.add(kernel.ir)
            count[kernel.name] += 1
            number = count[kernel.name]
            named[kernel.name if number == 1 else f"{kernel.name}.{number}"] = kernel
        return named

    def _kernel(self, name: str) -> Kernel:
        kernels = self._kernels()
        if name not in kernels:
            raise ArgumentError(f"expected a kernel among {', '.join(kernels)}, got {name!r}")
        return kernels[name]


def _line(placed: Placed) -> str:
    """A call: its kernel, its nodes, and how much it computes and moves."""
    launch = placed.launch
    chunks = f" in {launch.chunks} chunks" if launch.chunks > 1 else ""
    work = f", {launch.flops:,.0f} flops" if launch.flops else ""
    return f"{launch.kernel.name}{chunks}: {work_of(placed.group)}{work}, {launch.bytes:,.0f} B"
