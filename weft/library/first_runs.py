"""Programs that run on library kernels at first: most run too rarely to be worth compiling.

A program of library kernels gives the bits of the compiled one, which takes over after a number of
runs that follows from the step alone: see `weft.library.payoff`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from weft import config
from weft.codegen.target import portable
from weft.errors import CompileError, NoCompilerError
from weft.ir.node import Node
from weft.ir.shape import is_static, size
from weft.library.generator import LibraryGenerator
from weft.library.payoff import LEAST, Price
from weft.ops.communication.sequence import call_sequence
from weft.ops.declaration import inner_nodes, op_of
from weft.passes.pipeline import optimize
from weft.passes.step import Step
from weft.runtime import finish
from weft.runtime.compilation import compiler
from weft.runtime.compilation.pack import pack_of
from weft.runtime.executable import Executable
from weft.runtime.execution.call import estimate_ns, iterations
from weft.runtime.flight import new_lock

LARGE: Final = 1 << 27
"""Bytes of all values of a step; the program of a larger one gains more than compiling takes."""
LAUNCH: Final = 1 << 10
"""Bytes that are written in the time of a launch."""


def written(node: Node) -> float:
    """Bytes of what a node gives, in loops each time, or what takes as long as its launch."""
    facts = op_of(node).facts
    if facts.runs is not None:
        return facts.runs(**node.attrs) * sum(map(written, inner_nodes(node)))
    return max(
        sum([size(t.shape) * t.dtype.size for t in node.types if is_static(t.shape)]), LAUNCH
    )


class FirstRuns:
    """A program of library kernels, then the compiled one.

    Args:
        program: the first.
        step: what both compute.
        fetches: how many of the step's fetches are returned.
        price: what a run of the first takes.

    Attributes:
        step: what it computes.
        program: what the last run has run, or the next one will.
    """

    def __init__(
        self, program: Executable, step: Step, threads: int, fetches: int, price: Price
    ) -> None:
        self.step: Final = step
        self._asked: Final = step, threads, fetches
        self.program = program
        self._runs = 0
        self._before: Final = max(price.runs, LEAST)
        self._end: Final = self._before + price.meanwhile(self._before)
        self._own: finish.Begun | None = None
        self._lock = new_lock()

    def run(self, arrays: Sequence[Any], state: Any) -> list[Any]:
        """Runs it once."""
        found = self._next().run(arrays, state)
        if self._own is not None:
            compiler.feed()
        return found

    def _next(self) -> Executable:
        """What runs next."""
        with self._lock:
            self._runs += 1
            if self._runs == self._before:
                self._begin()
            elif self._runs > self._end and self._own is not None:
                self._take()
            return self.program

    def _begin(self) -> None:
        """Has the program compiled, beside the next runs."""
        if self._own is None:
            with contextlib.suppress(CompileError, NoCompilerError):
                self._own = finish.begin(*self._asked, beside=True)

    def _take(self) -> None:
        """Takes the compiled program."""
        if self._own is not None:
            with contextlib.suppress(CompileError, NoCompilerError):
                self.program = self._own.executable()
            # Library kernels, for good, if it cannot be compiled.
            self._own, self.run = None, self.program.run

    def compiled(self) -> Executable:
        """The compiled program, which takes over now."""
        with self._lock:
            if self._runs <= self._end:
                self._begin()
                self._take()
                self._runs = self._end + 1
            return self.program

    def profile(self, arrays: Sequence[Any], state: Any, runs: int = 5) -> str:
        """See `Executable.profile`; of the compiled program."""
        return self.compiled().profile(arrays, state, runs)


def first_runs(step: Step, threads: int, fetches: int) -> FirstRuns | None:
    """The program of a step that is worth no compiling yet; `None` of others.

    Those are large, are on disk already, call other ranks, have loops of any length, or numbers
    that library kernels round more often.
    """
    target = portable()
    if pack_of(target) is None:  # kernels of the library have to be compiled, too
        return None
    if config.get("compile") or config.get("reference") or finish.is_kept(step, threads):
        return None
    nodes = step.graph.nodes
    if call_sequence(nodes) is not None:  # ranks keep step
        return None
    if sum(map(written, nodes)) >= LARGE or not all(map(_same, nodes)):
        return None
    kernels = LibraryGenerator(target)
    try:
        made = finish.of_library_kernels(
            optimize(step), threads, kernels, kernels.has, kernels.addresses, target, fetches
        )  # fmt: skip
        program = made()
        return FirstRuns(program, step, threads, fetches, _price(program))
    except CompileError:
        return None


def _price(program: Executable) -> Price:
    """What a run of a program of library kernels takes."""
    calls = program.program.calls
    pairs = zip(calls, iterations(calls), strict=True)
    return Price(len(calls), sum([estimate_ns(call) * times for call, times in pairs]) / 1e9)


def _same(node: Node) -> bool:
    """Whether library kernels and a program give the same bits of a node, about as fast."""
    types = [*[v.type for v in node.inputs], *node.types]
    single = not any([t.dtype.is_floating and t.dtype.size < 4 for t in types])
    return single and not op_of(node).facts.unbounded and all(map(_same, inner_nodes(node)))
